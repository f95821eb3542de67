use std::collections::BTreeMap;

use weir_results::{Interface, WakeUp};

use super::*;

/// A host without findings.
fn healthy() -> Facts {
    let mut watched = Telemetry::new(0);
    let row = [("cpu.idle_percent", 99.0), ("memory.used_percent", 30.0), ("eth0.recv_drops", 0.0)];
    watched.push(1000, row.map(|(name, value)| (name.to_owned(), value)));
    let interface =
        Interface { name: "eth0".into(), mtu: Some(1500), speed_mbps: Some(1000), ..Interface::default() };
    Facts {
        environment: Environment {
            allowed_cpus: 4,
            logical_cpus: 4,
            cpu_governor: Some("performance".into()),
            clocksource: Some("tsc".into()),
            rmem_max: Some(16 << 20),
            wmem_max: Some(16 << 20),
            interface: Some(interface),
            ..Environment::default()
        },
        watched,
        has_irqbalance: false,
        is_optimised: true,
        path: None,
    }
}

fn codes(facts: &Facts) -> Vec<&'static str> {
    examine(facts).into_iter().map(|finding| finding.code).collect()
}

#[track_caller]
fn check(change: impl FnOnce(&mut Facts), code: &str, command: Option<&str>) {
    let mut facts = healthy();
    change(&mut facts);
    let findings = examine(&facts);
    assert_eq!(findings.iter().map(|finding| finding.code).collect::<Vec<_>>(), [code]);
    assert_eq!(findings[0].command.as_deref(), command);
    assert!(!findings[0].text.ends_with('.'), "{}", findings[0].text);
}

fn interface(facts: &mut Facts) -> &mut Interface {
    facts.environment.interface.as_mut().unwrap()
}

fn watch(facts: &mut Facts, name: &str, value: f64) {
    facts.watched.push(2000, [(name.to_owned(), value)]);
}

#[test]
fn a_healthy_host_has_nothing() {
    assert_eq!(codes(&healthy()), [""; 0]);
    assert_eq!(codes(&Facts { is_optimised: true, ..Facts::default() }), [""; 0]);
}

#[test]
fn processors_are_looked_at() {
    check(|facts| facts.is_optimised = false, "debug-build", Some("cargo build --release"));
    check(|facts| facts.environment.allowed_cpus = 1, "one-core", Some("taskset -cp 0-3 $$"));
    check(
        |facts| facts.environment.smt = Some(true),
        "smt",
        Some("echo off > /sys/devices/system/cpu/smt/control"),
    );
    check(|facts| facts.has_irqbalance = true, "irqbalance", Some("systemctl stop irqbalance"));
    let show = "ps -eo pid,pcpu,comm --sort=-pcpu | head";
    check(|facts| watch(facts, "cpu.idle_percent", 50.0), "busy", Some(show));
    check(|facts| watch(facts, "cpu.steal_percent", 5.0), "steal", None);
    check(
        |facts| facts.environment.idle_driver = Some("intel_idle".into()),
        "idle-states",
        Some("cpupower idle-set --disable-by-latency 1"),
    );
    let governor = |facts: &mut Facts| facts.environment.cpu_governor = Some("powersave".into());
    let mut facts = healthy();
    governor(&mut facts);
    assert_eq!(codes(&facts), ["governor"]);
    assert!(examine(&facts)[0].command.as_deref().unwrap().contains("echo performance"));
    facts.environment.turbo = Some(true);
    assert_eq!(codes(&facts), ["governor", "turbo"]);
}

#[test]
fn measured_wake_ups_decide_whether_idle_states_are_a_problem() {
    let mut facts = healthy();
    facts.environment.idle_driver = Some("haltpoll".into());
    facts.environment.wake_ups = vec![
        WakeUp { slept_us: 20, idle_ns: 4_100, awake_ns: 4_000 },
        WakeUp { slept_us: 1_000, idle_ns: 35_200, awake_ns: 4_200 },
    ];
    let findings = examine(&facts);
    assert!(!findings[0].is_note && findings[0].is_fixed_by_script(), "{findings:?}");
    assert!(findings[0].text.contains("after 1000 us of sleep, waking up took 35.2 us instead of 4.2 us"));
    facts.environment.wake_ups.pop();
    let findings = examine(&facts);
    assert!(findings[0].is_note && findings[0].text.contains("woke up as fast"), "{findings:?}");
}

