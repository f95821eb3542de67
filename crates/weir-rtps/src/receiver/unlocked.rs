//! The receiver without locks, for endpoints that one thread owns, as in simulations and fuzz
//! targets.
//!
//! The cores themselves say which readers a writer is matched with. Code that would hold two locks
//! at a time panics.

use alloc::vec::Vec;
use core::cell::{RefCell, RefMut};

use weir_wire::{EntityId, Guid, GuidPrefix};

use super::batch::{Batch, Counters};
use super::prediction::Prediction;
use super::{Arrival, Endpoints, Handle, Incoming, receive_many, receive_single};
use crate::outbox::Outbox;
use crate::reader::ReaderCore;
use crate::time::Time;
use crate::writer::WriterCore;

/// The cores of one participant.
#[derive(Debug)]
pub struct Cores<'a, 'c> {
    /// Prefix of the participant.
    pub prefix: GuidPrefix,
    /// Its writers.
    pub writers: &'a mut [&'c mut WriterCore],
    /// Its readers.
    pub readers: &'a mut [&'c mut ReaderCore],
}

/// The receiver of one participant. Allocates only when the cores or their matches change, unless it has reserved
/// memory for them.
#[derive(Debug, Default)]
pub struct UnlockedReceiver {
    table: Table,
    batch: Batch<Slot, Slot>,
    prediction: Option<Prediction<Slot>>,
    arrival: Option<Arrival>,
}

impl UnlockedReceiver {
    /// Reserves memory for so many writers and readers, with so many matches of all readers, and `answer_bytes` for
    /// the answers to one datagram.
    pub(crate) fn with_room(writers: usize, readers: usize, matches: usize, answer_bytes: usize) -> Self {
        Self {
            table: Table::with_room(writers, readers, matches),
            batch: Batch::with_room(writers, readers, answer_bytes),
            prediction: None,
            arrival: None,
        }
    }

    /// Sets what is known about the arrival of the datagrams that are received from now on.
    pub fn set_arrival(&mut self, arrival: Option<Arrival>) {
        self.arrival = arrival;
    }

    /// Handles a batch of datagrams, and appends the answers of the cores to `outbox`.
    pub fn receive<'d>(
        &mut self,
        now: Time,
        cores: Cores<'_, '_>,
        datagrams: impl IntoIterator<Item = &'d [u8]>,
        outbox: &mut Outbox,
    ) {
        if self.table.update(&cores) {
            self.prediction = None;
        }
        let prefix = cores.prefix;
        let endpoints = Unlocked { arrival: self.arrival, ..Unlocked::new(&self.table, cores) };
        let prediction = self.prediction.as_ref();
        let incoming = Incoming { endpoints: &endpoints, prediction, prefix, now };
        let mut datagrams = datagrams.into_iter();
        match (datagrams.next(), datagrams.next()) {
            (Some(only), None) => _ = receive_single(incoming, only, None, &mut self.batch, outbox),
            (first, second) => {
                let datagrams = first.into_iter().chain(second).chain(datagrams);
                receive_many(incoming, datagrams, None, &mut self.batch, outbox);
            }
        }
        if let Some(next) = self.batch.next_prediction(prediction, 0) {
            self.prediction = Some(next);
        }
        self.batch.take_predicted();
        self.batch.clear_readers();
    }

    /// Whether there is a prediction for the next datagram.
    #[must_use]
    pub fn has_prediction(&self) -> bool {
        self.prediction.is_some()
    }

    /// Counters since the start.
    pub fn counters(&self) -> Counters {
        self.batch.counters
    }
}

/// Handle of a core: its index in [`Cores`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    entity: EntityId,
    index: usize,
}

impl Handle for Slot {
    fn is_same(&self, other: &Self) -> bool {
        self == other
    }
}

/// The endpoints and their matches.
#[derive(Debug, Default)]
pub(super) struct Table {
    writers: Vec<Slot>,
    readers: Vec<Slot>,
    /// Every match of every reader.
    matches: Vec<(Slot, Guid)>,
    /// The matched writers in order, once for each of their readers, and these readers.
    matched: Vec<Guid>,
    readers_of: Vec<Slot>,
}

