//! From a measurement to cases of the results.

use std::time::Duration;

use weir_measure::{
    SEGMENTS_MAX, check_rate, enter_buffers, mbps, ratio, round_trip_loss, rounded, seconds, stream_loss,
};
use weir_results::{
    Case, Direction, EngineCounts, LossAttribution, LossBreakdown, NotMeasured, ProcessFigures, Reliability,
    Test, ThroughputCounts, ThroughputSummary, UdpFigures, UdpMode, Warning,
};

use super::client::Measured;
use super::point::{Point, PointTest};
use super::reports::{ReceiveReport, SendReport};

/// Returns one case for each direction, or one for round trips. Without a measurement, the reason.
#[must_use]
pub fn cases(point: &Point, is_ipv6: bool, measured: Result<&Measured, String>) -> Vec<Case> {
    let case_of = |direction| {
        let mut case = blank(point, is_ipv6, direction);
        match &measured {
            Ok(measured) => enter(&mut case, point, measured, direction),
            Err(reason) => case.evidence.not_measured = Some(NotMeasured::Failed { reason: reason.clone() }),
        }
        case
    };
    let directions = [(point.forward, Direction::Forward), (point.reverse, Direction::Reverse)];
    directions.into_iter().filter(|(sends, _)| *sends).map(|(_, direction)| case_of(direction)).collect()
}

/// A case without figures.
fn blank(point: &Point, is_ipv6: bool, direction: Direction) -> Case {
    let test = match point.test {
        PointTest::Stream => Test::Throughput,
        PointTest::RoundTrip => Test::Latency,
    };
    let mut case = Case::new(point.mode.engine(), test, Reliability::None, point.size_bytes as u64);
    case.conditions.wait = point.wait;
    case.point.multicast = point.multicast.is_some();
    case.conditions.rate_samples_per_s = point.datagrams_per_s;
    case.figures.udp = Some(UdpFigures {
        mode: point.mode,
        flows: point.flows,
        direction,
        duplex: point.forward && point.reverse,
        connected: point.connected,
        gro: point.gro,
        ip_version: if is_ipv6 { 6 } else { 4 },
        dscp: point.dscp,
        multicast: point.multicast.map(|group| group.to_string()),
        asked_mbps: point.datagrams_per_s.map(|rate| mbps(rate, point.size_bytes as u64)),
        ..UdpFigures::default()
    });
    case
}

fn enter(case: &mut Case, point: &Point, measured: &Measured, direction: Direction) {
    let (client, server) = (measured.client_telemetry.clone(), measured.server.telemetry.clone());
    let (telemetry, stream) = match direction {
        Direction::Forward => ((client, server), &measured.forward),
        Direction::Reverse => ((server, client), &measured.reverse),
    };
    (case.evidence.publisher_telemetry, case.evidence.subscriber_telemetry) = telemetry;
    if let Some(ping) = &measured.round_trip {
        case.figures.latency_us = Some(ping.summary);
        case.figures.duration_s = Some(seconds(Duration::from_nanos(ping.measured_in_ns)));
        case.figures.publisher = Some(ping.process);
        case.figures.subscriber = Some(measured.server.process);
        enter_buffers(case, ping.buffers, ping.buffers);
        let ends = [ping.drops.clone(), measured.server.drops.clone()];
        case.evidence.loss_attribution = Some(round_trip_loss(ping.summary.lost, &ends));
        if ping.summary.count == 0 {
            case.evidence.warnings.push(Warning::NothingReceived);
        }
        return;
    }
    let Some((sent, received)) = stream else {
        case.evidence.not_measured =
            Some(NotMeasured::Failed { reason: "one of the ends brought no figures".to_owned() });
        return;
    };
    enter_stream(case, point, sent, received);
    if let Some(figures) = &mut case.figures.udp {
        figures.clocks = measured.clocks.map(|clocks| match direction {
            Direction::Forward => clocks,
            // The server's view has the opposite sign.
            Direction::Reverse => weir_results::ClockRelation {
                offset_us: -clocks.offset_us,
                drift_us: -clocks.drift_us,
                ..clocks
            },
        });
    }
}

