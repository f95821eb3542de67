//! Two network namespaces and a virtual cable between them.
//!
//! The namespaces have no names: each exists as long as a process is in it, a `cat` that waits for
//! the end of its input. However this program ends, the input ends with it, the two processes
//! leave, and the kernel removes namespaces, cable, queues and rules. Nothing has to be cleaned up.

use std::io::{self, BufRead, BufReader};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use thiserror::Error;

use super::PathSpec;
use crate::control::Role;

/// A cable between two namespaces; dropping it removes both.
#[derive(Debug)]
pub struct VethPath {
    spec: PathSpec,
    publisher: Namespace,
    subscriber: Namespace,
}

/// Where an end lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file of its network namespace.
    pub namespace: PathBuf,
    /// Its interface there.
    pub interface: &'static str,
    /// The address of that interface.
    pub address: Ipv4Addr,
    /// Its IPv6 address.
    pub address_v6: Ipv6Addr,
}

/// Why there is no cable.
#[derive(Debug, Error)]
pub enum VethError {
    /// A program is not installed.
    #[error("--link needs the program `{program}` (on Debian: apt install {package}): {source}")]
    Missing {
        /// The program.
        program: String,
        /// Debian's package.
        package: &'static str,
        /// Why it did not start.
        source: io::Error,
    },
    /// A program failed, typically for lack of permission.
    #[error("--link cannot make its network namespaces (it needs root): `{command}`: {text}")]
    Refused {
        /// The command.
        command: String,
        /// Its error message.
        text: String,
    },
}

impl VethPath {
    /// The interface in either namespace.
    pub const INTERFACE: &'static str = "weir0";

    /// Lays the cable; it loses nothing yet.
    pub fn lay(spec: PathSpec) -> Result<Self, VethError> {
        let path = Self { spec, publisher: Namespace::new()?, subscriber: Namespace::new()? };
        let mtu = spec.mtu;
        let peer = path.subscriber.holder.id();
        path.publisher.run(&format!(
            "ip link add {device} mtu {mtu} type veth peer name {device} mtu {mtu} netns {peer}",
            device = Self::INTERFACE
        ))?;
        for (namespace, index) in [(&path.publisher, 0), (&path.subscriber, 1)] {
            namespace.run("ip link set lo up")?;
            namespace.run(&format!("ip address add {}/24 dev {}", ADDRESSES[index], Self::INTERFACE))?;
            // A host without IPv6 measures without it.
            let _ = namespace.run(&format!(
                "ip -6 address add {}/64 dev {} nodad",
                ADDRESSES_V6[index],
                Self::INTERFACE
            ));
            namespace.run(&format!("ip link set {} up", Self::INTERFACE))?;
            namespace.run(&format!("ip route add default dev {}", Self::INTERFACE))?;
            path.shape(namespace)?;
        }
        for namespace in [&path.publisher, &path.subscriber] {
            namespace.wait_until_up()?;
        }
        Ok(path)
    }

    /// The specification.
    #[must_use]
    pub fn spec(&self) -> PathSpec {
        self.spec
    }

    /// Where the ends of a kind live.
    #[must_use]
    pub fn place(&self, role: Role) -> Place {
        let (namespace, index) = match role {
            Role::Publisher => (&self.publisher, 0),
            Role::Subscriber => (&self.subscriber, 1),
        };
        Place {
            namespace: namespace.file(),
            interface: Self::INTERFACE,
            address: ADDRESSES[index],
            address_v6: ADDRESSES_V6[index],
        }
    }

    /// Starts to lose packets at random in both directions, as specified.
    pub fn start_losses(&self) -> Result<(), VethError> {
        if self.spec.loss_e4 == 0 {
            return Ok(());
        }
        for namespace in [&self.publisher, &self.subscriber] {
            // Of IP only: a lost ARP is answered by a wait of a second.
            namespace.run(&format!(
                "nft add rule netdev weir loss meta protocol ip numgen random mod 10000 < {} counter drop",
                self.spec.loss_e4
            ))?;
        }
        Ok(())
    }

    /// Ends the losses, and returns how many packets were lost.
    pub fn end_losses(&self) -> Result<u64, VethError> {
        if self.spec.loss_e4 == 0 {
            return Ok(0);
        }
        let mut lost = 0;
        for namespace in [&self.publisher, &self.subscriber] {
            lost += counted(&namespace.run("nft list chain netdev weir loss")?);
            namespace.run("nft flush chain netdev weir loss")?;
        }
        Ok(lost)
    }

