use weir_wire::{EntityId, GuidPrefix};

use super::super::assembly::{Added, Origin, Patience};
use super::*;
use crate::block::Block;

const PATIENCE: Patience =
    Patience { repair_ns: 100, request_ns: u64::MAX, is_repeat: false, is_named: false };

fn assemblies() -> Assemblies {
    Assemblies::new(config::REASSEMBLY_MAX_BYTES)
}

fn frag(start: u32, size: u32, bytes: &[u8]) -> DataFrag<'_> {
    DataFrag {
        reader: EntityId::UNKNOWN,
        writer: EntityId::user_writer(1, false),
        sequence_number: SequenceNumber(1),
        fragment_start: start,
        fragments: 1,
        fragment_size: 4,
        sample_size: size,
        is_key: false,
        inline_qos: None,
        payload: bytes,
    }
}

fn add<'a>(
    assemblies: &'a mut Assemblies,
    chunks: &mut Chunks,
    frag: &DataFrag<'_>,
) -> Option<&'a mut Assembly> {
    let writer = Guid::new(GuidPrefix([1; 12]), frag.writer);
    let assembly = assemblies.entry(Time(1), writer, frag, || (ChangeKind::Alive, None), None, chunks)?;
    assembly.add(Time(0), frag);
    Some(assembly)
}

#[test]
fn fragments_in_any_order_and_again_make_the_sample() {
    let (mut assemblies, mut chunks) = (assemblies(), Chunks::default());
    for (start, bytes) in [(3, &b"i"[..]), (1, b"abcd"), (1, b"abcd"), (3, b"i"), (2, b"efgh")] {
        add(&mut assemblies, &mut chunks, &frag(start, 9, bytes)).unwrap();
    }
    let writer = Guid::new(GuidPrefix([1; 12]), EntityId::user_writer(1, false));
    let whole = assemblies.take_complete(writer, SequenceNumber(1)).unwrap();
    assert_eq!(&whole.memory.into_block().bytes()[..9], b"abcdefghi");
    assert!(assemblies.is_empty());
}

#[test]
fn what_is_missing_is_asked_for_once_per_round_trip() {
    let (mut assemblies, mut chunks) = (assemblies(), Chunks::default());
    let asked = |assembly: &mut Assembly, now| -> Vec<u32> {
        let mut sets = Vec::new();
        assembly.ask(now, PATIENCE, &mut sets);
        sets.iter().flat_map(|(_, set)| set.iter()).map(|number| number.0).collect()
    };
    let assembly = add(&mut assemblies, &mut chunks, &frag(3, 40, b"iiii")).unwrap();
    assert_eq!(asked(assembly, Time(1_000_000)), [1, 2]);
    assert_eq!(asked(assembly, Time(1_000_050)), []);
    assembly.announce(5);
    assert_eq!(asked(assembly, Time(1_000_060)), [4, 5]);
    assembly.announce(u32::MAX);
    assert_eq!(asked(assembly, Time(1_000_200)), [1, 2, 4, 5, 6, 7, 8, 9, 10]);
}

#[test]
fn no_more_is_asked_for_at_a_time_than_a_writer_remembers() {
    let (mut assemblies, mut chunks) = (assemblies(), Chunks::default());
    let (last, fragment_size) = (60_000, 512);
    let payload = [7; 512];
    let size = last * u32::from(fragment_size);
    // There is memory for all of it, so that nothing lies too far ahead.
    chunks.give_buffer(Block::new(size as usize));
    let end = DataFrag { fragment_size, ..frag(last, size, &payload) };
    let assembly = add(&mut assemblies, &mut chunks, &end).unwrap();
    let mut asked = Vec::new();
    while {
        let mut sets = Vec::new();
        assembly.ask(Time(1_000_000), PATIENCE, &mut sets);
        assert!(sets.len() <= config::NACK_FRAG_SETS_MAX + 1, "{}", sets.len());
        asked.extend(sets.iter().flat_map(|(_, set)| set.iter()).map(|number| number.0));
        !sets.is_empty()
    } {}
    // All of it, in turn.
    assert!(asked.into_iter().eq(1..last));
}

/// What `assembly` asks for now, in fragments.
fn asked(assembly: &mut Assembly) -> Vec<u32> {
    let mut asked = Vec::new();
    loop {
        let mut sets = Vec::new();
        assembly.ask(Time(1_000_000), PATIENCE, &mut sets);
        if sets.is_empty() {
            return asked;
        }
        asked.extend(sets.iter().flat_map(|(_, set)| set.iter()).map(|number| number.0));
    }
}

