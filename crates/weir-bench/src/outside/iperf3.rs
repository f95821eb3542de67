//! iperf3's UDP stream beside ours.

use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::Value;
use weir_results::{Case, SequenceCounts, ThroughputCounts, ThroughputSummary};

use super::case::{OutsideCase, free_port};
use super::process::{END_WAIT, Process, TCP_SOCKETS};
use crate::case::CaseError;

/// Runs a server for one test and a client, and takes the figures from the client's JSON.
pub(super) fn run(
    case: &OutsideCase,
    result: &mut Case,
    interrupted: &AtomicBool,
    on_tick: &mut dyn FnMut(Duration),
) -> Result<(), CaseError> {
    let (address, port) = (case.address.to_string(), free_port(case)?.to_string());
    let mut server = Command::new("iperf3");
    server.args(["--server", "--one-off", "--bind", &address, "--port", &port]);
    let mut server = Process::start(server, case.cpus.map(|cpus| cpus.subscriber))?;
    server.wait_for_port(TCP_SOCKETS, port.parse().unwrap_or_default())?;
    let seconds = case.duration.as_secs() + u64::from(case.duration.subsec_nanos() > 0);
    let mut client = Command::new("iperf3");
    client.args(["--client", &address, "--port", &port, "--udp", "--bitrate", "0", "--json"]);
    client.args(["--length", &case.size_bytes.to_string(), "--time", &seconds.to_string()]);
    client.args(["--window", &case.socket_buffer_bytes.to_string()]);
    let client = Process::start(client, case.cpus.map(|cpus| cpus.publisher))?;
    let text = client.wait_for_end(Duration::from_secs(seconds) + END_WAIT, interrupted, on_tick)?;
    let counts =
        parse(&text).ok_or_else(|| CaseError::Failed("iperf3's output is not understood".to_owned()))?;
    result.figures.throughput = Some(ThroughputSummary::new(case.size_bytes as u64, &counts));
    Ok(())
}

fn parse(text: &str) -> Option<ThroughputCounts> {
    let report: Value = serde_json::from_str(text).ok()?;
    let end = report.get("end")?;
    let sum = end.get("sum")?;
    let packets = sum.get("packets")?.as_u64()?;
    // Below zero when more duplicates than losses were seen.
    let lost = u64::try_from(sum.get("lost_packets")?.as_i64()?).unwrap_or(0).min(packets);
    // Losses by the receiver, over the sender's time: that is how iperf3 computes its rate.
    let time = Duration::try_from_secs_f64(sum.get("seconds")?.as_f64()?).ok()?;
    let streams = end.get("streams").and_then(Value::as_array).into_iter().flatten();
    let reordered = streams.filter_map(|stream| stream.get("udp")?.get("out_of_order")?.as_u64()).sum();
    Some(ThroughputCounts {
        offered: packets,
        offered_in: time,
        received: SequenceCounts { received: packets - lost, lost, reordered, ..SequenceCounts::default() },
        received_in: time,
        datagrams: Some(packets),
        sends: Some(packets),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn received_is_what_was_sent_less_what_the_receiver_missed() {
        let text = r#"{"start":{"version":"iperf 3.12"},"end":{
            "streams":[{"udp":{"socket":5,"seconds":2.0,"packets":1000,"lost_packets":40,"out_of_order":3}}],
            "sum":{"start":0,"end":2.0,"seconds":2.0,"bytes":1024000,"packets":1000,"lost_packets":40,"sender":true}}}"#;
        let counts = parse(text).unwrap();
        assert_eq!((counts.offered, counts.received.received, counts.received.lost), (1000, 960, 40));
        assert_eq!(counts.received.reordered, 3);
        assert_eq!(ThroughputSummary::new(1024, &counts).samples_per_s, 480.0);
    }

    #[test]
    fn an_error_report_gives_no_figures() {
        assert!(parse(r#"{"start":{},"end":{},"error":"unable to connect"}"#).is_none());
        assert!(parse("iperf3: error").is_none());
    }
}
