//! Receive prediction: most datagrams have a sample of the same writer for the same reader as the
//! previous one.
//!
//! A receiver remembers the target of the last samples. A datagram that starts with the same bytes,
//! and with a sample in the most frequent form (INFO_TS and DATA, little-endian, without inline
//! QoS), is compared with that instead of being parsed and looked up submessage by submessage.
//! Everything else takes the general path through [`Receiver`](super::Receiver), which calls the
//! same functions of the reader: only the lookup is shorter. A prediction is valid until the
//! endpoints change.

use weir_wire::{Data, Emit, EntityId, Guid, Header, Submessages, Timestamp};

use super::{Endpoints, Handle};

/// The target of the last samples. The next ones are probably from the same writer, and need no
/// lookup.
#[derive(Debug)]
pub struct Prediction<R> {
    /// The version of the endpoints that it was looked up in.
    version: u64,
    /// The first bytes of messages from there.
    pub(super) header: [u8; Header::LEN],
    pub(super) writer: Guid,
    /// The only reader matched with the writer.
    pub(super) reader: R,
}

impl<R: Handle> Prediction<R> {
    pub(super) fn new(version: u64, header: &Header, writer: Guid, reader: &R) -> Self {
        Self { version, header: bytes(header), writer, reader: reader.clone() }
    }

    /// Returns whether this predicts messages of `writer` that start with `header`.
    pub(super) fn is_of(&self, header: &Header, writer: Guid) -> bool {
        self.writer == writer && self.header == bytes(header)
    }

    /// Returns the reader.
    #[inline]
    pub fn reader(&self) -> &R {
        &self.reader
    }

    /// Returns the version of the endpoints that this was looked up in; invalid once they change.
    #[inline]
    pub fn version(&self) -> u64 {
        self.version
    }
}

/// Returns the first bytes of a message with this header.
fn bytes(header: &Header) -> [u8; Header::LEN] {
    let mut bytes = [0; Header::LEN];
    header.emit(&mut bytes);
    bytes
}

/// A datagram that starts with a sample in the most frequent form, from the same source as the last
/// ones.
pub(super) struct Predicted<'t, 'd, R> {
    pub(super) prediction: &'t Prediction<R>,
    pub(super) timestamp: Timestamp,
    pub(super) data: Data<'d>,
    /// The rest of the datagram.
    pub(super) behind: Submessages<'d>,
}

impl<'t, 'd, R> Predicted<'t, 'd, R> {
    /// Parses a datagram; `None` if it is not as predicted.
    #[inline(always)]
    pub(super) fn new<E: Endpoints<Reader = R>>(
        prediction: &'t Prediction<R>,
        datagram: &'d [u8],
    ) -> Option<Self> {
        let (header, body) = datagram.split_first_chunk::<{ Header::LEN }>()?;
        if *header != prediction.header {
            return None;
        }
        let mut behind = Submessages::new(body);
        let (timestamp, data) = behind.next_stamped_data()?;
        let is_meant = data.reader == EntityId::UNKNOWN || data.reader == E::entity(&prediction.reader);
        let is_predicted = is_meant && data.writer == prediction.writer.entity;
        is_predicted.then_some(Self { prediction, timestamp, data, behind })
    }
}
