//! `weir bench --workload`: many topics at fixed rates.

use serde_json::Value;

use crate::support::{Domain, Scene};

const SMALL: &str = "\
processes = 2

[[node]]
name = \"arm\"
processes = [1]

[[node]]
name = \"brain\"
processes = [2]

[[topic]]
name = \"state\"
count = 2
size = 200
rate = 100
from = \"arm\"
to = \"brain\"

[[topic]]
name = \"command\"
size = \"8k\"
rate = 20
burst = 2
instances = 3
reliability = \"best-effort\"
history = 5
from = \"brain\"
to = \"arm\"
";

#[test]
fn a_small_workload_is_measured_with_each_engine_and_printed_in_every_form() {
    let (scene, domain) = (Scene::new(), Domain::claim());
    std::fs::write(scene.path("small.toml"), SMALL).unwrap();
    let words = format!(
        "bench --workload small.toml --engines udp,weir --duration 300ms --warmup 100ms --domain {domain} \
         --output results --format json"
    );
    let document = scene.weir(&words).expect_code(0).json();
    let cases = document["cases"].as_array().unwrap();
    let engines: Vec<&Value> = cases.iter().map(|case| &case["engine"]).collect();
    assert_eq!(engines, ["udp", "weir"]);
    for case in cases {
        assert_eq!((&case["test"], &case["workload_name"]), (&"workload".into(), &"small".into()), "{case}");
        let workload = &case["workload"];
        let count = |name: &str| workload[name].as_u64().unwrap();
        assert_eq!(["nodes", "topics", "writers", "readers"].map(count), [2, 3, 3, 3]);
        assert_eq!(workload["processes"].as_array().unwrap().len(), 2);
        assert_eq!(workload["processes"][1]["nodes"], "brain 1");
        let groups = workload["groups"].as_array().unwrap();
        assert_eq!((groups.len(), &groups[1]["burst"]), (2, &Value::from(2)));
        // A host that stops its processes for long makes the writers late, but something arrives.
        assert!(groups.iter().all(|it| it["received"].as_u64() > Some(0)), "{case}");
        assert!(groups.iter().all(|it| it["age_us"]["p99"].as_f64() > Some(0.0)), "{case}");
    }
    // Reliable topics that keep all samples lose nothing, or the exit code would be another one.
    assert_eq!(cases[1]["workload"]["groups"][0]["lost"], 0);
    assert!(cases[1]["workload"]["discovery"].is_object() && cases[0]["workload"]["discovery"].is_null());

    let tables = scene.weir("report results").expect_code(0).stdout;
    for text in
        ["Workload small, 2 nodes in 2 processes", "By topics", "By processes", "best-effort, last 5, keyed"]
    {
        assert!(tables.contains(text), "no `{text}` in {tables}");
    }
    let csv = scene.weir("report results --format csv").expect_code(0).stdout;
    assert_eq!(csv.lines().count(), 1 + 2 * 2, "{csv}");
    scene.weir("report results -o report.html").expect_code(0);
    let page = std::fs::read_to_string(scene.path("report.html")).unwrap();
    for text in
        ["Workload small, 2 nodes in 2 processes", "By topics", "of a processor, and 1 % of its samples"]
    {
        assert!(page.contains(text), "no `{text}` in the page");
    }
}

#[test]
fn samples_that_fit_no_datagram_are_not_supported_by_udp() {
    let scene = Scene::new();
    std::fs::write(scene.path("large.toml"), SMALL.replace("\"8k\"", "\"1M\"")).unwrap();
    let words =
        "bench --workload large.toml --engines udp,udp-gso --duration 50ms --output results --format json";
    let document = scene.weir(words).expect_code(0).json();
    let reason = |case: usize| document["cases"][case]["not_measured"]["reason"].as_str().unwrap().to_owned();
    assert!(reason(0).contains("udp carries at most 65507 bytes"), "{document}");
    let scene = Scene::new();
    std::fs::write(scene.path("small.toml"), SMALL).unwrap();
    let words =
        "bench --workload small.toml --engines udp-gso --duration 50ms --output results --format json";
    let document = scene.weir(words).expect_code(0).json();
    let reason = document["cases"][0]["not_measured"]["reason"].as_str().unwrap();
    assert!(reason.contains("udp-gso does not support workloads"), "{document}");
}

#[test]
fn errors_name_the_file_and_the_line_and_options_that_do_not_apply() {
    let scene = Scene::new();
    std::fs::write(scene.path("bad.toml"), SMALL.replace("rate = 20", "rate = -1")).unwrap();
    let expected = "bad.toml, line 22: `rate` is -1: it is a number of more than 0";
    scene.weir("bench --workload bad.toml").expect_code(2).expect_stderr(expected);
    scene
        .weir("bench --workload nowhere")
        .expect_code(2)
        .expect_stderr("a ready-made workload (robot, trading");
    scene.weir("bench --workload robot --sizes 32").expect_code(2).expect_stderr("--sizes");
    scene.weir("bench --tests workload").expect_code(2).expect_stderr("--workload instead");
    scene
        .weir("bench --workload robot --engines weir --duration 500000s")
        .expect_code(2)
        .expect_stderr("use a shorter --duration");
}

#[test]
fn a_ready_made_workload_can_be_copied_and_planned() {
    let scene = Scene::new();
    let shown = scene.weir("bench --show-workload telemetry").expect_code(0).stdout;
    assert!(shown.starts_with("# Telemetry") && shown.contains("writers = 1000"), "{shown}");
    scene.weir("bench --show-workload robto").expect_code(2).expect_stderr("robot, trading, telemetry");
    std::fs::create_dir(scene.path("plans")).unwrap();
    std::fs::write(scene.path("plans/mine.toml"), shown).unwrap();
    // Files are relative to the plan.
    let plan = "[defaults]\nengines = 'weir'\nduration = '3s'\n\
                [[study]]\nname = 'mine'\nworkload = 'mine.toml'\n[[study]]\nname = 'robot'\nworkload = 'robot'\n";
    std::fs::write(scene.path("plans/plan.toml"), plan).unwrap();
    let dry = scene.weir("run plans/plan.toml --dry-run").expect_code(0).stdout;
    assert!(
        dry.contains("weir workload mine, repeat 1") && dry.contains("weir workload robot, repeat 1"),
        "{dry}"
    );
}
