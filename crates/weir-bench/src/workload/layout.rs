//! Which node has which endpoints, and in which process it runs.

use std::collections::BTreeMap;

use super::{TopicGroup, Workload};

/// All nodes and endpoints of a workload. It follows from the workload alone, so that every process knows all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// The nodes, by their number.
    pub nodes: Vec<PlacedNode>,
    /// The writers, by their number, which samples carry.
    pub writers: Vec<PlacedWriter>,
    /// The readers.
    pub readers: Vec<PlacedReader>,
}

/// A node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedNode {
    /// Its kind.
    pub group: usize,
    /// Its process, from 0.
    pub process: u32,
}

/// A writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedWriter {
    /// Its kind of topic.
    pub group: usize,
    /// Which topic of that kind, from 0.
    pub topic: u32,
    /// Its node.
    pub node: usize,
}

/// A reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedReader {
    /// Its kind of topic.
    pub group: usize,
    /// Which topic of that kind, from 0.
    pub topic: u32,
    /// Its node.
    pub node: usize,
    /// The first writer of its topic; the others have the next numbers.
    pub first_writer: usize,
    /// Writers of its topic.
    pub writers: u32,
}

impl Layout {
    /// Spreads nodes over processes and endpoints over nodes, in turn.
    ///
    /// # Errors
    /// A kind of topics whose readers find no node outside the processes of their writers, and the cause.
    pub fn new(workload: &Workload) -> Result<Self, (usize, String)> {
        let mut layout = Self { nodes: nodes(workload), ..Self::default() };
        for (group, topics) in workload.topics.iter().enumerate() {
            let (from, to) = (layout.nodes_of(&topics.from), layout.nodes_of(&topics.to));
            for topic in 0..topics.count {
                layout.place(group, topics, topic, &from, &to).map_err(|cause| (group, cause))?;
            }
        }
        Ok(layout)
    }

    /// How many nodes of each kind a process has, e.g. `camera 2, planner 1`.
    #[must_use]
    pub fn describe(&self, workload: &Workload, process: u32) -> String {
        let mut counts: BTreeMap<usize, u32> = BTreeMap::new();
        for node in self.nodes.iter().filter(|node| node.process == process) {
            *counts.entry(node.group).or_default() += 1;
        }
        let count = |(group, count): (&usize, &u32)| format!("{} {count}", workload.nodes[*group].name);
        counts.iter().map(count).collect::<Vec<_>>().join(", ")
    }

    fn nodes_of(&self, groups: &[usize]) -> Vec<usize> {
        (0..self.nodes.len()).filter(|node| groups.contains(&self.nodes[*node].group)).collect()
    }

    fn place(
        &mut self,
        group: usize,
        topics: &TopicGroup,
        topic: u32,
        from: &[usize],
        to: &[usize],
    ) -> Result<(), String> {
        let (first, writers) = (self.writers.len(), topics.writers);
        for place in 0..writers {
            let turn = topic as usize * writers as usize + place as usize;
            self.writers.push(PlacedWriter { group, topic, node: from[turn % from.len()] });
        }
        let written: Vec<u32> =
            self.writers[first..].iter().map(|writer| self.nodes[writer.node].process).collect();
        let is_elsewhere = |node: &&usize| !written.contains(&self.nodes[**node].process);
        let elsewhere: Vec<usize> = to.iter().filter(is_elsewhere).copied().collect();
        let readers = topics.readers as usize;
        if elsewhere.len() < readers {
            return Err(format!(
                "the topic `{}` has {readers} readers, and only {} of the nodes of `to` can have one: a reader is \
                 never in the same process as a writer of its topic",
                topics.name,
                elsewhere.len()
            ));
        }
        for place in 0..readers {
            let node = elsewhere[(topic as usize * readers + place) % elsewhere.len()];
            self.readers.push(PlacedReader { group, topic, node, first_writer: first, writers });
        }
        Ok(())
    }
}

/// The nodes of each kind in turn over their processes; those that may run in all of them continue where the kind
/// before ended.
fn nodes(workload: &Workload) -> Vec<PlacedNode> {
    let mut nodes = Vec::new();
    let mut turn = 0;
    for (group, kind) in workload.nodes.iter().enumerate() {
        for number in 0..kind.count {
            let process = match kind.processes.len() {
                0 => {
                    turn += 1;
                    (turn - 1) % workload.processes
                }
                count => kind.processes[number as usize % count],
            };
            nodes.push(PlacedNode { group, process });
        }
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::examples::STAR;

    #[test]
    fn nodes_take_turns_over_their_processes() {
        let layout = Layout::new(&Workload::parse("x", STAR).unwrap()).unwrap();
        let processes: Vec<u32> = layout.nodes.iter().map(|node| node.process).collect();
        assert_eq!(processes, [0, 1, 2, 1, 2, 0, 1, 2, 0, 1]);
        assert_eq!(layout.describe(&Workload::parse("x", STAR).unwrap(), 1), "leaf 2, any 2");
    }

    #[test]
    fn endpoints_take_turns_over_nodes_and_readers_are_elsewhere() {
        let workload = Workload::parse("x", STAR).unwrap();
        let layout = Layout::new(&workload).unwrap();
        let writers: Vec<(usize, u32, usize)> =
            layout.writers.iter().map(|it| (it.group, it.topic, it.node)).collect();
        assert_eq!(writers[..2], [(0, 0, 0), (0, 1, 0)]);
        // Two writers of the topic on each leaf.
        assert_eq!(writers[2..].iter().filter(|it| it.2 == 1).count(), 2);
        let of = |group, topic| -> Vec<usize> {
            let is_its = |it: &&PlacedReader| (it.group, it.topic) == (group, topic);
            layout.readers.iter().filter(is_its).map(|it| it.node).collect()
        };
        assert_eq!((of(0, 0), of(0, 1), of(1, 0)), (vec![1, 2, 3], vec![4, 1, 2], vec![0]));
        let up = layout.readers.last().unwrap();
        assert_eq!((up.first_writer, up.writers, layout.writers.len()), (2, 8, 10));
        for reader in &layout.readers {
            let writers = &layout.writers[reader.first_writer..][..reader.writers as usize];
            let process = |node: usize| layout.nodes[node].process;
            assert!(writers.iter().all(|writer| process(writer.node) != process(reader.node)));
        }
    }
}
