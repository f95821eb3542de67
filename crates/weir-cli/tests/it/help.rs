//! Help, man pages, the reference and completions.

use crate::support::Scene;

#[test]
fn help_shows_the_commands_examples_and_exit_codes() {
    let help = Scene::new().weir("--help").expect_code(0).stdout;
    for expected in ["bench", "report", "completions", "Examples:", "Exit codes: 0 success, 1"] {
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
        "--until-width",
        "--order",
        "--seed",
        "--format",
        "--output",
        "--domain",
        "--interface",
        "--socket-buffer",
        "--settings",
        "--link",
        "--resources",
        "--subscriber-delay",
        "--show-settings",
        "--verify",
        "--outside-checks",
        "--workload",
        "--show-workload",
    ] {
        assert!(help.contains(option), "no {option} in: {help}");
    }
    // A default may be broken over two lines.
    let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for default in [
        "[default: udp,udp-gso,weir]",
        "[default: latency,throughput]",
        "[default: 32,1024,8192,63000]",
        "[default: best-effort,reliable]",
        "[default: 0,8192]",
        "[default: block]",
        "[default: 2s; 1s with more than four engines; 10s for a workload]",
        "[default: 300ms]",
        "[default: lo]",
        "[default: 4194304]",
        "[default: table]",
    ] {
        assert!(words.contains(default), "no {default} in: {help}");
    }
    assert!(
        help.contains("\n  udp                plain UDP, one send per sample: the baseline\n")
            && help.contains("Examples:"),
        "{help}"
    );
    assert!(!help.contains("mock"), "{help}");
}

#[test]
fn options_of_bench_have_headings() {
    let help = Scene::new().weir("bench --help").expect_code(0).stdout;
    let headings =
        ["Workload:", "QoS:", "Method:", "Host:", "Output:", "Engines:", "Examples:", "Exit codes:"];
    let places: Vec<_> = headings.iter().map(|heading| help.find(&format!("\n{heading}"))).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}: {help}");
}

#[test]
fn former_names_are_accepted_and_hidden() {
    let scene = Scene::new();
    let words = "--engines mock --tests latency --sizes 32 --late 1ms --costs";
    scene.bench(words).expect_code(0);
    scene.weir("report results --costs").expect_code(0);
    scene.weir("goals --from results --domain 231").expect_code(0);
    scene.weir("seeds list").expect_code(0);
    scene.weir("sub --patience 1s --engine quic").expect_code(2).expect_stderr("quic");
    scene.weir("bench --path dsl").expect_code(2).expect_stderr("dsl");
    for (command, former) in [
        ("", "goals"),
        ("", "seeds"),
        ("bench", "--late"),
        ("bench", "--costs"),
        ("bench", "--path"),
        ("bench", "--interleave"),
        ("report", "--costs"),
        ("udp", "--path"),
        ("published run", "--path"),
        ("sub", "--patience"),
    ] {
        let help = scene.weir(&format!("{command} --help")).expect_code(0).stdout;
        assert!(!help.contains(former), "{command}: {former} in {help}");
    }
}

#[test]
fn completions_are_made_for_the_usual_shells() {
    for shell in ["bash", "zsh", "fish"] {
        let script = Scene::new().weir(&format!("completions {shell}")).expect_code(0).stdout;
        assert!(script.contains("weir") && script.contains("outside-checks"), "{shell}: {script}");
    }
}

#[test]
fn completions_are_made_for_all_four_commands() {
    let scene = Scene::new();
    for (command, option) in [
        ("weir", "subscriber-delay"),
        ("perftest", "-latencyTest"),
        ("udptest", "-T"),
        ("udpserver", "max-sessions"),
    ] {
        for shell in ["bash", "zsh", "fish"] {
            let script = scene.weir(&format!("completions {shell} {command}")).expect_code(0).stdout;
            let option = if shell == "fish" { option.trim_start_matches('-') } else { option };
            assert!(script.contains(command) && script.contains(option), "{shell} {command}: {script}");
        }
    }
    scene.weir("completions elvish perftest").expect_code(2).expect_stderr("choose bash, zsh or fish");
}

#[test]
fn man_pages_are_written_for_every_command() {
    let scene = Scene::new();
    scene.weir("man --output man/man1").expect_code(0);
    for (name, text) in [
        ("weir", "completions"),
        ("weir-bench", "\\-\\-subscriber\\-delay"),
        ("weir-udp-server", "\\-\\-max\\-sessions"),
        ("weir-published-run", "\\-\\-exec"),
        ("perftest", "\\-latencyTest"),
        ("udptest", "\\-T"),
        ("udpserver", "\\-p"),
    ] {
        let page = std::fs::read_to_string(scene.path("man/man1").join(format!("{name}.1"))).unwrap();
        assert!(page.starts_with(".TH ") && page.contains(text), "{name}: {page}");
    }
    assert!(!scene.path("man/man1/weir-agent.1").exists());
    std::fs::write(scene.path("file"), "").unwrap();
    scene.weir("man --output file/man1").expect_code(3).expect_stderr("choose another folder with --output");
}

#[test]
fn the_reference_in_the_documentation_is_current() {
    let scene = Scene::new();
    scene.weir("reference --output page.md").expect_code(0);
    let page = std::fs::read_to_string(scene.path("page.md")).unwrap();
    let committed = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/command-lines.md");
    if std::env::var_os("WEIR_BLESS").is_some() {
        std::fs::write(committed, &page).unwrap();
    }
    let is_current = std::fs::read_to_string(committed).is_ok_and(|committed| committed == page);
    assert!(is_current, "{committed} is out of date: WEIR_BLESS=1 cargo test -p weir-cli --test it help::");
}

#[test]
fn an_agent_started_by_hand_is_rejected() {
    let scene = Scene::new();
    scene
        .weir("agent --role publisher --control 127.0.0.1:1")
        .expect_code(2)
        .expect_stderr("`weir bench` starts agents");
    scene.weir("agent --role dancer --control 127.0.0.1:1").expect_code(2);
}
