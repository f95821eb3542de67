//! Prediction: most datagrams resemble the one before, a sample of the same writer for the same reader.
//!
//! A receiver remembers where the last samples went. A datagram that begins with the same bytes, and with a sample as most
//! do (INFO_TS and DATA, little-endian, without inline QoS), is compared with that instead of being parsed and looked up
//! submessage by submessage. Everything else takes the general path through [`Receiver`](super::Receiver), which leads to
//! the same functions of the reader: only the lookup is shorter. A prediction is valid for the endpoints that it was looked
//! up in, until they change.

use weir_wire::{Data, Emit, EntityId, Guid, Header, Submessages, Timestamp};

use super::{Endpoints, Handle};

/// Where the last samples went: the next ones are probably from the same writer, and then nothing has to be looked up.
#[derive(Debug)]
pub struct Prediction<R> {
    /// Of the endpoints that this was looked up in.
    version: u64,
    /// The first bytes of messages from there.
    pub(super) header: [u8; Header::LEN],
    pub(super) writer: Guid,
    /// The only reader that is matched with the writer.
    pub(super) reader: R,
}

impl<R: Handle> Prediction<R> {
    pub(super) fn new(version: u64, header: &Header, writer: Guid, reader: &R) -> Self {
        Self { version, header: bytes(header), writer, reader: reader.clone() }
    }

    /// Whether this is the prediction for messages of `writer` that begin with `header`.
    pub(super) fn is_of(&self, header: &Header, writer: Guid) -> bool {
        self.writer == writer && self.header == bytes(header)
    }

    /// The reader.
    #[inline]
    pub fn reader(&self) -> &R {
        &self.reader
    }

    /// The version of the endpoints that this was looked up in; invalid once they change.
    #[inline]
    pub fn version(&self) -> u64 {
        self.version
    }
}

/// The first bytes of a message with this header.
fn bytes(header: &Header) -> [u8; Header::LEN] {
    let mut bytes = [0; Header::LEN];
    header.emit(&mut bytes);
    bytes
}

/// A datagram that begins with a sample as most do, from where the last ones came from.
pub(super) struct Predicted<'t, 'd, R> {
    pub(super) prediction: &'t Prediction<R>,
    pub(super) timestamp: Timestamp,
    pub(super) data: Data<'d>,
    /// What follows.
    pub(super) behind: Submessages<'d>,
}

impl<'t, 'd, R> Predicted<'t, 'd, R> {
    /// `None` for all other datagrams.
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
