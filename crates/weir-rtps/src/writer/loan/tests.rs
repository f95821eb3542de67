use super::super::settings::WriterConfig;
use super::super::tests::{self as common, READER, STAMP, WRITER};
use super::*;
use crate::outbox::Outbox;
use crate::qos::{History, Reliability};

/// A reliable writer.
fn writer() -> WriterCore {
    matched(Reliability::Reliable)
}

/// Returns a writer with a reader that has acknowledged everything.
fn matched(reliability: Reliability) -> WriterCore {
    let config = WriterConfig { history: History::KeepAll, ..WriterConfig::new(WRITER, reliability) };
    let mut writer = WriterCore::new(config);
    writer.match_reader(Time(0), common::reader(READER, reliability == Reliability::Reliable));
    writer.poll_transmit(Time(0), &mut Outbox::new());
    acknack(&mut writer, 1, 1);
    writer
}

fn acknack(writer: &mut WriterCore, count: u32, base: i64) {
    common::acknack(writer, count, base, &[]);
}

/// Returns a payload of `len` bytes, no two neighbours of which are equal.
fn payload(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n % 251) as u8).collect()
}

/// Returns a block filled with a payload, as an application does it.
fn filled(writer: &mut WriterCore, payload: &[u8]) -> (Arc<Block>, Range<usize>) {
    let mut block = writer.lend(LOAN_FRONT_BYTES + 8 + payload.len()).unwrap();
    let range = LOAN_FRONT_BYTES + 8..LOAN_FRONT_BYTES + 8 + payload.len();
    Arc::get_mut(&mut block).unwrap().bytes_mut()[range.clone()].copy_from_slice(payload);
    (block, range)
}

fn commit(writer: &mut WriterCore, payload: &[u8]) -> (SequenceNumber, *const u8) {
    let (block, range) = filled(writer, payload);
    let at = &raw const block.bytes()[range.start];
    (writer.commit_loan(Time(0), STAMP, block, range).unwrap(), at)
}

fn write(writer: &mut WriterCore, payload: &[u8]) -> SequenceNumber {
    common::write(writer, Time(0), payload).unwrap()
}

fn sent(writer: &mut WriterCore) -> Outbox {
    let mut out = Outbox::new();
    writer.poll_transmit(Time(0), &mut out);
    out
}

fn datagrams(out: &Outbox) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    out.for_each_datagram(|_, datagram| all.push(datagram.to_vec()));
    all
}

#[test]
fn loans_leave_as_the_same_bytes_as_writes() {
    for len in [8, 1000, 40_000, 64_000, 70_000, 300_000] {
        let (mut lending, mut writing) = (writer(), writer());
        let payload = payload(len);
        assert_eq!(commit(&mut lending, &payload).0, write(&mut writing, &payload));
        assert_eq!(datagrams(&sent(&mut lending)), datagrams(&sent(&mut writing)), "{len} bytes");
    }
}

#[test]
fn large_payloads_leave_from_where_they_were_filled() {
    for len in [40_000, 300_000] {
        let mut writer = writer();
        let (_, at) = commit(&mut writer, &payload(len));
        let out = sent(&mut writer);
        let slice = out.items[0].slice.as_ref().unwrap().bytes();
        assert!(slice.as_ptr_range().contains(&at), "{len} bytes");
    }
}

#[test]
fn other_writes_go_on_while_a_loan_is_out() {
    let mut writer = matched(Reliability::BestEffort);
    write(&mut writer, &[1; 100]);
    let (block, range) = filled(&mut writer, &payload(300_000));
    let (other, other_range) = filled(&mut writer, &payload(40_000));
    assert_eq!(write(&mut writer, &[2; 100]), SequenceNumber(2));
    writer.commit_loan(Time(0), STAMP, block, range).unwrap();
    assert_eq!(write(&mut writer, &[3; 100]), SequenceNumber(4));
    writer.commit_loan(Time(0), STAMP, other, other_range).unwrap();
    assert_eq!(write(&mut writer, &[4; 100]), SequenceNumber(6));
    let out = sent(&mut writer);
    let samples: u16 = out.items.iter().map(|item| item.samples).sum();
    assert_eq!((samples, writer.span()), (6, 0));
}

#[test]
fn a_loan_that_is_dropped_leaves_nothing_and_its_memory_is_used_again() {
    let mut writer = matched(Reliability::BestEffort);
    for _ in 0..1000 {
        let (block, _) = filled(&mut writer, &payload(300_000));
        writer.take_back(block);
    }
    assert_eq!((writer.last_sequence_number(), writer.loans), (SequenceNumber(0), 0));
    assert!(!writer.has_unsent() && writer.memory() < 400_000, "{}", writer.memory());
    for _ in 0..1000 {
        commit(&mut writer, &payload(300_000));
        sent(&mut writer);
    }
    assert!(writer.memory() < 1_000_000, "{}", writer.memory());
}

#[test]
fn limits_hold_and_a_refused_loan_can_be_written_later() {
    let mut writer = writer();
    assert!(matches!(writer.lend(usize::MAX), Err(WriteRefused::TooLarge { .. })));
    let loans: Vec<_> = (0..config::LOANS_MAX).map(|_| writer.lend(1000).unwrap()).collect();
    assert!(matches!(writer.lend(1000), Err(WriteRefused::TooManyLoans { .. })));
    loans.into_iter().for_each(|block| writer.take_back(block));

    let mut accepted = 0;
    let (mut block, range) = loop {
        let (block, range) = filled(&mut writer, &payload(40_000));
        match writer.commit_loan(Time(0), STAMP, block, range.clone()) {
            Ok(_) => accepted += 1,
            Err((refused, block)) => {
                assert_eq!(refused, WriteRefused::WindowFull);
                break (block, range);
            }
        }
    };
    sent(&mut writer);
    (_, block) = writer.commit_loan(Time(0), STAMP, block, range.clone()).unwrap_err();
    acknack(&mut writer, 2, accepted + 1);
    assert!(writer.commit_loan(Time(0), STAMP, block, range).is_ok());
    assert_eq!(writer.loans, 0);
}
