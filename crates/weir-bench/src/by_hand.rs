//! The two ends of a case, started by hand, typically on two hosts.
//!
//! There is no coordinator: each end waits until its engine finds the other one. Both command lines
//! must describe the same case. The publisher's final marker carries the number of samples. Streams
//! have no warm-up; intervals show how they settle. A subscriber that joins late counts from the
//! first sample it receives. Each end samples its own host only.

use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use weir_measure::{clock, nanos};
use weir_results::{
    Carried, DropCounters, EngineCounts, LossAttribution, LossEvidence, Reliability, SequenceCounts,
    attribute,
};

use crate::case::CaseSpec;
use crate::endpoint::{End, EndpointError, Engine, Pinger, Ponger, Publisher};
use crate::latency::{self, PingerOutcome};
use crate::sink::SampleSink;
use crate::throughput::{FLUSH_WAIT, Pace, RECEIVE_WAIT, quiet_time};
use crate::watch::{Watch, Watching};

pub use crate::watch::Watched;

/// One end, and its time-out.
#[derive(Clone, Copy, Debug)]
pub struct HandOptions<'a> {
    /// The case; its `duration` is that of this end, zero: until the other end is done.
    pub case: &'a CaseSpec,
    /// Where the other end is, for engines without discovery.
    pub peer: Option<SocketAddrV4>,
    /// The processor of this process; `None` = not pinned.
    pub cpu: Option<usize>,
    /// How long to wait for the other end.
    pub patience: Duration,
    /// Set from outside to end the run.
    pub interrupted: &'a AtomicBool,
}

/// What happens while an end runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HandEvent {
    /// The other end was found, as far as the engine knows.
    Joined,
    /// About a second of the stream.
    Interval(Interval),
}

/// A part of a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// When it began, from the first sample on.
    pub from: Duration,
    /// How long it was.
    pub length: Duration,
    /// Samples sent or received in it.
    pub samples: u64,
    /// Samples missing at its end and not at its beginning; negative when more missing samples
    /// arrived than new ones were lost. Always 0 at a publisher.
    pub missing: i64,
}

/// What a publisher did.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// Samples sent.
    pub sent: u64,
    /// From the first to the last.
    pub sent_in: Duration,
    /// What the engine counted itself about losses.
    pub engine: EngineCounts,
    /// Whether everything was acknowledged, as far as the engine has such a thing.
    pub flushed: bool,
    /// What this end's host did.
    pub watched: Watched,
}

/// What a subscriber saw.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    /// Counts from the first sample of each publisher on.
    pub counts: SequenceCounts,
    /// From the first arrival to the last.
    pub received_in: Duration,
    /// Samples of wrong size or content.
    pub corrupt: u64,
    /// Whether the final marker of every publisher arrived: otherwise samples lost at the end are
    /// not counted.
    pub is_complete: bool,
    /// Loss attribution, from this host's counters only.
    pub loss: LossAttribution,
    /// What this end's host did.
    pub watched: Watched,
}

/// What a pinger found.
#[derive(Clone, Debug, PartialEq)]
pub struct Pinged {
    /// Half round trips.
    pub outcome: PingerOutcome,
    /// What this end's host did.
    pub watched: Watched,
}

/// What a ponger did.
#[derive(Clone, Debug, PartialEq)]
pub struct Echoed {
    /// Pings that were sent back.
    pub pings: u64,
    /// What this end's host did.
    pub watched: Watched,
}

/// Publishes for the case's duration and ends with the final marker.
///
/// # Errors
/// Of the engine, or when no subscriber was there in time.
pub fn publish(
    engine: &dyn Engine,
    options: &HandOptions<'_>,
    on_event: &mut dyn FnMut(HandEvent),
) -> Result<Published, EndpointError> {
    let case = options.case;
    let (mut end, watching) = begin(|| engine.open_publisher(case), options, on_event, |_| Ok(()))?;
    let start_ns = end.now_ns();
    let end_ns = start_ns.saturating_add(nanos(case.duration));
    let mut pace = Pace::new(end.as_ref(), case);
    let mut meter = Meter::new(start_ns);
    let mut now_ns = start_ns;
    while now_ns < end_ns && !is_interrupted(options) {
        now_ns = pace.publish_until(end.as_mut(), end_ns.min(now_ns.saturating_add(SLICE_NS)), 0)?;
        meter.look(now_ns, pace.next, 0, on_event);
    }
    publish_last(end.as_mut(), case, pace.next)?;
    let flushed = end.flush(FLUSH_WAIT + case.allowance())?;
    let sent_in = Duration::from_nanos(now_ns - start_ns);
    let watched = watching.stop(Some(pace.next));
    Ok(Published { sent: pace.next, sent_in, engine: end.report().engine, flushed, watched })
}

