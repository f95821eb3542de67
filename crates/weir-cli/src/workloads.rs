//! `weir bench --workload`: files of workloads, and the ready-made ones.

use anyhow::{Context, anyhow};
use weir_bench::workload::Workload;

use crate::exit::Failure;

/// The ready-made workloads.
const FILES: [(&str, &str); 3] = [
    ("robot", include_str!("workloads/robot.toml")),
    ("trading", include_str!("workloads/trading.toml")),
    ("telemetry", include_str!("workloads/telemetry.toml")),
];

/// Reads a ready-made workload, or a file.
pub(crate) fn load(name: &str) -> Result<Workload, Failure> {
    let read;
    let text = match ready(name) {
        Some(text) => text,
        None => {
            let cannot = || {
                let names = names();
                format!("--workload: cannot read {name}: name a file, or a ready-made workload ({names})")
            };
            read = std::fs::read_to_string(name).with_context(cannot).map_err(Failure::usage)?;
            &read
        }
    };
    Workload::parse(name, text).map_err(Failure::usage)
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
    FILES.iter().find(|(ready, _)| *ready == name).map(|(_, text)| *text)
}

fn names() -> String {
    FILES.map(|(name, _)| name).join(", ")
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
    fn an_unknown_name_gives_the_ready_made_ones() {
        let error = load("robto").unwrap_err().to_string();
        assert!(
            error.contains("robto: name a file, or a ready-made workload (robot, trading, telemetry)"),
            "{error}"
        );
        assert!(show("x").unwrap_err().to_string().ends_with("use one of robot, trading, telemetry"));
    }
}
