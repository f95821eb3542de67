//! `weir bench`: successful runs, and invalid options.

use serde_json::Value;

use crate::support::{Domain, Scene};

/// The names of an object's members in their order.
fn names(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

fn sorted(mut names: Vec<&str>) -> Vec<&str> {
    names.sort_unstable();
    names
}

#[test]
fn json_is_one_document_with_the_names_that_consumers_read() {
    let scene = Scene::new();
    let document = scene.bench("--engines mock --sizes 32 --batch 0 --format json").expect_code(0).json();
    assert_eq!(document["schema"], 1);
    assert!(document["environment"].is_object());
    let cases = document["cases"].as_array().unwrap();
    let of = |case: &Value| {
        format!("{} {}", case["test"].as_str().unwrap(), case["reliability"].as_str().unwrap())
    };
    let expected =
        ["latency best-effort", "latency reliable", "throughput best-effort", "throughput reliable"]
            .map(str::to_owned);
    assert_eq!(cases.iter().map(of).collect::<Vec<_>>(), expected);

    let latency = &cases[1];
    for (name, value) in [
        ("engine", Value::from("mock")),
        ("keyed", Value::from(false)),
        ("instances", Value::from(0)),
        ("batch_bytes", Value::from(0)),
        ("size_bytes", Value::from(32)),
        ("wait", Value::from("block")),
        ("repeat", Value::from(1)),
        ("throughput", Value::Null),
    ] {
        assert_eq!(latency[name], value, "{name}");
    }
    assert!(latency["warnings"].is_array());
    assert_eq!(latency["latency_us"]["kind"], "rtt/2");
    assert_eq!(latency["latency_us"]["lost"], 0);
    assert_eq!(
        sorted(names(&latency["latency_us"])),
        ["count", "kind", "lost", "max", "mean", "min", "p50", "p90", "p99", "p99_99", "p99_9999", "std"]
    );

    let throughput = &cases[3];
    assert_eq!(throughput["latency_us"], Value::Null);
    assert_eq!(
        sorted(names(&throughput["throughput"])),
        [
            "datagrams_per_send",
            "duplicates",
            "lost",
            "lost_percent",
            "mbps",
            "offered_samples_per_s",
            "reordered",
            "samples_per_datagram",
            "samples_per_s",
            "total_samples",
        ]
    );
}

#[test]
fn the_mocks_figures_are_always_the_same() {
    let figures = || {
        let cases =
            Scene::new().bench("--engines mock --sizes 32,1k --batch 0 --format json").expect_code(0).json();
        let of = |case: &Value| (case["latency_us"].clone(), case["throughput"].clone());
        cases["cases"].as_array().unwrap().iter().map(of).collect::<Vec<_>>()
    };
    let first = figures();
    assert_eq!(first, figures());
    // A round trip takes 2 x (10 004 + 10 000) ns and up to 990 ns more.
    let p50 = first[1].0["p50"].as_f64().unwrap();
    assert!((20.0..20.6).contains(&p50), "{p50}");
    assert_eq!(first[5].1["samples_per_s"], 99_960.016);
}

#[test]
fn each_finished_case_is_a_line_of_the_results_file() {
    let scene = Scene::new();
    let finished = scene.bench("--engines mock --tests latency --sizes 32 --repeat 2").expect_code(0);
    let lines = scene.result_lines();
    assert_eq!(lines.len(), 1 + 4);
    assert_eq!(lines[0]["schema"], 1);
    assert_eq!(lines[0]["environment"]["command"][1], "bench");
    let repeats: Vec<_> = lines[1..].iter().map(|case| case["repeat"].as_u64().unwrap()).collect();
    assert_eq!(repeats, [1, 1, 2, 2]);
    assert!(finished.stderr.contains("results: results/results.jsonl"), "{}", finished.stderr);
    assert!(lines[1]["publisher"]["max_rss_kib"].as_u64().unwrap() > 0);
}

#[test]
fn repeats_are_interleaved_listed_or_shuffled_and_end_when_they_have_decided() {
    let words = "--engines mock,mock-clock --tests latency --sizes 32,64 --reliability reliable --repeat 8";
    let order = |more: &str| {
        let scene = Scene::new();
        scene.bench(&format!("{words} {more}")).expect_code(0);
        let lines = scene.result_lines();
        let of = |case: &Value| format!("{} {} {}", case["repeat"], case["engine"], case["size_bytes"]);
        lines[1..].iter().map(of).collect::<Vec<_>>()
    };
    let interleaved = order("--order interleaved");
    assert_eq!(order("--interleave=true"), interleaved);
    assert_ne!(order("--order listed"), interleaved);
    let shuffled = order("--order shuffled --seed 3");
    assert_eq!(order("--order shuffled --seed 3"), shuffled);
    assert_ne!(order("--order shuffled --seed 4"), shuffled);
    assert_eq!(
        sorted(shuffled.iter().map(String::as_str).collect()),
        sorted(interleaved.iter().map(String::as_str).collect())
    );
    // The figures of the mock do not vary.
    assert_eq!(order("--order listed --until-width 1%").len(), 6 * 4);
    Scene::new()
        .bench("--order listed --interleave=true")
        .expect_code(2)
        .expect_stderr("cannot be used with");
    Scene::new().bench("--until-width 5% --repeat 3").expect_code(2).expect_stderr("--until-width needs");
}

#[test]
fn tables_go_to_stdout_and_messages_to_stderr() {
    let finished = Scene::new().bench("--engines mock --sizes 32 --batch 0 --verbose").expect_code(0);
    assert!(
        finished.stdout.contains("| mock ") && finished.stdout.contains("99.9999%"),
        "{}",
        finished.stdout
    );
    assert!(!finished.stdout.contains("started"), "{}", finished.stdout);
    assert!(finished.stderr.contains("[1/4] mock latency best-effort 32 B: started"), "{}", finished.stderr);
    assert!(
        finished.stderr.contains("[4/4] mock throughput reliable 32 B: 100.0 k samples/s"),
        "{}",
        finished.stderr
    );
}

#[test]
fn without_a_terminal_and_without_verbose_there_is_no_progress() {
    let finished = Scene::new().bench("--engines mock --sizes 32 --batch 0 --format csv").expect_code(0);
    assert!(finished.stderr.starts_with("results: "), "{}", finished.stderr);
    assert_eq!(finished.stdout.lines().count(), 1 + 4);
}

#[test]
fn a_folder_with_the_time_is_made_when_none_is_named() {
    let scene = Scene::new();
    scene.weir("bench --engines mock --tests latency --sizes 32 --duration 20ms --warmup 0ms").expect_code(0);
    let folders: Vec<_> =
        std::fs::read_dir(scene.path("weir-results")).unwrap().map(|entry| entry.unwrap()).collect();
    assert_eq!(folders.len(), 1);
    assert!(folders[0].path().join("results.jsonl").is_file());
}

#[test]
fn keyed_and_verified_samples_arrive_as_they_were_written() {
    let finished = Scene::new()
        .bench("--engines mock --tests throughput --sizes 100 --instances 7 --verify --wait spin:20 --format json")
        .expect_code(0);
    let cases = finished.json();
    assert_eq!(cases["cases"][0]["keyed"], true);
    assert_eq!(cases["cases"][0]["instances"], 7);
    assert_eq!(cases["cases"][0]["wait"], "spin:20us");
}

#[test]
fn batches_are_cases_of_their_own() {
    let words = "--engines mock --tests throughput --reliability reliable --sizes 32,8k --format json";
    let document = Scene::new().bench(words).expect_code(0).json();
    let of = |case: &Value| {
        format!("{} {} {}", case["engine"].as_str().unwrap(), case["size_bytes"], case["batch_bytes"])
    };
    let cases: Vec<_> = document["cases"].as_array().unwrap().iter().map(of).collect();
    assert_eq!(cases, ["mock 32 0", "mock 32 8192", "mock 8192 0"]);
}

#[test]
fn every_subscriber_receives_everything_of_every_publisher() {
    let words = "--engines udp,mock --tests throughput --reliability reliable --sizes 64 --batch 0 --verify \
                 --publishers 2 --subscribers 3";
    let scene = Scene::new();
    let finished = scene.bench(&format!("{words} --format json")).expect_code(0);
    let document = finished.json();
    let cases = document["cases"].as_array().unwrap();
    assert_eq!(cases[0]["not_measured"]["reason"], "udp joins one publisher with one subscriber");
    let many = &cases[1];
    assert_eq!((&many["publishers"], &many["subscribers"]), (&Value::from(2), &Value::from(3)));
    // Two publishers of 99 920 samples/s each.
    let (rate, lost) = (&many["throughput"]["samples_per_s"], &many["throughput"]["lost"]);
    assert!((199_000.0..200_000.0).contains(&rate.as_f64().unwrap()), "{many}");
    assert_eq!(lost, 0);
    let table = Scene::new().bench(words).expect_code(0).stdout;
    assert!(table.contains("2 publishers to 3 subscribers"), "{table}");
    assert!(table.contains("mean per subscriber"), "{table}");
}

#[test]
fn one_of_several_ends_that_fails_is_named() {
    let words = "--engines mock-crash --tests throughput --reliability reliable --sizes 64 --publishers 2";
    let document = Scene::new().bench(&format!("{words} --batch 0 --format json")).expect_code(3).json();
    let reason = document["cases"][0]["not_measured"]["reason"].as_str().unwrap();
    assert!(reason.starts_with("the publisher ") && reason.contains(" of 2's process ended"), "{reason}");
}

#[test]
fn samples_of_a_gibibyte_are_measured_however_short_the_run_is() {
    let words = "--engines mock --reliability reliable --sizes 1G --format json";
    let document = Scene::new().bench(words).expect_code(0).json();
    let cases = document["cases"].as_array().unwrap();
    assert_eq!(cases[0]["latency_us"]["count"], 1);
    assert!(cases[1]["throughput"]["total_samples"].as_u64().unwrap() >= 1, "{}", cases[1]);
}

#[test]
fn multicast_is_passed_to_the_engines_that_have_it() {
    let words = "--engines mock --tests latency --reliability reliable --sizes 32 --multicast";
    let document = Scene::new().bench(&format!("{words} --format json")).expect_code(0).json();
    assert_eq!(document["cases"][0]["multicast"], true);
    let table = Scene::new().bench(words).expect_code(0).stdout;
    assert!(table.contains("unkeyed, multicast, wait: block"), "{table}");
}

#[test]
fn loans_are_a_case_beside_the_usual_one() {
    let words = "--engines mock --tests latency --reliability reliable --sizes 32 --loans";
    let document = Scene::new().bench(&format!("{words} --format json")).expect_code(0).json();
    assert_eq!(
        (&document["cases"][0]["loans"], &document["cases"][1]["loans"]),
        (&Value::Null, &true.into())
    );
    let table = Scene::new().bench(words).expect_code(0).stdout;
    assert!(table.contains("mock (loans)"), "{table}");
}

#[test]
fn the_tables_of_a_run_are_those_of_its_report() {
    let scene = Scene::new();
    let live = scene.bench("--engines mock --sizes 32 --repeat 2").expect_code(0).stdout;
    let report = scene.weir("report results").expect_code(0).stdout;
    assert_eq!(live, report);
}

#[test]
fn engines_are_compared_pair_by_pair() {
    let words = "--engines mock,mock-corrupt --relative-to mock --tests latency --reliability reliable \
                 --sizes 32 --repeat 6";
    let document = Scene::new().bench(&format!("{words} --format json")).expect_code(0).json();
    let engines: Vec<_> =
        document["cases"].as_array().unwrap().iter().map(|case| case["engine"].as_str().unwrap()).collect();
    assert_eq!(engines[..6], ["mock", "mock-corrupt", "mock-corrupt", "mock", "mock", "mock-corrupt"]);
    let other = &document["summary"][1];
    assert_eq!((&other["engine"], &other["figure"]), (&"mock-corrupt".into(), &"p50_us".into()));
    // The mock always has the same speed.
    let expected = serde_json::json!({
        "engine": "mock", "ratio": 1.0, "interval_95": [1.0, 1.0], "pairs": 6, "verdict": "inconclusive"
    });
    assert_eq!(other["relative_to"], expected);
    assert_eq!(other["interval_95"], serde_json::json!([other["median"], other["median"]]));
    let table = Scene::new().bench(words).expect_code(0).stdout;
    assert!(table.contains(" 50% 95% |") && table.contains(" x mock |"), "{table}");
    assert!(table.contains("inconclusive |") && table.contains("1.00..1.00"), "{table}");
    let csv = Scene::new().bench(&format!("{words} --format csv")).expect_code(0).stdout;
    let [header, row] = [0, 1].map(|line| csv.lines().nth(line).unwrap().split(',').collect::<Vec<_>>());
    let columns = ["relative_to", "ratio", "ratio_low", "ratio_high", "pairs", "verdict"];
    let at = header.iter().position(|&name| name == columns[0]).unwrap();
    assert_eq!(header[at..at + 6], columns, "{csv}");
    assert_eq!(row[at..at + 6], ["mock", "1", "1", "1", "6", "inconclusive"], "{csv}");
    assert_eq!(row.len(), header.len(), "{csv}");
}

/// Checks that a breakdown has all stages in order, with means that add up within the clock's resolution.
fn check_breakdown(case: &Value) {
    let breakdown = &case["breakdown"];
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{case}"));
    let stages = breakdown["stages"].as_array().unwrap_or_else(|| panic!("{case}"));
    let names: Vec<_> = stages.iter().map(|stage| stage["stage"].as_str().unwrap()).collect();
    assert_eq!(names, ["encode", "send-call", "kernel", "wake-up", "parse", "deliver"]);
    assert!(stages.iter().all(|stage| number(&stage["p50"]) <= number(&stage["p99"])), "{case}");
    let sum: f64 = stages.iter().map(|stage| number(&stage["mean"])).sum();
    // Each of the seven means is rounded to nanoseconds.
    assert!((sum - number(&breakdown["one_way"]["mean"])).abs() <= 7.0 * 0.000_5 + 1e-9, "{sum} {case}");
    let share = number(&stages[1]["p50"]) / number(&breakdown["one_way"]["p50"]) * 100.0;
    assert!((number(&stages[1]["share_percent"]) - share).abs() < 0.051, "{case}");
    assert!(number(&breakdown["clock_error_us"]) > 0.0, "{case}");
    // One sample in each direction, of which one may be left out.
    let [samples, left_out] = ["samples", "left_out"].map(|name| breakdown[name].as_u64().unwrap());
    assert!(samples >= 1 && samples + left_out >= 2, "{case}");
    assert!(!case["latency_us"].is_null(), "{case}");
}

#[test]
fn a_breakdown_has_all_stages_with_every_wait_strategy() {
    let both_on_one = host_cpu().map(|cpu| format!("--wait block --cpus {cpu},{cpu}"));
    let ways = ["--wait block --cpus none".to_owned(), "--wait spin:50 --cpus none".to_owned()];
    for way in ways.into_iter().chain(both_on_one) {
        let (scene, domain) = (Scene::new(), Domain::claim());
        let words = format!("--breakdown --sizes 32,8k --domain {domain} --duration 60ms --warmup 0s {way}");
        let table = scene.weir(&format!("bench --output results {words}")).expect_code(0).stdout;
        let cases = &scene.result_lines()[1..];
        let of = |case: &Value| {
            let [engine, reliability] = ["engine", "reliability"].map(|name| case[name].as_str().unwrap());
            format!("{engine} {reliability} {}", case["size_bytes"])
        };
        let mut found: Vec<_> = cases.iter().map(of).collect();
        found.sort_unstable();
        let expected = [
            "udp best-effort 32",
            "udp best-effort 8192",
            "weir best-effort 32",
            "weir best-effort 8192",
            "weir reliable 32",
            "weir reliable 8192",
        ];
        assert_eq!(found, expected, "{way}");
        cases.iter().for_each(check_breakdown);
        assert!(
            table.contains("Stages of the above") && table.contains(" wake-up ") && table.contains('#'),
            "{table}"
        );
        assert_eq!(scene.weir("report results").expect_code(0).stdout, table);
        scene.weir("report results --plot breakdown --output plots").expect_code(0);
        let plot =
            scene.path("plots").join(format!("breakdown-latency-reliable-unkeyed-{}.svg", wait_of(&way)));
        assert!(std::fs::read_to_string(plot).unwrap().contains("weir, 8192 B"));
    }
}

/// A processor that this process may use.
fn host_cpu() -> Option<usize> {
    let allowed = rustix::thread::sched_getaffinity(None).ok()?;
    (0..rustix::thread::CpuSet::MAX_CPU).find(|&cpu| allowed.is_set(cpu))
}

/// The wait strategy in file names.
fn wait_of(words: &str) -> &'static str {
    if words.contains("spin") { "spin50us" } else { "block" }
}

