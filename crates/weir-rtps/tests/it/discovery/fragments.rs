//! Fragmented announcements of endpoints: they are reassembled, within limits, and later ones are
//! discovered whatever happens to one of them.

use core::net::{Ipv4Addr, SocketAddrV4};
use core::time::Duration;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use weir_rtps::config::{ANNOUNCEMENT_MAX_BYTES, ANNOUNCEMENT_REASSEMBLY_MAX_BYTES};
use weir_rtps::discovery_event::DiscoveryEvent;
use weir_rtps::outbox::Outbox;
use weir_rtps::participant::{LocalEndpointError, ParticipantCore};
use weir_rtps::qos::Qos;
use weir_rtps::spdp;
use weir_rtps::time::Time;
use weir_rtps::writer::WriteRefused;
use weir_wire::{
    DataFragHeader, Emit, EntityId, Guid, GuidPrefix, Header, Heartbeat, HeartbeatFrag, Locator, Message,
    ParameterId, ParameterListWriter, Payload, ProtocolVersion, SequenceNumber, Submessage, VendorId, push,
};

use super::world::{Datagram, World, config, endpoint, matched, prefix};

#[path = "../../support/fragments.rs"]
mod in_fragments;

/// A participant whose announcements of endpoints are fragmented, as those of Cyclone DDS, RTI
/// Connext and others.
struct Fragmenter {
    /// The participant.
    at: SocketAddrV4,
    /// The announcements, by writer and number.
    announced: BTreeMap<(EntityId, SequenceNumber), Vec<u8>>,
    /// Changes the fragments of an announcement when it is first sent.
    first: fn(Vec<Vec<u8>>) -> Vec<Vec<u8>>,
    /// Fragments requested and sent again.
    repaired: Rc<Cell<u32>>,
}

impl Fragmenter {
    fn rewrite(&mut self, datagram: Datagram) -> Vec<Datagram> {
        let message = Message::parse(&datagram.bytes).unwrap();
        if datagram.to == self.at {
            let repairs = self.repairs(&message);
            let back =
                repairs.into_iter().map(|bytes| Datagram { from: datagram.to, to: datagram.from, bytes });
            return back.collect::<Vec<_>>().into_iter().chain([datagram.clone()]).collect();
        }
        if datagram.from != self.at {
            return vec![datagram];
        }
        let Some(mut datagrams) = self.divided(&message) else { return vec![datagram] };
        // The rest of the message follows.
        datagrams.push(in_fragments::without_data(&datagram.bytes));
        datagrams.into_iter().map(|bytes| Datagram { bytes, ..datagram.clone() }).collect()
    }

    /// Returns messages with the fragments of a message's announcements; `None` if there are none.
    fn divided(&mut self, message: &Message<'_>) -> Option<Vec<Vec<u8>>> {
        let (mut datagrams, mut is_announcing) = (Vec::new(), false);
        for submessage in message.submessages() {
            let Ok(Submessage::Data(data)) = submessage else { continue };
            let Payload::Data(payload) = data.payload else { continue };
            if !in_fragments::is_sedp(data.writer) {
                continue;
            }
            let at = (data.writer, data.sequence_number);
            let fragments = in_fragments::all(&header(message.header.prefix), at, payload);
            let is_new = self.announced.insert(at, payload.to_vec()).is_none();
            datagrams.extend(if is_new { (self.first)(fragments) } else { fragments });
            is_announcing = true;
        }
        is_announcing.then_some(datagrams)
    }

    /// Returns messages with the fragments that a message requests.
    fn repairs(&self, message: &Message<'_>) -> Vec<Vec<u8>> {
        let mut datagrams = Vec::new();
        for submessage in message.submessages() {
            let Ok(Submessage::NackFrag(nack)) = submessage else { continue };
            let at = (nack.writer, nack.sequence_number);
            for number in nack.state.iter() {
                let header = header(prefix(1));
                datagrams.push(in_fragments::fragment(&header, at, &self.announced[&at], number.0));
                self.repaired.set(self.repaired.get() + 1);
            }
        }
        datagrams
    }
}

