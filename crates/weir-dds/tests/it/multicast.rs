//! Readers in a multicast group on the loopback interface.

use weir_dds::{
    Coalescing, DataReader, DataReaderQos, DataWriter, DataWriterQos, DdsError, DomainParticipant,
    MulticastGroup,
};

use crate::support::{
    DEADLINE, Numbered, World, lossless_reader, lossless_writer, matched, settings, take_numbered,
};

const COUNT: u64 = 2_000;

/// Each in its own participant.
fn readers(
    world: &World,
    count: usize,
    qos: &DataReaderQos,
) -> Vec<(DomainParticipant, DataReader<Numbered>)> {
    let reader = |_| {
        let participant = world.participant();
        let reader = world.reader(&participant, qos.clone());
        (participant, reader)
    };
    (0..count).map(reader).collect()
}

fn listening() -> DataReaderQos {
    lossless_reader().multicast(MulticastGroup::default())
}

/// Writes one by one, so that datagrams can be counted.
fn write_all(writer: &DataWriter<Numbered>) {
    (0..COUNT).for_each(|number| writer.write(&Numbered::new(0, number)).unwrap());
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
}

fn by_multicast(readers: &[(DomainParticipant, DataReader<Numbered>)]) -> Vec<u64> {
    readers.iter().map(|(participant, _)| participant.receive_counters().multicast).collect()
}

fn uncoalesced() -> DataWriterQos {
    lossless_writer().coalescing(Coalescing::Off)
}

#[test]
fn three_readers_of_a_group_get_each_sample_by_one_datagram() {
    let world = World::new();
    let writer = world.writer(&world.participant(), uncoalesced());
    let readers = readers(&world, 3, &listening());
    matched(&[&writer], &readers.iter().map(|(_, reader)| reader).collect::<Vec<_>>());
    std::thread::scope(|scope| {
        for (_, reader) in &readers {
            scope.spawn(|| take_numbered(reader, 0, COUNT));
        }
        write_all(&writer);
    });
    let counts = by_multicast(&readers);
    assert!(counts.iter().all(|count| *count >= COUNT), "{counts:?}");
    let counters = writer.send_counters();
    assert!(counters.samples < 2 * COUNT, "{counters:?}");
}

#[test]
fn readers_that_do_not_listen_get_the_same_samples() {
    let world = World::new();
    let writer = world.writer(&world.participant(), lossless_writer());
    let mut readers = readers(&world, 2, &listening());
    readers.extend(self::readers(&world, 2, &lossless_reader()));
    matched(&[&writer], &readers.iter().map(|(_, reader)| reader).collect::<Vec<_>>());
    std::thread::scope(|scope| {
        for (_, reader) in &readers {
            scope.spawn(|| take_numbered(reader, 0, COUNT));
        }
        write_all(&writer);
    });
    let counts = by_multicast(&readers);
    assert!(counts[0] > 0 && counts[1] > 0 && counts[2..] == [0, 0], "{counts:?}");
}

#[test]
fn one_listener_gets_unicast_and_so_do_all_when_the_writer_says_so() {
    for (count, is_allowed) in [(1, true), (2, false)] {
        let world = World::new();
        let writer = world.writer(&world.participant(), lossless_writer().multicast(is_allowed));
        let readers = readers(&world, count, &listening());
        matched(&[&writer], &readers.iter().map(|(_, reader)| reader).collect::<Vec<_>>());
        writer.write(&Numbered::new(0, 0)).unwrap();
        readers.iter().for_each(|(_, reader)| take_numbered(reader, 0, 1));
        assert!(by_multicast(&readers).iter().all(|count| *count == 0));
    }
}

#[test]
fn the_group_of_a_participant_is_that_of_its_readers() {
    let world = World::new();
    let writer = world.writer(&world.participant(), lossless_writer());
    let group: MulticastGroup = "239.255.43.1:17443".parse().unwrap();
    let participants = [0; 2].map(|_| world.participant_with(settings().data_multicast(group)));
    let readers = participants.map(|participant| {
        let reader = world.reader(&participant, lossless_reader());
        (participant, reader)
    });
    matched(&[&writer], &[&readers[0].1, &readers[1].1]);
    writer.write(&Numbered::new(0, 0)).unwrap();
    readers.iter().for_each(|(_, reader)| take_numbered(reader, 0, 1));
    assert!(by_multicast(&readers).iter().all(|count| *count > 0));
}

#[test]
fn large_samples_come_by_multicast_in_fragments() {
    let world = World::new();
    let writer = world.writer(&world.participant(), lossless_writer());
    let readers = readers(&world, 2, &listening());
    matched(&[&writer], &[&readers[0].1, &readers[1].1]);
    let bytes: Vec<u8> = (0..1_000_000_u32).map(|i| (i % 251) as u8).collect();
    let large = Numbered { source: 0, number: 0, bytes };
    std::thread::scope(|scope| {
        for (_, reader) in &readers {
            scope.spawn(|| {
                reader.wait_for_data(DEADLINE).unwrap();
                assert_eq!(*reader.take(1)[0].data().unwrap(), large);
            });
        }
        writer.write(&large).unwrap();
        writer.wait_for_acknowledgments(DEADLINE).unwrap();
    });
    assert!(by_multicast(&readers).iter().all(|count| *count > 10));
}

#[test]
fn the_last_listener_leaves_and_the_writer_goes_on_by_unicast() {
    let world = World::new();
    let writer = world.writer(&world.participant(), lossless_writer());
    let mut readers = readers(&world, 2, &listening());
    matched(&[&writer], &[&readers[0].1, &readers[1].1]);
    drop(readers.pop());
    while writer.publication_matched_status().current_count > 1 {
        std::thread::yield_now();
    }
    let before = by_multicast(&readers);
    writer.write(&Numbered::new(0, 0)).unwrap();
    take_numbered(&readers[0].1, 0, 1);
    assert_eq!(by_multicast(&readers), before);
}

#[test]
fn a_group_that_cannot_be_is_refused_with_the_reason() {
    let world = World::new();
    let deaf = world.participant_with(settings().without_multicast());
    let here = world.participant();
    let refused = |participant: &DomainParticipant, group: MulticastGroup| {
        let topic = world.topic::<Numbered>(participant);
        let reader = participant
            .create_subscriber()
            .unwrap()
            .create_datareader(&topic, lossless_reader().multicast(group));
        match reader {
            Err(DdsError::BadParameter(text)) => text,
            other => panic!("{other:?}"),
        }
    };
    assert!(refused(&deaf, MulticastGroup::default()).contains("multicast"));
    let unicast = MulticastGroup::new("10.0.0.1".parse().unwrap());
    assert!(refused(&here, unicast).contains("239.255.255.255"));
}
