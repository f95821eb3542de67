//! `weir published`: published reference tables, and the same measured on this host.

use crate::support::{Domain, Scene};

#[test]
fn every_table_is_listed_and_shown() {
    let scene = Scene::new();
    let list = scene.weir("published list").expect_code(0).stdout;
    let names: Vec<&str> = list
        .lines()
        .filter(|line| line.contains(" rows, "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(names.len(), 24, "{list}");
    let shown =
        scene.weir(&format!("published show {} --format json", names.join(" "))).expect_code(0).json();
    assert_eq!(shown["tables"].as_array().unwrap().len(), 24);
    let text =
        scene.weir("published show pro-throughput-10g-unkeyed-best-effort-no-batch").expect_code(0).stdout;
    assert_eq!(text.lines().filter(|line| line.ends_with(" ?")).count(), 4, "{text}");
    let hpcbench = scene.weir("published show hpcbench-udp-roundtrip").expect_code(0).stdout;
    let mininet = scene.weir("published show osrf-mininet").expect_code(0).stdout;
    assert!(
        list.contains("osrf-mininet") && mininet.contains("Array1k,30,300,10,cyclonedds,sync,10,29.13,28.45")
    );
    assert!(hpcbench.contains("61.265") && hpcbench.contains("udptest -ah HOST"), "{hpcbench}");
}

#[test]
fn unknown_tables_are_rejected_with_an_alternative() {
    let scene = Scene::new();
    scene.weir("published run nonsense").expect_code(2).expect_stderr("`weir published list` names them all");
    scene.weir("published run hpcbench-udp-generator").expect_code(2).expect_stderr("udptest -gh HOST");
    scene
        .weir("published run all --sizes 33")
        .expect_code(2)
        .expect_stderr("no table has a row of those --sizes");
    for (words, expected) in [
        ("osrf-mininet --losses 15", "expected one of 0, 10, 20, 30, 40"),
        ("osrf-mininet --sizes 2048", "has no samples of 2048 bytes"),
        ("osrf-mininet --link lan100", "has links of its own"),
        ("osrf-mininet all", "measure osrf-mininet by itself"),
        ("all --runs 2", "--runs is for osrf-mininet"),
    ] {
        scene.weir(&format!("seeds run {words}")).expect_code(2).expect_stderr(expected);
    }
    scene.weir("published run all --link nowhere0").expect_code(2).expect_stderr("nowhere0");
    scene.weir("published run all --link veth,mtu=5").expect_code(2).expect_stderr("mtu of --link");
}

#[test]
fn a_row_of_either_kind_is_measured_beside_the_published_one() {
    let scene = Scene::new();
    let domain = Domain::claim();
    let words = format!(
        "published run pro-latency-1g-keyed-reliable micro-throughput-xeon-1g-unkeyed-reliable --sizes 256 --exec 1 \
         --domain {domain} --output kept --format json"
    );
    let document = scene.weir(&words).expect_code(0).json();
    let row = |table: usize| document["tables"][table]["rows"][3].clone();
    let latency = row(0);
    assert_eq!(latency["published"]["ave_us"], 31.0);
    assert!(latency["ours"]["p50_us"].as_f64().unwrap() > 0.0, "{latency}");
    let throughput = row(1);
    assert_eq!(throughput["published"]["samples_per_s"], 139_025.0);
    assert!(throughput["ours"]["total_samples"].as_f64().unwrap() > 1000.0, "{throughput}");
    assert_eq!(throughput["ours"]["lost_samples"], 0.0);
    assert_eq!(throughput["of_link"], serde_json::Value::Null);
    let text =
        std::fs::read_to_string(scene.path("kept/micro-throughput-xeon-1g-unkeyed-reliable.txt")).unwrap();
    assert!(text.contains("what differs:") && text.contains("     256  ours"), "{text}");
    assert!(scene.path("kept/pro-latency-1g-keyed-reliable.csv").exists());
}
