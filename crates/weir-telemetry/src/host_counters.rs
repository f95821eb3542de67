//! The kernel's counters of the host and this process.
//!
//! The difference of two readings is what happened in between. Network devices and UDP are those of
//! this thread's network namespace, the rest covers the whole host.

use weir_results::ProcessFigures;

use crate::cgroup::Throttling;
use crate::cpu::CpuTimes;
use crate::devices::DeviceCounters;
use crate::host_reader::HostReader;
use crate::memory::{Memory, Paging, Pressure};
use crate::udp_counters::UdpCounters;

/// Counters since the system (the process, the device) started. `None`: not available on this host.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostCounters {
    /// All processors combined.
    pub all_cpus: CpuTimes,
    /// Each processor that is online, with its number.
    pub cpus: Vec<(u32, CpuTimes)>,
    /// Last measured frequencies of processors in MHz; empty if not available.
    pub frequencies_mhz: Vec<(u32, f64)>,
    /// Interrupts served.
    pub interrupts: u64,
    /// Context switches.
    pub context_switches: u64,
    /// Memory now.
    pub memory: Option<Memory>,
    /// Paging.
    pub paging: Option<Paging>,
    /// Time waiting for a processor.
    pub cpu_pressure: Option<Pressure>,
    /// Time waiting for memory.
    pub memory_pressure: Option<Pressure>,
    /// Time waiting for block devices.
    pub io_pressure: Option<Pressure>,
    /// Throttling by the quota of this process's control group.
    pub throttling: Option<Throttling>,
    /// Network devices, `lo` included, in the kernel's order.
    pub devices: Vec<DeviceCounters>,
    /// UDP over IPv4 and IPv6.
    pub udp: Option<UdpCounters>,
    /// Packets dropped because a processor's backlog was full.
    pub backlog_drops: Option<u64>,
    /// This process.
    pub process: ProcessFigures,
    /// Resident memory of this process now, KiB.
    pub process_memory_kib: Option<u64>,
}

impl HostCounters {
    /// Reads the counters once. To read repeatedly, keep a [`HostReader`].
    #[must_use]
    pub fn read() -> Self {
        HostReader::new().read()
    }

    /// Returns the difference to `earlier`; memory and frequencies are those of `self`. A new
    /// device counts from zero.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let cpu_before = |cpu: u32| earlier.cpus.iter().find(|(number, _)| *number == cpu);
        // The activity of a new processor is unknown.
        let cpus = self.cpus.iter().map(|(cpu, now)| {
            (*cpu, cpu_before(*cpu).map_or_else(CpuTimes::default, |(_, before)| now.since(before)))
        });
        let devices = self.devices.iter().map(|now| {
            let before = earlier.devices.iter().find(|before| before.name == now.name);
            before.map_or_else(|| now.clone(), |before| now.since(before))
        });
        let pressure = |now: Option<Pressure>, before: Option<Pressure>| {
            now.zip(before).map(|(now, before)| Pressure {
                some_us: now.some_us.saturating_sub(before.some_us),
                full_us: now.full_us.saturating_sub(before.full_us),
            })
        };
        Self {
            all_cpus: self.all_cpus.since(&earlier.all_cpus),
            cpus: cpus.collect(),
            frequencies_mhz: self.frequencies_mhz.clone(),
            interrupts: self.interrupts.saturating_sub(earlier.interrupts),
            context_switches: self.context_switches.saturating_sub(earlier.context_switches),
            memory: self.memory,
            paging: self.paging.zip(earlier.paging).map(|(now, before)| now.since(&before)),
            cpu_pressure: pressure(self.cpu_pressure, earlier.cpu_pressure),
            memory_pressure: pressure(self.memory_pressure, earlier.memory_pressure),
            io_pressure: pressure(self.io_pressure, earlier.io_pressure),
            throttling: self.throttling.zip(earlier.throttling).map(|(now, before)| Throttling {
                periods: now.periods.saturating_sub(before.periods),
                throttled_us: now.throttled_us.saturating_sub(before.throttled_us),
            }),
            devices: devices.collect(),
            udp: self.udp.zip(earlier.udp).map(|(now, before)| now.since(&before)),
            backlog_drops: self
                .backlog_drops
                .zip(earlier.backlog_drops)
                .map(|(now, before)| now.saturating_sub(before)),
            process: self.process.since(&earlier.process),
            process_memory_kib: self.process_memory_kib,
        }
    }

    /// Returns the figures of a difference ([`HostCounters::since`]) over `seconds`, named as in
    /// [`weir_results::Telemetry`].
    #[must_use]
    pub fn figures(&self, seconds: f64) -> Vec<(String, f64)> {
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
        if let Some(paging) = self.paging {
            row.extend(named([
                ("paging.in_kib", paging.in_kib as f64),
                ("paging.out_kib", paging.out_kib as f64),
                ("paging.faults", paging.faults as f64),
                ("paging.major_faults", paging.major_faults as f64),
                ("swapping.in_pages", paging.swapped_in as f64),
                ("swapping.out_pages", paging.swapped_out as f64),
            ]));
        }
        let pressures =
            [("cpu", self.cpu_pressure), ("memory", self.memory_pressure), ("io", self.io_pressure)];
        for (name, pressure) in pressures {
            let Some(pressure) = pressure else { continue };
            let percent = |us: u64| if seconds > 0.0 { us as f64 / seconds / 1e4 } else { 0.0 };
            row.push((format!("pressure.{name}_some_percent"), percent(pressure.some_us)));
            row.push((format!("pressure.{name}_full_percent"), percent(pressure.full_us)));
        }
    }

    fn network_figures(&self, row: &mut Vec<(String, f64)>) {
        for device in &self.devices {
            let counts = [
                ("recv_packets", device.recv_packets),
                ("recv_bytes", device.recv_bytes),
                ("recv_drops", device.recv_drops),
                ("recv_errors", device.recv_errors),
                ("sent_packets", device.sent_packets),
                ("sent_bytes", device.sent_bytes),
                ("sent_drops", device.sent_drops),
                ("sent_errors", device.sent_errors),
            ];
            let name = &device.name;
            row.extend(counts.map(|(kind, count)| (format!("{name}.{kind}"), count as f64)));
            let interrupts = device.cpu_interrupts.iter();
            row.extend(interrupts.map(|(cpu, count)| (format!("{name}.cpu{cpu}_interrupts"), *count as f64)));
        }
        if let Some(udp) = self.udp {
            row.extend(named([
                ("udp.in_datagrams", udp.in_datagrams as f64),
                ("udp.out_datagrams", udp.out_datagrams as f64),
                ("udp.in_errors", udp.in_errors as f64),
                ("udp.no_ports", udp.no_ports as f64),
                ("udp.receive_buffer_errors", udp.receive_buffer_errors as f64),
                ("udp.send_buffer_errors", udp.send_buffer_errors as f64),
            ]));
        }
        row.extend(self.backlog_drops.map(|count| ("backlog.drops".to_owned(), count as f64)));
    }
}

fn named<const N: usize>(figures: [(&str, f64); N]) -> [(String, f64); N] {
    figures.map(|(name, value)| (name.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_counts_on() {
        let earlier = HostCounters::read();
        let difference = HostCounters::read().since(&earlier);
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
            cpu_pressure: Some(Pressure { some_us: 50_000, full_us: 0 }),
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
