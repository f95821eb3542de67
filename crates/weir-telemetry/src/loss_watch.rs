//! Drops on this host during a run: the evidence for the causes of lost samples.

use std::fs;
use std::path::Path;

use weir_results::DropCounters;

use crate::devices::parse_devices;
use crate::names_and_values::names_and_values;
use crate::queues::queues;
use crate::udp_counters::UdpCounters;
use crate::udp_sockets::socket_drops;

/// Watches the counters of this host that indicate lost datagrams, from [`LossWatch::start`] on.
///
/// It reads a dozen counters when it starts and again for each [`LossWatch::counters`], and nothing
/// in between. Start it on a thread in the network namespace of the sockets, once they are open,
/// and read it while they still are. The results of both ends go to
/// [`weir_results::LossEvidence::new`], and that to [`weir_results::attribute`].
///
/// Sockets are those of the whole process. An end that knows the drops of its own socket (one of
/// several in the process) sets [`DropCounters::socket`] to them.
#[derive(Debug, Clone)]
pub struct LossWatch {
    device: Option<String>,
    before: DropCounters,
}

impl LossWatch {
    /// Starts watching. `device` is the network device that carries the samples, e.g. `eth0`;
    /// `None` watches all devices of the namespace.
    #[must_use]
    pub fn start(device: Option<&str>) -> Self {
        Self { device: device.map(str::to_owned), before: read(device) }
    }

    /// Returns the drops since the start. `None` for counters that could not be read at either
    /// time.
    #[must_use]
    pub fn counters(&self) -> DropCounters {
        since(&read(self.device.as_deref()), &self.before)
    }
}

