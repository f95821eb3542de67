//! The file of a workload, and errors that name file, line and cause.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use serde::Deserialize;
use thiserror::Error;
use toml::Spanned;
use weir_results::{Reliability, parse_size};

use super::{Layout, NodeGroup, TopicGroup, Workload};
use crate::case::CaseSpec;
use crate::payload::HEADER_BYTES;

/// Why a text is not a workload: file, line and cause.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}:{line}: {cause}")]
pub struct WorkloadError {
    file: String,
    line: usize,
    cause: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default = "four")]
    processes: Spanned<u32>,
    #[serde(default)]
    node: Vec<Node>,
    #[serde(default)]
    topic: Vec<Spanned<Topic>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Node {
    name: Spanned<String>,
    #[serde(default = "one")]
    count: Spanned<u32>,
    processes: Option<Spanned<Vec<u32>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Topic {
    name: Spanned<String>,
    #[serde(default = "one")]
    count: Spanned<u32>,
    size: Spanned<Size>,
    rate: Spanned<f64>,
    #[serde(default = "one")]
    burst: Spanned<u32>,
    #[serde(default)]
    instances: u32,
    #[serde(default = "reliable")]
    reliability: Spanned<Reliability>,
    #[serde(default)]
    history: Option<Spanned<History>>,
    from: Spanned<Names>,
    #[serde(default = "one")]
    writers: Spanned<u32>,
    to: Spanned<Names>,
    #[serde(default = "one")]
    readers: Spanned<u32>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a number of bytes, or a text such as \"64k\" or \"1M\"")]
enum Size {
    Bytes(u64),
    Text(String),
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "\"all\", or the number of samples to keep")]
enum History {
    Last(u32),
    Text(String),
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "the name of a node, or an array of names")]
enum Names {
    One(String),
    Many(Vec<String>),
}

fn one() -> Spanned<u32> {
    Spanned::new(0..0, 1)
}

fn four() -> Spanned<u32> {
    Spanned::new(0..0, 4)
}

fn reliable() -> Spanned<Reliability> {
    Spanned::new(0..0, Reliability::Reliable)
}

/// Reads a workload.
pub(super) fn workload(name: &str, text: &str) -> Result<Workload, WorkloadError> {
    let source = Source { name, text };
    let file: File = toml::from_str(text).map_err(|error| {
        let at = error.span().unwrap_or(0..0);
        source.error(at, error.message().replace('\n', ", "))
    })?;
    let processes = source.within(&file.processes, "processes", 1..=Workload::PROCESSES_MAX)?;
    let nodes = nodes(source, &file.node, processes)?;
    let mut topics = Vec::new();
    for topic in &file.topic {
        topics.push(self::topic(source, topic, &nodes)?);
    }
    check_names(source, file.topic.iter().map(|topic| &topic.get_ref().name), "topic")?;
    if topics.is_empty() {
        return Err(source.error(0..0, "the workload has no topic: add a section [[topic]]"));
    }
    let workload =
        Workload { name: short_name(name), digest: String::new(), n: None, processes, nodes, topics };
    check_totals(source, &workload)?;
    // Readers that find no place are an error of their topic.
    Layout::new(&workload).map_err(|(topic, cause)| {
        source.error(file.topic.get(topic).map_or(0..0, |topic| topic.get_ref().readers_or_to()), cause)
    })?;
    Ok(workload.with_digest())
}

impl Topic {
    /// Where the number of readers is, or the nodes that have them.
    fn readers_or_to(&self) -> Range<usize> {
        let readers = self.readers.span();
        if readers.is_empty() { self.to.span() } else { readers }
    }
}

/// The name of a file without its folder and ending.
fn short_name(name: &str) -> String {
    Path::new(name).file_stem().map_or_else(|| name.to_owned(), |stem| stem.to_string_lossy().into_owned())
}

