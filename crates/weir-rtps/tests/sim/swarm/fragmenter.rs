//! A participant that sends the announcements of its endpoints in fragments, as other engines do.

use std::collections::BTreeMap;

use weir_wire::{DataFragHeader, EntityId, Header, Message, Payload, SequenceNumber, Submessage, push};

/// Bytes of an announcement per fragment: every announcement has several.
const FRAGMENT: usize = 100;

/// Divides announcements before they are sent, and repeats fragments on request.
#[derive(Default)]
pub(super) struct Fragmenter {
    /// The announcements, by writer and number.
    announced: BTreeMap<(EntityId, SequenceNumber), Vec<u8>>,
}

impl Fragmenter {
    /// Returns the messages to be sent instead of one.
    pub(super) fn divide(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let message = Message::parse(bytes).expect("what is sent is a message");
        let mut divided = Vec::new();
        for submessage in message.submessages() {
            let Ok(Submessage::Data(data)) = submessage else { continue };
            let Payload::Data(payload) = data.payload else { continue };
            if is_sedp(data.writer) {
                let at = (data.writer, data.sequence_number);
                let numbers = 1..=payload.len().div_ceil(FRAGMENT) as u32;
                divided.extend(numbers.map(|number| fragment(&message.header, at, payload, number)));
                self.announced.insert(at, payload.to_vec());
            }
        }
        divided.push(if divided.is_empty() { bytes.to_vec() } else { without_data(bytes) });
        divided
    }

    /// Returns messages with the fragments that a message requests. `header`: that of the answer.
    pub(super) fn repairs(&self, header: &Header, bytes: &[u8]) -> Vec<Vec<u8>> {
        let Ok(message) = Message::parse(bytes) else { return Vec::new() };
        let mut repairs = Vec::new();
        for submessage in message.submessages() {
            let Ok(Submessage::NackFrag(nack)) = submessage else { continue };
            let at = (nack.writer, nack.sequence_number);
            let Some(payload) = self.announced.get(&at) else { continue };
            let count = payload.len().div_ceil(FRAGMENT) as u32;
            let numbers = nack.state.iter().map(|number| number.0).filter(|number| *number <= count);
            repairs.extend(numbers.map(|number| fragment(header, at, payload, number)));
        }
        repairs
    }
}

fn is_sedp(writer: EntityId) -> bool {
    [EntityId::SEDP_PUBLICATIONS_WRITER, EntityId::SEDP_SUBSCRIPTIONS_WRITER].contains(&writer)
}

/// A message with one fragment, counted from 1.
fn fragment(
    header: &Header,
    (writer, sequence_number): (EntityId, SequenceNumber),
    payload: &[u8],
    number: u32,
) -> Vec<u8> {
    let start = (number as usize - 1) * FRAGMENT;
    let piece = &payload[start..payload.len().min(start + FRAGMENT)];
    let mut message = Vec::new();
    push(&mut message, header);
    let header = DataFragHeader {
        reader: EntityId::UNKNOWN,
        writer,
        sequence_number,
        fragment_start: number,
        fragments: 1,
        fragment_size: FRAGMENT as u16,
        sample_size: payload.len() as u32,
        payload_len: piece.len() as u32,
    };
    push(&mut message, &header);
    message.extend_from_slice(piece);
    message
}

/// The message without its DATA.
fn without_data(bytes: &[u8]) -> Vec<u8> {
    const HEADER: usize = 20;
    const DATA: u8 = 0x15;
    let (mut rest, mut at) = (bytes[..HEADER].to_vec(), HEADER);
    while at < bytes.len() {
        let end = at + 4 + usize::from(u16::from_le_bytes([bytes[at + 2], bytes[at + 3]]));
        if bytes[at] != DATA {
            rest.extend_from_slice(&bytes[at..end]);
        }
        at = end;
    }
    rest
}
