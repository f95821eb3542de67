//! Malicious or broken datagrams while participants exchange data.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Instant;

use weir_dds::{DataReader, DataWriter, DomainParticipant, GuidPrefix, Peer};
use weir_wire::{
    AckNack, DataHeader, EntityId, Gap, Header, Heartbeat, InfoDestination, InfoTimestamp, ProtocolVersion,
    SequenceNumber, SequenceNumberSet, Timestamp, VendorId, push,
};

use crate::support::{
    DEADLINE, Numbered, World, lossless_reader, lossless_writer, matched, settings, take_exactly,
    take_numbered,
};

const COUNT: u64 = 5_000;
const UNMATCHED: GuidPrefix = GuidPrefix([0x66; 12]);

fn sender() -> UdpSocket {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()
}

/// The discovery address of a participant (RTPS 2.5, 9.6.2.3: one port below the user port).
fn discovery_address(participant: &DomainParticipant) -> SocketAddr {
    let user = participant.user_address();
    SocketAddr::new(user.ip(), user.port() - 1)
}

/// Exchanges samples; `attack` is called before each.
fn exchange_under(
    mut attack: impl FnMut(&[&DomainParticipant; 2], &DataWriter<Numbered>, &DataReader<Numbered>) + Send,
) {
    let world = World::new();
    let participants = [&world.participant(), &world.participant()];
    let writer = world.writer(participants[0], lossless_writer());
    let reader = world.reader(participants[1], lossless_reader());
    matched(&[&writer], &[&reader]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..COUNT {
                attack(&participants, &writer, &reader);
                writer.write(&Numbered::new(0, number)).unwrap();
            }
            writer.wait_for_acknowledgments(DEADLINE).unwrap();
        });
        take_numbered(&reader, 0, COUNT);
    });
}

/// Pseudo-random bytes, the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}

/// A valid message of an unmatched writer, with data and acknowledgements.
fn valid_message(writer: EntityId, reader: EntityId) -> Vec<u8> {
    let mut out = Vec::new();
    push(&mut out, &Header { version: ProtocolVersion::V2_5, vendor: VendorId::WEIR, prefix: UNMATCHED });
    push(&mut out, &InfoDestination { prefix: GuidPrefix::UNKNOWN });
    push(&mut out, &InfoTimestamp { timestamp: Some(Timestamp::from_unix_nanos(1)) });
    let mut set = SequenceNumberSet::new(SequenceNumber(3));
    set.insert(SequenceNumber(5));
    push(&mut out, &AckNack { reader, writer, state: set, count: 9, is_final: false });
    push(&mut out, &Gap { reader, writer, start: SequenceNumber(1), list: set });
    let (first, last) = (SequenceNumber(1), SequenceNumber(i64::MAX - 1));
    push(
        &mut out,
        &Heartbeat { reader, writer, first, last, count: 1, is_final: false, is_liveliness: false },
    );
    push(
        &mut out,
        &DataHeader {
            reader,
            writer,
            sequence_number: SequenceNumber(4),
            inline_qos_len: 0,
            payload_len: 8,
            is_key: false,
        },
    );
    out.extend_from_slice(&[0, 1, 0, 0, 1, 2, 3, 4]);
    out
}

#[test]
fn bytes_without_sense_do_no_harm_and_are_counted() {
    let socket = sender();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let world = World::new();
    let victim = world.participant();
    let malformed = |it: &DomainParticipant| it.receive_counters().malformed;
    exchange_under(|participants, _, _| {
        for participant in participants.iter().copied() {
            let len = random.next() as usize % 300;
            let mut bytes = random.bytes(len);
            if random.next().is_multiple_of(2) && bytes.len() > 4 {
                bytes[..4].copy_from_slice(b"RTPS");
            }
            let _ = socket.send_to(&bytes, participant.user_address());
            let _ = socket.send_to(&bytes, discovery_address(participant));
        }
    });
    // All datagrams sent to an idle participant arrive and are counted.
    for _ in 0..100 {
        socket.send_to(&random.bytes(50), victim.user_address()).unwrap();
    }
    let deadline = Instant::now() + DEADLINE;
    while malformed(&victim) < 100 {
        assert!(Instant::now() < deadline, "{:?}", victim.receive_counters());
        std::thread::yield_now();
    }
    assert_eq!(victim.receive_counters().datagrams, 100);
}

#[test]
fn empty_datagrams_do_no_harm() {
    let socket = sender();
    exchange_under(|participants, _, _| {
        for participant in participants.iter().copied() {
            let _ = socket.send_to(&[], participant.user_address());
            let _ = socket.send_to(&[], discovery_address(participant));
        }
    });
}

