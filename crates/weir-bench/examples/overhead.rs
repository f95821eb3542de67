//! What the harness itself costs per sample: `cargo run --release -p weir-bench --example overhead`.
//!
//! The mock engine carries samples without a network and makes its own time, so that what passes on the real clock is
//! the harness's loops and, as an upper bound, the few nanoseconds in which the mock makes up a sample.

#![expect(clippy::print_stdout, reason = "the figures are its output")]

use std::error::Error;
use std::net::Ipv4Addr;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use weir_bench::case::{CaseSpec, Method};
use weir_bench::engine;
use weir_bench::open_loop::{self, Schedule};
use weir_bench::signal::Signal;
use weir_bench::{latency, throughput};
use weir_results::{Reliability, Test, WaitStrategy};

fn main() -> Result<(), Box<dyn Error>> {
    let mock = engine::find("mock").ok_or("no mock engine in this build")?;
    let stream = case(Test::Throughput);
    // The median of a few: the machine does other things, too.
    let mut sent = 0;
    let publisher = median(|| {
        let mut end = mock.open_publisher(&stream)?;
        let start = Instant::now();
        let outcome = throughput::run_publisher(end.as_mut(), &stream)?;
        sent = outcome.sent;
        Ok(per_sample(start, outcome.sent))
    })?;
    let subscriber = median(|| received(&stream, sent, None))?;
    let mut scheduled = case(Test::Latency);
    // As fast as the mock's publisher: each sample is due by itself.
    scheduled.method.samples_per_s = Some(90_000.0);
    let schedule = Schedule::new(&scheduled, 0).ok_or("a case without a schedule")?;
    let on_time = median(|| {
        let mut end = mock.open_publisher(&scheduled)?;
        let start = Instant::now();
        let outcome = open_loop::run_publisher(end.as_mut(), &scheduled, &schedule)?;
        Ok(per_sample(start, outcome.sent))
    })?;
    let timed = median(|| received(&scheduled, schedule.count(), Some(schedule)))?;
    let echo = case(Test::Latency);
    let pinger = median(|| {
        let mut end = mock.open_pinger(&echo)?;
        let start = Instant::now();
        let outcome = latency::run_pinger(end.as_mut(), &echo, &AtomicBool::new(false))?;
        Ok(per_sample(start, outcome.sent))
    })?;
    println!("Harness per sample, nanoseconds (median of {RUNS})");
    println!("  throughput: publisher {publisher:.1}, subscriber {subscriber:.1}");
    println!("  open loop:  publisher {on_time:.1}, subscriber {timed:.1}");
    println!("  ping-pong:  pinger {pinger:.1}");
    println!(
        "The clock is the mock's. A read of the real one takes {:.1} ns here: two per ping, one per sample",
        clock_ns()
    );
    println!("that arrives in an open loop or is sent alone in one, one per burst or batch of a stream.");
    Ok(())
}

const RUNS: usize = 9;

/// What the subscriber's side takes for samples that were `sent`.
fn received(case: &CaseSpec, sent: u64, schedule: Option<Schedule>) -> Result<f64, Box<dyn Error>> {
    let mut end = engine::find(&case.engine).ok_or("no such engine")?.open_subscriber(case)?;
    let signal = Signal::new();
    signal.finish(vec![sent]);
    let start = Instant::now();
    let arrivals = throughput::run_subscriber(end.as_mut(), case, &signal, schedule)?.arrivals;
    Ok(per_sample(start, arrivals))
}

fn clock_ns() -> f64 {
    const READS: u64 = 1_000_000;
    let start = Instant::now();
    for _ in 0..READS {
        std::hint::black_box(weir_bench::clock::now_ns());
    }
    per_sample(start, READS)
}

fn median(mut run: impl FnMut() -> Result<f64, Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
    let mut figures = (0..RUNS).map(|_| run()).collect::<Result<Vec<f64>, _>>()?;
    figures.sort_by(f64::total_cmp);
    Ok(figures[RUNS / 2])
}

fn per_sample(start: Instant, samples: u64) -> f64 {
    start.elapsed().as_nanos() as f64 / samples.max(1) as f64
}

/// 20 seconds of the mock's time: two million samples in a fraction of a second.
fn case(test: Test) -> CaseSpec {
    CaseSpec {
        engine: "mock".to_owned(),
        test,
        reliability: Reliability::Reliable,
        size_bytes: 32,
        instances: 0,
        batch_bytes: 0,
        publishers: 1,
        subscribers: 1,
        entity_id: 0,
        multicast: false,
        loans: false,
        wait: WaitStrategy::Block,
        repeat: 1,
        duration: Duration::from_secs(20),
        warmup: Duration::from_secs(1),
        verify: false,
        domain: 0,
        run_id: 0,
        interface: "lo".to_owned(),
        address: Ipv4Addr::LOCALHOST,
        port: None,
        socket_buffer_bytes: CaseSpec::SOCKET_BUFFER_BYTES,
        cpus: None,
        method: Method::default(),
        settings: std::collections::BTreeMap::default(),
    }
}
