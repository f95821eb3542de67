//! What the kernel counted about the host: processors, memory, paging, interrupts, network devices.
//!
//! Read twice, the difference is what the host did in between. Network devices are those of this
//! thread's network namespace, the rest is the whole host's.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Counters of the host since it started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostCounters {
    /// All processors together.
    pub all_cpus: CpuTimes,
    /// Each processor that is online, in the kernel's order.
    pub cpus: Vec<CpuTimes>,
    /// Interrupts served.
    pub interrupts: u64,
    /// Context switches.
    pub context_switches: u64,
    /// KiB read from and written to block devices.
    pub paged_in_out_kib: u64,
    /// Pages swapped in and out.
    pub swapped_in_out: u64,
    /// Memory in use now: what is not available for new processes, in percent.
    pub memory_used_percent: u64,
    /// Network devices, `lo` included.
    pub devices: Vec<DeviceCounters>,
}

/// Where a processor's time went, in ticks of the kernel (mostly 10 ms).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// User mode, niced included.
    pub user: u64,
    /// The kernel, interrupts included.
    pub system: u64,
    /// Nothing to do, or waiting for a block device.
    pub idle: u64,
    /// Taken by the hypervisor for others.
    pub steal: u64,
}

/// Counters of a network device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Its name.
    pub name: String,
    /// Packets received.
    pub recv_packets: u64,
    /// Octets received.
    pub recv_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Octets sent.
    pub sent_bytes: u64,
    /// Its interrupts by processor, in the order of [`HostCounters::cpus`]; zeros for a device that has none.
    pub cpu_interrupts: Vec<u64>,
}

impl CpuTimes {
    /// What was counted between `earlier` and `self`.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
            idle: self.idle.saturating_sub(earlier.idle),
            steal: self.steal.saturating_sub(earlier.steal),
        }
    }

    /// User, system and idle time in percent of all time; idle when no time has passed.
    #[must_use]
    pub fn percent(&self) -> (f64, f64, f64) {
        let all = self.user + self.system + self.idle + self.steal;
        if all == 0 {
            return (0.0, 0.0, 100.0);
        }
        let percent = |part: u64| part as f64 * 100.0 / all as f64;
        (percent(self.user), percent(self.system), percent(self.idle))
    }
}

impl HostCounters {
    /// The counters now. What can't be read is zero or missing.
    #[must_use]
    pub fn read() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let mut counters = Self::default();
        counters.take_stat(&read("/proc/stat"));
        counters.take_vmstat(&read("/proc/vmstat"));
        counters.memory_used_percent = parse_memory_used(&read("/proc/meminfo"));
        counters.devices = parse_devices(&read("/proc/net/dev"));
        let interrupts = read("/proc/interrupts");
        for device in &mut counters.devices {
            let numbers = device_interrupt_numbers(&device.name);
            device.cpu_interrupts =
                parse_interrupts(&interrupts, &device.name, &numbers, counters.cpus.len());
        }
        counters
    }

    /// What was counted between `earlier` and `self`; memory is as it is in `self`. A device that has
    /// come meanwhile counts from zero.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let cpus = self.cpus.iter().enumerate();
        let cpus = cpus.map(|(cpu, now)| now.since(earlier.cpus.get(cpu).unwrap_or(now))).collect();
        let devices = self.devices.iter().map(|now| {
            let before = earlier.devices.iter().find(|before| before.name == now.name);
            before.map_or_else(|| now.clone(), |before| now.since(before))
        });
        Self {
            all_cpus: self.all_cpus.since(&earlier.all_cpus),
            cpus,
            interrupts: self.interrupts.saturating_sub(earlier.interrupts),
            context_switches: self.context_switches.saturating_sub(earlier.context_switches),
            paged_in_out_kib: self.paged_in_out_kib.saturating_sub(earlier.paged_in_out_kib),
            swapped_in_out: self.swapped_in_out.saturating_sub(earlier.swapped_in_out),
            memory_used_percent: self.memory_used_percent,
            devices: devices.collect(),
        }
    }

    /// Takes over what `/proc/stat` says.
    fn take_stat(&mut self, text: &str) {
        for line in text.lines() {
            let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
            match name {
                "cpu" => self.all_cpus = parse_cpu(rest),
                "intr" => self.interrupts = first_number(rest),
                "ctxt" => self.context_switches = first_number(rest),
                _ if name.starts_with("cpu") => self.cpus.push(parse_cpu(rest)),
                _ => {}
            }
        }
    }

    /// Takes over what `/proc/vmstat` says.
    fn take_vmstat(&mut self, text: &str) {
        for (name, value) in text.lines().filter_map(|line| line.split_once(' ')) {
            match name {
                "pgpgin" | "pgpgout" => self.paged_in_out_kib += first_number(value),
                "pswpin" | "pswpout" => self.swapped_in_out += first_number(value),
                _ => {}
            }
        }
    }
}

