//! From datagrams to writers and readers: messages are read in place, each endpoint's lock is taken once per
//! batch of datagrams (and once more only where traffic of several endpoints alternates), and answers,
//! repairs and listeners follow when the whole batch is in.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::MutexGuard;
use weir_rtps::block::Block;
use weir_rtps::outbox::Outbox;
use weir_rtps::reader::ReaderCore;
use weir_rtps::time::Time;
use weir_udp::RecvBatch;
use weir_wire::{
    AckNack, Data, DataFrag, EntityId, Gap, Guid, GuidPrefix, Heartbeat, HeartbeatFrag, Message, NackFrag,
    ParseError, Submessage, Timestamp, VendorId,
};

use super::endpoints::{ReaderEndpoint, Table, WriterEndpoint};
use crate::stage_times::Came;

/// What a batch left to do. Reused from batch to batch.
#[derive(Default)]
pub(crate) struct Touched {
    pub(crate) readers: Vec<TouchedReader>,
    /// The last reader of the batch before: usually the next batch has something for it too, and counting references
    /// costs more than comparing them.
    spare: Option<Arc<ReaderEndpoint>>,
    pub(crate) writers: Vec<Arc<WriterEndpoint>>,
    /// When the batch came, where somebody wants to know.
    pub(crate) came: Option<Came>,
    /// Counters for the whole life of the receiver.
    pub(crate) counters: ReceiveCounters,
}

impl Touched {
    /// Empties a list of readers.
    #[inline]
    pub(crate) fn forget(&mut self, readers: &mut Vec<TouchedReader>) {
        if let Some(last) = readers.pop() {
            self.spare = Some(last.endpoint);
        }
        readers.clear();
    }

    /// Whether there were samples for this reader, when the batch was in, that nobody had read.
    #[inline]
    pub(crate) fn has_unread_for(&self, reader: &ReaderEndpoint) -> bool {
        self.readers.iter().any(|touched| touched.has_unread && core::ptr::eq(&*touched.endpoint, reader))
    }

    /// Remembers a reader once. Few are touched by one batch.
    #[inline]
    fn note_reader(&mut self, endpoint: &Arc<ReaderEndpoint>) {
        if self.readers.iter().any(|known| Arc::ptr_eq(&known.endpoint, endpoint)) {
            return;
        }
        let endpoint = match self.spare.take() {
            Some(spare) if Arc::ptr_eq(&spare, endpoint) => spare,
            _ => Arc::clone(endpoint),
        };
        self.readers.push(TouchedReader { endpoint, has_unread: false, has_status_news: false });
    }
}

/// A reader that a batch had something for.
pub(crate) struct TouchedReader {
    pub(crate) endpoint: Arc<ReaderEndpoint>,
    /// Samples wait that were not read.
    pub(crate) has_unread: bool,
    /// A status may have changed that a listener is told of.
    pub(crate) has_status_news: bool,
}

/// What is counted about received datagrams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReceiveCounters {
    /// Datagrams, as they were sent.
    pub datagrams: u64,
    /// Those of them that came by multicast.
    pub multicast: u64,
    /// System calls that received something.
    pub batches: u64,
    /// Datagrams that are no RTPS message, or one with a malformed submessage.
    pub malformed: u64,
    /// Submessages for endpoints that are not there, or of a kind that is not understood.
    pub ignored: u64,
}

/// The counters as others see them: after the last batch.
#[derive(Default)]
pub(crate) struct PublishedCounters([AtomicU64; 5]);

impl PublishedCounters {
    pub(crate) fn store(&self, counters: ReceiveCounters) {
        let ReceiveCounters { datagrams, multicast, batches, malformed, ignored } = counters;
        for (published, count) in self.0.iter().zip([datagrams, multicast, batches, malformed, ignored]) {
            published.store(count, Ordering::Relaxed);
        }
    }