/// Receives until every publisher's final marker has arrived and the stream is complete or quiet,
/// or until the case's duration is over.
///
/// # Errors
/// Of the engine, or when nothing arrived in time.
pub fn subscribe(
    engine: &dyn Engine,
    options: &HandOptions<'_>,
    on_event: &mut dyn FnMut(HandEvent),
) -> Result<Received, EndpointError> {
    let case = options.case;
    let (mut end, watching) = begin(|| engine.open_subscriber(case), options, on_event, |_| Ok(()))?;
    let mut sink = SampleSink::joining(case);
    let mut window = ArrivalWindow::new(end.now_ns(), options);
    let mut meter = None;
    let mut is_complete = false;
    while !is_interrupted(options) {
        let arrivals_before = sink.arrivals();
        end.receive(&mut sink, RECEIVE_WAIT)?;
        let now_ns = end.now_ns();
        if sink.arrivals() != arrivals_before {
            window.arrived(now_ns);
        }
        if let Some(first_ns) = window.first_ns {
            let counts = sink.counts();
            let meter = meter.get_or_insert_with(|| Meter::new(first_ns));
            meter.look(now_ns, counts.received, counts.lost, on_event);
        }
        if let Some(sent) = sink.finals()
            && (sink.has_all(&sent) || window.is_quiet(now_ns))
        {
            sink.finish(&sent);
            is_complete = true;
            break;
        }
        if window.is_over(now_ns) {
            break;
        }
    }
    let received_in = window.length(&sink)?;
    let (counts, arrivals) = (sink.counts(), sink.arrivals());
    let watched = watching.stop(Some(arrivals));
    let loss = explain(&counts, arrivals, end.report().engine, &watched.drops);
    Ok(Received { counts, received_in, corrupt: sink.corrupt(), is_complete, loss, watched })
}

/// Pings for the case's duration.
///
/// # Errors
/// Of the engine, when no ponger was there in time, or when it went away.
pub fn ping(
    engine: &dyn Engine,
    options: &HandOptions<'_>,
    on_event: &mut dyn FnMut(HandEvent),
) -> Result<Pinged, EndpointError> {
    let open = || engine.open_pinger(options.case);
    let (mut end, watching) = begin(open, options, on_event, |end| await_echo(end, options))?;
    let outcome = latency::run_pinger(end.as_mut(), options.case, options.interrupted, None)?;
    Ok(Pinged { watched: watching.stop(Some(outcome.sent)), outcome })
}

/// Echoes for the case's duration, or until interrupted when that is zero; returns how many pings.
///
/// # Errors
/// Of the engine, or when no pinger was there in time.
pub fn echo(
    engine: &dyn Engine,
    options: &HandOptions<'_>,
    on_event: &mut dyn FnMut(HandEvent),
) -> Result<Echoed, EndpointError> {
    let (mut end, watching) = begin(|| engine.open_ponger(options.case), options, on_event, |_| Ok(()))?;
    let pings = echo_until(end.as_mut(), options)?;
    Ok(Echoed { pings, watched: watching.stop(Some(pings)) })
}

/// Opens an end and finds the other one; `meet` makes sure of that, where the engine alone cannot.
fn begin<E: End + ?Sized>(
    open: impl FnOnce() -> Result<Box<E>, EndpointError>,
    options: &HandOptions<'_>,
    on_event: &mut dyn FnMut(HandEvent),
    meet: impl FnOnce(&mut E) -> Result<(), EndpointError>,
) -> Result<(Box<E>, Watching), EndpointError> {
    let watch = Watch::new(options.case);
    pin(options)?;
    let mut end = open()?;
    join(&mut *end, options)?;
    meet(&mut *end)?;
    on_event(HandEvent::Joined);
    Ok((end, watch.start(None)))
}