fn nodes(source: Source<'_>, nodes: &[Node], processes: u32) -> Result<Vec<NodeGroup>, WorkloadError> {
    let mut groups = Vec::new();
    for node in nodes {
        let mut chosen = BTreeSet::new();
        for &process in node.processes.iter().flat_map(|them| them.get_ref()) {
            if !(1..=processes).contains(&process) {
                let at = node.processes.as_ref().map_or(0..0, Spanned::span);
                let cause = format!("`processes` names process {process}: use 1 to {processes}");
                return Err(source.error(at, cause));
            }
            chosen.insert(process - 1);
        }
        groups.push(NodeGroup {
            name: source.name(&node.name)?,
            count: source.within(&node.count, "count", 1..=Workload::NODES_MAX)?,
            processes: chosen.into_iter().collect(),
        });
    }
    check_names(source, nodes.iter().map(|node| &node.name), "node")?;
    let count: u64 = groups.iter().map(|group| u64::from(group.count)).sum();
    if count > u64::from(Workload::NODES_MAX) {
        let cause = format!("the workload has {count} nodes: use at most {}", Workload::NODES_MAX);
        return Err(source.error(0..0, cause));
    }
    Ok(groups)
}

fn topic(
    source: Source<'_>,
    topic: &Spanned<Topic>,
    nodes: &[NodeGroup],
) -> Result<TopicGroup, WorkloadError> {
    let topic = topic.get_ref();
    let many = 1..=Workload::WRITERS_MAX as u32;
    let rate_hz = *topic.rate.get_ref();
    if !(rate_hz > 0.0 && rate_hz <= RATE_MAX_HZ) {
        let cause = format!("`rate` is {rate_hz}: use more than 0 and at most {RATE_MAX_HZ} per second");
        return Err(source.error(topic.rate.span(), cause));
    }
    Ok(TopicGroup {
        name: source.name(&topic.name)?,
        count: source.within(&topic.count, "count", many.clone())?,
        size_bytes: size(source, &topic.size)?,
        rate_hz,
        burst: source.within(&topic.burst, "burst", 1..=BURST_MAX)?,
        instances: topic.instances,
        reliability: match *topic.reliability.get_ref() {
            Reliability::None => {
                let cause = "`reliability` is \"none\": use \"best-effort\" or \"reliable\"";
                return Err(source.error(topic.reliability.span(), cause));
            }
            reliability => reliability,
        },
        keep_last: topic.history.as_ref().map_or(Ok(None), |history| keep_last(source, history))?,
        from: source.groups(&topic.from, "from", nodes)?,
        writers: source.within(&topic.writers, "writers", many.clone())?,
        to: source.groups(&topic.to, "to", nodes)?,
        readers: source.within(&topic.readers, "readers", many)?,
    })
}

fn size(source: Source<'_>, size: &Spanned<Size>) -> Result<usize, WorkloadError> {
    let bytes = match size.get_ref() {
        Size::Bytes(bytes) => *bytes,
        Size::Text(text) => parse_size(text).map_err(|error| source.error(size.span(), error))?,
    };
    let possible = HEADER_BYTES..=CaseSpec::SIZE_BYTES_MAX;
    usize::try_from(bytes).ok().filter(|bytes| possible.contains(bytes)).ok_or_else(|| {
        let cause =
            format!("`size` is {bytes}: use {HEADER_BYTES} to {} bytes, header included", possible.end());
        source.error(size.span(), cause)
    })
}

fn keep_last(source: Source<'_>, history: &Spanned<History>) -> Result<Option<u32>, WorkloadError> {
    match history.get_ref() {
        History::Last(depth @ 1..=HISTORY_MAX) => Ok(Some(*depth)),
        History::Text(text) if text == "all" => Ok(None),
        other => {
            let value = match other {
                History::Last(depth) => depth.to_string(),
                History::Text(text) => format!("\"{text}\""),
            };
            let cause = format!("`history` is {value}: use \"all\", or 1 to {HISTORY_MAX} samples to keep");
            Err(source.error(history.span(), cause))
        }
    }
}

fn check_names<'a>(
    source: Source<'_>,
    names: impl Iterator<Item = &'a Spanned<String>>,
    what: &str,
) -> Result<(), WorkloadError> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name.get_ref()) {
            let cause = format!("another {what} has the name `{}`, too: rename one of them", name.get_ref());
            return Err(source.error(name.span(), cause));
        }
    }
    Ok(())
}