#[test]
fn engines_without_stages_are_named_and_not_a_failure() {
    let words = "--engines udp,mock --reliability reliable --sizes 32 --breakdown";
    let finished = Scene::new().bench(&format!("{words} --format json")).expect_code(0);
    let reason = finished.json()["cases"][1]["not_measured"]["reason"].to_string();
    assert!(reason.contains("mock cannot be looked into"), "{reason}");
    let alone = Scene::new().bench(&words.replace("udp,", "")).expect_code(2);
    assert!(
        alone.stderr.contains("nothing of this can be measured: mock cannot be looked into"),
        "{}",
        alone.stderr
    );
}

#[test]
fn resources_are_a_separate_table() {
    let words = "--engines mock --tests throughput --reliability reliable --sizes 32 --batch 0 --resources";
    let table = Scene::new().bench(words).expect_code(0).stdout;
    assert!(table.contains("Resources of the above") && table.contains("Pub user s/M"), "{table}");
    let document = Scene::new().bench(&format!("{words} --format json")).expect_code(0).json();
    let case = &document["cases"][0];
    let samples = case["publisher"]["samples"].as_u64().unwrap();
    assert!(samples > 0 && case["subscriber"]["samples"].as_u64().unwrap() >= samples, "{case}");
    // Counted, or the setting says why not.
    let is_counted = case["publisher"]["system_calls"].is_u64();
    let said = case["settings"]["system_calls"].as_str().unwrap();
    assert_eq!(said == "counted", is_counted, "{case}");
}

