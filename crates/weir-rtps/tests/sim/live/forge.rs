//! An attacker's messages, submessage by submessage: well-formed unless specified otherwise.

use core::net::{Ipv4Addr, SocketAddrV4};

use weir_rtps::spdp;
use weir_wire::{
    AckNack, DataFragHeader, DataHeader, Emit, EntityId, FragmentNumber, FragmentNumberSet, Gap, Guid,
    GuidPrefix, Header, Heartbeat, HeartbeatFrag, InfoDestination, InfoSource, Locator, NackFrag,
    ParameterId, ParameterListWriter, ProtocolVersion, SequenceNumber, SequenceNumberSet, VendorId, push,
};

/// The source of the attacks.
pub(crate) const ATTACKER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 66);
/// A third party that must not receive traffic.
pub(crate) const BYSTANDER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 99), 53);

/// An RTPS message under construction.
pub(crate) struct Forged(pub(crate) Vec<u8>);

impl Forged {
    /// Starts a message in a participant's name.
    pub(crate) fn by(prefix: GuidPrefix) -> Self {
        let mut bytes = Vec::new();
        push(&mut bytes, &Header { version: ProtocolVersion::V2_5, vendor: VendorId::WEIR, prefix });
        Self(bytes)
    }

    fn with(mut self, it: &impl Emit) -> Self {
        push(&mut self.0, it);
        self
    }

    /// Addresses the rest to one participant.
    pub(crate) fn to(self, prefix: GuidPrefix) -> Self {
        self.with(&InfoDestination { prefix })
    }

    /// Continues in another participant's name.
    pub(crate) fn relayed(self, prefix: GuidPrefix) -> Self {
        self.with(&InfoSource { version: ProtocolVersion::V2_5, vendor: VendorId::WEIR, prefix })
    }

    /// DATA for all readers.
    pub(crate) fn data(self, writer: EntityId, number: i64, payload: &[u8]) -> Self {
        self.any_data(writer, number, &[], payload, false)
    }

    /// DATA with inline QoS, whose payload may be a key.
    pub(crate) fn any_data(
        self,
        writer: EntityId,
        number: i64,
        inline_qos: &[u8],
        payload: &[u8],
        is_key: bool,
    ) -> Self {
        let mut message = self.with(&DataHeader {
            reader: EntityId::UNKNOWN,
            writer,
            sequence_number: SequenceNumber(number),
            inline_qos_len: inline_qos.len() as u32,
            payload_len: payload.len() as u32,
            is_key,
        });
        message.0.extend_from_slice(inline_qos);
        message.0.extend_from_slice(payload);
        message
    }

    /// One fragment: its number, the length of each, that of the sample, and the bytes.
    pub(crate) fn frag(
        self,
        writer: EntityId,
        number: i64,
        (start, fragment_size, sample_size): (u32, u16, u32),
        bytes: &[u8],
    ) -> Self {
        let mut message = self.with(&DataFragHeader {
            reader: EntityId::UNKNOWN,
            writer,
            sequence_number: SequenceNumber(number),
            fragment_start: start,
            fragments: 1,
            fragment_size,
            sample_size,
            payload_len: bytes.len() as u32,
        });
        message.0.extend_from_slice(bytes);
        message
    }

    /// A HEARTBEAT that requests a response.
    pub(crate) fn heartbeat(self, writer: EntityId, first: i64, last: i64, count: u32) -> Self {
        self.with(&Heartbeat {
            reader: EntityId::UNKNOWN,
            writer,
            first: SequenceNumber(first),
            last: SequenceNumber(last),
            count,
            is_final: false,
            is_liveliness: false,
        })
    }

    /// A HEARTBEAT_FRAG.
    pub(crate) fn heartbeat_frag(
        self,
        writer: EntityId,
        number: i64,
        last_fragment: u32,
        count: u32,
    ) -> Self {
        let (reader, sequence_number) = (EntityId::UNKNOWN, SequenceNumber(number));
        self.with(&HeartbeatFrag { reader, writer, sequence_number, last_fragment, count })
    }

    /// A GAP from `start` to before `end`, and the numbers of `more`.
    pub(crate) fn gap(self, writer: EntityId, start: i64, end: i64, more: &[i64]) -> Self {
        let list = set(end, more);
        self.with(&Gap { reader: EntityId::UNKNOWN, writer, start: SequenceNumber(start), list })
    }

