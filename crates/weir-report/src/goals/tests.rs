use weir_results::{
    Case, Discovery, Environment, LatencySummary, NotMeasured, ProcessFigures, Reliability, Test,
    ThroughputSummary, WaitStrategy, Warning,
};

use super::*;

fn in_series(series: &str, case: Case) -> Case {
    let settings = std::iter::once((select::SERIES.to_owned(), series.to_owned())).collect();
    case.with(|it| it.conditions.settings = settings)
}

fn latency(series: &str, engine: &str, reliability: Reliability, repeat: u32, p50: f64) -> Case {
    let latency_us = Some(LatencySummary { count: 9, p50, p99: p50 * 2.0, ..LatencySummary::default() });
    let case = Case::new(engine, Test::Latency, reliability, 32).with(|it| {
        it.conditions.repeat = repeat;
        it.figures.latency_us = latency_us;
    });
    in_series(series, case)
}

fn stream(series: &str, engine: &str, repeat: u32, samples_per_s: f64) -> Case {
    let throughput = Some(ThroughputSummary { samples_per_s, ..ThroughputSummary::default() });
    let case = Case::new(engine, Test::Throughput, Reliability::Reliable, 32).with(|it| {
        it.conditions.repeat = repeat;
        it.figures.throughput = throughput;
    });
    in_series(series, case)
}

fn rows(cases: Vec<Case>) -> Vec<GoalRow> {
    goals(&Run { cases, ..Run::new(Environment::default()) }, &[], &[])
}

fn table(cases: Vec<Case>) -> String {
    let run = Run { cases, ..Run::new(Environment::default()) };
    goals_table(&goals(&run, &[], &[]), &run)
}

/// The line with this measure and this word in its target.
fn row(cases: Vec<Case>, measure: &str, asked: &str) -> GoalRow {
    let rows = rows(cases);
    let found = rows.iter().find(|row| row.measure == measure && row.asked.contains(asked));
    found.unwrap_or_else(|| panic!("no line {measure}, {asked}")).clone()
}

#[test]
fn without_cases_nothing_can_be_told_and_every_line_says_why() {
    for row in rows(Vec::new()) {
        assert!(matches!(row.verdict, GoalVerdict::CannotTell), "{row:?}");
        assert!(row.figures.contains("not measured"), "{row:?}");
        assert!(!row.is_measured(), "{row:?}");
    }
}

#[test]
fn the_whole_interval_decides() {
    let check = |ratios: [f64; 6], verdict, measured: &str| {
        let mut cases = Vec::new();
        for (repeat, ratio) in (1..).zip(ratios) {
            // The machine's speed changes from pair to pair.
            let pace = f64::from(repeat);
            cases.push(latency("latency", "udp", Reliability::BestEffort, repeat, 10.0 * pace));
            cases.push(latency("latency", "weir", Reliability::BestEffort, repeat, 10.0 * pace * ratio));
        }
        let row = row(cases, "one-way p50, block, 32 B", "raw UDP");
        assert_eq!((row.verdict, row.measured.as_str()), (verdict, measured));
        assert_eq!(row.asked, "at most 1.10 x raw UDP");
    };
    check([1.04, 1.05, 1.06, 1.05, 1.04, 1.06], GoalVerdict::Reached, "1.05 [1.04, 1.06]");
    check([1.20, 1.25, 1.20, 1.21, 1.20, 1.22], GoalVerdict::Missed, "1.21 [1.20, 1.23]");
    check([1.00, 1.25, 1.05, 1.21, 1.02, 1.22], GoalVerdict::CannotTell, "1.13 [1.01, 1.23]");
}

#[test]
fn few_pairs_have_their_smallest_and_largest_for_an_interval() {
    let pair = |repeat, ratio: f64| {
        [stream("streams", "cyclonedds", repeat, 1e6), stream("streams", "weir", repeat, 1e6 * ratio)]
    };
    let measure = "reliable, unbatched, 32 B, zero lost";
    let verdict = |ratio| row([pair(1, 7.0), pair(2, ratio)].concat(), measure, "best DDS engine").verdict;
    assert_eq!(verdict(6.1), GoalVerdict::Reached);
    assert_eq!(verdict(5.9), GoalVerdict::CannotTell);
}

