//! The ready-made plans.

/// A plan in this program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) name: &'static str,
    /// Its TOML.
    pub(crate) text: &'static str,
}

/// All of them.
pub(crate) const READY: &[Ready] = &[
    Ready { name: "smoke", text: include_str!("ready/smoke.toml") },
    Ready { name: "udp", text: include_str!("ready/udp.toml") },
    Ready { name: "dds-latency", text: include_str!("ready/dds-latency.toml") },
    Ready { name: "dds-throughput", text: include_str!("ready/dds-throughput.toml") },
];

impl Ready {
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        READY.iter().find(|ready| ready.name == name)
    }

    /// What it measures: its first line.
    pub(crate) fn about(&self) -> &'static str {
        self.text.lines().next().map_or("", |line| line.trim_start_matches("# "))
    }
}

/// Their names, separated by commas.
pub(crate) fn names() -> String {
    READY.iter().map(|ready| ready.name).collect::<Vec<_>>().join(", ")
}