#[test]
fn latency_against_load_is_one_table_with_the_lag_of_the_schedule() {
    let words = "--engines mock --tests latency --reliability reliable --sizes 32 --rate 10%,50%";
    let document = Scene::new().bench(&format!("{words} --format json")).expect_code(0).json();
    let cases = document["cases"].as_array().unwrap();
    // The percentages refer to this maximum of 99 960 samples/s.
    assert_eq!((cases.len(), &cases[0]["test"]), (3, &"throughput".into()));
    let half = &cases[2];
    assert_eq!((&half["test"], &half["load_percent"]), (&"latency".into(), &50.0.into()));
    assert_eq!(half["rate_samples_per_s"], 49_980.0);
    assert_eq!(half["latency_us"]["kind"], "one-way");
    assert!((19.9..20.1).contains(&half["latency_us"]["p50"].as_f64().unwrap()), "{half}");
    assert_eq!(half["schedule_lag_us"]["max"], 0.0);
    let table = Scene::new().bench(words).expect_code(0).stdout;
    assert_eq!(table.matches("Latency under load (one-way").count(), 1, "{table}");
    assert!(table.contains("| Load % |") && table.contains("| Lag max |"), "{table}");
}

#[test]
fn a_missed_schedule_is_a_warning() {
    let words = "--engines mock --tests latency --reliability reliable --sizes 32 --rate 200k --format json";
    let document = Scene::new().bench(words).expect_code(0).json();
    let case = &document["cases"][0];
    assert!(case["warnings"].to_string().contains("schedule-lag"), "{case}");
    assert!(case["latency_us"]["p50"].as_f64().unwrap() > 1000.0, "{case}");
}

