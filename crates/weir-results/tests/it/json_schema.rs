//! The JSON Schema of results, `docs/reference/results.schema.json`: what is committed and what is written now
//! agree with it.
//!
//! Checked by the few keywords that it uses; a crate for all of JSON Schema would be larger than the rest of the
//! dependencies.

use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use regex_lite::Regex;
use serde_json::Value;
use weir_results::{
    AgeRecorder, AgeSummary, Case, ClockRelation, CopiedBytes, Discovery, Environment, HostRecord, Interface,
    LatencyKind, LatencyRecorder, LinkDirection, LinkFigures, LinkSeries, LossAttribution, LossBreakdown,
    NotMeasured, PathFigures, PathReading, ProcessFigures, Reliability, ResultsWriter, Run, ScheduleLag,
    SocketBuffers, Test, TopicGroupFigures, UdpFigures, WakeUp, Warning, WorkloadFigures, WorkloadProcess,
};

struct Schema(Value);

impl Schema {
    fn load() -> Self {
        let text = fs::read_to_string(root().join("docs/reference/results.schema.json"));
        let text = text.expect("the schema is committed");
        Self(serde_json::from_str(&text).expect("the schema is JSON"))
    }

    fn definition(&self, name: &str) -> &Value {
        self.0["$defs"].get(name).unwrap_or_else(|| panic!("no definition {name}"))
    }