    pub(crate) fn load(&self) -> ReceiveCounters {
        let [datagrams, multicast, batches, malformed, ignored] =
            self.0.each_ref().map(|published| published.load(Ordering::Relaxed));
        ReceiveCounters { datagrams, multicast, batches, malformed, ignored }
    }
}

/// Takes in every datagram of a batch, and collects what the endpoints have to send: acknowledgements and repairs.
/// Returns when the first of them wants to repeat something.
pub(crate) fn receive(
    table: &Table,
    prefix: GuidPrefix,
    now: Time,
    batch: &RecvBatch,
    touched: &mut Touched,
    outbox: &mut Outbox,
) -> Option<Time> {
    let mut receiver = Receiver::new(table, prefix, now, touched);
    for message in batch.messages() {
        for datagram in message.datagrams() {
            receiver.datagram(datagram);
        }
    }
    receiver.answer(outbox)
}

/// The same for one datagram, the first `len` bytes of a block, where a sample may stay until it is taken.
#[inline(never)]
pub(crate) fn receive_in(
    table: &Table,
    prefix: GuidPrefix,
    now: Time,
    (block, len): (&Arc<Block>, usize),
    touched: &mut Touched,
    outbox: &mut Outbox,
) -> Option<Time> {
    let mut receiver = Receiver::new(table, prefix, now, touched);
    receiver.block = Some(block);
    receiver.datagram(&block.bytes()[..len]);
    receiver.answer(outbox)
}

/// The reader whose lock is held, and the writer whose samples it gets.
struct Current<'t> {
    writer: Guid,
    reader: &'t ReaderEndpoint,
    core: MutexGuard<'t, ReaderCore>,
}

struct Receiver<'t, 'c> {
    table: &'t Table,
    prefix: GuidPrefix,
    now: Time,
    touched: &'c mut Touched,
    current: Option<Current<'t>>,
    /// Who sent the datagram.
    vendor: VendorId,
    /// What the datagram lies in, if it may stay there.
    block: Option<&'t Arc<Block>>,
}

impl<'t, 'c> Receiver<'t, 'c> {
    fn new(table: &'t Table, prefix: GuidPrefix, now: Time, touched: &'c mut Touched) -> Self {
        Self { table, prefix, now, touched, current: None, vendor: VendorId::UNKNOWN, block: None }
    }

    /// Always inlined: a call per datagram shows.
    #[inline(always)]
    fn datagram(&mut self, datagram: &[u8]) {
        if datagram.is_empty() {
            // Somebody wants our place: see `Channel::kick`.
            return;
        }
        self.touched.counters.datagrams += 1;
        let Ok(message) = Message::parse(datagram) else {
            self.touched.counters.malformed += 1;
            return;
        };
        self.vendor = message.header.vendor;
        if self.message(&message).is_err() {
            self.touched.counters.malformed += 1;
        }
    }

    /// Takes in the submessages up to the first one that is malformed (RTPS 2.5 §8.3.4.1).
    #[inline]
    fn message(&mut self, message: &Message<'_>) -> Result<(), ParseError> {
        // The state of a message receiver (RTPS 2.5 §8.3.4).
        let mut source = message.header.prefix;
        let mut timestamp: Option<Timestamp> = None;
        let mut is_for_us = true;
        // Put together once: what was just written in pieces is slow to read.
        let mut writer = Guid::new(source, EntityId::UNKNOWN);
        let mut submessages = message.submessages();
        while let Some(submessage) = submessages.next_unread() {
            let submessage = submessage?;
            if let Some(data) = submessage.data() {
                let data = data?;
                if writer.entity != data.writer {
                    writer.entity = data.writer;
                }
                if is_for_us {
                    self.data(writer, &data, timestamp);
                }
                continue;
            }
            match submessage.read()? {
                Submessage::InfoTimestamp(info) => timestamp = info.timestamp,
                Submessage::InfoSource(info) => {
                    source = info.prefix;
                    writer.prefix = source;
                }
                Submessage::InfoDestination(info) => {
                    is_for_us = info.prefix == self.prefix || info.prefix == GuidPrefix::UNKNOWN;
                }
                Submessage::Pad | Submessage::InfoReply(_) => {}
                _ if !is_for_us => {}
                Submessage::Data(data) => {
                    self.data_elsewhere(Guid::new(source, data.writer), &data, timestamp)
                }
                Submessage::Heartbeat(heartbeat) => self.heartbeat(source, &heartbeat),
                Submessage::DataFrag(frag) => self.data_frag(source, &frag, timestamp),
                Submessage::NackFrag(nack) => self.nack_frag(source, &nack),
                Submessage::HeartbeatFrag(heartbeat) => self.heartbeat_frag(source, &heartbeat),
                Submessage::Gap(gap) => self.gap(source, &gap),
                Submessage::AckNack(acknack) => self.acknack(source, &acknack),
                Submessage::Unknown { .. } => self.touched.counters.ignored += 1,
            }
        }
        Ok(())
    }

