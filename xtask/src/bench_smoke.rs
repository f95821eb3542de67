//! End to end: runs a short `weir bench` as in the README, and checks its output and results file.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::ci::Outcome;
use crate::environment::{Environment, Tool};
use crate::process;
use crate::steps;

/// Runs a bench of a few seconds on the loopback interface, with the program that the tests have built: an optimised
/// one would take two minutes to build, and this checks no speed.
pub(crate) fn step(environment: &Environment) -> Outcome {
    let weir = steps::weir(environment)?;
    let folder = std::env::temp_dir().join(format!("weir-smoke-{}", std::process::id()));
    let output = folder.to_string_lossy().into_owned();
    let mut bench = Command::new(weir);
    bench.args(["bench", "--interface", "lo", "--format", "json"]);
    bench.args(["--sizes", "32,8k", "--duration", "300ms", "--warmup", "100ms", "--output", &output]);
    // Also the comparison with external tools, if they are available.
    let has_outside = environment.require(&OUTSIDE).is_ok();
    if has_outside {
        bench.arg("--outside-checks");
    }
    let finished = process::run(&mut bench, steps::PROGRAM_LIMIT)?;
    let cases = inspect(&finished.stdout).and_then(|cases| compare_with_file(&folder, cases));
    let cases = cases.map_err(|why| format!("{}\n{why}\n", finished.text))?;
    std::fs::remove_dir_all(&folder).map_err(|error| format!("{output} cannot be removed: {error}\n"))?;
    Ok(format!("{cases} cases{}", if has_outside { ", with outside checks" } else { "" }))
}

/// Checks the document and returns the number of its cases.
fn inspect(stdout: &str) -> Result<usize, String> {
    let document: Value =
        serde_json::from_str(stdout).map_err(|error| format!("standard output is not JSON: {error}"))?;
    if document["schema"] != 1 || !document["environment"].is_object() {
        return Err("the document lacks schema 1 or an environment".into());
    }
    let cases = document["cases"].as_array().ok_or("the document has no cases")?;
    for (engine, test, reliability) in EXPECTED {
        let found = cases.iter().any(|case| {
            case["engine"] == *engine
                && case["test"] == *test
                && case["not_measured"].is_null()
                && reliability.is_none_or(|wanted| case["reliability"] == wanted)
        });
        if !found {
            return Err(format!("no case {engine} {test} {}", reliability.unwrap_or_default()));
        }
    }
    cases.iter().try_for_each(inspect_case)?;
    Ok(cases.len())
}

/// Checks that a case has figures of its own test, counted something, and lost nothing if it is
/// reliable.
fn inspect_case(case: &Value) -> Result<(), String> {
    let complain = |what: &str| Err(format!("{what}: {case}"));
    // A case without figures is fine if the engine does not support it, but not if it failed.
    if case["not_measured"]["kind"] == "not-supported" {
        return Ok(());
    }
    let (figures, others, count) = match case["test"].as_str() {
        Some("latency") => (&case["latency_us"], &case["throughput"], "count"),
        Some("throughput") => (&case["throughput"], &case["latency_us"], "total_samples"),
        _ => return complain("a case of an unknown test"),
    };
    if !others.is_null() {
        return complain("a case with figures of another test");
    }
    if figures[count].as_u64().unwrap_or(0) == 0 {
        return complain("a case that measured nothing");
    }
    if case["engine"] == "weir" && case["reliability"] == "reliable" && figures["lost"] != 0 {
        return complain("a reliable case that lost samples");
    }
    Ok(())
}

/// Checks that the results file has a line for the environment and one for each case.
fn compare_with_file(folder: &Path, cases: usize) -> Result<usize, String> {
    let path = folder.join("results.jsonl");
    let text = std::fs::read_to_string(&path)
        .map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    let lines = text.lines().count();
    if lines != cases + 1 {
        return Err(format!("{} has {lines} lines for {cases} cases", path.display()));
    }
    if text.lines().any(|line| serde_json::from_str::<Value>(line).is_err()) {
        return Err(format!("{} has a line that is not JSON", path.display()));
    }
    Ok(cases)
}

/// Cases that the defaults must include: engine, test, reliability if it matters.
const EXPECTED: &[(&str, &str, Option<&str>)] = &[
    ("udp", "latency", None),
    ("udp", "throughput", None),
    ("udp-gso", "throughput", None),
    ("weir", "latency", Some("best-effort")),
    ("weir", "latency", Some("reliable")),
    ("weir", "throughput", Some("best-effort")),
    ("weir", "throughput", Some("reliable")),
];

const OUTSIDE: [Tool; 2] =
    [Tool { program: "sockperf", package: "sockperf" }, Tool { program: "iperf3", package: "iperf3" }];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document() -> Value {
        let cases: Vec<Value> = EXPECTED
            .iter()
            .map(|(engine, test, reliability)| {
                let mut case =
                    json!({"engine": engine, "test": test, "reliability": reliability.unwrap_or("none")});
                case["latency_us"] =
                    if *test == "latency" { json!({"count": 5, "lost": 0}) } else { Value::Null };
                case["throughput"] =
                    if *test == "throughput" { json!({"total_samples": 5, "lost": 0}) } else { Value::Null };
                case
            })
            .collect();
        json!({"schema": 1, "environment": {}, "cases": cases})
    }

    #[test]
    fn a_whole_document_passes() {
        let mut document = document();
        assert_eq!(inspect(&document.to_string()), Ok(EXPECTED.len()));
        let cannot =
            json!({"engine": "udp-gso", "test": "latency", "not_measured": {"kind": "not-supported"}});
        document["cases"].as_array_mut().unwrap().push(cannot);
        assert_eq!(inspect(&document.to_string()), Ok(EXPECTED.len() + 1));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let check = |change: fn(&mut Value), expected: &str| {
            let mut document = document();
            change(&mut document);
            let why = inspect(&document.to_string()).unwrap_err();
            assert!(why.contains(expected), "{why}");
        };
        check(|document| document["schema"] = json!(2), "schema 1");
        check(|document| document["cases"] = json!([]), "no case udp latency");
        check(|document| document["cases"][0]["latency_us"]["count"] = json!(0), "measured nothing");
        check(|document| document["cases"][0]["throughput"] = json!({}), "another test");
        check(
            |document| document["cases"][0]["not_measured"] = json!({"kind": "not-supported"}),
            "no case udp latency",
        );
        check(|document| document["cases"][4]["latency_us"]["lost"] = json!(1), "lost samples");
        assert!(inspect("not json").unwrap_err().contains("not JSON"));
    }
}
