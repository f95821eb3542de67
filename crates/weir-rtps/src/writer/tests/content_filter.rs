//! Filters that readers ask for.

use weir_cdr::{CdrValue, DdsType};

use super::*;
use crate::content_filter::ContentFilterProperty;

#[derive(Default, DdsType)]
#[dds(extensibility = "final")]
struct Number {
    x: u32,
}

const OTHER: Guid = Guid::new(GuidPrefix([3; 12]), READER.entity);

fn property(expression: &str) -> ContentFilterProperty {
    ContentFilterProperty::sql("f".to_owned(), "t".to_owned(), expression.to_owned(), vec!["10".to_owned()])
}

fn filtering(reliability: Reliability) -> WriterConfig {
    WriterConfig { description: Number::DESCRIPTION, ..config(reliability) }
}

/// A writer with a reader whose filter is `x < 10`, after their first exchange.
fn filtered_writer(config: WriterConfig) -> WriterCore {
    let is_reliable = config.reliability == Reliability::Reliable;
    let mut writer = WriterCore::new(config);
    writer.match_reader(Time(0), reader(READER, is_reliable));
    writer.set_content_filter(READER, Some(&property("x < %0")));
    sent(&mut writer, Time(0));
    acknack(&mut writer, 1, 1, &[]);
    sent(&mut writer, Time(0));
    writer
}

fn put(writer: &mut WriterCore, x: u32) {
    let mut payload = Vec::new();
    weir_cdr::to_payload(&Number { x }, &mut payload).unwrap();
    write(writer, Time(0), &payload).unwrap();
}

/// Where each datagram goes that the writer sends now, in words.
fn addressed(writer: &mut WriterCore) -> Vec<String> {
    let mut out = Outbox::new();
    writer.poll_transmit(Time(0), &mut out);
    let mut words = Vec::new();
    out.for_each_datagram(|to, datagram| {
        let ports: Vec<_> = to.iter().map(|address| address.port().to_string()).collect();
        let message = Message::parse(datagram).unwrap();
        for submessage in message.submessages() {
            match submessage.unwrap() {
                Submessage::Data(data) => {
                    words.push(format!("{} to {}", data.sequence_number, ports.join(" ")))
                }
                Submessage::Gap(gap) => {
                    words.push(format!("GAP {} to {}", gap.start, ports.join(" ")));
                }
                _ => {}
            }
        }
    });
    words
}

#[test]
fn a_sample_that_does_not_pass_is_not_sent_and_a_gap_precedes_the_next_one() {
    for reliability in [Reliability::Reliable, Reliability::BestEffort] {
        let mut writer = filtered_writer(filtering(reliability));
        put(&mut writer, 1);
        assert_eq!(sent(&mut writer, Time(0)), ["DATA 1"]);
        for x in [10, 11, 12] {
            put(&mut writer, x);
            assert_eq!(sent(&mut writer, Time(0)), [""; 0], "{x}");
        }
        put(&mut writer, 9);
        assert_eq!(sent(&mut writer, Time(0)), ["INFO_DST", "GAP 2 to 5/0:", "DATA 5"], "{reliability:?}");
        put(&mut writer, 8);
        assert_eq!(sent(&mut writer, Time(0)), ["DATA 6"]);
    }
}

#[test]
fn samples_of_a_burst_are_sent_in_order_around_the_gap() {
    let mut writer = filtered_writer(filtering(Reliability::Reliable));
    [1, 2, 20, 21, 3, 4, 22].into_iter().for_each(|x| put(&mut writer, x));
    let expected = ["DATA 1", "DATA 2", "INFO_DST", "GAP 3 to 5/0:", "DATA 5", "DATA 6"];
    assert_eq!(sent(&mut writer, Time(0)), expected);
}