#[test]
fn quotas_count_only_below_what_is_allowed() {
    let mut facts = healthy();
    facts.environment.cpu_quota_percent = Some(400);
    assert_eq!(codes(&facts), [""; 0]);
    facts.environment.cpu_quota_percent = Some(150);
    assert_eq!(codes(&facts), ["cpu-quota"]);
    assert!(examine(&facts)[0].text.contains("1.5 processors"));
    check(
        |facts| watch(facts, "cgroup.throttled_percent", 1.0),
        "throttled",
        Some("cat /sys/fs/cgroup/cpu.stat"),
    );
}

#[test]
fn clocks_and_memory_are_looked_at() {
    check(|facts| facts.environment.clocksource = Some("hpet".into()), "clock-source", None);
    check(
        |facts| {
            facts.environment.clocksource = Some("hpet".into());
            facts.environment.clocksources = Some("hpet tsc acpi_pm".into());
        },
        "clock-source",
        Some("echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource"),
    );
    let show = "ps -eo pid,rss,comm --sort=-rss | head";
    check(|facts| watch(facts, "swapping.in_pages", 4.0), "swapping", Some(show));
    check(|facts| watch(facts, "memory.used_percent", 97.0), "memory", Some(show));
}

#[test]
fn sockets_and_the_interface_are_looked_at() {
    let raise = "sysctl -w net.core.rmem_max=16777216";
    check(|facts| facts.environment.rmem_max = Some(212_992), "receive-buffer-limit", Some(raise));
    let raise = "sysctl -w net.core.wmem_max=16777216";
    check(|facts| facts.environment.wmem_max = Some(212_992), "send-buffer-limit", Some(raise));
    check(|facts| interface(facts).mtu = None, "no-interface", Some("ip -brief address"));
    let show = "ip -details link show dev eth0";
    check(|facts| interface(facts).mtu = Some(1400), "mtu", Some(show));
    check(|facts| interface(facts).speed_mbps = Some(10_000), "mtu-standard", Some(show));
    check(|facts| interface(facts).duplex = Some("half".into()), "half-duplex", Some("ethtool eth0"));
    let off =
        BTreeMap::from([("generic-receive-offload".to_owned(), false), ("rx-gro-hw".to_owned(), false)]);
    check(|facts| interface(facts).offloads = off, "offload", Some("ethtool -K eth0 gro on"));
    check(|facts| watch(facts, "eth0.recv_drops", 3.0), "dropping", Some("ethtool -S eth0"));
    // An interface's name is always one word of a command.
    let mut facts = healthy();
    *interface(&mut facts) = Interface { name: "a';reboot".into(), mtu: Some(1400), ..Interface::default() };
    let show = r"ip -details link show dev 'a'\'';reboot'";
    assert_eq!(examine(&facts)[0].command.as_deref(), Some(show));
    // The loopback interface has no such findings.
    let mut facts = healthy();
    *interface(&mut facts) = Interface { name: "lo".into(), mtu: Some(1400), ..Interface::default() };
    assert_eq!(codes(&facts), [""; 0]);
}

#[test]
fn interrupts_that_wait_are_found_in_either_form() {
    let coalescing = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let command = "ethtool -C eth0 adaptive-rx off rx-usecs 0";
    let found = coalescing(&[("adaptive-rx", "on"), ("rx-usecs", "0")]);
    check(|facts| interface(facts).coalescing = found, "interrupt-coalescing", Some(command));
    let found = coalescing(&[("adaptive-rx", "off"), ("rx-usecs", "50")]);
    let command = "ethtool -C eth0 rx-usecs 0";
    check(|facts| interface(facts).coalescing = found, "interrupt-coalescing", Some(command));
    let mut facts = healthy();
    interface(&mut facts).coalescing = coalescing(&[("rx-usecs", "0")]);
    assert_eq!(codes(&facts), [""; 0]);
}

