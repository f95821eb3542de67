//! Generators of submessages.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use weir_wire::{
    AckNack, DataFrag, EntityId, FragmentNumber, FragmentNumberSet, Gap, GuidPrefix, Header, Heartbeat,
    HeartbeatFrag, InfoDestination, InfoSource, InfoTimestamp, NackFrag, ProtocolVersion, SequenceNumber,
    SequenceNumberSet, Timestamp, VendorId,
};

/// The highest number that a reader accepts.
pub(crate) const LAST: i64 = i64::MAX - 1024;

/// One submessage with owned content.
#[derive(Debug, Clone)]
pub(crate) enum Part {
    AckNack(AckNack),
    Data(Sample),
    DataFrag(Fragments),
    Gap(Gap),
    Heartbeat(Heartbeat),
    HeartbeatFrag(HeartbeatFrag),
    InfoDestination(InfoDestination),
    /// Numbers of unicast and multicast locators.
    InfoReply(u32, Option<u32>),
    InfoSource(InfoSource),
    InfoTimestamp(InfoTimestamp),
    NackFrag(NackFrag),
    /// Length.
    Pad(usize),
    /// Id and body.
    Unknown(u8, Vec<u8>),
}

/// Ids and values of parameters.
#[derive(Debug, Clone)]
pub(crate) struct Parameters(pub(crate) Vec<(u16, Vec<u8>)>);

/// A DATA submessage.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) reader: EntityId,
    pub(crate) writer: EntityId,
    pub(crate) sequence_number: SequenceNumber,
    pub(crate) parameters: Option<Parameters>,
    /// None if empty.
    pub(crate) payload: Vec<u8>,
    pub(crate) is_key: bool,
}

/// A DATA_FRAG submessage.
#[derive(Debug, Clone)]
pub(crate) struct Fragments {
    pub(crate) reader: EntityId,
    pub(crate) writer: EntityId,
    pub(crate) sequence_number: SequenceNumber,
    pub(crate) fragment_start: u32,
    pub(crate) fragments: u16,
    pub(crate) fragment_size: u16,
    pub(crate) sample_size: u32,
    pub(crate) is_key: bool,
    pub(crate) parameters: Option<Parameters>,
    pub(crate) payload: Vec<u8>,
}

impl Fragments {
    /// The expected parse result, except the inline QoS.
    pub(crate) fn parse_result(&self) -> DataFrag<'_> {
        DataFrag {
            reader: self.reader,
            writer: self.writer,
            sequence_number: self.sequence_number,
            fragment_start: self.fragment_start,
            fragments: self.fragments,
            fragment_size: self.fragment_size,
            sample_size: self.sample_size,
            is_key: self.is_key,
            inline_qos: None,
            payload: &self.payload,
        }
    }
}

fn entity() -> impl Strategy<Value = EntityId> {
    any::<[u8; 4]>().prop_map(EntityId)
}

fn prefix() -> impl Strategy<Value = GuidPrefix> {
    any::<[u8; 12]>().prop_map(GuidPrefix)
}

fn version() -> impl Strategy<Value = ProtocolVersion> {
    any::<[u8; 2]>().prop_map(|[major, minor]| ProtocolVersion { major, minor })
}

fn vendor() -> impl Strategy<Value = VendorId> {
    prop_oneof![Just(VendorId::WEIR), any::<[u8; 2]>().prop_map(VendorId)]
}

/// At least `first`; small, around 2^32 and at the upper end.
fn sequence_number_from(first: i64) -> impl Strategy<Value = SequenceNumber> {
    prop_oneof![first..1000, (1i64 << 32) - 300..(1i64 << 32) + 300, LAST - 300..=LAST, first..=LAST,]
        .prop_map(SequenceNumber)
}

fn sequence_number() -> impl Strategy<Value = SequenceNumber> {
    sequence_number_from(1)
}

fn sequence_numbers() -> impl Strategy<Value = SequenceNumberSet> {
    let set = (sequence_number(), vec(0i64..256, 0..20)).prop_map(|(base, offsets)| {
        let mut set = SequenceNumberSet::new(base);
        offsets.iter().for_each(|offset| assert!(set.insert(SequenceNumber(base.0 + offset))));
        set
    });
    let preemptive = Just(SequenceNumberSet::new(SequenceNumber::ZERO));
    prop_oneof![9 => set, 1 => preemptive]
}

fn fragment_numbers() -> impl Strategy<Value = FragmentNumberSet> {
    let base = prop_oneof![1u32..1000, 1u32..=u32::MAX - 256];
    (base, vec(0u32..256, 0..20)).prop_map(|(base, offsets)| {
        let mut set = FragmentNumberSet::new(FragmentNumber(base));
        offsets.iter().for_each(|offset| assert!(set.insert(FragmentNumber(base + offset))));
        set
    })
}

fn parameters() -> impl Strategy<Value = Option<Parameters>> {
    let id = any::<u16>().prop_filter("the sentinel ends a list", |id| *id != 1);
    let value = vec(any::<[u8; 4]>(), 0..6).prop_map(|words| words.concat());
    option::of(vec((id, value), 0..5).prop_map(Parameters))
}