    /// Always inlined, and so is what the reader does with the sample: nothing of it is passed in memory, where it would be
    /// read in other pieces than it was written in.
    #[inline(always)]
    fn data(&mut self, writer: Guid, data: &Data<'_>, timestamp: Option<Timestamp>) {
        let (now, block) = (self.now, self.block);
        if !self.is_current(&writer, data.reader) {
            self.data_elsewhere(writer, data, timestamp);
        } else if let Some(current) = &mut self.current {
            current.core.handle_data_inline(now, writer, data, timestamp, block);
        }
    }

    #[inline(never)]
    fn data_elsewhere(&mut self, writer: Guid, data: &Data<'_>, timestamp: Option<Timestamp>) {
        let (now, block) = (self.now, self.block);
        let handle = |core: &mut ReaderCore| core.handle_data_in(now, writer, data, timestamp, block);
        if !self.for_readers(writer, data.reader, handle) {
            self.for_strangers(handle);
        }
    }

    fn data_frag(&mut self, source: GuidPrefix, frag: &DataFrag<'_>, timestamp: Option<Timestamp>) {
        let now = self.now;
        let writer = Guid::new(source, frag.writer);
        let handle = |core: &mut ReaderCore| core.handle_data_frag(now, writer, frag, timestamp);
        if !self.for_readers(writer, frag.reader, handle) {
            self.for_strangers(handle);
        }
    }

    fn heartbeat_frag(&mut self, source: GuidPrefix, heartbeat: &HeartbeatFrag) {
        let now = self.now;
        let writer = Guid::new(source, heartbeat.writer);
        self.for_readers(writer, heartbeat.reader, |core| core.handle_heartbeat_frag(now, writer, heartbeat));
    }

    fn heartbeat(&mut self, source: GuidPrefix, heartbeat: &Heartbeat) {
        let now = self.now;
        let writer = Guid::new(source, heartbeat.writer);
        self.for_readers(writer, heartbeat.reader, |core| core.handle_heartbeat(now, writer, heartbeat));
    }

    fn gap(&mut self, source: GuidPrefix, gap: &Gap) {
        let now = self.now;
        let writer = Guid::new(source, gap.writer);
        self.for_readers(writer, gap.reader, |core| core.handle_gap(now, writer, gap));
    }

    fn acknack(&mut self, source: GuidPrefix, acknack: &AckNack) {
        let Some(writer) = self.table.writers.get(&acknack.writer) else {
            self.touched.counters.ignored += 1;
            return;
        };
        self.current = None;
        writer.core.lock().handle_acknack(self.now, Guid::new(source, acknack.reader), acknack);
        note(&mut self.touched.writers, writer);
    }

    fn nack_frag(&mut self, source: GuidPrefix, nack: &NackFrag) {
        let Some(writer) = self.table.writers.get(&nack.writer) else {
            self.touched.counters.ignored += 1;
            return;
        };
        self.current = None;
        writer.core.lock().handle_nack_frag(self.now, Guid::new(source, nack.reader), nack);
        note(&mut self.touched.writers, writer);
    }

