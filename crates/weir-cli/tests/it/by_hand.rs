//! `weir pub` and `weir sub`: two ends without a coordinator.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::thread;

use rustix::process::{Pid, Signal};

use crate::support::{Domain, Finished, KilledOnDrop, Scene};

/// Runs both ends at the same time.
fn both(subscriber: &str, publisher: &str) -> (Finished, Finished) {
    thread::scope(|scope| {
        let subscriber = scope.spawn(|| Scene::new().weir(&format!("sub {subscriber}")));
        let publisher = Scene::new().weir(&format!("pub {publisher}"));
        (subscriber.join().unwrap(), publisher)
    })
}

#[test]
fn a_stream_ends_by_itself_at_both_ends() {
    let domain = Domain::claim();
    let words = format!("--domain {domain} --size 100 --verify --batch 1k");
    let (subscriber, publisher) = both(&words, &format!("{words} --duration 1500ms"));
    let (subscriber, publisher) = (subscriber.expect_code(0), publisher.expect_code(0));
    for (finished, what) in [(&subscriber, "received"), (&publisher, "sent")] {
        assert!(finished.stdout.contains(&format!("s  {what} ")), "{}", finished.stdout);
        assert!(finished.stderr.contains("weir: ready"), "{}", finished.stderr);
    }
    let sent = publisher.stdout.split("summary: sent ").nth(1).unwrap();
    let count = sent.split(' ').next().unwrap();
    assert!(
        subscriber.stdout.contains(&format!("summary: received {count} samples")),
        "{}",
        subscriber.stdout
    );
    assert!(subscriber.stdout.contains("lost 0 (0.00 %)"), "{}", subscriber.stdout);
}

#[test]
fn loans_carry_what_was_filled_in() {
    let domain = Domain::claim();
    let words = format!("--domain {domain} --size 100k --verify --loans --socket-buffer 106496");
    let (subscriber, publisher) = both(&words, &format!("{words} --duration 300ms"));
    let received = subscriber.expect_code(0).stdout;
    publisher.expect_code(0);
    assert!(received.contains("summary: received ") && received.contains("lost 0 (0.00 %)"), "{received}");
}

#[test]
fn a_ping_pong_prints_the_table_of_its_latency() {
    let domain = Domain::claim();
    let words = format!("--domain {domain}");
    // The duration of the echo begins when the two ends have met.
    let (subscriber, publisher) = both(
        &format!("{words} --echo --duration 2s"),
        &format!("{words} --ping --duration 300ms --warmup 0s"),
    );
    let table = publisher.expect_code(0).stdout;
    assert!(table.contains("Latency (one-way") && table.contains("| weir "), "{table}");
    let echoed = subscriber.expect_code(0).stdout;
    assert!(echoed.starts_with("echoed ") && !echoed.starts_with("echoed 0 "), "{echoed}");
}

#[test]
fn each_end_writes_results_and_telemetry() {
    let domain = Domain::claim();
    let scene = Scene::new();
    let folder = |end: &str| scene.path(end).display().to_string();
    let end = |end: &str| format!("--domain {domain} --size 1k --output {}", folder(end));
    let (subscriber, publisher) =
        both(&end("sub"), &format!("{} --duration 1s --telemetry-period 50ms", end("pub")));
    subscriber.expect_code(0).expect_stderr("results: ");
    publisher.expect_code(0).expect_stderr("results: ");
    let telemetry =
        |end: &str| scene.weir(&format!("report {} --telemetry csv", folder(end))).expect_code(0).stdout;
    let (rows_sub, rows_pub) = (telemetry("sub"), telemetry("pub"));
    assert!(rows_sub.contains(",subscriber,") && !rows_sub.contains(",publisher,"), "{rows_sub}");
    let of_publisher = scene.weir(&format!("report {} --format json", folder("pub"))).expect_code(0).json();
    let telemetry = &of_publisher["cases"][0]["publisher_telemetry"];
    assert_eq!(telemetry["period_ms"], 50);
    let times = telemetry["at_ms"].as_array().unwrap().len();
    let rows = rows_pub.lines().filter(|row| row.contains(",publisher,")).count();
    assert!(times > 0 && rows == times, "{times} times, {rows_pub}");
    let received = scene.weir(&format!("report {} --format json", folder("sub"))).expect_code(0).json();
    let case = &received["cases"][0];
    assert_eq!((&case["loss_attribution"]["lost"], &case["throughput"]["lost"]), (&0.into(), &0.into()));
    assert!(case["throughput"]["total_samples"].as_u64().unwrap() > 0, "{case}");
    let sent = scene.weir(&format!("report {}", folder("pub"))).expect_code(0).stdout;
    assert!(sent.contains("only the subscriber knows the throughput"), "{sent}");
}

#[test]
fn two_publishers_are_distinguished() {
    let finished = Scene::new().weir("sub --engine mock --publishers 2 --size 64 --verify").expect_code(0);
    assert!(finished.stdout.contains("summary: received 6 samples"), "{}", finished.stdout);
}

#[test]
fn lost_reliable_and_corrupted_samples_are_exit_code_1() {
    let finished = Scene::new().weir("sub --engine mock-corrupt --size 64 --verify --duration 2s");
    finished.expect_code(1);
    Scene::new().weir("sub --engine mock-lossy --duration 2s --reliability best-effort").expect_code(0);
    Scene::new().weir("sub --engine mock-lossy --duration 2s").expect_code(1);
}

