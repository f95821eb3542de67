//! PRESENTATION: in which order samples are accessed, and how much may wait for the end of a set.

use weir_wire::{Endianness, ParameterListWriter};

use super::policies::{STRONG, WEAK, at, keyed, two_writers};
use super::*;
use crate::group::SetTag;
use crate::qos::{Presentation, PresentationScope};

const GROUP: Guid = Guid::new(GuidPrefix([9; 12]), EntityId([0, 0, 1, 8]));

fn presented(scope: PresentationScope, coherent_access: bool, ordered_access: bool) -> ReaderConfig {
    ReaderConfig { presentation: Presentation { scope, coherent_access, ordered_access }, ..keyed() }
}

/// Sends a value of an instance with this tag.
fn send(reader: &mut ReaderCore, writer: Guid, sn: i64, (key, value): (u8, u8), tag: SetTag) {
    let mut list = Vec::new();
    let mut parameters = ParameterListWriter::new(&mut list);
    tag.encode(&mut parameters);
    parameters.finish();
    let data = Data {
        reader: EntityId::UNKNOWN,
        writer: writer.entity,
        sequence_number: SequenceNumber(sn),
        inline_qos: (tag != SetTag::default())
            .then(|| ParameterList::parse(&list, Endianness::Little).unwrap().0),
        payload: Payload::Data(&[0, 1, 0, 0, key, value, 0, 0]),
    };
    reader.handle_data(at(1), &writer, &data, None, None);
}

fn number(number: i64) -> SetTag {
    SetTag { number: Some(SequenceNumber(number)), ..SetTag::default() }
}

fn set(first: i64) -> SetTag {
    SetTag { set: Some(SequenceNumber(first)), ..SetTag::default() }
}

/// The values that one access returns.
fn access(reader: &mut ReaderCore, max: usize) -> Vec<u8> {
    let mut values = Vec::new();
    reader.access(max, SampleSelection::default(), true, |sample| {
        values.push(sample.payload[5]);
        true
    });
    values
}

#[test]
fn the_scope_and_the_flags_decide_in_which_order_samples_are_accessed() {
    use PresentationScope::{Group, Instance, Topic};
    let by_arrival = [vec![1, 2, 3]];
    let by_instance = [vec![1, 3, 2]];
    // Of two instances.
    let expected = [
        ((Instance, false, false), &by_arrival[..]),
        ((Instance, false, true), &by_instance),
        ((Instance, true, false), &by_instance),
        ((Instance, true, true), &by_instance),
        ((Topic, false, false), &by_instance),
        ((Topic, true, false), &by_instance),
        ((Topic, false, true), &by_arrival),
        ((Topic, true, true), &by_arrival),
        ((Group, false, false), &by_instance),
        ((Group, true, false), &by_instance),
        ((Group, false, true), &[vec![1], vec![2], vec![3]]),
        ((Group, true, true), &[vec![1], vec![2], vec![3]]),
    ];
    for ((scope, coherent, ordered), accesses) in expected {
        let mut reader = two_writers(presented(scope, coherent, ordered));
        for (sn, key) in [(1, 1), (2, 2), (3, 1)] {
            send(&mut reader, WEAK, sn, (key, sn as u8), SetTag::default());
        }
        let mut seen = Vec::new();
        while reader.available() > 0 {
            seen.push(access(&mut reader, usize::MAX));
        }
        assert_eq!(seen, accesses, "{scope:?}, coherent: {coherent}, ordered: {ordered}");
    }
}

/// A reader in the order of a group, which both writers belong to.
fn ordered_group() -> ReaderCore {
    let mut reader = two_writers(presented(PresentationScope::Group, false, true));
    [WEAK, STRONG].into_iter().for_each(|writer| reader.set_writer_group(writer, GROUP));
    reader
}

