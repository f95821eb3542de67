//! The ready-made plans: some for every day, and one for each published table.

use crate::published;

use super::published::{of_document, of_table};

/// A plan in this program.
#[derive(Clone, Debug)]
pub(crate) struct Ready {
    pub(crate) name: String,
    pub(crate) group: Group,
    /// Its TOML.
    pub(crate) text: String,
}

/// What ready-made plans are listed under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    Everyday,
    Latency,
    Throughput,
    Udp,
}

impl Group {
    pub(crate) const ALL: [Self; 4] = [Self::Everyday, Self::Latency, Self::Throughput, Self::Udp];

    /// The heading of its plans in a list.
    pub(crate) const fn heading(self) -> &'static str {
        match self {
            Self::Everyday => "Everyday",
            Self::Latency => "RTI's published tables of latency (root: a virtual link of the table's rate)",
            Self::Throughput => "RTI's published tables of throughput (root)",
            Self::Udp => "hpcbench's published UDP tests (root)",
        }
    }
}

/// The plans that are files of the source.
const FILES: [(&str, &str); 4] = [
    ("smoke", include_str!("ready/smoke.toml")),
    ("udp", include_str!("ready/udp.toml")),
    ("dds-latency", include_str!("ready/dds-latency.toml")),
    ("dds-throughput", include_str!("ready/dds-throughput.toml")),
];

impl Ready {
    /// All of them, by group.
    pub(crate) fn all() -> Vec<Self> {
        let files = FILES.map(|(name, text)| Self {
            name: name.to_owned(),
            group: Group::Everyday,
            text: text.to_owned(),
        });
        let tables = published::all().into_iter().map(|table| Self {
            group: match table.test {
                weir_results::Test::Latency => Group::Latency,
                weir_results::Test::Throughput | weir_results::Test::Workload => Group::Throughput,
            },
            text: of_table(&table),
            name: table.name,
        });
        let documents = published::documents().iter().map(|document| Self {
            name: document.name.to_owned(),
            group: Group::Udp,
            text: of_document(document),
        });
        let mut all: Vec<Self> = files.into_iter().chain(tables).chain(documents).collect();
        all.sort_by_key(|ready| Group::ALL.iter().position(|group| *group == ready.group));
        all
    }

    pub(crate) fn find(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|ready| ready.name == name)
    }

    /// What it measures: its first line.
    pub(crate) fn about(&self) -> &str {
        self.text.lines().next().map_or("", |line| line.trim_start_matches("# "))
    }
}

/// The names of the everyday plans, and where the others are listed.
pub(crate) fn names() -> String {
    let names = FILES.map(|(name, _)| name).join(", ");
    format!("{names}, or one of `weir run --list`")
}