fn enter_stream(case: &mut Case, point: &Point, sent: &SendReport, received: &ReceiveReport) {
    let counts = ThroughputCounts {
        offered: sent.offered,
        offered_in: Duration::from_nanos(sent.offered_in_ns),
        received: received.counts,
        received_in: Duration::from_nanos(received.received_in_ns),
        datagrams: Some(sent.offered),
        sends: None,
    };
    let total: u64 = sent.sent.iter().sum();
    case.figures.throughput = Some(ThroughputSummary {
        offered_samples_per_s: rounded(sent.offered_per_s),
        datagrams_per_send: ratio(total, sent.system_calls),
        ..ThroughputSummary::new(case.point.size_bytes, &counts)
    });
    case.figures.duration_s = Some(seconds(counts.received_in));
    case.figures.latency_us = received.one_way;
    case.figures.schedule_lag_us = sent.lag;
    case.figures.publisher = Some(ProcessFigures { samples: Some(total), ..sent.process });
    case.figures.subscriber = Some(ProcessFigures { samples: Some(received.arrivals), ..received.process });
    case.evidence.loss = Some(LossBreakdown::explain(
        received.counts.lost,
        sent.refused,
        received.kernel_drops.unwrap_or(0),
        received.drops.receive_buffer_errors,
    ));
    case.evidence.loss_attribution = Some(explain(point, sent, received));
    if let Some(figures) = &mut case.figures.udp {
        figures.offered_mbps = mbps(sent.offered_per_s, point.size_bytes as u64);
        figures.jitter_us = received.jitter_us;
        figures.one_way_p99_9_us = received.one_way_p99_9_us;
        figures.reorder_extent_max = received.reorder_extent_max;
        figures.reorder_extent_mean =
            ratio(received.reorder_extent_sum, received.counts.reordered).unwrap_or(0.0);
        figures.longest_gap = received.longest_gap;
        figures.late = received.counts.late;
        figures.corrupt = received.corrupt;
        figures.foreign_datagrams = received.foreign_datagrams;
        figures.gso_fallbacks = sent.gso_fallbacks;
        figures.sender_busy_percent = sent.busy_percent;
        figures.datagrams_per_receive = ratio(received.arrivals, received.system_calls);
    }
    enter_buffers(case, sent.buffers, received.buffers);
    if received.counts.received == 0 {
        case.evidence.warnings.push(Warning::NothingReceived);
    }
    if received.corrupt > 0 {
        case.evidence.warnings.push(Warning::CorruptSamples { corrupt: received.corrupt });
    }
    check_rate(case, point.datagrams_per_s, rounded(sent.offered_per_s), KEPT);
}

/// Attributes the losses of a stream, warm-up included.
fn explain(point: &Point, sent: &SendReport, received: &ReceiveReport) -> LossAttribution {
    let max = if point.mode == UdpMode::Gso { SEGMENTS_MAX } else { 1 };
    let lost = received.counts.lost + received.lost_in_warmup;
    let (sender, receiver) = (sent.drops.clone(), received.drops.clone());
    let engine = EngineCounts { refused: sent.refused, ..EngineCounts::default() };
    stream_loss((lost, engine), (sent.sent.iter().sum(), sender), (received.arrivals, receiver), max)
}

/// A schedule was kept when this share of it was sent in time.
const KEPT: f64 = 0.999;

#[cfg(test)]
mod tests {
    use weir_results::{ClockRelation, LatencySummary, ScheduleLag, SequenceCounts};

    use super::super::point::tests::stream;
    use super::super::reports::PingReport;
    use super::*;

