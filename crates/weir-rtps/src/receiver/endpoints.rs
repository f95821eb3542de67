//! How the receiver finds endpoints, and gets at their cores.

use core::ops::DerefMut;
use std::sync::Arc;

use weir_wire::{EntityId, Guid};

use crate::reader::ReaderCore;
use crate::writer::WriterCore;

/// The writers and readers of a participant.
///
/// The receiver never holds two locks at a time.
pub trait Endpoints {
    /// Names a reader.
    type Reader: Handle;
    /// Names a writer.
    type Writer: Handle;
    /// A reader's core as long as it is locked.
    type Locked<'a>: DerefMut<Target = ReaderCore>
    where
        Self: 'a;

    /// The readers that a remote writer is matched with, if there are any.
    fn readers_of(&self, writer: &Guid) -> Option<&[Self::Reader]>;

    /// All readers, in any order.
    fn readers(&self) -> impl Iterator<Item = &Self::Reader>;

    /// The writer with this entity id.
    fn writer(&self, entity: EntityId) -> Option<&Self::Writer>;

    /// The entity id of a reader.
    fn entity(reader: &Self::Reader) -> EntityId;

    /// Locks a reader.
    fn lock<'a>(&'a self, reader: &'a Self::Reader) -> Self::Locked<'a>;

    /// Locks a writer, and calls `f` with it.
    fn with_writer<T>(&self, writer: &Self::Writer, f: impl FnOnce(&mut WriterCore) -> T) -> T;

    /// Called when a batch has left unread samples in a reader, which is locked.
    #[inline(always)]
    fn note_unread(&self, _reader: &Self::Reader) {}

    /// Whether a thread of its own sends what the writer wrote.
    #[inline]
    fn has_publisher(&self, _writer: &Self::Writer) -> bool {
        false
    }

    /// Wakes that thread: an acknowledgement has made something due.
    #[inline]
    fn wake_publisher(&self, _writer: &Self::Writer) {}
}

/// Names an endpoint. Comparing is cheaper than cloning.
pub trait Handle: Clone {
    /// Whether both name the same endpoint.
    fn is_same(&self, other: &Self) -> bool;
}

impl<T> Handle for Arc<T> {
    #[inline(always)]
    fn is_same(&self, other: &Self) -> bool {
        Self::ptr_eq(self, other)
    }
}
