//! The kernel's counters of the host and this process.
//!
//! The difference of two readings is what happened in between. Network devices and UDP are those of
//! this thread's network namespace, the rest covers the whole host.

use weir_results::ProcessFigures;

use crate::cgroup::Throttling;
use crate::counters::{Counters, difference};
use crate::cpu::CpuTimes;
use crate::devices::DeviceCounters;
use crate::memory::{Memory, Paging, Pressure, Swapping};
use crate::udp_counters::UdpCounters;

/// Counters since the system (the process, the device) started. `None`: not available on this host.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct HostCounters {
    /// All processors combined.
    pub(crate) all_cpus: CpuTimes,
    /// Each processor that is online, with its number.
    pub(crate) cpus: Vec<(u32, CpuTimes)>,
    /// Last measured frequencies of processors in MHz; empty if not available.
    pub(crate) frequencies_mhz: Vec<(u32, f64)>,
    /// Interrupts served.
    pub(crate) interrupts: u64,
    /// Context switches.
    pub(crate) context_switches: u64,
    /// Memory now.
    pub(crate) memory: Option<Memory>,
    /// Paging.
    pub(crate) paging: Option<Paging>,
    /// Swapping.
    pub(crate) swapping: Option<Swapping>,
    /// Time waiting for each of [`RESOURCES`].
    pub(crate) pressure: [Option<Pressure>; 3],
    /// Throttling by the quota of this process's control group.
    pub(crate) throttling: Option<Throttling>,
    /// Network devices, `lo` included, in the kernel's order.
    pub(crate) devices: Vec<DeviceCounters>,
    /// UDP over IPv4 and IPv6.
    pub(crate) udp: Option<UdpCounters>,
    /// Packets dropped because a processor's backlog was full.
    pub(crate) backlog_drops: Option<u64>,
    /// This process.
    pub(crate) process: ProcessFigures,
    /// Resident memory of this process now, KiB.
    pub(crate) process_memory_kib: Option<u64>,
}

/// What processes wait for: processors, memory and block devices.
pub(crate) const RESOURCES: [&str; 3] = ["cpu", "memory", "io"];

impl HostCounters {
    /// Returns the difference to `earlier`; memory and frequencies are those of `self`. A new
    /// device counts from zero.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let cpu_before = |cpu: u32| earlier.cpus.iter().find(|(number, _)| *number == cpu);
        // The activity of a new processor is unknown.
        let cpus = self.cpus.iter().map(|(cpu, now)| {
            (*cpu, cpu_before(*cpu).map_or_else(CpuTimes::default, |(_, before)| now.since(before)))
        });
        let devices = self.devices.iter().map(|now| {
            let before = earlier.devices.iter().find(|before| before.name == now.name);
            before.map_or_else(|| now.clone(), |before| now.since(before))
        });
        let backlog_drops = self.backlog_drops.zip(earlier.backlog_drops);
        Self {
            all_cpus: self.all_cpus.since(&earlier.all_cpus),
            cpus: cpus.collect(),
            frequencies_mhz: self.frequencies_mhz.clone(),
            interrupts: self.interrupts.saturating_sub(earlier.interrupts),
            context_switches: self.context_switches.saturating_sub(earlier.context_switches),
            memory: self.memory,
            paging: difference(self.paging, earlier.paging),
            swapping: difference(self.swapping, earlier.swapping),
            pressure: std::array::from_fn(|index| difference(self.pressure[index], earlier.pressure[index])),
            throttling: difference(self.throttling, earlier.throttling),
            devices: devices.collect(),
            udp: difference(self.udp, earlier.udp),
            backlog_drops: backlog_drops.map(|(now, before)| now.saturating_sub(before)),
            process: self.process.since(&earlier.process),
            process_memory_kib: self.process_memory_kib,
        }
    }

    /// Returns the figures of a difference ([`HostCounters::since`]) over `seconds`, named as in
    /// [`weir_results::Telemetry`].
    pub(crate) fn figures(&self, seconds: f64) -> Vec<(String, f64)> {
        let mut row = Vec::with_capacity(64 + 8 * self.cpus.len());
        self.cpu_figures(&mut row);
        self.memory_figures(&mut row, seconds);
        self.network_figures(&mut row);
        let percent = |of_seconds: f64| if seconds > 0.0 { of_seconds * 100.0 / seconds } else { 0.0 };
        let process = &self.process;
        row.extend(named([
            ("process.user_percent", percent(process.cpu_user_s)),
            ("process.system_percent", percent(process.cpu_system_s)),
            ("process.voluntary_switches", process.context_switches_voluntary as f64),
            ("process.involuntary_switches", process.context_switches_involuntary as f64),
        ]));
        row.extend(self.process_memory_kib.map(|kib| ("process.rss_kib".to_owned(), kib as f64)));
        if let Some(throttling) = self.throttling {
            row.extend(named([
                ("cgroup.throttled_percent", percent(throttling.throttled_us as f64 / 1e6)),
                ("cgroup.throttled_periods", throttling.periods as f64),
            ]));
        }
        row
    }

    fn cpu_figures(&self, row: &mut Vec<(String, f64)>) {
        let mut times = |name: &str, times: &CpuTimes| {
            row.extend(times.shares().map(|(kind, percent)| (format!("{name}.{kind}_percent"), percent)));
        };
        times("cpu", &self.all_cpus);
        for (cpu, of_cpu) in &self.cpus {
            times(&format!("cpu{cpu}"), of_cpu);
        }
        row.extend(self.frequencies_mhz.iter().map(|(cpu, mhz)| (format!("cpu{cpu}.frequency_mhz"), *mhz)));
        row.extend(named([
            ("interrupts", self.interrupts as f64),
            ("context_switches", self.context_switches as f64),
        ]));
    }

    fn memory_figures(&self, row: &mut Vec<(String, f64)>, seconds: f64) {
        if let Some(memory) = self.memory {
            row.extend(named([
                ("memory.used_percent", memory.used_percent()),
                ("memory.available_kib", memory.available_kib as f64),
            ]));
        }
        row.extend(counted("paging", self.paging));
        row.extend(counted("swapping", self.swapping));
        for (name, pressure) in RESOURCES.iter().zip(self.pressure) {
            let Some(pressure) = pressure else { continue };
            let percent = |us: u64| if seconds > 0.0 { us as f64 / seconds / 1e4 } else { 0.0 };
            row.push((format!("pressure.{name}_some_percent"), percent(pressure.some_us)));
            row.push((format!("pressure.{name}_full_percent"), percent(pressure.full_us)));
        }
    }

    fn network_figures(&self, row: &mut Vec<(String, f64)>) {
        for device in &self.devices {
            let name = &device.name;
            row.extend(counted(name, Some(device.traffic)));
            let interrupts = device.cpu_interrupts.iter();
            row.extend(interrupts.map(|(cpu, count)| (format!("{name}.cpu{cpu}_interrupts"), *count as f64)));
        }
        row.extend(counted("udp", self.udp));
        row.extend(self.backlog_drops.map(|count| ("backlog.drops".to_owned(), count as f64)));
    }
}

