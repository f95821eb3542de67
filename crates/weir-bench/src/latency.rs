//! The closed-loop ping-pong: one ping in flight at a time; half of its round trip is reported.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir_measure::nanos;
use weir_results::{
    CaseSeries, LatencyHistogram, LatencyKind, LatencyRecorder, LatencySummary, LiveSlot, Reliability,
    SeriesRecorder,
};

use crate::case::CaseSpec;
use crate::endpoint::{EndpointError, Pinger};

/// What the measuring end found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PingerOutcome {
    /// Half round trips of the measured part, lost pings included.
    pub summary: LatencySummary,
    /// Their distribution; `None` if none came back.
    pub histogram: Option<LatencyHistogram>,
    /// The same second by second.
    pub series: CaseSeries,
    /// Pings sent, warm-up included.
    pub sent: u64,
    /// How long the measured part took.
    pub measured_in: Duration,
}

/// Pings until the case's time is over or `stop` is set. Pings of the warm-up are not recorded.
///
/// Leaves figures in `live` as often as the case says.
///
/// A lost ping of a best-effort case is counted after a time-out; a reliable case may lose none and fails.
///
/// # Errors
/// Of the engine; when a reliable ping got no echo, or no ping at all did.
pub fn run_pinger(
    end: &mut dyn Pinger,
    case: &CaseSpec,
    stop: &AtomicBool,
    live: Option<Arc<LiveSlot>>,
) -> Result<PingerOutcome, EndpointError> {
    let pings = Pings::new(case, end.now_ns()).leaving(live);
    Ok(end.run(pings, stop)?.outcome())
}

/// The state of a closed loop: the next ping, and the results so far.
///
/// The thread that receives the echoes drives it: [`Pings::next`], then [`Pings::came_back`] or
/// [`Pings::is_lost`], until one of these returns true.
#[derive(Debug)]
pub struct Pings {
    recorder: LatencyRecorder,
    series: SeriesRecorder,
    lost: u64,
    reliability: Reliability,
    timeout: Duration,
    measure_from_ns: u64,
    end_ns: u64,
    now_ns: u64,
    /// Pings so far.
    sent: u64,
    /// When the last of them was sent.
    sent_ns: u64,
    has_measured: bool,
    lost_in_a_row: u32,
    /// Where live figures are left.
    live: Option<Arc<LiveSlot>>,
}

impl Pings {
    /// None sent yet; the warm-up starts now.
    #[must_use]
    pub fn new(case: &CaseSpec, now_ns: u64) -> Self {
        let measure_from_ns = now_ns.saturating_add(nanos(case.warmup));
        let series = SeriesRecorder::with_latencies(measure_from_ns, nanos(case.duration));
        Self {
            recorder: LatencyRecorder::new(),
            series: match case.method.live_period {
                Some(period) => series.watched(nanos(period)),
                None => series,
            },
            lost: 0,
            reliability: case.reliability,
            timeout: ping_timeout(case),
            measure_from_ns,
            end_ns: measure_from_ns.saturating_add(nanos(case.duration)),
            now_ns,
            sent: 0,
            sent_ns: now_ns,
            has_measured: false,
            lost_in_a_row: 0,
            live: None,
        }
    }

    /// The same, which leaves live figures there.
    #[must_use]
    pub fn leaving(self, live: Option<Arc<LiveSlot>>) -> Self {
        Self { live, ..self }
    }

    /// How long an echo is waited for.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The number of the ping that is sent now.
    pub fn next(&mut self, now_ns: u64) -> u64 {
        self.sent += 1;
        self.sent_ns = now_ns;
        self.has_measured |= now_ns >= self.measure_from_ns;
        self.sent - 1
    }

    /// The echo of the last ping arrived; true when the time is over.
    pub fn came_back(&mut self, now_ns: u64) -> bool {
        self.lost_in_a_row = 0;
        if self.sent_ns >= self.measure_from_ns {
            let round_trip_ns = now_ns.saturating_sub(self.sent_ns);
            self.recorder.record(round_trip_ns);
            self.series.record_latency(now_ns, round_trip_ns / KIND.divisor());
        }
        self.is_over(now_ns)
    }