fn echo_until(end: &mut dyn Ponger, options: &HandOptions<'_>) -> Result<u64, EndpointError> {
    if options.case.duration.is_zero() {
        return end.echo(options.interrupted);
    }
    let (stop, is_done) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            let end_ns = clock::now_ns().saturating_add(nanos(options.case.duration));
            while !is_done.load(Ordering::Acquire) && !is_interrupted(options) && clock::now_ns() < end_ns {
                thread::sleep(LOOK_WAIT);
            }
            stop.store(true, Ordering::Release);
        });
        let echoed = end.echo(&stop);
        is_done.store(true, Ordering::Release);
        echoed
    })
}

/// How often an end checks whether it is interrupted.
const LOOK_WAIT: Duration = Duration::from_millis(20);

/// How long one attempt to find the other end takes.
const JOIN_TRY: Duration = Duration::from_millis(200);

/// How long a publisher sends between two checks for an interrupt.
const SLICE_NS: u64 = 100_000_000;

/// How long an interval is at least.
const INTERVAL_NS: u64 = 1_000_000_000;

/// Final markers of a best-effort publisher: each may be lost.
const LAST_TIMES: u32 = 5;

/// The pause before each final marker, for samples in flight.
const LAST_PAUSE: Duration = Duration::from_millis(20);

/// The first number of pings that only search for the other end.
const JOIN_SEQUENCE: u64 = 1 << 31;

fn is_interrupted(options: &HandOptions<'_>) -> bool {
    options.interrupted.load(Ordering::Acquire)
}

fn pin(options: &HandOptions<'_>) -> Result<(), EndpointError> {
    options.cpu.map_or(Ok(()), weir_udp::affinity::pin_process).map_err(|source| {
        EndpointError::Environment(format!("cannot run on the requested processor (--cpu): {source}"))
    })
}

/// Finds the other end, as far as the engine can: raw UDP cannot.
fn join(end: &mut (impl End + ?Sized), options: &HandOptions<'_>) -> Result<(), EndpointError> {
    if end.address().is_some() && options.peer.is_none() {
        let engine = &options.case.engine;
        let text = format!("{engine} has no discovery: give the address of the other end with --peer");
        return Err(EndpointError::Environment(text));
    }
    let until_ns = clock::now_ns().saturating_add(nanos(options.patience));
    loop {
        match end.connect(options.peer, JOIN_TRY) {
            Err(EndpointError::NoPeer(_)) if clock::now_ns() < until_ns && !is_interrupted(options) => {}
            Err(EndpointError::NoPeer(_)) => return Err(no_peer(end.mismatch(), options)),
            joined => return joined,
        }
    }
}

/// The error after the last attempt: the attempts' own errors name the time of one attempt only.
fn no_peer(mismatch: Option<String>, options: &HandOptions<'_>) -> EndpointError {
    let unseen = || format!("the other end was not found within {:?}", options.patience);
    EndpointError::NoPeer(format!("{}: {SAME}", mismatch.unwrap_or_else(unseen)))
}

/// What to check when two ends do not find each other.
const SAME: &str = "do both ends have the same --engine, --size, --reliability, --instances and --domain, \
                    the right --interface, and --ping with --echo?";

/// Pings until the first echo, for engines without discovery.
fn await_echo(end: &mut dyn Pinger, options: &HandOptions<'_>) -> Result<(), EndpointError> {
    let until_ns = clock::now_ns().saturating_add(nanos(options.patience));
    let timeout = JOIN_TRY + options.case.allowance();
    let mut sequence = JOIN_SEQUENCE;
    while !end.ping(sequence, end.now_ns(), timeout)? {
        sequence += 1;
        if clock::now_ns() >= until_ns || is_interrupted(options) {
            let text =
                format!("no ping was echoed within {:?}: is `weir sub --echo` running?", options.patience);
            return Err(EndpointError::NoPeer(text));
        }
    }
    Ok(())
}

fn publish_last(end: &mut dyn Publisher, case: &CaseSpec, sent: u64) -> Result<(), EndpointError> {
    if case.reliability == Reliability::Reliable {
        // The marker follows all samples, and may have to wait for room.
        end.flush(FLUSH_WAIT + case.allowance())?;
        return end.publish_last(sent).map(drop);
    }
    for _ in 0..LAST_TIMES {
        end.flush(FLUSH_WAIT)?;
        thread::sleep(LAST_PAUSE);
        end.publish_last(sent)?;
    }
    Ok(())
}

