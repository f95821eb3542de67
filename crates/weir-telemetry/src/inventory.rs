//! Describes the host, once per run.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

use procfs::process::Process;
use procfs::{CpuInfo, Current, Meminfo};
use weir_results::{Environment, Warning};

use crate::cgroup::cpu_quota;
use crate::interface::describe_interface;

/// Describes this host and program.
///
/// `interface` is the network interface that will carry the samples, e.g. `lo`. Never fails:
/// unavailable values are empty.
///
/// Interfaces are read from /sys, which belongs to the network namespace that mounted it. In a
/// namespace without its own /sys, the figures of an interface may be another namespace's.
#[must_use]
pub fn environment(interface: Option<&str>) -> Environment {
    let cpus = CpuInfo::current().ok();
    let logical_cpus = read("/sys/devices/system/cpu/online").and_then(|list| parse_cpu_list(&list));
    let memory = Meminfo::current().ok();
    let swap_kib = memory.as_ref().map(|memory| memory.swap_total / 1024);
    Environment {
        weir_version: env!("CARGO_PKG_VERSION").to_owned(),
        date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        hostname: read("/proc/sys/kernel/hostname"),
        kernel: read("/proc/sys/kernel/osrelease").unwrap_or_default(),
        cpu_model: cpus.as_ref().and_then(|cpus| cpus.model_name(0)).map(str::to_owned),
        logical_cpus: logical_cpus.unwrap_or(0),
        allowed_cpus: allowed_cpus().or(logical_cpus).unwrap_or(0),
        cpu_governor: cpu_governor(),
        memory_kib: memory.as_ref().map_or(0, |memory| memory.mem_total / 1024),
        virtualised: cpus.as_ref().and_then(virtualised),
        clocksource: read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        rmem_max: read_number("/proc/sys/net/core/rmem_max"),
        wmem_max: read_number("/proc/sys/net/core/wmem_max"),
        rmem_default: read_number("/proc/sys/net/core/rmem_default"),
        wmem_default: read_number("/proc/sys/net/core/wmem_default"),
        cpu_mhz: cpus.as_ref().and_then(cpu_mhz),
        smt: read_number::<u8>("/sys/devices/system/cpu/smt/active").map(|active| active == 1),
        turbo: turbo(),
        idle_driver: read("/sys/devices/system/cpu/cpuidle/current_driver").filter(|name| name != "none"),
        idle_governor: read("/sys/devices/system/cpu/cpuidle/current_governor"),
        idle_states: idle_states("/sys/devices/system/cpu/cpu0/cpuidle"),
        isolated_cpus: read("/sys/devices/system/cpu/isolated"),
        clocksources: read("/sys/devices/system/clocksource/clocksource0/available_clocksource"),
        container: container(),
        cpu_quota_percent: cpu_quota().map(|cpus| (cpus * 100.0).round() as u64),
        swap_kib,
        swap_used_kib: memory.map(|memory| memory.swap_total.saturating_sub(memory.swap_free) / 1024),
        sysctls: sysctls(),
        interface: interface.map(describe_interface),
        wake_ups: Vec::new(),
        command: Vec::new(),
    }
}

/// Returns the warnings that follow from the host alone: a power-saving governor, a single
/// processor.
#[must_use]
pub fn host_warnings(environment: &Environment) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if environment.allowed_cpus == 1 {
        warnings.push(Warning::OnlyOneCore);
    }
    match &environment.cpu_governor {
        Some(governor) if governor != "performance" => {
            warnings.push(Warning::Governor { governor: governor.clone() });
        }
        _ => {}
    }
    warnings
}

/// Returns the number of processors that this process may use.
fn allowed_cpus() -> Option<u32> {
    let ranges = Process::myself().ok()?.status().ok()?.cpus_allowed_list?;
    Some(ranges.iter().map(|(first, last)| last - first + 1).sum())
}

/// Returns the governors in use, each once, e.g. `performance` or `performance,powersave`.
fn cpu_governor() -> Option<String> {
    let mut governors: Vec<String> = fs::read_dir("/sys/devices/system/cpu")
        .ok()?
        .filter_map(|entry| read(entry.ok()?.path().join("cpufreq/scaling_governor")))
        .collect();
    governors.sort_unstable();
    governors.dedup();
    (!governors.is_empty()).then(|| governors.join(","))
}

/// Returns the hypervisor, if there is one: the processor's flags show one, the firmware names it.
fn virtualised(cpus: &CpuInfo) -> Option<String> {
    cpus.flags(0)?.contains(&"hypervisor").then(|| {
        ["/sys/class/dmi/id/sys_vendor", "/sys/hypervisor/type"]
            .iter()
            .find_map(read)
            .unwrap_or_else(|| "unknown hypervisor".to_owned())
    })
}

/// Returns the nominal frequency from the firmware, or else the current one from `/proc/cpuinfo`.
fn cpu_mhz(cpus: &CpuInfo) -> Option<u64> {
    let base_khz: Option<u64> = read_number("/sys/devices/system/cpu/cpu0/cpufreq/base_frequency");
    let present = || cpus.get_info(0)?.get("cpu MHz")?.parse::<f64>().ok().map(|mhz| mhz.round() as u64);
    base_khz.map(|khz| khz / 1000).or_else(present)
}

