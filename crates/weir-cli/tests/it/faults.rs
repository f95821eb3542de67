//! Failing runs: their exit codes, and that finished cases are kept.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{BRIEF, Scene};

#[test]
fn an_unwritable_folder_is_noticed_before_the_run() {
    let scene = Scene::new();
    fs::write(scene.path("file"), "").unwrap();
    // With this mock the test would hang if the run started.
    let finished = scene.weir(&format!("bench --engines mock-hang {BRIEF} --output file/results"));
    finished.expect_code(3).expect_stderr("file/results");
}

#[test]
fn a_disk_that_becomes_full_ends_a_run_and_what_was_measured_is_kept() {
    let scene = Scene::new();
    let sizes: Vec<String> = (32..132).map(|size| size.to_string()).collect();
    let words =
        format!("bench --output results {BRIEF} --engines mock --tests latency --sizes {}", sizes.join(","));
    let finished = scene.weir_with_room(64, &words).expect_code(3);
    let finished =
        finished.expect_stderr("cannot write results/results.jsonl").expect_stderr("make room there");
    let cases = weir_results::Run::load(scene.results().join("results.jsonl")).unwrap().cases.len();
    assert!((5..100).contains(&cases), "{cases}");
    // The tables have them.
    assert!(finished.stdout.contains("| mock "), "{}", finished.stdout);
    scene.weir("export results -o cases.csv").expect_code(0);
}

#[test]
fn a_folder_that_holds_a_run_is_not_overwritten() {
    let scene = Scene::new();
    scene.bench("--engines mock --tests latency --sizes 32").expect_code(0);
    let before = scene.result_lines();
    scene.bench("--engines mock --tests latency --sizes 32").expect_code(2).expect_stderr("results");
    assert_eq!(scene.result_lines(), before);
}

#[test]
fn reliable_samples_that_are_lost_fail_the_run_with_1() {
    let scene = Scene::new();
    let words = "--engines mock-lossy --tests throughput --reliability reliable --sizes 32 --format json";
    let case = &scene.bench(words).expect_code(1).json()["cases"][0];
    assert!(case["throughput"]["lost"].as_u64().unwrap() > 0, "{case}");
    assert!(case["warnings"].to_string().contains("lost-samples"), "{case}");
}

#[test]
fn best_effort_samples_may_be_lost() {
    let words = "--engines mock-lossy --tests throughput --reliability best-effort --sizes 32";
    Scene::new().bench(words).expect_code(0);
}

#[test]
fn corrupted_samples_fail_the_run_with_1_when_verified() {
    let words = "--engines mock-corrupt --tests throughput --reliability best-effort --sizes 64";
    Scene::new().bench(words).expect_code(0);
    let finished = Scene::new().bench(&format!("{words} --verify --format json")).expect_code(1);
    assert!(finished.json()["cases"][0]["warnings"].to_string().contains("corrupt-samples"));
}

#[test]
fn a_process_that_dies_fails_its_case_with_3_and_the_run_goes_on() {
    let scene = Scene::new();
    let words = "--engines mock,mock-crash --reliability reliable --sizes 32,64 --batch 0 --format json";
    let document = scene.bench(words).expect_code(3).json();
    let cases = document["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 8);
    for case in cases {
        if case["engine"] == "mock" {
            assert!(case.get("not_measured").is_none(), "{case}");
        } else {
            assert_eq!(case["not_measured"]["kind"], "failed", "{case}");
            let reason = case["not_measured"]["reason"].as_str().unwrap();
            assert!(
                reason.contains("the publisher's process ended before its case did (exit status: 101)"),
                "{reason}"
            );
        }
    }
    assert_eq!(scene.result_lines().len(), 9);
}

#[test]
fn a_lost_reliable_ping_is_a_case_that_failed() {
    let words = "--engines mock-lossy --tests latency --reliability reliable --sizes 32 --format json";
    let case = &Scene::new().bench(words).expect_code(3).json()["cases"][0];
    assert!(case["not_measured"]["reason"].as_str().unwrap().contains("reliable ping"), "{case}");
}

/// A run whose second case hangs.
struct HangingRun {
    scene: Scene,
    child: Child,
    talk: BufReader<ChildStderr>,
}

impl HangingRun {
    /// Returns when the publisher of the second case hangs or is about to.
    fn start() -> Self {
        let scene = Scene::new();
        let words = format!(
            "bench --output results {BRIEF} --engines mock,mock-hang --tests throughput \
             --reliability reliable --sizes 32 --batch 0 --verbose"
        );
        let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(words.split_whitespace())
            .current_dir(scene.path(""))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let talk = BufReader::new(child.stderr.take().unwrap());
        let mut run = Self { scene, child, talk };
        run.read_until("mock-hang throughput reliable 32 B: started");
        run
    }

    /// Reads stderr up to a line with `text`.
    fn read_until(&mut self, text: &str) {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            assert_ne!(self.talk.read_line(&mut line).unwrap(), 0, "stderr ended before `{text}`");
        }
    }

    /// Waits until both children have started, and returns their process ids.
    fn agents(&self) -> Vec<Pid> {
        let path = format!("/proc/{0}/task/{0}/children", self.child.id());
        loop {
            let text = fs::read_to_string(&path).unwrap();
            let pids: Vec<Pid> =
                text.split_whitespace().map(|pid| Pid::from_raw(pid.parse().unwrap()).unwrap()).collect();
            // The children of the first case have ended before the second case is reported.
            if pids.len() == 2 {
                return pids;
            }
            std::thread::yield_now();
        }
    }

    fn code(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }
}

/// Whether a process runs and is not a zombie.
fn is_alive(pid: Pid) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    status.is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with(['Z', 'X']))
}

#[test]
fn ctrl_c_ends_both_processes_keeps_finished_cases_and_exits_130() {
    let mut run = HangingRun::start();
    let agents = run.agents();
    run.signal(Signal::INT);
    assert_eq!(run.code(), Some(130));
    assert!(!agents.into_iter().any(is_alive));
    let lines = run.scene.result_lines();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[1]["engine"], "mock");
}

#[test]
fn a_killed_child_is_an_error_with_3_at_once() {
    for index in [0, 1] {
        let mut run = HangingRun::start();
        kill_process(run.agents()[index], Signal::KILL).unwrap();
        assert_eq!(run.code(), Some(3));
        let lines = run.scene.result_lines();
        assert_eq!(lines.len(), 3);
        let reason = lines[2]["not_measured"]["reason"].as_str().unwrap();
        assert!(reason.contains("process ended before its case did (signal: 9"), "{reason}");
    }
}

#[test]
fn agents_end_by_themselves_when_their_coordinator_is_killed() {
    let mut run = HangingRun::start();
    let agents = run.agents();
    run.signal(Signal::KILL);
    run.code();
    // Waits for their end; the time limit of the test run catches a hang.
    while agents.iter().copied().any(is_alive) {
        std::thread::yield_now();
    }
}
