//! Checks of processors, memory and clocks.

use weir_results::WakeUp;

use super::tuning::Tuning;
use super::{Facts, Finding, Purpose};

/// Load of other programs from which it affects a measurement, in percent of all processors.
const BUSY_PERCENT: f64 = 10.0;
/// The same for time taken by the hypervisor.
const STEAL_PERCENT: f64 = 1.0;
/// Minimum available memory, in percent.
const MEMORY_LEFT_PERCENT: f64 = 5.0;

pub(super) fn check(facts: &Facts, findings: &mut Vec<Finding>) {
    for check in [build, cores, quota, load, frequency, idle, clock, memory, virtualisation] {
        check(facts, findings);
    }
}

fn build(facts: &Facts, findings: &mut Vec<Finding>) {
    if !facts.is_optimised {
        let text = "this build of Weir is not optimised: its figures are its own";
        findings.push(Finding::new("debug-build", Purpose::Both, text).see("cargo build --release"));
    }
}

fn cores(facts: &Facts, findings: &mut Vec<Finding>) {
    let environment = &facts.environment;
    if environment.allowed_cpus == 1 {
        let text =
            "this process may use only one processor, so both ends take turns and waiting always sleeps";
        let finding = Finding::new("one-core", Purpose::Both, text);
        findings.push(match environment.logical_cpus {
            0 | 1 => finding,
            cpus => finding.see(format!("taskset -cp 0-{} $$", cpus - 1)),
        });
    }
    if environment.smt == Some(true) {
        let text =
            "two logical processors share a core: ends that are placed on such a pair slow each other down";
        // This takes processors offline, and with them the interrupts and programs pinned there.
        let command = "echo off > /sys/devices/system/cpu/smt/control";
        findings.push(Finding::new("smt", Purpose::Latency, text).see(command).note());
    }
    if facts.has_irqbalance {
        let text = "irqbalance moves interrupts from processor to processor while you measure";
        findings.push(Finding::new("irqbalance", Purpose::Latency, text).fixed_by(Tuning::NoIrqbalance));
    }
}

fn quota(facts: &Facts, findings: &mut Vec<Finding>) {
    let environment = &facts.environment;
    if let Some(percent) = environment.cpu_quota_percent
        && percent < 100 * u64::from(environment.allowed_cpus.max(1))
    {
        let cpus = percent as f64 / 100.0;
        let text = format!(
            "the control group of this process has a quota of {cpus} processors: a process that uses it up is stopped, usually for \
             tens of milliseconds"
        );
        let finding = Finding::new("cpu-quota", Purpose::Both, text);
        findings.push(match environment.container.as_deref() {
            Some(container @ ("docker" | "podman")) => finding.see(format!(
                "{container} update --cpus=$(nproc) CONTAINER   # on the host of the container"
            )),
            _ => finding.see("systemctl set-property --runtime UNIT CPUQuota="),
        });
    }
    if latest(facts, "cgroup.throttled_percent") > 0.0 {
        let text = "the control group of this process was throttled during the check";
        findings.push(Finding::new("throttled", Purpose::Both, text).see("cat /sys/fs/cgroup/cpu.stat"));
    }
}

fn load(facts: &Facts, findings: &mut Vec<Finding>) {
    let idle = facts.watched.values("cpu.idle_percent").last();
    let steal = latest(facts, "cpu.steal_percent");
    if let Some(busy) = idle.map(|idle| 100.0 - idle - steal).filter(|busy| *busy > BUSY_PERCENT) {
        let text = format!("other programs use {busy:.0} % of the processors");
        let show = "ps -eo pid,pcpu,comm --sort=-pcpu | head";
        findings.push(Finding::new("busy", Purpose::Both, text).see(show));
    }
    if steal > STEAL_PERCENT {
        let text = format!("the hypervisor took {steal:.0} % of the processors for others");
        findings.push(Finding::new("steal", Purpose::Both, text));
    }
}

