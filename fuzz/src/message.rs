//! Arbitrary bytes as an RTPS message: everything is parsed and printed, and what can be written is
//! written and parsed again.

use weir_wire::{
    AckNack, Data, DataFrag, DataHeader, Emit, EntityId, Gap, GuidPrefix, Header, Heartbeat, InfoDestination,
    InfoTimestamp, Message, ParameterId, ParameterListWriter, Payload, ProtocolVersion, SequenceNumber,
    SequenceNumberSet, Submessage, Submessages, Timestamp, VendorId, push,
};

use crate::parameter_list;

/// Parses a datagram.
///
/// # Panics
///
/// If something that was parsed differs after being written and parsed again.
pub fn run(datagram: &[u8]) {
    let Ok(message) = Message::parse(datagram) else { return };
    let printed = message.to_string();
    assert!(!printed.is_empty());
    let mut rest = message.submessages();
    while rest.clone().next().is_some_and(|it| it.is_ok()) {
        stamped(&rest);
        rest.next();
    }
    for submessage in message.submessages().map_while(Result::ok) {
        match submessage {
            Submessage::AckNack(it) => {
                assert!(it.state.iter().all(|number| it.state.contains(number)));
                same(&it, |again| *again == Submessage::AckNack(it));
            }
            Submessage::Data(it) => data(&it),
            Submessage::DataFrag(mut it) => {
                it.inline_qos.iter().for_each(parameter_list::walk);
                // Written without its inline QoS.
                it.inline_qos = None;
                same(&it, |again| *again == Submessage::DataFrag(it));
            }
            Submessage::Echo(it) => same(&it, |again| *again == Submessage::Echo(it)),
            Submessage::Ecn(it) => same(&it, |again| *again == Submessage::Ecn(it)),
            Submessage::Gap(it) => same(&it, |again| *again == Submessage::Gap(it)),
            Submessage::Heartbeat(it) => same(&it, |again| *again == Submessage::Heartbeat(it)),
            Submessage::HeartbeatFrag(it) => same(&it, |again| *again == Submessage::HeartbeatFrag(it)),
            Submessage::InfoDestination(it) => same(&it, |again| *again == Submessage::InfoDestination(it)),
            Submessage::InfoSource(it) => same(&it, |again| *again == Submessage::InfoSource(it)),
            Submessage::InfoTimestamp(it) => same(&it, |again| *again == Submessage::InfoTimestamp(it)),
            Submessage::NackFrag(it) => same(&it, |again| *again == Submessage::NackFrag(it)),
            Submessage::Receipt(it) => same(&it, |again| *again == Submessage::Receipt(it)),
            Submessage::InfoReply(_) | Submessage::Pad | Submessage::Unknown { .. } => {}
        }
    }
}

/// The fast path parses the same as the general one.
fn stamped(submessages: &Submessages<'_>) {
    let (mut quick, mut general) = (submessages.clone(), submessages.clone());
    let Some((timestamp, data)) = quick.next_stamped_data() else { return };
    let timestamp = Some(timestamp);
    assert_eq!(general.next(), Some(Ok(Submessage::InfoTimestamp(InfoTimestamp { timestamp }))));
    assert_eq!(general.next(), Some(Ok(Submessage::Data(data))));
    assert!(quick.eq(general));
}