#[test]
fn a_missing_peer_is_exit_code_3() {
    let domain = Domain::claim();
    for command in ["pub", "sub"] {
        let finished = Scene::new().weir(&format!("{command} --domain {domain} --connect-timeout 100ms"));
        finished.expect_code(3).expect_stderr("no peer");
    }
}

#[test]
fn a_missing_peer_is_reported_with_the_time_and_what_must_agree() {
    let domain = Domain::claim();
    let words = format!("pub --domain {domain} --connect-timeout 300ms");
    let finished = Scene::new().weir(&words).expect_code(3);
    finished.expect_stderr("within 300ms").expect_stderr("--size, --reliability, --instances and --domain");
}

#[test]
fn ends_that_do_not_fit_name_the_difference() {
    for (subscriber, publisher, expected) in [
        ("--reliability reliable", "--reliability best-effort", "its RELIABILITY does not fit"),
        ("--instances 4", "", "its sample type is TestData"),
    ] {
        let domain = Domain::claim();
        let words = |words: &str| format!("--domain {domain} --connect-timeout 3s {words}");
        let (subscriber, publisher) = both(&words(subscriber), &words(publisher));
        subscriber.expect_code(3).expect_stderr(expected);
        publisher.expect_code(3).expect_stderr(expected);
    }
}

#[test]
fn an_end_that_is_interrupted_while_it_waits_is_exit_code_130() {
    for words in ["pub", "sub", "sub --engine udp --peer 127.0.0.1 --port 47390"] {
        let domain = Domain::claim();
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("weir"));
        command.args(words.split(' ')).args(["--domain", &domain.to_string()]).stderr(Stdio::piped());
        let mut waiting = KilledOnDrop::spawn(&mut command);
        let mut messages = BufReader::new(waiting.process.stderr.take().unwrap());
        let mut text = String::new();
        messages.read_line(&mut text).unwrap();
        assert!(text.contains("waiting for the other end"), "{text}");
        let process = Pid::from_child(&waiting.process);
        rustix::process::kill_process(process, Signal::INT).unwrap();
        messages.read_to_string(&mut text).unwrap();
        assert_eq!(waiting.process.wait().unwrap().code(), Some(130), "{text}");
        assert!(text.contains("interrupted"), "{text}");
    }
}

#[test]
fn invalid_options_are_rejected() {
    for (words, expected) in [
        ("pub --engine quic", "`quic` is not an engine of this program"),
        ("pub --size 27", "28 bytes (--size counts"),
        ("pub --engine udp", "udp has no discovery: give the address of the other end with --peer"),
        ("sub --engine udp --size 65508", "udp carries at most 65507 bytes"),
        ("sub --engine udp --publishers 2", "udp joins one publisher with one subscriber"),
        ("sub --engine udp --multicast", "udp has no multicast"),
        ("pub --size 1k --batch 2k", "less than two samples of the smallest size (--size)"),
        ("pub --duration 0s", "--duration must be more than zero"),
        ("pub --ping --batch 8192", "cannot be used with"),
        ("sub --socket-buffer 2G", "more than 0 and less than 1G"),
        ("sub --subscribers 65", "--subscribers takes at most 64"),
    ] {
        Scene::new().weir(words).expect_code(2).expect_stderr(expected);
    }
}

#[test]
fn help_shows_examples_for_both_ends() {
    for command in ["pub", "sub"] {
        let help = Scene::new().weir(&format!("{command} --help")).expect_code(0).stdout;
        assert!(help.contains("weir pub --interface") && help.contains("weir sub --interface"), "{help}");
    }
}

#[test]
fn a_qos_profile_applies_to_both_ends() {
    let domain = Domain::claim();
    let directory = tempfile::TempDir::new().unwrap();
    let file = directory.path().join("qos.xml");
    let group = |name: &str| {
        format!("<{name}><partition><name><element>hall 3</element></name></partition></{name}>")
    };
    let text = format!(
        "<dds><qos_library name=\"Bench\"><qos_profile name=\"Stream\">{}{}\
         <datawriter_qos><history><kind>KEEP_ALL_HISTORY_QOS</kind></history></datawriter_qos>\
         <datareader_qos><history><kind>KEEP_ALL_HISTORY_QOS</kind></history></datareader_qos>\
         </qos_profile></qos_library></dds>",
        group("publisher_qos"),
        group("subscriber_qos"),
    );
    std::fs::write(&file, text).unwrap();
    let file = file.display();
    let words = format!("--domain {domain} --size 100 --qos-file {file} --qos-profile Bench::Stream");
    let (subscriber, publisher) = both(&words, &format!("{words} --duration 300ms"));
    let received = subscriber.expect_code(0).stdout;
    publisher.expect_code(0);
    assert!(received.contains("summary: received ") && received.contains("lost 0 (0.00 %)"), "{received}");
    let missing = format!("pub --domain {domain} --qos-file {file} --qos-profile Bench::Ping");
    Scene::new().weir(&missing).expect_code(3).expect_stderr("use one of Bench::Stream");
    let alone = format!("pub --domain {domain} --qos-file {file}");
    Scene::new().weir(&alone).expect_code(2).expect_stderr("--qos-profile");
    let other = format!("pub --engine udp --peer 127.0.0.1 --qos-file {file} --qos-profile Bench::Stream");
    Scene::new().weir(&other).expect_code(2).expect_stderr("only Weir reads QoS profiles");
}
