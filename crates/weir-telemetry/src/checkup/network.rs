//! Checks of sockets, the interface, and the path to another host.

use std::borrow::Cow;

use weir_results::Interface;

use super::tuning::{BACKLOG, Tuning};
use super::{Facts, Finding, PathFacts, Purpose};

/// Socket buffer that both ends of `weir bench` request, in bytes; the kernel doubles it.
const BUFFER_BYTES: u64 = 4 << 20;
/// From this speed on, 1500-byte packets are the bottleneck.
const FAST_MBPS: u32 = 10_000;

pub(super) fn check(facts: &Facts, findings: &mut Vec<Finding>) {
    buffers(facts, findings);
    let interface = facts.environment.interface.as_ref().filter(|interface| interface.name != "lo");
    if let Some(interface) = interface {
        link(interface, findings);
        offloads(interface, findings);
        interrupts(interface, findings);
        drops(facts, interface, findings);
        polling(facts, findings);
    }
    if let Some(path) = &facts.path {
        way(path, interface, findings);
    }
}

fn buffers(facts: &Facts, findings: &mut Vec<Finding>) {
    let limited = |kind: &str, limit: Option<u64>, effect: &str| {
        let limit = limit.filter(|limit| *limit < BUFFER_BYTES)?;
        Some(format!("{kind} buffers are limited to {limit} bytes, {BUFFER_BYTES} wanted: {effect}"))
    };
    let effect = "a burst is lost while the reader is not running";
    if let Some(text) = limited("receive", facts.environment.rmem_max, effect) {
        let finding = Finding::new("receive-buffer-limit", Purpose::Throughput, text);
        findings.push(finding.fixed_by(Tuning::ReceiveBufferMax));
    }
    let effect = "a sender stops as soon as the device falls behind";
    if let Some(text) = limited("send", facts.environment.wmem_max, effect) {
        let finding = Finding::new("send-buffer-limit", Purpose::Throughput, text);
        findings.push(finding.fixed_by(Tuning::SendBufferMax));
    }
    let backlog = facts.environment.sysctls.get("net.core.netdev_max_backlog");
    if let Some(backlog) =
        backlog.and_then(|text| text.parse::<u64>().ok()).filter(|backlog| *backlog < BACKLOG)
    {
        let text = format!("a processor queues at most {backlog} received packets and drops the rest");
        findings.push(Finding::new("backlog", Purpose::Throughput, text).fixed_by(Tuning::Backlog).note());
    }
}

fn link(interface: &Interface, findings: &mut Vec<Finding>) {
    let name = &interface.name;
    let Some(mtu) = interface.mtu else {
        let text = format!("interface `{name}` does not exist");
        findings.push(Finding::new("no-interface", Purpose::Both, text).see("ip -brief address"));
        return;
    };
    let show = format!("ip -details link show dev {}", word(name));
    if mtu < 1500 {
        let text = format!(
            "the MTU of {name} is {mtu}: samples that fit into 1500 bytes are fragmented here; a VPN, tunnel or overlay needs \
             the smaller MTU, so raise it only where the whole path carries more"
        );
        findings.push(Finding::new("mtu", Purpose::Both, text).see(show));
    } else if mtu == 1500 && interface.speed_mbps.is_some_and(|speed| speed >= FAST_MBPS) {
        let text = format!(
            "the MTU of {name} is 1500 at {} Mbit/s: packets per second limit before bits do (use 9000 only if the whole path supports it)",
            interface.speed_mbps.unwrap_or_default()
        );
        findings.push(Finding::new("mtu-standard", Purpose::Throughput, text).see(show).note());
    }
    if interface.duplex.as_deref() == Some("half") {
        let text = format!(
            "{name} runs half duplex: what it sends collides with what it receives; enable autonegotiation on both ends of \
             the cable, which takes the link down for seconds"
        );
        let show = format!("ethtool {}", word(name));
        findings.push(Finding::new("half-duplex", Purpose::Both, text).see(show));
    }
}