/// The header of messages of this participant.
fn header(source: GuidPrefix) -> Header {
    Header { version: ProtocolVersion::V2_5, vendor: VendorId::CYCLONE, prefix: source }
}

/// A message with one submessage.
fn by(source: GuidPrefix, submessage: &impl Emit) -> Vec<u8> {
    let mut message = Vec::new();
    push(&mut message, &header(source));
    push(&mut message, submessage);
    message
}

/// Node 1 fragments its announcements; `first` decides what arrives. Returns how often node 0 had
/// to request a fragment.
fn discovered(first: fn(Vec<Vec<u8>>) -> Vec<Vec<u8>>) -> u32 {
    let mut world = World::new();
    let repaired = Rc::new(Cell::new(0));
    let mut fragmenter = Fragmenter {
        at: config(1).metatraffic_unicast[0],
        announced: BTreeMap::new(),
        first,
        repaired: Rc::clone(&repaired),
    };
    world.rewrite = Box::new(move |datagram| fragmenter.rewrite(datagram));
    world.start();
    world.start();
    world.add_reader(0, 1, "There", Qos::for_reader());
    world.add_writer(0, 2, "Back", Qos::for_writer());
    let mut expected = vec![world.add_writer(1, 1, "There", Qos::for_writer())];
    expected.push(world.add_reader(1, 2, "Back", Qos::for_reader()));
    world.run_for(Duration::from_millis(200));
    let found = |events: Vec<DiscoveryEvent>| -> Vec<Guid> {
        events
            .iter()
            .filter_map(matched)
            .map(|remote| remote.guid)
            .filter(|guid| guid.prefix == prefix(1))
            .collect()
    };
    let mut events = world.events(0);
    // Later ones, too.
    expected.push(world.add_writer(1, 3, "There", Qos::for_writer()));
    expected.push(world.add_reader(1, 4, "Back", Qos::for_reader()));
    world.run_for(Duration::from_millis(200));
    events.extend(world.events(0));
    let mut found = found(events);
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    repaired.get()
}

#[test]
fn announcements_in_fragments_are_put_together() {
    assert_eq!(discovered(|fragments| fragments), 0);
}

#[test]
fn fragments_of_announcements_may_arrive_in_any_order_and_twice() {
    discovered(|fragments| fragments.iter().rev().cloned().chain(fragments.iter().cloned()).collect());
}

#[test]
fn a_lost_fragment_of_an_announcement_is_asked_for() {
    for lost in [
        |mut fragments: Vec<Vec<u8>>| {
            fragments.remove(0);
            fragments
        },
        |mut fragments: Vec<Vec<u8>>| {
            fragments.remove(1);
            fragments
        },
        |mut fragments: Vec<Vec<u8>>| {
            fragments.pop();
            fragments
        },
    ] {
        assert_eq!(discovered(lost), 4);
    }
}

#[test]
fn an_announcement_of_which_everything_is_lost_is_asked_for() {
    discovered(|_| Vec::new());
}

#[test]
fn fragments_that_a_heartbeat_frag_names_are_asked_for() {
    // Only that the first announcement has two fragments arrives. A HEARTBEAT would do as well, but
    // some engines send it much later.
    let mut core = known(&[1]);
    let (at, writer) = (Time(1_000_000), EntityId::SEDP_PUBLICATIONS_WRITER);
    let heartbeat = HeartbeatFrag {
        reader: EntityId::UNKNOWN,
        writer,
        sequence_number: SequenceNumber(1),
        last_fragment: 2,
        count: 1,
    };
    core.handle_datagram(at, ADDRESS, &by(forged(1), &heartbeat));
    let mut out = Outbox::new();
    core.poll_transmit(at, &mut out);
    let mut asked = Vec::new();
    out.for_each_datagram(|_, bytes| {
        for submessage in Message::parse(bytes).unwrap().submessages() {
            if let Ok(Submessage::NackFrag(nack)) = submessage {
                asked.extend(nack.state.iter().map(|number| (nack.writer, number.0)));
            }
        }
    });
    assert_eq!(asked, [(writer, 1), (writer, 2)]);
}

