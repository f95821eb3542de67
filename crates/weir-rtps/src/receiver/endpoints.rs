//! How the receiver finds and locks endpoints.

use alloc::sync::Arc;
use core::ops::DerefMut;

use weir_wire::{EntityId, Guid};

use crate::reader::ReaderCore;
use crate::time::Time;
use crate::writer::WriterCore;

/// The writers and readers of a participant. The receiver holds only one lock at a time.
pub trait Endpoints {
    /// Handle of a reader.
    type Reader: Handle;
    /// Handle of a writer.
    type Writer: Handle;
    /// A locked reader.
    type Locked<'a>: DerefMut<Target = ReaderCore>
    where
        Self: 'a;

    /// The readers matched with a remote writer, if there are any.
    fn readers_of(&self, writer: &Guid) -> Option<&[Self::Reader]>;

    /// All readers, in any order.
    fn readers(&self) -> impl Iterator<Item = &Self::Reader>;

    /// The writer with this entity id.
    fn writer(&self, entity: EntityId) -> Option<&Self::Writer>;

    /// The entity id of a reader.
    fn entity(reader: &Self::Reader) -> EntityId;

    /// Locks a reader.
    fn lock<'a>(&'a self, reader: &'a Self::Reader) -> Self::Locked<'a>;

    /// Locks a writer, and passes it to `f`.
    fn with_writer<T>(&self, writer: &Self::Writer, f: impl FnOnce(&mut WriterCore) -> T) -> T;

    /// What the host knows about the arrival of the datagram that is handled; `None`: nothing, and time passes only
    /// between batches. Asked rarely.
    fn arrival(&self) -> Option<Arrival> {
        None
    }

    /// Called for each submessage of a writer of this engine that no reader is matched with.
    ///
    /// When such a writer is matched, the reader requests its first HEARTBEAT, see [`ReaderCore::await_heartbeat`].
    #[inline]
    fn note_unmatched(&self, _writer: &Guid) {}

    /// Called at the end of a batch for each reader with unread samples. The reader is locked.
    #[inline(always)]
    fn note_unread(&self, _reader: &Self::Reader) {}

    /// Called when an acknowledgement has left a writer nothing to wait for. `at`: what [`WriterCore::next_timeout`]
    /// returned before. The writer is locked, so that it sets no new timer in the meantime.
    #[inline]
    fn cancel_timeout(&self, _at: Time) {}

    /// Whether the writer publishes asynchronously, on a thread of its own.
    #[inline]
    fn has_publisher(&self, _writer: &Self::Writer) -> bool {
        false
    }

    /// Whether another thread may be sending what the writer has handed out. The writer is locked, so that it hands out
    /// nothing in the meantime.
    #[inline]
    fn is_sending(&self, _writer: &Self::Writer) -> bool {
        false
    }

    /// Wakes that thread, because an acknowledgement has made a transmission due.
    #[inline]
    fn wake_publisher(&self, _writer: &Self::Writer) {}
}

/// What a host knows about the arrival of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When it reached the host, before it waited in a socket.
    pub at: Time,
    /// Datagrams that the socket had dropped by then. Wraps around.
    pub drops: u32,
}

/// Handle of an endpoint. Comparing is cheaper than cloning.
pub trait Handle: Clone {
    /// Whether both are handles of the same endpoint.
    fn is_same(&self, other: &Self) -> bool;
}

impl<T> Handle for Arc<T> {
    #[inline(always)]
    fn is_same(&self, other: &Self) -> bool {
        Self::ptr_eq(self, other)
    }
}
