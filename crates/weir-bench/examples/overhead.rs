//! The cost of the harness per sample: `cargo run --release -p weir-bench --example overhead`.
//!
//! The loops are those of the two processes of a case. The mock engine replaces the network: it
//! generates samples and its own time, and reads the host's clock wherever the harness reads one.
//! What remains is the harness, its clock reads and, as an upper bound, the few nanoseconds in
//! which the mock generates a sample. For other engines it is the cost of their listeners.

#![expect(clippy::print_stdout, reason = "the figures are its output")]

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weir_bench::by_hand::{self, HandOptions};
use weir_bench::case::CaseSpec;
use weir_bench::endpoint::Engine;
use weir_bench::inbox::{Collector, Inbox};
use weir_bench::latency::Pings;
use weir_bench::open_loop::schedule;
use weir_bench::payload::SampleHeader;
use weir_bench::ping_pong::PingPong;
use weir_bench::sink::SampleSink;
use weir_bench::{engine, latency, throughput};
use weir_measure::{Signal, clock};
use weir_peer_api::{Header, PeerError, Writer, Written};
use weir_results::{Reliability, Test};

fn main() -> Result<(), Box<dyn Error>> {
    let mock = engine::find(MOCK).ok_or("no mock engine in this build")?;
    let (stream, echo) = (case(Test::Throughput), case(Test::Latency));
    let mut scheduled = case(Test::Latency);
    // As fast as the mock's publisher: each sample is due by itself.
    scheduled.method.samples_per_s = Some(90_000.0);
    println!("Harness per sample, clock reads included, nanoseconds: median (slowest) of {RUNS}");
    show("stream: publisher", || published(mock, &stream))?;
    show("stream: subscriber", || received(mock, &stream))?;
    show("open loop: publisher", || published(mock, &scheduled))?;
    show("open loop: subscriber", || received(mock, &scheduled))?;
    show("ping-pong: pinger", || pinged(mock, &echo))?;
    let interrupted = AtomicBool::new(false);
    let patience = Duration::from_secs(1);
    let by_hand = HandOptions { case: &stream, peer: None, cpu: None, patience, interrupted: &interrupted };
    show("stream by hand: publisher", || published_by_hand(mock, &by_hand))?;
    show("stream by hand: subscriber", || received_by_hand(mock, &by_hand))?;
    show("listener of others, stream: subscriber", || Ok(listened(&stream)))?;
    show("listener of others, open loop: subscriber", || Ok(listened(&scheduled)))?;
    show("listener of others, ping-pong: pinger", || rallied(&echo))?;
    show("a clock read", || Ok(clock_read()))
}

const MOCK: &str = "mock-clock";

const RUNS: usize = 9;

/// How many samples are counted where no engine says how many there are.
const SAMPLES: u64 = 1_000_000;

/// Samples that a listener of another engine gets between two visits of the harness, at a million
/// samples per second.
const INBOX_SAMPLES: u64 = 2_000;

fn published(mock: &dyn Engine, case: &CaseSpec) -> Result<f64, Box<dyn Error>> {
    let mut end = mock.open_publisher(case)?;
    let start = Instant::now();
    let sent = throughput::run_publisher(end.as_mut(), case, schedule(case, 0))?.sent;
    Ok(nanoseconds(start, sent))
}

fn received(mock: &dyn Engine, case: &CaseSpec) -> Result<f64, Box<dyn Error>> {
    let schedule = schedule(case, 0);
    let sent = throughput::run_publisher(mock.open_publisher(case)?.as_mut(), case, schedule)?.sent;
    let signal = Signal::new();
    signal.finish(vec![sent]);
    let mut end = mock.open_subscriber(case)?;
    let start = Instant::now();
    let outcome = throughput::run_subscriber(end.as_mut(), case, &signal, schedule, None)?;
    Ok(nanoseconds(start, outcome.arrivals))
}

