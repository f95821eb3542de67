//! `weir domain`: participants in processes.

use std::net::UdpSocket;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Domain, Finished, KilledOnDrop, Scene, await_end, children};

#[test]
fn all_endpoints_of_all_participants_match() {
    let (scene, domain) = (Scene::new(), Domain::claim());
    let words = "domain --participants 3 --endpoints 2 --processes 2 --rest 0s --format json";
    let report = scene.weir(&format!("{words} --domain {domain}")).expect_code(0).json();
    let whole = |name: &str| report[name].as_u64().unwrap_or_else(|| panic!("{name} in {report}"));
    assert_eq!((whole("participants"), whole("endpoints"), whole("processes")), (3, 2, 2));
    // A writer and a reader, each with one of each participant.
    assert_eq!(report["matches_per_participant"], 6.0, "{report}");
    // Each participant has announced itself and its endpoints to the two others at least.
    assert!(whole("datagrams") >= 6 && whole("bytes") > 28 * 6, "{report}");
    // Two processes, of which each has grown by a participant at least.
    assert!(whole("alone_bytes") > 0 && whole("resident_bytes") > 2 * whole("alone_bytes"), "{report}");
    let ms = |name: &str| report[name].as_f64().unwrap();
    assert!(0.0 < ms("joined_ms") && ms("joined_ms") <= ms("joined_everywhere_ms"), "{report}");
    for step in ["joined_discovered_ms", "joined_answered_ms", "joined_endpoints_ms"] {
        assert!(0.0 < ms(step) && ms(step) <= ms("joined_ms"), "{step} in {report}");
    }
    assert!(ms("matched_ms") > 0.0 && ms("matched_cpu_ms") > 0.0, "{report}");
    for missing in ["bytes_per_remote_endpoint", "rest_cpu_percent", "rest_datagrams_per_s"] {
        assert!(report.get(missing).is_some_and(serde_json::Value::is_null), "{missing} in {report}");
    }
    assert_eq!(report["limits"], serde_json::json!([]));
    await_end(&scene);
}

/// Starts a measurement that does not end by itself, and sends a signal once both processes of the domain exist: to
/// one of them, or to the command.
fn signalled(scene: &Scene, domain: &Domain, victim: impl Fn(Pid, &[Pid]) -> (Pid, Signal)) -> Finished {
    let words = "domain --participants 4 --endpoints 2 --processes 2 --rest 10h";
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(words.split(' ')).args(["--domain", &domain.to_string()]).current_dir(scene.path(""));
    let mut weir = KilledOnDrop::spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    // Those that measure the memory of few participants are alone. The time limit of the test catches a hang.
    let parts = loop {
        let parts = children(weir.process.id(), "domain-part");
        if parts.len() == 2 || weir.process.try_wait().unwrap().is_some() {
            break parts;
        }
        std::thread::yield_now();
    };
    assert_eq!(parts.len(), 2, "the command has ended by itself");
    let (pid, signal) = victim(Pid::from_child(&weir.process), &parts);
    kill_process(pid, signal).unwrap();
    let text = |output: Option<&mut dyn std::io::Read>| {
        let mut text = String::new();
        output.unwrap().read_to_string(&mut text).unwrap();
        text
    };
    let stdout = text(weir.process.stdout.as_mut().map(|it| it as _));
    let stderr = text(weir.process.stderr.as_mut().map(|it| it as _));
    let finished = Finished { code: weir.process.wait().unwrap().code(), stdout, stderr };
    await_end(scene);
    finished
}

#[test]
fn a_process_that_is_killed_ends_the_measurement_and_the_others() {
    let (scene, domain) = (Scene::new(), Domain::claim());
    for index in 0..2 {
        let finished = signalled(&scene, &domain, |_, parts| (parts[index], Signal::KILL)).expect_code(3);
        let expected = " of 2 with participants ended early (signal: 9 (SIGKILL))\n";
        assert!(finished.stdout.is_empty() && finished.stderr.ends_with(expected), "{}", finished.stderr);
    }
}

#[test]
fn an_interruption_ends_all_processes() {
    let (scene, domain) = (Scene::new(), Domain::claim());
    for signal in [Signal::INT, Signal::TERM] {
        let finished = signalled(&scene, &domain, |weir, _| (weir, signal)).expect_code(130);
        assert!(finished.stdout.is_empty() && finished.stderr.is_empty(), "{}", finished.stderr);
    }
}

#[test]
fn participants_of_other_programs_are_reported() {
    let domain = Domain::claim();
    let port = 7400 + 250 * domain.to_string().parse::<u16>().unwrap();
    let _socket = UdpSocket::bind(("127.0.0.1", port)).unwrap();
    let finished = Scene::new().weir(&format!("domain --participants 2 --rest 0s --domain {domain}"));
    let expected =
        format!("weir: domain {domain} is in use by another program: choose another one with --domain\n");
    assert_eq!(finished.expect_code(3).stderr, expected);
}

#[test]
fn invalid_options_are_rejected() {
    for (words, expected) in [
        ("--interface nosuch", "`nosuch` is no network interface that is up and has an IPv4 address"),
        ("--endpoints 3", "--endpoints 3 is odd"),
        ("--participants 1", "1 is not in 2..=1000"),
    ] {
        Scene::new().weir(&format!("domain {words}")).expect_code(2).expect_stderr(expected);
    }
    Scene::new().weir("domain-part 1").expect_code(2).expect_stderr("only `weir domain` starts this command");
}