    /// The last ping is lost; true when the time is over.
    ///
    /// # Errors
    /// When a reliable ping got no echo, or too many others did not.
    pub fn is_lost(&mut self, now_ns: u64) -> Result<bool, EndpointError> {
        self.lost_in_a_row += 1;
        check_loss(self.reliability, self.lost_in_a_row, self.timeout)?;
        if self.sent_ns >= self.measure_from_ns {
            self.recorder.record_lost();
            self.lost += 1;
        }
        Ok(self.is_over(now_ns))
    }

    /// The result.
    #[must_use]
    pub fn outcome(self) -> PingerOutcome {
        PingerOutcome {
            summary: self.recorder.summary(KIND),
            histogram: self.recorder.histogram(KIND),
            series: self.series.finish(self.recorder.count(), self.lost),
            sent: self.sent,
            measured_in: Duration::from_nanos(self.now_ns.saturating_sub(self.measure_from_ns)),
        }
    }

    /// At least one is measured, however long it takes.
    fn is_over(&mut self, now_ns: u64) -> bool {
        self.now_ns = now_ns;
        if self.series.observe(now_ns, || (self.recorder.count(), self.lost)) {
            self.leave(now_ns);
        }
        now_ns >= self.end_ns && self.has_measured
    }
}

impl Pings {
    /// Twice a second, in less than a microsecond.
    #[cold]
    fn leave(&self, now_ns: u64) {
        if let Some(live) = &self.live {
            live.put(self.series.live(now_ns, (self.recorder.count(), self.lost), Some(&self.series)));
        }
    }
}

/// What is reported of a round trip.
const KIND: LatencyKind = LatencyKind::HalfRtt;

/// Some engines retransmit only after a second or more. Best effort does not retransmit: after 200
/// ms a ping is lost (RTI Perftest draws the same line). Over a virtual link, its echo takes as long as that delays it.
fn ping_timeout(case: &CaseSpec) -> Duration {
    let usual = match case.reliability {
        Reliability::Reliable => Duration::from_secs(5),
        Reliability::BestEffort | Reliability::None => Duration::from_millis(200),
    };
    let echo_wait = case.virtual_link().map_or(Duration::ZERO, |link| link.echo_wait());
    usual + case.allowance() + echo_wait
}

/// After so many lost pings in a row, there is no peer.
const LOST_IN_A_ROW_MAX: u32 = 25;