    /// An ACKNACK that requests a response.
    pub(crate) fn acknack(
        self,
        (reader, writer): (EntityId, EntityId),
        base: i64,
        missing: &[i64],
        count: u32,
    ) -> Self {
        self.with(&AckNack { reader, writer, state: set(base, missing), count, is_final: false })
    }

    /// A NACK_FRAG.
    pub(crate) fn nack_frag(
        self,
        (reader, writer): (EntityId, EntityId),
        number: i64,
        missing: &[u32],
        count: u32,
    ) -> Self {
        let mut state = FragmentNumberSet::new(FragmentNumber(missing.first().copied().unwrap_or(1)));
        missing.iter().for_each(|number| _ = state.insert(FragmentNumber(*number)));
        self.with(&NackFrag { reader, writer, sequence_number: SequenceNumber(number), state, count })
    }

    /// Any submessage, little-endian, with a length that may be false.
    pub(crate) fn raw(mut self, id: u8, flags: u8, len: u16, body: &[u8]) -> Self {
        self.0.extend_from_slice(&[id, flags | 1]);
        self.0.extend_from_slice(&len.to_le_bytes());
        self.0.extend_from_slice(body);
        self
    }
}

fn set(base: i64, members: &[i64]) -> SequenceNumberSet {
    let mut set = SequenceNumberSet::new(SequenceNumber(base));
    members.iter().for_each(|number| _ = set.insert(SequenceNumber(*number)));
    set
}

/// The payload of an announcement, with the parameters that `write` adds.
pub(crate) fn parameters(write: impl FnOnce(&mut ParameterListWriter<'_>)) -> Vec<u8> {
    let mut payload = vec![0, 3, 0, 0];
    let mut list = ParameterListWriter::new(&mut payload);
    write(&mut list);
    list.finish();
    payload
}

/// An announcement of a participant with an address for responses.
pub(crate) fn participant(prefix: GuidPrefix, answer_to: SocketAddrV4) -> Vec<u8> {
    participant_with(prefix, answer_to, |_| {})
}

/// The same with more parameters.
pub(crate) fn participant_with(
    prefix: GuidPrefix,
    answer_to: SocketAddrV4,
    more: impl FnOnce(&mut ParameterListWriter<'_>),
) -> Vec<u8> {
    parameters(|list| {
        list.guid(ParameterId::PARTICIPANT_GUID, Guid::new(prefix, EntityId::PARTICIPANT));
        list.u32(ParameterId::BUILTIN_ENDPOINT_SET, spdp::builtin_endpoints::WEIR);
        list.locator(ParameterId::METATRAFFIC_UNICAST_LOCATOR, Locator::udp_v4(answer_to));
        list.locator(ParameterId::DEFAULT_UNICAST_LOCATOR, Locator::udp_v4(answer_to));
        more(list);
    })
}

/// An announcement of a reliable endpoint of a topic, with the parameters that `more` adds.
pub(crate) fn endpoint(guid: Guid, topic: &str, more: impl FnOnce(&mut ParameterListWriter<'_>)) -> Vec<u8> {
    parameters(|list| {
        list.guid(ParameterId::ENDPOINT_GUID, guid);
        list.string(ParameterId::TOPIC_NAME, topic);
        list.string(ParameterId::TYPE_NAME, "Type");
        list.raw(ParameterId::RELIABILITY, &[2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        more(list);
    })
}

/// Inline QoS of a disposal.
pub(crate) fn disposal(guid: Guid) -> Vec<u8> {
    let mut inline_qos = Vec::new();
    let mut list = ParameterListWriter::new(&mut inline_qos);
    list.guid(ParameterId::KEY_HASH, guid);
    list.bytes4(ParameterId::STATUS_INFO, [0, 0, 0, 3]);
    list.finish();
    inline_qos
}

/// A sample of the test's topics: the encapsulation header, the key, the number, and filling.
pub(crate) fn sample(key: u32, number: u64, len: usize) -> Vec<u8> {
    let mut payload = vec![0, 1, 0, 0];
    payload.extend_from_slice(&key.to_le_bytes());
    payload.extend_from_slice(&number.to_le_bytes());
    payload.resize(len.max(16), number as u8);
    payload
}
