//! The routing table, which finds the endpoints for a datagram.

use std::cell::Cell;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::RandomState;
use parking_lot::{Mutex, MutexGuard, RwLock};
use weir_rtps::discovery_event::DiscoveryEvent;
use weir_rtps::reader::ReaderCore;
use weir_rtps::receiver::{Arrival, Endpoints};
use weir_rtps::time::Time;
use weir_rtps::writer::WriterCore;
use weir_udp::RecvBatch;
use weir_wire::{EntityId, Guid, GuidPrefix};

use super::endpoints::{ReaderEndpoint, WriterEndpoint};
use super::shared::Driver;
use crate::stage_times::Came;

/// The local endpoints by entity id and GUID.
///
/// The table is replaced when it changes, so that the receiving thread looks up endpoints without a
/// lock.
#[derive(Default)]
pub(crate) struct Routes {
    table: RwLock<Arc<Table>>,
    version: AtomicU64,
    pub(super) unmatched: UnmatchedWriters,
}

/// The last writers that have sent something without being matched.
///
/// A ring: one that floods the participant only makes it forget others, whose samples then arrive later. A look-up
/// takes the same time however many there are.
#[derive(Default)]
pub(super) struct UnmatchedWriters {
    ring: Mutex<Ring>,
}

#[derive(Default)]
struct Ring {
    writers: HashSet<Guid, RandomState>,
    /// The same, the oldest first.
    order: VecDeque<Guid>,
}

/// Writers that are remembered: those of a few participants that all send before they are matched.
const UNMATCHED_MAX: usize = 128;

impl UnmatchedWriters {
    #[cold]
    fn note(&self, writer: Guid) {
        let mut ring = self.ring.lock();
        if !ring.writers.insert(writer) {
            return;
        }
        if ring.order.len() == UNMATCHED_MAX
            && let Some(oldest) = ring.order.pop_front()
        {
            ring.writers.remove(&oldest);
        }
        ring.order.push_back(writer);
    }

    /// Returns whether a writer is among them.
    pub(super) fn has(&self, writer: Guid) -> bool {
        self.ring.lock().writers.contains(&writer)
    }
}

/// One version of the table. Peers choose GUIDs, so the hashes are seeded.
#[derive(Default, Clone)]
pub(crate) struct Table {
    pub(crate) writers: HashMap<EntityId, Arc<WriterEndpoint>, RandomState>,
    pub(crate) readers: HashMap<EntityId, Arc<ReaderEndpoint>, RandomState>,
    /// Each reader that has been the only one of a writer, to be shared: most writers have only one, and there are many
    /// writers.
    alone: HashMap<EntityId, MatchedReaders, RandomState>,
    /// The readers matched with the writers of a participant, of this one or another.
    readers_of: HashMap<GuidPrefix, Arc<ReadersOf>, RandomState>,
}

/// The readers matched with each writer of one participant. Shared between versions of the table: there are many
/// participants, and a change concerns few of them.
type ReadersOf = HashMap<EntityId, MatchedReaders, RandomState>;

/// The readers matched with a writer.
type MatchedReaders = Arc<[Arc<ReaderEndpoint>]>;

/// A reader begins or ceases to receive the samples of a writer.
pub(super) enum RouteChange {
    Matched { writer: Guid, reader: Arc<ReaderEndpoint> },
    Unmatched { writer: Guid, reader: EntityId },
}

impl RouteChange {
    /// Returns the change that an event requires.
    pub(super) fn of(
        event: &DiscoveryEvent,
        readers: &HashMap<EntityId, Arc<ReaderEndpoint>, RandomState>,
    ) -> Option<Self> {
        match event {
            DiscoveryEvent::WriterMatched { reader, writer } => {
                Some(Self::Matched { writer: writer.guid, reader: Arc::clone(readers.get(reader)?) })
            }
            DiscoveryEvent::WriterUnmatched { reader, writer } => {
                Some(Self::Unmatched { writer: *writer, reader: *reader })
            }
            _ => None,
        }
    }

    pub(super) fn apply(self, table: &mut Table) {
        match self {
            Self::Matched { writer, reader } => {
                let known = table.readers_of(&writer).unwrap_or_default();
                if !known.iter().any(|known| Arc::ptr_eq(known, &reader)) {
                    let readers = known.iter().cloned().chain([reader]).collect();
                    let readers = table.shared(readers);
                    let of_participant = table.readers_of.entry(writer.prefix).or_default();
                    Arc::make_mut(of_participant).insert(writer.entity, readers);
                }
            }
            Self::Unmatched { writer, reader } => table.remove_reader(&writer, reader),
        }
    }
}

