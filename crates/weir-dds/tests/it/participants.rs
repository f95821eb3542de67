//! Participants discover each other, leave, and return.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::Instant;

use weir_dds::{DataReader, DataWriter, DomainParticipant, ParticipantSettings, Peer};

use crate::support::{
    DEADLINE, Numbered, World, lossless_reader, lossless_writer, matched, settings, take_exactly,
    take_numbered,
};

fn without_multicast() -> ParticipantSettings {
    settings().without_multicast()
}

fn until(mut is_reached: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !is_reached() {
        assert!(Instant::now() < deadline);
        std::thread::yield_now();
    }
}

#[test]
fn participants_of_one_process_all_hear_each_other() {
    let world = World::new();
    let participants = [0; 5].map(|_| world.participant());
    let writers = participants.each_ref().map(|it| world.writer::<Numbered>(it, lossless_writer()));
    let readers = participants.each_ref().map(|it| world.reader::<Numbered>(it, lossless_reader()));
    matched(&writers.each_ref(), &readers.each_ref());
    for (source, writer) in writers.iter().enumerate() {
        writer.write(&Numbered::new(source as u32, 0)).unwrap();
    }
    for reader in &readers {
        let mut sources: Vec<_> =
            take_exactly(reader, 5).iter().map(|sample| sample.data().unwrap().source).collect();
        sources.sort_unstable();
        assert_eq!(sources, [0, 1, 2, 3, 4]);
    }
}

#[test]
fn participants_of_other_domains_are_not_heard() {
    let (world, elsewhere) = (World::new(), World::new());
    assert_ne!(world.domain_id, elsewhere.domain_id);
    let elsewhere = World { topic: world.topic.clone(), ..elsewhere };
    let writer: DataWriter<Numbered> = world.writer(&world.participant(), lossless_writer());
    let unmatched: DataReader<Numbered> = elsewhere.reader(&elsewhere.participant(), lossless_reader());
    let reader = world.reader(&world.participant(), lossless_reader());
    matched(&[&writer], &[&reader]);
    assert_eq!(unmatched.subscription_matched_status().total_count, 0);
}

#[test]
fn a_named_peer_is_found_without_multicast() {
    let world = World::new();
    let silent = world.participant_with(without_multicast());
    // The user port is one above the discovery port (RTPS 2.5, 9.6.2.3).
    let port = silent.user_address().port() - 1;
    let peer = Peer::new(silent.user_address().ip()).port(port);
    let caller = world.participant_with(without_multicast().peer(peer));
    let (writer, reader) =
        (world.writer(&silent, lossless_writer()), world.reader(&caller, lossless_reader()));
    matched(&[&writer], &[&reader]);
    for number in 0..100 {
        writer.write(&Numbered::new(0, number)).unwrap();
    }
    take_numbered(&reader, 0, 100);
}

#[test]
fn a_peer_without_a_port_is_any_of_the_first_participants() {
    let world = World::new();
    let listening = [0; 3].map(|_| world.participant_with(without_multicast()));
    let caller = world.participant_with(without_multicast().peer("127.0.0.1".parse().unwrap()));
    let readers = listening.each_ref().map(|it| world.reader::<Numbered>(it, lossless_reader()));
    let writer = world.writer(&caller, lossless_writer());
    matched(&[&writer], &readers.each_ref());
}

#[test]
fn without_multicast_and_peers_no_participant_is_found() {
    let world = World::new();
    let hermit = world.participant_with(without_multicast());
    let (one, other) = (world.participant(), world.participant());
    let alone: DataReader<Numbered> = world.reader(&hermit, lossless_reader());
    let writer: DataWriter<Numbered> = world.writer(&one, lossless_writer());
    let reader = world.reader(&other, lossless_reader());
    matched(&[&writer], &[&reader]);
    assert_eq!(alone.subscription_matched_status().total_count, 0);
    // But its own endpoints match each other.
    let writer = world.writer(&hermit, lossless_writer());
    matched(&[&writer], &[&alone]);
    writer.write(&Numbered::new(0, 0)).unwrap();
    take_numbered(&alone, 0, 1);
}

#[test]
fn a_reader_that_comes_back_is_served_again() {
    let world = World::new();
    let writer: DataWriter<Numbered> = world.writer(&world.participant(), lossless_writer());
    for round in 0..5 {
        let participant = world.participant();
        let reader: DataReader<Numbered> = world.reader(&participant, lossless_reader());
        reader.wait_for_publications(1, DEADLINE).unwrap();
        writer.wait_for_subscriptions(1, DEADLINE).unwrap();
        for number in 0..200 {
            writer.write(&Numbered::new(round, number)).unwrap();
        }
        let samples = take_exactly(&reader, 200);
        assert!(
            samples.iter().zip(0..).all(|(it, number)| *it.data().unwrap() == Numbered::new(round, number))
        );
        // In the middle of the exchange: samples without a reader are not lost.
        writer.write(&Numbered::new(round, 999)).unwrap();
        drop((participant, reader));
        until(|| writer.publication_matched_status().current_count == 0);
        writer.wait_for_acknowledgments(DEADLINE).unwrap();
    }
    assert_eq!(writer.publication_matched_status().total_count, 5);
}