#[test]
fn the_best_peer_is_the_one_to_beat_and_one_that_loses_is_none() {
    let measure = "reliable, unbatched, 32 B, zero lost";
    let mut cases = vec![
        stream("streams", "weir", 1, 8e6),
        stream("streams", "cyclonedds", 1, 1e6),
        stream("streams", "fastdds-tuned", 1, 2e6),
    ];
    let found = row(cases.clone(), measure, "best DDS engine");
    assert_eq!(
        (found.verdict, found.figures.as_str()),
        (GoalVerdict::Missed, "weir 8.00 M/s; fastdds-tuned 2.00 M/s")
    );
    cases[2].figures.throughput.as_mut().unwrap().lost = 5;
    let found = row(cases.clone(), measure, "best DDS engine");
    assert_eq!((found.verdict, found.measured.as_str()), (GoalVerdict::Reached, "8.00 [8.00, 8.00]"));
    cases[0].figures.throughput.as_mut().unwrap().lost = 3;
    let found = row(cases, measure, "best DDS engine");
    assert_eq!(
        (found.verdict, found.figures.as_str()),
        (GoalVerdict::CannotTell, "weir: lost 3 reliable samples")
    );
    assert!(found.is_measured());
}

#[test]
fn an_engine_that_loses_reliable_samples_in_its_warm_up_has_no_figure() {
    let forbidden = Warning::LostSamples { lost: 3, permitted: false };
    let lossy = stream("streams", "weir", 1, 8e6).with(|it| it.evidence.warnings.push(forbidden));
    let cases = vec![lossy, stream("streams", "cyclonedds", 1, 1e6)];
    let found = row(cases, "reliable, unbatched, 32 B, zero lost", "best DDS engine");
    assert_eq!(found.figures, "weir: lost 3 reliable samples");
}

#[test]
fn an_engine_that_is_no_dds_is_in_the_rows_of_all_engines_only() {
    let measure = "reliable, unbatched, 32 B, zero lost";
    let cases = vec![
        stream("streams", "weir", 1, 8e6),
        stream("streams", "cyclonedds", 1, 1e6),
        stream("streams", "aeron-tuned", 1, 16e6),
    ];
    let of = |base| row(cases.clone(), measure, base);
    assert_eq!(of("best DDS engine").figures, "weir 8.00 M/s; cyclonedds 1.00 M/s");
    let all = of("x best engine");
    assert_eq!((all.verdict, all.asked.as_str()), (GoalVerdict::Shown, "shown, x best engine"));
    assert_eq!(
        (all.measured.as_str(), all.figures.as_str()),
        ("0.50 [0.50, 0.50]", "weir 8.00 M/s; aeron-tuned 16.0 M/s")
    );
}

#[test]
fn figures_are_asked_for_without_a_base_and_of_the_right_series_only() {
    let batched = |series, rate| stream(series, "weir", 1, rate).with(|it| it.point.batch_bytes = 8192);
    let measure = "reliable, batched or coalesced, 32 B, zero lost";
    let found = row(vec![batched("streams", 10.5e6)], measure, "10.0 M/s");
    assert_eq!(
        (found.verdict, found.measured.as_str()),
        (GoalVerdict::Reached, "10.5 M/s [10.5 M/s, 10.5 M/s]")
    );
    assert_eq!(row(vec![batched("keyed", 10.5e6)], measure, "10.0 M/s").verdict, GoalVerdict::CannotTell);
}

#[test]
fn what_could_not_be_run_says_why() {
    let reason = "spinning needs a processor".to_owned();
    let aeron = latency("spin", "aeron", Reliability::Reliable, 1, 1.0).with(|it| {
        it.conditions.wait = WaitStrategy::Spin;
        it.figures.latency_us = None;
        it.evidence.not_measured = Some(NotMeasured::Failed { reason });
    });
    let ours = latency("spin", "weir", Reliability::Reliable, 1, 1.0)
        .with(|it| it.conditions.wait = WaitStrategy::Spin);
    let found = row(vec![ours, aeron], "one-way p50, spin, reliable, 32 B", "Aeron");
    assert_eq!(found.figures, "aeron: spinning needs a processor; aeron-tuned: not measured");
}

#[test]
fn processor_time_is_that_of_both_ends_by_the_samples_of_each() {
    let end = |cpu_user_s, samples| {
        Some(ProcessFigures {
            cpu_user_s,
            cpu_system_s: 1.0,
            samples: Some(samples),
            ..ProcessFigures::default()
        })
    };
    let case = |engine, publisher, subscriber| {
        stream("streams", engine, 1, 1.0).with(|it| {
            it.figures.publisher = publisher;
            it.figures.subscriber = subscriber;
        })
    };
    let cases = vec![
        case("weir", end(1.0, 4_000_000), end(2.0, 2_000_000)),
        case("cyclonedds", end(3.0, 1_000_000), end(4.0, 1_000_000)),
    ];
    let found = row(cases, "processor time per million samples, 32 B", "best DDS engine");
    assert_eq!(
        (found.verdict, found.figures.as_str()),
        (GoalVerdict::Reached, "weir 2.00 s; cyclonedds 9.00 s")
    );
    assert_eq!(found.measured, "0.22 [0.22, 0.22]");
}

