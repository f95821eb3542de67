//! The JSON Schema of results, `docs/reference/results.schema.json`: what is committed and what is written now
//! agree with it.
//!
//! Checked by the few keywords that it uses; a crate for all of JSON Schema would be larger than the rest of the
//! dependencies.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use weir_results::{
    Case, Discovery, Environment, Interface, LatencyKind, LatencyRecorder, LossAttribution, LossBreakdown,
    NotMeasured, ProcessFigures, Reliability, ResultsWriter, Run, ScheduleLag, SocketBuffers, Test,
    UdpFigures, Warning,
};

struct Schema(Value);

impl Schema {
    fn load() -> Self {
        let text = fs::read_to_string(root().join("docs/reference/results.schema.json")).unwrap();
        Self(serde_json::from_str(&text).unwrap())
    }

    fn definition(&self, name: &str) -> &Value {
        self.0["$defs"].get(name).unwrap_or_else(|| panic!("no definition {name}"))
    }

    /// What `value` has against `schema`, with the place of each complaint.
    fn complaints(&self, schema: &Value, value: &Value, place: &str) -> Vec<String> {
        let mut found = Vec::new();
        for (keyword, argument) in schema.as_object().expect("a schema is an object") {
            let complaint = match keyword.as_str() {
                "description" | "properties" => None,
                "$ref" => {
                    let name = argument.as_str().and_then(|path| path.strip_prefix("#/$defs/")).unwrap();
                    found.extend(self.complaints(self.definition(name), value, place));
                    None
                }
                "anyOf" => {
                    let any = argument.as_array().unwrap();
                    let all: Vec<_> = any.iter().map(|it| self.complaints(it, value, place)).collect();
                    let is_one = all.iter().any(Vec::is_empty);
                    (!is_one).then(|| format!("none of {all:?}"))
                }
                "type" => (!has_type(argument, value)).then(|| format!("{value} is no {argument}")),
                "const" => (argument != value).then(|| format!("{value} is not {argument}")),
                "enum" => (!argument.as_array().unwrap().contains(value))
                    .then(|| format!("{value} is none of {argument}")),
                "minimum" => (value.as_f64() < argument.as_f64() && value.is_number())
                    .then(|| format!("{value} is too small")),
                "required" => {
                    let missing: Vec<&Value> = argument
                        .as_array()
                        .unwrap()
                        .iter()
                        .filter(|name| value.is_object() && value.get(name.as_str().unwrap()).is_none())
                        .collect();
                    (!missing.is_empty()).then(|| format!("lacks {missing:?}"))
                }
                "items" => {
                    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                        found.extend(self.complaints(argument, item, &format!("{place}[{index}]")));
                    }
                    None
                }
                "additionalProperties" => None,
                other => panic!("the test does not know the keyword {other}"),
            };
            found.extend(complaint.map(|what| format!("{place}: {what}")));
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
        for (number, line) in text.lines().enumerate() {
            let value: Value = serde_json::from_str(line).unwrap();
            let found = self.complaints(self.definition(definition), &value, "");
            assert_eq!(found, Vec::<String>::new(), "{name}, line {}", number + 1);
            definition = "case";
        }
    }
}

fn has_type(wanted: &Value, value: &Value) -> bool {
    let is = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("no type {other}"),
    };
    match wanted {
        Value::String(name) => is(name),
        Value::Array(names) => names.iter().any(|name| is(name.as_str().unwrap())),
        _ => panic!("no type {wanted}"),
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
        schema.assert_lines(&fs::read_to_string(&file).unwrap(), &file.display().to_string());
    }
}

#[test]
fn what_is_written_agrees_with_the_schema() {
    let schema = Schema::load();
    let mut recorder = LatencyRecorder::new();
    recorder.record(48_000);
    let case = Case {
        latency_us: Some(recorder.summary(LatencyKind::HalfRtt)),
        multicast: true,
        loans: true,
        apart: true,
        kept_awake: true,
        path: Some("veth".to_owned()),
        not_measured: Some(NotMeasured::Failed { reason: "no peer".to_owned() }),
        warnings: vec![Warning::CoresShared, Warning::LostSamples { lost: 3 }],
        schedule_lag_us: Some(ScheduleLag { p50: 1.0, p99: 2.0, p99_9: Some(2.5), max: 3.0 }),
        publisher: Some(ProcessFigures { instructions: Some(1), ..ProcessFigures::default() }),
        discovery: Some(Discovery { from_first_ms: 1.0, from_last_ms: 1.0, late_ms: 0.0 }),
        socket_buffers: Some(SocketBuffers::default()),
        loss: Some(LossBreakdown::default()),
        loss_attribution: Some(LossAttribution::default()),
        udp: Some(UdpFigures::default()),
        settings: [("engine_version".to_owned(), "1".to_owned())].into(),
        ..Case::new("weir", Test::Latency, Reliability::Reliable, 32)
    };
    let environment = Environment { interface: Some(Interface::default()), ..Environment::default() };
    let folder = tempfile::tempdir().unwrap();
    let mut writer =
        ResultsWriter::create_with_peer(folder.path(), &environment, Some(&environment)).unwrap();
    writer.append(&case).unwrap();
    let text = fs::read_to_string(writer.path()).unwrap();
    schema.assert_lines(&text, "fresh results");

    let run = Run { peer: Some(environment.clone()), cases: vec![case], ..Run::new(environment) };
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