#[test]
fn samples_of_a_group_are_accessed_one_at_a_time_by_their_number() {
    let mut reader = ordered_group();
    send(&mut reader, STRONG, 1, (1, 2), number(2));
    send(&mut reader, STRONG, 2, (2, 4), number(4));
    send(&mut reader, WEAK, 1, (1, 1), number(1));
    send(&mut reader, WEAK, 2, (2, 3), number(3));
    let mut positions = Vec::new();
    reader.group_positions(States::ANY, &mut positions);
    let numbers: Vec<_> = positions.iter().map(|it| (it.group, it.number.0)).collect();
    assert_eq!(numbers, [2, 4, 1, 3].map(|number| (GROUP, number)));
    assert_eq!(access(&mut reader, 0), []);
    for value in 1..=4 {
        assert_eq!(access(&mut reader, usize::MAX), [value]);
    }
    assert_eq!(access(&mut reader, usize::MAX), []);
    // A sample that does not count is passed over.
    send(&mut reader, WEAK, 3, (1, 5), number(5));
    send(&mut reader, STRONG, 3, (1, 6), number(6));
    let mut seen = Vec::new();
    let count = reader.access(usize::MAX, SampleSelection::default(), true, |sample| {
        seen.push(sample.payload[5]);
        sample.payload[5] == 6
    });
    assert_eq!((count, seen, reader.available()), (1, vec![5, 6], 0));
}

/// As the subscriber merges them: by the time at which they were written.
#[test]
fn samples_of_several_groups_are_accessed_by_time_and_in_each_group_by_number() {
    let mut reader = two_writers(presented(PresentationScope::Group, false, true));
    let other = Guid { prefix: GuidPrefix([8; 12]), ..GROUP };
    reader.set_writer_group(WEAK, GROUP);
    reader.set_writer_group(STRONG, other);
    // In the order of arrival: the first group's is the latest. The second of the other has an earlier time than the
    // first.
    for (writer, sn, value, seconds) in [(WEAK, 1, 1, 10), (STRONG, 1, 2, 6), (STRONG, 2, 3, 5)] {
        let mut list = Vec::new();
        let mut parameters = ParameterListWriter::new(&mut list);
        number(sn).encode(&mut parameters);
        parameters.finish();
        let data = Data {
            reader: EntityId::UNKNOWN,
            writer: writer.entity,
            sequence_number: SequenceNumber(sn),
            inline_qos: Some(ParameterList::parse(&list, Endianness::Little).unwrap().0),
            payload: Payload::Data(&[0, 1, 0, 0, value, value, 0, 0]),
        };
        reader.handle_data(at(1), &writer, &data, Some(Timestamp { seconds, fraction: 0 }), None);
    }
    let mut positions = Vec::new();
    reader.group_positions(States::ANY, &mut positions);
    assert_eq!(groups::merge(&[positions]).len(), 3);
    let seen: Vec<_> = (0..3).flat_map(|_| access(&mut reader, usize::MAX)).collect();
    assert_eq!(seen, [2, 3, 1]);
}

#[test]
fn only_samples_in_the_states_that_are_meant_have_a_position() {
    let mut reader = two_writers(presented(PresentationScope::Group, false, true));
    send(&mut reader, WEAK, 1, (1, 1), number(1));
    send(&mut reader, WEAK, 2, (1, 2), number(2));
    let read = SampleSelection::default();
    assert_eq!(reader.access(1, read, false, |_| true), 1);
    let mut positions = Vec::new();
    reader.group_positions(States::NOT_READ, &mut positions);
    // Without a group, the order is that of the writer.
    let [position] = positions[..] else { panic!("{positions:?}") };
    assert_eq!((position.group, position.number), (WEAK, SequenceNumber(2)));
}

#[test]
fn a_set_may_have_as_many_samples_as_the_reader_and_sets_that_were_taken_do_not_count() {
    let config = presented(PresentationScope::Topic, true, false);
    let mut reader = two_writers(ReaderConfig { max_samples: Some(4), ..config });
    let mut sn = 1;
    for round in 0..20 {
        let first = sn;
        let len = [4, 3, 5][round % 3];
        for value in 0..len {
            send(&mut reader, WEAK, sn, (1, value), set(first));
            sn += 1;
        }
        // A sample outside of sets ends it.
        send(&mut reader, WEAK, sn, (1, 99), SetTag::default());
        sn += 1;
        let values: Vec<u8> = if len == 5 { Vec::new() } else { (0..len).collect() };
        let mut seen = Vec::new();
        while reader.available() > 0 {
            seen.extend(access(&mut reader, usize::MAX));
        }
        if seen.last() != Some(&99) {
            // It had no room beside the set, and is sent again.
            send(&mut reader, WEAK, sn - 1, (1, 99), SetTag::default());
            seen.extend(access(&mut reader, usize::MAX));
        }
        assert_eq!(seen, [&values[..], &[99]].concat(), "round {round}");
        let dropped = (round as u64 + 1) / 3;
        assert_eq!(reader.counters().coherent_sets_dropped, dropped);
    }
}