#[test]
fn a_gap_precedes_the_heartbeat_that_names_samples_left_out() {
    let mut writer = filtered_writer(filtering(Reliability::Reliable));
    put(&mut writer, 1);
    put(&mut writer, 20);
    assert_eq!(sent(&mut writer, Time(0)), ["DATA 1"]);
    let at = writer.next_timeout().unwrap();
    writer.handle_timeout(at);
    assert_eq!(sent(&mut writer, at), ["INFO_DST", "GAP 2 to 3/0:", "HEARTBEAT 1..2"]);
    acknack(&mut writer, 2, 3, &[]);
    assert!(writer.is_acknowledged(SequenceNumber(2)));
    assert_eq!(writer.next_timeout(), None);
}

#[test]
fn requests_for_samples_that_do_not_pass_are_answered_by_gaps() {
    let mut writer = filtered_writer(filtering(Reliability::Reliable));
    [1, 20, 2, 21, 22, 3].into_iter().for_each(|x| put(&mut writer, x));
    sent(&mut writer, Time(0));
    acknack(&mut writer, 2, 1, &[1, 2, 3, 4, 5, 6]);
    let expected = ["DATA 1", "DATA 3", "DATA 6", "INFO_DST", "GAP 2 to 3/2:11", "HEARTBEAT 1..6"];
    let answer = sent(&mut writer, Time(1));
    assert_eq!(answer[..4], expected[..4]);
    assert!(answer[4].starts_with("GAP 2 to 3/"), "{answer:?}");
    assert_eq!(answer[5..], expected[5..]);
}

#[test]
fn each_address_is_sent_what_some_reader_there_wants() {
    let mut writer = filtered_writer(filtering(Reliability::BestEffort));
    let far: crate::outbox::Destinations = Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7500)]);
    writer.match_reader(Time(0), ReaderProxyConfig { destinations: far, ..reader(OTHER, false) });
    [1, 20, 2].into_iter().for_each(|x| put(&mut writer, x));
    let expected = ["1 to 7411 7500", "2 to 7500", "GAP 2 to 7411", "3 to 7411 7500"];
    assert_eq!(addressed(&mut writer), expected);
    // A reader without a filter at the same address receives all.
    let near = Guid::new(GuidPrefix([4; 12]), READER.entity);
    writer.match_reader(Time(0), reader(near, false));
    [1, 20].into_iter().for_each(|x| put(&mut writer, x));
    assert_eq!(addressed(&mut writer), ["4 to 7411 7500", "5 to 7411 7500"]);
    writer.unmatch_reader(Time(0), near);
    put(&mut writer, 20);
    assert_eq!(addressed(&mut writer), ["6 to 7500"]);
}

#[test]
fn a_filter_that_cannot_be_used_leaves_everything_to_the_reader() {
    let sql = property("x < 10");
    let many = vec!["x = 1"; 33].join(" OR ");
    for unusable in [
        ContentFilterProperty { class: "DDSSTRINGMATCH".to_owned(), ..sql.clone() },
        ContentFilterProperty { expression: String::new(), ..sql.clone() },
        ContentFilterProperty { expression: "x <".to_owned(), ..sql.clone() },
        ContentFilterProperty { expression: "y < 10".to_owned(), ..sql.clone() },
        ContentFilterProperty { expression: "x < %1".to_owned(), ..sql.clone() },
        ContentFilterProperty { expression: many, ..sql.clone() },
    ] {
        let mut writer = filtered_writer(filtering(Reliability::Reliable));
        writer.set_content_filter(READER, Some(&unusable));
        put(&mut writer, 20);
        assert_eq!(sent(&mut writer, Time(0)), ["DATA 1"], "{unusable:?}");
        assert!(!writer.is_indirect);
        assert_eq!(writer.counters().content_filters_ignored, 1);
    }
    // Without a description of the type, no filter can be bound.
    let mut writer = filtered_writer(config(Reliability::Reliable));
    put(&mut writer, 20);
    assert_eq!(sent(&mut writer, Time(0)), ["DATA 1"]);
}

