//! Limits on the memory of a participant, and on what one datagram can make it do.

use super::participants::Swarm;
use crate::live::node::Node;
use crate::profile;

/// Checks the memory of all parts of a participant.
pub(super) fn check_memory(node: &Node, swarm: &Swarm) {
    let core = node.core.memory();
    assert!(core <= CORE_MEMORY_MAX, "discovery of {} takes {core} bytes: {swarm}", node.prefix);
    let written = swarm.written_max();
    for (entity, writer) in &node.writers {
        let reserved = profile::reserved(|| writer.allocated());
        let max = reserved.max(WRITER_MEMORY_MAX + written * SAMPLE_MEMORY);
        let memory = writer.memory();
        assert!(memory <= max, "writer {entity} of {} takes {memory} bytes: {swarm}", node.prefix);
    }
    for (entity, reader) in &node.readers {
        let memory = reader.memory();
        assert!(
            memory <= READER_MEMORY_MAX.max(profile::reserved(|| reader.allocated())),
            "reader {entity} of {} takes {memory} bytes: {swarm}",
            node.prefix
        );
    }
}

/// Checks what one datagram caused: events of discovery, and datagrams sent.
pub(super) fn check_work(node: &Node, events: u64, answers: u64, swarm: &Swarm) {
    let locals = (node.writers.len() + node.readers.len()) as u64;
    // Two for each pair of endpoints, and the coming and going of the participant.
    let max = 2 * locals * (node.core.remote_endpoints() as u64 + 1) + 2;
    assert!(events <= max, "one datagram caused {events} events of {max}: {swarm}");
    let max = swarm.written_max() as u64 + METATRAFFIC_MAX;
    assert!(answers <= max, "one datagram caused {answers} others of {max}: {swarm}");
}

/// Checks what a third party received.
pub(super) fn check_strayed(swarm: &Swarm) {
    let max = u64::from(swarm.forgeries) * STRAYED_MAX;
    assert!(swarm.strayed <= max, "{} bytes of {max} went to another host: {swarm}", swarm.strayed);
}

const CORE_MEMORY_MAX: usize = 2 << 20;
/// Blocks, and the largest window.
const WRITER_MEMORY_MAX: usize = 4 << 20;
/// Bytes per sample kept, with its place in the index.
const SAMPLE_MEMORY: usize = 256;
const READER_MEMORY_MAX: usize = 4 << 20;
/// A request is answered with each sample at most once, and with a few messages of discovery.
const METATRAFFIC_MAX: u64 = 40;
/// Bytes to another host per forged participant.
const STRAYED_MAX: u64 = 70_000;
