//! Network namespaces, most of which end with this program.
//!
//! Those have no names: each exists as long as a process is in it, a `cat` that waits for the end of
//! its input. However this program ends, the input ends with it, the process leaves, and the kernel
//! removes namespace, devices, queues and rules. Nothing has to be cleaned up.
//!
//! Those of the lab have names, and stay until they are removed.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use thiserror::Error;

/// Why there is no virtual link.
#[derive(Debug, Error)]
pub enum LinkError {
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
    /// There is no TUN device.
    #[error(
        "--link tun cannot open /dev/net/tun: {0}; load it with `modprobe tun`, give a container \
         `--device /dev/net/tun`, or use --link veth"
    )]
    NoTun(io::Error),
    /// The emulator ended in the middle.
    #[error("the link emulator failed: {0}; run again, or use --link veth")]
    Emulator(io::Error),
}

/// A network namespace.
#[derive(Debug)]
pub(crate) struct Namespace(Keeper);

/// What a namespace exists by.
#[derive(Debug)]
enum Keeper {
    /// A process, and the input whose end it waits for.
    Process { holder: Child, _input: Option<ChildStdin> },
    /// A name, as those of `ip netns`.
    Name(String),
}

impl Namespace {
    pub(crate) fn new() -> Result<Self, LinkError> {
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
        let is_inside = word.trim() == "inside";
        let refused = (!is_inside).then(|| refused(&mut holder));
        let namespace = Self(Keeper::Process { holder, _input: input });
        refused.map_or(Ok(namespace), Err)
    }

    /// Makes one with a name, which stays.
    pub(crate) fn create(name: &str) -> Result<Self, LinkError> {
        ip(&["netns", "add", name])?;
        Ok(Self::named(name))
    }

    /// The one with this name, if there is one.
    pub(crate) fn named(name: &str) -> Self {
        Self(Keeper::Name(name.to_owned()))
    }

    /// Removes one with a name, with its devices.
    pub(crate) fn remove(name: &str) -> Result<(), LinkError> {
        ip(&["netns", "delete", name])
    }

    /// What `ip link ... netns` calls it.
    pub(crate) fn id(&self) -> String {
        match &self.0 {
            Keeper::Process { holder, .. } => holder.id().to_string(),
            Keeper::Name(name) => name.clone(),
        }
    }

    pub(crate) fn file(&self) -> PathBuf {
        match &self.0 {
            Keeper::Process { holder, .. } => format!("/proc/{}/ns/net", holder.id()).into(),
            Keeper::Name(name) => Path::new(NAMED).join(name),
        }
    }

    /// Runs a command inside and returns what it printed.
    pub(crate) fn run(&self, line: &str) -> Result<String, LinkError> {
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
        Err(LinkError::Refused { command: line.to_owned(), text })
    }

    /// Calls `f` inside, on a thread of its own.
    pub(crate) fn within<T: Send>(&self, f: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        let file = self.file();
        let call = || {
            enter_namespace(&file)?;
            f()
        };
        let panicked = |_| Err(io::Error::other("a thread in a network namespace panicked"));
        thread::scope(|scope| scope.spawn(call).join().unwrap_or_else(panicked))
    }

    /// Packets that a device inside refused to send, by the kernel's count; 0 if it is unknown.
    pub(crate) fn refused_packets(&self, device: &str) -> u64 {
        let text = match &self.0 {
            Keeper::Process { holder, .. } => {
                fs::read_to_string(format!("/proc/{}/net/dev", holder.id())).ok()
            }
            Keeper::Name(_) => self.run("cat /proc/net/dev").ok(),
        };
        send_drops(&text.unwrap_or_default(), device)
    }

    /// Waits until the device carries packets: the kernel may take a second, and drops them until
    /// then.
    pub(crate) fn wait_until_up(&self, device: &str) -> Result<(), LinkError> {
        let deadline = Instant::now() + UP_WAIT;
        loop {
            let state = self.run(&format!("ip -oneline link show dev {device}"))?;
            // A TUN device has no state of its own.
            if state.contains(" state UP ") || state.contains(" state UNKNOWN ") {
                return Ok(());
            }
            if Instant::now() >= deadline {
                let text = format!("the interface is not up within {UP_WAIT:?}: {}", state.trim());
                return Err(LinkError::Refused { command: "ip link set up".to_owned(), text });
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if let Keeper::Process { holder, .. } = &mut self.0 {
            // Both fail only when the process has ended.
            let _ = holder.kill();
            let _ = holder.wait();
        }
    }
}

/// Why the process that should have kept a namespace is not inside.
fn refused(holder: &mut Child) -> LinkError {
    let said = holder.stderr.take().and_then(|stderr| io::read_to_string(stderr).ok());
    let text = said.unwrap_or_default().trim().to_owned();
    LinkError::Refused { command: "unshare --net".to_owned(), text }
}

fn ip(words: &[&str]) -> Result<(), LinkError> {
    let output = Command::new("ip").args(words).output().map_err(|source| missing("ip", source))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(LinkError::Refused { command: format!("ip {}", words.join(" ")), text })
}

/// The folder of those with names.
pub(super) const NAMED: &str = "/run/netns";

/// Moves the calling thread, and those that it starts from then on, into the network namespace of
/// this file. Sockets that are open stay where they are.
pub fn enter_namespace(file: &Path) -> io::Result<()> {
    let namespace = File::open(file)?;
    Ok(move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?)
}

/// How long a link may take to carry packets.
const UP_WAIT: Duration = Duration::from_secs(20);

/// What `nsenter` ends with when there is no such program.
const NOT_FOUND: i32 = 127;

fn missing(program: &str, source: io::Error) -> LinkError {
    let package = match program {
        "nft" => "nftables",
        "ethtool" => "ethtool",
        "unshare" | "nsenter" => "util-linux",
        _ => "iproute2",
    };
    LinkError::Missing { program: program.to_owned(), package, source }
}

/// The column `drop` of what a device sent, in the text of `/proc/net/dev`.
fn send_drops(text: &str, device: &str) -> u64 {
    let of_device = text.lines().find_map(|line| line.trim_start().strip_prefix(device)?.strip_prefix(':'));
    // Eight columns of what it received, then bytes, packets, errors and drops of what it sent.
    let column = of_device.and_then(|columns| columns.split_whitespace().nth(8 + 3));
    column.and_then(|drops| drops.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_missing_is_named_with_its_package() {
        let error = missing("nft", io::ErrorKind::NotFound.into()).to_string();
        assert!(error.contains("`nft` (on Debian: apt install nftables)"), "{error}");
    }

    #[test]
    fn drops_of_a_device_are_read() {
        let text = "Inter-|   Receive                                    |  Transmit\n face \
                    |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo\n    \
                    lo:       0       0    0    0    0     0      0         0        0       0    0    7    0  0\n \
                    weir0:       5       6    7    8    9     10      11     12      13      14    15  1234  0\n";
        assert_eq!(send_drops(text, "weir0"), 1234);
        assert_eq!(send_drops(text, "weir1"), 0);
    }
}
