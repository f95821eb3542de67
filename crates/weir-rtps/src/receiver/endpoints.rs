//! How the receiver finds and locks endpoints.

use core::ops::DerefMut;
use std::sync::Arc;

use weir_wire::{EntityId, Guid};

use crate::reader::ReaderCore;
use crate::writer::WriterCore;

/// The writers and readers of a participant.
///
/// The receiver never holds two locks at a time.
pub trait Endpoints {
    /// A handle to a reader.
    type Reader: Handle;
    /// A handle to a writer.
    type Writer: Handle;
    /// A locked reader core.
    type Locked<'a>: DerefMut<Target = ReaderCore>
    where
        Self: 'a;

    /// Returns the readers matched with a remote writer, if there are any.
    fn readers_of(&self, writer: &Guid) -> Option<&[Self::Reader]>;

    /// Iterates over all readers, in any order.
    fn readers(&self) -> impl Iterator<Item = &Self::Reader>;

    /// Returns the writer with this entity id.
    fn writer(&self, entity: EntityId) -> Option<&Self::Writer>;

    /// Returns the entity id of a reader.
    fn entity(reader: &Self::Reader) -> EntityId;

    /// Locks a reader.
    fn lock<'a>(&'a self, reader: &'a Self::Reader) -> Self::Locked<'a>;

    /// Locks a writer, and calls `f` with it.
    fn with_writer<T>(&self, writer: &Self::Writer, f: impl FnOnce(&mut WriterCore) -> T) -> T;

    /// Called when a batch has left unread samples in a reader, which is locked.
    #[inline(always)]
    fn note_unread(&self, _reader: &Self::Reader) {}

    /// Returns whether the writer publishes asynchronously, by its own thread.
    #[inline]
    fn has_publisher(&self, _writer: &Self::Writer) -> bool {
        false
    }

    /// Wakes that thread: an acknowledgement has made something due.
    #[inline]
    fn wake_publisher(&self, _writer: &Self::Writer) {}
}

/// A handle to an endpoint. Comparing is cheaper than cloning.
pub trait Handle: Clone {
    /// Returns whether both refer to the same endpoint.
    fn is_same(&self, other: &Self) -> bool;
}

impl<T> Handle for Arc<T> {
    #[inline(always)]
    fn is_same(&self, other: &Self) -> bool {
        Self::ptr_eq(self, other)
    }
}
