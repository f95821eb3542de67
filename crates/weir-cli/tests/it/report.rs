//! `weir report`: earlier runs, printed or plotted.

use crate::support::Scene;

fn finished_run() -> Scene {
    let scene = Scene::new();
    scene.bench("--engines mock --sizes 32,1024 --batch 0").expect_code(0);
    scene
}

#[test]
fn a_run_is_printed_again_as_it_was() {
    let scene = Scene::new();
    let first = scene.bench("--engines mock --sizes 32,1024 --batch 0").expect_code(0);
    let again = scene.weir("report results").expect_code(0);
    assert_eq!(again.stdout, first.stdout);
    assert_eq!(scene.weir("report results/results.jsonl").expect_code(0).stdout, first.stdout);
}

#[test]
fn a_run_is_printed_in_other_formats() {
    let scene = finished_run();
    let document = scene.weir("report results --format json").expect_code(0).json();
    assert_eq!(document["cases"].as_array().unwrap().len(), 8);
    let csv = scene.weir("report results --format csv").expect_code(0).stdout;
    assert_eq!(csv.lines().count(), 1 + 8);
}

#[test]
fn plots_are_written_as_svg() {
    let scene = finished_run();
    scene
        .weir("report results --plot latency --plot throughput --output plots")
        .expect_code(0)
        .expect_stderr("plots/");
    let names: Vec<_> =
        std::fs::read_dir(scene.path("plots")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(names.len() >= 2, "{names:?}");
    for path in names {
        assert!(std::fs::read_to_string(&path).unwrap().starts_with("<svg"), "{}", path.display());
    }
}

#[test]
fn the_plots_of_the_page_are_written_too() {
    let scene = finished_run();
    let plots = "report results --plot histogram --plot processor --plot-format svg,png --output plots";
    scene.weir(plots).expect_code(0).expect_stderr("plots/histogram-latency-reliable");
    let names = std::fs::read_dir(scene.path("plots")).unwrap().map(|entry| entry.unwrap().file_name());
    let names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    let count = |end: &str| names.iter().filter(|name| name.ends_with(end)).count();
    assert!(count(".svg") >= 3 && count(".svg") == count(".png"), "{names:?}");
    scene.weir("report results --plot load").expect_code(2).expect_stderr("no load figures to plot");
}

#[test]
fn a_folder_without_a_run_is_named() {
    Scene::new().weir("report nowhere").expect_code(2).expect_stderr("nowhere");
}

#[test]
fn a_report_is_one_page_with_a_section_for_each_run() {
    let scene = finished_run();
    scene.weir("report results -o report.html").expect_code(0).expect_stderr("report: report.html");
    let page = std::fs::read_to_string(scene.path("report.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"), "{page}");
    assert!(page.contains(">mock<") && page.contains("results: Weir "), "{page}");
    scene.weir("report results results/results.jsonl --output both.html").expect_code(0);
    let both = std::fs::read_to_string(scene.path("both.html")).unwrap();
    assert!(both.contains("Run 1: results") && both.contains("Run 2: results"), "{both}");
}

#[test]
fn what_makes_no_report_is_refused_with_advice() {
    let scene = finished_run();
    scene.weir("report results --output report.txt").expect_code(2).expect_stderr("in .html");
    scene.weir("report results results").expect_code(2).expect_stderr("-o report.html");
    scene.weir("report results -o a.html --relative-to nothing").expect_code(2).expect_stderr("nothing");
    scene.weir("report results -o a.html --format csv").expect_code(2).expect_stderr("--format");
    scene.weir("report results nowhere -o a.html").expect_code(2).expect_stderr("nowhere");
    assert!(!scene.path("a.html").exists());
}

#[test]
fn a_full_disk_costs_no_file_and_leaves_none() {
    let scene = finished_run();
    std::fs::write(scene.path("report.html"), "an earlier report").unwrap();
    for (words, file) in [
        ("report results -o report.html", "report.html"),
        ("redact results -o shared.jsonl", "shared.jsonl"),
        ("export results -o cases.csv", "cases.csv"),
    ] {
        let text = format!("cannot write {file}");
        scene.weir_with_room(4, words).expect_code(3).expect_stderr(&text).expect_stderr("another file");
    }
    assert_eq!(std::fs::read_to_string(scene.path("report.html")).unwrap(), "an earlier report");
    let names = std::fs::read_dir(scene.path("")).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["report.html", "results"]);
    scene.weir("redact results -o shared.jsonl").expect_code(0);
    scene.weir("redact results -o shared.jsonl").expect_code(3).expect_stderr("exists");
}

#[test]
fn damaged_and_cut_lines_are_left_out_with_a_warning() {
    let scene = finished_run();
    let file = scene.results().join("results.jsonl");
    let text = std::fs::read_to_string(&file).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines[2] = "{\"engine\": \"mock\", \"te";
    let cut = &lines[8][..40];
    lines[8] = cut;
    std::fs::write(&file, lines.join("\n")).unwrap();
    for words in
        ["report results", "report results --compact", "export results -o a.csv", "compare results results"]
    {
        let finished = scene.weir(words).expect_code(0);
        finished
            .expect_stderr("results/results.jsonl: line 3 is damaged, and left out")
            .expect_stderr("results/results.jsonl: the last line is cut short");
    }
    let rows = std::fs::read_to_string(scene.path("a.csv")).unwrap().lines().count();
    assert_eq!(rows, 1 + 6);
}

#[test]
fn a_run_without_cases_says_so() {
    let scene = finished_run();
    let file = scene.results().join("results.jsonl");
    let header = std::fs::read_to_string(&file).unwrap().lines().next().unwrap().to_owned();
    std::fs::write(&file, header + "\n").unwrap();
    scene.weir("report results").expect_code(0).expect_stderr("results.jsonl: no case was measured");
}

#[test]
fn a_missing_run_is_a_usage_error_of_every_command() {
    for words in [
        "report a",
        "report a --compact",
        "export a -o b.csv",
        "compare a b",
        "targets --from a",
        "redact a -o b",
    ] {
        Scene::new().weir(words).expect_code(2).expect_stderr("read a");
    }
    for words in ["run a.toml", "history a", "serve a", "budget a.toml"] {
        Scene::new().weir(words).expect_code(2).expect_stderr("a");
    }
}
