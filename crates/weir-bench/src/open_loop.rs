//! The open loop: samples are sent by a fixed schedule, whatever happened to earlier ones.
//!
//! A ping-pong slows down with what it measures: while one ping is stuck, no other is sent, and a
//! stall of a second is one slow ping among thousands ("coordinated omission"). Here every sample
//! has an intended send time, and its latency counts from there: a stall shows in every sample that
//! it delayed, also in those that could not be sent meanwhile. How far the publisher was behind its
//! schedule is reported beside it.
//!
//! Sender and receiver must read the same clock, as two processes of a host do, so that one-way
//! latency is measured directly. No time travels in the samples: the coordinator gives both ends
//! the start of the schedule, and a sample's number is its place in it.

use std::time::Duration;

use weir_measure::{Burst, Schedule, nanos};
use weir_results::{Case, LatencyKind, LatencyRecorder, Spread};

use crate::case::CaseSpec;
use crate::endpoint::{EndpointError, Publisher};
use crate::rate::Rate;
use crate::throughput::{self, FLUSH_WAIT, MEASURED_MIN, PublisherOutcome, STALL_WAIT};

/// The schedule of a case whose rate is known, from `start_ns` of the host's monotonic clock on; `None` for others.
#[must_use]
pub fn schedule(case: &CaseSpec, start_ns: u64) -> Option<Schedule> {
    let rate = case.method.samples_per_s?;
    Some(Schedule::of_run(rate, start_ns, case.warmup, case.duration, MEASURED_MIN))
}

/// Sends by the schedule until its time is over. Late samples are sent at once; those not sent when
/// the time is over are not sent.
///
/// # Errors
/// Of the engine, and when it took no sample for ten seconds.
pub(crate) fn run_publisher(
    end: &mut dyn Publisher,
    case: &CaseSpec,
    schedule: &Schedule,
) -> Result<PublisherOutcome, EndpointError> {
    let end_ns = schedule.start_ns().saturating_add(nanos(case.warmup + case.duration));
    let stall_wait = STALL_WAIT + case.allowance();
    let mut lags = LatencyRecorder::new();
    let (mut next, mut before, mut stalled_from_ns) = (0, None, None);
    while next < schedule.count() {
        // The only clock read of an iteration.
        let now_ns = end.wait_until(schedule.intended_ns(next));
        if now_ns >= end_ns && next >= schedule.measured_from() + MEASURED_MIN {
            break;
        }
        if next >= schedule.measured_from() {
            before.get_or_insert_with(|| (end.report(), now_ns, next));
            lags.record(now_ns - schedule.intended_ns(next));
        }
        let due = u32::try_from(schedule.backlog(next, now_ns)).unwrap_or(u32::MAX);
        let taken = end.publish(next, due.min(Burst::MAX))?;
        next += u64::from(taken);
        if taken > 0 {
            stalled_from_ns = None;
        } else if now_ns - *stalled_from_ns.get_or_insert(now_ns) >= nanos(stall_wait) {
            return Err(EndpointError::Engine(format!("no sample could be written for {stall_wait:?}")));
        }
    }
    let now_ns = end.now_ns();
    let after = end.report();
    let (before, from_ns, first) = before.unwrap_or((after, now_ns, next));
    let flushed = end.flush(FLUSH_WAIT + case.allowance())?;
    let measured_ns = now_ns - from_ns;
    // A schedule that was kept is over one interval after its last sample.
    let scheduled_ns = schedule.intended_ns(next) - schedule.intended_ns(first);
    Ok(PublisherOutcome {
        sent: next,
        offered: next - first,
        offered_in: Duration::from_nanos(measured_ns.max(scheduled_ns)),
        datagrams: throughput::difference(&before, &after, |report| report.datagrams),
        sends: throughput::difference(&before, &after, |report| report.sends),
        engine: end.report().engine,
        flushed,
        lag: Some(lags.summary(LatencyKind::OneWay)),
    })
}

