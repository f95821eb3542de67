//! Random and mutated datagrams, from matched and unknown peers, into live cores: no panics, no
//! unbounded growth, and nonsense is counted.

use core::time::Duration;

use weir_netsim::{Link, Loss, Rng};
use weir_rtps::config;
use weir_rtps::outbox::Outbox;
use weir_wire::{
    AckNack, DataHeader, Emit, EntityId, Gap, Guid, GuidPrefix, Header, Heartbeat, InfoDestination,
    ProtocolVersion, SequenceNumber, SequenceNumberSet, VendorId, push,
};

use crate::harness::{Sim, seeds};

/// A writer and a reader in the middle of an exchange, with recorded traffic.
fn busy(seed: u64) -> Sim {
    let link = Link::new().delay(Duration::from_micros(50)).loss(Loss::random(0.1));
    let mut sim = Sim::new("hostile", seed, link);
    sim.add_writer(|setup| setup.samples = 2000);
    sim.add_reader(|setup| setup.config.max_bytes = 1 << 20);
    sim.connect(0, 0);
    sim.run_for(Duration::from_micros(600));
    sim
}

/// Gives a datagram to the cores of both hosts and lets them respond.
fn feed(sim: &mut Sim, datagram: &[u8], out: &mut Outbox) {
    let now = sim.now;
    out.clear();
    sim.writers[0].receive(now, [datagram], out);
    sim.readers[0].receive(now, [datagram], out);
    let (writer, reader) = (&mut sim.writers[0].core, &mut sim.readers[0].core);
    if writer.next_timeout().is_some_and(|at| at <= now) {
        writer.handle_timeout(now);
    }
    if reader.next_timeout().is_some_and(|at| at <= now) {
        reader.handle_timeout(now);
    }
    writer.poll_transmit(now, out);
    reader.poll_transmit(now, out);
    let mut bytes = 0;
    out.for_each_datagram(|_, datagram| bytes += datagram.len());
    assert!(bytes < 8 << 20, "{bytes} bytes in answer to one datagram: {sim}");
    let reader = &sim.readers[0].core;
    let memory = reader.memory();
    assert!(memory < 16 << 20, "the reader takes {memory} bytes: {sim}");
    assert!(sim.writers[0].core.memory() < 32 << 20, "{sim}");
}

/// Afterwards, time advances and the application takes all samples.
fn go_on(sim: &mut Sim, rng: &mut Rng) {
    sim.now = sim.now + Duration::from_nanos(rng.below(2_000_000));
    if rng.chance(0.3) {
        while sim.readers[0].core.take_next(|_| {}) {}
    }
}

/// Flips, cuts, repeats and overwrites bytes.
fn mutate(datagram: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = datagram.to_vec();
    for _ in 0..=rng.below(4) {
        let len = bytes.len() as u64;
        if len == 0 {
            break;
        }
        let at = rng.below(len) as usize;
        match rng.below(5) {
            0 => bytes[at] ^= 1 << rng.below(8),
            1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][rng.below(5) as usize],
            2 => bytes.truncate(at),
            3 => bytes.extend_from_within(at..),
            _ => bytes[at..].iter_mut().take(4).for_each(|byte| *byte = rng.next_u64() as u8),
        }
    }
    bytes.truncate(config::DATAGRAM_MAX_BYTES);
    bytes
}

/// A number near an interesting one.
fn number(rng: &mut Rng, near: i64) -> SequenceNumber {
    let value = match rng.below(8) {
        0 => 1,
        1 => i64::MAX - rng.below(3) as i64,
        2 => 1 << rng.below(62),
        3 => near + 10_000 + rng.below(1 << 40) as i64,
        _ => near + rng.below(600) as i64 - 300,
    };
    SequenceNumber(value.max(1))
}

fn set(rng: &mut Rng, base: SequenceNumber) -> SequenceNumberSet {
    let mut set = SequenceNumberSet::new(base);
    for _ in 0..rng.below(20) {
        set.insert(SequenceNumber(base.0.saturating_add(rng.below(256) as i64)));
    }
    set
}

