//! Runs across a virtual link. Its namespaces are anonymous and invisible to the host, so the tests
//! may run in parallel. Without root or the necessary programs a test reports that and passes,
//! unless `WEIR_REQUIRE_NETNS` is set.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{BRIEF, PLACES, Scene, has_no_links as is_refused};

#[test]
fn the_link_drops_single_datagrams_of_a_segmented_send() {
    if is_refused() {
        return;
    }
    let words = "--engines udp-gso --tests throughput --sizes 1000 --cpus none --duration 300ms --warmup 0s \
                 --link veth,loss=10% --format json";
    let document = Scene::new().weir(&format!("bench --output results {words}")).expect_code(0).json();
    let case = &document["cases"][0];
    assert_eq!(case["path"], "veth,mtu=1500,loss=10%,gso=off");
    assert_eq!(document["environment"]["interface"]["driver"], "veth");
    assert!(case["throughput"]["datagrams_per_send"].as_f64().unwrap() > 10.0, "{case}");
    // If whole sends were lost, this would be a sixtieth.
    let lost: f64 = case["settings"]["path_lost_packets"].as_str().unwrap().parse().unwrap();
    let sent = case["publisher"]["samples"].as_f64().unwrap();
    assert!(sent > 1000.0 && (0.06..0.14).contains(&(lost / sent)), "{lost} of {sent}");
}

#[test]
fn losses_are_attributed_to_their_place() {
    if is_refused() {
        return;
    }
    let check = |path: &str, place: &str| {
        let scene = Scene::new();
        // A rate that a busy machine sustains too, so that only the link loses.
        let words = format!(
            "--engines udp,weir --tests latency --rate 1000/s --sizes 1000 --reliability best-effort --cpus none \
             --duration 500ms --warmup 0s --domain 81 --link {path}"
        );
        let printed = scene.weir(&format!("bench --output results {words}")).expect_code(0).stdout;
        let document = scene.weir("report results --format json").expect_code(0).json();
        for case in document["cases"].as_array().unwrap() {
            let loss = &case["loss_attribution"];
            let count = |name: &str| loss[name].as_u64().unwrap();
            assert!(count("lost") > 0, "{case}");
            let sum: u64 = PLACES.iter().map(|place| count(place)).sum();
            assert_eq!(sum, count("lost"), "{loss}");
            // A drop of a send of several samples may stand for more of them than on average.
            let is_exact = loss["samples_per_drop"].is_null();
            let others = PLACES.iter().filter(|other| is_exact || **other != "unplaced");
            assert!(others.map(|other| count(other)).all(|other| count(place) >= other), "{place}: {loss}");
            assert!(count(place) > 0, "{place}: {loss}");
            let line = format!("lost: {} 1000 B: {}", case["engine"].as_str().unwrap(), count("lost"));
            assert!(printed.contains(&line), "{line}: {printed}");
        }
    };
    check("veth,loss=10%", "path");
    // A fifth of the offered rate, and a queue of a third of a second.
    check("veth,rate=1600k,queue=66k", "sender_queue");
}

#[test]
fn what_a_best_effort_writer_leaves_out_was_not_lost_on_the_path() {
    if is_refused() {
        return;
    }
    let words = "--engines weir --tests throughput --reliability best-effort --sizes 1000 --batch 0 --cpus none \
                 --duration 300ms --warmup 0s --domain 130 --link tun,rate=20M,rtt=20ms --format json";
    let finished = Scene::new().weir(&format!("bench --output results {words}"));
    let document = finished.expect_code(0).json();
    let loss = &document["cases"][0]["loss_attribution"];
    assert!(loss["sender_left_out"].as_u64() > loss["path"].as_u64(), "{loss}");
}

