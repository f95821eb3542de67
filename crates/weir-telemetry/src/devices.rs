//! Network devices: their traffic and their interrupts.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::counters::{Counters as _, counters};
use crate::proc_file::ProcFile;

counters! {
    /// Traffic of a network device since it was created.
    Traffic {
        /// Packets received.
        recv_packets,
        /// Bytes received.
        recv_bytes,
        /// Packets dropped after they were received, or missed because a buffer was full.
        recv_drops,
        /// Damaged packets.
        recv_errors,
        /// Packets sent.
        sent_packets,
        /// Bytes sent.
        sent_bytes,
        /// Packets dropped instead of sent, not including those of its queue.
        sent_drops,
        /// Packets that could not be sent.
        sent_errors,
    }
}

/// Counters of a network device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeviceCounters {
    /// Its name.
    pub(crate) name: String,
    /// Its traffic.
    pub(crate) traffic: Traffic,
    /// Its interrupts, with the number of the processor that served them; empty if it has none.
    pub(crate) cpu_interrupts: Vec<(u32, u64)>,
}

impl DeviceCounters {
    /// Returns the difference to `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let before = |cpu: u32| earlier.cpu_interrupts.iter().find(|(number, _)| *number == cpu);
        let interrupts = self
            .cpu_interrupts
            .iter()
            .map(|(cpu, now)| (*cpu, now.saturating_sub(before(*cpu).map_or(0, |(_, count)| *count))));
        Self {
            name: self.name.clone(),
            traffic: self.traffic.since(&earlier.traffic),
            cpu_interrupts: interrupts.collect(),
        }
    }
}

/// Parses `name: bytes packets errs drop fifo frame compressed multicast bytes packets errs drop
/// ...` of `/proc/net/dev`, in the kernel's order.
pub(crate) fn parse_devices(text: &str) -> Vec<DeviceCounters> {
    let of_line = |line: &str| {
        let (name, rest) = line.split_once(':')?;
        let numbers: Vec<u64> = rest.split_whitespace().map_while(|number| number.parse().ok()).collect();
        let mut traffic = Traffic::default();
        let (drop, fifo);
        [
            traffic.recv_bytes,
            traffic.recv_packets,
            traffic.recv_errors,
            drop,
            fifo,
            _,
            _,
            _,
            traffic.sent_bytes,
            traffic.sent_packets,
            traffic.sent_errors,
            traffic.sent_drops,
        ] = *numbers.first_chunk()?;
        // Drivers count a missed packet in either of the two, or in both.
        traffic.recv_drops = drop.max(fifo);
        Some(DeviceCounters { name: name.trim().to_owned(), traffic, cpu_interrupts: Vec::new() })
    };
    text.lines().filter_map(of_line).collect()
}

/// The interrupts of one device, by processor.
///
/// `/proc/interrupts` is read only once, for the numbers: on a host with many processors it is
/// long.
#[derive(Debug)]
pub(crate) struct DeviceInterrupts {
    /// For each of its interrupts: the counts of all processors.
    counts: Vec<ProcFile>,
}

impl DeviceInterrupts {
    /// Finds the interrupts of `device`; `interrupts` is the content of `/proc/interrupts`.
    pub(crate) fn find(device: &str, interrupts: &str) -> Self {
        let mut numbers = message_interrupts(device);
        numbers.extend(named_interrupts(interrupts, device));
        let file = |number: &String| ProcFile::open(format!("/sys/kernel/irq/{number}/per_cpu_count"));
        Self { counts: numbers.iter().map(file).filter(ProcFile::exists).collect() }
    }

    /// Returns the counts now, of each processor.
    pub(crate) fn read(&mut self) -> Vec<(u32, u64)> {
        let mut sums = Vec::new();
        for file in &mut self.counts {
            let Some(text) = file.read() else { continue };
            for (cpu, count) in (0..).zip(text.trim().split(',')) {
                if sums.len() <= cpu {
                    sums.push((cpu as u32, 0));
                }
                sums[cpu].1 += count.parse::<u64>().unwrap_or(0);
            }
        }
        sums
    }
}

/// Returns the numbers of the interrupts named after the device in `/proc/interrupts`.
fn named_interrupts(text: &str, device: &str) -> BTreeSet<String> {
    let is_named = |rest: &str| {
        rest.split(|c: char| c.is_whitespace() || c == ',').any(|word| {
            word.strip_prefix(device).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        })
    };
    // The heading names the processors.
    let lines = text.lines().skip(1).filter_map(|line| line.split_once(':'));
    lines.filter(|(_, rest)| is_named(rest)).map(|(number, _)| number.trim().to_owned()).collect()
}

/// Returns the numbers of a device's message-signalled interrupts; those of a virtio device are its
/// parent's.
fn message_interrupts(device: &str) -> BTreeSet<String> {
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

    const DEV: &str = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 100 10 0 0 0 0 0 0 100 10 0 0 0 0 0 0
  eth0:2000 20 1 2 3 0 0 0 3000 30 4 5 0 0 0 0
 short: 1 2 3
";
    const INTERRUPTS: &str = "\
           CPU0       CPU1
  8:          1          2   IO-APIC   8-edge      rtc0
 24:         10          0   PCI-MSI 1  eth0-rx-0
 25:          0         20   PCI-MSI 2  virtio0-input.0
 26:        100        100   PCI-MSI 3  eth01
 27:        100        100   PCI-MSI 4  usb1, eth0
LOC:       9999       9999   Local timer interrupts
";

    #[test]
    fn devices_have_traffic_and_drops() {
        let devices = parse_devices(DEV);
        assert_eq!(devices.len(), 2);
        let traffic = Traffic {
            recv_packets: 20,
            recv_bytes: 2000,
            recv_drops: 3,
            recv_errors: 1,
            sent_packets: 30,
            sent_bytes: 3000,
            sent_drops: 5,
            sent_errors: 4,
        };
        let expected = DeviceCounters { name: "eth0".to_owned(), traffic, cpu_interrupts: Vec::new() };
        assert_eq!(devices[1], expected);
    }

    #[test]
    fn interrupts_are_found_by_the_devices_name() {
        assert_eq!(named_interrupts(INTERRUPTS, "eth0"), BTreeSet::from(["24".into(), "27".into()]));
        assert_eq!(named_interrupts(INTERRUPTS, "lo"), BTreeSet::new());
        assert_eq!(named_interrupts("", "eth0"), BTreeSet::new());
    }

    #[test]
    fn interrupts_are_compared_by_processor() {
        let earlier = DeviceCounters { cpu_interrupts: vec![(0, 5), (2, 7)], ..DeviceCounters::default() };
        let now =
            DeviceCounters { cpu_interrupts: vec![(0, 6), (1, 3), (2, 9)], ..DeviceCounters::default() };
        assert_eq!(now.since(&earlier).cpu_interrupts, [(0, 1), (1, 3), (2, 2)]);
    }
}