const ADDRESS: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 9, 9, 9), 7410);

fn forged(index: u32) -> GuidPrefix {
    let mut prefix = [0xee; 12];
    prefix[8..].copy_from_slice(&index.to_be_bytes());
    GuidPrefix(prefix)
}

/// A participant with a reader that knows these participants.
fn known(others: &[u32]) -> ParticipantCore {
    let mut core = ParticipantCore::new(config(0), Time::ZERO);
    core.add_reader(Time::ZERO, endpoint(EntityId::user_reader(1, false), "There", Qos::for_reader()))
        .unwrap();
    for other in others {
        let source = forged(*other);
        let mut payload = vec![0, 3, 0, 0];
        let mut list = ParameterListWriter::new(&mut payload);
        list.guid(ParameterId::PARTICIPANT_GUID, Guid::new(source, EntityId::PARTICIPANT));
        list.u32(ParameterId::BUILTIN_ENDPOINT_SET, spdp::builtin_endpoints::WEIR);
        list.locator(ParameterId::METATRAFFIC_UNICAST_LOCATOR, Locator::udp_v4(ADDRESS));
        list.locator(ParameterId::DEFAULT_UNICAST_LOCATOR, Locator::udp_v4(ADDRESS));
        list.finish();
        let header = weir_wire::DataHeader {
            reader: EntityId::UNKNOWN,
            writer: EntityId::SPDP_WRITER,
            sequence_number: SequenceNumber(1),
            inline_qos_len: 0,
            payload_len: payload.len() as u32,
            is_key: false,
        };
        core.handle_datagram(Time::ZERO, ADDRESS, &[by(source, &header), payload].concat());
    }
    assert_eq!(core.remote_participants(), others.len());
    core
}

/// The announcement of a writer with unknown parameters of these lengths in bytes.
fn announcement(source: GuidPrefix, key: u32, more: &[usize]) -> Vec<u8> {
    let mut payload = vec![0, 3, 0, 0];
    let mut list = ParameterListWriter::new(&mut payload);
    list.guid(ParameterId::ENDPOINT_GUID, Guid::new(source, EntityId::user_writer(key, false)));
    list.string(ParameterId::TOPIC_NAME, "There");
    list.string(ParameterId::TYPE_NAME, "Type");
    more.iter().for_each(|len| list.raw(ParameterId(0x0075), &vec![7; *len]));
    list.finish();
    payload
}

const WRITER: EntityId = EntityId::SEDP_PUBLICATIONS_WRITER;

fn announce(core: &mut ParticipantCore, source: GuidPrefix, number: u32, payload: &[u8]) {
    let at = (WRITER, SequenceNumber(i64::from(number)));
    // Fragments of at least 512 bytes: so many of 100 are refused.
    let size = 1000;
    for (index, bytes) in (1..).zip(payload.chunks(size)) {
        let header = DataFragHeader {
            reader: EntityId::UNKNOWN,
            writer: at.0,
            sequence_number: at.1,
            fragment_start: index,
            fragments: 1,
            fragment_size: size as u16,
            sample_size: payload.len() as u32,
            payload_len: bytes.len() as u32,
        };
        core.handle_datagram(Time(1), ADDRESS, &[by(source, &header), bytes.to_vec()].concat());
    }
}

#[test]
fn the_longest_announcement_arrives() {
    let mut core = known(&[1]);
    let mut sizes = vec![60_000; 4];
    let rest = ANNOUNCEMENT_MAX_BYTES - announcement(forged(1), 1, &sizes).len() - 4;
    sizes.push(rest);
    let payload = announcement(forged(1), 1, &sizes);
    assert_eq!(payload.len(), ANNOUNCEMENT_MAX_BYTES);
    announce(&mut core, forged(1), 1, &payload);
    assert_eq!((core.remote_endpoints(), core.counters().refused_announcements), (1, 0));
}

