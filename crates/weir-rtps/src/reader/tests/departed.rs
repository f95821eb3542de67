//! Writers that are matched again after the reader lost them.

use super::*;

/// A reader that has taken samples 1 to 5 of a writer and lost it; sample 7 had arrived, 6 had not.
fn lost() -> ReaderCore {
    let mut reader = reader(Reliability::Reliable);
    heartbeat(&mut reader, 10, 1, 5);
    [1, 2, 3, 4, 5, 7].into_iter().for_each(|sn| data(&mut reader, sn));
    assert_eq!(taken(&mut reader), [1, 2, 3, 4, 5]);
    reader.unmatch_writer(Time(2_000), WRITER);
    reader
}

#[test]
fn a_writer_that_is_back_is_read_on_from_where_it_was() {
    let mut reader = lost();
    match_writer(&mut reader, VendorId::WEIR);
    assert_eq!(answers(&mut reader, Time(2_000)), ["1/0:"], "asks for a HEARTBEAT");
    heartbeat(&mut reader, 11, 1, 8);
    assert_eq!(answers(&mut reader, Time(2_000)), ["6/3:6,7,8"]);
    (1..=8).for_each(|sn| data(&mut reader, sn));
    assert_eq!(taken(&mut reader), [6, 7, 8]);
    assert_eq!(reader.counters().samples_lost, 0);
}

#[test]
fn what_a_writer_dropped_while_it_was_not_matched_is_not_lost() {
    let mut reader = lost();
    match_writer(&mut reader, VendorId::WEIR);
    heartbeat(&mut reader, 11, 20, 25);
    (20..=25).for_each(|sn| data(&mut reader, sn));
    assert_eq!(taken(&mut reader), [20, 21, 22, 23, 24, 25]);
    assert_eq!(reader.counters().samples_lost, 0);
}

#[test]
fn a_device_that_restarts_under_its_old_guid_is_read_from_its_first_sample() {
    let mut reader = lost();
    match_writer(&mut reader, VendorId::WEIR);
    data(&mut reader, 1);
    assert_eq!(taken(&mut reader), []);
    // Its counts start anew as well: they are believed after a while.
    let late = Time(1_000) + config::COUNT_TRUST;
    let anew = Heartbeat {
        reader: EntityId::UNKNOWN,
        writer: WRITER.entity,
        first: SequenceNumber(1),
        last: SequenceNumber(2),
        count: 1,
        is_final: false,
        is_liveliness: false,
    };
    reader.handle_heartbeat(late, WRITER, &anew);
    assert_eq!(answers(&mut reader, late), ["1/2:1,2"]);
    (1..=2).for_each(|sn| data(&mut reader, sn));
    assert_eq!(taken(&mut reader), [1, 2]);
    assert_eq!(reader.counters().writers_restarted, 1);
}

#[test]
fn a_heartbeat_that_names_no_sample_is_no_sign_of_a_restart() {
    let mut reader = lost();
    match_writer(&mut reader, VendorId::WEIR);
    // The writer takes the reader for a volatile one that acknowledged samples 1 to 3.
    heartbeat_to(&mut reader, READER.entity, 11, 4, 3);
    heartbeat(&mut reader, 12, 4, 6);
    (4..=6).for_each(|sn| data(&mut reader, sn));
    assert_eq!(taken(&mut reader), [6]);
    assert_eq!(reader.counters().writers_restarted, 0);
}

#[test]
fn a_best_effort_writer_is_read_from_what_comes_first() {
    let mut reader = reader(Reliability::BestEffort);
    (1..=5).for_each(|sn| data(&mut reader, sn));
    reader.unmatch_writer(Time(2_000), WRITER);
    match_writer(&mut reader, VendorId::WEIR);
    (2..=3).for_each(|sn| data(&mut reader, sn));
    assert_eq!(taken(&mut reader), [1, 2, 3, 4, 5, 2, 3]);
}

#[test]
fn samples_that_were_held_back_take_no_room_once_their_writer_is_gone() {
    let payload = [0; 1_000];
    let max_bytes = 20_000;
    let config = ReaderConfig {
        history: History::KeepAll,
        max_bytes,
        ..ReaderConfig::new(READER, Reliability::Reliable)
    };
    let mut reader = with_writer(config, VendorId::WEIR);
    for round in 0..10 {
        heartbeat(&mut reader, round + 1, 1, 0);
        (2..=15).for_each(|sn| handle(&mut reader, sn, Payload::Data(&payload)));
        reader.unmatch_writer(Time(2_000), WRITER);
        match_writer(&mut reader, VendorId::WEIR);
    }
    heartbeat(&mut reader, 11, 1, 15);
    (2..=15).for_each(|sn| handle(&mut reader, sn, Payload::Data(&payload)));
    handle(&mut reader, 1, Payload::Data(&payload));
    assert_eq!(taken(&mut reader), (1..=15).collect::<Vec<_>>());
}

#[test]
fn only_so_many_writers_are_remembered() {
    let mut reader = ReaderCore::new(ReaderConfig {
        history: History::KeepAll,
        ..ReaderConfig::new(READER, Reliability::Reliable)
    });
    let destinations: Destinations = Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7411)]);
    let count = DEPARTED_WRITERS_MAX as u32 + 10;
    for number in 0..count {
        let guid = Guid::new(GuidPrefix([1; 12]), EntityId::user_writer(number, false));
        let destinations = destinations.clone();
        let writer = WriterProxyConfig { guid, reliable: true, destinations, vendor: VendorId::WEIR };
        reader.match_writer(Time(0), writer);
        let sample = Data {
            reader: EntityId::UNKNOWN,
            writer: guid.entity,
            sequence_number: SequenceNumber(1),
            inline_qos: None,
            payload: Payload::Data(&[0, 1, 0, 0]),
        };
        reader.handle_data(Time(1), &guid, &sample, None, None);
        reader.unmatch_writer(Time(2), guid);
    }
    assert_eq!(reader.counters().writers_forgotten, 10);
    assert!(reader.memory() < 512 * 1024, "{}", reader.memory());
}

/// Requests in 60 s to a writer that has announced samples and then nothing, while the reader answers
/// another writer every 100 ms.
#[test]
fn a_silent_writer_is_asked_ever_more_rarely_however_busy_the_reader_is() {
    let mut reader = reader(Reliability::Reliable);
    heartbeat(&mut reader, 1, 1, 10);
    let busy = Guid::new(GuidPrefix([3; 12]), WRITER.entity);
    let destinations = Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7412)]);
    let proxy = WriterProxyConfig { guid: busy, reliable: true, destinations, vendor: VendorId::WEIR };
    reader.match_writer(Time(0), proxy);
    let mut asked = 0;
    for turn in 1..=600_u32 {
        let now = Time(u64::from(turn) * 100_000_000);
        while let Some(at) = reader.next_timeout().filter(|at| *at <= now) {
            reader.handle_timeout(at);
            asked += answers(&mut reader, at).iter().filter(|state| state.starts_with("1/10:")).count();
        }
        let heartbeat = Heartbeat {
            reader: EntityId::UNKNOWN,
            writer: busy.entity,
            first: SequenceNumber::FIRST,
            last: SequenceNumber::ZERO,
            count: turn,
            is_final: false,
            is_liveliness: false,
        };
        reader.handle_heartbeat(now, busy, &heartbeat);
        asked += answers(&mut reader, now).iter().filter(|state| state.starts_with("1/10:")).count();
    }
    assert!((10..=20).contains(&asked), "{asked} requests");
}