/// A message of well-formed submessages with arbitrary numbers.
fn forge(rng: &mut Rng, source: GuidPrefix, writer: Guid, reader: Guid, near: i64) -> Vec<u8> {
    let mut out = Vec::new();
    push(&mut out, &Header { version: ProtocolVersion::V2_5, vendor: VendorId::WEIR, prefix: source });
    let count = rng.next_u64() as u32 >> rng.below(32);
    for _ in 0..=rng.below(4) {
        let (start, other) = (number(rng, near), number(rng, near));
        let to = if rng.chance(0.5) { reader.entity } else { EntityId::UNKNOWN };
        match rng.below(6) {
            0 => push(&mut out, &InfoDestination { prefix: reader.prefix }),
            1 => {
                let last = SequenceNumber(other.0.max(start.0 - 1));
                let (writer, is_final) = (writer.entity, rng.chance(0.5));
                let heartbeat = Heartbeat {
                    reader: to,
                    writer,
                    first: start,
                    last,
                    count,
                    is_final,
                    is_liveliness: false,
                };
                push(&mut out, &heartbeat);
            }
            2 => {
                let list = set(rng, SequenceNumber(other.0.max(start.0)));
                push(&mut out, &Gap { reader: to, writer: writer.entity, start, list });
            }
            3 | 4 => {
                let state = set(rng, start);
                let is_final = rng.chance(0.5);
                let (reader, writer) = (reader.entity, writer.entity);
                push(&mut out, &AckNack { reader, writer, state, count, is_final });
            }
            _ => {
                let header = DataHeader {
                    reader: to,
                    writer: writer.entity,
                    sequence_number: start,
                    inline_qos_len: 0,
                    payload_len: 8,
                    is_key: rng.chance(0.1),
                };
                let at = out.len();
                out.resize(at + header.wire_len(), 0);
                header.emit(&mut out[at..]);
                out.extend([0, 1, 0, 0, 1, 2, 3, 4]);
            }
        }
    }
    out
}

#[test]
fn mutated_traffic_from_matched_peers_does_no_harm() {
    for seed in seeds(4) {
        let mut sim = busy(seed);
        let mut rng = Rng::new(seed).fork(2);
        let records = sim.network.recording().records().to_vec();
        let mut out = Outbox::new();
        for _ in 0..3_000 {
            let record = &records[rng.below(records.len() as u64) as usize];
            feed(&mut sim, &mutate(&record.bytes, &mut rng), &mut out);
            go_on(&mut sim, &mut rng);
        }
    }
}

#[test]
fn well_formed_nonsense_from_matched_peers_does_no_harm() {
    for seed in seeds(20) {
        let mut sim = busy(seed);
        let mut rng = Rng::new(seed).fork(3);
        let (writer, reader) = (sim.writers[0].config.guid, sim.readers[0].config.guid);
        let mut out = Outbox::new();
        for _ in 0..300 {
            let source = if rng.chance(0.5) { writer.prefix } else { reader.prefix };
            let near = sim.writers[0].core.last_sequence_number().0;
            let datagram = forge(&mut rng, source, writer, reader, near);
            feed(&mut sim, &datagram, &mut out);
            go_on(&mut sim, &mut rng);
        }
        assert!(sim.writers[0].core.counters().acknacks_ignored > 0, "{sim}");
    }
}

#[test]
fn unmatched_writers_are_counted_and_change_nothing() {
    for seed in seeds(4) {
        let mut sim = busy(seed);
        let mut rng = Rng::new(seed).fork(4);
        let (writer, reader) = (sim.writers[0].config.guid, sim.readers[0].config.guid);
        let before = (sim.writers[0].core.window(), sim.readers[0].core.memory());
        let ignored = sim.writers[0].core.counters().acknacks_ignored;
        let mut out = Outbox::new();
        for _ in 0..3_000 {
            let datagram = forge(&mut rng, GuidPrefix([0xee; 12]), writer, reader, 50);
            let noise: Vec<u8> = (0..rng.below(300)).map(|_| rng.next_u64() as u8).collect();
            for datagram in [&datagram[..], &noise] {
                sim.writers[0].receive(sim.now, [datagram], &mut out);
                sim.readers[0].receive(sim.now, [datagram], &mut out);
            }
        }
        sim.writers[0].core.poll_transmit(sim.now, &mut out);
        sim.readers[0].core.poll_transmit(sim.now, &mut out);
        assert!(out.is_empty(), "nothing is sent to unknown peers: {sim}");
        let counters = sim.readers[0].receiver.counters();
        assert!(counters.ignored > 1_000 && counters.malformed > 1_000, "{counters:?}: {sim}");
        assert!(sim.writers[0].core.counters().acknacks_ignored > ignored + 1_000, "{sim}");
        assert_eq!((sim.writers[0].core.window(), sim.readers[0].core.memory()), before, "{sim}");
        sim.run_to_the_end();
    }
}
