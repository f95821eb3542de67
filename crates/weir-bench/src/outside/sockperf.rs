//! sockperf's ping-pong beside ours.

use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use weir_results::{Case, LatencyRecorder, WaitStrategy};

use super::case::{OutsideCase, free_port};
use super::process::{END_WAIT, Process, UDP_SOCKETS};
use crate::case::CaseError;

/// Runs a server and a client, and takes the figures from the log of every round trip.
pub(super) fn run(
    case: &OutsideCase,
    result: &mut Case,
    interrupted: &AtomicBool,
    on_tick: &mut dyn FnMut(Duration),
) -> Result<(), CaseError> {
    let port = free_port(case)?;
    let wait = wait_arguments(case.wait)?;
    let command = |mode: &str| {
        let mut command = Command::new("sockperf");
        command.args([mode, "-i", &case.address.to_string(), "-p", &port.to_string()]).args(wait);
        command.args(["--buffer-size", &case.socket_buffer_bytes.to_string()]);
        command
    };
    let mut server = Process::start(command("server"), case.cpus.map(|cpus| cpus.subscriber))?;
    server.wait_for_port(UDP_SOCKETS, port)?;
    let log = tempfile::NamedTempFile::new()
        .map_err(|error| CaseError::Failed(format!("no place for sockperf's log: {error}")))?;
    let seconds = run_seconds(case.duration);
    let mut client = command("ping-pong");
    client
        .args(["-t", &seconds.to_string(), "-m", &case.size_bytes.to_string(), "--full-log"])
        .arg(log.path());
    let client = Process::start(client, case.cpus.map(|cpus| cpus.publisher))?;
    client.wait_for_end(Duration::from_secs(seconds) + END_WAIT, interrupted, on_tick)?;
    let text = std::fs::read_to_string(log.path())
        .map_err(|error| CaseError::Failed(format!("sockperf's log cannot be read: {error}")))?;
    let recorder =
        parse_log(&text).ok_or_else(|| CaseError::Failed("sockperf's log is not understood".to_owned()))?;
    if recorder.count() == 0 {
        // On a busy machine it may not get a single round trip into the part that it counts.
        return Err(CaseError::Failed("sockperf saw no round trip".to_owned()));
    }
    result.figures.latency_us = Some(recorder.summary(case.kind));
    Ok(())
}

fn wait_arguments(wait: WaitStrategy) -> Result<&'static [&'static str], CaseError> {
    match wait {
        WaitStrategy::Block => Ok(&[]),
        WaitStrategy::Spin => Ok(&["--nonblocked"]),
        WaitStrategy::SpinThenBlock { .. } => {
            Err(CaseError::NotSupported("sockperf cannot spin first and then block".to_owned()))
        }
    }
}

/// sockperf takes whole seconds, of which it leaves out 400 ms at the start and 50 ms at the end.
fn run_seconds(duration: Duration) -> u64 {
    let needed = duration + Duration::from_millis(450);
    needed.as_secs() + u64::from(needed.subsec_nanos() > 0)
}

/// Reads lines of `packet, txTime(sec), rxTime(sec), latency(usec)` after the heading; a packet
/// without echo has no line of numbers.
fn parse_log(text: &str) -> Option<LatencyRecorder> {
    let mut rows = text.lines().skip_while(|line| !line.starts_with("packet, txTime"));
    rows.next()?;
    let mut recorder = LatencyRecorder::new();
    let mut next_packet = None;
    for row in rows.take_while(|line| line.starts_with(|first: char| first.is_ascii_digit())) {
        let mut fields = row.split(", ");
        let packet: u64 = fields.next()?.parse().ok()?;
        let sent_ns = parse_ns(fields.next()?)?;
        let received_ns = parse_ns(fields.next()?)?;
        for _ in next_packet.unwrap_or(packet)..packet {
            recorder.record_lost();
        }
        next_packet = Some(packet + 1);
        recorder.record(received_ns.checked_sub(sent_ns)?);
    }
    Some(recorder)
}

/// `2.406238994` is 2 406 238 994 ns: nine digits follow the point.
fn parse_ns(text: &str) -> Option<u64> {
    let (seconds, nanos) = text.trim().split_once('.')?;
    if nanos.len() != 9 {
        return None;
    }
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(nanos.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use weir_results::LatencyKind;

    use super::*;

    const LOG: &str = "\
------------------------------
test was performed using the following parameters: --mps=600000 --burst=1
------------------------------
sockperf: ---> percentile 50.000 =    7.449
------------------------------
packet, txTime(sec), rxTime(sec), latency(usec)
0, 2.406238994, 2.406253824, 7.415
1, 2.999999990, 3.000014700, 7.355
3, 3.406268654, 3.406283424, 7.385
------------------------------
";

    #[test]
    fn every_round_trip_of_the_log_is_recorded() {
        let summary = parse_log(LOG).unwrap().summary(LatencyKind::HalfRtt);
        assert_eq!((summary.count, summary.lost), (3, 1));
        assert_eq!((summary.min, summary.max), (7.355, 7.415));
    }

    #[test]
    fn what_is_no_log_gives_no_figures() {
        assert!(parse_log("").is_none());
        let heading = "packet, txTime(sec), rxTime(sec), latency(usec)\n";
        assert_eq!(parse_log(heading).unwrap().count(), 0);
        assert!(parse_log(&LOG.replace("2.406238994", "2.4062")).is_none());
        assert!(parse_log(&LOG.replace("2.406238994", "9.000000000")).is_none());
    }

    #[test]
    fn sockperf_measures_at_least_as_long_as_we_do() {
        assert_eq!(run_seconds(Duration::from_millis(500)), 1);
        assert_eq!(run_seconds(Duration::from_millis(550)), 1);
        assert_eq!(run_seconds(Duration::from_secs(2)), 3);
    }
}
