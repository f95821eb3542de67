//! `weir doctor`: whatever it finds on this host, it says so in a form that can be relied on.

use crate::support::Scene;

#[test]
fn findings_have_names_texts_and_commands_and_decide_the_exit_code() {
    let scene = Scene::new();
    // A build for tests is not optimised, so that there is always something.
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
fn scripts_are_scripts_and_end_well() {
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
fn a_peer_that_nobody_knows_is_trouble_of_the_environment() {
    let ended = Scene::new().weir("doctor --peer no..such..host").expect_code(3);
    assert!(ended.stderr.contains("is no host that this one knows"), "{}", ended.stderr);
}