#[test]
fn the_bytes_of_a_set_are_limited_too() {
    let config = presented(PresentationScope::Topic, true, false);
    let mut reader = two_writers(ReaderConfig { max_bytes: 1_000, ..config });
    for sn in 1..=20 {
        send(&mut reader, WEAK, sn, (1, sn as u8), set(1));
    }
    send(&mut reader, WEAK, 21, (1, 21), SetTag::default());
    assert_eq!(access(&mut reader, usize::MAX), [21]);
    assert_eq!(reader.counters().coherent_sets_dropped, 1);
}

#[test]
fn a_reader_that_joins_during_a_set_gets_none_of_it_unless_it_wants_history() {
    for wants_history in [false, true] {
        let config = presented(PresentationScope::Topic, true, false);
        let mut reader = two_writers(ReaderConfig { wants_history, ..config });
        let heartbeat = Heartbeat {
            reader: EntityId::UNKNOWN,
            writer: WEAK.entity,
            first: SequenceNumber(2),
            last: SequenceNumber(3),
            count: 1,
            is_final: true,
            is_liveliness: false,
        };
        reader.handle_heartbeat(at(0), WEAK, &heartbeat);
        send(&mut reader, WEAK, 2, (1, 2), set(1));
        send(&mut reader, WEAK, 3, (1, 3), set(3));
        send(&mut reader, WEAK, 4, (1, 4), SetTag::default());
        let expected: &[u8] = if wants_history { &[2, 3, 4] } else { &[3, 4] };
        assert_eq!(access(&mut reader, usize::MAX), expected, "wants history: {wants_history}");
    }
}

#[test]
fn samples_keep_their_number_in_the_group_when_their_writer_is_unmatched() {
    let mut reader = ordered_group();
    send(&mut reader, STRONG, 1, (1, 2), number(2));
    send(&mut reader, WEAK, 1, (1, 1), number(1));
    send(&mut reader, STRONG, 2, (1, 3), number(3));
    reader.unmatch_writer(at(2), WEAK);
    let mut positions = Vec::new();
    reader.group_positions(States::ANY, &mut positions);
    let numbers: Vec<_> = positions.iter().map(|it| (it.group, it.number.0)).collect();
    assert_eq!(numbers, [2, 1, 3].map(|number| (GROUP, number)));
    for value in 1..=3 {
        assert_eq!(access(&mut reader, usize::MAX), [value]);
    }
}

#[test]
fn numbers_of_samples_that_were_taken_are_forgotten() {
    let mut reader = ordered_group();
    // The number of this sample is kept, as it stays.
    send(&mut reader, STRONG, 1, (1, 2), number(1 << 40));
    let mut peaks = [0; 2];
    for sn in 1..=20_000 {
        send(&mut reader, WEAK, sn, (1, 1), number(sn));
        assert_eq!(access(&mut reader, usize::MAX), [1]);
        let peak = &mut peaks[usize::from(sn > 10_000)];
        *peak = reader.memory().max(*peak);
    }
    assert_eq!(peaks[0], peaks[1]);
    // Each number is visited a few times.
    let visited = reader.delivery.cache.enforced.as_ref().unwrap().numbers.visited;
    assert!(visited <= 2 * 20_000, "{visited}");
    let mut positions = Vec::new();
    reader.group_positions(States::ANY, &mut positions);
    assert_eq!(positions.iter().map(|it| it.number.0).collect::<Vec<_>>(), [1 << 40]);
}
