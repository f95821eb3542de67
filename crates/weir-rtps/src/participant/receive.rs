//! Parses metatraffic: its source, its destination, and the builtin endpoint (RTPS 2.5,
//! 8.3.4).
//!
//! Announcements of endpoints may arrive in fragments; those of participants may not. SPDP is best
//! effort, so a lost fragment is never sent again, and its sender is unknown, so any address could
//! claim memory with fragments that it never completes. Participant announcements are short, and
//! the engines send each in one DATA. Fragments of one count as ignored.

use alloc::sync::Arc;
use core::net::SocketAddrV4;

use weir_wire::{
    Data, EntityId, Guid, GuidPrefix, InfoDestination, InfoSource, Message, Payload, Submessage, Timestamp,
    VendorId,
};

use super::ParticipantCore;
use super::claim::What;
use super::remote_participant::{kind_of, names};
use super::reserve::Announced;
use crate::discovery_data::DiscoveryDataError;
use crate::inline_qos;
use crate::key_hasher::fingerprint;
use crate::receiver::submessages::{self, Sink};
use crate::sedp::{self, EndpointKind};
use crate::spdp;
use crate::time::Time;
use crate::writer::ChangeKind;

/// A message being parsed.
struct Receiver<'a> {
    core: &'a mut ParticipantCore,
    now: Time,
    /// The source address.
    from: SocketAddrV4,
    is_from_group: bool,
    source_vendor: VendorId,
    /// Whether the submessages are for this participant only.
    is_directed: bool,
    /// The last participant whose submessages were for builtin endpoints.
    handled: Option<GuidPrefix>,
}

impl ParticipantCore {
    /// Handles a datagram that arrived `from` there on a metatraffic address. Invalid content is
    /// counted and dropped.
    pub fn handle_datagram(&mut self, now: Time, from: SocketAddrV4, datagram: &[u8]) {
        self.handle(now, from, datagram, false);
    }

    /// As [`handle_datagram`](Self::handle_datagram), for one that arrived through the multicast group.
    pub fn handle_group_datagram(&mut self, now: Time, from: SocketAddrV4, datagram: &[u8]) {
        self.handle(now, from, datagram, true);
    }

    fn handle(&mut self, now: Time, from: SocketAddrV4, datagram: &[u8], is_from_group: bool) {
        if self.is_closed {
            return;
        }
        let Ok(message) = Message::parse(datagram) else {
            self.counters.malformed_messages += 1;
            return;
        };
        let (own, source) = (self.config.guid_prefix, message.header.prefix);
        if source == own {
            self.counters.own_messages += 1;
            return;
        }
        self.arrived(now, source, datagram.len());
        let source_vendor = message.header.vendor;
        let (is_directed, handled) = (false, None);
        let mut receiver =
            Receiver { core: self, now, from, is_from_group, source_vendor, is_directed, handled };
        let is_malformed =
            submessages::walk(message.submessages(), own, source, None, &mut receiver).is_err();
        let handled = receiver.handled;
        self.counters.malformed_submessages += u64::from(is_malformed);
        self.take_endpoint_announcements(now, handled);
        self.take_participant_messages();
        let refusals = self.builtin.take_refusals();
        self.counters.refused_announcements += refusals.oversized;
        self.counters.fragments_refused += refusals.fragments;
    }

    /// Processes the announcements that the builtin readers have put in order. `from`: the last participant whose
    /// submessages they have handled.
    ///
    /// Announcements of others may be among them, which had found no room before.
    fn take_endpoint_announcements(&mut self, now: Time, mut from: Option<GuidPrefix>) {
        let limits = self.config.limits;
        loop {
            let mut taken = None;
            let data = &mut self.announced;
            let is_some = self.builtin.take_next(|kind, sample| {
                let is_alive = sample.kind == ChangeKind::Alive;
                let guid = if is_alive {
                    sedp::decode_into(kind, sample.payload, sample.key_hash, &limits, data)
                        .map(|()| data.guid)
                } else {
                    sedp::decode_key(sample.payload)
                };
                taken = Some((kind, sample.writer.prefix, guid, is_alive));
            });
            if !is_some {
                return from.into_iter().for_each(|source| self.builtin.release_room(source));
            }
            if let Some((kind, source, guid, is_alive)) = taken {
                self.builtin.release_room_before(&mut from, source);
                self.handle_endpoint(now, (kind, source), guid, is_alive);
            }
        }
    }