#[test]
fn an_announcement_that_is_too_long_hides_no_other() {
    let too_long = announcement(forged(1), 9, &[60_000; 5]);
    let short = |number| announcement(forged(1), number, &[]);
    // In order, and out of order.
    for order in [[1, 2, 3], [2, 3, 1], [3, 2, 1]] {
        let mut core = known(&[1]);
        for number in order {
            let payload = if number == 2 { &too_long } else { &short(number) };
            announce(&mut core, forged(1), number, payload);
        }
        let counters = core.counters();
        assert_eq!((core.remote_endpoints(), counters.refused_announcements), (2, 1), "{order:?}");
        assert!(core.memory() < 1 << 20, "{}", core.memory());
    }
}

/// Sends one fragment of each of many announcements in one participant's name.
fn begin_many(core: &mut ParticipantCore, source: GuidPrefix, sample_size: usize) {
    for writer in [WRITER, EntityId::SEDP_SUBSCRIPTIONS_WRITER, EntityId::PARTICIPANT_MESSAGE_WRITER] {
        for number in 1..=2000 {
            // In the last page of the sample, and the first.
            for fragment_start in [1, (sample_size / 1000) as u32] {
                let header = DataFragHeader {
                    reader: EntityId::UNKNOWN,
                    writer,
                    sequence_number: SequenceNumber(number),
                    fragment_start,
                    fragments: 1,
                    fragment_size: 1000,
                    sample_size: sample_size as u32,
                    payload_len: 1000,
                };
                core.handle_datagram(Time(1), ADDRESS, &[by(source, &header), vec![7; 1000]].concat());
            }
        }
    }
}

#[test]
fn announcements_that_are_never_completed_take_little_memory_and_leave_room_for_others() {
    for sample_size in [2000, 4096, 60_000, ANNOUNCEMENT_MAX_BYTES, ANNOUNCEMENT_MAX_BYTES + 1, 1 << 30] {
        let mut core = known(&[1, 2, 3, 4]);
        let before = core.memory();
        begin_many(&mut core, forged(1), sample_size);
        let of_one = core.memory() - before;
        let most = 3 * ANNOUNCEMENT_REASSEMBLY_MAX_BYTES;
        // In addition to the samples, there is a list of missing ones.
        let lists = 3 * 2000 * 64;
        assert!(of_one <= most / 2 + lists, "{of_one} bytes for samples of {sample_size}");
        let counters = *core.counters();
        assert!(counters.fragments_refused + counters.refused_announcements > 3000, "{counters:?}");
        // Another participant's announcement arrives.
        announce(&mut core, forged(2), 1, &announcement(forged(2), 1, &[3000]));
        assert_eq!(core.remote_endpoints(), 1, "beside samples of {sample_size}");

        for other in 2..=4 {
            begin_many(&mut core, forged(other), sample_size);
        }
        let of_all = core.memory() - before;
        assert!(of_all <= most + 4 * lists, "{of_all} bytes for samples of {sample_size}");
        // A sample without new fragments for a while makes room.
        let later = Time(2_000_000_000);
        let payload = announcement(forged(4), 2, &[400]);
        let header = DataFragHeader {
            reader: EntityId::UNKNOWN,
            writer: EntityId::SEDP_PUBLICATIONS_WRITER,
            sequence_number: SequenceNumber(2001),
            fragment_start: 1,
            fragments: 1,
            fragment_size: 1000,
            sample_size: payload.len() as u32,
            payload_len: payload.len() as u32,
        };
        let refused = core.counters().fragments_refused;
        core.handle_datagram(later, ADDRESS, &[by(forged(4), &header), payload].concat());
        assert_eq!(core.counters().fragments_refused, refused);
    }
}