#[test]
fn results_say_that_the_processors_were_kept_awake() {
    let words = "--engines mock --tests latency --reliability reliable --sizes 32 --keep-awake";
    let document = Scene::new().bench(&format!("{words} --format json")).expect_code(0).json();
    let case = &document["cases"][0];
    assert_eq!(case["kept_awake"], true);
    assert!(case["settings"]["keep_awake"].as_str().unwrap().contains("SCHED_IDLE"), "{case}");
    let table = Scene::new().bench(words).expect_code(0).stdout;
    assert!(table.contains("wait: block, processors kept awake"), "{table}");
}

#[test]
fn latencies_are_measured_both_ways_on_request_and_rates_once() {
    let words = "--engines mock --reliability reliable --sizes 32 --batch 0 --keep-awake=both";
    let document = Scene::new().bench(&format!("{words} --format json")).expect_code(0).json();
    let of = |case: &Value| {
        let how = case["settings"]["keep_awake"].as_str().unwrap();
        assert_eq!(how.contains("SCHED_IDLE"), case["kept_awake"] == true, "{case}");
        (case["test"].as_str().unwrap().to_owned(), case["kept_awake"] == true)
    };
    let found: Vec<(String, bool)> = document["cases"].as_array().unwrap().iter().map(of).collect();
    let [latency, throughput] = ["latency", "throughput"].map(str::to_owned);
    assert_eq!(found, [(latency.clone(), false), (latency, true), (throughput, false)]);
}

