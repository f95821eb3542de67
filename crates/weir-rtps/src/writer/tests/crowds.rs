//! Many readers of one writer, most of which are alike.

use super::*;

/// The reader of a number.
fn numbered(number: u8) -> ReaderProxyConfig {
    ReaderProxyConfig {
        destinations: Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7500 + u16::from(number))]),
        ..reader(Guid::new(GuidPrefix([number; 12]), READER.entity), true)
    }
}

/// A reader answers a HEARTBEAT, and has everything before `base`.
fn acknowledge(writer: &mut WriterCore, now: Time, reader: Guid, base: i64) {
    let state = SequenceNumberSet::new(SequenceNumber(base));
    let count = base as u32;
    let acknack = AckNack { reader: reader.entity, writer: WRITER.entity, state, count, is_final: true };
    writer.handle_acknack(now, reader, &acknack);
}

/// What matching a reader sets.
fn limits(writer: &WriterCore) -> impl PartialEq + core::fmt::Debug + use<> {
    let acknowledged = (writer.acknowledged, writer.acknowledged_charge, writer.seen_charge);
    let timers = (writer.heartbeat.delay_min, writer.heartbeat.next_at, writer.next_timeout());
    let sizes = (writer.datagram_max(), writer.window.size(), writer.destinations().len());
    (acknowledged, timers, sizes, writer.has_reliable, writer.history.first())
}

#[test]
fn a_reader_like_the_one_before_sets_what_a_visit_to_all_readers_would() {
    let now = Time(1_000);
    for durability in [Durability::Volatile, Durability::TransientLocal] {
        let mut writer = WriterCore::new(WriterConfig { durability, ..config(Reliability::Reliable) });
        for number in 1..=9 {
            let wants_history = durability == Durability::TransientLocal && number % 2 == 0;
            writer.match_reader(now, ReaderProxyConfig { wants_history, ..numbered(number) });
            assert_eq!(writer.is_last_alike(), number > 1);
            let added = limits(&writer);
            writer.readers_changed(now);
            assert_eq!(added, limits(&writer), "reader {number}");
            write(&mut writer, now, &[number]).unwrap();
            sent(&mut writer, now);
        }
    }
}

#[test]
fn a_reader_that_limits_the_writer_is_not_alike() {
    let mut writer = WriterCore::new(config(Reliability::Reliable));
    writer.match_reader(Time(1), numbered(1));
    writer.match_reader(Time(1), ReaderProxyConfig { receive_buffer: Some(1 << 20), ..numbered(2) });
    assert!(!writer.is_last_alike());
    writer.match_reader(Time(1), ReaderProxyConfig { segment_max: 1444, ..numbered(3) });
    assert!(!writer.is_last_alike());
    assert_eq!(writer.datagram_max(), 1444);
}

#[test]
fn a_match_sets_no_timer_of_a_writer_without_samples() {
    let mut writer = WriterCore::new(config(Reliability::Reliable));
    for number in 1..=3 {
        writer.match_reader(Time(1), numbered(number));
        assert!(!sent(&mut writer, Time(1)).is_empty(), "the HEARTBEAT for the new reader");
        assert_eq!(writer.next_timeout(), None);
    }
    write(&mut writer, Time(2), &[1]).unwrap();
    assert!(writer.next_timeout().is_some());
}

#[test]
fn a_near_reader_of_a_silent_writer_is_sent_nothing_until_the_first_sample() {
    let mut writer = WriterCore::new(config(Reliability::Reliable));
    for number in 1..=3 {
        let reader = numbered(number);
        let guid = reader.guid;
        writer.match_reader(Time(1), reader);
        writer.spare_heartbeat(guid);
        assert_eq!((sent(&mut writer, Time(1)), writer.next_timeout()), (vec![], None));
    }
    write(&mut writer, Time(2), &[1]).unwrap();
    assert_eq!(sent(&mut writer, Time(2)), ["DATA 1"]);
    let at = writer.next_timeout().unwrap();
    writer.handle_timeout(at);
    let introduction = ["INFO_DST", "HEARTBEAT 1..0"];
    assert_eq!(sent(&mut writer, at), introduction.repeat(3), "each learns where its samples begin");
    // Two have the sample, with which all is said. The third has not.
    for (number, base) in [(1, 2), (2, 2), (3, 1)] {
        acknowledge(&mut writer, at, numbered(number).guid, base);
    }
    assert_eq!(sent(&mut writer, at), ["INFO_DST", "HEARTBEAT 1..1"]);
    acknowledge(&mut writer, at, numbered(3).guid, 2);
    assert_eq!((sent(&mut writer, at), writer.next_timeout()), (vec![], None));
    // The next one learns at the match that they begin behind it.
    let reader = numbered(4);
    let guid = reader.guid;
    writer.match_reader(at, reader);
    writer.spare_heartbeat(guid);
    assert_eq!(sent(&mut writer, at), ["INFO_DST", "HEARTBEAT 2..1"]);
}