fn check_loss(reliability: Reliability, lost_in_a_row: u32, timeout: Duration) -> Result<(), EndpointError> {
    if reliability == Reliability::Reliable {
        return Err(EndpointError::NoPeer(format!("a reliable ping got no echo within {timeout:?}")));
    }
    if lost_in_a_row >= LOST_IN_A_ROW_MAX {
        return Err(EndpointError::NoPeer(format!("{lost_in_a_row} pings in a row got no echo")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::tests::case;
    use crate::endpoint::End;
    use crate::engine;
    use std::cell::Cell;
    use std::net::SocketAddrV4;
    use weir_results::Test;

    fn run(
        engine: &str,
        reliability: Reliability,
        duration: Duration,
    ) -> Result<PingerOutcome, EndpointError> {
        let case = CaseSpec { reliability, duration, ..case(engine, Test::Latency) };
        let mut end = engine::find(engine).unwrap().open_pinger(&case).unwrap();
        run_pinger(end.as_mut(), &case, &AtomicBool::new(false), None)
    }

    #[test]
    fn half_of_the_round_trip_is_reported_and_the_warm_up_is_not() {
        let outcome = run("mock", Reliability::Reliable, Duration::from_millis(100)).unwrap();
        // A round trip of the mock takes 40.0 to 41.0 us at 32 bytes; 100 ms are measured after 50
        // ms of warm-up.
        assert!((20.0..20.6).contains(&outcome.summary.p50), "{:?}", outcome.summary);
        assert_eq!(outcome.summary.kind, LatencyKind::HalfRtt);
        assert_eq!(outcome.summary.lost, 0);
        assert!((2460..2475).contains(&outcome.summary.count), "{:?}", outcome.summary);
        assert!((3690..3710).contains(&outcome.sent), "{outcome:?}");
    }

    #[test]
    fn lost_pings_of_best_effort_are_counted_but_those_of_the_warm_up_are_not() {
        // The mock loses pings 777, 1777, 2777... and each costs 200 ms: the first ends the
        // warm-up, the fifth the run.
        let outcome = run("mock", Reliability::BestEffort, Duration::from_secs(1)).unwrap();
        assert_eq!((outcome.sent, outcome.summary.count, outcome.summary.lost), (4778, 3996, 4));
        assert!(outcome.summary.max < 30.0, "{outcome:?}");
    }

    #[test]
    fn a_ping_waits_for_its_echo_over_the_longest_link() {
        let over = |path: &str| {
            let case = case("udp", Test::Latency).with(|it| it.method.path = Some(path.to_owned()));
            ping_timeout(&case)
        };
        let (none, second) = (ping_timeout(&case("udp", Test::Latency)), Duration::from_secs(1));
        assert!(none < Duration::from_millis(201));
        // 600 ms, and 768 KiB at 10 Mbit/s in each direction.
        assert!((second..10 * second).contains(&over("satellite")), "{:?}", over("satellite"));
        assert!(over("tun,delay=300ms") > second, "a link without a rate");
        assert!(over("lan1g") < none + Duration::from_millis(20), "{:?}", over("lan1g"));
        assert!(over("tun,rate=1k") < Duration::from_secs(20), "but not for ever");
        let in_lab = case("udp", Test::Latency).with(|it| {
            it.method.path = Some("lab satellite, pub=netns:weir-lab-a,sub=netns:weir-lab-b".to_owned());
            it.method.lab_link = Some("satellite".to_owned());
        });
        assert_eq!(ping_timeout(&in_lab), over("satellite"));
    }

    #[test]
    fn a_lost_reliable_ping_fails_the_case() {
        let error = run("mock-lossy", Reliability::Reliable, Duration::from_millis(100)).unwrap_err();
        assert!(error.to_string().contains("reliable ping"), "{error}");
    }

    #[test]
    fn an_absent_peer_is_an_error_and_not_an_endless_run() {
        assert!(check_loss(Reliability::BestEffort, 24, Duration::ZERO).is_ok());
        assert!(matches!(
            check_loss(Reliability::BestEffort, 25, Duration::ZERO),
            Err(EndpointError::NoPeer(_))
        ));
    }

    #[test]
    fn live_figures_are_left_while_it_measures_and_change_no_result() {
        let case = CaseSpec {
            reliability: Reliability::Reliable,
            duration: Duration::from_secs(2),
            ..case("mock", Test::Latency)
        };
        let watched = case.clone().with(|case| case.method.live_period = Some(Duration::from_millis(500)));
        let slot = Arc::new(LiveSlot::default());
        let outcome = |case: &CaseSpec, live| {
            let mut end = engine::find("mock").unwrap().open_pinger(case).unwrap();
            run_pinger(end.as_mut(), case, &AtomicBool::new(false), live).unwrap()
        };
        assert_eq!(outcome(&watched, Some(Arc::clone(&slot))), outcome(&case, None));
        let figures = slot.get().unwrap();
        // The last period ends with the case, or a ping later.
        assert!((1_500_000_000..1_510_000_000).contains(&figures.measured_ns), "{figures:?}");
        assert!(figures.received > 30_000 && figures.missing == 0, "{figures:?}");
        assert!((20.0..20.6).contains(&figures.p50_us.unwrap()), "{figures:?}");
    }

    #[test]
    fn the_clock_is_read_once_per_ping() {
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
        }
        impl Pinger for Looks {
            fn ping(&mut self, _: u64, _: u64, _: Duration) -> Result<bool, EndpointError> {
                Ok(true)
            }
        }
        let case = case("mock", Test::Latency);
        let mut end = Looks(Cell::new(0));
        let outcome = run_pinger(&mut end, &case, &AtomicBool::new(false), None).unwrap();
        // Two before the first ping.
        assert_eq!(outcome.sent + 2, end.0.get() / 1_000);
        assert_eq!((outcome.summary.min, outcome.summary.max), (0.5, 0.5));
    }
}
