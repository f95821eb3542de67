//! Network namespaces: two hosts and a cable between them, on one machine.

use std::ffi::OsStr;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A network namespace with a loopback interface that is up; removed on drop.
#[derive(Debug)]
pub struct Namespace {
    name: String,
}

/// Two namespaces joined by a pair of virtual Ethernet interfaces.
#[derive(Debug)]
pub struct Cable {
    /// One end: 10.77.0.1 on [`Cable::INTERFACE`].
    pub one: Namespace,
    /// The other end: 10.77.0.2.
    pub other: Namespace,
}

impl Cable {
    /// The name of the interface in either namespace.
    pub const INTERFACE: &str = "weir0";

    /// Creates a lossless cable.
    ///
    /// Segmentation offload is off, so that the kernel splits a segmented send into packets that
    /// can be lost one by one, as a real network card does.
    ///
    /// # Panics
    ///
    /// If the kernel refuses: check the requirement first.
    #[must_use]
    pub fn lay() -> Self {
        let (one, other) = (Namespace::new(), Namespace::new());
        run(&format!(
            "ip -n {} link add {name} type veth peer name {name} netns {}",
            one.name,
            other.name,
            name = Self::INTERFACE
        ));
        for (end, address) in [(&one, "10.77.0.1/24"), (&other, "10.77.0.2/24")] {
            run(&format!("ip -n {} address add {address} dev {}", end.name, Self::INTERFACE));
            run(&format!("ip -n {} link set {} up", end.name, Self::INTERFACE));
            end.run(&format!("ethtool -K {} tx-udp-segmentation off", Self::INTERFACE));
        }
        Self { one, other }
    }

    /// Loses `percent` percent of the packets in either direction from now on, at random.
    ///
    /// # Panics
    ///
    /// If the kernel refuses.
    pub fn lose(&self, percent: u32) {
        for end in [&self.one, &self.other] {
            end.run("nft add table netdev weir");
            let hook = format!("{{ type filter hook ingress device {} priority 0; }}", Self::INTERFACE);
            end.nft(&["add", "chain", "netdev", "weir", "loss", &hook]);
            let rule = format!("ip protocol udp numgen random mod 100 < {percent} counter drop");
            end.nft(&["add", "rule", "netdev", "weir", "loss", &rule]);
        }
    }

    /// Returns how many packets were lost so far, in both directions.
    ///
    /// # Panics
    ///
    /// If [`Cable::lose`] was not called.
    #[must_use]
    pub fn lost(&self) -> u64 {
        [&self.one, &self.other]
            .iter()
            .map(|end| counted(&end.nft(&["list", "table", "netdev", "weir"])))
            .sum()
    }
}

impl Namespace {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("weir-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        run(&format!("ip netns add {name}"));
        let namespace = Self { name };
        run(&format!("ip -n {} link set lo up", namespace.name));
        namespace
    }

    /// Makes a command like `program` that runs in a namespace, if there is one.
    pub(crate) fn enter(namespace: Option<&Self>, program: &Command) -> Command {
        let mut command = match namespace {
            None => Command::new(program.get_program()),
            Some(namespace) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", &namespace.name]).arg(program.get_program());
                command
            }
        };
        command.args(program.get_args());
        let set = program.get_envs().filter_map(|(name, value)| Some((name, value?)));
        command.envs(set.collect::<Vec<(&OsStr, &OsStr)>>());
        command
    }

    fn run(&self, line: &str) {
        run(&format!("ip netns exec {} {line}", self.name));
    }

    fn nft(&self, arguments: &[&str]) -> String {
        check(Command::new("ip").args(["netns", "exec", &self.name, "nft"]).args(arguments))
    }
}

impl Drop for Namespace {
    /// Its interfaces are removed with it.
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", &self.name]).status();
    }
}

fn run(line: &str) {
    let mut words = line.split(' ');
    check(Command::new(words.next().unwrap_or_default()).args(words));
}

fn check(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Parses the number in `counter packets N bytes N` of a rule.
fn counted(table: &str) -> u64 {
    let mut words = table.split_whitespace().skip_while(|word| *word != "packets").skip(1);
    words.next().and_then(|word| word.parse().ok()).expect("a rule that counts")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_a_rule_are_read() {
        let table = "table netdev weir {\n chain loss {\n numgen random mod 100 < 10 counter packets 4997 bytes 642 drop\n }\n}\n";
        assert_eq!(counted(table), 4997);
    }
}