#[test]
fn without_a_terminal_tables_come_with_a_line_for_each_case() {
    let finished = Scene::new().bench("--engines mock --sizes 32 --batch 0").expect_code(0);
    assert!(
        finished.stderr.contains("[4/4] mock throughput reliable 32 B: 100.0 k samples/s"),
        "{}",
        finished.stderr
    );
    let quiet = Scene::new().bench("--engines mock --sizes 32 --batch 0 --progress none").expect_code(0);
    assert!(!quiet.stderr.contains("[4/4]"), "{}", quiet.stderr);
}

#[test]
fn an_unsupported_test_is_reported_and_not_a_failure() {
    let finished =
        Scene::new().bench("--engines udp-gso,mock --tests latency --sizes 32 --format json").expect_code(0);
    let reason = &finished.json()["cases"][0]["not_measured"];
    assert_eq!(reason["kind"], "not-supported");
    assert_eq!(reason["reason"], "udp-gso has no latency test");
}

#[test]
fn the_baseline_is_measured_over_real_sockets() {
    // No timed warm-up, so that the test also works on a busy machine.
    let words = "--engines udp,udp-gso,udp-fresh --sizes 28,1000 --verify --cpus none --duration 50ms --warmup 0s \
                 --keep-awake=no";
    let finished = Scene::new().weir(&format!("bench --output results --format json {words}")).expect_code(0);
    let document = finished.json();
    let cases = document["cases"].as_array().unwrap();
    let measured = |case: &&Value| !case["latency_us"].is_null() || !case["throughput"].is_null();
    assert_eq!((cases.len(), cases.iter().filter(measured).count()), (12, 8));
    for case in cases.iter().filter(measured) {
        assert!(!case["warnings"].to_string().contains("corrupt"), "{case}");
        assert!(case["socket_buffers"]["receive_granted"].as_u64().unwrap() > 0, "{case}");
    }
    let gso = cases.iter().rfind(|case| case["engine"] == "udp-gso").unwrap();
    assert!(gso["throughput"]["datagrams_per_send"].as_f64().unwrap() > 10.0, "{gso}");
}