    fn found(lost: u64) -> (SendReport, ReceiveReport) {
        let sent = SendReport {
            sent: vec![600, 600],
            offered: 1000,
            offered_in_ns: 1_000_000_000,
            offered_per_s: 1000.0,
            system_calls: 300,
            refused: 1,
            lag: Some(ScheduleLag { p50: 1.0, p99: 2.0, p99_9: Some(3.0), max: 4.0 }),
            ..SendReport::default()
        };
        let received = ReceiveReport {
            counts: SequenceCounts { received: 1000 - lost, lost, reordered: 4, ..SequenceCounts::default() },
            received_in_ns: 2_000_000_000,
            arrivals: 1190,
            system_calls: 595,
            kernel_drops: Some(2),
            reorder_extent_max: 9,
            reorder_extent_sum: 10,
            jitter_us: Some(5.5),
            ..ReceiveReport::default()
        };
        (sent, received)
    }

    #[test]
    fn a_direction_is_a_case_with_the_figures_of_both_ends() {
        let point = Point { reverse: true, flows: 2, datagrams_per_s: Some(1000.0), ..stream() };
        let clocks = ClockRelation { offset_us: 7.0, error_us: 1.0, ..ClockRelation::default() };
        let measured = Measured {
            forward: Some(found(10)),
            reverse: Some(found(0)),
            clocks: Some(clocks),
            ..Measured::default()
        };
        let cases = cases(&point, true, Ok(&measured));
        let [forward, reverse] = &cases[..] else { panic!("{cases:?}") };
        let throughput = forward.figures.throughput.unwrap();
        assert_eq!((throughput.samples_per_s, throughput.lost_percent), (495.0, 1.0));
        assert_eq!(throughput.datagrams_per_send, Some(4.0));
        assert_eq!(forward.evidence.loss, Some(LossBreakdown::explain(10, 1, 2, None)));
        let figures = forward.figures.udp.as_ref().unwrap();
        assert_eq!((figures.asked_mbps, figures.offered_mbps, figures.ip_version), (Some(0.8), 0.8, 6));
        assert_eq!((figures.reorder_extent_max, figures.reorder_extent_mean), (9, 2.5));
        assert_eq!((figures.jitter_us, figures.datagrams_per_receive), (Some(5.5), Some(2.0)));
        assert_eq!(forward.figures.schedule_lag_us.unwrap().p99_9, Some(3.0));
        let loss = forward.evidence.loss_attribution.as_ref().unwrap();
        // Ten lost, one of them refused; there are no other counters.
        assert_eq!((loss.lost, loss.sender_refused, loss.unplaced), (10, 1, 9));
        assert!(figures.duplex && forward.evidence.warnings.is_empty());
        assert_eq!(reverse.figures.udp.as_ref().unwrap().direction, Direction::Reverse);
        assert_eq!(reverse.figures.udp.as_ref().unwrap().clocks.unwrap().offset_us, -7.0);
        assert!(!forward.same_point(reverse));
    }

    #[test]
    fn a_schedule_that_was_not_kept_and_silence_are_doubts() {
        let point = Point { datagrams_per_s: Some(1002.0), ..stream() };
        let measured = Measured { forward: Some(found(1000)), ..Measured::default() };
        let warnings = &cases(&point, false, Ok(&measured))[0].evidence.warnings;
        assert!(warnings.contains(&Warning::NothingReceived));
        assert!(warnings.iter().any(|warning| matches!(warning, Warning::ScheduleLag { .. })));
    }

    #[test]
    fn round_trips_are_latencies_and_failures_say_why() {
        let point = Point { test: PointTest::RoundTrip, ..stream() };
        let summary = LatencySummary { count: 3, p50: 8.0, ..LatencySummary::default() };
        let ping = PingReport { summary, sent: 3, measured_in_ns: 1_500_000_000, ..PingReport::default() };
        let measured = Measured { round_trip: Some(ping), ..Measured::default() };
        let case = &cases(&point, false, Ok(&measured))[0];
        assert_eq!(
            (case.point.test, case.figures.latency_us, case.figures.duration_s),
            (Test::Latency, Some(summary), Some(1.5))
        );
        let failed = &cases(&point, false, Err("no".to_owned()))[0];
        assert_eq!(failed.evidence.not_measured.as_ref().unwrap().reason(), "no");
    }
}