    /// Whether the reader that is meant is the one whose lock is held, and gets the samples of this writer.
    #[inline(always)]
    fn is_current(&self, writer: &Guid, meant: EntityId) -> bool {
        self.current.as_ref().is_some_and(|current| {
            current.writer == *writer && (meant == EntityId::UNKNOWN || meant == current.reader.entity)
        })
    }

    /// Calls `f` with every reader that is meant: the one that is named, or all that are matched with the
    /// writer. `false` if there is none, because nobody is matched with it.
    #[inline]
    fn for_readers(&mut self, writer: Guid, meant: EntityId, mut f: impl FnMut(&mut ReaderCore)) -> bool {
        if self.is_current(&writer, meant)
            && let Some(current) = &mut self.current
        {
            f(&mut current.core);
            return true;
        }
        // Never two locks at a time.
        self.current = None;
        let Some(readers) = self.table.readers_of.get(&writer) else {
            self.touched.counters.ignored += 1;
            return false;
        };
        if let [reader] = &readers[..] {
            if meant != EntityId::UNKNOWN && meant != reader.entity {
                return true;
            }
            self.touched.note_reader(reader);
            let mut current = Current { writer, reader, core: reader.core.lock() };
            f(&mut current.core);
            self.current = Some(current);
            return true;
        }
        for reader in readers.iter().filter(|it| meant == EntityId::UNKNOWN || meant == it.entity) {
            self.touched.note_reader(reader);
            f(&mut reader.core.lock());
        }
        true
    }

    /// What the endpoints answer. A lock that is still held is not taken again.
    fn answer(&mut self, outbox: &mut Outbox) -> Option<Time> {
        let now = self.now;
        let mut next = Time::MAX;
        let came = self.touched.came;
        let mut settle = |reader: &mut TouchedReader, core: &mut ReaderCore| {
            core.poll_transmit(now, outbox);
            reader.has_unread = core.has_unread();
            reader.has_status_news = core.take_status_news();
            if let Some(came) = came.filter(|_| reader.has_unread) {
                came.note(&reader.endpoint);
            }
            next = next.min(core.next_timeout().unwrap_or(Time::MAX));
        };
        match (&mut self.touched.readers[..], self.current.take()) {
            ([only], Some(mut current)) => settle(only, &mut current.core),
            (readers, current) => {
                drop(current);
                for reader in readers {
                    let endpoint = Arc::clone(&reader.endpoint);
                    settle(reader, &mut endpoint.core.lock());
                }
            }
        }
        for writer in &self.touched.writers {
            let mut core = writer.core.lock();
            core.poll_answers(outbox);
            next = next.min(core.next_timeout().unwrap_or(Time::MAX));
            // An acknowledgement may make room for more of a large sample.
            if writer.publishing.is_some() && core.is_transmission_due(now) {
                drop(core);
                writer.tell_publisher();
            }
        }
        (next != Time::MAX).then_some(next)
    }

    /// Shows what a writer sends that nobody is matched with to the readers that want to know, see
    /// [`ReaderCore::note_history`]: only Cyclone DDS makes it necessary.
    #[cold]
    fn for_strangers(&mut self, mut f: impl FnMut(&mut ReaderCore)) {
        if self.vendor != VendorId::CYCLONE {
            return;
        }
        // The order of a hash table does not matter: each reader is a world of its own.
        self.table.readers.values().for_each(|reader| {
            let mut core = reader.core.lock();
            if core.heeds_strangers() {
                // It may have been matched meanwhile, and have something to say.
                f(&mut core);
                self.touched.note_reader(reader);
            }
        });
    }
}

/// Remembers a writer once.
fn note(touched: &mut Vec<Arc<WriterEndpoint>>, endpoint: &Arc<WriterEndpoint>) {
    if !touched.iter().any(|known| Arc::ptr_eq(known, endpoint)) {
        touched.push(Arc::clone(endpoint));
    }
}
