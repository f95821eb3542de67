//! Wireshark's dissector as an independent check of our packets.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The result of dissecting a capture.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Packets in the file.
    pub packets: usize,
    /// Packets dissected as RTPS.
    pub rtps: usize,
    /// Number of submessages by id.
    pub submessages: BTreeMap<u8, usize>,
    /// One line for each packet that is malformed, has a wrong checksum, or has an expert warning.
    pub complaints: Vec<String>,
}

/// Dissects a capture file.
///
/// # Errors
///
/// If tshark cannot be run or refuses the file.
pub fn dissect(capture: &Path) -> Result<Verdict, String> {
    run(capture, "TRUE").map(|table| judge(&table, &[GOOD]))
}

/// Dissects a capture made at the sender: checksums are missing, as the network card would compute
/// them.
///
/// # Errors
///
/// As for [`dissect`].
pub fn dissect_live(capture: &Path) -> Result<Verdict, String> {
    run(capture, "FALSE").map(|table| judge(&table, &[GOOD, UNVERIFIED, NONE]))
}

fn run(capture: &Path, check_checksums: &str) -> Result<String, String> {
    let fields = [
        "frame.number",
        "frame.protocols",
        "rtps.sm.id",
        "_ws.malformed",
        "_ws.expert.severity",
        "_ws.expert.message",
    ];
    let checksums = ["ip.checksum.status", "udp.checksum.status"];
    let mut command = Command::new("tshark");
    command.arg("-n").arg("-r").arg(capture);
    // The ports of some domains are registered for other protocols.
    command.args(["-o", "udp.try_heuristic_first:TRUE"]);
    for protocol in ["ip", "udp"] {
        command.args(["-o", &format!("{protocol}.check_checksum:{check_checksums}")]);
    }
    command.args(["-T", "fields", "-E", "separator=;", "-E", "occurrence=a", "-E", "aggregator=,"]);
    for field in fields.iter().chain(&checksums) {
        command.args(["-e", field]);
    }
    let output = command.output().map_err(|error| format!("tshark cannot be run: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Reads the table of fields: one line for each packet.
fn judge(table: &str, good_checksums: &[&str]) -> Verdict {
    let mut verdict = Verdict::default();
    for line in table.lines() {
        let mut fields = line.split(';');
        let mut next = || fields.next().unwrap_or_default();
        let (number, protocols, ids, malformed, severities, message) =
            (next(), next(), next(), next(), next(), next());
        let checksums = [next(), next()];
        verdict.packets += 1;
        verdict.rtps += usize::from(protocols.split(':').any(|protocol| protocol == "rtps"));
        for id in ids.split(',').filter_map(|id| u8::from_str_radix(id.trim_start_matches("0x"), 16).ok()) {
            *verdict.submessages.entry(id).or_default() += 1;
        }
        let worst =
            severities.split(',').filter_map(|severity| severity.parse::<u64>().ok()).max().unwrap_or(0);
        let is_bad_checksum =
            checksums.iter().any(|status| status.split(',').any(|status| !good_checksums.contains(&status)));
        if !malformed.is_empty() || worst >= WARNING || is_bad_checksum {
            verdict
                .complaints
                .push(format!("packet {number}: {message} (checksums {checksums:?}, severity {worst:#x})"));
        }
    }
    verdict
}

/// Wireshark's number for a warning; notes and chats are lower, errors higher.
const WARNING: u64 = 0x0060_0000;

/// Wireshark's number for a correct checksum.
const GOOD: &str = "1";

/// Wireshark's number for an unverified checksum.
const UNVERIFIED: &str = "2";

/// The checksum field of an empty datagram.
const NONE: &str = "";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_packets_are_counted() {
        let verdict = judge(
            "1;raw:ip:udp:rtps;0x09,0x15;;;;1;1\n2;raw:ip:udp:rtps;0x06;;2097152;a chat;1;1\n3;raw:ip:udp:data;;;;;1;1\n",
            &[GOOD],
        );
        assert_eq!((verdict.packets, verdict.rtps), (3, 2));
        assert_eq!(verdict.submessages, BTreeMap::from([(0x06, 1), (0x09, 1), (0x15, 1)]));
        assert!(verdict.complaints.is_empty(), "{verdict:?}");
    }

    #[test]
    fn bad_packets_are_complained_about() {
        let table = "1;rtps;;1;8388608;Malformed;1;1\n2;rtps;;;6291456;odd;1;1\n3;rtps;;;;;1;0\n";
        assert_eq!(judge(table, &[GOOD]).complaints.len(), 3);
    }
}