fn published_by_hand(mock: &dyn Engine, options: &HandOptions<'_>) -> Result<f64, Box<dyn Error>> {
    let start = Instant::now();
    let sent = by_hand::publish(mock, options, &mut |_| {})?.sent;
    Ok(nanoseconds(start, sent))
}

fn received_by_hand(mock: &dyn Engine, options: &HandOptions<'_>) -> Result<f64, Box<dyn Error>> {
    let start = Instant::now();
    let received = by_hand::subscribe(mock, options, &mut |_| {})?.counts.received;
    Ok(nanoseconds(start, received))
}

fn pinged(mock: &dyn Engine, case: &CaseSpec) -> Result<f64, Box<dyn Error>> {
    let mut end = mock.open_pinger(case)?;
    let start = Instant::now();
    let sent = latency::run_pinger(end.as_mut(), case, &AtomicBool::new(false), None)?.sent;
    Ok(nanoseconds(start, sent))
}

/// A listener puts samples in, and the harness takes them out.
fn listened(case: &CaseSpec) -> f64 {
    let (inbox, mut collector) = (Inbox::new(case), Collector::new());
    let mut sink = SampleSink::new(case).following(schedule(case, clock::now_ns()));
    let payload = vec![0; case.size_bytes - Header::SERIALIZED_BYTES];
    let start = Instant::now();
    for sequence in 0..SAMPLES {
        inbox.push(&SampleHeader::data(sequence, 0), &payload);
        if sequence % INBOX_SAMPLES == INBOX_SAMPLES - 1 {
            collector.collect(&inbox, &mut sink);
        }
    }
    nanoseconds(start, sink.arrivals())
}

/// Each ping is echoed at once, to the listener that sends the next one.
fn rallied(case: &CaseSpec) -> Result<f64, Box<dyn Error>> {
    let ping_pong = PingPong::new(case);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let pinger = scope.spawn(|| ping_pong.run(&Discarding, Pings::new(case, clock::now_ns()), &stop));
        while !ping_pong.is_under_way() {
            std::thread::yield_now();
        }
        let start = Instant::now();
        for sequence in 0..SAMPLES {
            ping_pong.answer(&Discarding, &SampleHeader::ping(sequence, 0, 0));
        }
        let figure = nanoseconds(start, SAMPLES);
        stop.store(true, Ordering::Relaxed);
        let sent = pinger.join().map_err(|_| "the pinger panicked")??.outcome().sent;
        // The last one is in flight.
        if sent == SAMPLES + 1 { Ok(figure) } else { Err(format!("{sent} pings were sent").into()) }
    })
}

struct Discarding;

impl Writer for Discarding {
    fn write(&self, _: &Header, _: &[u8]) -> Result<Written, PeerError> {
        Ok(Written::Taken)
    }
}

fn clock_read() -> f64 {
    let start = Instant::now();
    for _ in 0..SAMPLES {
        std::hint::black_box(clock::now_ns());
    }
    nanoseconds(start, SAMPLES)
}

fn show(what: &str, mut run: impl FnMut() -> Result<f64, Box<dyn Error>>) -> Result<(), Box<dyn Error>> {
    let mut figures = (0..RUNS).map(|_| run()).collect::<Result<Vec<f64>, _>>()?;
    figures.sort_by(f64::total_cmp);
    println!("  {what:<42} {:5.1} ({:.1})", figures[RUNS / 2], figures[RUNS - 1]);
    Ok(())
}

fn nanoseconds(start: Instant, samples: u64) -> f64 {
    start.elapsed().as_nanos() as f64 / samples.max(1) as f64
}

/// 20 seconds of the mock's time: two million samples in a fraction of a second.
fn case(test: Test) -> CaseSpec {
    CaseSpec {
        reliability: Reliability::Reliable,
        duration: Duration::from_secs(20),
        warmup: Duration::from_secs(1),
        ..CaseSpec::new(MOCK, test)
    }
}