fn check_totals(source: Source<'_>, workload: &Workload) -> Result<(), WorkloadError> {
    let total = |of: fn(&TopicGroup) -> u32| -> u64 {
        workload.topics.iter().map(|topic| u64::from(topic.count) * u64::from(of(topic))).sum()
    };
    for (what, count, most) in [
        ("topics", total(|_| 1), Workload::WRITERS_MAX),
        ("writers", total(|topic| topic.writers), Workload::WRITERS_MAX),
        ("readers", total(|topic| topic.readers), Workload::READERS_MAX),
        ("instances", total(|topic| topic.instances.saturating_mul(topic.writers)), Workload::INSTANCES_MAX),
        (
            "pairs of a writer and a reader",
            total(|topic| topic.writers.saturating_mul(topic.readers)),
            Workload::PAIRS_MAX,
        ),
    ] {
        if count > most {
            let cause = format!("the workload has {count} {what}: use at most {most}");
            return Err(source.error(0..0, cause));
        }
    }
    Ok(())
}

/// The name and text of a file.
#[derive(Clone, Copy)]
struct Source<'a> {
    name: &'a str,
    text: &'a str,
}

impl Source<'_> {
    fn error(self, at: Range<usize>, cause: impl ToString) -> WorkloadError {
        let line = 1 + self.text.bytes().take(at.start).filter(|byte| *byte == b'\n').count();
        WorkloadError { file: self.name.to_owned(), line, cause: cause.to_string() }
    }

    fn within(
        self,
        value: &Spanned<u32>,
        key: &str,
        possible: std::ops::RangeInclusive<u32>,
    ) -> Result<u32, WorkloadError> {
        let number = *value.get_ref();
        if possible.contains(&number) {
            return Ok(number);
        }
        let cause = format!("`{key}` is {number}: use {} to {}", possible.start(), possible.end());
        Err(self.error(value.span(), cause))
    }

    /// A name: it is part of the names of topics.
    fn name(self, name: &Spanned<String>) -> Result<String, WorkloadError> {
        let text = name.get_ref();
        let is_good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if (1..=NAME_BYTES_MAX).contains(&text.len()) && text.chars().all(is_good) {
            return Ok(text.clone());
        }
        let cause = format!("`name` is \"{text}\": use 1 to {NAME_BYTES_MAX} letters, digits, `-` and `_`");
        Err(self.error(name.span(), cause))
    }

    /// Kinds of nodes by their names.
    fn groups(
        self,
        names: &Spanned<Names>,
        key: &str,
        nodes: &[NodeGroup],
    ) -> Result<Vec<usize>, WorkloadError> {
        let list = match names.get_ref() {
            Names::One(name) => std::slice::from_ref(name),
            Names::Many(names) => names,
        };
        let mut groups = BTreeSet::new();
        for name in list {
            let Some(group) = nodes.iter().position(|node| node.name == *name) else {
                let known: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
                let advice = match known.as_slice() {
                    [] => "add a section [[node]]".to_owned(),
                    known => format!("use one of {}", known.join(", ")),
                };
                let cause = format!("`{key}` names `{name}`, which is no [[node]]: {advice}");
                return Err(self.error(names.span(), cause));
            };
            groups.insert(group);
        }
        if groups.is_empty() {
            return Err(self.error(names.span(), format!("`{key}` names no node: name at least one")));
        }
        Ok(groups.into_iter().collect())
    }
}

/// The highest rate of a writer, per second.
const RATE_MAX_HZ: f64 = 1e6;

/// The longest burst, samples.
const BURST_MAX: u32 = 100_000;

/// The most samples that writers and readers keep.
const HISTORY_MAX: u32 = 1_000_000;

