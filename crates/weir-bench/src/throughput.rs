//! The one-way stream: the publisher sends as fast as possible, the subscriber counts.
//!
//! The subscriber's figures are the result. It counts from the end of the warm-up, which starts
//! with the first arrival. Its rate is what arrived after the last sample of the warm-up, over the
//! time from that sample to the last counted one. The publisher's rate is reported beside it. The
//! control channel carries how far the publisher went, so that samples lost at the end are counted.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir_measure::{Burst, Drain, Schedule, Signal, Window, nanos};
use weir_results::{
    AgeSeries, CaseSeries, EngineCounts, LatencyHistogram, LatencySummary, LiveSlot, Reliability,
    SequenceCounts,
};

use crate::case::CaseSpec;
use crate::endpoint::{EndReport, EndpointError, Publisher, Subscriber};
use crate::open_loop;
use crate::sink::SampleSink;

/// What the sending end did.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PublisherOutcome {
    /// Samples sent, warm-up included: their numbers are `0..sent`.
    pub sent: u64,
    /// Samples sent in the measured part.
    pub offered: u64,
    /// How long the measured part took.
    pub offered_in: Duration,
    /// Datagrams of the measured part, if known.
    pub datagrams: Option<u64>,
    /// System calls that sent them, if known.
    pub sends: Option<u64>,
    /// What its engine counted itself about losses, warm-up included.
    pub engine: EngineCounts,
    /// Whether everything was acknowledged at the end, as far as the engine has such a thing.
    pub flushed: bool,
    /// How far behind its schedule the publisher was when it sent, microseconds; `None` without one.
    pub lag: Option<LatencySummary>,
}

/// What the receiving end saw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubscriberOutcome {
    /// Counts of the measured part.
    pub counts: SequenceCounts,
    /// From the last sample of the warm-up to the last counted one.
    pub received_in: Duration,
    /// Lost before the measured part.
    pub lost_in_warmup: u64,
    /// Samples that arrived in the whole run, of any kind.
    pub arrivals: u64,
    /// Samples of wrong size or content, in the whole run.
    pub corrupt: u64,
    /// Samples that its reader rejected in the whole run, because its cache was full.
    pub rejected: u64,
    /// Datagrams dropped at the receiving socket in the whole run, if known.
    pub kernel_drops: Option<u64>,
    /// Latencies from the intended times on; `None` without a schedule.
    pub one_way: Option<LatencySummary>,
    /// Their distribution.
    pub histogram: Option<LatencyHistogram>,
    /// The measured part second by second.
    pub series: CaseSeries,
    /// The ages of samples over time; `None` where samples neither follow a schedule nor carry the time of writing.
    pub ages: Option<AgeSeries>,
}

/// Sends until the case's time is over: by a `schedule`, or as fast as possible.
///
/// # Errors
/// Of the engine, and when it took no sample for ten seconds.
pub fn run_publisher(
    end: &mut dyn Publisher,
    case: &CaseSpec,
    schedule: Option<Schedule>,
) -> Result<PublisherOutcome, EndpointError> {
    match schedule {
        Some(schedule) => open_loop::run_publisher(end, case, &schedule),
        None => run_unscheduled(end, case),
    }
}

/// Counts until the publishers are done (`signal`), and everything arrived or nothing arrives any more; measures
/// latencies where samples follow a `schedule`. Leaves figures in `live` as often as the case says.
///
/// # Errors
/// Of the engine, and when nothing arrived after the warm-up.
pub fn run_subscriber(
    end: &mut dyn Subscriber,
    case: &CaseSpec,
    signal: &Signal,
    schedule: Option<Schedule>,
    live: Option<Arc<LiveSlot>>,
) -> Result<SubscriberOutcome, EndpointError> {
    let mut sink = SampleSink::new(case).following(schedule).leaving(case, live);
    let mut window = Window::new(case.warmup);
    let mut drain = Drain::new(quiet_time(case), DRAIN_WAIT + case.allowance());
    loop {
        let arrivals_before = sink.arrivals();
        end.receive(&mut sink, RECEIVE_WAIT)?;
        let now_ns = end.now_ns();
        if sink.arrivals() != arrivals_before {
            drain.arrived(now_ns);
            if window.arrived(now_ns) {
                sink.start_counting(now_ns);
            }
            sink.observe(now_ns);
        }
        if let Some(sent) = signal.sent()
            && (sink.has_all(sent) || drain.is_over(now_ns))
        {
            sink.finish(sent);
            break;
        }
    }
    let received_in = window.bounds_ns().map(|(from_ns, to_ns)| Duration::from_nanos(to_ns - from_ns));
    let received_in = received_in.ok_or_else(|| {
        EndpointError::NoPeer(format!("no sample arrived after the warm-up ({} during it)", sink.arrivals()))
    })?;
    Ok(SubscriberOutcome {
        counts: sink.counts(),
        received_in,
        lost_in_warmup: sink.lost_in_warmup(),
        arrivals: sink.arrivals(),
        corrupt: sink.corrupt(),
        rejected: end.report().engine.rejected,
        kernel_drops: end.report().kernel_drops,
        one_way: sink.one_way(),
        ages: sink.ages(),
        histogram: sink.histogram(),
        series: sink.take_series(),
    })
}