#[test]
fn one_fragment_of_a_gigabyte_takes_memory_in_proportion_wherever_it_lies() {
    const PAYLOAD: [u8; 512] = [7; 512];
    let size = config::SAMPLE_MAX_BYTES as u32;
    let reach = config::REASSEMBLY_REACH_MIN_BYTES as u32 / 512;
    let memory_with = |start: u32| {
        let (mut assemblies, mut chunks) = (assemblies(), Chunks::default());
        let end = DataFrag { fragment_size: 512, ..frag(start, size, &PAYLOAD) };
        add(&mut assemblies, &mut chunks, &end).unwrap();
        assemblies.memory()
    };
    let of_lists = 32 * 1024 * 1024 / 512;
    assert!(memory_with(1) < 512 + of_lists, "{}", memory_with(1));
    assert!(memory_with(reach) < config::REASSEMBLY_REACH_MIN_BYTES + of_lists, "{}", memory_with(reach));
    for far in [reach + 1, size / 512] {
        assert!(memory_with(far) < of_lists, "{far}: {}", memory_with(far));
    }
}

#[test]
fn memory_is_reserved_for_a_whole_sample_when_one_of_its_size_was_completed() {
    static PAYLOAD: [u8; 60_000] = [7; 60_000];
    let (mut assemblies, mut chunks) = (assemblies(), Chunks::default());
    let total = 100;
    let reserved = |assembly: &Assembly| match &assembly.memory {
        SampleMemory::Growing(bytes) => bytes.capacity(),
        SampleMemory::Recycled(_) => panic!("no buffer was kept"),
    };
    let frag = |sn, start, total| DataFrag {
        sequence_number: SequenceNumber(sn),
        fragment_size: 60_000,
        ..frag(start, 60_000 * total, &PAYLOAD)
    };
    for (sn, expected) in [(1, 18), (2, total)] {
        let assembly = add(&mut assemblies, &mut chunks, &frag(sn, 1, total)).unwrap();
        assert_eq!(reserved(assembly), 60_000 * expected as usize);
        (2..=total).for_each(|start| _ = assembly.add(Time(0), &frag(sn, start, total)));
        let writer = Guid::new(GuidPrefix([1; 12]), EntityId::user_writer(1, false));
        assert!(assemblies.take_complete(writer, SequenceNumber(sn)).is_some());
    }
    let larger = add(&mut assemblies, &mut chunks, &frag(3, 1, total + 1)).unwrap();
    assert_eq!(reserved(larger), 60_000 * 18);
}

#[test]
fn what_lies_too_far_ahead_is_asked_for_when_half_of_what_is_before_it_has_arrived() {
    const PAYLOAD: [u8; 1024] = [7; 1024];
    let reach = config::REASSEMBLY_REACH_MIN_BYTES as u32 / 1024;
    let last = 3 * reach;
    let frag = |start| DataFrag { fragment_size: 1024, ..frag(start, 1024 * last, &PAYLOAD) };
    let (mut assemblies, mut chunks) = (assemblies(), Chunks::default());
    let assembly = add(&mut assemblies, &mut chunks, &frag(1)).unwrap();
    assert!(matches!(assembly.add(Time(0), &frag(last)), Added::TooFar { reveals_missing: true }));
    assert!(asked(assembly).into_iter().eq(2..=reach), "all within reach, once");
    for start in 2..reach / 2 {
        assert!(matches!(assembly.add(Time(0), &frag(start)), Added::Stored { reveals_missing: false }));
        assert!(asked(assembly).is_empty());
    }
    assert!(matches!(assembly.add(Time(0), &frag(reach / 2)), Added::Stored { reveals_missing: true }));
    assert!(asked(assembly).into_iter().eq(reach + 1..=2 * reach));
    (reach / 2 + 1..=last).for_each(|start| _ = assembly.add(Time(0), &frag(start)));
    assert!(assembly.is_complete());
}

#[test]
fn what_was_asked_for_at_different_times_measures_nothing() {
    let (mut assemblies, mut chunks) = (assemblies(), Chunks::default());
    let assembly = add(&mut assemblies, &mut chunks, &frag(2, 40, b"bbbb")).unwrap();
    assembly.ask(Time(1_000_000), PATIENCE, &mut Vec::new());
    let first = frag(1, 40, b"aaaa");
    assert!(matches!(assembly.origin(&first), Origin::Repair { asked_at: Time(1_000_000), tries: 1 }));
    assembly.announce(3);
    assembly.ask(Time(1_000_050), PATIENCE, &mut Vec::new());
    assert!(matches!(assembly.origin(&first), Origin::Original));
    // Again, all together.
    assembly.ask(Time(1_000_200), PATIENCE, &mut Vec::new());
    assert!(matches!(assembly.origin(&first), Origin::Repair { asked_at: Time(1_000_200), tries: 2 }));
}

#[test]
fn contradictions_and_too_many_samples_are_refused() {
    let (mut assemblies, mut chunks) = (assemblies(), Chunks::default());
    assert!(add(&mut assemblies, &mut chunks, &frag(1, 40, b"aaaa")).is_some());
    assert!(add(&mut assemblies, &mut chunks, &frag(1, 44, b"aaaa")).is_none());
    let scattered = DataFrag { sequence_number: SequenceNumber(2), ..frag(1, 4 * 1024 + 1, b"aaaa") };
    assert!(add(&mut assemblies, &mut chunks, &scattered).is_none());
    for sn in 2..100_000 {
        let other = DataFrag { sequence_number: SequenceNumber(sn), ..frag(1, u32::MAX, b"aaaa") };
        assert!(add(&mut assemblies, &mut chunks, &other).is_none());
        let other = DataFrag { sequence_number: SequenceNumber(sn), ..frag(1, 40, b"aaaa") };
        add(&mut assemblies, &mut chunks, &other);
    }
    assert_eq!(assemblies.all.len(), config::REASSEMBLY_MAX_BYTES / 2 / config::ASSEMBLY_MIN_BYTES);
}