#[test]
fn under_loss_the_p99_is_compared_with_the_median_without() {
    let cases = vec![
        latency("loss", "weir", Reliability::Reliable, 1, 20.0).with(|it| it.point.size_bytes = 1024),
        latency("lossless", "weir", Reliability::Reliable, 1, 5.0).with(|it| it.point.size_bytes = 1024),
    ];
    let found = row(cases, "ping p99, 1 KiB, 10 % network loss", "lossless");
    assert_eq!((found.verdict, found.measured.as_str()), (GoalVerdict::Reached, "8.00 [8.00, 8.00]"));
}

#[test]
fn the_slowest_discovery_decides() {
    let case = |from_first_ms, from_last_ms, late_ms| {
        latency("discovery", "weir", Reliability::Reliable, 1, 1.0)
            .with(|it| it.figures.discovery = Some(Discovery { from_first_ms, from_last_ms, late_ms }))
    };
    let cases = vec![case(1.0, 0.5, 0.0), case(51.0, 0.5, 0.0), case(309.0, 9.0, 300.0)];
    let together = row(cases.clone(), "discovery, started together", "50 ms");
    assert_eq!((together.verdict, together.measured.as_str()), (GoalVerdict::Missed, "26.0 ms, most 51.0"));
    assert_eq!(row(cases, "discovery, one end late", "10 ms").verdict, GoalVerdict::Reached);
}

#[test]
fn a_repeat_of_ours_that_failed_is_not_left_out() {
    let failed = |case: Case| {
        case.with(|it| {
            it.figures.throughput = None;
            it.evidence.not_measured = Some(NotMeasured::Failed { reason: "it hung".to_owned() });
        })
    };
    let measure = "reliable, unbatched, 32 B, zero lost";
    let pair =
        |repeat| [stream("streams", "weir", repeat, 9e6), stream("streams", "cyclonedds", repeat, 1e6)];
    let mut cases = [pair(1), pair(2), pair(3)].concat();
    // A failed repeat of a peer only makes the pairs fewer.
    cases[3] = failed(cases[3].clone());
    assert_eq!(row(cases.clone(), measure, "best DDS engine").verdict, GoalVerdict::Reached);
    cases[4] = failed(cases[4].clone());
    let found = row(cases, measure, "best DDS engine");
    assert_eq!(
        (found.verdict, found.figures.as_str()),
        (GoalVerdict::CannotTell, "weir: 1 of 3 repeats have no figure: it hung")
    );
}

#[test]
fn a_rate_that_lost_too_much_once_is_not_one_without_loss() {
    let case = |percent, repeat, lost_percent| {
        stream("rates", "weir", repeat, 0.0).with(|it| {
            it.point.reliability = Reliability::BestEffort;
            it.point.test = Test::Latency;
            it.conditions.load_percent = Some(percent);
            it.figures.throughput = Some(ThroughputSummary {
                samples_per_s: percent * 1e4,
                lost_percent,
                ..ThroughputSummary::default()
            });
        })
    };
    let cases = vec![case(50.0, 1, 0.0), case(50.0, 2, 0.05), case(90.0, 1, 0.0), case(90.0, 2, 7.0)];
    let found = row(cases, "best effort, unbatched, 32 B: highest rate with under 0.1 % lost", "shown");
    assert_eq!(found.figures, "weir 500 k/s");
}

#[test]
fn ends_that_never_met_are_not_in_time() {
    let met = latency("discovery", "weir", Reliability::Reliable, 1, 1.0).with(|it| {
        it.figures.discovery = Some(Discovery { from_first_ms: 1.0, from_last_ms: 0.5, late_ms: 0.0 })
    });
    let never = met.clone().with(|it| {
        it.figures.discovery = None;
        it.figures.latency_us = None;
    });
    let found = row(vec![met, never], "discovery, started together", "50 ms");
    assert_eq!(
        (found.verdict, found.figures.as_str()),
        (GoalVerdict::CannotTell, "1 times, 1 cases without")
    );
}

