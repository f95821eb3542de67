//! `weir doctor`: the form of its findings, whatever they are on this host.

use crate::support::Scene;

#[test]
fn findings_have_names_texts_and_commands_and_decide_the_exit_code() {
    let scene = Scene::new();
    // The debug build of the tests is always a finding.
    let document = scene.weir("doctor --interface lo --peer 127.0.0.1 --json").expect_code(1).json();
    let findings = document["findings"].as_array().unwrap();
    let debug = findings.iter().find(|finding| finding["code"] == "debug-build").unwrap();
    assert_eq!(debug["command"], "cargo build --release");
    assert_eq!((&debug["is_note"], &debug["spoils"]), (&false.into(), &"both".into()));
    assert!(findings.iter().any(|finding| finding["code"] == "same-host"), "{document}");
    assert_eq!(document["facts"]["path"]["is_same_host"], true);
    assert_eq!(document["facts"]["environment"]["interface"]["name"], "lo");

    let list = scene.weir("doctor --interface lo").expect_code(1).stdout;
    assert!(list.contains("- debug-build: ") && list.contains("\n    cargo build --release\n"), "{list}");
}

#[test]
fn scripts_are_valid_shell() {
    for purpose in ["latency", "throughput"] {
        let script =
            Scene::new().weir(&format!("doctor --interface lo --script {purpose}")).expect_code(0).stdout;
        assert!(script.starts_with("#!/bin/sh\n"), "{script}");
        let checked = std::process::Command::new("sh").args(["-n", "-c", &script]).status().unwrap();
        assert!(checked.success(), "{script}");
    }
}

#[test]
fn the_help_does_not_suggest_running_a_script_unseen() {
    let help = Scene::new().weir("doctor --help").expect_code(0).stdout;
    assert!(help.contains("--script throughput > tune.sh") && help.contains("less tune.sh"), "{help}");
    assert!(!help.contains("| sudo") && !help.contains("| sh"), "{help}");
}

#[test]
fn an_unknown_peer_is_an_environment_error() {
    let ended = Scene::new().weir("doctor --peer no..such..host").expect_code(3);
    assert!(ended.stderr.contains("is no host that this one knows"), "{}", ended.stderr);
}