#[test]
fn the_way_to_a_peer_is_looked_at() {
    let path = PathFacts {
        peer: "other".into(),
        address: "192.0.2.1".into(),
        local_address: Some("192.0.2.2".into()),
        interface: Some("eth0".into()),
        path_mtu: Some(1500),
        answers: true,
        ..PathFacts::default()
    };
    let mut facts = Facts { path: Some(path.clone()), ..healthy() };
    assert_eq!(codes(&facts), [""; 0]);
    facts.path = Some(PathFacts { path_mtu: Some(1400), answers: false, ..path.clone() });
    assert_eq!(codes(&facts), ["unreachable", "path-mtu"]);
    facts.path = Some(PathFacts { is_same_host: true, ..path.clone() });
    assert_eq!(codes(&facts), ["same-host"]);
    facts.path = Some(PathFacts { local_address: None, ..path });
    assert_eq!(codes(&facts), ["no-route"]);
}

#[test]
fn what_is_only_worth_knowing_comes_last() {
    let mut facts = healthy();
    facts.environment.virtualised = Some("KVM".into());
    facts.environment.smt = Some(true);
    facts.environment.rmem_max = Some(1);
    let findings = examine(&facts);
    assert_eq!(findings.iter().map(|one| one.is_note).collect::<Vec<_>>(), [false, true, true]);
}

#[test]
fn a_script_fixes_the_findings_of_its_purpose() {
    let mut facts = healthy();
    facts.environment.rmem_max = Some(212_992);
    facts.has_irqbalance = true;
    facts.environment.allowed_cpus = 1;
    let findings = examine(&facts);
    let throughput = script(&findings, Purpose::Throughput);
    assert!(throughput.starts_with("#!/bin/sh\n"), "{throughput}");
    let line = "\n[ \"$(sysctl -n net.core.rmem_max)\" -ge 16777216 ] || sysctl -w net.core.rmem_max=16777216 \
                || echo 'receive-buffer-limit: not fixed' >&2\n";
    assert!(throughput.contains(line), "{throughput}");
    assert!(!throughput.contains("irqbalance") && !throughput.contains("taskset"), "{throughput}");
    let latency = script(&findings, Purpose::Latency);
    assert!(latency.contains("\nsystemctl stop irqbalance || "), "{latency}");
    assert!(!latency.contains("sysctl"), "{latency}");
    assert!(latency.ends_with("\n# To be fixed manually, see `weir doctor`: one-core\n"), "{latency}");
    assert!(script(&[], Purpose::Latency).contains("No finding can be fixed"));
}

