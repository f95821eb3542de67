//! Describes a network interface.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use weir_results::Interface;

use crate::inventory::{read, read_number};
use crate::queues::queues;

/// Describes an interface as far as the host allows. Runs `ethtool`, if it is installed, for what
/// only the driver knows.
pub(crate) fn describe_interface(name: &str) -> Interface {
    let mut interface = Interface { name: name.to_owned(), ..Interface::default() };
    // A name is exactly one path component.
    if name.is_empty() || name.contains('/') || name.starts_with(['.', '-']) {
        return interface;
    }
    let folder = Path::new("/sys/class/net").join(name);
    if !folder.exists() {
        return interface;
    }
    interface.mtu = read_number(folder.join("mtu"));
    // Virtual links report -1 or an error.
    interface.speed_mbps = read_number(folder.join("speed"));
    interface.driver = fs::read_link(folder.join("device/driver")).ok().and_then(last_component);
    interface.duplex = read(folder.join("duplex")).filter(|duplex| duplex != "unknown");
    let count = |kind: &str| {
        let queues = fs::read_dir(folder.join("queues")).ok()?.filter_map(Result::ok);
        let of_kind = queues.filter(|queue| queue.file_name().to_string_lossy().starts_with(kind));
        u32::try_from(of_kind.count()).ok().filter(|count| *count > 0)
    };
    (interface.receive_queues, interface.send_queues) = (count("rx-"), count("tx-"));
    interface.queueing = queueing(name);
    interface.offloads = ethtool("-k", name).map(|text| parse_offloads(&text)).unwrap_or_default();
    interface.coalescing = ethtool("-c", name).map(|text| parse_coalescing(&text)).unwrap_or_default();
    interface
}

fn last_component(path: PathBuf) -> Option<String> {
    Some(path.file_name()?.to_str()?.to_owned())
}

fn queueing(name: &str) -> Option<String> {
    let index = nix::net::if_::if_nametoindex(name).ok()?;
    queues().ok()?.remove(&index).map(|queue| queue.kind).filter(|kind| kind != "noqueue")
}

/// Returns the output of `ethtool`; `None` if it is not installed or the device does not support
/// the option.
fn ethtool(option: &str, name: &str) -> Option<String> {
    let output = Command::new("ethtool").args([option, name]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The offloads that affect datagrams.
const OFFLOADS: [&str; 9] = [
    "generic-receive-offload",
    "generic-segmentation-offload",
    "large-receive-offload",
    "rx-checksumming",
    "rx-gro-hw",
    "rx-udp-gro-forwarding",
    "scatter-gather",
    "tx-checksumming",
    "tx-udp-segmentation",
];

/// Parses `name: on` or `name: off [fixed]` of `ethtool -k`.
fn parse_offloads(text: &str) -> BTreeMap<String, bool> {
    let pairs = text.lines().filter_map(|line| line.trim().split_once(": "));
    pairs
        .filter(|(name, _)| OFFLOADS.contains(name))
        .map(|(name, state)| (name.to_owned(), state.starts_with("on")))
        .collect()
}

/// Parses `rx-usecs: 3` and `Adaptive RX: off  TX: n/a` of `ethtool -c`; omits values that the
/// driver does not know.
fn parse_coalescing(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("Adaptive RX: ") {
            let mut words = rest.split_whitespace();
            let (receiving, sending) = (words.next(), words.nth(1));
            let pairs = [("adaptive-rx", receiving), ("adaptive-tx", sending)];
            let known = pairs.into_iter().filter_map(|(name, value)| Some((name, value?)));
            found.extend(
                known
                    .filter(|(_, value)| *value != "n/a")
                    .map(|(name, value)| (name.to_owned(), value.to_owned())),
            );
        } else if let Some((name @ ("rx-usecs" | "rx-frames" | "tx-usecs" | "tx-frames"), value)) =
            line.split_once(':')
            && value.trim() != "n/a"
        {
            found.insert(name.to_owned(), value.trim().to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_no_interface_read_nothing() {
        for name in ["", ".", "..", "../../etc", "a/b", "--help", "nosuch0"] {
            let expected = Interface { name: name.to_owned(), ..Interface::default() };
            assert_eq!(describe_interface(name), expected);
        }
    }

    #[test]
    fn the_loopback_interface_has_an_mtu() {
        let lo = describe_interface("lo");
        assert!(lo.mtu.is_some() && lo.receive_queues.is_some(), "{lo:?}");
    }

    #[test]
    fn offloads_are_on_or_off() {
        let text = "Features for eth0:\ntx-checksumming: on\n\ttx-checksum-ipv4: off [fixed]\n\
                    generic-receive-offload: off [requested on]\ntx-udp-segmentation: off [fixed]\n";
        let expected =
            [("generic-receive-offload", false), ("tx-checksumming", true), ("tx-udp-segmentation", false)];
        let expected: BTreeMap<String, bool> =
            expected.into_iter().map(|(name, state)| (name.to_owned(), state)).collect();
        assert_eq!(parse_offloads(text), expected);
        assert!(parse_offloads("").is_empty());
    }

    #[test]
    fn coalescing_is_what_the_driver_knows() {
        let text = "Coalesce parameters for eth0:\nAdaptive RX: on  TX: n/a\nstats-block-usecs: 5\n\
                    rx-usecs:\t3\nrx-frames: n/a\ntx-usecs: 0\nrx-usecs-irq: 7\n";
        let expected = [("adaptive-rx", "on"), ("rx-usecs", "3"), ("tx-usecs", "0")];
        let expected: BTreeMap<String, String> =
            expected.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        assert_eq!(parse_coalescing(text), expected);
    }
}