#[test]
fn messages_of_unmatched_senders_do_no_harm_whole_cut_or_changed() {
    let socket = sender();
    let mut random = Random(0x0123_4567_89ab_cdef);
    exchange_under(|participants, writer, reader| {
        let whole = valid_message(writer.guid().entity, reader.guid().entity);
        let len = random.next() as usize % whole.len();
        let mut changed = whole.clone();
        for _ in 0..1 + random.next() % 4 {
            // Not in the header: the source would be another one.
            let at = 20 + random.next() as usize % (changed.len() - 20);
            changed[at] = random.next() as u8;
        }
        for participant in participants.iter().copied() {
            for datagram in [&whole[..], &whole[..len], &changed[..]] {
                let _ = socket.send_to(datagram, participant.user_address());
                let _ = socket.send_to(datagram, discovery_address(participant));
            }
        }
    });
}

#[test]
fn cut_messages_in_the_name_of_those_who_talk_do_no_harm() {
    let socket = sender();
    exchange_under(|participants, writer, reader| {
        for (to, prefix) in [(participants[1], writer.guid().prefix), (participants[0], reader.guid().prefix)]
        {
            let mut message = Vec::new();
            push(&mut message, &Header { version: ProtocolVersion::V2_5, vendor: VendorId::WEIR, prefix });
            let start = message.len();
            push(
                &mut message,
                &DataHeader {
                    reader: EntityId::UNKNOWN,
                    writer: writer.guid().entity,
                    sequence_number: SequenceNumber(1),
                    inline_qos_len: 0,
                    payload_len: 1_000,
                    is_key: false,
                },
            );
            // The payload is shorter than the header says, more so with each round.
            for len in start..message.len() {
                let _ = socket.send_to(&message[..len], to.user_address());
                let _ = socket.send_to(&message[..len], discovery_address(to));
            }
        }
    });
}

#[test]
fn announcements_that_were_changed_do_no_harm() {
    // A participant's announcements to a peer are recorded, changed and sent to others.
    let overheard = sender();
    let port = match overheard.local_addr().unwrap() {
        SocketAddr::V4(address) => address.port(),
        SocketAddr::V6(_) => 0,
    };
    overheard.set_read_timeout(Some(DEADLINE)).unwrap();
    let peer = Peer::new(Ipv4Addr::LOCALHOST.into()).port(port);
    let world = World::new();
    let talker = world.participant_with(settings().peer(peer));
    let _writer: DataWriter<Numbered> = world.writer(&talker, lossless_writer());
    let mut buffer = [0; 65_536];
    let announcements: Vec<Vec<u8>> = (0..2)
        .map(|_| {
            let len = overheard.recv(&mut buffer).unwrap();
            buffer[..len].to_vec()
        })
        .collect();
    let mut random = Random(0x5555_1234_aaaa_4321);
    exchange_under(|participants, _, _| {
        for announcement in &announcements {
            let mut changed = announcement.clone();
            for _ in 0..1 + random.next() % 6 {
                let at = random.next() as usize % changed.len();
                changed[at] = random.next() as u8;
            }
            changed.truncate(changed.len() - random.next() as usize % 40);
            for participant in participants.iter().copied() {
                let _ = overheard.send_to(&changed, discovery_address(participant));
                let _ = overheard.send_to(&changed, participant.user_address());
            }
        }
    });
}

#[test]
fn keys_without_sense_are_counted_and_the_next_sample_arrives() {
    // A writer of another type with the same name: its samples are too short to hold a key.
    mod other {
        #[derive(weir_dds::DdsType, Default)]
        #[dds(extensibility = "final", name = "Long")]
        pub(super) struct Short {
            #[dds(key)]
            pub(super) byte: u8,
        }
    }
    #[derive(weir_dds::DdsType, Default, Debug, PartialEq)]
    #[dds(extensibility = "final")]
    struct Long {
        #[dds(key)]
        id: [u64; 4],
    }
    let world = World::new();
    let participant = world.participant();
    let reader: DataReader<Long> = world.reader(&participant, lossless_reader());
    let wrong: DataWriter<other::Short> = world.writer(&world.participant(), lossless_writer());
    let right: DataWriter<Long> = world.writer(&world.participant(), lossless_writer());
    wrong.wait_for_subscriptions(1, DEADLINE).unwrap();
    right.wait_for_subscriptions(1, DEADLINE).unwrap();
    reader.wait_for_publications(2, DEADLINE).unwrap();
    wrong.write(&other::Short { byte: 1 }).unwrap();
    wrong.wait_for_acknowledgments(DEADLINE).unwrap();
    right.write(&Long { id: [1; 4] }).unwrap();
    assert_eq!(*take_exactly(&reader, 1)[0].data().unwrap(), Long { id: [1; 4] });
    let counters = reader.protocol_counters();
    assert_eq!(counters.samples_malformed, 1, "{counters:?}");
}
