//! Which cases a plan has, in which order, and what it refuses.

use weir_peer_api::{Abilities, Calls, Peer, PeerError};

use super::*;

fn options(engines: &[&str]) -> PlanOptions {
    PlanOptions {
        engines: engines.iter().map(ToString::to_string).collect(),
        sizes: vec![32, 1024],
        batches: Some(vec![0]),
        duration: Duration::from_secs(2),
        warmup: Duration::from_millis(300),
        ..PlanOptions::default()
    }
}

fn lines(options: &PlanOptions) -> Vec<String> {
    let line = |step: &Step| {
        let CaseSpec { engine, test, reliability, size_bytes, repeat, .. } = &step.case;
        let mark = if step.action == Action::Measure { "" } else { " -" };
        format!("{repeat} {test} {size_bytes} {engine} {reliability}{mark}")
    };
    plan(options).unwrap().steps.iter().map(line).collect()
}

#[test]
fn what_is_compared_is_measured_side_by_side_with_the_baseline_first() {
    let options = PlanOptions { sizes: vec![32], ..options(&["mock", "udp-gso", "udp"]) };
    let expected = [
        "1 latency 32 udp best-effort",
        "1 latency 32 udp-gso best-effort -",
        "1 latency 32 mock best-effort",
        "1 latency 32 mock reliable",
        "1 throughput 32 udp best-effort",
        "1 throughput 32 udp-gso best-effort",
        "1 throughput 32 mock best-effort",
        "1 throughput 32 mock reliable",
    ];
    assert_eq!(lines(&options), expected);
}

#[test]
fn a_breakdown_is_of_the_latency_test_and_of_engines_that_say_when_samples_are_where() {
    let method = Method { breakdown: true, ..Method::default() };
    let tests = vec![Test::Latency];
    let of_latency =
        PlanOptions { method, tests, sizes: vec![32], batches: None, ..options(&["udp", "mock"]) };
    let expected =
        ["1 latency 32 udp best-effort", "1 latency 32 mock best-effort -", "1 latency 32 mock reliable -"];
    assert_eq!(lines(&of_latency), expected);
    let refused = |options: PlanOptions| plan(&options).unwrap_err().to_string();
    let of_both = PlanOptions { tests: vec![Test::Latency, Test::Throughput], ..of_latency.clone() };
    assert!(refused(of_both).contains("leave throughput out of --tests"));
    let rates = vec![Rate::PerSecond(1_000)];
    assert!(refused(PlanOptions { rates, ..of_latency.clone() }).contains("--rate"));
    let method = Method { count_system_calls: true, ..of_latency.method.clone() };
    assert!(refused(PlanOptions { method, ..of_latency }).contains("--resources"));
}

#[test]
fn latencies_are_measured_with_and_without_idle_states_side_by_side() {
    let planned = |awake: &[bool]| {
        let options = PlanOptions {
            sizes: vec![32],
            awake: awake.to_vec(),
            reliabilities: vec![Reliability::Reliable],
            ..options(&["udp-gso", "mock"])
        };
        let of = |step: Step| (step.case.engine, step.case.test, step.case.method.keep_awake);
        plan(&options).unwrap().steps.into_iter().map(of).collect::<Vec<_>>()
    };
    let of = |engine: &str, test, awake| (engine.to_owned(), test, awake);
    let both = [
        // It has no latency test.
        of("udp-gso", Test::Latency, false),
        of("mock", Test::Latency, false),
        of("mock", Test::Latency, true),
        of("udp-gso", Test::Throughput, false),
        of("mock", Test::Throughput, false),
    ];
    assert_eq!(planned(&[false, true]), both);
    assert!(planned(&[true]).iter().all(|(.., awake)| *awake));
    assert_eq!(planned(&[true]).len(), 4);
}

#[test]
fn a_plan_of_which_nothing_can_be_measured_is_refused() {
    let none = PlanOptions { tests: vec![Test::Latency], batches: None, ..options(&["udp-gso"]) };
    let refused = plan(&none).unwrap_err().to_string();
    assert_eq!(refused, "nothing of this can be measured: udp-gso has no latency test");
    let some = PlanOptions { engines: vec!["udp-gso".to_owned(), "udp".to_owned()], ..none };
    assert_eq!(plan(&some).unwrap().measured().count(), 2);
}