    /// Decodes the announcement of a participant. If it is the one that is known, byte by byte, returns that.
    ///
    /// At rest, all announcements are repetitions, which a hash shows. A participant that finds two announcements with
    /// one hash hides its own change. One that repeats another's announcement renews its lease, as before.
    fn announced(
        &mut self,
        source: GuidPrefix,
        payload: &[u8],
        key_hash: Option<[u8; 16]>,
        vendor: VendorId,
    ) -> Result<Arc<Announced>, DiscoveryDataError> {
        let fingerprint = fingerprint(payload) ^ key_hash.map_or(0, |key| fingerprint(&key));
        if let Some(remote) = self.remotes.get(&source)
            && (remote.data.fingerprint, remote.data.vendor) == (fingerprint, vendor)
        {
            return Ok(Arc::clone(&remote.data));
        }
        let (decoded, data) = self.reserve.announced.fill(Announced::new, |free| {
            free.fingerprint = fingerprint;
            let (limits, memory) = (&self.config.limits, (&mut free.data, &mut free.spare_name));
            spdp::decode_into(payload, key_hash, vendor, limits, memory)
        });
        decoded.map(|()| data)
    }

    /// `guid`: that of the endpoint that is announced or, unless it is alive, gone.
    fn handle_endpoint(
        &mut self,
        now: Time,
        (kind, source): (EndpointKind, GuidPrefix),
        guid: Result<Guid, DiscoveryDataError>,
        is_alive: bool,
    ) {
        let Ok(guid) = guid else {
            self.counters.refused_announcements += 1;
            return;
        };
        if guid.prefix != source || kind_of(guid.entity) != Some(kind) {
            self.counters.foreign_announcements += 1;
            return;
        }
        if !is_alive {
            return self.endpoint_withdrawn(now, guid);
        }
        let data = core::mem::replace(&mut self.announced, sedp::EndpointData::nothing());
        self.endpoint_announced(source, &data);
        self.announced = data;
    }
}

impl Sink for Receiver<'_> {
    fn data(&mut self, writer: &Guid, data: &Data<'_>, timestamp: Option<Timestamp>) {
        self.other(writer.prefix, &Submessage::Data(*data), timestamp);
    }

    fn other(&mut self, source: GuidPrefix, submessage: &Submessage<'_>, timestamp: Option<Timestamp>) {
        let Self { core, now, .. } = self;
        let now = *now;
        if source == core.config.guid_prefix {
            return;
        }
        if let Submessage::Data(data) = submessage
            && data.writer == EntityId::SPDP_WRITER
            && matches!(data.reader, EntityId::UNKNOWN | EntityId::SPDP_READER)
        {
            return self.participant_data(source, data);
        }
        let Some(remote) = core.remotes.get_mut(&source) else {
            core.counters.unknown_participant += 1;
            if self.is_directed {
                core.unknown_participant_knows_us(now, source);
            }
            return;
        };
        let (host, has_answered) = (*self.from.ip(), remote.has_answered);
        let is_home = remote.heard_from(now, host);
        remote.knows_us |= self.is_directed && is_home;
        remote.claims.heard_from(host);
        // The usual answer goes to the addresses that are known.
        let is_question = matches!(submessage, Submessage::Heartbeat(heartbeat) if !heartbeat.is_final);
        let answer = (source, self.from);
        if is_question && self.is_directed && !is_home && !core.answers.contains(&answer) {
            if core.answers.len() < core.answers_max() {
                core.answers.push(answer);
                core.credit(now, host);
            } else {
                core.counters.replies_suppressed += 1;
            }
        }
        if self.is_directed {
            core.introduce_now(now, source);
        }
        if let Submessage::AckNack(acknack) = submessage
            && acknack.writer == EntityId::SEDP_PUBLICATIONS_WRITER
        {
            core.path_size_answered(now, source, acknack.count);
        }
        let is_pad = matches!(submessage, Submessage::Pad);
        let is_used = is_pad || core.builtin.handle(now, source, submessage, timestamp);
        core.counters.ignored_submessages += u64::from(!is_used);
        core.builtin.release_room_before(&mut self.handled, source);
        if !has_answered && let Some(is_right) = core.builtin.take_answer(source) {
            core.answer_given(now, source, is_home, is_right);
        }
    }

    fn source(&mut self, info: &InfoSource) {
        self.source_vendor = info.vendor;
    }

    fn destination(&mut self, info: &InfoDestination) {
        self.is_directed = info.prefix != GuidPrefix::UNKNOWN;
    }
}