fn sample() -> impl Strategy<Value = Part> {
    let payload = vec(any::<[u8; 4]>(), 0..20).prop_map(|words| words.concat());
    (entity(), entity(), sequence_number(), parameters(), payload, any::<bool>()).prop_map(
        |(reader, writer, sequence_number, parameters, payload, is_key)| {
            Part::Data(Sample { reader, writer, sequence_number, parameters, payload, is_key })
        },
    )
}

fn fragments() -> impl Strategy<Value = Part> {
    let numbers = (1u16..300, 1u16..5, 0u32..5, 0u32..5, any::<prop::sample::Index>());
    (entity(), entity(), sequence_number(), numbers, parameters(), any::<bool>()).prop_map(
        |(reader, writer, sequence_number, (size, count, before, behind, cut), parameters, is_key)| {
            let total = before + u32::from(count) + behind;
            // The last fragment of the sample has at least one byte.
            let sample_size = total * u32::from(size) - cut.index(usize::from(size)) as u32;
            let start = before * u32::from(size);
            let len = (u32::from(count) * u32::from(size)).min(sample_size - start);
            Part::DataFrag(Fragments {
                reader,
                writer,
                sequence_number,
                fragment_start: before + 1,
                fragments: count,
                fragment_size: size,
                sample_size,
                is_key,
                parameters,
                payload: (0..len).map(|n| n as u8).collect(),
            })
        },
    )
}

fn control() -> impl Strategy<Value = Part> {
    let acknack = (entity(), entity(), sequence_numbers(), any::<u32>(), any::<bool>());
    let gap = (entity(), entity(), sequence_numbers(), 0i64..1000);
    let heartbeat = (entity(), entity(), sequence_number(), -1i64..1000, any::<u32>(), any::<[bool; 2]>());
    let heartbeat_frag = (entity(), entity(), sequence_number(), 1u32.., any::<u32>());
    let nack_frag = (entity(), entity(), sequence_number(), fragment_numbers(), any::<u32>());
    prop_oneof![
        acknack.prop_map(|(reader, writer, state, count, is_final)| {
            Part::AckNack(AckNack { reader, writer, state, count, is_final })
        }),
        gap.prop_map(|(reader, writer, mut list, len)| {
            if list.base() == SequenceNumber::ZERO {
                list = SequenceNumberSet::new(SequenceNumber::FIRST);
            }
            let start = SequenceNumber((list.base().0 - len).max(1));
            Part::Gap(Gap { reader, writer, start, list })
        }),
        heartbeat.prop_map(|(reader, writer, first, len, count, [is_final, is_liveliness])| {
            let last = SequenceNumber((first.0 + len).min(LAST));
            Part::Heartbeat(Heartbeat { reader, writer, first, last, count, is_final, is_liveliness })
        }),
        heartbeat_frag.prop_map(|(reader, writer, sequence_number, last_fragment, count)| {
            Part::HeartbeatFrag(HeartbeatFrag { reader, writer, sequence_number, last_fragment, count })
        }),
        nack_frag.prop_map(|(reader, writer, sequence_number, state, count)| {
            Part::NackFrag(NackFrag { reader, writer, sequence_number, state, count })
        }),
    ]
}

fn info() -> impl Strategy<Value = Part> {
    let time = any::<[u32; 2]>().prop_map(|[seconds, fraction]| Timestamp { seconds, fraction });
    let time = time.prop_filter("not a time", |time| *time != Timestamp::INVALID);
    prop_oneof![
        prefix().prop_map(|prefix| Part::InfoDestination(InfoDestination { prefix })),
        (version(), vendor(), prefix()).prop_map(|(version, vendor, prefix)| Part::InfoSource(InfoSource {
            version,
            vendor,
            prefix
        })),
        option::of(time).prop_map(|timestamp| Part::InfoTimestamp(InfoTimestamp { timestamp })),
    ]
}

/// Submessages that this crate writes.
pub(crate) fn written() -> impl Strategy<Value = Part> {
    prop_oneof![info(), control(), sample(), fragments()]
}

/// Submessages that this crate reads.
pub(crate) fn any_part() -> impl Strategy<Value = Part> {
    let known = [0x01, 0x06, 0x07, 0x08, 0x09, 0x0c, 0x0e, 0x0f, 0x12, 0x13, 0x15, 0x16];
    let id = any::<u8>().prop_filter("known", move |id| !known.contains(id));
    prop_oneof![
        8 => written(),
        1 => (0usize..3).prop_map(|words| Part::Pad(4 * words)),
        1 => (0u32..4, option::of(0u32..4)).prop_map(|(one, two)| Part::InfoReply(one, two)),
        // Without a body it would extend to the end of the message.
        1 => (id, vec(any::<u8>(), 1..20)).prop_map(|(id, body)| Part::Unknown(id, body)),
    ]
}

pub(crate) fn header() -> impl Strategy<Value = Header> {
    (any::<u8>(), vendor(), prefix()).prop_map(|(minor, vendor, prefix)| Header {
        version: ProtocolVersion { major: 2, minor },
        vendor,
        prefix,
    })
}
