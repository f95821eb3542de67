use std::collections::BTreeMap;

use weir_results::Interface;

use super::*;

/// A host that has nothing wrong.
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
    check(|facts| watch(facts, "swapping.in_pages", 4.0), "swapping", Some("swapoff -a"));
    let show = "ps -eo pid,rss,comm --sort=-rss | head";
    check(|facts| watch(facts, "memory.used_percent", 97.0), "memory", Some(show));
}

#[test]
fn sockets_and_the_interface_are_looked_at() {
    let mend = "sysctl -w net.core.rmem_max=16777216";
    check(|facts| facts.environment.rmem_max = Some(212_992), "receive-buffer-limit", Some(mend));
    let mend = "sysctl -w net.core.wmem_max=16777216";
    check(|facts| facts.environment.wmem_max = Some(212_992), "send-buffer-limit", Some(mend));
    check(|facts| interface(facts).mtu = Some(1400), "mtu", Some("ip link set dev eth0 mtu 1500"));
    check(|facts| interface(facts).mtu = None, "no-interface", Some("ip -brief address"));
    let mend = "ip link set dev eth0 mtu 9000";
    check(|facts| interface(facts).speed_mbps = Some(10_000), "mtu-standard", Some(mend));
    let mend = "ethtool -s eth0 duplex full autoneg on";
    check(|facts| interface(facts).duplex = Some("half".into()), "half-duplex", Some(mend));
    let off =
        BTreeMap::from([("generic-receive-offload".to_owned(), false), ("rx-gro-hw".to_owned(), false)]);
    check(|facts| interface(facts).offloads = off, "offload", Some("ethtool -K eth0 gro on"));
    check(|facts| watch(facts, "eth0.recv_drops", 3.0), "dropping", Some("ethtool -S eth0"));
    // Whoever named an interface has no say in what a script does.
    let mut facts = healthy();
    *interface(&mut facts) = Interface { name: "a';reboot".into(), mtu: Some(1400), ..Interface::default() };
    let mend = r"ip link set dev 'a'\'';reboot' mtu 1500";
    assert_eq!(examine(&facts)[0].command.as_deref(), Some(mend));
    // The loopback interface has none of this.
    let mut facts = healthy();
    *interface(&mut facts) = Interface { name: "lo".into(), mtu: Some(1400), ..Interface::default() };
    assert_eq!(codes(&facts), [""; 0]);
}

#[test]
fn interrupts_that_wait_are_found_in_either_form() {
    let coalescing = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let mend = "ethtool -C eth0 adaptive-rx off rx-usecs 0";
    let found = coalescing(&[("adaptive-rx", "on"), ("rx-usecs", "0")]);
    check(|facts| interface(facts).coalescing = found, "interrupt-coalescing", Some(mend));
    let found = coalescing(&[("adaptive-rx", "off"), ("rx-usecs", "50")]);
    let mend = "ethtool -C eth0 rx-usecs 0";
    check(|facts| interface(facts).coalescing = found, "interrupt-coalescing", Some(mend));
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
fn a_script_has_what_mends_by_itself_for_its_purpose() {
    let mut facts = healthy();
    facts.environment.rmem_max = Some(212_992);
    facts.has_irqbalance = true;
    facts.environment.allowed_cpus = 1;
    let findings = examine(&facts);
    let throughput = script(&findings, Purpose::Throughput);
    assert!(throughput.starts_with("#!/bin/sh\n"), "{throughput}");
    let line = "\nsysctl -w net.core.rmem_max=16777216 || echo 'receive-buffer-limit: not mended' >&2\n";
    assert!(throughput.contains(line), "{throughput}");
    assert!(!throughput.contains("irqbalance") && !throughput.contains("taskset"), "{throughput}");
    let latency = script(&findings, Purpose::Latency);
    assert!(latency.contains("\nsystemctl stop irqbalance || "), "{latency}");
    assert!(!latency.contains("sysctl"), "{latency}");
    assert!(script(&[], Purpose::Latency).contains("Nothing was found"));
}

#[test]
fn this_host_can_be_looked_at() {
    let facts = Facts::gather("lo", Duration::from_millis(1));
    assert!(facts.environment.logical_cpus > 0 && facts.watched.rows() == 1);
    assert!(!runs("no such program"));
    let _ = examine(&facts);
}
