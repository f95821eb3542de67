//! Help, versions and completions.

use crate::support::Scene;

#[test]
fn help_shows_the_commands_examples_and_exit_codes() {
    let help = Scene::new().weir("--help").expect_code(0).stdout;
    for expected in ["bench", "report", "completions", "Examples:", "Exit codes: 0 all well, 1"] {
        assert!(help.contains(expected), "no `{expected}` in: {help}");
    }
    assert!(!help.contains("agent"), "{help}");
}

#[test]
fn bench_help_shows_each_option_with_its_default_and_no_hidden_engine() {
    let help = Scene::new().weir("bench --help").expect_code(0).stdout;
    for option in [
        "--engines",
        "--tests",
        "--sizes",
        "--reliability",
        "--instances",
        "--batch",
        "--publishers",
        "--subscribers",
        "--multicast",
        "--loans",
        "--wait",
        "--cpus",
        "--duration",
        "--warmup",
        "--repeat",
        "--format",
        "--output",
        "--domain",
        "--interface",
        "--socket-buffer",
        "--settings",
        "--show-settings",
        "--verify",
        "--outside-checks",
    ] {
        assert!(help.contains(option), "no {option} in: {help}");
    }
    for default in [
        "[default: latency,throughput]",
        "[default: 32,1024,8192,63000]",
        "[default: best-effort,reliable]",
        "[default: 0,8192]",
        "[default: block]",
        "[default: 2s; 1s with more than four engines]",
        "[default: 300ms]",
        "[default: lo]",
        "[default: 4194304]",
        "[default: table]",
    ] {
        assert!(help.contains(default), "no {default} in: {help}");
    }
    assert!(help.contains("- udp: ") && help.contains("Examples:"), "{help}");
    assert!(!help.contains("mock"), "{help}");
}

#[test]
fn completions_are_made_for_the_usual_shells() {
    for shell in ["bash", "zsh", "fish"] {
        let script = Scene::new().weir(&format!("completions {shell}")).expect_code(0).stdout;
        assert!(script.contains("weir") && script.contains("outside-checks"), "{shell}: {script}");
    }
}

#[test]
fn an_agent_started_by_hand_is_told_so() {
    let scene = Scene::new();
    scene
        .weir("agent --role publisher --control 127.0.0.1:1")
        .expect_code(2)
        .expect_stderr("`weir bench` starts agents");
    scene.weir("agent --role dancer --control 127.0.0.1:1").expect_code(2);
}
