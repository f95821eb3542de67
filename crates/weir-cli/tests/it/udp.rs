//! `weir udp` and `weir udp server`: successful and failing runs.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::thread;

use serde_json::Value;

use crate::support::{Finished, PLACES, Scene};

/// Short, since other tests load the machine.
const BRIEF: &str = "--output results --duration 100ms --warmup 20ms --cpus none";

#[test]
fn missing_outside_tools_are_left_out_and_named() {
    let scene = Scene::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    let words = format!("udp {BRIEF} --outside-checks --sizes 100 --mode send --repeat 2");
    command.current_dir(scene.path("")).env("PATH", "").args(words.split_whitespace());
    let finished = Finished::from(command.output().unwrap()).expect_code(0);
    for name in ["iperf3", "sockperf"] {
        assert!(finished.stderr.contains(&format!("{name} is not installed")), "{}", finished.stderr);
    }
    assert!(finished.stdout.contains("\nlimit: send 100 B forward: "), "{}", finished.stdout);
    assert_eq!(scene.result_lines().len(), 1 + 2 * 2);
    let refused = udp(&scene, "--outside-checks --direction both").expect_code(2);
    refused.expect_stderr("--outside-checks compares one forward flow");
}

/// A server with its port; ends when dropped.
struct Server {
    child: Child,
    port: String,
}

impl Server {
    fn start(words: &str) -> Self {
        Self::start_by(Command::new(env!("CARGO_BIN_EXE_weir")), words)
    }

