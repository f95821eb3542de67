//! Submessages without a value: ends of coherent sets, and ends of instances that only a key hash names.

use weir_wire::{Endianness, ParameterId, ParameterListWriter};

use super::*;
use crate::qos::XCDR2;

fn list(write: impl FnOnce(&mut ParameterListWriter<'_>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut list = ParameterListWriter::new(&mut bytes);
    write(&mut list);
    list.finish();
    bytes
}

/// Handles a sample without a payload.
fn handle_list(reader: &mut ReaderCore, sn: i64, list: &[u8]) {
    let data = Data {
        reader: EntityId::UNKNOWN,
        writer: WRITER.entity,
        sequence_number: SequenceNumber(sn),
        inline_qos: Some(ParameterList::parse(list, Endianness::Little).unwrap().0),
        payload: Payload::None,
    };
    reader.handle_data(Time(1_000), &WRITER, &data, None, None);
}

/// COHERENT_SET with SEQUENCENUMBER_UNKNOWN, as RTI Connext and CoreDX end a set (RTPS 2.5, 8.7.5).
fn end_of_set() -> Vec<u8> {
    list(|list| list.raw(ParameterId::COHERENT_SET, &[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]))
}

#[test]
fn the_end_of_a_coherent_set_is_no_sample_and_nothing_malformed() {
    for reliability in [Reliability::Reliable, Reliability::BestEffort] {
        let mut reader = reader(reliability);
        data(&mut reader, 1);
        handle_list(&mut reader, 2, &end_of_set());
        data(&mut reader, 3);
        assert_eq!(taken(&mut reader), [1, 3]);
        let counters = reader.counters();
        assert_eq!(
            (counters.samples_malformed, counters.coherent_sets_ended, counters.samples_lost),
            (0, 1, 0)
        );
    }
}

#[test]
fn the_end_of_a_coherent_set_that_arrives_early_is_not_asked_for_again() {
    let mut reader = reader(Reliability::Reliable);
    handle_list(&mut reader, 2, &end_of_set());
    data(&mut reader, 3);
    data(&mut reader, 1);
    assert_eq!(taken(&mut reader), [1, 3]);
    assert_eq!(reader.counters().samples_malformed, 0);
    // One that closes a gap lets what was held back pass.
    data(&mut reader, 5);
    handle_list(&mut reader, 4, &end_of_set());
    assert_eq!(taken(&mut reader), [5]);
}

#[test]
fn a_submessage_without_content_or_status_is_malformed() {
    let mut reader = reader(Reliability::Reliable);
    handle_list(&mut reader, 1, &list(|_| ()));
    data(&mut reader, 2);
    assert_eq!(taken(&mut reader), [2]);
    assert_eq!(reader.counters().samples_malformed, 1);
}

/// The key is the first byte behind the encapsulation header.
fn key_of(payload: &[u8], _is_key: bool) -> Option<[u8; 16]> {
    Some([*payload.get(4)?; 16])
}

#[test]
fn a_key_hash_of_a_writer_in_xcdr1_is_converted() {
    let config = ReaderConfig {
        history: History::KeepAll,
        key_of: Some(key_of),
        // In XCDR1, the hash of this key is one higher.
        key_of_hash: Some(|hash| Some(hash.map(|byte| byte - 1))),
        ..ReaderConfig::new(READER, Reliability::Reliable)
    };
    let disposal = list(|list| {
        list.bytes16(ParameterId::KEY_HASH, &[2; 16]);
        list.bytes4(ParameterId::STATUS_INFO, [0, 0, 0, 1]);
    });
    for (representation, ended) in [(XCDR1, 1), (XCDR2, 2)] {
        let mut reader = with_writer(config.clone(), VendorId::EPROSIMA);
        reader.note_representation(WRITER, representation);
        data(&mut reader, 1);
        data(&mut reader, 2);
        handle_list(&mut reader, 3, &disposal);
        let mut keys = Vec::new();
        while reader.take_next(|sample| keys.push(sample.key_hash)) {}
        assert_eq!(keys, [Some([1; 16]), Some([2; 16]), Some([ended; 16])]);
    }
}

#[test]
fn a_digest_of_a_writer_in_xcdr1_names_the_instance_that_had_a_value() {
    let config = ReaderConfig {
        history: History::KeepAll,
        key_of: Some(key_of),
        key_of_hash: Some(|_| None),
        key_payload_of: Some(|payload, _| Some(payload.into())),
        // In XCDR1, the digest of this key is 100 higher.
        hash_of_key: Some(|key| Some([*key.get(4)? + 100; 16])),
        ..ReaderConfig::new(READER, Reliability::Reliable)
    };
    let end = |hash: u8| {
        list(|list| {
            list.bytes16(ParameterId::KEY_HASH, &[hash; 16]);
            list.bytes4(ParameterId::STATUS_INFO, [0, 0, 0, 3]);
        })
    };
    let mut reader = with_writer(config, VendorId::EPROSIMA);
    reader.note_representation(WRITER, XCDR1);
    data(&mut reader, 1);
    handle_list(&mut reader, 2, &end(101));
    let mut samples = Vec::new();
    while reader.take_next(|sample| samples.push((sample.key_hash, sample.kind))) {}
    let instance = Some([1; 16]);
    assert_eq!(
        samples,
        [(instance, ChangeKind::Alive), (instance, ChangeKind::DisposedUnregistered)],
        "both of the same instance"
    );
    assert_eq!(reader.counters().samples_malformed, 0);
    // One that never had a value, and the one that has ended and is forgotten.
    handle_list(&mut reader, 3, &end(150));
    handle_list(&mut reader, 4, &end(101));
    assert!(!reader.take_next(|_| ()), "an unknown digest makes no instance");
    assert_eq!((reader.counters().samples_malformed, reader.counters().samples_lost), (0, 0));
    // It returns, and is found again.
    data(&mut reader, 1 + 4);
    handle_list(&mut reader, 6, &end(105));
    assert!(reader.take_next(|_| ()));
    let mut ended = None;
    assert!(reader.take_next(|sample| ended = sample.key_hash));
    assert_eq!(ended, Some([5; 16]));
}
