//! Conclusions: comparisons of modes and external programs, and the bottleneck of each stream.

use weir_results::{Case, Comparison, LossAttribution, Spread, Test};

use super::{Point, is_outside};
use crate::compare::compare_repeats;

/// Returns a line for each comparison, and one for the bottleneck of each stream at full speed.
pub(super) fn lines(points: &[Point<'_>]) -> Vec<String> {
    let mut lines: Vec<String> = points.iter().filter_map(|point| compared(point, points)).collect();
    lines.extend(points.iter().filter_map(limit));
    lines
}

/// Formats a comparison; `None` if there is nothing to compare with.
///
/// `compared: gso 32 B: 30.15 x send (28.90..31.02, 20 pairs), 43.20 x iperf3 (...): better`
fn compared(point: &Point<'_>, points: &[Point<'_>]) -> Option<String> {
    let own = point.repeats[0];
    if is_outside(own, point.udp) {
        return None;
    }
    let others = points.iter().filter(|other| {
        let case = other.repeats[0];
        let is_plainer = other.udp.mode < point.udp.mode && other.udp.gro <= point.udp.gro;
        case.point.size_bytes == own.point.size_bytes
            && own.conditions.rate_samples_per_s.is_none()
            && case.conditions.rate_samples_per_s.is_none()
            && (is_outside(case, other.udp)
                || (is_plainer
                    && other.name() == "send"
                    && other.udp.flows == point.udp.flows
                    && other.udp.direction == point.udp.direction))
    });
    let found: Vec<String> = others
        .filter_map(|other| Some(text(&compare_repeats(&point.repeats, &other.repeats)?, other.name())))
        .collect();
    if found.is_empty() {
        return None;
    }
    Some(format!("compared: {} {} B: {}", point.name(), own.point.size_bytes, found.join(", ")))
}

fn text(found: &Comparison, other: &str) -> String {
    let pairs = if found.pairs == 1 { "1 pair".to_owned() } else { format!("{} pairs", found.pairs) };
    let ratio = found.ratio;
    match found.interval {
        None => format!("{ratio:.3} x {other} ({pairs})"),
        Some(at) => {
            format!("{ratio:.3} x {other} ({:.3}..{:.3}, {pairs}: {})", at.low, at.high, found.verdict)
        }
    }
}

/// Formats the bottleneck; `None` if unknown: `limit: send 32 B forward: the sender, which was busy
/// 99 % of the time`.
fn limit(point: &Point<'_>) -> Option<String> {
    let own = point.repeats[0];
    if own.point.test != Test::Throughput
        || own.conditions.rate_samples_per_s.is_some()
        || is_outside(own, point.udp)
    {
        return None;
    }
    let median = |figure: fn(&Case) -> Option<f64>| {
        Spread::of(point.repeats.iter().filter_map(|case| figure(case))).map(|spread| spread.median)
    };
    let lost_percent = median(|case| case.figures.throughput.map(|stream| stream.lost_percent))?;
    let busy_percent = median(|case| case.figures.udp.as_ref()?.sender_busy_percent);
    let why = if lost_percent >= LOST_PERCENT {
        let losses = point.repeats.iter().filter_map(|case| case.evidence.loss_attribution.as_ref());
        format!("{}: {lost_percent:.2} % was lost there", most_lost(losses)?)
    } else {
        match busy_percent? {
            busy if busy >= BUSY_PERCENT => {
                format!("the sender, which was busy {busy:.0} % of the time; losses were negligible")
            }
            busy => format!(
                "the path or the sender's processor: the sender was busy {busy:.0} % of the time, and otherwise waited for \
                 room in its queue or for the processor"
            ),
        }
    };
    Some(format!("limit: {} {} B {}: {why}", point.name(), own.point.size_bytes, point.udp.direction))
}

/// Returns the place of most losses, by the order of [`LossAttribution::places`].
fn most_lost<'a>(losses: impl Iterator<Item = &'a LossAttribution>) -> Option<&'static str> {
    let mut places = [
        (0, "the sender, which left it out"),
        (0, "the sender's socket"),
        (0, "the sender's queue"),
        (0, "the path"),
        (0, "the receiving host"),
        (0, "the receiver, whose socket buffer was full"),
        (0, "the receiver, whose cache was full"),
        (0, "a place without a counter"),
    ];
    for loss in losses {
        for ((sum, _), (_, count)) in places.iter_mut().zip(loss.places()) {
            *sum += count;
        }
    }
    places.into_iter().filter(|(sum, _)| *sum > 0).max_by_key(|(sum, _)| *sum).map(|(_, place)| place)
}

