//! Many writers of one reader.

use super::*;

#[test]
fn requests_for_the_first_heartbeats_of_many_writers_are_repeated_together() {
    let repeated_at = |writers: u8| {
        let mut reader = ReaderCore::new(ReaderConfig::new(READER, Reliability::Reliable));
        for number in 0..writers {
            let now = Time(u64::from(number) * 50_000);
            let guid = Guid::new(GuidPrefix([number + 1; 12]), WRITER.entity);
            let destinations = Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7411)]);
            let writer = WriterProxyConfig { guid, reliable: true, destinations, vendor: VendorId::WEIR };
            reader.match_writer(now, writer);
            assert_eq!(answers(&mut reader, now).len(), 1);
        }
        let mut at = Vec::new();
        for proxy in &reader.writers.list {
            at.push(proxy.next_timeout().unwrap());
        }
        at.sort_unstable();
        at.dedup();
        at
    };
    assert_eq!(repeated_at(10).len(), 10, "each after its time");
    // The first ten do not know yet that there will be many.
    assert!(repeated_at(100).len() < 25);
}

/// The reader has matched a writer on its host.
fn near_reader(config: ReaderConfig, vendor: VendorId, earlier: impl FnOnce(&mut ReaderCore)) -> ReaderCore {
    let mut reader = ReaderCore::new(config);
    earlier(&mut reader);
    match_writer(&mut reader, vendor);
    reader.await_heartbeat(WRITER);
    reader
}

#[test]
fn a_near_writer_from_which_nothing_has_arrived_is_not_asked() {
    let config = || ReaderConfig { wants_history: false, ..ReaderConfig::new(READER, Reliability::Reliable) };
    let mut reader = near_reader(config(), VendorId::WEIR, |_| {});
    assert_eq!((answers(&mut reader, Time(1_000)), reader.next_timeout()), (vec![], None));
    assert!(reader.is_caught_up());
    // A participant that announces itself prompts those of which no answer has arrived. This one was not asked.
    reader.has_given_up = true;
    reader.prompt_writer(Time(1_500), WRITER);
    assert_eq!(answers(&mut reader, Time(1_500)), Vec::<String>::new());
    // A sample that is not the first shows that something is missing, the HEARTBEAT from where on.
    data(&mut reader, 3);
    assert_eq!(answers(&mut reader, Time(2_000)), ["1/0:"]);
    assert!(!reader.is_caught_up());
    assert!(reader.next_timeout().is_some(), "it is asked again");
    heartbeat_to(&mut reader, READER.entity, 1, 1, 0);
    assert_eq!(answers(&mut reader, Time(3_000)), ["1/3:1,2"]);

    let asks = |mut reader: ReaderCore| answers(&mut reader, Time(1_000)) == ["1/0:"];
    assert!(asks(near_reader(config(), VendorId::CYCLONE, |_| {})));
    let wants_history = ReaderConfig { wants_history: true, ..config() };
    assert!(asks(near_reader(wants_history, VendorId::WEIR, |_| {})));
    // It has written, and the reader has to know where it goes on.
    assert!(asks(near_reader(config(), VendorId::WEIR, |reader| {
        match_writer(reader, VendorId::WEIR);
        heartbeat(reader, 1, 1, 1);
        data(reader, 1);
        assert_eq!(taken(reader), [1]);
        reader.unmatch_writer(Time(500), WRITER);
    })));
    // It may have more, and waits up to a second before it says so again.
    assert!(asks(near_reader(config(), VendorId::WEIR, |reader| data(reader, 1))));
    assert!(asks(near_reader(config(), VendorId::WEIR, |reader| heartbeat(reader, 1, 1, 1))));
}

#[test]
fn samples_that_end_before_the_first_heartbeat_of_a_near_writer_count_as_lost() {
    let config = || ReaderConfig { wants_history: false, ..ReaderConfig::new(READER, Reliability::Reliable) };
    for has_fragment in [false, true] {
        let mut reader = near_reader(config(), VendorId::WEIR, |_| {});
        if has_fragment {
            reader.handle_data_frag(Time(1_000), WRITER, &FRAGMENT, None);
        }
        // The writer says where the samples begin, and then that two of them have ended.
        heartbeat_to(&mut reader, READER.entity, 1, 1, 0);
        heartbeat_to(&mut reader, READER.entity, 2, 3, 3);
        assert_eq!(reader.counters().samples_lost, 2);
    }
}

#[test]
fn what_requests_took_is_returned_once_nothing_is_missing() {
    let mut reader = reader(Reliability::Reliable);
    answers(&mut reader, Time(0));
    assert!(!reader.writers.list[0].requests.is_changed(), "nothing can be requested yet");
    heartbeat(&mut reader, 1, 1, 0);
    data(&mut reader, 2);
    assert_eq!(answers(&mut reader, Time(2_000)), ["1/2:1"]);
    reader.release_room(WRITER);
    assert!(reader.writers.list[0].requests.is_changed(), "sample 1 is missing");
    data(&mut reader, 1);
    reader.release_room(WRITER);
    assert!(!reader.writers.list[0].requests.is_changed());
    assert_eq!(taken(&mut reader), [1, 2]);
    data(&mut reader, 4);
    assert_eq!(answers(&mut reader, Time(3_000)), ["3/2:3"]);
    data(&mut reader, 3);
    reader.writers.list[0].requests.round_trip.measure(50_000_000);
    reader.release_room(WRITER);
    assert!(reader.writers.list[0].requests.is_changed(), "that repairs take long is not forgotten");
}