impl Table {
    /// Reserves memory for so many endpoints and matches.
    fn with_room(writers: usize, readers: usize, matches: usize) -> Self {
        Self {
            writers: Vec::with_capacity(writers),
            readers: Vec::with_capacity(readers),
            matches: Vec::with_capacity(matches),
            matched: Vec::with_capacity(matches),
            readers_of: Vec::with_capacity(matches),
        }
    }

    /// Updates the table. Returns whether it has changed.
    pub(super) fn update(&mut self, cores: &Cores<'_, '_>) -> bool {
        let slot = |(index, guid): (usize, Guid)| Slot { entity: guid.entity, index };
        let writers = cores.writers.iter().map(|core| core.guid()).enumerate().map(slot);
        let readers = cores.readers.iter().map(|core| core.guid()).enumerate().map(slot);
        let matches = || {
            let readers = readers.clone().zip(cores.readers.iter());
            readers.flat_map(|(reader, core)| core.matched().map(move |writer| (reader, writer)))
        };
        let is_known = self.writers.iter().copied().eq(writers.clone())
            && self.readers.iter().copied().eq(readers.clone())
            && self.matches.iter().copied().eq(matches());
        if is_known {
            return false;
        }
        self.writers.clear();
        self.writers.extend(writers);
        self.readers.clear();
        self.readers.extend(readers.clone());
        self.matches.clear();
        self.matches.extend(matches());
        // Sorted by writer, then back to the order in which they are compared.
        self.matches.sort_unstable_by_key(|(reader, writer)| (*writer, reader.index));
        self.matched.clear();
        self.matched.extend(self.matches.iter().map(|(_, writer)| *writer));
        self.readers_of.clear();
        self.readers_of.extend(self.matches.iter().map(|(reader, _)| *reader));
        self.matches.clear();
        self.matches.extend(matches());
        true
    }

    pub(super) fn readers_of(&self, writer: &Guid) -> Option<&[Slot]> {
        let start = self.matched.partition_point(|known| known < writer);
        let count = self.matched[start..].iter().take_while(|known| *known == writer).count();
        (count > 0).then(|| &self.readers_of[start..start + count])
    }
}

/// The cores and their handles.
pub(super) struct Unlocked<'t, 'a, 'c> {
    table: &'t Table,
    writers: RefCell<&'a mut [&'c mut WriterCore]>,
    readers: RefCell<&'a mut [&'c mut ReaderCore]>,
    arrival: Option<Arrival>,
}

impl<'t, 'a, 'c> Unlocked<'t, 'a, 'c> {
    pub(super) fn new(table: &'t Table, Cores { writers, readers, .. }: Cores<'a, 'c>) -> Self {
        Self { table, writers: RefCell::new(writers), readers: RefCell::new(readers), arrival: None }
    }
}

impl Endpoints for Unlocked<'_, '_, '_> {
    type Reader = Slot;
    type Writer = Slot;
    type Locked<'l>
        = RefMut<'l, ReaderCore>
    where
        Self: 'l;

    fn readers_of(&self, writer: &Guid) -> Option<&[Slot]> {
        self.table.readers_of(writer)
    }

    fn readers(&self) -> impl Iterator<Item = &Slot> {
        self.table.readers.iter()
    }

    fn writer(&self, entity: EntityId) -> Option<&Slot> {
        self.table.writers.iter().find(|writer| writer.entity == entity)
    }

    fn arrival(&self) -> Option<Arrival> {
        self.arrival
    }

    fn entity(reader: &Slot) -> EntityId {
        reader.entity
    }

    fn lock<'l>(&'l self, reader: &'l Slot) -> RefMut<'l, ReaderCore> {
        RefMut::map(self.readers.borrow_mut(), |readers| &mut *readers[reader.index])
    }

    fn with_writer<T>(&self, writer: &Slot, f: impl FnOnce(&mut WriterCore) -> T) -> T {
        // Panics if a reader is locked.
        drop(self.readers.borrow_mut());
        f(self.writers.borrow_mut()[writer.index])
    }
}