/// Smaller losses are not a bottleneck, in percent.
const LOST_PERCENT: f64 = 0.1;

/// A sender that ran for this share of the time was hardly ever blocked, in percent.
const BUSY_PERCENT: f64 = 90.0;

#[cfg(test)]
mod tests {
    use weir_results::{LatencySummary, Reliability, ThroughputSummary, UdpFigures, UdpMode};

    use super::*;

    fn stream(engine: &str, mode: UdpMode, repeat: u32, samples_per_s: f64) -> Case {
        let throughput = Some(ThroughputSummary { samples_per_s, ..ThroughputSummary::default() });
        let udp = UdpFigures { mode, flows: 1, sender_busy_percent: Some(98.7), ..UdpFigures::default() };
        let case = Case::new(engine, Test::Throughput, Reliability::None, 32);
        case.with(|it| {
            it.figures.throughput = throughput;
            it.conditions.repeat = repeat;
            it.figures.udp = Some(udp);
        })
    }

    fn point(cases: &[Case]) -> Point<'_> {
        Point { udp: cases[0].figures.udp.as_ref().unwrap(), repeats: cases.iter().collect() }
    }

    #[test]
    fn modes_compare_with_send_and_with_programs_of_others_in_pairs() {
        // The machine slows down from repeat to repeat.
        let pace = |repeat: u32| 1000.0 / f64::from(repeat);
        let make = |engine: &str, mode, times: f64| -> Vec<Case> {
            (1..=20).map(|repeat| stream(engine, mode, repeat, times * pace(repeat))).collect()
        };
        let (send, gso) = (make("udp", UdpMode::Send, 1.5), make("udp-gso", UdpMode::Gso, 30.0));
        let iperf3 = make("iperf3", UdpMode::Send, 1.0);
        let lines = lines(&[point(&send), point(&gso), point(&iperf3)]);
        assert_eq!(
            lines[..2],
            [
                "compared: send 32 B: 1.500 x iperf3 (1.500..1.500, 20 pairs: better)",
                "compared: gso 32 B: 20.000 x send (20.000..20.000, 20 pairs: better), 30.000 x iperf3 (30.000..30.000, 20 \
                 pairs: better)",
            ]
        );
        assert_eq!(lines.len(), 4, "{lines:?}");
    }

    #[test]
    fn round_trips_compare_by_their_median() {
        let make = |engine: &str, p50: f64| {
            let latency_us = Some(LatencySummary { count: 1, p50, ..LatencySummary::default() });
            let udp = Some(UdpFigures::default());
            vec![Case::new(engine, Test::Latency, Reliability::None, 64).with(|it| {
                it.figures.latency_us = latency_us;
                it.figures.udp = udp;
            })]
        };
        let (ours, theirs) = (make("udp", 9.0), make("sockperf", 10.0));
        let lines = lines(&[point(&ours), point(&theirs)]);
        assert_eq!(lines, ["compared: round trips 64 B: 0.900 x sockperf (1 pair)"]);
    }

    #[test]
    fn what_limits_follows_from_losses_or_from_the_senders_work() {
        let line = |change: fn(&mut Case)| {
            let mut case = stream("udp", UdpMode::Send, 1, 5.0);
            change(&mut case);
            limit(&point(&[case]))
        };
        let of = |change| line(change).unwrap();
        assert!(of(|_| {}).starts_with("limit: send 32 B forward: the sender, which was busy 99 %"));
        let set_busy = |case: &mut Case, busy| case.figures.udp.as_mut().unwrap().sender_busy_percent = busy;
        assert!(
            of(|case| case.figures.udp.as_mut().unwrap().sender_busy_percent = Some(20.0))
                .contains("the path or")
        );
        let lossy = |case: &mut Case| {
            case.figures.throughput.as_mut().unwrap().lost_percent = 3.0;
            let places =
                LossAttribution { lost: 9, path: 4, receiver_socket: 5, ..LossAttribution::default() };
            case.evidence.loss_attribution = Some(places);
        };
        assert!(of(lossy).contains("the receiver, whose socket buffer was full: 3.00 % was lost there"));
        let mut unknown = stream("udp", UdpMode::Send, 1, 5.0);
        set_busy(&mut unknown, None);
        assert_eq!(limit(&point(&[unknown])), None);
        assert_eq!(line(|case| case.conditions.rate_samples_per_s = Some(1.0)), None);
        assert_eq!(line(|case| case.point.engine = "iperf3".to_owned()), None);
    }
}
