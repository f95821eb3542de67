//! Values that are left out by their content.

use weir_cdr::{CdrValue, DdsType};
use weir_filter::{Expression, Filter};
use weir_wire::{Endianness, ParameterId, ParameterListWriter};

use super::*;

#[derive(Default, DdsType)]
#[dds(extensibility = "final")]
struct Keyed {
    #[dds(key)]
    id: u8,
    x: u8,
}

fn filter(expression: &str) -> Option<Arc<Filter>> {
    let expression = Expression::filter(expression).unwrap();
    Some(Arc::new(Filter::new::<&str>(&expression, &Keyed::DESCRIPTION, &[]).unwrap()))
}

fn filtered(reliability: Reliability) -> ReaderCore {
    let config = ReaderConfig {
        history: History::KeepAll,
        key_of: Some(|payload, _| Some([*payload.get(4)?; 16])),
        content_filter: filter("x < 10"),
        ..ReaderConfig::new(READER, reliability)
    };
    with_writer(config, VendorId::WEIR)
}

fn put(reader: &mut ReaderCore, sn: i64, id: u8, x: u8) {
    handle(reader, sn, Payload::Data(&[0, 1, 0, 0, id, x, 0, 0]));
}

/// Status 1 disposes, 2 unregisters.
fn end(reader: &mut ReaderCore, sn: i64, id: u8, status: u8) {
    let mut list = Vec::new();
    let mut writer = ParameterListWriter::new(&mut list);
    writer.bytes4(ParameterId::STATUS_INFO, [0, 0, 0, status]);
    writer.finish();
    let inline_qos = Some(ParameterList::parse(&list, Endianness::Little).unwrap().0);
    let data = Data {
        reader: EntityId::UNKNOWN,
        writer: WRITER.entity,
        sequence_number: SequenceNumber(sn),
        inline_qos,
        payload: Payload::Key(&[0, 1, 0, 0, id, 0, 0, 0]),
    };
    reader.handle_data(Time(1_000), &WRITER, &data, None, None);
}

#[test]
fn values_that_do_not_pass_are_skipped_and_counted_and_nothing_waits_for_them() {
    let mut reader = filtered(Reliability::Reliable);
    heartbeat(&mut reader, 1, 1, 0);
    put(&mut reader, 1, 1, 5);
    put(&mut reader, 2, 1, 50);
    put(&mut reader, 4, 1, 60);
    put(&mut reader, 5, 1, 6);
    assert_eq!(taken(&mut reader), [1]);
    put(&mut reader, 3, 1, 7);
    assert_eq!(taken(&mut reader), [3, 5]);
    let counters = reader.counters();
    assert_eq!((counters.samples_content_filtered, counters.samples_lost), (2, 0));
    assert_eq!(counters.samples_received, 3);
    heartbeat(&mut reader, 2, 1, 5);
    assert_eq!(answers(&mut reader, Time(2_000)), ["6/0:"]);
}

#[test]
fn a_value_that_does_not_pass_replaces_nothing_and_creates_no_instance() {
    let config = ReaderConfig {
        history: History::KeepLast(1),
        max_instances: Some(1),
        content_filter: filter("x < 10"),
        key_of: Some(|payload, _| Some([*payload.get(4)?; 16])),
        ..ReaderConfig::new(READER, Reliability::Reliable)
    };
    let mut reader = with_writer(config, VendorId::WEIR);
    heartbeat(&mut reader, 1, 1, 0);
    put(&mut reader, 1, 1, 5);
    put(&mut reader, 2, 1, 50);
    put(&mut reader, 3, 2, 50);
    end(&mut reader, 4, 2, 1);
    assert_eq!(reader.find_instance([2; 16]), None);
    assert_eq!(taken(&mut reader), [1]);
    let counters = reader.counters();
    assert_eq!((counters.samples_content_filtered, counters.samples_refused), (3, 0));
}