#[test]
fn repeats_go_round_everything() {
    let options = PlanOptions { repeats: 2, tests: vec![Test::Latency], batches: None, ..options(&["udp"]) };
    let expected = ["1 latency 32", "1 latency 1024", "2 latency 32", "2 latency 1024"];
    assert_eq!(lines(&options), expected.map(|line| format!("{line} udp best-effort")));
}

#[test]
fn interleaved_engines_take_turns_point_by_point() {
    let options = PlanOptions {
        repeats: 3,
        interleave: true,
        tests: vec![Test::Latency],
        batches: None,
        reliabilities: vec![Reliability::Reliable],
        ..options(&["udp", "mock"])
    };
    let of = |engine: &str, repeat: u32, size: u64| match engine {
        "udp" => format!("{repeat} latency {size} udp best-effort"),
        _ => format!("{repeat} latency {size} mock reliable"),
    };
    let expected: Vec<String> = [32, 1024]
        .into_iter()
        .flat_map(|size| {
            [("udp", 1), ("mock", 1), ("mock", 2), ("udp", 2), ("udp", 3), ("mock", 3)]
                .map(|(engine, repeat)| of(engine, repeat, size))
        })
        .collect();
    assert_eq!(lines(&options), expected);
}

#[test]
fn shares_of_the_maximum_come_after_it_and_rates_take_the_place_of_the_ping_pong() {
    let plan_of = |rates: &[Rate], tests: &[Test]| {
        let options = PlanOptions {
            sizes: vec![32],
            rates: rates.to_vec(),
            tests: tests.to_vec(),
            batches: None,
            reliabilities: vec![Reliability::Reliable],
            ..options(&["udp-gso", "mock"])
        };
        let of = |step: Step| {
            let rate = step.case.method.rate.map_or_else(|| "max".to_owned(), |rate| rate.to_string());
            format!("{} {} {rate}", step.case.engine, step.case.test)
        };
        plan(&options).unwrap().steps.into_iter().map(of).collect::<Vec<_>>()
    };
    let shares = [Rate::OfMaximum(1000), Rate::OfMaximum(9000)];
    assert_eq!(
        plan_of(&shares, &[Test::Latency]),
        [
            "udp-gso throughput max",
            "mock throughput max",
            "udp-gso latency 10%",
            "udp-gso latency 90%",
            "mock latency 10%",
            "mock latency 90%"
        ]
    );
    assert_eq!(
        plan_of(&[Rate::PerSecond(100)], &[Test::Latency]),
        ["udp-gso latency 100/s", "mock latency 100/s"]
    );
}

#[test]
fn an_independent_check_stands_beside_the_baseline_of_its_test() {
    let outside = vec![OutsideTool::Sockperf, OutsideTool::Iperf3];
    let options = PlanOptions { sizes: vec![32], outside, ..options(&["udp", "mock"]) };
    let names: Vec<String> = plan(&options).unwrap().steps.into_iter().map(|step| step.case.engine).collect();
    assert_eq!(names, ["udp", "sockperf", "mock", "mock", "udp", "iperf3", "mock", "mock"]);
}

#[test]
fn pairs_of_engines_stand_last_and_refusals_name_what_does_not_fit() {
    let engines_of = |names: &[&str]| -> Result<Vec<String>, String> {
        let options = PlanOptions { sizes: vec![32], tests: vec![Test::Throughput], ..options(names) };
        let steps = plan(&options).map_err(|error| error.to_string())?.steps;
        let mut engines = Vec::new();
        for step in steps {
            if !engines.contains(&step.case.engine) {
                engines.push(step.case.engine);
            }
        }
        Ok(engines)
    };
    assert_eq!(engines_of(&["weir-links:weir", "weir", "udp"]).unwrap(), ["udp", "weir", "weir-links:weir"]);
    let refused = |name: &str, why: &str| {
        let error = engines_of(&["udp", name]).unwrap_err();
        assert!(error.contains(why), "{error}");
    };
    refused("weir:udp", "weir:udp: udp does not speak RTPS");
    refused("udp:weir", "udp:weir: udp does not speak RTPS");
    refused("weir:fastdds", "fastdds is not built in: ");
    refused("weir:turbo", "weir:turbo");
    refused("weir:weir:weir", "weir:weir:weir");
}

