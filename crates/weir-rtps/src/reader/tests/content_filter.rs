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
fn a_filter_that_is_set_later_applies_to_a_reader_without_other_policies() {
    let mut reader = reader(Reliability::Reliable);
    reader.set_content_filter(None, None);
    assert!(!reader.has_policies());
    put(&mut reader, 1, 1, 50);
    reader.set_content_filter(filter("x < 10"), None);
    put(&mut reader, 2, 1, 50);
    put(&mut reader, 3, 1, 5);
    assert_eq!(taken(&mut reader), [1, 3]);
    assert_eq!(reader.counters().samples_content_filtered, 1);
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
    reader.set_content_filter(filter("x > 10"), None);
    put(&mut reader, 2, 1, 50);
    put(&mut reader, 3, 1, 5);
    reader.set_content_filter(None, None);
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

const SIGNATURE: [u8; 16] = [7; 16];

/// Handles a value with a CONTENT_FILTER_INFO.
fn put_with(reader: &mut ReaderCore, sn: i64, x: u8, info: &[u8]) {
    let mut list = Vec::new();
    let mut writer = ParameterListWriter::new(&mut list);
    writer.raw(ParameterId::CONTENT_FILTER_INFO, info);
    writer.finish();
    let inline_qos = Some(ParameterList::parse(&list, Endianness::Little).unwrap().0);
    let data = Data {
        reader: EntityId::UNKNOWN,
        writer: WRITER.entity,
        sequence_number: SequenceNumber(sn),
        inline_qos,
        payload: Payload::Data(&[0, 1, 0, 0, 1, x, 0, 0]),
    };
    reader.handle_data(Time(1_000), &WRITER, &data, None, None);
}

/// A CONTENT_FILTER_INFO of two filters.
fn info(results: [bool; 2], signatures: [[u8; 16]; 2]) -> Vec<u8> {
    let word = u32::from(results[0]) << 31 | u32::from(results[1]) << 30;
    let words = [1, word, 2].map(u32::to_le_bytes).concat();
    [words, signatures.concat()].concat()
}

#[test]
fn what_a_writer_reports_about_the_filter_is_believed_and_saves_the_evaluation() {
    let mut reader = filtered(Reliability::Reliable);
    reader.set_content_filter(filter("x < 10"), Some(SIGNATURE));
    heartbeat(&mut reader, 1, 1, 0);
    // Against what the reader would find: so it did not evaluate these.
    put_with(&mut reader, 1, 50, &info([true, false], [SIGNATURE, [1; 16]]));
    put_with(&mut reader, 2, 5, &info([true, false], [[1; 16], SIGNATURE]));
    assert_eq!(taken(&mut reader), [1]);
    // Also for samples that arrive ahead of others.
    put_with(&mut reader, 4, 5, &info([false, true], [SIGNATURE, [1; 16]]));
    put_with(&mut reader, 5, 60, &info([false, true], [[1; 16], SIGNATURE]));
    put(&mut reader, 3, 1, 6);
    assert_eq!(taken(&mut reader), [3, 5]);
    assert_eq!(reader.counters().samples_content_filtered, 2);
    // The report is about the filter with the earlier parameters.
    reader.set_content_filter(filter("x < 20"), Some([8; 16]));
    put_with(&mut reader, 6, 15, &info([false, false], [SIGNATURE, [1; 16]]));
    put_with(&mut reader, 7, 25, &info([true, true], [SIGNATURE, [1; 16]]));
    assert_eq!(taken(&mut reader), [6]);
}

#[test]
fn a_report_that_is_not_about_the_filter_or_malformed_leaves_the_decision_to_the_reader() {
    let mut reader = filtered(Reliability::BestEffort);
    reader.set_content_filter(filter("x < 10"), Some(SIGNATURE));
    let whole = info([true, true], [[1; 16], SIGNATURE]);
    let mut reports: Vec<Vec<u8>> = (0..whole.len()).step_by(4).map(|len| whole[..len].to_vec()).collect();
    reports.push(info([true, true], [[1; 16], [2; 16]]));
    for (at, count) in [(0, u32::MAX), (0, 0), (8, u32::MAX), (8, 33)] {
        let mut report = whole.clone();
        report[at..at + 4].copy_from_slice(&count.to_le_bytes());
        reports.push(report);
    }
    for (sn, report) in (1..).zip(&reports) {
        put_with(&mut reader, 2 * sn, 50, report);
        put_with(&mut reader, 2 * sn + 1, 5, report);
        assert_eq!(taken(&mut reader), [2 * sn + 1], "{report:?}");
    }
    // Without a filter, reports are not looked at.
    reader.set_content_filter(None, None);
    put_with(&mut reader, 100, 50, &info([false, false], [SIGNATURE, [1; 16]]));
    assert_eq!(taken(&mut reader), [100]);
}