#[test]
fn programs_at_rest_have_their_lines() {
    let program = AtRest {
        name: "hello".to_owned(),
        resident: Ok(5_900_000),
        stripped: Err("strip is not installed".to_owned()),
    };
    let rows = goals(&Run::new(Environment::default()), &[program], &[]);
    let [.., resident, stripped] = &rows[..] else { panic!("two lines") };
    assert_eq!((resident.verdict, resident.measured.as_str()), (GoalVerdict::Reached, "5.9 MB"));
    assert_eq!(
        (stripped.verdict, stripped.figures.as_str()),
        (GoalVerdict::CannotTell, "strip is not installed")
    );
}

#[test]
fn the_table_counts_the_verdicts() {
    let text = table(vec![stream("streams", "weir", 1, 8e6), stream("streams", "cyclonedds", 1, 1e6)]);
    assert!(text.contains("| reliable, unbatched, 32 B, zero lost"), "{text}");
    assert!(text.contains("\n1 met, 0 missed, "), "{text}");
}

#[test]
fn a_target_met_by_beating_the_baseline_is_inconclusive() {
    let with_ratio = |ratio: f64| {
        let of = |(repeat, pace): (u32, f64)| {
            let case = |engine, p50| latency("latency", engine, Reliability::BestEffort, repeat, p50);
            [case("udp", pace), case("weir", ratio * pace)]
        };
        table((1..=6).map(|repeat| (repeat, 10.0 + f64::from(repeat))).flat_map(of).collect())
    };
    let text = with_ratio(0.8);
    let (_, warning) =
        text.split_once("\n\nWarning: the median latency is 0.80 times that of udp").expect(&text);
    assert!(warning.trim_end().ends_with("32 B)"), "{text}");
    assert!(warning.lines().all(|line| line.len() <= 120), "{text}");
    assert!(!with_ratio(1.05).contains("Warning"));
    let verdict = |text: &str| {
        let row = text.lines().find(|line| line.contains("block, 32 B") && line.contains("1.10 x raw UDP"));
        let cells: Vec<String> = row.unwrap().split('|').map(|cell| cell.trim().to_owned()).collect();
        cells[4..6].join(": ")
    };
    let unusable = "inconclusive: weir 10.8 us; udp 13.5 us; unusable: faster than its baseline";
    assert_eq!(verdict(&text), unusable);
    assert_eq!(verdict(&with_ratio(1.05)), "met: weir 14.2 us; udp 13.5 us");
}

/// A stream of 63 000 B or more in the series `large`.
fn large(engine: &str, repeat: u32, size_bytes: u64, gbps: f64) -> Case {
    stream("large", engine, repeat, 1e3).with(|it| {
        it.point.size_bytes = size_bytes;
        it.point.reliability =
            if engine.starts_with("udp") { Reliability::None } else { Reliability::Reliable };
        it.figures.throughput.as_mut().unwrap().mbps = gbps * 1e3;
    })
}

#[test]
fn large_samples_are_compared_with_raw_udp_from_fresh_memory() {
    let cases = vec![
        large("udp", 1, 63_000, 60.0),
        large("udp-fresh", 1, 63_000, 40.0),
        large("weir", 1, 63_000, 36.0),
        large("weir", 1, 1 << 20, 29.0),
        large("weir", 1, 1 << 20, 38.0).with(|it| it.point.loans = true),
    ];
    let of = |measure: &str, base: &str| {
        let row = row(cases.clone(), measure, base);
        (row.asked, row.measured, row.verdict)
    };
    let expected = |asked: &str, measured: &str, verdict| (asked.to_owned(), measured.to_owned(), verdict);
    let fresh = "raw UDP, fresh memory";
    assert_eq!(
        of("reliable, 61.52 KiB, typed, zero lost", fresh),
        expected("at least 0.85 x raw UDP, fresh memory", "0.90 [0.90, 0.90]", GoalVerdict::Reached)
    );
    assert_eq!(
        of("reliable, 61.52 KiB, typed, zero lost", "shown, x raw UDP"),
        expected("shown, x raw UDP", "0.60 [0.60, 0.60]", GoalVerdict::Shown)
    );
    assert_eq!(
        of("reliable, 1 MiB, loans, zero lost", "0.85 x raw UDP"),
        expected("at least 0.85 x raw UDP", "0.63 [0.63, 0.63]", GoalVerdict::Missed)
    );
    assert_eq!(
        of("reliable, 1 MiB, typed, zero lost", fresh),
        expected("at least 0.75 x raw UDP, fresh memory", "0.72 [0.72, 0.72]", GoalVerdict::Missed)
    );
    assert_eq!(
        of("reliable, 1 MiB, loans, zero lost", fresh),
        expected("at least 0.95 x raw UDP, fresh memory", "0.95 [0.95, 0.95]", GoalVerdict::Reached)
    );
}

