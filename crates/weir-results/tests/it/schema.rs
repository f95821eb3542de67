//! Names and forms that readers of results rely on.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use weir_results::{
    Case, LatencyKind, LatencyRecorder, NotMeasured, Reliability, Run, SequenceCounts, Test,
    ThroughputCounts, ThroughputSummary, UdpFigures, WaitStrategy, Warning,
};

fn names(value: &Value) -> Vec<&str> {
    value.as_object().map(|object| object.keys().map(String::as_str).collect()).unwrap_or_default()
}

#[track_caller]
fn assert_same_names(value: &Value, expected: &[&str]) {
    let (mut found, mut expected) = (names(value), expected.to_vec());
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn a_latency_case_has_exactly_the_documented_names() {
    let mut recorder = LatencyRecorder::new();
    recorder.record(48_000);
    let latency_us = Some(recorder.summary(LatencyKind::HalfRtt));
    let case = Case::new("weir", Test::Latency, Reliability::Reliable, 32)
        .with(|it| it.figures.latency_us = latency_us);
    let value = serde_json::to_value(&case).unwrap();
    assert_eq!(
        value,
        json!({
            "engine": "weir", "test": "latency", "reliability": "reliable", "keyed": false, "instances": 0,
            "batch_bytes": 0, "size_bytes": 32, "wait": "block", "repeat": 1,
            "latency_us": {"kind": "rtt/2", "count": 1, "mean": 24.0, "std": 0.0, "min": 24.0, "max": 24.0, "p50": 24.0,
                "p90": 24.0, "p99": 24.0, "p99_99": 24.0, "p99_9999": 24.0, "lost": 0},
            "throughput": null, "warnings": []
        })
    );
    assert!(serde_json::to_string(&case).unwrap().starts_with("{\"engine\":\"weir\",\"test\":\"latency\","));
}

#[test]
fn a_throughput_case_has_exactly_the_documented_names() {
    let counts = ThroughputCounts {
        offered: 10,
        offered_in: Duration::from_secs(1),
        received: SequenceCounts { received: 10, ..SequenceCounts::default() },
        received_in: Duration::from_secs(1),
        datagrams: None,
        sends: None,
    };
    let mut case = Case::new("udp", Test::Throughput, Reliability::None, 32);
    case.figures.throughput = Some(ThroughputSummary::new(32, &counts));
    case.conditions.wait = WaitStrategy::SpinThenBlock { spin_us: 50 };
    let value = serde_json::to_value(&case).unwrap();
    assert_eq!(value["latency_us"], Value::Null);
    assert_eq!((&value["reliability"], &value["wait"]), (&json!("none"), &json!("spin:50us")));
    let expected = "offered_samples_per_s total_samples samples_per_s mbps lost lost_percent duplicates reordered \
                    samples_per_datagram datagrams_per_send";
    assert_same_names(&value["throughput"], &expected.split_whitespace().collect::<Vec<_>>());
    assert_eq!(value["throughput"]["samples_per_datagram"], Value::Null);
}

#[test]
fn a_case_without_figures_says_why() {
    let mut case = Case::new("fastdds", Test::Latency, Reliability::Reliable, 32);
    case.evidence.not_measured = Some(NotMeasured::NotSupported { reason: "no such policy".into() });
    let value = serde_json::to_value(&case).unwrap();
    assert_eq!(value["not_measured"], json!({"kind": "not-supported", "reason": "no such policy"}));
    assert_eq!(serde_json::from_value::<Case>(value).unwrap(), case);
}

#[test]
fn the_committed_example_of_version_1_stays_readable() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/example-v1.jsonl");
    let run = Run::load(path).unwrap();
    assert_eq!(run.schema, 1);
    assert_eq!(run.environment.kernel, "6.18.44");
    assert_eq!(run.environment.interface.as_ref().and_then(|interface| interface.mtu), Some(65536));
    assert_eq!(run.cases.len(), 54);
    let warnings: Vec<&Warning> = run.cases.iter().flat_map(|case| &case.evidence.warnings).collect();
    assert!(warnings.contains(&&Warning::SocketBufferSmall { asked: 2_097_152, granted: 425_984 }));
    assert!(
        warnings
            .iter()
            .any(|warning| matches!(warning, Warning::Unknown { code, .. } if code == "moon-phase"))
    );
    // Writing what was read gives the same.
    let document = serde_json::to_string(&run).unwrap();
    assert!(document.starts_with("{\"schema\":1,\"environment\":{"), "{}", &document[..40]);
    assert_eq!(Run::parse(&document, Path::new("document")).unwrap(), run);
}

#[test]
fn cases_of_the_committed_example_are_written_with_the_same_names_and_values() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/example-v1.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    for line in text.lines().skip(1) {
        let case: Case = serde_json::from_str(line).unwrap();
        let values = [serde_json::from_str(line).unwrap(), serde_json::to_value(&case).unwrap()];
        let [read, written] = values.map(without_sentences);
        assert_eq!(written, read);
    }
}

#[test]
fn foreign_datagrams_are_read_by_their_former_name() {
    let figures: UdpFigures = serde_json::from_value(json!({"mode": "gso", "strangers": 7})).unwrap();
    assert_eq!(figures.foreign_datagrams, 7);
    let written = serde_json::to_value(&figures).unwrap();
    assert_eq!((&written["foreign_datagrams"], &written["strangers"]), (&json!(7), &Value::Null));
}

/// Removes the sentences of warnings, which are written anew from their codes and figures.
fn without_sentences(mut case: Value) -> Value {
    for warning in case["warnings"].as_array_mut().expect("a list of warnings") {
        let warning = warning.as_object_mut().expect("a warning is an object");
        if warning["code"] != "moon-phase" {
            warning.retain(|name, _| name != "text" && name != "advice");
        }
    }
    case
}