fn frequency(facts: &Facts, findings: &mut Vec<Finding>) {
    let governor = facts.environment.cpu_governor.as_deref();
    if let Some(governor) = governor.filter(|governor| *governor != "performance") {
        let text = format!("the frequency governor is `{governor}`: a processor that was idle starts slowly");
        findings.push(Finding::new("governor", Purpose::Both, text).fixed_by(Tuning::PerformanceGovernor));
    }
    if facts.environment.turbo == Some(true) {
        let text =
            "processors run above their nominal frequency for as long as they stay cool: repeats differ";
        let command = "if [ -e /sys/devices/system/cpu/intel_pstate/no_turbo ]; \
                    then echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo; \
                    else echo 0 > /sys/devices/system/cpu/cpufreq/boost; fi";
        findings.push(Finding::new("turbo", Purpose::Both, text).see(command).note());
    }
}

fn idle(facts: &Facts, findings: &mut Vec<Finding>) {
    let Some(driver) = &facts.environment.idle_driver else { return };
    let wake_ups = &facts.environment.wake_ups;
    if let Some(slowest) = wake_ups.iter().filter(|it| it.is_slowed()).max_by_key(|it| it.idle_ns) {
        let us = |ns: u64| ns as f64 / 1e3;
        let text = format!(
            "idle processors enter sleep states ({driver}): after {} us of sleep, waking up took {:.1} us instead of \
             {:.1} us, \
             and an engine that sleeps less than its baseline can beat it; weir bench --keep-awake=both shows both",
            slowest.slept_us,
            us(slowest.idle_ns),
            us(slowest.awake_ns)
        );
        findings.push(Finding::new("idle-states", Purpose::Latency, text).fixed_by(Tuning::NoIdleStates));
        return;
    }
    if !wake_ups.is_empty() {
        let text = format!(
            "idle processors enter sleep states ({driver}), but woke up as fast as those kept awake: {}",
            WakeUp::describe(wake_ups)
        );
        findings.push(Finding::new("idle-states", Purpose::Latency, text).note());
        return;
    }
    let text = format!(
        "idle processors enter sleep states ({driver}) and take up to hundreds of microseconds to wake up; weir bench \
         --keep-awake prevents this"
    );
    findings.push(Finding::new("idle-states", Purpose::Latency, text).fixed_by(Tuning::NoIdleStates));
}

fn clock(facts: &Facts, findings: &mut Vec<Finding>) {
    let good = ["tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"];
    let source = facts.environment.clocksource.as_deref();
    let Some(source) = source.filter(|source| !good.contains(source)) else { return };
    let text = format!("reading the clock takes a system call or more with the clock source `{source}`");
    let finding = Finding::new("clock-source", Purpose::Both, text);
    let has_tsc =
        facts.environment.clocksources.as_deref().is_some_and(|all| all.split(' ').any(|name| name == "tsc"));
    // Advice only: the kernel may have had a reason, such as counters that drift apart.
    let command = "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource";
    findings.push(if has_tsc { finding.see(command) } else { finding });
}

fn memory(facts: &Facts, findings: &mut Vec<Finding>) {
    let used = facts.watched.values("memory.used_percent").last();
    if let Some(used) = used.filter(|used| *used > 100.0 - MEMORY_LEFT_PERCENT) {
        let text = format!("{used:.0} % of the memory is in use: the measured programs may be paged out");
        let show = "ps -eo pid,rss,comm --sort=-rss | head";
        findings.push(Finding::new("memory", Purpose::Both, text).see(show));
    }
    if latest(facts, "swapping.in_pages") + latest(facts, "swapping.out_pages") > 0.0 {
        // Disabling swap is not offered: if memory is short, the kernel then kills programs.
        let text = "the host swaps: a page read from disk takes milliseconds; end programs or add memory";
        let show = "ps -eo pid,rss,comm --sort=-rss | head";
        findings.push(Finding::new("swapping", Purpose::Both, text).see(show));
    }
}

fn virtualisation(facts: &Facts, findings: &mut Vec<Finding>) {
    if let Some(hypervisor) = &facts.environment.virtualised {
        let text = format!(
            "this is a virtual machine ({hypervisor}): figures include the effects of its devices and neighbours"
        );
        findings.push(Finding::new("virtual-machine", Purpose::Both, text).note());
    }
    if let Some(container) = &facts.environment.container {
        let text = format!(
            "this is a container ({container}): its network may pass a bridge and address translation"
        );
        findings.push(Finding::new("container", Purpose::Both, text).note());
    }
}

fn latest(facts: &Facts, name: &str) -> f64 {
    facts.watched.values(name).last().unwrap_or(0.0)
}
