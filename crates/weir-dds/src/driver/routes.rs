//! How datagrams find their endpoints.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::RandomState;
use parking_lot::{MutexGuard, RwLock};
use weir_rtps::reader::ReaderCore;
use weir_rtps::receiver::Endpoints;
use weir_rtps::writer::WriterCore;
use weir_wire::{EntityId, Guid};

use super::endpoints::{ReaderEndpoint, WriterEndpoint};
use crate::stage_times::Came;

/// The endpoints by entity id and GUID: a table that is replaced when it changes, so that the receiving thread looks
/// things up without a lock.
#[derive(Default)]
pub(crate) struct Routes {
    table: RwLock<Arc<Table>>,
    version: AtomicU64,
}

/// One state of the routes. Peers choose GUIDs: the hashes depend on a seed that they do not know.
#[derive(Default, Clone)]
pub(crate) struct Table {
    pub(crate) writers: HashMap<EntityId, Arc<WriterEndpoint>, RandomState>,
    pub(crate) readers: HashMap<EntityId, Arc<ReaderEndpoint>, RandomState>,
    /// The readers that a remote (or own) writer is matched with.
    pub(crate) readers_of: HashMap<Guid, Vec<Arc<ReaderEndpoint>>, RandomState>,
}

impl Routes {
    /// The current table.
    pub(crate) fn table(&self) -> Arc<Table> {
        Arc::clone(&self.table.read())
    }

    /// Goes up with every change.
    #[inline]
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Changes the table.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Table)) {
        let mut table = self.table.write();
        change(Arc::make_mut(&mut table));
        self.version.fetch_add(1, Ordering::Release);
    }
}

/// The endpoints as the message receiver knows them during a batch.
pub(crate) struct BatchEndpoints<'t> {
    pub(crate) table: &'t Table,
    /// When the batch arrived; `None`: stage timing is disabled.
    pub(crate) came: Option<Came>,
}

impl Endpoints for BatchEndpoints<'_> {
    type Reader = Arc<ReaderEndpoint>;
    type Writer = Arc<WriterEndpoint>;
    type Locked<'a>
        = MutexGuard<'a, ReaderCore>
    where
        Self: 'a;

    #[inline]
    fn readers_of(&self, writer: &Guid) -> Option<&[Arc<ReaderEndpoint>]> {
        self.table.readers_of.get(writer).map(Vec::as_slice)
    }

    fn readers(&self) -> impl Iterator<Item = &Arc<ReaderEndpoint>> {
        self.table.readers.values()
    }

    #[inline]
    fn writer(&self, entity: EntityId) -> Option<&Arc<WriterEndpoint>> {
        self.table.writers.get(&entity)
    }

    #[inline(always)]
    fn entity(reader: &Arc<ReaderEndpoint>) -> EntityId {
        reader.entity
    }

    #[inline(always)]
    fn lock<'a>(&'a self, reader: &'a Arc<ReaderEndpoint>) -> MutexGuard<'a, ReaderCore> {
        reader.core.lock()
    }

    #[inline]
    fn with_writer<T>(&self, writer: &Arc<WriterEndpoint>, f: impl FnOnce(&mut WriterCore) -> T) -> T {
        f(&mut writer.lane.core())
    }

    #[inline(always)]
    fn note_unread(&self, reader: &Arc<ReaderEndpoint>) {
        if let Some(came) = self.came {
            reader.note_times(came);
        }
    }

    #[inline]
    fn has_publisher(&self, writer: &Arc<WriterEndpoint>) -> bool {
        writer.lane.publishing.is_some()
    }

    #[inline]
    fn wake_publisher(&self, writer: &Arc<WriterEndpoint>) {
        writer.lane.tell_publisher();
    }
}