#[test]
fn the_end_of_an_instance_passes_if_a_value_of_it_has() {
    for held_back in [false, true] {
        let mut reader = filtered(Reliability::Reliable);
        heartbeat(&mut reader, 1, 1, 0);
        if !held_back {
            put(&mut reader, 1, 1, 5);
        }
        put(&mut reader, 2, 1, 50);
        end(&mut reader, 3, 1, 1);
        put(&mut reader, 4, 2, 50);
        end(&mut reader, 5, 2, 1);
        end(&mut reader, 6, 2, 2);
        if held_back {
            put(&mut reader, 1, 1, 5);
        }
        let mut seen = Vec::new();
        while reader.take_next(|sample| seen.push((sample.sequence_number.0, sample.kind))) {}
        let expected = [(1, ChangeKind::Alive), (3, ChangeKind::Disposed)];
        assert_eq!(seen, expected, "held back: {held_back}");
        assert_eq!(reader.counters().samples_content_filtered, 4);
    }
}

#[test]
fn samples_that_a_best_effort_writer_leaves_out_are_not_lost() {
    let mut reader = filtered(Reliability::BestEffort);
    put(&mut reader, 1, 1, 5);
    let list = SequenceNumberSet::new(SequenceNumber(4));
    let gap = Gap { reader: READER.entity, writer: WRITER.entity, start: SequenceNumber(2), list };
    reader.handle_gap(Time(1_000), WRITER, &gap);
    put(&mut reader, 4, 1, 6);
    assert_eq!(taken(&mut reader), [1, 4]);
    assert_eq!(reader.counters().samples_lost, 0);
    put(&mut reader, 6, 1, 6);
    assert_eq!(reader.counters().samples_lost, 1);
    // A GAP that does not follow what was received says nothing about the samples between.
    let list = SequenceNumberSet::new(SequenceNumber(12));
    let gap = Gap { start: SequenceNumber(10), list, ..gap };
    reader.handle_gap(Time(1_000), WRITER, &gap);
    put(&mut reader, 12, 1, 6);
    assert_eq!(reader.counters().samples_lost, 6);
}

#[test]
fn a_changed_filter_applies_to_what_arrives_next() {
    let mut reader = filtered(Reliability::Reliable);
    heartbeat(&mut reader, 1, 1, 0);
    put(&mut reader, 1, 1, 50);
    reader.set_content_filter(filter("x > 10"));
    put(&mut reader, 2, 1, 50);
    put(&mut reader, 3, 1, 5);
    reader.set_content_filter(None);
    put(&mut reader, 4, 1, 5);
    assert_eq!(taken(&mut reader), [2, 4]);
}

#[test]
fn a_query_selects_values_in_its_own_order() {
    let mut reader = reader(Reliability::Reliable);
    heartbeat(&mut reader, 1, 1, 0);
    [5, 60, 3, 70, 4].into_iter().enumerate().for_each(|(at, x)| put(&mut reader, at as i64 + 1, 1, x));
    let small = |payload: &[u8]| payload[5] < 10;
    let order = |one: &[u8], other: &[u8]| one[5].cmp(&other[5]);
    let query = SampleQuery { matches: &small, order: Some(&order) };
    let any = SampleSelection::default();
    let mut seen = Vec::new();
    let count = reader.access_matching(2, any, false, query, |sample| {
        seen.push(sample.sequence_number.0);
        true
    });
    assert_eq!((count, &seen[..]), (2, &[3, 5][..]));
    let unread = SampleSelection { states: States::NOT_READ, instance: None };
    let is_small = |raw: &RawSample<'_>| raw.kind == ChangeKind::Alive && small(raw.payload);
    assert!(reader.any_sample(States::NOT_READ, is_small));
    let rest = SampleQuery { order: None, ..query };
    reader.access_matching(9, unread, true, rest, |sample| {
        seen.push(sample.sequence_number.0);
        true
    });
    assert_eq!(seen, [3, 5, 1]);
    assert!(!reader.any_sample(States::NOT_READ, is_small));
    assert_eq!(taken(&mut reader), [2, 3, 4, 5]);
}