/// Resolves a rate that is a share of the maximum: that of the same engine and conditions among the
/// cases measured so far, the median if there are several.
///
/// # Errors
/// When no maximum was measured; the text says so.
pub fn resolve(case: &mut CaseSpec, measured: &[Case]) -> Result<(), String> {
    case.method.samples_per_s = match case.method.rate {
        None => None,
        Some(Rate::PerSecond(rate)) => Some(rate as f64),
        Some(Rate::OfMaximum(hundredths)) => {
            let is_its = |other: &&Case| {
                other.point.engine == case.engine
                    && other.point.reliability == case.reliability
                    && other.point.size_bytes == case.size_bytes as u64
                    && other.point.batch_bytes == u64::from(case.batch_bytes)
                    && other.point.loans == case.loans
            };
            let rates = measured.iter().filter(is_its).filter_map(|other| other.figures.throughput);
            let maximum = Spread::of(rates.map(|throughput| throughput.samples_per_s));
            let maximum = maximum.map(|spread| spread.median).filter(|maximum| *maximum > 0.0);
            let maximum = maximum.ok_or("its maximum, which the rate is a share of, was not measured")?;
            Some((maximum * f64::from(hundredths) / 1e4).max(1.0).round())
        }
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::tests::case;
    use crate::endpoint::End;
    use crate::engine;
    use crate::throughput::{SubscriberOutcome, run_subscriber};
    use std::cell::Cell;
    use std::net::SocketAddrV4;
    use weir_measure::Signal;
    use weir_results::{Reliability, Test, ThroughputSummary};

    fn at(engine: &str, samples_per_s: f64) -> CaseSpec {
        let mut case = CaseSpec { reliability: Reliability::Reliable, ..case(engine, Test::Latency) };
        case.method.samples_per_s = Some(samples_per_s);
        case
    }

    /// Runs both ends of the mock, one after the other, from second 7 on.
    fn run(case: &CaseSpec) -> (PublisherOutcome, SubscriberOutcome) {
        let schedule = schedule(case, 7_000_000_000).unwrap();
        let engine = engine::find(&case.engine).unwrap();
        let sent = run_publisher(engine.open_publisher(case).unwrap().as_mut(), case, &schedule).unwrap();
        let signal = Signal::new();
        signal.finish(vec![sent.sent]);
        let mut end = engine.open_subscriber(case).unwrap();
        (sent, run_subscriber(end.as_mut(), case, &signal, Some(schedule), None).unwrap())
    }

    #[test]
    fn latency_counts_from_the_intended_time() {
        let (sent, received) = run(&at("mock", 10_000.0));
        // 50 ms of warm-up and 100 ms that are measured.
        assert_eq!((sent.sent, sent.offered), (1500, 1000));
        let one_way = received.one_way.unwrap();
        assert_eq!((one_way.kind, one_way.count, one_way.lost), (LatencyKind::OneWay, 1000, 0));
        // The mock takes 20 us to its subscriber.
        assert!((19.9..20.1).contains(&one_way.p50) && one_way.max < 20.1, "{one_way:?}");
        let lag = sent.lag.unwrap();
        assert_eq!((lag.count, lag.max), (1000, 0.0));
        let ages = received.ages.unwrap();
        assert_eq!((ages.step_ms, ages.max_ms.len()), (0.5, 200));
        assert!(ages.mean_ms.iter().all(|age| *age == Some(0.02)), "{ages:?}");
    }

    #[test]
    fn a_stall_is_seen_by_every_sample_that_it_delayed() {
        // The mock's subscriber gets nothing for 10 ms after each thousandth sample: 100 samples
        // are due meanwhile, and are late by 10 ms, 9.9 ms, ...; a ping-pong would have seen one of
        // them.
        let (_, received) = run(&at("mock-stall", 10_000.0));
        let one_way = received.one_way.unwrap();
        assert!((9_900.0..10_100.0).contains(&one_way.max), "{one_way:?}");
        let late = one_way.mean * one_way.count as f64 - 20.0 * one_way.count as f64;
        // 10 ms + 9.9 ms + ... = 505 ms, less what the mock takes for catching up: a tenth of the way.
        assert!((480_000.0..600_000.0).contains(&late), "{late}");
    }

    #[test]
    fn a_stall_now_and_then_is_not_in_the_percentile_of_most_intervals() {
        // The mock stalls for 10 ms after each thousandth sample, which is every tenth interval at this rate.
        let case = CaseSpec { duration: Duration::from_secs(1), ..at("mock-stall", 10_000.0) };
        let (_, received) = run(&case);
        let one_way = received.one_way.unwrap();
        let of_intervals = one_way.p99_of_intervals.unwrap();
        assert!((19.0..21.0).contains(&of_intervals) && one_way.p99 > 5_000.0, "{one_way:?}");
    }

    #[test]
    fn a_publisher_that_is_too_slow_lags_and_says_so() {
        // The mock takes 10 us for a sample.
        let (sent, _) = run(&at("mock", 200_000.0));
        assert!(sent.offered < 11_000, "{sent:?}");
        assert!(sent.lag.unwrap().max > 50_000.0, "{sent:?}");
        let reached = sent.offered as f64 / sent.offered_in.as_secs_f64();
        assert!((90_000.0..101_000.0).contains(&reached), "{reached}");
    }

    #[test]
    fn a_share_is_of_the_same_engines_maximum() {
        let measured = |engine: &str, rate: f64| {
            let throughput = Some(ThroughputSummary { samples_per_s: rate, ..ThroughputSummary::default() });
            Case::new(engine, Test::Throughput, Reliability::Reliable, 32)
                .with(|it| it.figures.throughput = throughput)
        };
        let cases = [
            measured("mock", 1000.0),
            measured("mock", 3000.0),
            measured("mock", 2000.0),
            measured("udp", 9.0),
        ];
        let mut case = at("mock", 1.0);
        case.method.rate = Some(Rate::OfMaximum(2500));
        resolve(&mut case, &cases).unwrap();
        assert_eq!(case.method.samples_per_s, Some(500.0));
        assert!(resolve(&mut case, &cases[3..]).unwrap_err().contains("was not measured"));
    }

    #[test]
    fn the_clock_is_read_once_per_sample_that_is_sent_in_time() {
        /// Every clock read takes a microsecond, and nothing else does.
        struct Looks(Cell<u64>);
        impl End for Looks {
            fn connect(&mut self, _: Option<SocketAddrV4>, _: Duration) -> Result<(), EndpointError> {
                Ok(())
            }
            fn now_ns(&self) -> u64 {
                self.0.set(self.0.get() + 1_000);
                self.0.get()
            }
            fn wait_until(&mut self, until_ns: u64) -> u64 {
                while self.now_ns() < until_ns {}
                self.0.get()
            }
        }
        impl Publisher for Looks {
            fn publish(&mut self, _: u64, count: u32) -> Result<u32, EndpointError> {
                Ok(count)
            }
            fn flush(&mut self, _: Duration) -> Result<bool, EndpointError> {
                Ok(true)
            }
            fn publish_last(&mut self, _: u64) -> Result<bool, EndpointError> {
                Ok(true)
            }
        }
        // A sample is due every microsecond: a second clock read would make the next one late.
        let case = at("mock", 1_000_000.0);
        let schedule = schedule(&case, 1_000).unwrap();
        let mut end = Looks(Cell::new(0));
        let outcome = run_publisher(&mut end, &case, &schedule).unwrap();
        assert_eq!(outcome.sent, schedule.count());
        let lag = outcome.lag.unwrap();
        assert_eq!((lag.count, lag.max), (outcome.offered, 0.0));
    }
}
