//! Network namespaces: two hosts and cables between them, on one machine.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// A network namespace with a loopback interface that is up; removed on drop.
#[derive(Debug)]
pub struct Namespace {
    name: String,
}

/// Two namespaces joined by pairs of virtual Ethernet interfaces.
#[derive(Debug)]
pub struct Cable {
    /// One end: 10.77.0.1 on [`Cable::INTERFACE`].
    pub one: Namespace,
    /// The other end: 10.77.0.2.
    pub other: Namespace,
    /// Present while a cable leads through it.
    switch: Option<Namespace>,
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
        let cable = Self::unplugged();
        cable.plug(0);
        cable
    }

    /// Creates two namespaces with nothing between them.
    ///
    /// # Panics
    ///
    /// If the kernel refuses.
    #[must_use]
    pub fn unplugged() -> Self {
        Self { one: Namespace::new(), other: Namespace::new(), switch: None }
    }

    /// Adds a cable: 10.77.NUMBER.1 and 10.77.NUMBER.2 on the interfaces `weirNUMBER`.
    ///
    /// # Panics
    ///
    /// If the kernel refuses.
    pub fn plug(&self, number: u8) {
        let name = format!("weir{number}");
        let (one, other) = (&self.one.name, &self.other.name);
        run(&format!("ip -n {one} link add {name} type veth peer name {name} netns {other}"));
        self.one.set_up(number, 1);
        self.other.set_up(number, 2);
    }

    /// As [`Cable::plug`], with a switch between the ends: when one end goes down, the other one
    /// keeps its carrier.
    ///
    /// # Panics
    ///
    /// If the kernel refuses.
    pub fn plug_through_switch(&mut self, number: u8) {
        let switch = self.switch.get_or_insert_with(Namespace::new);
        switch.ip(&format!("link add switch{number} type bridge mcast_snooping 0"));
        switch.ip(&format!("link set switch{number} up"));
        for (end, host) in [(&self.one, 1), (&self.other, 2)] {
            let port = format!("port{number}.{host}");
            end.ip(&format!("link add weir{number} type veth peer name {port} netns {}", switch.name));
            switch.ip(&format!("link set {port} master switch{number} up"));
            end.set_up(number, host);
        }
    }

    /// Creates two namespaces with a router between them: 10.77.0.1 on `weir0`, and 10.77.1.2 on `weir1`, a cable with
    /// another MTU.
    ///
    /// # Panics
    ///
    /// If the kernel refuses.
    #[must_use]
    pub fn lay_through_router(mtu: u32) -> Self {
        let mut cable = Self::unplugged();
        let router = cable.switch.insert(Namespace::new());
        for (end, number, host) in [(&cable.one, 0, 1), (&cable.other, 1, 2)] {
            let port = format!("router{number}");
            end.ip(&format!("link add weir{number} type veth peer name {port} netns {}", router.name));
            router.ip(&format!("address add 10.77.{number}.254/24 dev {port}"));
            router.ip(&format!("link set {port} up"));
            end.set_up(number, host);
            end.ip(&format!("route add default via 10.77.{number}.254"));
        }
        cable.other.ip(&format!("link set weir1 mtu {mtu}"));
        router.ip(&format!("link set router1 mtu {mtu}"));
        router.run("sysctl -qw net.ipv4.ip_forward=1");
        cable
    }

    /// Keeps the router from reporting packets that exceed an MTU.
    ///
    /// # Panics
    ///
    /// If there is no router, or the kernel refuses.
    pub fn silence_router(&self) {
        let router = self.switch.as_ref().expect("a cable through a router");
        router.run("nft add table inet weir");
        router.nft(&["add", "chain", "inet", "weir", "silence", "{ type filter hook output priority 0; }"]);
        router.nft(&["add", "rule", "inet", "weir", "silence", "icmp type destination-unreachable drop"]);
    }

    /// Removes a cable with its interfaces.
    ///
    /// # Panics
    ///
    /// If there is none of this number.
    pub fn unplug(&self, number: u8) {
        self.one.ip(&format!("link delete weir{number}"));
    }

    /// Loses `percent` percent of the UDP packets of cable 0 in either direction from now on, at
    /// random.
    ///
    /// # Panics
    ///
    /// If the kernel refuses.
    pub fn lose(&self, percent: u32) {
        for end in [&self.one, &self.other] {
            end.run("nft add table netdev weir");
            let hook = format!("{{ type filter hook ingress device {} priority 0; }}", Self::INTERFACE);
            end.nft(&["add", "chain", "netdev", "weir", "loss", &hook]);
            let which =
                if percent < 100 { format!("numgen random mod 100 < {percent} ") } else { String::new() };
            let rule = format!("ip protocol udp {which}counter drop");
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

    fn set_up(&self, number: u8, host: u8) {
        self.ip(&format!("address add 10.77.{number}.{host}/24 dev weir{number}"));
        self.ip(&format!("link set weir{number} up"));
        self.run(&format!("ethtool -K weir{number} tx-udp-segmentation off"));
    }

    /// Runs `ip` in the namespace.
    ///
    /// # Panics
    ///
    /// If it fails.
    pub fn ip(&self, arguments: &str) {
        run(&format!("ip -n {} {arguments}", self.name));
    }

    /// Calls `f` in the namespace, on a thread of its own. The threads that `f` starts and the
    /// sockets that it opens stay there.
    ///
    /// # Panics
    ///
    /// If `f` panics.
    pub fn within<T: Send>(&self, f: impl FnOnce() -> T + Send) -> T {
        let call = || {
            let namespace = File::open(Path::new("/run/netns").join(&self.name)).expect("it exists");
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
                .expect("a process that made a namespace may enter it");
            f()
        };
        std::thread::scope(|scope| match scope.spawn(call).join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
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