impl DeviceCounters {
    fn since(&self, earlier: &Self) -> Self {
        let interrupts = self.cpu_interrupts.iter().enumerate().map(|(cpu, now)| {
            now.saturating_sub(earlier.cpu_interrupts.get(cpu).copied().unwrap_or_default())
        });
        Self {
            name: self.name.clone(),
            recv_packets: self.recv_packets.saturating_sub(earlier.recv_packets),
            recv_bytes: self.recv_bytes.saturating_sub(earlier.recv_bytes),
            sent_packets: self.sent_packets.saturating_sub(earlier.sent_packets),
            sent_bytes: self.sent_bytes.saturating_sub(earlier.sent_bytes),
            cpu_interrupts: interrupts.collect(),
        }
    }
}

/// `user nice system idle iowait irq softirq steal ...` of `/proc/stat`, proc_stat(5).
fn parse_cpu(text: &str) -> CpuTimes {
    let mut times = text.split_whitespace().map(|time| time.parse::<u64>().unwrap_or(0));
    let mut next = || times.next().unwrap_or(0);
    let (user, nice, system, idle, iowait, irq, softirq, steal) =
        (next(), next(), next(), next(), next(), next(), next(), next());
    CpuTimes { user: user + nice, system: system + irq + softirq, idle: idle + iowait, steal }
}