#[test]
fn batches_are_compared_with_the_best_of_aeron() {
    let measure = "reliable, batched or coalesced, 32 B, zero lost";
    let cases = vec![
        stream("streams", "weir", 1, 12e6).with(|it| it.point.batch_bytes = 8192),
        stream("streams", "aeron", 1, 10e6),
        stream("streams", "aeron-tuned", 1, 16e6),
        stream("streams", "zeromq", 1, 90e6),
    ];
    let found = row(cases, measure, "Aeron");
    assert_eq!((found.verdict, found.asked.as_str()), (GoalVerdict::Missed, "at least 1.00 x Aeron"));
    assert_eq!(found.figures, "weir, batches 12.0 M/s; aeron-tuned 16.0 M/s");
}

#[test]
fn the_processor_time_of_large_samples_is_compared_with_raw_udp() {
    let with_cpu = |case: Case, cpu_user_s| {
        let end = ProcessFigures { cpu_user_s, samples: Some(100_000), ..ProcessFigures::default() };
        case.with(|it| (it.figures.publisher, it.figures.subscriber) = (Some(end), Some(end)))
    };
    let cases = vec![
        with_cpu(large("udp", 1, 63_000, 60.0), 1.0),
        with_cpu(large("udp-fresh", 1, 63_000, 40.0), 5.0),
        with_cpu(large("weir", 1, 63_000, 36.0), 1.2),
    ];
    let found = row(cases, "processor time per million samples, 61.52 KiB", "raw UDP");
    assert_eq!((found.verdict, found.measured.as_str()), (GoalVerdict::Reached, "1.20 [1.20, 1.20]"));
    assert_eq!(found.figures, "weir 24.00 s; udp 20.00 s");
}

#[test]
fn a_robot_is_compared_with_the_best_peer_that_carried_it() {
    let robot = |engine: &str, cpu_percent, age_us, lost| {
        let case = crate::workload::tests::case(engine, 1, cpu_percent, age_us);
        in_series("robot", case).with(|it| {
            for group in &mut it.figures.workload.as_mut().unwrap().groups {
                (group.lost, group.expected) = (lost, group.received + lost);
            }
        })
    };
    let cases = vec![
        robot("weir", 40.0, 100, 0),
        robot("cyclonedds", 100.0, 90, 0),
        // It delivered less, so that its processor time is that of less work.
        robot("fastdds", 50.0, 50, 100),
    ];
    let of = |measure: &str| row(cases.clone(), measure, "best DDS engine");
    let cpu = of("robot workload, processor time of all processes");
    assert_eq!((cpu.verdict, cpu.measured.as_str()), (GoalVerdict::Reached, "0.40 [0.40, 0.40]"));
    assert_eq!(cpu.figures, "weir 40 %; cyclonedds 100 %");
    assert_eq!(of("robot workload, p99 age").verdict, GoalVerdict::Missed);
}

#[test]
fn a_large_domain_has_four_lines_and_the_slowest_of_several_decides() {
    let domain = |participants, matched_ms| LargeDomain {
        participants,
        endpoints: 50,
        matched_ms,
        joined_ms: 400.0,
        bytes_per_remote_endpoint: Some(620.0),
        rest_cpu_percent: None,
    };
    let of = |domains: &[LargeDomain]| {
        let rows = goals(&Run::new(Environment::default()), &[], domains);
        rows[rows.len() - 4..].iter().map(|row| (row.verdict, row.measured.clone())).collect::<Vec<_>>()
    };
    let (met, missed, unknown) = (GoalVerdict::Reached, GoalVerdict::Missed, GoalVerdict::CannotTell);
    let line = |verdict, measured: &str| (verdict, measured.to_owned());
    assert_eq!(
        // Of another size, and not looked at.
        of(&[domain(200, 9_000.0), domain(100, 99_000.0)]),
        [
            line(met, "9.0 s, most 9.0"),
            line(met, "0.400 s, most 0.400"),
            line(missed, "620.0 bytes, most 620.0"),
            line(unknown, "-"),
        ]
    );
    assert_eq!(of(&[domain(200, 9_000.0), domain(200, 16_000.0)])[0], line(unknown, "12.5 s, most 16.0"));
    assert_eq!(of(&[]), vec![line(unknown, "-"); 4]);
}