/// The socket's buffer is shorter than the device's queue, so that a writer waits for a slow device.
#[test]
fn a_best_effort_writer_does_not_overflow_the_queue_of_its_own_device() {
    if is_refused() {
        return;
    }
    let words = "--engines weir --tests throughput --reliability best-effort --sizes 1000,20000 --batch 0 --cpus none \
                 --duration 300ms --warmup 0s --domain 129 --link veth,rate=200M --format json";
    let finished = Scene::new().weir(&format!("bench --output results {words}"));
    let document = finished.expect_code(0).json();
    let cases = document["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 2);
    for case in cases {
        assert!(case["throughput"]["total_samples"].as_u64() > Some(0), "{case}");
        let loss = &case["loss_attribution"];
        assert_eq!(
            (loss["sender_queue"].as_u64(), loss["sender_refused"].as_u64()),
            (Some(0), Some(0)),
            "{loss}"
        );
    }
}

#[test]
fn a_reliable_engine_loses_nothing_across_a_slow_lossy_link() {
    if is_refused() {
        return;
    }
    let words = "--engines weir --reliability reliable --sizes 1000,20000 --batch 0 --cpus none --duration 200ms \
                 --warmup 0s --verify --domain 128 --link veth,mtu=9000,rate=500M,loss=3% --format json";
    let document = Scene::new().weir(&format!("bench --output results {words}")).expect_code(0).json();
    let cases = document["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 4);
    let mbps = |case: &Value| case["throughput"]["mbps"].as_f64();
    // Payload only, plus the burst that the rate limiter lets pass.
    assert!(cases.iter().filter_map(mbps).all(|mbps| mbps < 550.0), "{document}");
    assert!(cases.iter().all(|case| case["not_measured"].is_null()), "{document}");
}

#[test]
fn several_links_are_measured_in_turn_and_have_a_table_and_a_plot_each() {
    if is_refused() {
        return;
    }
    let words = "--engines udp,weir --tests throughput --reliability reliable --sizes 1024 --batch 0 --cpus none \
                 --duration 200ms --warmup 0s --domain 85 --link lan100 --link lte,reverse=on,mtu=1400";
    let scene = Scene::new();
    scene.weir(&format!("bench --output results {words}")).expect_code(0);
    let document = scene.weir("report results --format json").expect_code(0).json();
    let paths: Vec<&str> =
        document["cases"].as_array().unwrap().iter().filter_map(|case| case["path"].as_str()).collect();
    assert!(paths[..2].iter().all(|path| path.starts_with("tun,mtu=1500,rate=100M")), "{paths:?}");
    assert!(paths[2..].iter().all(|path| path.starts_with("tun,mtu=1400,down-rate=5M")), "{paths:?}");
    assert_eq!(paths.len(), 4);
    let page = scene.weir("report results --links").expect_code(0).stdout;
    assert!(page.contains("## lan100, reliable") && page.contains("| Size (B) | weir |"), "{page}");
    scene.weir("report results --plot links").expect_code(0);
    assert!(scene.path("results/link-lan100-reliable.svg").is_file());
}

#[test]
fn weir_reports_its_path_and_other_engines_report_none() {
    if is_refused() {
        return;
    }
    let words = "--engines udp,weir --tests throughput --reliability reliable --sizes 1024 --batch 0 --cpus none \
                 --duration 300ms --warmup 0s --domain 84 --link wifi,rtt=10ms,jitter=0ms";
    let scene = Scene::new();
    let printed = scene.weir(&format!("bench --output results {words}")).expect_code(0).stdout;
    assert!(printed.contains("Path to the subscribers, by the engine"), "{printed}");
    let document = scene.weir("report results --format json").expect_code(0).json();
    let case = |engine| {
        let cases = document["cases"].as_array().unwrap();
        cases.iter().find(move |case| case["engine"] == engine).unwrap()
    };
    assert!(case("udp")["paths"].is_null(), "{document}");
    let (path, link) = (&case("weir")["paths"][0], &case("weir")["link"]["to_subscribers"]);
    assert!(path["round_trip_min_ms"].as_f64().unwrap() >= 10.0, "{path}");
    assert!(path["series"]["in_flight_bytes"].as_array().unwrap().len() > 2, "{path}");
    // Discovery is not sent on the path, but on the link.
    let (sent, offered) = (path["sent_bytes"].as_u64().unwrap(), link["offered_bytes"].as_u64().unwrap());
    assert!((0.9..1.1).contains(&(sent as f64 / offered as f64)), "{path} {link}");
    assert!(path["repaired_bytes"].as_u64().unwrap() <= sent, "{path}");
}

#[test]
fn a_link_marks_instead_of_dropping_and_weir_counts_the_marks() {
    if is_refused() {
        return;
    }
    let words = "--engines weir --tests throughput --reliability reliable --sizes 1024 --batch 0 --cpus none \
                 --duration 2s --warmup 0s --domain 86 --link tun,rate=20M,rtt=20ms,queue=256k,ecn=1ms \
                 --link tun,rate=20M,rtt=20ms,queue=256k,ecn=bleach";
    let scene = Scene::new();
    let printed = scene.weir(&format!("bench --output results {words}")).expect_code(0).stdout;
    assert!(printed.contains("| Marked"), "{printed}");
    let document = scene.weir("report results --format json").expect_code(0).json();
    let cases = document["cases"].as_array().unwrap();
    let count = |case: usize, part: &str, name: &str| {
        let part =
            if part == "link" { &cases[case]["link"]["to_subscribers"] } else { &cases[case]["paths"][0] };
        part[name].as_u64().unwrap_or(0)
    };
    let (set, seen) = (count(0, "link", "marked_packets"), count(0, "path", "marked_datagrams"));
    assert!(0 < seen && seen <= set && count(0, "path", "ecn_datagrams") > set, "{document}");
    // There, the field is cleared, so that Weir does not use it for long.
    assert_eq!((count(1, "link", "marked_packets"), count(1, "path", "marked_datagrams")), (0, 0));
    let (ecn, sent) = (count(1, "path", "ecn_datagrams"), count(1, "link", "offered_packets"));
    assert!(0 < ecn && ecn < sent / 2, "{document}");
}

#[test]
fn an_emulated_link_reports_its_traffic() {
    if is_refused() {
        return;
    }
    let scene = Scene::new();
    let words = "--engines udp,weir --tests throughput --reliability reliable --sizes 1024 --batch 0 --cpus none \
                 --duration 300ms --warmup 100ms --domain 82 --link lte,rtt=4ms,loss=2%,seed=5";
    let printed = scene.weir(&format!("bench --output results {words}")).expect_code(0).stdout;
    let document = scene.weir("report results --format json").expect_code(0).json();
    assert_eq!(document["environment"]["interface"]["driver"], "tun");
    let path = "tun,mtu=1500,down-rate=20M,delay=2ms,jitter=10ms,queue=1048576,loss=2%,up-rate=5M,seed=5";
    for case in document["cases"].as_array().unwrap() {
        assert_eq!(case["path"], path);
        let down = &case["link"]["to_subscribers"];
        let count = |name: &str| down[name].as_u64().unwrap();
        assert_eq!(
            count("offered_packets"),
            count("delivered_packets") + count("queue_full_packets") + count("lost_packets"),
            "{case}"
        );
        // Each sample has at least the headers of IP, UDP, and a sequence number or RTPS.
        assert!(case["link"]["offered_per_payload_byte"].as_f64().unwrap() > 1.02, "{case}");
        let name = case["engine"].as_str().unwrap();
        for to in ["subscribers", "publishers"] {
            let row = |line: &str| {
                let cells: Vec<&str> = line.split('|').map(str::trim).collect();
                cells.get(1..4) == Some(&[name, "1024", to])
            };
            assert!(printed.lines().any(row), "{printed}");
        }
    }
    assert!(document["cases"][1]["link"]["to_publishers"]["offered_packets"].as_u64() > Some(0));
}

#[test]
fn two_streams_share_an_emulated_link_and_have_ages() {
    if is_refused() {
        return;
    }
    let scene = Scene::new();
    let words = "--engines weir --tests throughput --reliability reliable --sizes 8192 --batch 0 --beside none,8k \
                 --cpus none --duration 500ms --warmup 100ms --domain 84 --link tun,rate=20M,rtt=4ms";
    let printed = scene.weir(&format!("bench --output results {words}")).expect_code(0).stdout;
    assert!(
        printed.contains("beside samples of 8192 B") && printed.contains("Beside it Mbit/s"),
        "{printed}"
    );
    let document = scene.weir("report results --format json").expect_code(0).json();
    let [alone, shared] = document["cases"].as_array().unwrap().as_slice() else { panic!("{document}") };
    assert_eq!((alone.get("beside"), alone.get("beside_mbps")), (None, None));
    assert_eq!(shared["beside"], "8192");
    assert!(shared["beside_mbps"].as_f64() > Some(0.0), "{shared}");
    for case in [alone, shared] {
        assert_eq!((&case["ages"]["from_write"], &case["ages"]["step_ms"]), (&true.into(), &50.0.into()));
        let ages = case["ages"]["p99_ms"].as_array().unwrap();
        // Less than one way is impossible.
        assert!(ages.iter().filter_map(Value::as_f64).all(|age| age >= 2.0), "{case}");
        assert!(ages.iter().any(Value::is_number), "{case}");
    }
    let page = scene.weir("report results --links").expect_code(0).stdout;
    assert!(page.contains("## Two streams of an engine") && page.contains(" | 8192 B | "), "{page}");
    scene.weir("report results --plot links --output plots").expect_code(0);
}

#[test]
fn open_robotics_experiment_is_repeated_beside_its_figures() {
    if is_refused() {
        return;
    }
    let scene = Scene::new();
    let words = "published run osrf-mininet --exec 1 --runs 1 --sizes 1024 --bandwidths 300 --losses 10 --delays 0,20 \
                 --cpus none --domain 83 --output results";
    let page = scene.weir(words).expect_code(0).stdout;
    let document = scene.weir("report results --format json").expect_code(0).json();
    let cases = document["cases"].as_array().unwrap();
    let paths: Vec<&str> = cases.iter().filter_map(|case| case["path"].as_str()).collect();
    let expected = [
        "tun,mtu=1500,rate=300M,queue=1500000,loss=10%,seed=1",
        "tun,mtu=1500,rate=300M,delay=20ms,queue=1500000,loss=10%,seed=1",
    ];
    assert_eq!(paths, expected);
    for case in cases {
        assert_eq!((&case["keep_last"], &case["rate_samples_per_s"]), (&10.into(), &30.0.into()), "{case}");
        assert!(case["latency_us"]["count"].as_u64() > Some(0), "{case}");
    }
    // The published figure of Cyclone DDS.
    assert!(page.lines().any(|line| line.starts_with('|') && line.contains(" 28.4 ")), "{page}");
    assert_eq!(scene.weir("published page results").expect_code(0).stdout, page);
    for name in ["osrf-mininet.md", "osrf-mininet-age-1.svg"] {
        assert!(scene.path("results").join(name).exists(), "{name}");
    }
    scene.weir("report results --plot osrf-mininet --output plots").expect_code(0);
    assert!(scene.path("plots/delivered-1.svg").exists());
}

#[test]
fn a_link_that_the_emulator_may_not_reach_is_named() {
    if is_refused() {
        return;
    }
    let words = format!("bench --output results {BRIEF} --engines mock --sizes 32 --link lan10g");
    let said = Scene::new().weir(&words).expect_code(0).stderr;
    assert!(said.contains("the emulator may not keep up"), "{said}");
}

#[test]
fn nothing_is_left_when_the_command_is_killed() {
    if is_refused() {
        return;
    }
    ["veth", "wan"].iter().for_each(|link| check_nothing_is_left(link));
}

fn check_nothing_is_left(link: &str) {
    let scene = Scene::new();
    let words = format!("bench --output results {BRIEF} --engines mock-hang --sizes 32 --link {link}");
    let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(words.split_whitespace())
        .current_dir(scene.path(""))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut talk = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = talk.find_map(|line| line.ok().filter(|line| line.starts_with("link: "))).unwrap();
    let files: Vec<PathBuf> =
        line.split_whitespace().filter(|word| word.starts_with("/proc/")).map(PathBuf::from).collect();
    assert_eq!(files.len(), 2, "{line}");
    assert!(files.iter().all(|file| fs::read_link(file).is_ok()));
    child.kill().unwrap();
    child.wait().unwrap();
    // Waits for the processes that hold the namespaces; the time limit of the test run catches a
    // hang.
    while files.iter().any(|file| fs::read_link(file).is_ok()) {
        std::thread::yield_now();
    }
}

#[test]
fn a_missing_program_is_named_with_its_package() {
    let scene = Scene::new();
    let mut command = assert_cmd::Command::cargo_bin("weir").unwrap();
    command.current_dir(scene.path("")).env("PATH", scene.path(""));
    let output = command.args(["bench", "--engines", "mock", "--link", "veth"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("--link needs the program `unshare`"), "{said}");
}