impl Receiver<'_> {
    /// Handles an announcement or a goodbye (RTPS 2.5, 8.5.3).
    fn participant_data(&mut self, source: GuidPrefix, data: &Data<'_>) {
        let Self { core, now, from, .. } = self;
        let (kind, key_hash) = inline_qos::decode(data.inline_qos.as_ref());
        if kind != ChangeKind::Alive {
            let payload = match data.payload {
                Payload::Data(payload) | Payload::Key(payload) => payload,
                Payload::None => &[],
            };
            // The prefix belongs to the sender only, so without a key it is about the sender.
            let prefix = spdp::decode_key(payload)
                .or(key_hash.map(Guid::from_bytes))
                .map_or(source, |guid| guid.prefix);
            if prefix != source {
                core.counters.foreign_announcements += 1;
            } else if core.remotes.get(&prefix).is_none_or(|remote| remote.is_at(*from.ip())) {
                core.participant_lost(*now, prefix);
            } else {
                core.claimed(*now, prefix, *from.ip(), What::Left);
            }
            return;
        }
        let Payload::Data(payload) = data.payload else {
            core.counters.refused_announcements += 1;
            return;
        };
        match core.announced(source, payload, key_hash, self.source_vendor) {
            Err(_) => core.counters.refused_announcements += 1,
            Ok(data) if data.prefix != source => core.counters.foreign_announcements += 1,
            Ok(data) if data.domain_id.is_some_and(|id| id != core.config.domain_id) => {
                core.counters.other_domain += 1;
            }
            Ok(data) => {
                // Sent to us directly: it has received from us, unless another host names its addresses.
                let is_directed = self.is_directed && names(&data, *from.ip());
                core.participant_announced(*now, *from.ip(), data, is_directed);
                if self.is_from_group {
                    core.heard_by_group(*now, source, *from.ip());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use core::net::Ipv4Addr;
    use core::time::Duration;

    use weir_wire::{Emit, Gap, Header, Heartbeat, ProtocolVersion, SequenceNumber, SequenceNumberSet, push};

    use super::*;
    use crate::discovery_data::Locators;
    use crate::outbox::Outbox;
    use crate::participant::ParticipantConfig;
    use crate::spdp::{ParticipantData, builtin_endpoints};

    #[test]
    fn an_announcement_with_the_same_bytes_is_not_decoded_again() {
        let (now, source) = (Time(1), GuidPrefix([2; 12]));
        let mut core = ParticipantCore::new(ParticipantConfig::new(GuidPrefix([1; 12]), 0), now);
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7410);
        let mut data = ParticipantData {
            prefix: source,
            vendor: VendorId::WEIR,
            builtin_endpoints: builtin_endpoints::WEIR,
            metatraffic_unicast: Locators { addresses: vec![address], skipped: 0 },
            ..ParticipantData::nothing()
        };
        let decode = |core: &mut ParticipantCore, data: &ParticipantData, vendor| {
            let mut payload = Vec::new();
            spdp::encode(data, &mut payload);
            core.announced(source, &payload, None, vendor).unwrap()
        };
        let first = decode(&mut core, &data, VendorId::WEIR);
        core.participant_announced(now, *address.ip(), Arc::clone(&first), false);
        assert!(Arc::ptr_eq(&first, &decode(&mut core, &data, VendorId::WEIR)));
        assert!(!Arc::ptr_eq(&first, &decode(&mut core, &data, VendorId::CYCLONE)));
        data.lease = Duration::from_secs(7);
        assert_eq!(decode(&mut core, &data, VendorId::WEIR).lease, data.lease);
    }

    /// A participant announces itself from an address.
    fn announce(core: &mut ParticipantCore, now: Time, prefix: GuidPrefix, from: SocketAddrV4) {
        let data = ParticipantData {
            prefix,
            vendor: VendorId::WEIR,
            builtin_endpoints: builtin_endpoints::WEIR,
            metatraffic_unicast: Locators { addresses: vec![from], skipped: 0 },
            ..ParticipantData::nothing()
        };
        let mut payload = Vec::new();
        spdp::encode(&data, &mut payload);
        let data = core.announced(prefix, &payload, None, VendorId::WEIR).unwrap();
        core.participant_announced(now, *from.ip(), data, false);
    }

    #[test]
    fn answers_to_addresses_that_were_not_named_are_bounded() {
        let now = Time(1);
        let (own, source) = (GuidPrefix([1; 12]), GuidPrefix([2; 12]));
        let table = crate::limits::Limits::SMALL;
        let mut core = ParticipantCore::new(ParticipantConfig::new(own, 0).with_limits(table), now);
        let from = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7410);
        announce(&mut core, now, source, from);
        let room = core.answers.capacity();
        for number in 1..=100 {
            let (reader, writer) = (EntityId::UNKNOWN, EntityId::SEDP_PUBLICATIONS_WRITER);
            let (first, last) = (SequenceNumber(1), SequenceNumber(0));
            let (is_final, is_liveliness) = (false, false);
            let heartbeat = Heartbeat { reader, writer, first, last, count: number, is_final, is_liveliness };
            let mut datagram = Vec::new();
            let (version, vendor) = (ProtocolVersion::V2_5, VendorId::WEIR);
            push(&mut datagram, &Header { version, vendor, prefix: source });
            push(&mut datagram, &InfoDestination { prefix: own });
            push(&mut datagram, &heartbeat);
            let from = SocketAddrV4::new(Ipv4Addr::from_bits(0x0a00_0000 + number), 7410);
            core.handle_datagram(now, from, &datagram);
        }
        assert_eq!((core.answers.len(), core.answers.capacity()), (2 * table.participants, room));
        assert!(core.counters.replies_suppressed >= 100 - 2 * table.participants as u64);
    }

    /// Lists become empty without an announcement, too, and those of several participants by one datagram.
    #[test]
    fn lists_of_what_is_missing_are_returned_for_each_source_once_nothing_is() {
        let now = Time(1);
        let mut core = ParticipantCore::new(ParticipantConfig::new(GuidPrefix([1; 12]), 0), now);
        let sources = [2, 3, 4].map(|number| GuidPrefix([number; 12]));
        let from = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7410);
        sources.iter().for_each(|prefix| announce(&mut core, now, *prefix, from));
        let before = core.builtin.waiting_memory();
        let (reader, writer) = (EntityId::UNKNOWN, EntityId::SEDP_PUBLICATIONS_WRITER);
        let mut out = Outbox::new();
        for prefix in sources {
            let (first, last) = (SequenceNumber(1), SequenceNumber(40));
            let (is_final, is_liveliness) = (false, false);
            let heartbeat = Heartbeat { reader, writer, first, last, count: 1, is_final, is_liveliness };
            core.handle_datagram(now, from, &message(&[prefix], &heartbeat));
        }
        core.poll_transmit(now, &mut out);
        assert!(core.builtin.waiting_memory() > before, "announcements are missing");
        let list = SequenceNumberSet::new(SequenceNumber(41));
        let gap = Gap { reader, writer, start: SequenceNumber(1), list };
        core.handle_datagram(now, from, &message(&sources[..2], &gap));
        core.handle_datagram(now, from, &message(&sources[2..], &gap));
        assert_eq!(core.builtin.waiting_memory(), before);
    }

    /// A datagram of the first source, which relays for the others: the same submessage of each.
    fn message(sources: &[GuidPrefix], submessage: &impl Emit) -> Vec<u8> {
        let (version, vendor) = (ProtocolVersion::V2_5, VendorId::WEIR);
        let mut bytes = Vec::new();
        for (number, prefix) in sources.iter().copied().enumerate() {
            match number {
                0 => push(&mut bytes, &Header { version, vendor, prefix }),
                _ => push(&mut bytes, &InfoSource { version, vendor, prefix }),
            }
            push(&mut bytes, submessage);
        }
        bytes
    }
}