/// Reads all counters.
fn read(device: Option<&str>) -> DropCounters {
    let text = |path: &str| fs::read_to_string(path).ok();
    let snmp = text("/proc/thread-self/net/snmp");
    let snmp6 = text("/proc/thread-self/net/snmp6").unwrap_or_default();
    let udp = snmp.as_deref().and_then(|snmp| UdpCounters::parse(snmp, &snmp6));
    let devices = text("/proc/thread-self/net/dev").as_deref().and_then(|text| device_drops(text, device));
    DropCounters {
        boot_id: text("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned()),
        namespace: namespace(),
        socket: socket_drops(),
        queue: read_queue(device),
        device_sent: devices.map(|(_, sent)| sent),
        device_received: devices.map(|(received, _)| received),
        backlog: text("/proc/thread-self/net/softnet_stat").as_deref().and_then(parse_backlog),
        sent: udp.map(|udp| udp.out_datagrams),
        delivered: udp.map(|udp| udp.in_datagrams),
        receive_buffer_errors: udp.map(|udp| udp.receive_buffer_errors),
        send_buffer_errors: udp.map(|udp| udp.send_buffer_errors),
        no_ports: udp.map(|udp| udp.no_ports),
        ip_discards: snmp.as_deref().and_then(parse_ip_discards),
    }
}

/// Returns the number of this thread's network namespace, from a link such as `net:[4026531840]`.
fn namespace() -> Option<u64> {
    let link = fs::read_link("/proc/thread-self/ns/net").ok()?;
    Path::new(&link).to_str()?.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok()
}

fn read_queue(device: Option<&str>) -> Option<u64> {
    let queues = queues().ok()?;
    let Some(device) = device else {
        return Some(queues.values().map(|queue| u64::from(queue.drops)).sum());
    };
    let index = nix::net::if_::if_nametoindex(device).ok()?;
    // A device without a queue is not listed and drops nothing there.
    Some(queues.get(&index).map_or(0, |queue| u64::from(queue.drops)))
}

/// Parses the receive and send drops of a device, or of all of them, from `/proc/net/dev`; `None`
/// without such a device.
fn device_drops(text: &str, device: Option<&str>) -> Option<(u64, u64)> {
    let devices = parse_devices(text).into_iter();
    let drops = devices
        .filter(|found| device.is_none_or(|device| device == found.name))
        .map(|found| (found.traffic.recv_drops, found.traffic.sent_drops));
    drops.reduce(|sums, drops| (sums.0.saturating_add(drops.0), sums.1.saturating_add(drops.1)))
}

/// Parses the drops of all processors' backlogs: the second number of each line of
/// `/proc/net/softnet_stat`, hexadecimal.
pub(crate) fn parse_backlog(text: &str) -> Option<u64> {
    text.lines().map(|line| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok()).sum()
}

/// Parses IP packets discarded because buffers were full, and failed reassemblies, from the `Ip:`
/// lines of `/proc/net/snmp`.
fn parse_ip_discards(text: &str) -> Option<u64> {
    let discards =
        names_and_values(text, "Ip:")?.filter(|(name, _)| ["InDiscards", "ReasmFails"].contains(name));
    discards.map(|(_, value)| value.parse::<u64>().ok()).sum()
}

fn since(now: &DropCounters, before: &DropCounters) -> DropCounters {
    let of = |of: fn(&DropCounters) -> Option<u64>| Some(of(now)?.saturating_sub(of(before)?));
    DropCounters {
        boot_id: now.boot_id.clone(),
        namespace: now.namespace,
        socket: of(|counters| counters.socket),
        queue: of(|counters| counters.queue),
        device_sent: of(|counters| counters.device_sent),
        device_received: of(|counters| counters.device_received),
        backlog: of(|counters| counters.backlog),
        sent: of(|counters| counters.sent),
        delivered: of(|counters| counters.delivered),
        receive_buffer_errors: of(|counters| counters.receive_buffer_errors),
        send_buffer_errors: of(|counters| counters.send_buffer_errors),
        no_ports: of(|counters| counters.no_ports),
        ip_discards: of(|counters| counters.ip_discards),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEV: &str = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 100 10 0 1 0 0 0 0 100 10 0 2 0 0 0 0
  eth0:2000 20 0 3 4 0 0 0 3000 30 0 5 0 0 0 0
";

    #[test]
    fn one_device_or_all_of_them() {
        assert_eq!(device_drops(DEV, Some("eth0")), Some((4, 5)));
        assert_eq!(device_drops(DEV, None), Some((5, 7)));
        assert_eq!(device_drops(DEV, Some("eth1")), None);
        assert_eq!(device_drops("", None), None);
    }

    #[test]
    fn backlogs_of_all_processors_add_up() {
        let text = "0000272d 00000010 00000000 0 0\n000034d9 00000001 00000001 0 0\n";
        assert_eq!(parse_backlog(text), Some(17));
        assert_eq!(parse_backlog("1 x\n"), None);
    }

    #[test]
    fn discards_and_fragments_are_found_by_name() {
        let text = "Ip: Forwarding InDiscards ReasmOKs ReasmFails\nIp: 2 5 100 6\nUdp: A\nUdp: 1\n";
        assert_eq!(parse_ip_discards(text), Some(11));
        assert_eq!(parse_ip_discards("Udp: A\nUdp: 1\n"), None);
    }

    #[test]
    fn what_is_missing_now_or_then_is_missing() {
        let before = DropCounters { socket: Some(5), queue: None, ..DropCounters::default() };
        let now = DropCounters { socket: Some(7), queue: Some(9), ..DropCounters::default() };
        let expected = DropCounters { socket: Some(2), queue: None, ..DropCounters::default() };
        assert_eq!(since(&now, &before), expected);
    }

    #[test]
    fn this_host_is_watched() {
        let counters = LossWatch::start(Some("lo")).counters();
        assert!(counters.boot_id.is_some() && counters.namespace.is_some());
        assert!(counters.socket.is_some() && counters.delivered.is_some(), "{counters:?}");
        assert!(counters.queue.is_some() && counters.backlog.is_some(), "{counters:?}");
        assert_eq!(LossWatch::start(Some("no such device")).counters().queue, None);
    }
}