/// Hosts with as many findings at once as possible.
fn broken() -> [Facts; 4] {
    let mut facts = Facts { is_optimised: false, has_irqbalance: true, ..healthy() };
    let environment = &mut facts.environment;
    environment.allowed_cpus = 1;
    environment.smt = Some(true);
    environment.cpu_quota_percent = Some(50);
    environment.cpu_governor = Some("powersave\nreboot".into());
    environment.turbo = Some(true);
    environment.idle_driver = Some("intel_idle\nreboot".into());
    environment.clocksource = Some("hpet".into());
    environment.clocksources = Some("hpet tsc".into());
    environment.virtualised = Some("KVM".into());
    environment.container = Some("docker".into());
    environment.rmem_max = Some(212_992);
    environment.wmem_max = Some(212_992);
    let low = [("netdev_max_backlog", "1000"), ("busy_poll", "0"), ("busy_read", "0")];
    environment.sysctls = low.map(|(key, value)| (format!("net.core.{key}"), value.to_owned())).into();
    let offloads =
        ["generic-receive-offload", "generic-segmentation-offload", "tx-checksumming", "rx-checksumming"];
    *interface(&mut facts) = Interface {
        name: "vpn0\nreboot".into(),
        mtu: Some(1400),
        speed_mbps: Some(10_000),
        duplex: Some("half".into()),
        offloads: offloads.map(|name| (name.to_owned(), false)).into(),
        coalescing: [("adaptive-rx", "on"), ("rx-usecs", "50")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
        ..Interface::default()
    };
    let row = [
        ("cpu.idle_percent", 10.0),
        ("cpu.steal_percent", 20.0),
        ("cgroup.throttled_percent", 5.0),
        ("memory.used_percent", 99.0),
        ("swapping.in_pages", 4.0),
        ("vpn0\nreboot.recv_drops", 3.0),
    ];
    facts.watched.push(3000, row.map(|(name, value)| (name.to_owned(), value)));
    let path = PathFacts {
        peer: "other\nreboot".into(),
        address: "192.0.2.1".into(),
        local_address: Some("192.0.2.2".into()),
        path_mtu: Some(1300),
        ..PathFacts::default()
    };
    let mut others = [facts.clone(), facts.clone(), facts.clone()];
    others[0].path = Some(PathFacts { is_same_host: true, ..path.clone() });
    others[1].path = Some(PathFacts { local_address: None, ..path.clone() });
    interface(&mut others[1]).mtu = Some(1500);
    interface(&mut others[2]).mtu = None;
    facts.path = Some(path);
    let [same_host, no_route, no_interface] = others;
    [facts, same_host, no_route, no_interface]
}

/// Returns whether a script may contain this line: it raises a known setting, or is one of a few
/// fixed commands.
///
/// Written independently of the code that makes the lines. Lines that change a network interface,
/// take a processor offline, or contain text from the host must not be in this list.
pub(super) fn is_harmless(line: &str) -> bool {
    const RAISED: [&str; 5] = ["rmem_max", "wmem_max", "netdev_max_backlog", "busy_poll", "busy_read"];
    const FIXED: [&str; 3] = [
        "for file in /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor; do echo performance > \"$file\"; done",
        "cpupower idle-set --disable-by-latency 1",
        "systemctl stop irqbalance",
    ];
    let raises = |key: &&str| {
        let rest = line.strip_prefix(&format!("[ \"$(sysctl -n net.core.{key})\" -ge "));
        let values = rest.and_then(|rest| rest.split_once(&format!(" ] || sysctl -w net.core.{key}=")));
        values.is_some_and(|(minimum, value)| minimum == value && minimum.parse::<u64>().is_ok())
    };
    FIXED.contains(&line) || RAISED.iter().any(raises)
}

#[test]
fn the_allow_list_refuses_what_can_disconnect_a_host() {
    for line in [
        "ip link set dev eth0 mtu 1500",
        "ip link set dev eth0 down",
        "ethtool -s eth0 duplex full autoneg on",
        "ethtool -K eth0 gro on",
        "ethtool -C eth0 rx-usecs 0",
        "ethtool -G eth0 rx 4096",
        "ethtool -L eth0 combined 4",
        "echo off > /sys/devices/system/cpu/smt/control",
        "swapoff -a",
        "systemctl stop network",
        "sysctl -w net.core.rmem_max=16777216",
        "[ \"$(sysctl -n net.core.rmem_max)\" -ge 2 ] || sysctl -w net.core.rmem_max=1",
        "[ \"$(sysctl -n net.ipv4.ip_forward)\" -ge 1 ] || sysctl -w net.ipv4.ip_forward=1",
        "[ \"$(sysctl -n net.core.rmem_max)\" -ge 1;reboot ] || sysctl -w net.core.rmem_max=1;reboot",
    ] {
        assert!(!is_harmless(line), "{line}");
    }
}

#[test]
fn no_script_contains_a_line_that_can_disconnect_a_host() {
    let mut codes = Vec::new();
    let mut commands = 0;
    for facts in broken() {
        let findings = examine(&facts);
        codes.extend(findings.iter().map(|finding| finding.code));
        for purpose in [Purpose::Latency, Purpose::Throughput, Purpose::Both] {
            let text = script(&findings, purpose);
            for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
                let (command, report) = line.rsplit_once(" || ").unwrap();
                assert!(report.ends_with(": not fixed' >&2") && report.starts_with("echo '"), "{line}");
                assert!(is_harmless(command), "{line}");
                commands += 1;
            }
        }
    }
    assert!(commands > 0);
    codes.sort_unstable();
    codes.dedup();
    // Every finding in the sources is among them: add a new one to the hosts above.
    let sources = concat!(include_str!("network.rs"), include_str!("processor.rs"));
    let made = sources.split("Finding::new(").skip(1);
    let made = made.filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next());
    let unseen: Vec<&str> = made.filter(|code| !codes.contains(code)).collect();
    assert_eq!(unseen, [""; 0]);
}

#[test]
fn this_host_can_be_looked_at() {
    let facts = Facts::gather("lo", Duration::from_millis(1));
    assert!(facts.environment.logical_cpus > 0 && facts.watched.rows() == 1);
    assert!(!runs("no such program"));
    let _ = examine(&facts);
}
