//! The ready-made plans of published tables: each can be measured, and its figures are shown beside the published ones.

use serde_json::Value;

use crate::support::{Domain, Scene, has_no_links};

/// The names of the ready-made plans in a list.
fn names(list: &str) -> Vec<&str> {
    let items = list.lines().filter_map(|line| line.strip_prefix("  "));
    items.filter(|item| !item.starts_with(' ')).filter_map(|item| item.split(' ').next()).collect()
}

fn cases(scene: &Scene, study: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(scene.results().join(study).join("results.jsonl")).unwrap();
    text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_published_table_has_a_plan_that_can_run() {
    let scene = Scene::new();
    let list = scene.weir("run --list").expect_code(0).stdout;
    let tables = scene.weir("published list").expect_code(0).stdout;
    let names = names(&list);
    let tables: Vec<&str> = self::names(&tables).into_iter().filter(|name| *name != "osrf-mininet").collect();
    assert!(tables.len() == 30 && tables.iter().all(|table| names.contains(table)), "{tables:?} {list}");
    for name in tables {
        let dry = scene.weir(&format!("run {name} --brief --dry-run")).expect_code(0).stdout;
        assert!(dry.contains("link=veth,mtu=") && dry.contains("--duration=100ms --warmup=20ms"), "{dry}");
        // Each case once.
        assert!(dry.contains("repeat 1") && !dry.contains("repeat 2"), "{dry}");
        let last = dry.lines().last().unwrap();
        let study = if last.starts_with("1 ") { "study" } else { "studies" };
        assert!(last.contains(study) && last.ends_with(" s"), "{last}");
    }
}

#[test]
fn a_plan_of_a_published_table_is_measured_and_drawn_beside_its_figures() {
    let scene = Scene::new();
    let domain = Domain::claim();
    let table = "pro-latency-1g-unkeyed-reliable";
    let words = format!(
        "run {table} --brief --set link= --set sizes=32,1024,8192 --set keep_awake=no \
         --set domain={domain} --output results"
    );
    scene.weir(&words).expect_code(0);
    assert_eq!(cases(&scene, table).len(), 6);
    scene.weir(&format!("report results/{table} -o report.html")).expect_code(0);
    let page = std::fs::read_to_string(scene.path("report.html")).unwrap();
    let label = "Connext Professional, 1 Gbit/s (published)";
    assert!(
        page.contains(&format!("{label}: the vendor's figures of another machine, from {table}: ")),
        "{page}"
    );
    // Below the rows of their size, in the plot, in its legend and in its data.
    assert!(
        page.matches(&format!("<tr class=\"published\"><th scope=\"row\">{label}</th>")).count() > 3 + 10
    );
    assert!(page.contains("<g class=\"p0\">"));
    let without = scene.weir(&format!("report results/{table} -o none.html --published none"));
    without.expect_code(0);
    assert!(!std::fs::read_to_string(scene.path("none.html")).unwrap().contains("(published)"));
    let other = "micro-latency-pi-1g-unkeyed-reliable";
    scene.weir(&format!("report results/{table} -o other.html --published {other},{table}")).expect_code(0);
    let page = std::fs::read_to_string(scene.path("other.html")).unwrap();
    assert!(page.contains("Raspberry Pi 4") && page.contains(label) && page.contains("<g class=\"p1\">"));
    let refused = scene.weir(&format!("report results/{table} -o x.html --published nothing")).expect_code(2);
    refused.expect_stderr("`nothing` is not a published table");
    scene.weir(&format!("compare published:{table} results/{table}")).expect_code(0);
    let words = format!("report results/{table} --plot latency --plot-format svg,png --output plots");
    scene.weir(&words).expect_code(0);
    let read = |extension: &str| {
        let mut files = std::fs::read_dir(scene.path("plots")).unwrap().map(|entry| entry.unwrap().path());
        let file = files.find(|path| path.extension().is_some_and(|it| it == extension)).unwrap();
        std::fs::read(file).unwrap()
    };
    // In two lines of the legend.
    assert!(String::from_utf8(read("svg")).unwrap().contains("Connext Professional, 1\n"));
    assert!(read("png").starts_with(b"\x89PNG\r\n"));
}

#[test]
fn a_plan_of_udp_tests_goes_on_where_it_ended() {
    let scene = Scene::new();
    let words = "run hpcbench-udp-exponential --brief --set link= --set sizes=64,1024 --output results";
    scene.weir(words).expect_code(0);
    let before = cases(&scene, "sizes");
    assert_eq!(before.len(), 2);
    let again = scene.weir(words).expect_code(0);
    assert!(again.stderr.contains("study sizes (1 of 1): finished before, 2 cases"), "{}", again.stderr);
    let path = scene.results().join("sizes/results.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, &text[..text.len() - 10]).unwrap();
    let resumed = scene.weir(words).expect_code(0);
    assert!(resumed.stderr.contains("study sizes (1 of 1): goes on after 1 case\n"), "{}", resumed.stderr);
    let after = cases(&scene, "sizes");
    assert_eq!((after.len(), &after[0]), (2, &before[0]));
    scene.weir("report results/sizes -o report.html").expect_code(0);
    let page = std::fs::read_to_string(scene.path("report.html")).unwrap();
    assert!(page.contains("hpcbench, 1 Gbit/s (published)"));
    let refused = scene.weir(&format!("{words} --hosts pub=local,sub=beta")).expect_code(2);
    refused.expect_stderr("the study `sizes` measures as `weir udp` does");
    scene.weir("run udp --set repaet=2 --dry-run").expect_code(2).expect_stderr("did you mean `repeat`?");
}

#[test]
fn plans_of_published_tables_run_across_the_link_of_their_table() {
    if has_no_links() {
        return;
    }
    let scene = Scene::new();
    let domain = Domain::claim();
    let (table, udp) = ("micro-throughput-xeon-1g-unkeyed-reliable", "hpcbench-udp-bidirectional");
    scene
        .weir(&format!("run {table} --brief --set sizes=1024 --set domain={domain} --output results"))
        .expect_code(0);
    let paths: Vec<Value> = cases(&scene, table).into_iter().map(|case| case["path"].clone()).collect();
    // Raw UDP, Weir and its small profile.
    assert_eq!(paths, ["veth,mtu=9000,rate=1G,gso=on"; 3]);
    // Two studies one after the other, each with a link of its own.
    scene.weir(&format!("run {udp} --brief --output both")).expect_code(0);
    let text = std::fs::read_to_string(scene.path("both/both-ways/results.jsonl")).unwrap();
    assert_eq!(text.lines().count(), 3);
    // The folder of a plan stands for its studies.
    scene.weir("report both -o report.html").expect_code(0);
    let page = std::fs::read_to_string(scene.path("report.html")).unwrap();
    assert!(page.contains("hpcbench, 1 Gbit/s (published), reverse"));
    scene.weir("run hpcbench-udp-unidirectional --brief --set duration=50ms --output three").expect_code(0);
    scene.weir("report three -o report.html").expect_code(0);
    let page = std::fs::read_to_string(scene.path("report.html")).unwrap();
    for study in ["Run 1: stream", "Run 2: large-datagrams", "Run 3: small-buffers"] {
        assert!(page.contains(study), "{study}");
    }
}
