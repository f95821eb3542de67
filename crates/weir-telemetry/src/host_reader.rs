//! Reads the host's counters repeatedly at low cost.

use std::fs;

use crate::cgroup::Cgroup;
use crate::cpu::parse_stat;
use crate::devices::{DeviceInterrupts, parse_devices};
use crate::host_counters::{HostCounters, RESOURCES};
use crate::loss_watch::parse_backlog;
use crate::memory::{parse_memory, parse_paging, parse_pressure};
use crate::proc_file::ProcFile;
use crate::process::{parse_resident_kib, process_usage};
use crate::udp_counters::UdpCounters;

/// Keeps the kernel's files open. Network files are those of the creating thread's namespace.
///
/// What is missing here (no pressure in this kernel, no `/sys` in this container) is missing in
/// every reading and never an error.
#[derive(Debug)]
pub(crate) struct HostReader {
    stat: ProcFile,
    meminfo: ProcFile,
    vmstat: ProcFile,
    /// Pressure of each of [`RESOURCES`].
    pressure: [ProcFile; 3],
    cgroup: Cgroup,
    devices: ProcFile,
    /// By device name.
    interrupts: Vec<(String, DeviceInterrupts)>,
    snmp: ProcFile,
    snmp6: ProcFile,
    softnet: ProcFile,
    statm: ProcFile,
    frequencies: Vec<(u32, ProcFile)>,
    /// The last reading.
    frequencies_mhz: Vec<(u32, f64)>,
    /// Readings so far.
    count: u64,
}

/// Frequencies are read every 10th time: the kernel interrupts each processor's idle state for
/// them.
const FREQUENCIES_EVERY: u64 = 10;

impl HostReader {
    /// Opens the files.
    pub(crate) fn new() -> Self {
        let network = |name: &str| ProcFile::open(format!("/proc/thread-self/net/{name}"));
        Self {
            stat: ProcFile::open("/proc/stat"),
            meminfo: ProcFile::open("/proc/meminfo"),
            vmstat: ProcFile::open("/proc/vmstat"),
            pressure: RESOURCES.map(|name| ProcFile::open(format!("/proc/pressure/{name}"))),
            cgroup: Cgroup::find(),
            devices: network("dev"),
            interrupts: Vec::new(),
            snmp: network("snmp"),
            snmp6: network("snmp6"),
            softnet: network("softnet_stat"),
            statm: ProcFile::open("/proc/self/statm"),
            frequencies: frequency_files(),
            frequencies_mhz: Vec::new(),
            count: 0,
        }
    }

    /// Reads the counters.
    pub(crate) fn read(&mut self) -> HostCounters {
        let stat = self.stat.read().map(parse_stat).unwrap_or_default();
        let (paging, swapping) = self.vmstat.read().map(parse_paging).unzip();
        let snmp6 = self.snmp6.read().unwrap_or_default();
        let udp = self.snmp.read().and_then(|snmp| UdpCounters::parse(snmp, snmp6));
        let mut devices = self.devices.read().map(parse_devices).unwrap_or_default();
        for device in &mut devices {
            device.cpu_interrupts = self.interrupts_of(&device.name);
        }
        self.read_frequencies();
        HostCounters {
            all_cpus: stat.all_cpus,
            cpus: stat.cpus,
            frequencies_mhz: self.frequencies_mhz.clone(),
            interrupts: stat.interrupts,
            context_switches: stat.context_switches,
            memory: self.meminfo.read().and_then(parse_memory),
            paging,
            swapping,
            pressure: self.pressure.each_mut().map(|file| parse_pressure(file.read()?)),
            throttling: self.cgroup.read(),
            devices,
            udp,
            backlog_drops: self.softnet.read().and_then(parse_backlog),
            process: process_usage(),
            process_memory_kib: self.statm.read().and_then(parse_resident_kib),
        }
    }

    fn interrupts_of(&mut self, device: &str) -> Vec<(u32, u64)> {
        if let Some((_, interrupts)) = self.interrupts.iter_mut().find(|(name, _)| name == device) {
            return interrupts.read();
        }
        // Once for each new device.
        let text = fs::read_to_string("/proc/interrupts").unwrap_or_default();
        let mut interrupts = DeviceInterrupts::find(device, &text);
        let counts = interrupts.read();
        self.interrupts.push((device.to_owned(), interrupts));
        counts
    }

    fn read_frequencies(&mut self) {
        if self.count.is_multiple_of(FREQUENCIES_EVERY) {
            let read = |(cpu, file): &mut (u32, ProcFile)| {
                let khz: f64 = file.read()?.trim().parse().ok()?;
                Some((*cpu, khz / 1e3))
            };
            self.frequencies_mhz = self.frequencies.iter_mut().filter_map(read).collect();
        }
        self.count += 1;
    }
}

fn frequency_files() -> Vec<(u32, ProcFile)> {
    let folders = fs::read_dir("/sys/devices/system/cpu").into_iter().flatten().filter_map(Result::ok);
    let mut files: Vec<(u32, ProcFile)> = folders
        .filter_map(|entry| {
            let number = entry.file_name().to_str()?.strip_prefix("cpu")?.parse().ok()?;
            let file = ProcFile::open(entry.path().join("cpufreq/scaling_cur_freq"));
            file.exists().then_some((number, file))
        })
        .collect();
    files.sort_unstable_by_key(|(number, _)| *number);
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_again_counts_on() {
        let mut reader = HostReader::new();
        let first = reader.read();
        let second = reader.read();
        assert!(second.context_switches >= first.context_switches);
        assert_eq!(first.devices.len(), second.devices.len());
        assert!(second.since(&first).figures(0.1).len() > 30);
    }

    #[test]
    fn pages_are_kib() {
        assert_eq!(parse_resident_kib("100 25 3 4 5 6 7\n"), Some(25 * procfs::page_size() / 1024));
        assert_eq!(parse_resident_kib("100"), None);
    }
}