    fn start_by(mut command: Command, words: &str) -> Self {
        let mut child = command
            .args(["udp", "server", "--port", "0"])
            .args(words.split_whitespace())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("weir udp server listening on ").unwrap();
        let port = address.rsplit(':').next().unwrap().to_owned();
        Self { child, port }
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

fn udp(scene: &Scene, words: &str) -> Finished {
    scene.weir(&format!("udp {BRIEF} {words}"))
}

fn cases(document: &Value) -> &Vec<Value> {
    document["cases"].as_array().unwrap()
}

#[test]
fn a_run_on_this_host_has_round_trips_and_streams_of_every_mode() {
    let scene = Scene::new();
    let words = "--sizes 20,1000 --mode send,sendmmsg,gso --wait block --format json";
    let document = udp(&scene, words).expect_code(0).json();
    assert_eq!(cases(&document).len(), 2 * (1 + 3));
    for case in cases(&document) {
        assert!(case["not_measured"].is_null(), "{case}");
        assert_eq!(case["udp"]["ip_version"], 4);
        for end in ["publisher_telemetry", "subscriber_telemetry"] {
            assert!(!case[end]["at_ms"].as_array().unwrap().is_empty(), "{case}");
        }
        if case["test"] == "latency" {
            assert_eq!(case["latency_us"]["kind"], "rtt");
            assert!(case["latency_us"]["count"].as_u64().unwrap() > 0, "{case}");
        } else {
            assert!(case["throughput"]["total_samples"].as_u64().unwrap() > 0, "{case}");
            let lost = case["throughput"]["lost"].as_u64().unwrap();
            let placed = ["sender", "receiver_socket", "in_between"]
                .map(|place| case["loss"][place].as_u64().unwrap());
            assert_eq!(placed.iter().sum::<u64>(), lost, "{case}");
            let loss = &case["loss_attribution"];
            let placed: u64 = PLACES.iter().map(|place| loss[place].as_u64().unwrap()).sum();
            assert!(loss["lost"] == placed && placed >= lost, "{case}");
        }
        assert!(
            case["publisher"]["cpu_system_s"].is_number() && case["subscriber"]["cpu_system_s"].is_number()
        );
    }
    assert_eq!(document["peer"]["kernel"], document["environment"]["kernel"]);
    assert_eq!(scene.result_lines().len(), 1 + 8);
    let tables = scene.weir("report results").expect_code(0).stdout;
    for title in ["UDP round trips (microseconds", "UDP streams at full speed, IPv4, wait: block"] {
        assert!(tables.contains(title), "{tables}");
    }
    let csv = scene.weir("report results --format csv").expect_code(0).stdout;
    assert!(csv.lines().next().unwrap().contains(",mode,flows,direction,"), "{csv}");
    assert_eq!(csv.lines().count(), 1 + 8);
}

#[test]
fn a_schedule_gives_delays_by_the_clock_that_both_ends_read() {
    let words = "--tests throughput --sizes 100 --mode send,gso --rate 1000/s --wait spin:50 --direction both --format json";
    let document = udp(&Scene::new(), words).expect_code(0).json();
    assert_eq!(cases(&document).len(), 4);
    for case in cases(&document) {
        let udp = &case["udp"];
        assert_eq!((&udp["duplex"], &udp["clocks"]["shared"]), (&true.into(), &true.into()));
        assert_eq!(udp["clocks"]["error_us"], 0.0);
        assert_eq!(case["latency_us"]["kind"], "one-way");
        assert!(case["latency_us"]["count"].as_u64().unwrap() > 10 && udp["jitter_us"].is_number(), "{case}");
        assert!(case["schedule_lag_us"]["p99_9"].is_number(), "{case}");
        assert_eq!(udp["asked_mbps"], 0.8);
    }
    let directions: Vec<_> =
        cases(&document).iter().map(|case| case["udp"]["direction"].as_str().unwrap()).collect();
    assert_eq!(directions, ["forward", "reverse", "forward", "reverse"]);
}

#[test]
fn percentages_refer_to_the_maximum_measured_first() {
    let words =
        "--tests throughput --sizes 1000 --mode send --rate 1% --flows 2 --telemetry-period 0s --format json";
    let document = udp(&Scene::new(), words).expect_code(0).json();
    let [maximum, share] = &cases(&document)[..] else { panic!("{document}") };
    let rate = share["rate_samples_per_s"].as_f64().unwrap()
        / maximum["throughput"]["samples_per_s"].as_f64().unwrap();
    assert!((rate - 0.01).abs() < 1e-6, "{rate}");
    assert!(share["publisher_telemetry"].is_null() && share["subscriber_telemetry"].is_null());
    assert_eq!((&share["load_percent"], &share["udp"]["flows"]), (&1.0.into(), &2.into()));
}

#[test]
fn ipv6_and_sockets_that_are_not_connected() {
    if fs::read_to_string("/proc/net/if_inet6").unwrap_or_default().is_empty() {
        return;
    }
    let server = Server::start("--bind ::1");
    let words = format!(
        "--to ::1 --port {} --sizes 500 --mode send,sendmmsg,gso --unconnected --dscp 46 --format json",
        server.port
    );
    let document = udp(&Scene::new(), &words).expect_code(0).json();
    for case in cases(&document) {
        let udp = &case["udp"];
        assert_eq!(
            (&udp["ip_version"], &udp["connected"], &udp["dscp"]),
            (&6.into(), &false.into(), &46.into())
        );
        assert!(
            case["not_measured"].is_null() && case["warnings"].to_string().find("nothing").is_none(),
            "{case}"
        );
    }
}

#[test]
fn multicast_needs_the_permission_of_the_server() {
    let words =
        "--tests throughput --sizes 500 --mode send --rate 1000/s --multicast 239.255.7.7 --format json";
    let document = udp(&Scene::new(), words).expect_code(0).json();
    let case = &cases(&document)[0];
    assert_eq!((&case["udp"]["multicast"], &case["multicast"]), (&"239.255.7.7".into(), &true.into()));
    assert!(case["throughput"]["total_samples"].as_u64().unwrap() > 10, "{case}");
    let strict = Server::start("--bind 127.0.0.1");
    let words = format!("{words} --to 127.0.0.1 --port {}", strict.port);
    udp(&Scene::new(), &words).expect_code(3).expect_stderr("--allow-multicast");
}

#[test]
fn without_a_secret_a_server_serves_this_host_unless_told_otherwise() {
    let scene = Scene::new();
    fs::write(scene.path("secret"), "correct horse\n").unwrap();
    let secret = format!("--secret-file {}", scene.path("secret").display());
    for (words, host, is_explained) in
        [("", "127.0.0.1:", true), ("--bind 0.0.0.0", "0.0.0.0:", false), (&*secret, "", false)]
    {
        let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(["udp", "server", "--port", "0", "--until-eof"])
            .args(words.split_whitespace())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut said, mut explained) = (String::new(), String::new());
        child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        child.stderr.take().unwrap().read_to_string(&mut explained).unwrap();
        child.wait().unwrap();
        let address = said.trim().strip_prefix("weir udp server listening on ").unwrap();
        assert!(address.starts_with(host) && (!host.is_empty() || !address.starts_with("127.")), "{address}");
        assert_eq!(explained.contains("--bind ADDRESS"), is_explained, "{words}: {explained}");
    }
}

#[test]
fn a_secret_protects_both_ends() {
    let scene = Scene::new();
    fs::write(scene.path("secret"), "correct horse\n").unwrap();
    fs::write(scene.path("wrong"), "correct mouse\n").unwrap();
    let server = Server::start(&format!("--bind 127.0.0.1 --secret-file {}", scene.path("secret").display()));
    let open = Server::start("--bind 127.0.0.1");
    let to = |server: &Server, words: &str| {
        let scene_words = format!("--to 127.0.0.1 --port {} --tests latency --sizes 64 {words}", server.port);
        udp(&scene, &scene_words)
    };
    to(&server, "--secret-file secret").expect_code(0);
    to(&server, "--secret-file wrong").expect_code(3).expect_stderr("does not know the secret");
    to(&server, "").expect_code(3).expect_stderr("asks for a secret (--secret-file)");
    to(&open, "--secret-file secret").expect_code(3).expect_stderr("does not prove that it knows the secret");
    to(&open, "--secret-file missing").expect_code(2).expect_stderr("missing");
}

#[test]
fn missing_foreign_and_newer_servers_are_distinguished() {
    let scene = Scene::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let answers = thread::spawn(move || {
        for answer in [
            "SSH-2.0-OpenSSH\r\n",
            "{\"message\":\"refused\",\"reason\":\"this weir udp server speaks version 9\"}\n",
        ] {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
            // Until the client has gone.
            let _ = stream.read_to_end(&mut Vec::new());
        }
    });
    let to = |port: &str| udp(&scene, &format!("--to 127.0.0.1 --port {port} --sizes 64"));
    to(&port.to_string()).expect_code(3).expect_stderr("does not answer like a weir udp server of version 1");
    to(&port.to_string()).expect_code(3).expect_stderr("speaks version 9");
    answers.join().unwrap();
    // The listener is gone.
    to(&port.to_string()).expect_code(3).expect_stderr("cannot reach a weir udp server at 127.0.0.1");
    udp(&scene, "--to no.such.host.invalid").expect_code(3).expect_stderr("cannot find an address");
    assert!(!scene.results().exists());
}

#[test]
fn invalid_options_are_rejected_before_the_measurement() {
    for (words, why) in [
        ("--sizes 19", "20 to 65507 bytes"),
        ("--sizes 65508", "20 to 65507 bytes"),
        ("--sizes 64 --flows 0", "flows"),
        ("--sizes 64 --multicast 10.0.0.1 --tests throughput", "no multicast group"),
        ("--sizes 64 --rate fast", "bits per second"),
        ("--sizes 64 --secret-file missing --to 127.0.0.1", "missing"),
        ("--link veth --to 127.0.0.1", "cannot be used with"),
    ] {
        let scene = Scene::new();
        udp(&scene, words).expect_code(2).expect_stderr(why);
        assert!(!scene.results().exists(), "{words}");
    }
    Scene::new().weir("udp --output results --sizes 64 --cpus 4000,0").expect_code(2).expect_stderr("4000");
}

#[test]
fn a_datagram_that_fits_no_buffer_fails_its_measurement_and_the_next_one_goes_on() {
    let scene = Scene::new();
    let words = "--tests throughput --sizes 60000,64 --mode send --socket-buffer 4096 --format json";
    let finished = udp(&scene, words).expect_code(3).expect_stderr("does not fit into");
    let document = finished.json();
    let [large, small] = &cases(&document)[..] else { panic!("{document}") };
    assert_eq!(large["not_measured"]["kind"], "failed");
    assert!(small["throughput"]["total_samples"].as_u64().unwrap() > 0, "{small}");
}

#[test]
fn a_server_that_is_killed_ends_the_run_and_what_was_measured_is_kept() {
    let scene = Scene::new();
    let mut server = Server::start("--bind 127.0.0.1");
    let mut client = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(format!("udp --to 127.0.0.1 --port {}", server.port).split_whitespace())
        .args(
            "--output results --tests latency --sizes 64 --repeat 1000 --duration 50ms --warmup 0s --verbose"
                .split(' '),
        )
        .current_dir(scene.path(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut talk = BufReader::new(client.stderr.take().unwrap()).lines();
    let first = talk.find(|line| line.as_ref().unwrap().contains("round trip p50")).unwrap().unwrap();
    server.end();
    let rest: Vec<String> = talk.map(Result::unwrap).collect();
    let output = client.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("lost the server")), "{rest:?}");
    assert!(scene.result_lines().len() >= 2, "{first}");
    assert!(String::from_utf8(output.stdout).unwrap().contains("UDP round trips"));
}

#[test]
fn a_client_that_is_killed_leaves_a_server_that_serves_the_next() {
    let scene = Scene::new();
    let server = Server::start("--bind 127.0.0.1 --max-sessions 1");
    let to =
        format!("udp --to 127.0.0.1 --port {} --output results --direction both --mode send", server.port);
    let mut client = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(to.split_whitespace())
        .args("--tests throughput --sizes 64,64 --duration 100s --verbose".split(' '))
        .current_dir(scene.path(""))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The measurement follows the line on the interface.
    let mut talk = BufReader::new(client.stderr.take().unwrap()).lines();
    assert!(talk.any(|line| line.unwrap().starts_with("interface: ")));
    client.kill().unwrap();
    client.wait().unwrap();
    // Until the session has ended, the server refuses new ones.
    let again = format!("udp {BRIEF} --to 127.0.0.1 --port {} --tests latency --sizes 64", server.port);
    loop {
        let finished = Scene::new().weir(&again);
        if finished.code == Some(0) {
            break;
        }
        assert!(finished.stderr.contains("try again later"), "{}", finished.stderr);
    }
}

#[test]
fn an_unwritable_folder_and_a_full_disk_are_reported() {
    let scene = Scene::new();
    fs::write(scene.path("file"), "").unwrap();
    let words = "--duration 50ms --warmup 0s --tests latency --sizes 64 --cpus none";
    scene.weir(&format!("udp {words} --output file/results")).expect_code(3).expect_stderr("file/results");
    fs::create_dir(scene.path("taken")).unwrap();
    fs::write(scene.path("taken/results.jsonl"), "").unwrap();
    scene.weir(&format!("udp {words} --output taken")).expect_code(2).expect_stderr("already contains a run");
    // A limited file size acts as a full disk.
    let script = format!(
        "trap '' XFSZ; ulimit -f 64; exec {} udp {words} --repeat 1000 --output results",
        env!("CARGO_BIN_EXE_weir")
    );
    let output = Command::new("sh").args(["-c", &script]).current_dir(scene.path("")).output().unwrap();
    let finished = Finished::from(output).expect_code(3).expect_stderr("cannot write results/results.jsonl");
    assert!(finished.stdout.contains("UDP round trips"), "{}", finished.stdout);
    let text = fs::read_to_string(scene.results().join("results.jsonl")).unwrap();
    assert!(text.lines().count() > 1 && text.len() <= 65_536, "{text}");
}

#[test]
fn another_clock_is_corrected_within_the_reported_bound() {
    // A time namespace gives the process another clock, 1000 s ahead.
    let mut command = Command::new("unshare");
    command.args(["--time", "--monotonic", "1000", "--fork", "--kill-child", env!("CARGO_BIN_EXE_weir")]);
    let can = Command::new("unshare").args(["--time", "--monotonic", "1000", "--fork", "true"]).output();
    if !can.is_ok_and(|output| output.status.success()) {
        return;
    }
    let server = Server::start_by(command, "--bind 127.0.0.1");
    let words = format!(
        "--to 127.0.0.1 --port {} --tests throughput --sizes 100 --mode send --rate 1000/s --direction both --format json",
        server.port
    );
    let document = udp(&Scene::new(), &words).expect_code(0).json();
    let [forward, reverse] = &cases(&document)[..] else { panic!("{document}") };
    for (case, expected_us) in [(forward, 1e9), (reverse, -1e9)] {
        let clocks = &case["udp"]["clocks"];
        let [offset, error] = ["offset_us", "error_us"].map(|name| clocks[name].as_f64().unwrap());
        assert_eq!(clocks["shared"], false);
        // The true offset is known.
        assert!((offset - expected_us).abs() <= error && error < 1e6, "{clocks}");
        // Without the correction, a delay would be 1000 s.
        assert!(case["latency_us"]["p50"].as_f64().unwrap() < 1e6, "{case}");
    }
}