/// The longest name, bytes.
const NAME_BYTES_MAX: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::examples::{NODES, topic as with};

    #[track_caller]
    fn refused(text: &str, expected: &str) {
        let error = workload("robot.toml", text).unwrap_err().to_string();
        assert_eq!(error, format!("robot.toml:{expected}"));
    }

    #[test]
    fn a_workload_is_read() {
        let text =
            with("size = '1k'\nrate = 10\nfrom = 'a'\nto = ['b']\nhistory = 5\nreliability = 'best-effort'");
        let read = workload("dir/robot.toml", &text).unwrap();
        assert_eq!((read.name.as_str(), read.processes, read.nodes.len()), ("robot", 2, 2));
        let expected = TopicGroup {
            name: "t".to_owned(),
            count: 1,
            size_bytes: 1024,
            rate_hz: 10.0,
            burst: 1,
            instances: 0,
            reliability: Reliability::BestEffort,
            keep_last: Some(5),
            from: vec![0],
            writers: 1,
            to: vec![1],
            readers: 1,
        };
        assert_eq!(read.topics, [expected]);
        let usual =
            workload("x", &with("size = 64\nrate = 0.5\nfrom = 'a'\nto = 'b'\nhistory = 'all'")).unwrap();
        assert_eq!((usual.topics[0].keep_last, usual.topics[0].reliability), (None, Reliability::Reliable));
        assert!((read.deliveries(2.0) - 20.0).abs() < 1e-9);
    }

    #[test]
    fn errors_name_file_line_and_cause() {
        let known = "expected one of `name`, `count`, `size`, `rate`, `burst`, `instances`, `reliability`, `history`, \
                     `from`, `writers`, `to`, `readers`";
        refused(&with("sizse = 3"), &format!("10: unknown field `sizse`, {known}"));
        refused(&with("size = 64\nrate = 1\nfrom = 'a'"), "8: missing field `to`");
        let good = |change: &str| with(&format!("from = 'a'\nto = 'b'\n{change}"));
        refused(&good("size = 8\nrate = 1"), "12: `size` is 8: use 28 to 1073741824 bytes, header included");
        refused(
            &good("size = 64\nrate = 0"),
            "13: `rate` is 0: use more than 0 and at most 1000000 per second",
        );
        refused(&good("size = 64\nrate = 1\nburst = 0"), "14: `burst` is 0: use 1 to 100000");
        refused(
            &good("size = 64\nrate = 1\nreliability = 'none'"),
            "14: `reliability` is \"none\": use \"best-effort\" or \"reliable\"",
        );
        refused(
            &good("size = 64\nrate = 1\nhistory = 'some'"),
            "14: `history` is \"some\": use \"all\", or 1 to 1000000 samples to keep",
        );
        refused(
            &good("size = 64\nrate = 1\nwriters = 1000\ninstances = 4000000"),
            "1: the workload has 4000000000 instances: use at most 1000000",
        );
        refused(
            &with("size = 64\nrate = 1\nfrom = 'c'\nto = 'b'"),
            "12: `from` names `c`, which is no [[node]]: use one of a, b",
        );
        refused(NODES, "1: the workload has no topic: add a section [[topic]]");
        refused("[[node]]\nname = 'a b'", "2: `name` is \"a b\": use 1 to 60 letters, digits, `-` and `_`");
        refused(
            "[[node]]\nname = 'a'\n[[node]]\nname = 'a'",
            "4: another node has the name `a`, too: rename one of them",
        );
        refused("processes = 65", "1: `processes` is 65: use 1 to 64");
        refused(
            "processes = 2\n[[node]]\nname = 'a'\nprocesses = [3]",
            "4: `processes` names process 3: use 1 to 2",
        );
        refused("node = 7", "1: invalid type: integer `7`, expected a sequence");
    }

    #[test]
    fn readers_need_nodes_in_other_processes() {
        let text = with("size = 64\nrate = 1\nfrom = 'a'\nto = 'b'\nreaders = 3");
        refused(
            &text,
            "14: the topic `t` has 3 readers, and only 1 of the nodes of `to` can have one: a reader is never \
             in the same process as a writer of its topic",
        );
    }

    #[test]
    fn totals_are_bounded() {
        let text = with("size = 64\nrate = 1\nfrom = 'a'\nto = 'b'\ncount = 20000\nwriters = 2");
        refused(&text, "1: the workload has 40000 writers: use at most 20000");
        refused(
            "[[node]]\nname = 'a'\ncount = 1000\n[[node]]\nname = 'b'",
            "1: the workload has 1001 nodes: use at most 1000",
        );
    }
}
