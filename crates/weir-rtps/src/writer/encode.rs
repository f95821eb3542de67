//! The second step of a write: encodes the payload where it is sent from, and adds headers.

use alloc::boxed::Box;
use alloc::vec;

use weir_wire::Timestamp;

use super::admit::Form;
use super::state::WriterCore;
use crate::config;

impl WriterCore {
    /// Encodes a payload in the history, as the sample to be committed next.
    #[inline(always)]
    pub(super) fn encode<E>(
        &mut self,
        form: Form,
        timestamp: Timestamp,
        payload_len: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let sn = self.history.next();
        let (room, payload_at) = form.reserve(&mut self.history, payload_len);
        fill(&mut room[payload_at..][..payload_len])?;
        match form {
            Form::Datagram | Form::FirstOfBatch => self.template.fill(room, sn, timestamp, payload_len),
            Form::Extension { .. } => self.template.fill_extension(room, sn, payload_len),
            Form::Fragments { .. } => {}
        }
        Ok(())
    }
}

/// Memory for single-sample datagrams that are not kept. It is never shared, so it is always free.
#[derive(Debug, Default)]
pub(super) struct Unkept {
    bytes: Box<[u8]>,
    /// Where datagrams begin: in the middle of a page, see
    /// [`Block::for_sending`](crate::block::Block).
    start: usize,
}

impl Unkept {
    #[inline]
    pub(super) fn reserve(&mut self, len: usize) -> &mut [u8] {
        if self.bytes.len() < self.start + len {
            self.grow();
        }
        &mut self.bytes[self.start..self.start + len]
    }

    #[cold]
    fn grow(&mut self) {
        self.allocate(config::DATAGRAM_MAX_BYTES);
    }

    fn allocate(&mut self, len_max: usize) {
        self.bytes = vec![0; PAGE_BYTES + len_max].into_boxed_slice();
        self.start = (START_IN_PAGE + PAGE_BYTES - self.bytes.as_ptr() as usize % PAGE_BYTES) % PAGE_BYTES;
    }

    /// Reserves memory for datagrams of at most so many bytes; 0: none.
    pub(super) fn fixed(len_max: usize) -> Self {
        let mut unkept = Self::default();
        if len_max > 0 {
            unkept.allocate(len_max.min(config::DATAGRAM_MAX_BYTES));
        }
        unkept
    }

    /// Returns the memory for datagrams of at most so many bytes.
    pub(super) fn bytes(len_max: usize) -> usize {
        if len_max == 0 { 0 } else { PAGE_BYTES.saturating_add(len_max.min(config::DATAGRAM_MAX_BYTES)) }
    }

    /// Returns its length in bytes.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }
}

const PAGE_BYTES: usize = 4096;
/// Half a page and a cache line.
const START_IN_PAGE: usize = 2048 + 64;
