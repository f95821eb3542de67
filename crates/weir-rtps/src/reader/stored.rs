//! A sample whose payload is stored, before it enters the queue of the cache.

use weir_wire::Timestamp;

use super::chunks::ChunkRef;
use crate::key_hasher::Key;
use crate::writer::ChangeKind;

/// A sample whose payload is stored in [`Chunks`](super::chunks::Chunks).
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredSample {
    pub(super) at: ChunkRef,
    pub(super) kind: ChangeKind,
    /// Separate from `key`, since an `Option` of a key is half as large again and a reader may hold
    /// back thousands.
    has_key: bool,
    key: Key,
    pub(super) source_timestamp: Option<Timestamp>,
}

impl StoredSample {
    #[inline(always)]
    pub(super) fn new(
        at: ChunkRef,
        kind: ChangeKind,
        key: Option<Key>,
        source_timestamp: Option<Timestamp>,
    ) -> Self {
        Self { at, kind, has_key: key.is_some(), key: key.unwrap_or_default(), source_timestamp }
    }

    /// Length of the payload in bytes.
    pub(super) fn len(&self) -> usize {
        self.at.len as usize
    }

    /// The key of its instance.
    #[inline]
    pub(super) fn key(&self) -> Option<Key> {
        self.has_key.then_some(self.key)
    }
}