/// Returns seeds for the corpus: name and bytes.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let (reader, writer) = (EntityId::UNKNOWN, EntityId::user_writer(1, true));
    let sequence_number = SequenceNumber(7);
    let timestamp = InfoTimestamp { timestamp: Some(Timestamp::from_unix_nanos(1_700_000_000_500_000_000)) };
    let mut inline_qos = Vec::new();
    let mut list = ParameterListWriter::new(&mut inline_qos);
    list.bytes16(ParameterId::KEY_HASH, &[9; 16]);
    list.finish();
    let header = |inline_qos: &[u8], payload: &[u8], is_key| DataHeader {
        reader,
        writer,
        sequence_number,
        inline_qos_len: inline_qos.len() as u32,
        payload_len: payload.len() as u32,
        is_key,
    };
    let payload = [0, 1, 0, 0, 1, 2, 3, 4];
    let mut sample = datagram(&timestamp);
    push(&mut sample, &header(&[], &payload, false));
    sample.extend(payload);
    let mut key = datagram(&InfoDestination { prefix: GuidPrefix([3; 12]) });
    push(&mut key, &header(&inline_qos, &payload, true));
    key.extend(&inline_qos);
    key.extend(payload);

    let mut set = SequenceNumberSet::new(SequenceNumber(5));
    set.insert(SequenceNumber(5));
    set.insert(SequenceNumber(40));
    let (first, last) = (SequenceNumber::FIRST, SequenceNumber(40));
    let mut talk =
        datagram(&Heartbeat { reader, writer, first, last, count: 1, is_final: false, is_liveliness: false });
    push(&mut talk, &AckNack { reader, writer, state: set, count: 2, is_final: true });
    push(&mut talk, &Gap { reader, writer, start: SequenceNumber(3), list: set });
    let mut fragments = datagram(&DataFrag {
        reader,
        writer,
        sequence_number,
        fragment_start: 2,
        fragments: 1,
        fragment_size: 8,
        sample_size: 20,
        is_key: false,
        inline_qos: None,
        payload: &payload,
    });
    push(&mut fragments, &InfoTimestamp { timestamp: None });
    vec![("sample", sample), ("key", key), ("talk", talk), ("fragments", fragments)]
}

/// A message with one submessage.
fn datagram(part: &impl Emit) -> Vec<u8> {
    let mut out = Vec::new();
    push(
        &mut out,
        &Header { version: ProtocolVersion::V2_5, vendor: VendorId::WEIR, prefix: GuidPrefix([1; 12]) },
    );
    push(&mut out, part);
    out
}

/// Writes a submessage into its own message, parses that, and lets the caller check the result.
fn same(part: &impl Emit, is_same: impl FnOnce(&Submessage<'_>) -> bool) {
    let bytes = datagram(part);
    assert_eq!(bytes.len(), Header::LEN + part.wire_len(), "the length is right");
    parse_one(&bytes, is_same);
}

fn parse_one(datagram: &[u8], is_same: impl FnOnce(&Submessage<'_>) -> bool) {
    let message = Message::parse(datagram).expect("our own header can be parsed");
    let mut submessages = message.submessages();
    let again = submessages.next().expect("there is one").expect("written submessages can be parsed");
    assert!(is_same(&again), "{again:?}");
    assert!(submessages.next().is_none(), "there is only one");
}

fn data(it: &Data<'_>) {
    it.inline_qos.iter().for_each(parameter_list::walk);
    let (Payload::Data(payload) | Payload::Key(payload)) = it.payload else { return };
    let inline_qos = it.inline_qos.map(|list| parameter_list::copy(&list)).unwrap_or_default();
    // The caller of `DataHeader` ensures this: length within 16 bits, and padded.
    if payload.is_empty()
        || !payload.len().is_multiple_of(4)
        || 20 + inline_qos.len() + payload.len() > 65_000
    {
        return;
    }
    let mut bytes = datagram(&DataHeader {
        reader: it.reader,
        writer: it.writer,
        sequence_number: it.sequence_number,
        inline_qos_len: inline_qos.len() as u32,
        payload_len: payload.len() as u32,
        is_key: matches!(it.payload, Payload::Key(_)),
    });
    bytes.extend(&inline_qos);
    bytes.extend(payload);
    parse_one(&bytes, |again| {
        let Submessage::Data(again) = again else { return false };
        let ids =
            (again.reader, again.writer, again.sequence_number) == (it.reader, it.writer, it.sequence_number);
        ids && again.payload == it.payload && again.inline_qos.is_some() == it.inline_qos.is_some()
    });
}