    /// What `value` has against `schema`, with the place of each complaint.
    fn complaints(&self, schema: &Value, value: &Value, place: &str) -> Vec<String> {
        let mut found = Vec::new();
        for (keyword, argument) in schema.as_object().expect("a schema is an object") {
            let is_right = match keyword.as_str() {
                "description" | "properties" | "additionalProperties" => true,
                "$ref" => {
                    let name = text(argument).trim_start_matches("#/$defs/");
                    found.extend(self.complaints(self.definition(name), value, place));
                    true
                }
                "anyOf" => list(argument).iter().any(|it| self.complaints(it, value, place).is_empty()),
                "type" => has_type(argument, value),
                "const" => argument == value,
                "enum" => list(argument).contains(value),
                "minimum" => !value.is_number() || value.as_f64() >= argument.as_f64(),
                "pattern" => {
                    let pattern = Regex::new(text(argument)).expect("a pattern is a regular expression");
                    value.as_str().is_none_or(|value| pattern.is_match(value))
                }
                "required" => {
                    !value.is_object() || list(argument).iter().all(|name| value.get(text(name)).is_some())
                }
                "items" => {
                    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                        found.extend(self.complaints(argument, item, &format!("{place}[{index}]")));
                    }
                    true
                }
                other => panic!("the test does not know the keyword {other}"),
            };
            if !is_right {
                found.push(format!("{place}: {value} is not as {keyword} says: {argument}"));
            }
        }
        for (name, member) in value.as_object().into_iter().flatten() {
            let place = format!("{place}.{name}");
            match (schema.get("properties").and_then(|all| all.get(name)), schema.get("additionalProperties"))
            {
                (Some(known), _) => found.extend(self.complaints(known, member, &place)),
                (None, Some(Value::Bool(false))) => found.push(format!("{place} is not in the schema")),
                (None, Some(rest @ Value::Object(_))) => found.extend(self.complaints(rest, member, &place)),
                (None, _) => {}
            }
        }
        found
    }

    #[track_caller]
    fn assert_lines(&self, text: &str, name: &str) {
        let mut definition = "header";
        for (number, line) in (1..).zip(text.lines()) {
            let value: Value = serde_json::from_str(line).expect("every line is JSON");
            let found = self.complaints(self.definition(definition), &value, "");
            assert_eq!(found, Vec::<String>::new(), "{name}, line {number}");
            definition = "case";
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a name")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn has_type(wanted: &Value, value: &Value) -> bool {
    match wanted {
        Value::Array(any) => any.iter().any(|one| has_type(one, value)),
        _ => match text(wanted) {
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "string" => value.is_string(),
            "number" => value.is_number(),
            "integer" => value.is_i64() || value.is_u64(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            other => panic!("no type {other}"),
        },
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn committed_results_agree_with_the_schema() {
    let schema = Schema::load();
    let mut files = vec![root().join("crates/weir-results/tests/data/example-v1.jsonl")];
    let folder = fs::read_dir(root().join("docs/performance/results")).unwrap();
    files.extend(folder.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()));
    assert!(files.len() > 1);
    for file in files {
        let (text, name) = (fs::read_to_string(&file).unwrap(), file.display().to_string());
        // The report of `weir domain` is one object of its own; `weir targets` reads it.
        if file.extension().is_some_and(|ending| ending == "json") {
            let report: Value = serde_json::from_str(&text).unwrap_or_else(|why| panic!("{name}: {why}"));
            assert!(report["participants"].is_u64() && report["matched_ms"].is_number(), "{name}");
        } else {
            schema.assert_lines(&text, &name);
        }
    }
}

/// A link with all that it may have.
fn link() -> LinkFigures {
    let series = LinkSeries {
        step_ms: 10.0,
        offered_bytes: vec![1500],
        delivered_bytes: vec![1500],
        queue_bytes: vec![0],
    };
    let mut link = LinkFigures {
        to_subscribers: LinkDirection {
            offered_bytes: 1500,
            marked_packets: 1,
            series,
            ..LinkDirection::default()
        },
        ..LinkFigures::default()
    };
    link.enter_payload(1000);
    link
}

/// A workload with all that it may have.
fn workload() -> WorkloadFigures {
    let mut recorder = LatencyRecorder::new();
    recorder.record(48_000);
    let histogram = recorder.histogram(LatencyKind::OneWay);
    let group = TopicGroupFigures {
        name: "image".to_owned(),
        topics: 1,
        writers: 1,
        readers: 2,
        size_bytes: 1 << 20,
        reliability: Reliability::Reliable,
        keep_last: Some(5),
        instances: 0,
        rate_hz: 0.5,
        burst: 1,
        due_samples_per_s: 0.5,
        sent_samples_per_s: 0.5,
        expected: 2,
        received: 1,
        lost: 1,
        duplicates: 0,
        age_us: AgeSummary::merged(&histogram).expect("the distribution is whole"),
        histogram,
        schedule_lag_us: Some(ScheduleLag::default()),
    };
    WorkloadFigures {
        discovery: Some(Discovery::default()),
        groups: vec![group],
        processes: vec![WorkloadProcess::default()],
        ..WorkloadFigures::default()
    }
}

/// A path with all that it may have.
fn path() -> PathFigures {
    let reading = PathReading {
        round_trip_min: Some(Duration::from_millis(4)),
        round_trip: Some(Duration::from_millis(5)),
        queue: Some(Duration::from_millis(1)),
        rate_bps: Some(5e6),
        ecn_datagrams: 10,
        marked_datagrams: 1,
        ..PathReading::default()
    };
    let readings = [PathReading::default(), reading];
    PathFigures::new(Ipv4Addr::LOCALHOST, Duration::from_millis(25), &readings, &reading)
}

#[test]
fn what_is_written_agrees_with_the_schema() {
    let schema = Schema::load();
    let mut recorder = LatencyRecorder::new();
    recorder.record(48_000);
    let case = Case::new("weir", Test::Latency, Reliability::Reliable, 32).with(|it| {
        it.figures.latency_us = Some(recorder.summary(LatencyKind::HalfRtt));
        it.point.multicast = true;
        it.point.loans = true;
        it.conditions.apart = true;
        it.conditions.kept_awake = true;
        it.conditions.path = Some("veth".to_owned());
        (it.conditions.beside, it.figures.beside_mbps) = (Some("tcp".to_owned()), Some(4.5));
        it.evidence.not_measured = Some(NotMeasured::Failed { reason: "no peer".to_owned() });
        it.evidence.warnings = vec![Warning::CoresShared, Warning::LostSamples { lost: 3, permitted: true }];
        it.figures.schedule_lag_us = Some(ScheduleLag { p50: 1.0, p99: 2.0, p99_9: Some(2.5), max: 3.0 });
        it.figures.publisher = Some(ProcessFigures {
            instructions: Some(1),
            copied: Some(CopiedBytes::default()),
            ..ProcessFigures::default()
        });
        it.figures.discovery = Some(Discovery { from_first_ms: 1.0, from_last_ms: 1.0, late_ms: 0.0 });
        it.figures.clocks = Some(ClockRelation::default());
        let mut ages = AgeRecorder::by_arrival();
        ages.record_arrival(0, 1_000_000);
        it.figures.ages = Some(ages.series());
        it.figures.paths = vec![path()];
        it.evidence.socket_buffers = Some(SocketBuffers::default());
        it.evidence.loss = Some(LossBreakdown::default());
        it.evidence.loss_attribution = Some(LossAttribution::default());
        it.figures.link = Some(link());
        it.figures.udp = Some(UdpFigures::default());
        it.conditions.workload_name = Some("robot".to_owned());
        it.conditions.workload_digest = Some("0123456789abcdef".to_owned());
        it.conditions.workload_n = Some(8);
        it.figures.workload = Some(workload());
        it.conditions.settings = [("engine_version".to_owned(), "1".to_owned())].into();
    });
    let environment = Environment {
        interface: Some(Interface::default()),
        idle_governor: Some("menu".to_owned()),
        idle_states: Some("POLL 0".to_owned()),
        wake_ups: vec![WakeUp::default()],
        ..Environment::default()
    };
    let folder = tempfile::tempdir().unwrap();
    let hosts = [HostRecord {
        ends: vec!["publisher".into()],
        environment: environment.clone(),
        ..HostRecord::default()
    }];
    let mut writer =
        ResultsWriter::create_for_hosts(folder.path(), &environment, Some(&environment), &hosts).unwrap();
    writer.append(&case).unwrap();
    let text = fs::read_to_string(writer.path()).unwrap();
    schema.assert_lines(&text, "fresh results");

    let run = Run {
        peer: Some(environment.clone()),
        hosts: hosts.to_vec(),
        cases: vec![case],
        ..Run::new(environment)
    };
    let document = serde_json::to_value(&run).unwrap();
    assert_eq!(schema.complaints(schema.definition("document"), &document, ""), Vec::<String>::new());
}

#[test]
fn what_disagrees_is_found() {
    let schema = Schema::load();
    let case = Case::new("weir", Test::Latency, Reliability::Reliable, 32);
    for (name, value) in
        [("engine", Value::from(7)), ("test", "speed".into()), ("repeat", (-1).into()), ("new", 1.into())]
    {
        let mut changed = serde_json::to_value(&case).unwrap();
        changed[name] = value;
        assert_ne!(
            schema.complaints(schema.definition("case"), &changed, ""),
            Vec::<String>::new(),
            "{name}"
        );
    }
}