#[test]
fn what_one_engine_cannot_do_is_a_case_that_says_so() {
    let options =
        PlanOptions { sizes: vec![100_000], tests: vec![Test::Throughput], ..options(&["udp", "mock"]) };
    let steps = plan(&options).unwrap().steps;
    assert_eq!(steps[0].action, Action::NotSupported("udp carries at most 65507 bytes".to_owned()));
    assert_eq!(steps[1].action, Action::Measure);
}

#[test]
fn what_blocks_in_any_case_is_not_measured_as_spinning() {
    let of = |spinning, wait| {
        let case = CaseSpec {
            engine: "peer".to_owned(),
            wait,
            reliability: Reliability::Reliable,
            ..base_case(&options(&["peer"]), Test::Latency, 32, 1)
        };
        let peer = Peer {
            name: "peer",
            about: "",
            settings: &[],
            abilities: Abilities { spinning, ..Abilities::DDS },
            calls: Calls {
                open: |_, _| Err(PeerError::Engine(String::new())),
                participant: None,
                version: String::new,
            },
        };
        action(&peer, &case) == Action::Measure
    };
    let spin_then_block = WaitStrategy::SpinThenBlock { spin_us: 10 };
    for (spinning, expected) in [(false, [true, false, false]), (true, [true, true, true])] {
        let waits = [WaitStrategy::Block, WaitStrategy::Spin, spin_then_block];
        assert_eq!(waits.map(|wait| of(spinning, wait)), expected, "spinning: {spinning}");
    }
}

#[test]
fn the_baseline_is_unkeyed_whatever_is_asked_of_the_engines() {
    let options = PlanOptions { sizes: vec![32], instances: 10, ..options(&["udp", "mock"]) };
    let instances: Vec<u32> = plan(&options).unwrap().steps.iter().map(|step| step.case.instances).collect();
    assert_eq!(instances, [0, 10, 10, 0, 10, 10]);
}

#[test]
fn batches_are_measured_where_two_samples_fit_and_by_who_has_them() {
    let of = |names: &[&str], batches: Option<Vec<u64>>| {
        let options = PlanOptions {
            sizes: vec![4052, 4053],
            reliabilities: vec![Reliability::Reliable],
            batches,
            ..options(names)
        };
        let steps = plan(&options).unwrap().steps;
        let line = |step: &Step| {
            let CaseSpec { engine, test, size_bytes, batch_bytes, .. } = &step.case;
            let mark = if step.action == Action::Measure { "" } else { " -" };
            format!("{test} {size_bytes} {engine} {batch_bytes}{mark}")
        };
        steps.iter().map(line).filter(|line| !line.starts_with("latency")).collect::<Vec<_>>()
    };
    assert_eq!(
        of(&["udp", "mock"], None),
        [
            "throughput 4052 udp 0",
            "throughput 4052 mock 0",
            "throughput 4052 mock 8192",
            "throughput 4053 udp 0",
            "throughput 4053 mock 0",
        ]
    );
    let both = plan(&PlanOptions { batches: Some(vec![8192]), ..options(&["mock"]) }).unwrap();
    assert!(both.steps.iter().all(|step| (step.case.test == Test::Latency) == (step.case.batch_bytes == 0)));
    assert!(both.steps.iter().any(|step| step.case.test == Test::Latency));
}

#[test]
fn several_ends_are_for_throughput_and_for_engines_that_join_them() {
    let options = PlanOptions {
        sizes: vec![32],
        reliabilities: vec![Reliability::Reliable],
        ends: Ends { publishers: 2, subscribers: 3, entity_id: 0 },
        multicast: true,
        ..options(&["udp", "mock"])
    };
    let steps = plan(&options).unwrap().steps;
    let of = |step: &Step| (step.case.ends.publishers, step.case.ends.subscribers, step.case.multicast);
    assert_eq!(
        steps.iter().map(of).collect::<Vec<_>>(),
        [(1, 1, false), (1, 1, true), (2, 3, false), (2, 3, true)]
    );
    assert_eq!(
        steps[2].action,
        Action::NotSupported("udp joins one publisher with one subscriber".to_owned())
    );
    assert_eq!(steps[3].action, Action::Measure);
}

