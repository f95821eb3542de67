//! A report of 500 cases: how large it is, and how long it takes.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use weir_report::{NamedRun, ReportOptions, html_report};
use weir_results::{
    AgeSeries, AgeSummary, Case, ClockRelation, Direction, Discovery, Environment, LatencyBreakdown,
    LatencyKind, LatencyRecorder, LinkFigures, LinkSeries, NotMeasured, PathFigures, PathReading,
    Reliability, Run, ScheduleLag, Test, ThroughputSummary, TopicGroupFigures, Trip, UdpFigures, UdpMode,
    WaitStrategy, Warning, WorkloadFigures, WorkloadProcess,
};

use crate::html::latency;

const ENGINES: [&str; 5] = ["udp", "weir", "cyclonedds", "fastdds-tuned", "rustdds"];

/// Cases of all engines with each of some sizes, in `repeats` repeats.
fn each(sizes: &[u64], repeats: u32, case: impl Fn(&str, u64, u64) -> Case) -> Vec<Case> {
    let mut cases = Vec::new();
    for repeat in 1..=repeats {
        for (number, engine) in (0..).zip(ENGINES) {
            for size in sizes {
                let seed = number + size % 13 + u64::from(repeat);
                cases.push(case(engine, *size, seed).with(|it| it.conditions.repeat = repeat));
            }
        }
    }
    cases
}

/// What a stream has instead of latencies; the rest is that of a complete case.
fn stream(engine: &str, size: u64, seed: u64) -> Case {
    latency(engine, size, seed).with(|it| {
        it.point.test = Test::Throughput;
        (it.figures.latency_us, it.figures.histogram) = (None, None);
        it.figures.throughput = Some(ThroughputSummary {
            offered_samples_per_s: 123_456.7 + seed as f64,
            total_samples: 1_234_567 + seed,
            samples_per_s: 123_400.1 + seed as f64 * 17.3,
            mbps: 987.65 + seed as f64,
            lost: seed,
            lost_percent: seed as f64 / 100.0,
            samples_per_datagram: Some(17.25),
            datagrams_per_send: Some(3.5),
            ..ThroughputSummary::default()
        });
        it.evidence.warnings.push(Warning::LostSamples { lost: seed, permitted: true });
    })
}

fn with_breakdown(engine: &str, size: u64, seed: u64) -> Case {
    let trip = |number: u64| Trip([0, 1, 2, 3, 4, 5, 6].map(|stage| stage * (1000 + number * seed)));
    latency(engine, size, seed).with(|it| {
        it.conditions.wait = WaitStrategy::Spin;
        it.figures.breakdown = LatencyBreakdown::new(&[1, 2, 3].map(trip), 20, 1.5);
    })
}

fn ages(seed: u64, from_write: bool) -> AgeSeries {
    let steps =
        |scale: f64| (0..200_u64).map(|n| Some(scale * ((n * (seed + 3)) % 97) as f64)).collect::<Vec<_>>();
    let (mean_ms, p50_ms, p99_ms, max_ms) = (steps(1.0), steps(0.9), steps(5.0), steps(9.0));
    AgeSeries { step_ms: 50.0, from_write, mean_ms, p50_ms, p99_ms, max_ms }
}

fn scheduled(engine: &str, size: u64, seed: u64, percent: f64) -> Case {
    let mut recorder = LatencyRecorder::new();
    (1..=20_000).for_each(|n| recorder.record(20_000 + (n * n * (seed + 5)) % 90_000));
    latency(engine, size, seed).with(|it| {
        it.conditions.load_percent = Some(percent);
        it.conditions.rate_samples_per_s = Some(percent * 1000.0);
        it.figures.latency_us = Some(recorder.summary(LatencyKind::OneWay));
        it.figures.histogram = recorder.histogram(LatencyKind::OneWay);
        it.figures.throughput = stream(engine, size, seed).figures.throughput;
        it.figures.schedule_lag_us = Some(ScheduleLag { p50: 0.5, p99: 9.75, ..ScheduleLag::default() });
        it.figures.ages = Some(ages(seed, false));
    })
}

fn on_link(engine: &str, size: u64, seed: u64, link: &str) -> Case {
    stream(engine, size, seed).with(|it| {
        it.conditions.path = Some(link.to_owned());
        let bytes = |scale: u64| (0..100).map(|n| scale * ((n * (seed + 7)) % 89)).collect::<Vec<u64>>();
        let mut figures = LinkFigures::default();
        figures.to_subscribers.series = LinkSeries {
            step_ms: 100.0,
            offered_bytes: bytes(1000),
            delivered_bytes: bytes(900),
            queue_bytes: bytes(500),
        };
        figures.enter_payload(1_000_000 + seed);
        it.figures.link = Some(figures);
        let reading = PathReading { sent_bytes: 1_000_000 * seed, ..PathReading::default() };
        let readings = [reading; 100];
        let path = PathFigures::new(Ipv4Addr::LOCALHOST, Duration::from_millis(100), &readings, &reading);
        it.figures.paths = vec![path];
        it.figures.ages = Some(ages(seed, true));
    })
}