    /// Sets rate, loss and offload of a namespace's interface.
    fn shape(&self, namespace: &Namespace) -> Result<(), VethError> {
        let device = Self::INTERFACE;
        if let Some(rate_bps) = self.spec.rate_bps {
            // By default, the burst is what the rate brings in 4 ms, a tick of a slow kernel, and
            // at least one full send; the queue is that of a typical card, a thousand packets.
            let burst = self.spec.burst_bytes.map_or((rate_bps / 8 / 250).max(70_000), u64::from);
            let waiting = self.spec.queue_bytes.map_or(1000 * u64::from(self.spec.mtu) + burst, u64::from);
            namespace.run(&format!(
                "tc qdisc add dev {device} root tbf rate {rate_bps}bit burst {burst} limit {waiting}"
            ))?;
        }
        if !self.spec.gso {
            namespace.run(&format!("ethtool -K {device} tx-udp-segmentation off"))?;
        }
        if self.spec.loss_e4 > 0 {
            namespace.run("nft add table netdev weir")?;
            namespace.run(&format!(
                "nft add chain netdev weir loss {{ type filter hook ingress device {device} priority 0; }}"
            ))?;
        }
        Ok(())
    }
}

/// A network namespace without a name.
#[derive(Debug)]
struct Namespace {
    /// The process that keeps it.
    holder: Child,
    /// The input whose end it waits for.
    _input: Option<ChildStdin>,
}

impl Namespace {
    fn new() -> Result<Self, VethError> {
        let mut command = Command::new("unshare");
        // It says a word when it is inside, and waits.
        command.args(["--net", "sh", "-c", "echo inside; exec cat"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A terminal's Ctrl-C is for this program; the ends of a case still need their network then.
        let spawned = command.process_group(0).spawn();
        let mut holder = spawned.map_err(|source| missing("unshare", source))?;
        let mut word = String::new();
        if let Some(output) = holder.stdout.take() {
            // An error is an empty word as well.
            let _ = BufReader::new(output).read_line(&mut word);
        }
        let input = holder.stdin.take();
        let namespace = Self { holder, _input: input };
        if word.trim() == "inside" { Ok(namespace) } else { Err(namespace.refused()) }
    }

    fn file(&self) -> PathBuf {
        format!("/proc/{}/ns/net", self.holder.id()).into()
    }

    /// Runs a command inside and returns what it printed.
    fn run(&self, line: &str) -> Result<String, VethError> {
        let program = line.split(' ').next().unwrap_or_default();
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", self.file().display())).args(line.split(' '));
        let output = command.output().map_err(|source| missing("nsenter", source))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if output.status.code() == Some(NOT_FOUND) {
            return Err(missing(program, io::Error::other(text)));
        }
        Err(VethError::Refused { command: line.to_owned(), text })
    }

    /// Waits until the interface carries packets: the kernel may take a second, and drops them
    /// until then.
    fn wait_until_up(&self) -> Result<(), VethError> {
        let deadline = Instant::now() + UP_WAIT;
        loop {
            let state = self.run(&format!("ip -oneline link show dev {}", VethPath::INTERFACE))?;
            if state.contains(" state UP ") {
                return Ok(());
            }
            if Instant::now() >= deadline {
                let text = format!("the interface is not up within {UP_WAIT:?}: {}", state.trim());
                return Err(VethError::Refused { command: "ip link set up".to_owned(), text });
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Why the process that should have kept the namespace is not inside.
    fn refused(mut self) -> VethError {
        let said = self.holder.stderr.take().and_then(|stderr| io::read_to_string(stderr).ok());
        let text = said.unwrap_or_default().trim().to_owned();
        VethError::Refused { command: "unshare --net".to_owned(), text }
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Both fail only when the process has ended.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// The ends of the cable: publishers, subscribers.
const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 77, 0, 1), Ipv4Addr::new(10, 77, 0, 2)];

const ADDRESSES_V6: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0xfd00, 0x77, 0, 0, 0, 0, 0, 1), Ipv6Addr::new(0xfd00, 0x77, 0, 0, 0, 0, 0, 2)];

/// How long a cable may take to carry packets.
const UP_WAIT: Duration = Duration::from_secs(20);

/// What `nsenter` ends with when there is no such program.
const NOT_FOUND: i32 = 127;

fn missing(program: &str, source: io::Error) -> VethError {
    let package = match program {
        "nft" => "nftables",
        "ethtool" => "ethtool",
        "unshare" | "nsenter" => "util-linux",
        _ => "iproute2",
    };
    VethError::Missing { program: program.to_owned(), package, source }
}

/// The number in `counter packets N bytes N` of a rule.
fn counted(chain: &str) -> u64 {
    let mut words = chain.split_whitespace().skip_while(|word| *word != "packets").skip(1);
    words.next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_a_rule_are_read() {
        let chain = "table netdev weir {\n chain loss {\n meta protocol ip numgen random mod 10000 < 1000 \
                     counter packets 4997 bytes 642 drop\n }\n}\n";
        assert_eq!(counted(chain), 4997);
        assert_eq!(counted("table netdev weir {\n chain loss {\n }\n}\n"), 0);
    }

    #[test]
    fn a_program_that_is_missing_is_named_with_its_package() {
        let error = missing("nft", io::ErrorKind::NotFound.into()).to_string();
        assert!(error.contains("`nft` (on Debian: apt install nftables)"), "{error}");
    }
}