/// Loss attribution by the receiving host alone: without the sender's counters, what this host does
/// not explain stays unplaced.
fn explain(
    counts: &SequenceCounts,
    arrivals: u64,
    engine: EngineCounts,
    drops: &DropCounters,
) -> LossAttribution {
    let sender = DropCounters::default();
    let carried = Carried::measured(0, &sender, arrivals, drops, SAMPLES_MAX);
    let evidence =
        LossEvidence { refused: None, ..LossEvidence::new(counts.lost, engine, &sender, drops, carried) };
    LossAttribution { sender, receiver: drops.clone(), ..attribute(&evidence) }
}

/// Samples of one buffer of the kernel at most. Only the publisher knows whether it puts samples together: as many as a
/// message may have datagrams (`UDP_MAX_SEGMENTS`).
const SAMPLES_MAX: u64 = 128;

/// When samples arrived, and how long to wait for more.
struct ArrivalWindow {
    start_ns: u64,
    first_ns: Option<u64>,
    last_ns: u64,
    patience_ns: u64,
    /// Zero: no limit.
    duration_ns: u64,
    quiet_ns: u64,
}

impl ArrivalWindow {
    fn new(start_ns: u64, options: &HandOptions<'_>) -> Self {
        let case = options.case;
        Self {
            start_ns,
            first_ns: None,
            last_ns: start_ns,
            patience_ns: nanos(options.patience),
            duration_ns: nanos(case.duration),
            quiet_ns: nanos(quiet_time(case)),
        }
    }

    fn arrived(&mut self, now_ns: u64) {
        self.first_ns.get_or_insert(now_ns);
        self.last_ns = now_ns;
    }

    fn is_quiet(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.last_ns) >= self.quiet_ns
    }

    /// Whether the time is over: the case's, from the first sample on, or the time-out before.
    fn is_over(&self, now_ns: u64) -> bool {
        match self.first_ns {
            Some(first_ns) => self.duration_ns > 0 && now_ns.saturating_sub(first_ns) >= self.duration_ns,
            None => now_ns.saturating_sub(self.start_ns) >= self.patience_ns,
        }
    }

    fn length(&self, sink: &SampleSink) -> Result<Duration, EndpointError> {
        match self.first_ns {
            Some(first_ns) if sink.arrivals() > 0 => Ok(Duration::from_nanos(self.last_ns - first_ns)),
            _ => {
                let text = "no sample arrived: does the other end run, with the same --size?".to_owned();
                Err(EndpointError::NoPeer(text))
            }
        }
    }
}

/// Cuts a stream into intervals.
struct Meter {
    first_ns: u64,
    from_ns: u64,
    samples: u64,
    lost: u64,
}

impl Meter {
    fn new(now_ns: u64) -> Self {
        Self { first_ns: now_ns, from_ns: now_ns, samples: 0, lost: 0 }
    }