fn first_number(text: &str) -> u64 {
    text.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// What part of memory is not available, in percent, by `/proc/meminfo`.
fn parse_memory_used(text: &str) -> u64 {
    let value = |name: &str| {
        text.lines().find_map(|line| Some(first_number(line.strip_prefix(name)?.strip_prefix(':')?)))
    };
    match (value("MemTotal"), value("MemAvailable")) {
        (Some(total), Some(available)) if total > 0 => 100 - (available.min(total) * 100 / total),
        _ => 0,
    }
}

/// `name: bytes packets 6 more | bytes packets ...` of `/proc/net/dev`.
fn parse_devices(text: &str) -> Vec<DeviceCounters> {
    let mut devices = Vec::new();
    for (name, rest) in text.lines().filter_map(|line| line.split_once(':')) {
        let numbers: Vec<u64> = rest.split_whitespace().map_while(|number| number.parse().ok()).collect();
        if let [recv_bytes, recv_packets, _, _, _, _, _, _, sent_bytes, sent_packets, ..] = numbers[..] {
            let name = name.trim().to_owned();
            let cpu_interrupts = Vec::new();
            devices.push(DeviceCounters {
                name,
                recv_packets,
                recv_bytes,
                sent_packets,
                sent_bytes,
                cpu_interrupts,
            });
        }
    }
    devices
}

/// A device's interrupts by processor: the lines of `/proc/interrupts` with one of these numbers, or with
/// the device's name.
fn parse_interrupts(text: &str, device: &str, numbers: &BTreeSet<String>, cpus: usize) -> Vec<u64> {
    let mut sums = vec![0; cpus];
    // The heading names the processors; the columns of the others are counts.
    for (number, rest) in text.lines().skip(1).filter_map(|line| line.split_once(':')) {
        let named = rest.split(|c: char| c.is_whitespace() || c == ',').any(|word| {
            word.strip_prefix(device).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        });
        if !named && !numbers.contains(number.trim()) {
            continue;
        }
        for (sum, count) in sums.iter_mut().zip(rest.split_whitespace()) {
            *sum += count.parse::<u64>().unwrap_or(0);
        }
    }
    sums
}

/// The numbers of a device's message-signalled interrupts; those of a virtio device are its parent's.
fn device_interrupt_numbers(device: &str) -> BTreeSet<String> {
    let device = Path::new("/sys/class/net").join(device).join("device");
    [device.join("msi_irqs"), device.join("../msi_irqs")]
        .iter()
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "\
cpu  10 2 30 400 5 6 7 8 0 0
cpu0 5 1 15 200 2 3 3 4 0 0
cpu1 5 1 15 200 3 3 4 4 0 0
intr 12345 1 2 3
ctxt 678
btime 1
";
    const DEV: &str = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 100 10 0 0 0 0 0 0 100 10 0 0 0 0 0 0
  eth0:2000 20 0 0 0 0 0 0 3000 30 0 0 0 0 0 0
";
    const INTERRUPTS: &str = "\
           CPU0       CPU1
  8:          1          2   IO-APIC   8-edge      rtc0
 24:         10          0   PCI-MSI 1  eth0-rx-0
 25:          0         20   PCI-MSI 2  virtio0-input.0
 26:        100        100   PCI-MSI 3  eth01
LOC:       9999       9999   Local timer interrupts
";

    #[test]
    fn times_are_summed_by_kind() {
        let mut counters = HostCounters::default();
        counters.take_stat(STAT);
        assert_eq!(counters.all_cpus, CpuTimes { user: 12, system: 43, idle: 405, steal: 8 });
        assert_eq!(counters.cpus.len(), 2);
        assert_eq!((counters.interrupts, counters.context_switches), (12345, 678));
        let (user, system, idle) = CpuTimes { user: 1, system: 2, idle: 1, steal: 0 }.percent();
        assert!((user - 25.0).abs() < 1e-9 && (system - 50.0).abs() < 1e-9 && (idle - 25.0).abs() < 1e-9);
    }

    #[test]
    fn devices_have_counts_and_interrupts() {
        let devices = parse_devices(DEV);
        assert_eq!(devices.len(), 2);
        assert_eq!((devices[1].name.as_str(), devices[1].recv_packets), ("eth0", 20));
        assert_eq!((devices[1].sent_bytes, devices[1].sent_packets), (3000, 30));
        assert_eq!(parse_interrupts(INTERRUPTS, "eth0", &BTreeSet::new(), 2), [10, 0]);
        assert_eq!(parse_interrupts(INTERRUPTS, "eth0", &BTreeSet::from(["25".to_owned()]), 2), [10, 20]);
        assert_eq!(parse_interrupts(INTERRUPTS, "lo", &BTreeSet::new(), 2), [0, 0]);
    }

    #[test]
    fn memory_and_paging() {
        assert_eq!(parse_memory_used("MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: 250 kB\n"), 75);
        assert_eq!(parse_memory_used(""), 0);
        let mut counters = HostCounters::default();
        counters.take_vmstat("nr_free 1\npgpgin 3\npgpgout 4\npswpin 5\npswpout 6\n");
        assert_eq!((counters.paged_in_out_kib, counters.swapped_in_out), (7, 11));
    }

    #[test]
    fn this_host_counts_on() {
        let earlier = HostCounters::read();
        let difference = HostCounters::read().since(&earlier);
        assert!(!difference.cpus.is_empty());
        assert_eq!(difference.cpus.len(), earlier.cpus.len());
        assert!(earlier.devices.iter().all(|device| device.cpu_interrupts.len() == earlier.cpus.len()));
    }
}