#[test]
fn what_is_missing_is_asked_for_although_others_fill_the_memory_for_what_is_held_back() {
    let mut core = known(&[1, 2]);
    // All of these wait for the first one.
    for (numbers, len) in [(2..=300, 60_000), (301..=400, 1000)] {
        for number in numbers {
            announce(&mut core, forged(1), number, &announcement(forged(1), number, &[len]));
        }
    }
    // Complete, after a missing one, and there is no room to hold it back.
    announce(&mut core, forged(2), 2, &announcement(forged(2), 2, &[3000]));
    let heartbeat = Heartbeat {
        reader: EntityId::UNKNOWN,
        writer: WRITER,
        first: SequenceNumber(1),
        last: SequenceNumber(2),
        count: 1,
        is_final: false,
        is_liveliness: false,
    };
    core.handle_datagram(Time(2), ADDRESS, &by(forged(2), &heartbeat));
    let mut out = Outbox::new();
    core.poll_transmit(Time(2), &mut out);
    let (mut to, mut asked) = (None, Vec::new());
    out.for_each_datagram(|_, bytes| {
        for submessage in Message::parse(bytes).unwrap().submessages() {
            match submessage {
                Ok(Submessage::InfoDestination(info)) => to = Some(info.prefix),
                Ok(Submessage::AckNack(acknack)) if to == Some(forged(2)) && acknack.writer == WRITER => {
                    asked.extend(acknack.state.iter().map(|number| number.0));
                }
                _ => {}
            }
        }
    });
    assert_eq!(asked.first(), Some(&1), "{asked:?}");
    announce(&mut core, forged(2), 1, &announcement(forged(2), 1, &[]));
    announce(&mut core, forged(2), 2, &announcement(forged(2), 2, &[3000]));
    assert_eq!(core.remote_endpoints(), 2);
}

#[test]
fn announcements_of_participants_in_fragments_are_ignored() {
    let mut core = known(&[1]);
    for (source, writer) in [(forged(1), EntityId::SPDP_WRITER), (forged(2), EntityId::SPDP_WRITER)] {
        let message = in_fragments::fragment(&header(source), (writer, SequenceNumber(2)), &[7; 150], 1);
        core.handle_datagram(Time(1), ADDRESS, &message);
    }
    assert_eq!((core.counters().ignored_submessages, core.counters().unknown_participant), (1, 1));
}

#[test]
fn our_own_long_announcement_arrives() {
    let mut world = World::new();
    world.start();
    world.start();
    let partition: Vec<_> = (0..60).map(|number| format!("{number:-<60}")).collect();
    let qos = Qos { partition: partition.clone(), user_data: vec![7; 1024], ..Qos::for_writer() };
    let writer = world.add_writer(0, 1, "Square", qos);
    world.add_reader(1, 1, "Square", Qos { partition, ..Qos::for_reader() });
    world.run_for(Duration::from_millis(50));
    let events = world.events(1);
    let found = events.iter().find_map(matched).unwrap();
    assert_eq!((found.guid, found.qos.user_data.len(), found.qos.partition.len()), (writer, 1024, 60));
}

#[test]
fn what_is_too_long_to_be_announced_is_an_error() {
    let entity = EntityId::user_writer(1, false);
    let writer = |bytes| endpoint(entity, "Square", Qos { user_data: vec![7; bytes], ..Qos::for_writer() });
    let mut core = ParticipantCore::new(config(0), Time::ZERO);
    let error = core.add_writer(Time::ZERO, writer(60_000)).unwrap_err();
    assert_eq!(error, LocalEndpointError::TooLong { what: "user data", bytes: 60_000, max: 1024 });

    // With higher limits, the length of one datagram is the bound.
    let mut roomy = config(0);
    roomy.limits.user_data_bytes = 100_000;
    let mut core = ParticipantCore::new(roomy, Time::ZERO);
    core.add_writer(Time::ZERO, writer(60_000)).unwrap();
    let error = core.add_writer(Time::ZERO, writer(65_400)).unwrap_err();
    assert!(matches!(error, LocalEndpointError::NotAnnounced(WriteRefused::TooLarge { .. })), "{error}");
    let text = error.to_string();
    assert!(text.contains("bytes is too long: the limit is"), "{text}");
}