#[test]
fn a_near_reader_learns_of_samples_that_ended_before_its_first_heartbeat() {
    for (is_near, first) in [(true, "HEARTBEAT 1..0"), (false, "HEARTBEAT 3..2")] {
        let history = History::KeepLast(1);
        let mut writer = WriterCore::new(WriterConfig { history, ..config(Reliability::Reliable) });
        let path = (!is_near).then(crate::path::Path::new);
        let reader = ReaderProxyConfig { path, ..numbered(1) };
        let guid = reader.guid;
        writer.match_reader(Time(1), reader);
        writer.spare_heartbeat(guid);
        for payload in 1..=3 {
            write(&mut writer, Time(2), &[payload]).unwrap();
        }
        writer.prompt_reader(guid);
        let messages = sent(&mut writer, Time(2));
        assert!(messages.iter().any(|it| it == first), "{messages:?}");
        acknowledge(&mut writer, Time(3), guid, 1);
        assert_eq!(sent(&mut writer, Time(3)), ["INFO_DST", "HEARTBEAT 3..3"]);
    }
}

#[test]
fn a_near_reader_that_joins_later_is_not_told_of_samples_that_are_gone() {
    let history = History::KeepLast(1);
    let mut writer = WriterCore::new(WriterConfig { history, ..config(Reliability::Reliable) });
    write(&mut writer, Time(1), &[1]).unwrap();
    let reader = numbered(1);
    let guid = reader.guid;
    writer.match_reader(Time(1), reader);
    writer.spare_heartbeat(guid);
    assert_eq!(sent(&mut writer, Time(1)), ["INFO_DST", "HEARTBEAT 2..1"]);
    // That one is lost, and so are these: the reader's side is not matched yet.
    for payload in 2..=4 {
        write(&mut writer, Time(2), &[payload]).unwrap();
    }
    writer.prompt_reader(guid);
    let messages = sent(&mut writer, Time(2));
    assert!(messages.iter().any(|it| it == "HEARTBEAT 4..3"), "{messages:?}");
}

#[test]
fn other_readers_of_a_silent_writer_get_their_heartbeat() {
    for other in [
        ReaderProxyConfig { vendor: VendorId::CYCLONE, ..numbered(1) },
        ReaderProxyConfig { wants_history: true, ..numbered(1) },
        ReaderProxyConfig { path: Some(crate::path::Path::new()), ..numbered(1) },
    ] {
        let durability = Durability::TransientLocal;
        let mut writer = WriterCore::new(WriterConfig { durability, ..config(Reliability::Reliable) });
        let guid = other.guid;
        writer.match_reader(Time(1), other);
        writer.spare_heartbeat(guid);
        assert_eq!(sent(&mut writer, Time(1)), ["INFO_DST", "HEARTBEAT 1..0"]);
    }
}

#[test]
fn what_a_reader_requested_is_returned_once_it_has_everything() {
    let mut writer = WriterCore::new(config(Reliability::Reliable));
    writer.match_reader(Time(0), reader(READER, true));
    acknack(&mut writer, 1, 1, &[]);
    for _ in 0..2 {
        write(&mut writer, Time(1), b"\0\x01\0\0abc").unwrap();
        sent(&mut writer, Time(1));
    }
    acknack(&mut writer, 2, 1, &[1]);
    writer.release_room(READER);
    assert!(sent(&mut writer, Time(1)).contains(&"DATA 1".to_owned()));
    writer.release_room(READER);
    assert!(writer.proxies[0].requested.is_changed(), "the repair may be lost");
    acknack(&mut writer, 3, 3, &[]);
    writer.release_room(READER);
    assert!(!writer.proxies[0].requested.is_changed());
}