fn run_unscheduled(end: &mut dyn Publisher, case: &CaseSpec) -> Result<PublisherOutcome, EndpointError> {
    let mut pace = Pace::new(end, case);
    let start_ns = end.now_ns();
    let measure_from_ns = pace.publish_until(end, start_ns.saturating_add(nanos(case.warmup)), 0)?;
    let (first, before) = (pace.next, end.report());
    let until_ns = start_ns.saturating_add(nanos(case.warmup + case.duration));
    let end_ns = pace.publish_until(end, until_ns, MEASURED_MIN)?;
    let after = end.report();
    let flushed = end.flush(FLUSH_WAIT + case.allowance())?;
    Ok(PublisherOutcome {
        sent: pace.next,
        offered: pace.next - first,
        offered_in: Duration::from_nanos(end_ns - measure_from_ns),
        datagrams: difference(&before, &after, |report| report.datagrams),
        sends: difference(&before, &after, |report| report.sends),
        engine: end.report().engine,
        flushed,
        lag: None,
    })
}

/// How long acknowledging everything may take. The coordinator waits longer.
pub(crate) const FLUSH_WAIT: Duration = Duration::from_secs(10);

/// How long a subscriber drains after its publisher is done.
pub(crate) const DRAIN_WAIT: Duration = Duration::from_secs(30);

/// How often a subscriber without samples checks whether the run is over.
pub(crate) const RECEIVE_WAIT: Duration = Duration::from_millis(20);

/// How long an engine may take no sample.
pub(crate) const STALL_WAIT: Duration = Duration::from_secs(10);

/// Silence after the publisher's end that means that nothing will arrive: a reliable engine may
/// still retransmit.
pub(crate) fn quiet_time(case: &CaseSpec) -> Duration {
    let is_reliable = case.reliability == Reliability::Reliable;
    let usual = match (case.link(), is_reliable) {
        // Some engines' heartbeats are 3 s apart, and their answers travel over the link.
        (Some(link), true) => Duration::from_secs(7) + link.round_trip * 10,
        // A large sample takes its time on a slow link.
        (Some(link), false) => Duration::from_secs(1) + link.round_trip * 10,
        (None, true) => Duration::from_secs(3),
        (None, false) => Duration::from_millis(100),
    };
    usual + case.allowance()
}

/// The least number of measured samples: a rate needs the time between two, and one more may belong
/// to the subscriber's warm-up.
pub(crate) const MEASURED_MIN: u64 = 3;

/// The publisher's loop.
pub(crate) struct Pace {
    /// The number of the next sample: so many were sent.
    pub(crate) next: u64,
    burst: Burst,
    progress_ns: u64,
    stall_wait: Duration,
}

impl Pace {
    /// Nothing sent yet.
    pub(crate) fn new(end: &dyn Publisher, case: &CaseSpec) -> Self {
        Self {
            next: 0,
            burst: Burst::new(),
            progress_ns: end.now_ns(),
            stall_wait: STALL_WAIT + case.allowance(),
        }
    }