/// Round trips, streams at full speed in both directions, and streams by a schedule, of raw UDP.
fn udp(size: u64, seed: u64) -> Vec<Case> {
    let figures = |mode, direction| UdpFigures {
        mode,
        direction,
        flows: 1,
        ip_version: 4,
        jitter_us: Some(seed as f64),
        clocks: Some(ClockRelation { error_us: 8.5, ..ClockRelation::default() }),
        ..UdpFigures::default()
    };
    let of = |case: Case, mode: UdpMode, direction| {
        case.with(|it| {
            mode.engine().clone_into(&mut it.point.engine);
            it.point.reliability = Reliability::None;
            it.figures.udp = Some(figures(mode, direction));
        })
    };
    let modes = [UdpMode::Send, UdpMode::Sendmmsg, UdpMode::Gso];
    let mut cases = vec![of(latency("udp", size, seed), UdpMode::Send, Direction::Forward)];
    for direction in [Direction::Forward, Direction::Reverse] {
        cases.extend(modes.map(|mode| of(stream("udp", size, seed), mode, direction)));
    }
    for mode in modes {
        let case = scheduled("udp", size, seed, 10.0).with(|it| it.point.test = Test::Throughput);
        cases.push(of(case, mode, Direction::Forward));
    }
    cases
}

fn workload(engine: &str, name: &str, seed: u64) -> Case {
    let mut recorder = LatencyRecorder::new();
    (1..=5000).for_each(|n| recorder.record(20_000 + (n * n * (seed + 5)) % 90_000));
    let group = |number: u64| TopicGroupFigures {
        name: format!("kind {number}"),
        topics: 10,
        writers: 10,
        readers: 20,
        size_bytes: 100 << number,
        reliability: Reliability::Reliable,
        keep_last: None,
        instances: 0,
        rate_hz: 100.0,
        burst: 1,
        due_samples_per_s: 1000.0,
        sent_samples_per_s: 1000.0,
        expected: 20_000,
        received: 20_000 - seed,
        lost: seed,
        duplicates: 0,
        age_us: Some(AgeSummary { count: 20_000, p50: 101.5, p99: 900.25, p99_9: 1999.0, max: 5000.0 }),
        histogram: recorder.histogram(LatencyKind::OneWay),
        schedule_lag_us: Some(ScheduleLag::default()),
    };
    let process = |number: u64| WorkloadProcess {
        nodes: format!("camera {number}, planner 1"),
        cpu_percent: 12.5 + number as f64,
        ..WorkloadProcess::default()
    };
    Case::new(engine, Test::Workload, Reliability::None, 0).with(|it| {
        it.conditions.workload_name = Some(name.to_owned());
        it.conditions.workload_digest = Some("0123456789abcdef".to_owned());
        it.figures.workload = Some(WorkloadFigures {
            nodes: 20,
            topics: 60,
            cpu_percent: 80.0 + seed as f64,
            discovery: Some(Discovery { from_first_ms: 300.0, from_last_ms: 5.0, late_ms: 0.0 }),
            groups: (0..6).map(group).collect(),
            processes: (0..4).map(process).collect(),
            ..WorkloadFigures::default()
        });
    })
}

fn without_figures(engine: &str, size: u64, seed: u64) -> Case {
    Case::new(engine, Test::Throughput, Reliability::BestEffort, size).with(|it| {
        let reason = format!("the publisher did not finish within {seed} s");
        it.evidence.not_measured = Some(match seed % 2 {
            0 => NotMeasured::Failed { reason },
            _ => NotMeasured::NotSupported { reason: format!("samples of more than {size} bytes") },
        });
        it.evidence.warnings.push(Warning::NothingReceived);
    })
}

/// 500 cases of every kind of test, with all that a case can have.
fn every_kind() -> Run {
    let sizes = [32, 256, 1024, 8192, 65_536];
    // As many repeats as intervals need.
    let mut cases = each(&sizes[..3], 6, latency);
    cases.extend(each(&sizes[..3], 2, with_breakdown));
    for batch in [0, 8192] {
        let batched =
            |engine: &str, size, seed| stream(engine, size, seed).with(|it| it.point.batch_bytes = batch);
        cases.extend(each(&sizes, 2, batched));
    }
    for percent in [10.0, 50.0, 80.0, 95.0] {
        cases.extend(each(&sizes[..3], 1, |engine, size, seed| scheduled(engine, size, seed, percent)));
    }
    for link in ["wifi", "lte,loss=1%", "tun,mtu=1500,rate=100M,delay=10ms,queue=262144,seed=1"] {
        cases.extend(each(&sizes[..4], 1, |engine, size, seed| on_link(engine, size, seed, link)));
    }
    cases.extend((1..=6).flat_map(|number| udp(64 << number, number)));
    for name in ["robot", "trading", "telemetry"] {
        cases.extend(each(&[0], 4, |engine, _, seed| workload(engine, name, seed)));
    }
    cases.extend(each(&sizes[..4], 2, without_figures));
    assert_eq!(cases.len(), 500);
    Run { cases, ..Run::new(Environment::default()) }
}

#[test]
fn a_report_of_five_hundred_cases_of_every_kind_takes_less_than_three_megabytes() {
    let run = every_kind();
    let named = NamedRun { name: "run", run: &run, published: &[] };
    let start = Instant::now();
    let page = html_report(&[named], &ReportOptions { costs: true, ..ReportOptions::default() });
    // Shown by `--nocapture`, and for an optimised build only a figure.
    println!("{} bytes in {:.2} s", page.len(), start.elapsed().as_secs_f64());
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
    for text in [
        "Latency against load",
        "UDP round trips",
        "UDP streams by a schedule",
        "Workload robot",
        "Stages of one-way",
    ] {
        assert!(page.contains(text), "{text}");
    }
}