fn named<const N: usize>(figures: [(&str, f64); N]) -> [(String, f64); N] {
    figures.map(|(name, value)| (name.to_owned(), value))
}

fn counted<C: Counters>(group: &str, counters: Option<C>) -> impl Iterator<Item = (String, f64)> {
    let counts = counters.into_iter().flat_map(C::named);
    counts.map(move |(name, count)| (format!("{group}.{name}"), count as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_reader::HostReader;

    #[test]
    fn this_host_counts_on() {
        let earlier = HostReader::new().read();
        let difference = HostReader::new().read().since(&earlier);
        assert!(!difference.cpus.is_empty());
        assert_eq!(difference.cpus.len(), earlier.cpus.len());
        assert!(earlier.memory.is_some() && earlier.paging.is_some() && earlier.udp.is_some());
        assert!(earlier.devices.iter().any(|device| device.name == "lo"));
        assert!(earlier.process_memory_kib.unwrap() > 0);
    }

    #[test]
    fn what_is_missing_now_or_then_has_no_figure() {
        let row = HostCounters::default().since(&HostCounters::default()).figures(0.1);
        let names: Vec<&str> = row.iter().map(|(name, _)| name.as_str()).collect();
        assert!(names.contains(&"cpu.softirq_percent") && names.contains(&"process.user_percent"));
        for prefix in ["memory.", "paging.", "pressure.", "cgroup.", "udp.", "backlog."] {
            assert!(!names.iter().any(|name| name.starts_with(prefix)), "{prefix}: {names:?}");
        }
        let full = HostCounters { paging: Some(Paging::default()), ..HostCounters::default() };
        assert_eq!(full.since(&HostCounters::default()).paging, None);
    }

    #[test]
    fn shares_are_of_the_rows_own_time() {
        let mut difference = HostCounters {
            pressure: [Some(Pressure { some_us: 50_000, full_us: 0 }), None, None],
            throttling: Some(Throttling { periods: 1, throttled_us: 25_000 }),
            ..HostCounters::default()
        };
        difference.process.cpu_user_s = 0.1;
        let row = difference.figures(0.1);
        let value = |name: &str| row.iter().find(|(known, _)| known == name).unwrap().1;
        assert!((value("process.user_percent") - 100.0).abs() < 1e-9);
        assert!((value("pressure.cpu_some_percent") - 50.0).abs() < 1e-9);
        assert!((value("cgroup.throttled_percent") - 25.0).abs() < 1e-9);
    }
}