/// Each driver has its own file for it.
fn turbo() -> Option<bool> {
    let is_off = read_number::<u8>("/sys/devices/system/cpu/intel_pstate/no_turbo");
    let is_on = || read_number::<u8>("/sys/devices/system/cpu/cpufreq/boost");
    is_off.map(|off| off == 0).or_else(|| is_on().map(|on| on == 1))
}

/// Returns the enabled idle states in their order, e.g. `POLL 0, C1 2`; `None` without any.
fn idle_states(folder: impl AsRef<Path>) -> Option<String> {
    let state = |number: usize| {
        let file = |name: &str| read(folder.as_ref().join(format!("state{number}")).join(name));
        let name = file("name")?;
        let is_disabled = file("disable").is_some_and(|disable| disable != "0");
        Some((!is_disabled).then(|| format!("{name} {}", file("latency").unwrap_or_else(|| "?".to_owned()))))
    };
    let states: Vec<String> = (0..IDLE_STATES_MAX).map_while(state).flatten().collect();
    (!states.is_empty()).then(|| states.join(", "))
}

/// `CPUIDLE_STATE_MAX` of the kernel.
const IDLE_STATES_MAX: usize = 10;

/// Detects a container.
fn container() -> Option<String> {
    let marks = [("/.dockerenv", "docker"), ("/run/.containerenv", "podman")];
    let marked = marks.iter().find(|(file, _)| Path::new(file).exists()).map(|(_, name)| (*name).to_owned());
    read("/run/systemd/container").or(marked)
}

/// The settings that determine how many datagrams may wait, where, and for how long.
const SYSCTLS: [&str; 14] = [
    "net.core.busy_poll",
    "net.core.busy_read",
    "net.core.default_qdisc",
    "net.core.netdev_budget",
    "net.core.netdev_budget_usecs",
    "net.core.netdev_max_backlog",
    "net.core.optmem_max",
    "net.core.rps_sock_flow_entries",
    "net.ipv4.ipfrag_high_thresh",
    "net.ipv4.ipfrag_time",
    "net.ipv4.udp_mem",
    "net.ipv4.udp_rmem_min",
    "kernel.timer_migration",
    "vm.swappiness",
];

fn sysctls() -> BTreeMap<String, String> {
    let value = |name: &str| read(format!("/proc/sys/{}", name.replace('.', "/")));
    let known = SYSCTLS.iter().filter_map(|name| Some(((*name).to_owned(), value(name)?.replace('\t', " "))));
    known.collect()
}

/// Returns the number of processors in a list such as `0-3,8`; `None` for anything else.
fn parse_cpu_list(list: &str) -> Option<u32> {
    list.trim().split(',').try_fold(0_u32, |sum, range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        sum.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

/// Returns the trimmed content of a file; `None` if it is unreadable or empty.
pub(crate) fn read(path: impl AsRef<Path>) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

pub(crate) fn read_number<T: std::str::FromStr>(path: impl AsRef<Path>) -> Option<T> {
    read(path)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_are_ranges_and_single_numbers() {
        let check = |list: &str, expected: Option<u32>| assert_eq!(parse_cpu_list(list), expected, "{list}");
        check("0", Some(1));
        check("0-1\n", Some(2));
        check("0-3,8,10-11", Some(7));
        check("", None);
        check("3-1", None);
        check("a-b", None);
        check("0-4294967295", None);
    }

    #[test]
    fn idle_states_that_are_enabled_have_their_latencies() {
        let folder = tempfile::tempdir().unwrap();
        for (number, name, latency, disable) in
            [(0, "POLL", "0", "0"), (1, "C1", "2", "0"), (2, "C6", "85", "1")]
        {
            let state = folder.path().join(format!("state{number}"));
            fs::create_dir(&state).unwrap();
            for (file, text) in [("name", name), ("latency", latency), ("disable", disable)] {
                fs::write(state.join(file), format!("{text}\n")).unwrap();
            }
        }
        assert_eq!(idle_states(folder.path()).as_deref(), Some("POLL 0, C1 2"));
        assert_eq!(idle_states("/nowhere"), None);
    }

    #[test]
    fn this_host_is_described() {
        let environment = environment(Some("lo"));
        assert!(environment.logical_cpus >= 1);
        assert!((1..=environment.logical_cpus).contains(&environment.allowed_cpus));
        assert!(environment.memory_kib > 0);
        assert!(!environment.kernel.is_empty());
        assert!(environment.date.ends_with('Z'), "{}", environment.date);
        assert_eq!(environment.date.len(), "2026-11-21T20:00:00Z".len());
        // A setting of every network namespace.
        assert!(environment.sysctls.contains_key("net.ipv4.udp_rmem_min"), "{environment:?}");
        assert_eq!(environment.interface.unwrap().name, "lo");
    }

    #[test]
    fn a_saving_governor_and_a_single_processor_are_doubts() {
        let quiet = Environment {
            allowed_cpus: 2,
            cpu_governor: Some("performance".into()),
            ..Environment::default()
        };
        assert_eq!(host_warnings(&quiet), []);
        let loud =
            Environment { allowed_cpus: 1, cpu_governor: Some("powersave".into()), ..Environment::default() };
        assert_eq!(
            host_warnings(&loud),
            [Warning::OnlyOneCore, Warning::Governor { governor: "powersave".into() }]
        );
    }
}
