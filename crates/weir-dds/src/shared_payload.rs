//! Large payloads shared with the application.

use std::sync::Arc;

use weir_cdr::copy::{self, Stage};
use weir_cdr::{Bytes, SharedMemory};
use weir_rtps::block::Block;
use weir_rtps::reader::RawSample;

/// Returns the payload of a sample: a large one shares the reader's memory, others are copied.
pub(crate) fn payload(raw: &RawSample<'_>) -> Bytes {
    match raw.block {
        Some(block) => BlockMemory(block).share(raw.payload),
        None => {
            copy::count_long(Stage::Decode, raw.payload.len());
            Bytes::copy_from_slice(raw.payload)
        }
    }
}

/// A block that decoded values may keep alive.
#[derive(Debug)]
pub(crate) struct BlockMemory<'a>(pub(crate) &'a Arc<Block>);

impl SharedMemory for BlockMemory<'_> {
    fn share(&self, bytes: &[u8]) -> Bytes {
        Bytes::from_owner(Owner(Arc::clone(self.0))).share(bytes)
    }
}

struct Owner(Arc<Block>);

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}