#[test]
fn socket_buffers_have_the_requested_size() {
    let words = "--engines udp,udp-gso,weir --sizes 1000 --batch 0 --cpus none --duration 50ms --warmup 0s";
    let words =
        format!("{words} --socket-buffer 32k --tests throughput --reliability reliable --format json");
    let domain = Domain::claim();
    let words = format!("bench --output results --domain {domain} {words}");
    let finished = Scene::new().weir(&words).expect_code(0);
    let document = finished.json();
    let cases = document["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 3);
    for buffers in cases.iter().map(|case| &case["socket_buffers"]) {
        for way in ["receive", "send"] {
            assert_eq!(buffers[format!("{way}_asked")], 32_768, "{buffers}");
            assert_eq!(buffers[format!("{way}_granted")], 65_536, "{buffers}");
        }
    }
}

#[test]
fn invalid_options_are_rejected_before_the_run() {
    for (words, expected) in [
        ("--engines quic", "`quic` is not an engine of this program; --engines takes udp"),
        ("--engines mock --sizes 27", "a sample of 27 bytes is impossible"),
        ("--engines udp --sizes 65508", "the most that udp carries is 65507 bytes"),
        ("--engines mock --sizes x", "`x` is not a size"),
        ("--engines mock --duration fast", "`fast` is not a duration"),
        ("--engines mock --duration 0s", "--duration must be more than zero"),
        ("--engines mock --repeat 0", "--repeat must be more than zero"),
        ("--engines mock --wait nap", "spin:USEC"),
        ("--engines mock --cpus 0", "two processor numbers"),
        ("--engines mock --cpus 100000,0", "processor 100000"),
        ("--engines mock --interface nope0", "`nope0` is no network interface"),
        ("--engines mock --tests lunch", "latency or throughput"),
        ("--engines mock --reliability none", "best-effort or reliable"),
        ("--engines mock --domain 233", "0..=232"),
        ("--engines mock --relative-to weir", "--relative-to names `weir`, which --engines leaves out"),
        ("--engines mock --tests latency --batch 8192", "--batch is for the throughput test"),
        ("--engines mock --tests latency --subscribers 2", "--subscribers is for the throughput test"),
        ("--engines mock --sizes 8k --batch 0,8k", "holds less than two samples"),
        ("--engines mock --batch 2G", "more than 1 GiB"),
        ("--engines mock --publishers 0", "--publishers must be more than zero"),
        ("--engines mock --sizes 1025M", "the most that mock carries is 1073741824 bytes"),
        ("--engines mock --rate fast", "`fast` is no rate"),
        ("--engines mock --rate 10/s --tests throughput", "--rate is for the latency test"),
        (
            "--engines mock --link dsl",
            "`dsl` is not a link: expected veth[,OPTION...], tun[,OPTION...] or a preset",
        ),
        ("--engines mock --link wifi,loss=lots", "`loss=lots` of --link: expected percent"),
        ("--engines mock --link veth,loss=1%,gso=on", "lose whole sends"),
        ("--engines mock --link veth --interface lo", "cannot be used with"),
        ("--engines mock --socket-buffer 0", "more than 0 and less than 1G"),
        ("--breakdown --tests latency,throughput", "leave throughput out of --tests"),
        ("--breakdown --rate 10/s", "which --rate does not wait for"),
        ("--breakdown --resources", "--resources counts system calls"),
        ("--no-such-option", "--no-such-option"),
    ] {
        let scene = Scene::new();
        scene.weir(&format!("bench --output results {words}")).expect_code(2).expect_stderr(expected);
        assert!(!scene.results().exists(), "{words} made a results folder");
    }
}

#[test]
fn the_small_profile_is_measured_beside_the_full_one_or_in_its_place() {
    let domain = Domain::claim();
    let bench = |words: &str| {
        let scene = Scene::new();
        let common = "--sizes 32,100k --batch 0,8k --reliability reliable --format json";
        scene.bench(&format!("{common} --domain {domain} {words}")).expect_code(0).json()
    };
    let both = bench("--engines weir,weir-small");
    assert_eq!(both["cases"].as_array().unwrap().len(), 10);
    let small = bench("--engines weir --profile small --instances 3 --rate 1000");
    for case in both["cases"].as_array().unwrap().iter().chain(small["cases"].as_array().unwrap()) {
        let has_threads = case["settings"]["engine.threads"] == "yes";
        assert_eq!(case["engine"], if has_threads { "weir" } else { "weir-small" });
        let figures = if case["test"] == "latency" { &case["latency_us"] } else { &case["throughput"] };
        assert_eq!(figures["lost"], 0, "{case}");
    }
}

#[test]
fn the_publish_mode_is_a_setting_of_the_engine() {
    let domain = Domain::claim();
    let bench = |mode: &str, words: &str| {
        let scene = Scene::new();
        std::fs::write(scene.path("mine.toml"), format!("[weir]\npublish_mode = \"{mode}\"\n")).unwrap();
        let common = "--engines weir --reliability reliable --format json --settings mine.toml";
        scene.bench(&format!("{common} --domain {domain} {words}"))
    };
    let document = bench("asynchronous", "--sizes 32,100k --batch 0,8k").expect_code(0).json();
    let cases = document["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 5);
    for case in cases {
        assert_eq!(case["settings"]["engine.publish_mode"], "asynchronous");
        let figures = if case["test"] == "latency" { &case["latency_us"] } else { &case["throughput"] };
        assert_eq!(figures["lost"], 0, "{case}");
    }
    let short = "--sizes 32 --tests latency";
    for (mode, words, why) in [
        ("sometimes", "", "it should be synchronous or asynchronous"),
        ("asynchronous", "--breakdown", "another one sends"),
    ] {
        let said = bench(mode, &format!("{short} {words}")).expect_code(3).stdout;
        assert!(said.contains(why), "{said}");
    }
}
