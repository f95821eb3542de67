//! `weir compare`: two runs, case by case.

use crate::support::Scene;

const RUN: &str = "--engines mock --sizes 32 --tests latency --repeat 8";

/// A scene with a run in `old` and one in `new`, whose latencies are multiplied.
fn two_runs(factor: f64) -> Scene {
    let scene = Scene::new();
    scene.bench(RUN).expect_code(0);
    let text = std::fs::read_to_string(scene.path("results/results.jsonl")).unwrap();
    let slowed = text.lines().map(|line| {
        let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
        if let Some(latency) = line.get_mut("latency_us").and_then(|it| it.as_object_mut()) {
            for name in ["p50", "p99"] {
                latency[name] = (latency[name].as_f64().unwrap() * factor).into();
            }
        }
        line.to_string()
    });
    let slowed: Vec<String> = slowed.collect();
    for (folder, text) in [("old", text.clone()), ("new", slowed.join("\n") + "\n")] {
        std::fs::create_dir(scene.path(folder)).unwrap();
        std::fs::write(scene.path(folder).join("results.jsonl"), text).unwrap();
    }
    scene
}

#[test]
fn what_is_slower_is_worse_and_exits_with_1() {
    let scene = two_runs(1.5);
    let compared = scene.weir("compare old new").expect_code(1);
    assert!(compared.stdout.contains("1.500") && compared.stdout.contains("worse"), "{}", compared.stdout);
    let tolerated = scene.weir("compare old new --tolerance 60%").expect_code(0);
    assert!(tolerated.stdout.contains("0 worse"), "{}", tolerated.stdout);
    scene.weir("compare new old").expect_code(0);
}

#[test]
fn a_run_does_not_differ_from_itself() {
    let scene = two_runs(1.0);
    let compared = scene.weir("compare old new --paired").expect_code(0);
    assert!(compared.stdout.contains("0 worse, 0 better"), "{}", compared.stdout);
}

#[test]
fn runs_on_different_paths_have_no_case_in_common_unless_they_are_compared_across_them() {
    let scene = two_runs(1.0);
    let path = scene.path("new/results.jsonl");
    let text = std::fs::read_to_string(scene.path("old/results.jsonl")).unwrap();
    let on = |link: &str| format!("{{\"path\":\"{link}\",\"engine\":\"mock\"");
    std::fs::write(&path, text.replace("{\"engine\":\"mock\"", &on("veth"))).unwrap();
    scene.weir("compare old new").expect_code(2).expect_stderr("no case in common");
    let across = scene.weir("compare old new --across-paths").expect_code(0);
    assert!(across.stdout.contains("0 worse, 0 better, 4 same"), "{}", across.stdout);
    // Two links on one side would be taken for repeats.
    let mixed = text.replacen("{\"engine\":\"mock\"", &on("wifi"), 1);
    std::fs::write(&path, mixed).unwrap();
    let refused = scene.weir("compare old new --across-paths").expect_code(2);
    refused.expect_stderr("one side has several: none; wifi");
}

#[test]
fn runs_of_different_hosts_are_compared_with_a_warning() {
    let scene = two_runs(1.0);
    let compared = scene.weir("compare old new").expect_code(0);
    assert!(!compared.stderr.contains("warning"), "{}", compared.stderr);
    let path = scene.path("new/results.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let (head, cases) = text.split_once('\n').unwrap();
    let mut head: serde_json::Value = serde_json::from_str(head).unwrap();
    head["environment"]["hostname"] = "elsewhere".into();
    std::fs::write(&path, format!("{head}\n{cases}")).unwrap();
    let compared = scene.weir("compare old new --format json").expect_code(0);
    compared.json();
    let warning = "warning: the runs were measured in different places";
    assert!(compared.stderr.contains(warning), "{}", compared.stderr);
    assert!(compared.stderr.contains("host elsewhere, kernel "), "{}", compared.stderr);
}

#[test]
fn tables_are_markdown_and_programs_get_json() {
    let scene = two_runs(1.5);
    let table = scene.weir("compare old new").expect_code(1).stdout;
    assert!(table.lines().any(|line| line.starts_with("| Engine | Size (B) | Figure |")), "{table}");
    let document = scene.weir("compare old new --format json").expect_code(1).json();
    assert_eq!(document["figures"][0]["verdict"], "worse");
}

#[test]
fn runs_with_nothing_in_common_and_missing_ones_are_errors_that_say_so() {
    let scene = two_runs(1.0);
    scene.weir("compare old nowhere").expect_code(2).expect_stderr("nowhere");
    let other =
        "bench --engines mock --sizes 64 --tests latency --duration 50ms --warmup 20ms --output other";
    scene.weir(other).expect_code(0);
    scene.weir("compare old other").expect_code(2).expect_stderr("only in the new run: mock 64 B");
    scene.weir("compare old new --tolerance 200%").expect_code(2).expect_stderr("a share from 0 %");
}

#[test]
fn a_run_with_many_repeats_is_compared_with_itself() {
    let scene = Scene::new();
    scene
        .bench("--engines mock --sizes 32 --tests latency --reliability reliable --repeat 20")
        .expect_code(0);
    let found = scene.weir("compare results --with-itself --slow-down 4%").expect_code(0).stdout;
    let words: Vec<&str> = found.split_whitespace().collect();
    // The figures of a mock do not vary.
    assert!(
        words.join(" ").contains("| 10 | 2 | 0 | 100 |") && found.contains("4 % slower: found"),
        "{found}"
    );
    let scene = two_runs(1.0);
    scene.weir("compare old --with-itself").expect_code(2).expect_stderr("at least 20 repeats");
    scene.weir("compare old new --with-itself").expect_code(2);
    scene.weir("compare old").expect_code(2).expect_stderr("<NEW>");
    scene.weir("compare published:micro --with-itself").expect_code(2).expect_stderr("no repeats");
}