#[test]
fn disposals_and_samples_that_cannot_be_read_are_sent_to_all() {
    let mut writer = filtered_writer(filtering(Reliability::Reliable));
    write(&mut writer, Time(0), &[9; 8]).unwrap();
    let change =
        Change { kind: ChangeKind::Disposed, key: Some([1; 16]), payload: &[0, 1, 0, 0, 20, 0, 0, 0] };
    writer.write_change(Time(0), Some(STAMP.timestamp), change).unwrap();
    assert_eq!(sent(&mut writer, Time(0)), ["DATA 1", "DATA 2"]);
}

#[test]
fn changed_parameters_apply_to_what_is_sent_next() {
    let mut writer = filtered_writer(filtering(Reliability::BestEffort));
    put(&mut writer, 15);
    assert_eq!(sent(&mut writer, Time(0)), [""; 0]);
    let wider = ContentFilterProperty { parameters: vec!["20".to_owned()], ..property("x < %0") };
    writer.set_content_filter(READER, Some(&wider));
    put(&mut writer, 15);
    assert_eq!(sent(&mut writer, Time(0)), ["INFO_DST", "GAP 1 to 2/0:", "DATA 2"]);
    writer.set_content_filter(READER, None);
    put(&mut writer, 25);
    assert_eq!(sent(&mut writer, Time(0)), ["DATA 3"]);
}

#[test]
fn no_gap_names_a_sample_that_a_reader_was_sent_before_it_was_introduced() {
    let mut writer = WriterCore::new(filtering(Reliability::Reliable));
    writer.match_reader(Time(0), reader(READER, true));
    writer.set_content_filter(READER, Some(&property("x < %0")));
    writer.spare_heartbeat(READER);
    for x in [10, 9, 10] {
        put(&mut writer, x);
    }
    assert_eq!(sent(&mut writer, Time(0)), ["DATA 2"]);
    // It is lost, and the reader answers the HEARTBEAT that introduces it.
    acknack(&mut writer, 1, 1, &[]);
    let answer = sent(&mut writer, Time(0));
    assert_eq!(answer, ["INFO_DST", "GAP 1 to 2/0:", "HEARTBEAT 1..3"]);
    acknack(&mut writer, 2, 2, &[2, 3]);
    let repairs = sent(&mut writer, Time(0));
    assert!(repairs.contains(&"DATA 2".to_owned()), "{repairs:?}");
}

/// A GAP for 1 to 3 would make a reader that lacks a fragment of 2 acknowledge it.
#[test]
fn a_gap_names_no_large_sample_between_those_that_do_not_pass() {
    for reliability in [Reliability::Reliable, Reliability::BestEffort] {
        let mut writer = filtered_writer(WriterConfig { datagram_max: 1472, ..filtering(reliability) });
        put(&mut writer, 20);
        write(&mut writer, Time(0), &[0; 3000]).unwrap();
        put(&mut writer, 20);
        put(&mut writer, 1);
        let sent = addressed(&mut writer);
        let gaps: Vec<_> = sent.iter().filter(|word| word.starts_with("GAP")).collect();
        assert!(gaps.len() == 2 && gaps[0].starts_with("GAP 1 "), "{sent:?}");
        assert!(gaps[1].starts_with("GAP 3 "), "{sent:?}");
    }
}

/// The answers would not come, and what is sent would count as in flight.
#[test]
fn a_reader_with_a_filter_is_not_asked_what_has_arrived() {
    let mut writer = WriterCore::new(filtering(Reliability::BestEffort));
    let path = Some(crate::path::Path::new());
    writer.match_reader(Time(0), ReaderProxyConfig { path, ..reader(READER, false) });
    assert!(writer.pacing.receipts.is_asking);
    writer.set_content_filter(READER, Some(&property("x < %0")));
    assert!(!writer.pacing.receipts.is_asking && !writer.pacing.receipts.is_due);
    assert!(!writer.pacing.uses[0].is_answered(Time(0)));
    writer.set_content_filter(READER, None);
    assert!(writer.pacing.receipts.is_asking && writer.pacing.receipts.is_due);
}