    /// Reports an interval when it is over; `samples` and `lost` count from the beginning.
    fn look(&mut self, now_ns: u64, samples: u64, lost: u64, on_event: &mut dyn FnMut(HandEvent)) {
        if now_ns.saturating_sub(self.from_ns) < INTERVAL_NS {
            return;
        }
        on_event(HandEvent::Interval(Interval {
            from: Duration::from_nanos(self.from_ns - self.first_ns),
            length: Duration::from_nanos(now_ns - self.from_ns),
            samples: samples - self.samples,
            missing: lost.cast_signed().wrapping_sub(self.lost.cast_signed()),
        }));
        (self.from_ns, self.samples, self.lost) = (now_ns, samples, lost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::tests::case;
    use crate::engine;
    use weir_results::Test;

    fn options<'a>(case: &'a CaseSpec, interrupted: &'a AtomicBool) -> HandOptions<'a> {
        HandOptions { case, peer: None, cpu: None, patience: Duration::from_secs(20), interrupted }
    }

    fn intervals(events: &[HandEvent]) -> Vec<Interval> {
        let of = |event: &HandEvent| match event {
            HandEvent::Interval(interval) => Some(*interval),
            HandEvent::Joined => None,
        };
        events.iter().filter_map(of).collect()
    }

    #[test]
    fn a_publisher_tells_of_each_second_and_of_all() {
        let interrupted = AtomicBool::new(false);
        let case = CaseSpec {
            duration: Duration::from_millis(2500),
            warmup: Duration::ZERO,
            ..case("mock", Test::Throughput)
        };
        let mut events = Vec::new();
        let engine = engine::find("mock").unwrap();
        let published =
            publish(engine, &options(&case, &interrupted), &mut |event| events.push(event)).unwrap();
        assert_eq!(events[0], HandEvent::Joined);
        let seconds = intervals(&events);
        assert_eq!(seconds.len(), 2);
        assert!(seconds[1].from >= Duration::from_secs(1) && seconds[1].missing == 0, "{seconds:?}");
        assert!((249_000..250_000).contains(&published.sent) && published.flushed, "{published:?}");
    }

    #[test]
    fn a_subscriber_ends_with_the_final_markers_and_counts_what_is_lost() {
        let interrupted = AtomicBool::new(false);
        let case = CaseSpec {
            duration: Duration::ZERO,
            warmup: Duration::from_millis(1500),
            ..case("mock", Test::Throughput).with(|case| case.ends.publishers = 2)
        };
        let mut events = Vec::new();
        let engine = engine::find("mock").unwrap();
        let received =
            subscribe(engine, &options(&case, &interrupted), &mut |event| events.push(event)).unwrap();
        let each = received.counts.lost / 2;
        assert!(received.is_complete && each > 100, "{received:?}");
        assert_eq!(intervals(&events).len(), 1);
        assert!(intervals(&events)[0].missing > 100);
    }

    #[test]
    fn a_real_stream_and_a_real_ping_pong_between_two_ends() {
        let interrupted = AtomicBool::new(false);
        let engine = engine::find("udp").unwrap();
        let [one, other] = ports();
        let at = |port| Some(SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, port));
        let of =
            |test, port| case("udp", test).with(|case| (case.place.port, case.verify) = (Some(port), true));
        let cases = |test| (of(test, one), CaseSpec { duration: Duration::ZERO, ..of(test, other) });
        let (here, there) = cases(Test::Throughput);
        thread::scope(|scope| {
            let (joined, is_joined) = std::sync::mpsc::channel();
            let subscriber = HandOptions { peer: at(one), ..options(&there, &interrupted) };
            let received = scope.spawn(move || {
                subscribe(engine, &subscriber, &mut |event| {
                    if event == HandEvent::Joined {
                        joined.send(()).unwrap();
                    }
                })
            });
            is_joined.recv().unwrap();
            let publisher = HandOptions { peer: at(other), ..options(&here, &interrupted) };
            let published = publish(engine, &publisher, &mut |_| {}).unwrap();
            let received = received.join().unwrap().unwrap();
            let all = received.counts.received + received.counts.lost;
            assert!(received.is_complete && all <= published.sent && received.corrupt == 0, "{received:?}");
        });
        let (here, there) = cases(Test::Latency);
        thread::scope(|scope| {
            let ponger = HandOptions { peer: at(one), ..options(&there, &interrupted) };
            let (joined, is_joined) = std::sync::mpsc::channel();
            let echoed = scope.spawn(move || echo(engine, &ponger, &mut |_| joined.send(()).unwrap()));
            // The first pings would be lost before its socket is open.
            is_joined.recv().unwrap();
            // Also if the pinger fails: otherwise the ponger would wait for ever.
            let interrupt = Interrupt(&interrupted);
            let pinger = HandOptions { peer: at(other), ..options(&here, &interrupted) };
            let outcome = ping(engine, &pinger, &mut |_| {}).unwrap();
            drop(interrupt);
            let count = outcome.outcome.summary.count;
            assert!(count > 0);
            assert!(echoed.join().unwrap().unwrap().pings >= count);
        });
    }

    /// Interrupts the ends when it is dropped.
    struct Interrupt<'a>(&'a AtomicBool);

    impl Drop for Interrupt<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Release);
        }
    }

    /// Two ports that were free.
    fn ports() -> [u16; 2] {
        let sockets = [(); 2].map(|()| std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
        sockets.each_ref().map(|socket| socket.local_addr().unwrap().port())
    }

    #[test]
    fn an_engine_without_discovery_needs_an_address() {
        let interrupted = AtomicBool::new(false);
        let case = case("udp", Test::Throughput);
        let engine = engine::find("udp").unwrap();
        let error = publish(engine, &options(&case, &interrupted), &mut |_| {}).unwrap_err();
        assert!(error.to_string().contains("--peer"), "{error}");
    }
}