#[test]
fn a_writer_that_comes_back_is_heard_again() {
    let world = World::new();
    let reader: DataReader<Numbered> = world.reader(&world.participant(), lossless_reader());
    for round in 0..5 {
        let writer: DataWriter<Numbered> = world.writer(&world.participant(), lossless_writer());
        matched(&[&writer], &[&reader]);
        for number in 0..100 {
            writer.write(&Numbered::new(round, number)).unwrap();
        }
        take_numbered(&reader, round, 100);
        drop(writer);
        until(|| reader.subscription_matched_status().current_count == 0);
    }
}

#[test]
fn what_was_acknowledged_stays_when_its_writer_leaves() {
    let world = World::new();
    let reader: DataReader<Numbered> = world.reader(&world.participant(), lossless_reader());
    let writer: DataWriter<Numbered> = world.writer(&world.participant(), lossless_writer());
    matched(&[&writer], &[&reader]);
    for number in 0..300 {
        writer.write(&Numbered::new(0, number)).unwrap();
    }
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    drop(writer);
    until(|| reader.subscription_matched_status().current_count == 0);
    take_numbered(&reader, 0, 300);
}

#[test]
fn a_participant_lives_as_long_as_one_handle_of_it_or_of_what_it_made() {
    let world = World::new();
    let writer: DataWriter<Numbered> = world.writer(&world.participant(), lossless_writer());
    let participant = world.participant();
    let subscriber = participant.create_subscriber().unwrap();
    let prefix = participant.guid_prefix();
    let topic = world.topic(&participant);
    drop(participant);
    let reader = subscriber.create_datareader(&topic, lossless_reader()).unwrap();
    drop(subscriber);
    assert_eq!(reader.guid().prefix, prefix);
    matched(&[&writer], &[&reader]);
    let clone = reader.clone();
    drop(reader);
    writer.write(&Numbered::new(0, 0)).unwrap();
    take_numbered(&clone, 0, 1);
    drop(clone);
    until(|| writer.publication_matched_status().current_count == 0);
}

#[test]
fn a_writer_without_readers_sends_no_data() {
    let world = World::new();
    let participant = world.participant();
    let writer: DataWriter<Numbered> = world.writer(&participant, lossless_writer());
    let others = world.sibling();
    let (other_writer, other_reader) = (
        others.writer(&participant, lossless_writer()),
        others.reader(&world.participant(), lossless_reader()),
    );
    matched(&[&other_writer], &[&other_reader]);
    for number in 0..1_000 {
        writer.write(&Numbered::new(0, number)).unwrap();
        other_writer.write(&Numbered::new(0, number)).unwrap();
    }
    take_numbered(&other_reader, 0, 1_000);
    assert_eq!(writer.send_counters().datagrams, 0);
    assert!(other_writer.send_counters().samples >= 1_000);
}

#[test]
fn a_participant_tells_where_and_with_what_it_receives() {
    let world = World::new();
    let participant: DomainParticipant = world.participant();
    assert_eq!(participant.domain_id(), world.domain_id);
    assert!(participant.user_address().ip().is_loopback());
    assert!(participant.granted_receive_buffer() > 0 && participant.granted_send_buffer() > 0);
    assert_eq!(participant.receive_drops(), 0);
    assert!(format!("{participant:?}").contains(&format!("domain {}", world.domain_id)));
}

#[test]
fn participants_beyond_the_ids_of_a_host_use_free_ports_and_are_found() {
    let world = World::new();
    // As many participants as the port formula has ids for; other tests may have some of the ports.
    let port = |id: u32| (7400 + 250 * world.domain_id + 10 + 2 * id) as u16;
    let taken: Vec<_> = (0..120).map(|id| UdpSocket::bind((Ipv4Addr::LOCALHOST, port(id)))).collect();
    let (here, there) = (world.participant(), world.participant());
    for participant in [&here, &there] {
        let user = participant.user_address().port();
        assert!(!(port(0)..port(120) + 2).contains(&user), "{user} is the port of a participant id");
    }
    let (writer, reader) = (world.writer(&here, lossless_writer()), world.reader(&there, lossless_reader()));
    matched(&[&writer], &[&reader]);
    for number in 0..100 {
        writer.write(&Numbered::new(0, number)).unwrap();
    }
    take_numbered(&reader, 0, 100);
    drop(taken);
}