impl Table {
    /// Returns the readers matched with a writer.
    #[inline]
    pub(crate) fn readers_of(&self, writer: &Guid) -> Option<&[Arc<ReaderEndpoint>]> {
        self.readers_of.get(&writer.prefix)?.get(&writer.entity).map(|readers| &**readers)
    }

    /// Returns the same readers, shared if there is only one.
    fn shared(&mut self, readers: MatchedReaders) -> MatchedReaders {
        let [reader] = &*readers else { return readers };
        let alone = self.alone.entry(reader.entity).or_insert_with(|| Arc::clone(&readers));
        if Arc::ptr_eq(&alone[0], reader) { Arc::clone(alone) } else { readers }
    }

    /// Ends a reader's match with a writer.
    fn remove_reader(&mut self, writer: &Guid, reader: EntityId) {
        let Some(of_participant) = self.readers_of.get_mut(&writer.prefix) else { return };
        let Some(known) = of_participant.get(&writer.entity) else { return };
        let readers: MatchedReaders = known.iter().filter(|other| other.entity != reader).cloned().collect();
        if !readers.is_empty() {
            let readers = self.shared(readers);
            if let Some(of_participant) = self.readers_of.get_mut(&writer.prefix) {
                Arc::make_mut(of_participant).insert(writer.entity, readers);
            }
            return;
        }
        let writers = Arc::make_mut(of_participant);
        writers.remove(&writer.entity);
        if writers.is_empty() {
            self.readers_of.remove(&writer.prefix);
        }
    }

    /// Removes a reader.
    pub(crate) fn forget_reader(&mut self, reader: EntityId) {
        self.readers.remove(&reader);
        let is_its = |readers: &[Arc<ReaderEndpoint>]| readers.iter().any(|it| it.entity == reader);
        let writers = self.readers_of.iter().flat_map(|(prefix, writers)| {
            let its = writers.iter().filter(|(_, readers)| is_its(readers));
            its.map(|(entity, _)| Guid::new(*prefix, *entity))
        });
        let writers: Vec<_> = writers.collect();
        writers.iter().for_each(|writer| self.remove_reader(writer, reader));
        self.alone.remove(&reader);
    }
}

impl Routes {
    /// The current table.
    pub(crate) fn table(&self) -> Arc<Table> {
        Arc::clone(&self.table.read())
    }

    /// Returns a number that is incremented with every change.
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

/// The endpoints, as the message receiver sees them during a batch.
pub(crate) struct BatchEndpoints<'t> {
    pub(super) table: &'t Table,
    /// When the batch arrived; `None`: stage timing is disabled.
    pub(super) came: Option<Came>,
    pub(super) driver: &'t Driver,
    /// The batch, once its first buffer was exchanged.
    pub(super) received: Cell<Option<&'t RecvBatch>>,
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
        self.table.readers_of(writer)
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

    fn arrival(&self) -> Option<Arrival> {
        self.received.get().map(|received| self.driver.channel.arrival(received))
    }

    #[inline]
    fn cancel_timeout(&self, at: Time) {
        self.driver.outlet.timers.cancel(at);
    }

    #[inline]
    fn note_unmatched(&self, writer: &Guid) {
        self.driver.routes.unmatched.note(*writer);
    }

    #[inline]
    fn has_publisher(&self, writer: &Arc<WriterEndpoint>) -> bool {
        writer.lane.publishing.is_some()
    }

    #[inline]
    fn is_sending(&self, writer: &Arc<WriterEndpoint>) -> bool {
        writer.lane.is_sending()
    }

    #[inline]
    fn wake_publisher(&self, writer: &Arc<WriterEndpoint>) {
        writer.lane.notify_publisher();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_unmatched_writers_are_remembered_once_each() {
        let writers = UnmatchedWriters::default();
        let guid = |number: u8| Guid::new(GuidPrefix([number; 12]), EntityId::user_writer(1, false));
        (0..=UNMATCHED_MAX as u8).chain([5, 5]).for_each(|number| writers.note(guid(number)));
        assert!(!writers.has(guid(0)), "the oldest one has made room");
        assert!(writers.has(guid(1)) && writers.has(guid(UNMATCHED_MAX as u8)));
    }
}