    /// Publishes until the clock shows `end_ns`, but at least `count_min` samples, and returns what it
    /// shows then.
    pub(crate) fn publish_until(
        &mut self,
        end: &mut dyn Publisher,
        end_ns: u64,
        count_min: u64,
    ) -> Result<u64, EndpointError> {
        let mut now_ns = end.now_ns();
        let next_min = self.next + count_min;
        while now_ns < end_ns || self.next < next_min {
            let taken = end.publish(self.next, self.burst.count())?;
            let before_ns = now_ns;
            now_ns = end.now_ns();
            self.next += u64::from(taken);
            if taken > 0 {
                self.progress_ns = now_ns;
            } else if now_ns.saturating_sub(self.progress_ns) >= nanos(self.stall_wait) {
                let waited = self.stall_wait;
                return Err(EndpointError::Engine(format!("no sample could be written for {waited:?}")));
            }
            self.burst.adapt(now_ns - before_ns);
        }
        Ok(now_ns)
    }
}

pub(crate) fn difference(
    before: &EndReport,
    after: &EndReport,
    of: impl Fn(&EndReport) -> Option<u64>,
) -> Option<u64> {
    Some(of(after)?.saturating_sub(of(before)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::tests::case;
    use crate::engine;
    use weir_results::Test;

    /// Runs both ends of the mock one after the other: they need no network.
    fn run(case: &CaseSpec) -> (PublisherOutcome, SubscriberOutcome) {
        let engine = engine::find(&case.engine).unwrap();
        let published = run_publisher(engine.open_publisher(case).unwrap().as_mut(), case, None).unwrap();
        let signal = Signal::new();
        signal.finish(vec![published.sent]);
        let received =
            run_subscriber(engine.open_subscriber(case).unwrap().as_mut(), case, &signal, None, None)
                .unwrap();
        (published, received)
    }

    fn throughput(engine: &str, reliability: Reliability) -> CaseSpec {
        CaseSpec { reliability, verify: true, ..case(engine, Test::Throughput) }
    }

    #[test]
    fn both_ends_count_the_measured_part_only() {
        let (published, received) = run(&throughput("mock", Reliability::Reliable));
        // 10 004 ns per sample: 4 999 in 50 ms of warm-up, 9 997 in the 100 ms that are measured.
        assert_eq!(published.sent, 14_995);
        assert!((9_900..=9_997).contains(&published.offered), "{published:?}");
        assert_eq!(
            (published.sends, published.datagrams),
            (Some(published.offered), Some(published.offered))
        );
        // The subscriber gets batches of 64; its warm-up begins with the first one and ends with the 80th.
        assert_eq!(received.counts.received, 14_995 - 80 * 64);
        assert_eq!((received.counts.lost, received.lost_in_warmup, received.corrupt), (0, 0, 0));
        let ns_per_sample = received.received_in.as_nanos() / u128::from(received.counts.received);
        assert_eq!(ns_per_sample, 10_004);
    }

    #[test]
    fn lost_samples_are_counted_on_both_sides_of_the_warm_up() {
        let (_, received) = run(&throughput("mock", Reliability::BestEffort));
        assert_eq!((received.lost_in_warmup, received.counts.lost), (5, 10));
    }

    #[test]
    fn samples_lost_at_the_tail_are_counted() {
        let case = throughput("mock", Reliability::Reliable);
        let signal = Signal::new();
        signal.finish(vec![14_995 + 3]);
        let mut end = engine::find("mock").unwrap().open_subscriber(&case).unwrap();
        let received = run_subscriber(end.as_mut(), &case, &signal, None, None).unwrap();
        assert_eq!(received.counts.lost, 3);
    }

    #[test]
    fn an_engine_on_a_link_has_time_for_heartbeats_and_large_samples() {
        let quiet = |reliability, path: Option<&str>| {
            let case = throughput("mock", reliability).with(|it| it.method.path = path.map(str::to_owned));
            quiet_time(&case).as_secs()
        };
        assert_eq!(quiet(Reliability::Reliable, None), 3);
        assert_eq!(quiet(Reliability::Reliable, Some("lan100")), 7);
        assert_eq!(quiet(Reliability::Reliable, Some("satellite")), 13);
        assert_eq!(
            (quiet(Reliability::BestEffort, Some("satellite")), quiet(Reliability::BestEffort, None)),
            (7, 0)
        );
    }

    #[test]
    fn damaged_samples_are_counted_and_are_not_received() {
        let (_, received) = run(&throughput("mock-corrupt", Reliability::Reliable));
        assert_eq!((received.corrupt, received.lost_in_warmup, received.counts.lost), (150, 52, 98));
    }
}