fn offloads(interface: &Interface, findings: &mut Vec<Finding>) {
    let name = &interface.name;
    let wanted = [
        ("generic-receive-offload", "gro", "each received packet passes through the kernel separately"),
        ("generic-segmentation-offload", "gso", "each sent packet passes through the kernel separately"),
        ("tx-checksumming", "tx", "the processor computes the checksums of sent packets"),
        ("rx-checksumming", "rx", "the processor computes the checksums of received packets"),
    ];
    for (offload, option, effect) in wanted {
        if interface.offloads.get(offload) == Some(&false) {
            let text =
                format!("{offload} of {name} is off: {effect} (some drivers reset the link when it changes)");
            let command = format!("ethtool -K {} {option} on", word(name));
            findings.push(Finding::new("offload", Purpose::Throughput, text).see(command));
        }
    }
}

/// Checks for interrupt coalescing.
fn interrupts(interface: &Interface, findings: &mut Vec<Finding>) {
    let name = &interface.name;
    let value = |key: &str| interface.coalescing.get(key).map(String::as_str);
    let waits_us = value("rx-usecs").and_then(|text| text.parse::<u32>().ok()).unwrap_or(0);
    let mut command = format!("ethtool -C {}", word(name));
    let how = match (value("adaptive-rx") == Some("on"), waits_us) {
        (true, _) => {
            command += " adaptive-rx off";
            "adaptively".to_owned()
        }
        (false, 0) => return,
        (false, us) => format!("by up to {us} us"),
    };
    if value("rx-usecs").is_some() {
        command += " rx-usecs 0";
    }
    let text = format!(
        "{name} delays receive interrupts {how}: latency increases in such steps (some drivers reset the link when it changes)"
    );
    findings.push(Finding::new("interrupt-coalescing", Purpose::Latency, text).see(command));
}

fn drops(facts: &Facts, interface: &Interface, findings: &mut Vec<Finding>) {
    let name = &interface.name;
    let dropped: f64 = facts.watched.values(&format!("{name}.recv_drops")).sum();
    if dropped > 0.0 {
        let text = format!("{name} dropped {dropped} packets during the check");
        let show = format!("ethtool -S {}", word(name));
        findings.push(Finding::new("dropping", Purpose::Both, text).see(show));
    }
}

fn polling(facts: &Facts, findings: &mut Vec<Finding>) {
    // Does not override an administrator's choice.
    let is_off = |key| facts.environment.sysctls.get(key).is_some_and(|value| value == "0");
    if is_off("net.core.busy_poll") && is_off("net.core.busy_read") {
        let text = "a waiting receiver sleeps until the interrupt; polling the device is faster and uses a processor";
        findings.push(Finding::new("busy-poll", Purpose::Latency, text).fixed_by(Tuning::BusyPolling).note());
    }
}

/// Quotes an interface's name for a shell: the kernel allows nearly every character in it.
fn word(name: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@".contains(&byte);
    if name.bytes().all(is_plain) { name.into() } else { format!("'{}'", name.replace('\'', r"'\''")).into() }
}

fn way(path: &PathFacts, interface: Option<&Interface>, findings: &mut Vec<Finding>) {
    let (peer, address) = (&path.peer, &path.address);
    if path.local_address.is_none() {
        let text = format!("there is no route to {peer} ({address})");
        findings.push(Finding::new("no-route", Purpose::Both, text).see(format!("ip route get {address}")));
        return;
    }
    if path.is_same_host {
        let text =
            format!("{peer} is this host: packets go through the loopback interface, which has no wire");
        findings.push(Finding::new("same-host", Purpose::Both, text).note());
        return;
    }
    if !path.answers {
        let text = format!("{peer} ({address}) does not answer: it is off, or a firewall is between");
        findings.push(Finding::new("unreachable", Purpose::Both, text).see(format!("ping -c 3 {address}")));
    }
    let own_mtu = interface.and_then(|interface| interface.mtu);
    if let Some((path_mtu, own_mtu)) = path.path_mtu.zip(own_mtu).filter(|(path, own)| path < own) {
        let text = format!(
            "packets to {peer} may have {path_mtu} bytes where the interface takes {own_mtu}: larger ones are fragmented on \
             the way"
        );
        findings.push(Finding::new("path-mtu", Purpose::Both, text).see(format!("tracepath -n {address}")));
    }
}