#[test]
fn a_request_is_repeated_on_a_long_path_without_counting_as_another() {
    let (mut all, mut chunks) = (assemblies(), Chunks::default());
    let first = frag(3, 12, b"cccc");
    let qos = || (ChangeKind::Alive, None);
    let assembly = all.entry(Time::ZERO, Guid::UNKNOWN, &first, qos, None, &mut chunks).unwrap();
    assembly.add(Time(0), &first);
    let patience = Patience { repair_ns: 1_000, request_ns: 200, is_repeat: false, is_named: false };
    let mut asked_at = |now: u64| {
        let mut sets = Vec::new();
        assembly.ask(Time(now), patience, &mut sets);
        let missing = frag(1, 12, b"aaaa");
        (sets.len(), matches!(assembly.origin(&missing), Origin::Repair { asked_at: Time(100), tries: 1 }))
    };
    assert_eq!(asked_at(100), (1, true));
    assert_eq!(asked_at(250), (0, true));
    assert_eq!(asked_at(300), (1, true));
    assert_eq!(asked_at(1_100), (1, false), "it counts as lost");
}

#[test]
fn room_for_a_large_sample_visits_each_idle_one_a_few_times() {
    let (mut assemblies, mut chunks) = (assemblies(), Chunks::default());
    let each = config::REASSEMBLY_MAX_BYTES / 2 / config::ASSEMBLY_MIN_BYTES;
    let begin = |assemblies: &mut Assemblies, chunks: &mut Chunks, now, (writer, sn), size: usize| {
        let writer = Guid::new(GuidPrefix([writer; 12]), EntityId::user_writer(1, false));
        let (size, sequence_number) = (size as u32, SequenceNumber(sn as i64));
        let frag = DataFrag { fragment_size: 1024, sequence_number, ..frag(1, size, &[7; 1024]) };
        assemblies.entry(now, writer, &frag, || (ChangeKind::Alive, None), None, chunks).is_some()
    };
    for (writer, sn) in (1..=2).flat_map(|writer| (1..=each).map(move |sn| (writer, sn))) {
        assert!(begin(&mut assemblies, &mut chunks, Time(sn as u64), (writer, sn), 2048));
    }
    let now = Time(0) + config::REASSEMBLY_IDLE * 2;
    assert!(begin(&mut assemblies, &mut chunks, now, (3, 1), config::REASSEMBLY_MAX_BYTES / 4));
    // The oldest have made room.
    let first = |writer| assemblies.all.keys().find(|at| at.0.prefix == GuidPrefix([writer; 12])).unwrap().1;
    let end = SequenceNumber(each as i64 / 4 + 1);
    assert_eq!([first(1), first(2)], [end; 2]);
    for sn in 2..=(each as i64 / 2) {
        assert!(begin(&mut assemblies, &mut chunks, now, (4, sn as usize), 2048));
    }
    assert!(assemblies.visited <= 4 * 2 * each, "{} visited", assemblies.visited);
}

#[test]
fn with_few_places_a_writer_without_one_gets_that_of_a_writer_with_several() {
    let size = AssembliesSize::new(3, 64);
    let mut assemblies = Assemblies::fixed(config::REASSEMBLY_MAX_BYTES, size);
    let mut chunks = Chunks::default();
    let mut begin = |writer: u32, number: i64, now: u64| {
        let writer = EntityId::user_writer(writer, false);
        let first = DataFrag { writer, sequence_number: SequenceNumber(number), ..frag(1, 8, b"abcd") };
        let guid = Guid::new(GuidPrefix([1; 12]), writer);
        let qos = || (ChangeKind::Alive, None);
        let entry = assemblies.entry(Time(now), guid, &first, qos, None, &mut chunks);
        let is_admitted = entry.is_some();
        entry.into_iter().for_each(|assembly| _ = assembly.add(Time(now), &first));
        let all = assemblies.all.keys().map(|(guid, sn)| (guid.entity, sn.0));
        (is_admitted, all.map(|(it, sn)| (u32::from(it.0[2]), sn)).collect::<Vec<_>>())
    };
    begin(1, 1, 10);
    begin(1, 2, 11);
    assert_eq!(begin(1, 3, 12), (true, vec![(1, 1), (1, 2), (1, 3)]));
    assert!(!begin(1, 4, 13).0, "it has its share");
    assert_eq!(begin(2, 1, 14), (true, vec![(1, 2), (1, 3), (2, 1)]));
    assert!(!begin(2, 2, 15).0);
    assert_eq!(begin(3, 1, 16), (true, vec![(1, 3), (2, 1), (3, 1)]));
    assert!(!begin(4, 1, 17).0, "each has one");
}
