//! Receive prediction: most datagrams resemble the one before, a sample of the same writer for the
//! same reader.
//!
//! A receiver remembers writer and reader of the last samples. If a datagram begins with the same
//! header and with a sample in the usual form (INFO_TS and DATA, little-endian, without inline
//! QoS), nothing is looked up. Every other datagram takes the general path, which calls the same
//! functions of the reader. A prediction is valid until the endpoints change.

use weir_wire::{Data, Emit, EntityId, Guid, Header, Submessages, Timestamp};

use super::{Endpoints, Handle};

/// Writer and reader of the last samples.
#[derive(Debug)]
pub struct Prediction<R> {
    /// Version of the endpoints.
    version: u64,
    /// The header of the writer's messages.
    pub(super) header: [u8; Header::LEN],
    pub(super) writer: Guid,
    /// The only reader matched with the writer.
    pub(super) reader: R,
}

impl<R: Handle> Prediction<R> {
    pub(super) fn new(version: u64, header: &Header, writer: Guid, reader: &R) -> Self {
        Self { version, header: bytes(header), writer, reader: reader.clone() }
    }

    /// Whether this predicts messages of `writer` with `header`.
    pub(super) fn is_of(&self, header: &Header, writer: Guid) -> bool {
        self.writer == writer && self.header == bytes(header)
    }

    /// The reader.
    #[inline]
    pub fn reader(&self) -> &R {
        &self.reader
    }

    /// The version of the endpoints. The prediction is invalid for any other.
    #[inline]
    pub fn version(&self) -> u64 {
        self.version
    }
}

fn bytes(header: &Header) -> [u8; Header::LEN] {
    let mut bytes = [0; Header::LEN];
    header.emit(&mut bytes);
    bytes
}

/// A datagram that begins with a sample as predicted.
pub(super) struct Predicted<'t, 'd, R> {
    pub(super) prediction: &'t Prediction<R>,
    pub(super) timestamp: Timestamp,
    pub(super) data: Data<'d>,
    /// The submessages behind the sample.
    pub(super) behind: Submessages<'d>,
}

impl<'t, 'd, R> Predicted<'t, 'd, R> {
    /// Returns `None` if the datagram is not as predicted.
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