#[test]
fn loans_are_measured_beside_the_usual_way_where_there_are_any() {
    let options = PlanOptions {
        sizes: vec![32],
        tests: vec![Test::Throughput],
        reliabilities: vec![Reliability::Reliable],
        loans: true,
        ..options(&["udp", "mock"])
    };
    let steps = plan(&options).unwrap().steps;
    let of = |step: &Step| (step.case.engine.clone(), step.case.loans);
    assert_eq!(
        steps.iter().map(of).collect::<Vec<_>>(),
        [("udp".to_owned(), false), ("mock".to_owned(), false), ("mock".to_owned(), true)]
    );
}

#[test]
fn impossible_wishes_are_refused_with_the_option_to_change() {
    let check = |change: &dyn Fn(&mut PlanOptions), expected: &str| {
        let mut options = options(&["udp", "mock"]);
        change(&mut options);
        let error = plan(&options).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check(
        &|o| o.sizes = vec![32, 27],
        "a sample of 27 bytes is impossible: the smallest has 28 bytes (--sizes",
    );
    check(&|o| o.sizes = vec![(1 << 30) + 1], "the most that mock carries is 1073741824 bytes (--sizes)");
    check(&|o| o.sizes = vec![], "--sizes needs at least one value");
    check(&|o| o.sizes = vec![32, 32], "--sizes names 32 twice");
    check(
        &|o| o.engines = vec!["quic".into()],
        "`quic` is not an engine of this program; --engines takes udp",
    );
    check(&|o| o.engines = vec![], "--engines needs at least one value");
    check(&|o| o.tests = vec![], "--tests needs at least one value");
    check(&|o| o.reliabilities = vec![], "--reliability needs at least one value");
    check(&|o| o.duration = Duration::ZERO, "--duration must be more than zero");
    check(&|o| o.repeats = 0, "--repeat must be more than zero");
    check(&|o| o.ends.publishers = 0, "--publishers must be more than zero");
    check(&|o| o.ends.subscribers = 65, "--subscribers takes at most 64");
    check(&|o| o.batches = Some(vec![]), "--batch needs at least one value");
    check(&|o| o.batches = Some(vec![8192, 8192]), "--batch names 8192 twice");
    check(&|o| o.batches = Some(vec![151]), "a batch of 151 bytes (--batch) holds less than two samples");
    check(&|o| o.batches = Some(vec![(1 << 30) + 1]), "more than 1 GiB");
    check(
        &|o| (o.rates, o.tests) = (vec![Rate::PerSecond(1)], vec![Test::Throughput]),
        "--rate is for the latency test",
    );
    check(&|o| (o.rates, o.batches) = (vec![Rate::OfMaximum(1)], Some(vec![8192])), "add 0 to --batch");
    let latency_only = |o: &mut PlanOptions| o.tests = vec![Test::Latency];
    check(&latency_only, "--batch is for the throughput test, which --tests leaves out");
    check(
        &|o| {
            latency_only(o);
            (o.batches, o.ends.subscribers) = (None, 2);
        },
        "--subscribers is for the throughput test",
    );
}

#[test]
fn hidden_engines_are_not_advertised() {
    let error = plan(&options(&["quic"])).unwrap_err().to_string();
    assert!(!error.contains("mock"), "{error}");
}

#[test]
fn a_seed_shuffles_the_cases_within_each_repeat_of_a_test() {
    let listed = PlanOptions { repeats: 2, ..options(&["udp", "mock"]) };
    let shuffled = |seed| lines(&PlanOptions { shuffle: Some(seed), ..listed.clone() });
    assert_eq!(shuffled(1), shuffled(1));
    assert_ne!(shuffled(1), lines(&listed));
    assert_ne!(shuffled(1), shuffled(2));
    let round = |line: &String| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    let rounds = |lines: &[String]| lines.iter().map(round).collect::<Vec<_>>();
    assert_eq!(rounds(&shuffled(1)), rounds(&lines(&listed)));
}

#[test]
fn a_width_needs_enough_repeats_for_an_interval() {
    let with = |repeats| plan(&PlanOptions { repeats, until_width: Some(0.05), ..options(&["mock"]) });
    assert!(with(5).unwrap_err().to_string().contains("--repeat"));
    assert_eq!(with(6).unwrap().until_width, Some(0.05));
}
