//! `weir bench --workload`: files of workloads, and the ready-made ones.

use std::borrow::Cow;

use anyhow::{Context, anyhow};
use weir_bench::workload::Workload;

use crate::exit::Failure;

/// The ready-made workloads.
const FILES: [(&str, &str); 3] = [
    ("robot", include_str!("workloads/robot.toml")),
    ("trading", include_str!("workloads/trading.toml")),
    ("telemetry", include_str!("workloads/telemetry.toml")),
];

/// Those with a parameter N.
const SCALED: [(&str, &str); 4] = [
    ("readers", include_str!("workloads/readers.toml")),
    ("topics", include_str!("workloads/topics.toml")),
    ("participants", include_str!("workloads/participants.toml")),
    ("keys", include_str!("workloads/keys.toml")),
];

/// Reads a ready-made workload, or a file.
pub(crate) fn load(name: &str) -> Result<Workload, Failure> {
    let text = text(name)?;
    Workload::parse(name, &text).map_err(|error| {
        let advice = || anyhow!("{error}; {name} has a parameter N: choose its values, as --scale 1,10,100");
        if Workload::has_parameter(&text) { Failure::usage(advice()) } else { Failure::usage(error) }
    })
}

/// Reads a workload once for each value of its parameter N, or once without it if there are none.
pub(crate) fn load_scaled(name: &str, values: &[u32]) -> Result<Vec<Workload>, Failure> {
    if values.is_empty() {
        return Ok(vec![load(name)?]);
    }
    let text = text(name)?;
    if !Workload::has_parameter(&text) {
        return Err(Failure::usage(anyhow!(
            "--scale: the workload {name} has no parameter N: write \"N\", \"2*N\" or \"100/N\" where a number \
             depends on it"
        )));
    }
    let twice = values.iter().enumerate().find(|(at, value)| values[..*at].contains(value));
    if let Some((_, value)) = twice {
        return Err(Failure::usage(anyhow!("--scale names {value} twice")));
    }
    let read = values.iter().map(|&n| Workload::parse_scaled(name, &text, n).map_err(Failure::usage));
    read.collect()
}

/// The text of a ready-made workload, or of a file.
fn text(name: &str) -> Result<Cow<'static, str>, Failure> {
    if let Some(text) = ready(name) {
        return Ok(Cow::Borrowed(text));
    }
    let cannot = || {
        let names = names();
        format!("--workload: cannot read {name}: name a file, or a ready-made workload ({names})")
    };
    std::fs::read_to_string(name).with_context(cannot).map_err(Failure::usage).map(Cow::Owned)
}

/// The file of a ready-made workload.
pub(crate) fn show(name: &str) -> Result<&'static str, Failure> {
    let unknown = || {
        let names = names();
        Failure::usage(anyhow!("--show-workload: `{name}` is no ready-made workload: use one of {names}"))
    };
    ready(name).ok_or_else(unknown)
}

/// Whether a workload of this name is ready-made.
pub(crate) fn is_ready(name: &str) -> bool {
    ready(name).is_some()
}

fn ready(name: &str) -> Option<&'static str> {
    FILES.iter().chain(&SCALED).find(|(ready, _)| *ready == name).map(|(_, text)| *text)
}

fn names() -> String {
    FILES.iter().chain(&SCALED).map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes, topics, writers and readers.
    fn totals(workload: &Workload) -> [u32; 4] {
        let sum = |of: fn(&weir_bench::workload::TopicGroup) -> u32| -> u32 {
            workload.topics.iter().map(|topic| topic.count * of(topic)).sum()
        };
        let nodes = workload.nodes.iter().map(|node| node.count).sum();
        [nodes, sum(|_| 1), sum(|topic| topic.writers), sum(|topic| topic.readers)]
    }

    #[test]
    fn the_ready_made_workloads_are_valid_and_have_their_sizes() {
        let [robot, trading, telemetry] = FILES.map(|(name, _)| load(name).unwrap());
        assert_eq!(totals(&robot)[..2], [60, 300]);
        let has = |size_bytes, rate_hz: f64| {
            let is_it = |topic: &&weir_bench::workload::TopicGroup| {
                topic.size_bytes == size_bytes && (topic.rate_hz - rate_hz).abs() < 1e-9
            };
            robot.topics.iter().any(|topic| is_it(&topic))
        };
        assert!(has(1 << 20, 30.0) && has(4 << 20, 10.0) && has(200, 1_000.0) && has(200, 10.0));
        assert_eq!((totals(&trading), trading.topics[0].size_bytes), ([9, 1, 1, 8], 64));
        assert_eq!(totals(&telemetry), [21, 1, 1_000, 1]);
        assert!(telemetry.topics[0].instances > 0);
    }

    #[test]
    fn workloads_with_a_parameter_have_as_much_as_it_says() {
        let of = |name: &str, values: &[u32]| -> Vec<[u32; 4]> {
            load_scaled(name, values).unwrap().iter().map(totals).collect()
        };
        assert_eq!(of("readers", &[1, 64]), [[2, 1, 1, 1], [65, 1, 1, 64]]);
        assert_eq!(of("topics", &[1, 1000]), [[2, 1, 1, 1], [2, 1000, 1000, 1000]]);
        assert_eq!(of("participants", &[10, 200]), [[10, 50, 50, 50], [200, 1000, 1000, 1000]]);
        let keys = load_scaled("keys", &[1, 100_000]).unwrap();
        assert_eq!((keys[1].topics[0].instances, keys[1].name.as_str()), (100_000, "keys-100000"));
        // The rate of all topics together stays.
        let topics = load_scaled("topics", &[8]).unwrap();
        assert!((topics[0].deliveries(1.0) - 1000.0).abs() < 1e-9);
    }

    #[test]
    fn a_parameter_needs_values_and_values_need_a_parameter() {
        let error = |name: &str, values: &[u32]| load_scaled(name, values).unwrap_err().to_string();
        let without = error("readers", &[]);
        assert!(
            without.ends_with("readers has a parameter N: choose its values, as --scale 1,10,100"),
            "{without}"
        );
        assert!(error("robot", &[1]).contains("robot has no parameter N"));
        assert_eq!(error("readers", &[2, 1, 2]), "--scale names 2 twice");
    }

    #[test]
    fn an_unknown_name_gives_the_ready_made_ones() {
        let error = load("robto").unwrap_err().to_string();
        let names = "robot, trading, telemetry, readers, topics, participants, keys";
        assert!(
            error.contains(&format!("robto: name a file, or a ready-made workload ({names})")),
            "{error}"
        );
        assert!(show("x").unwrap_err().to_string().ends_with(&format!("use one of {names}")));
    }
}
