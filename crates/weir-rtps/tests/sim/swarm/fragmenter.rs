//! A participant that sends the announcements of its endpoints in fragments, as other engines do.

use std::collections::BTreeMap;

use weir_wire::{EntityId, Header, Message, Payload, SequenceNumber, Submessage};

#[path = "../../support/fragments.rs"]
mod fragments;

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
            if fragments::is_sedp(data.writer) {
                let at = (data.writer, data.sequence_number);
                divided.extend(fragments::all(&message.header, at, payload));
                self.announced.insert(at, payload.to_vec());
            }
        }
        divided.push(if divided.is_empty() { bytes.to_vec() } else { fragments::without_data(bytes) });
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
            let count = fragments::count(payload);
            let numbers = nack.state.iter().map(|number| number.0).filter(|number| *number <= count);
            repairs.extend(numbers.map(|number| fragments::fragment(header, at, payload, number)));
        }
        repairs
    }
}
