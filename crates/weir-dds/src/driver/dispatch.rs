//! From datagrams to writers and readers: messages are read in place, each endpoint's lock is taken once per
//! batch of datagrams (and once more only where traffic of several endpoints alternates), and answers,
//! repairs and listeners follow when the whole batch is in.
//!
//! Most datagrams are like the one before: see [`route`](super::route).

use std::sync::Arc;

use parking_lot::MutexGuard;
use weir_rtps::block::Block;
use weir_rtps::outbox::Outbox;
use weir_rtps::reader::ReaderCore;
use weir_rtps::time::Time;
use weir_udp::RecvBatch;
use weir_wire::{
    AckNack, Data, DataFrag, EntityId, Gap, Guid, GuidPrefix, Header, Heartbeat, HeartbeatFrag, Message,
    NackFrag, ParseError, ProtocolVersion, Submessage, Submessages, Timestamp, UnreadSubmessage, VendorId,
};

use super::endpoints::{ReaderEndpoint, Table, WriterEndpoint};
use super::receive_counters::ReceiveCounters;
use super::route::{Predicted, Route};
use crate::stage_times::Came;

/// What a batch brought for a reader.
#[derive(Clone, Copy, Default)]
pub(crate) struct News {
    /// Samples wait that were not read.
    pub(crate) has_unread: bool,
    /// A status may have changed that a listener is told of.
    pub(crate) has_status_news: bool,
}

/// What a batch left to do. Reused from batch to batch.
#[derive(Default)]
pub(crate) struct Touched {
    /// What there is for the reader of the route; then there was nothing for others.
    pub(crate) on_route: Option<News>,
    pub(crate) readers: Vec<TouchedReader>,
    /// The writer whose only reader was the only one in this batch, if that did not take the route, and the header of the
    /// last message.
    candidate: Option<(Guid, Header)>,
    /// The last one before, if nothing has taken the route since.
    elsewhere: Option<Guid>,
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
        self.readers
            .iter()
            .any(|touched| touched.news.has_unread && core::ptr::eq(&*touched.endpoint, reader))
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
        self.readers.push(TouchedReader { endpoint, news: News::default() });
    }

    /// Whether there may be another route to take from now on.
    #[inline]
    pub(crate) fn has_candidate(&self) -> bool {
        self.candidate.is_some()
    }

    /// The route to take from now on, if the batch went another way than the one before. Only the second one in a row from
    /// the same writer makes a route: where writers take turns, nothing is counted for nothing.
    #[inline(never)]
    pub(crate) fn next_route(&mut self, before: Option<&Route>, version: u64) -> Option<Route> {
        let (writer, header) = self.candidate.take()?;
        if before.is_some_and(|before| before.is_of(&header, writer)) {
            self.elsewhere = None;
            return None;
        }
        let is_second = self.elsewhere.replace(writer) == Some(writer);
        let [only] = &self.readers[..] else { return None };
        is_second.then(|| Route::new(version, &header, writer, &only.endpoint))
    }
}

/// A reader that a batch had something for.
pub(crate) struct TouchedReader {
    pub(crate) endpoint: Arc<ReaderEndpoint>,
    pub(crate) news: News,
}

/// Whom a batch is for, and what is known about it.
#[derive(Clone, Copy)]
pub(crate) struct Incoming<'t> {
    pub(crate) table: &'t Table,
    pub(crate) route: Option<&'t Route>,
    pub(crate) prefix: GuidPrefix,
    pub(crate) now: Time,
}

/// Takes in every datagram of a batch, and collects what the endpoints have to send: acknowledgements and repairs.
/// Returns when the first of them wants to repeat something.
#[inline(never)]
pub(crate) fn receive(
    incoming: Incoming<'_>,
    batch: &RecvBatch,
    touched: &mut Touched,
    outbox: &mut Outbox,
) -> Option<Time> {
    let mut receiver = Receiver::new(incoming, None, touched);
    for message in batch.messages() {
        for datagram in message.datagrams() {
            receiver.datagram(datagram);
        }
    }
    receiver.answer(outbox)
}

/// The same for one datagram, in whose block, if it has one, a sample may stay until it is taken.
#[inline(never)]
pub(crate) fn receive_lone(
    incoming: Incoming<'_>,
    datagram: &[u8],
    block: Option<&Arc<Block>>,
    touched: &mut Touched,
    outbox: &mut Outbox,
) -> Option<Time> {
    match incoming.route.and_then(|route| Predicted::new(route, datagram)) {
        Some(predicted) => receive_predicted(incoming, predicted, block, touched, outbox),
        None => receive_other(incoming, datagram, block, touched, outbox),
    }
}

/// The same for a datagram that begins with anything else than [`Predicted`].
#[inline(never)]
fn receive_other(
    incoming: Incoming<'_>,
    datagram: &[u8],
    block: Option<&Arc<Block>>,
    touched: &mut Touched,
    outbox: &mut Outbox,
) -> Option<Time> {
    let mut receiver = Receiver::new(incoming, block, touched);
    receiver.datagram(datagram);
    receiver.answer(outbox)
}

/// The same for one that begins as was predicted. What is done is what [`Receiver`] would do, without looking up what is
/// known, and without it if there is only the sample.
#[inline(always)]
fn receive_predicted(
    incoming: Incoming<'_>,
    Predicted { route, timestamp, data, behind }: Predicted<'_, '_>,
    block: Option<&Arc<Block>>,
    touched: &mut Touched,
    outbox: &mut Outbox,
) -> Option<Time> {
    let now = incoming.now;
    touched.counters.datagrams += 1;
    touched.elsewhere = None;
    let mut core = route.reader.core.lock();
    core.handle_data_inline(now, &route.writer, &data, Some(timestamp), block);
    if !behind.is_empty() {
        return receive_behind(incoming, (route, core), timestamp, behind, block, touched, outbox);
    }
    let mut next = Time::MAX;
    let news = settle(&route.reader, &mut core, now, touched.came, outbox, &mut next);
    touched.on_route = Some(news);
    (next != Time::MAX).then_some(next)
}

/// The rest of a datagram, behind a sample for the reader of the route, which is locked.
#[inline(never)]
fn receive_behind<'t>(
    incoming: Incoming<'t>,
    (route, core): (&'t Route, MutexGuard<'t, ReaderCore>),
    timestamp: Timestamp,
    submessages: Submessages<'_>,
    block: Option<&'t Arc<Block>>,
    touched: &mut Touched,
    outbox: &mut Outbox,
) -> Option<Time> {
    let mut receiver = Receiver::new(incoming, block, touched);
    receiver.is_on_route = true;
    receiver.current = Some(Current { writer: route.writer, reader: &route.reader, core });
    if let Ok(header) = Header::parse(&route.header) {
        receiver.header = header;
    }
    receiver.message(submessages, Some(timestamp));
    receiver.answer(outbox)
}

/// The reader whose lock is held, and the writer whose samples it gets.
struct Current<'t> {
    writer: Guid,
    reader: &'t ReaderEndpoint,
    core: MutexGuard<'t, ReaderCore>,
}

/// What a submessage changes for those that follow in its message (RTPS 2.5 §8.3.4).
enum State {
    Same,
    /// When the samples were written.
    WrittenAt(Option<Timestamp>),
    /// Whose they are.
    From(GuidPrefix),
    /// Whether they are for us.
    For {
        is_us: bool,
    },
}

struct Receiver<'t, 'c> {
    incoming: Incoming<'t>,
    touched: &'c mut Touched,
    current: Option<Current<'t>>,
    /// The reader of the route has got something, and no other.
    is_on_route: bool,
    /// The header of the last datagram.
    header: Header,
    /// What the datagram lies in, if it may stay there.
    block: Option<&'t Arc<Block>>,
}

impl<'t, 'c> Receiver<'t, 'c> {
    #[inline(always)]
    fn new(incoming: Incoming<'t>, block: Option<&'t Arc<Block>>, touched: &'c mut Touched) -> Self {
        let header =
            Header { version: ProtocolVersion::V2_5, vendor: VendorId::UNKNOWN, prefix: GuidPrefix::UNKNOWN };
        Self { incoming, touched, current: None, is_on_route: false, header, block }
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
        self.header = message.header;
        self.message(message.submessages(), None);
    }

    /// Takes in the submessages of a message, from its beginning or behind a sample that was written at `timestamp`.
    #[inline]
    fn message(&mut self, submessages: Submessages<'_>, timestamp: Option<Timestamp>) {
        if self.submessages(submessages, timestamp).is_err() {
            self.touched.counters.malformed += 1;
        }
    }

    /// Takes in submessages up to the first one that is malformed (RTPS 2.5 §8.3.4.1).
    #[inline(never)]
    fn submessages(
        &mut self,
        mut submessages: Submessages<'_>,
        mut timestamp: Option<Timestamp>,
    ) -> Result<(), ParseError> {
        // The state of a message receiver (RTPS 2.5 §8.3.4), with the last one of the sender's writers. Put together once:
        // what was just written in pieces is slow to read.
        let mut is_for_us = true;
        let mut writer = Guid::new(self.header.prefix, EntityId::UNKNOWN);
        loop {
            if let Some((written_at, data)) = submessages.next_stamped_data() {
                timestamp = Some(written_at);
                if writer.entity != data.writer {
                    writer.entity = data.writer;
                }
                if is_for_us {
                    self.data(&writer, &data, Some(written_at));
                }
                continue;
            }
            let Some(submessage) = submessages.next_unread() else { return Ok(()) };
            let submessage = submessage?;
            if let Some(data) = submessage.data() {
                let data = data?;
                if writer.entity != data.writer {
                    writer.entity = data.writer;
                }
                if is_for_us {
                    self.data(&writer, &data, timestamp);
                }
                continue;
            }
            match self.no_sample(submessage, writer.prefix, timestamp, is_for_us)? {
                State::Same => {}
                State::WrittenAt(at) => timestamp = at,
                State::From(source) => writer.prefix = source,
                State::For { is_us } => is_for_us = is_us,
            }
        }
    }

    /// Takes in what is no DATA. Returns what it changes for the submessages that follow.
    #[inline(never)]
    fn no_sample(
        &mut self,
        submessage: UnreadSubmessage<'_>,
        source: GuidPrefix,
        timestamp: Option<Timestamp>,
        is_for_us: bool,
    ) -> Result<State, ParseError> {
        match submessage.read()? {
            Submessage::InfoTimestamp(info) => return Ok(State::WrittenAt(info.timestamp)),
            Submessage::InfoSource(info) => return Ok(State::From(info.prefix)),
            Submessage::InfoDestination(info) => {
                let is_us = info.prefix == self.incoming.prefix || info.prefix == GuidPrefix::UNKNOWN;
                return Ok(State::For { is_us });
            }
            Submessage::Pad | Submessage::InfoReply(_) => {}
            _ if !is_for_us => {}
            Submessage::Data(data) => self.data_elsewhere(Guid::new(source, data.writer), &data, timestamp),
            Submessage::Heartbeat(heartbeat) => self.heartbeat(source, &heartbeat),
            Submessage::DataFrag(frag) => self.data_frag(source, &frag, timestamp),
            Submessage::NackFrag(nack) => self.nack_frag(source, &nack),
            Submessage::HeartbeatFrag(heartbeat) => self.heartbeat_frag(source, &heartbeat),
            Submessage::Gap(gap) => self.gap(source, &gap),
            Submessage::AckNack(acknack) => self.acknack(source, &acknack),
            Submessage::Unknown { .. } => self.touched.counters.ignored += 1,
        }
        Ok(State::Same)
    }

    /// Always inlined, and so is what the reader does with the sample: nothing of it is passed in memory, where it would be
    /// read in other pieces than it was written in.
    #[inline(always)]
    fn data(&mut self, writer: &Guid, data: &Data<'_>, timestamp: Option<Timestamp>) {
        let (now, block) = (self.incoming.now, self.block);
        if !self.is_current(writer, data.reader) {
            self.data_elsewhere(*writer, data, timestamp);
        } else if let Some(current) = &mut self.current {
            current.core.handle_data_inline(now, &current.writer, data, timestamp, block);
        }
    }

    #[inline(never)]
    fn data_elsewhere(&mut self, writer: Guid, data: &Data<'_>, timestamp: Option<Timestamp>) {
        let (now, block) = (self.incoming.now, self.block);
        let handle = |core: &mut ReaderCore| core.handle_data_in(now, writer, data, timestamp, block);
        if !self.for_readers(writer, data.reader, handle) {
            self.for_strangers(handle);
        }
    }

    fn data_frag(&mut self, source: GuidPrefix, frag: &DataFrag<'_>, timestamp: Option<Timestamp>) {
        let now = self.incoming.now;
        let writer = Guid::new(source, frag.writer);
        let handle = |core: &mut ReaderCore| core.handle_data_frag(now, writer, frag, timestamp);
        if !self.for_readers(writer, frag.reader, handle) {
            self.for_strangers(handle);
        }
    }

    fn heartbeat_frag(&mut self, source: GuidPrefix, heartbeat: &HeartbeatFrag) {
        let now = self.incoming.now;
        let writer = Guid::new(source, heartbeat.writer);
        self.for_readers(writer, heartbeat.reader, |core| core.handle_heartbeat_frag(now, writer, heartbeat));
    }

    fn heartbeat(&mut self, source: GuidPrefix, heartbeat: &Heartbeat) {
        let now = self.incoming.now;
        let writer = Guid::new(source, heartbeat.writer);
        self.for_readers(writer, heartbeat.reader, |core| core.handle_heartbeat(now, writer, heartbeat));
    }

    fn gap(&mut self, source: GuidPrefix, gap: &Gap) {
        let now = self.incoming.now;
        let writer = Guid::new(source, gap.writer);
        self.for_readers(writer, gap.reader, |core| core.handle_gap(now, writer, gap));
    }

    fn acknack(&mut self, source: GuidPrefix, acknack: &AckNack) {
        let Some(writer) = self.incoming.table.writers.get(&acknack.writer) else {
            self.touched.counters.ignored += 1;
            return;
        };
        self.current = None;
        writer.core.lock().handle_acknack(self.incoming.now, Guid::new(source, acknack.reader), acknack);
        note(&mut self.touched.writers, writer);
    }

    fn nack_frag(&mut self, source: GuidPrefix, nack: &NackFrag) {
        let Some(writer) = self.incoming.table.writers.get(&nack.writer) else {
            self.touched.counters.ignored += 1;
            return;
        };
        self.current = None;
        writer.core.lock().handle_nack_frag(self.incoming.now, Guid::new(source, nack.reader), nack);
        note(&mut self.touched.writers, writer);
    }

    /// Whether the reader that is meant is the one whose lock is held, and gets the samples of this writer.
    #[inline(always)]
    fn is_current(&self, writer: &Guid, meant: EntityId) -> bool {
        self.current.as_ref().is_some_and(|current| {
            current.writer == *writer && (meant == EntityId::UNKNOWN || meant == current.reader.entity)
        })
    }

    /// Remembers that there is something for a reader that was not found by the route.
    #[inline]
    fn note_reader(&mut self, endpoint: &Arc<ReaderEndpoint>) {
        if core::mem::take(&mut self.is_on_route)
            && let Some(route) = self.incoming.route
        {
            self.touched.note_reader(&route.reader);
        }
        self.touched.note_reader(endpoint);
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
        let readers = match self.incoming.route.filter(|route| route.writer == writer) {
            Some(route) => Some(std::slice::from_ref(&route.reader)),
            None => self.incoming.table.readers_of.get(&writer).map(Vec::as_slice),
        };
        let Some(readers) = readers else {
            self.touched.counters.ignored += 1;
            return false;
        };
        if let [reader] = readers {
            if meant != EntityId::UNKNOWN && meant != reader.entity {
                return true;
            }
            self.note_reader(reader);
            let mut current = Current { writer, reader, core: reader.core.lock() };
            f(&mut current.core);
            self.current = Some(current);
            return true;
        }
        for reader in readers.iter().filter(|it| meant == EntityId::UNKNOWN || meant == it.entity) {
            self.note_reader(reader);
            f(&mut reader.core.lock());
        }
        true
    }

    /// What the endpoints answer. A lock that is still held is not taken again.
    #[inline]
    fn answer(&mut self, outbox: &mut Outbox) -> Option<Time> {
        let (now, mut next) = (self.incoming.now, Time::MAX);
        match (self.is_on_route, self.incoming.route, self.current.take()) {
            (true, Some(route), current) => {
                let mut core = current.map_or_else(|| route.reader.core.lock(), |current| current.core);
                let news = settle(&route.reader, &mut core, now, self.touched.came, outbox, &mut next);
                self.touched.on_route = Some(news);
            }
            (_, _, current) => self.answer_elsewhere(current, outbox, &mut next),
        }
        if !self.touched.writers.is_empty() {
            self.answer_readers(outbox, &mut next);
        }
        (next != Time::MAX).then_some(next)
    }

    /// The same for the readers that were not found by the route.
    #[inline(never)]
    fn answer_elsewhere(&mut self, current: Option<Current<'t>>, outbox: &mut Outbox, next: &mut Time) {
        let (now, came) = (self.incoming.now, self.touched.came);
        let mut readers = core::mem::take(&mut self.touched.readers);
        match (&mut readers[..], current) {
            ([only], Some(mut current)) => {
                let is_senders = self.header.prefix == current.writer.prefix;
                self.touched.candidate = is_senders.then_some((current.writer, self.header));
                only.news = settle(&only.endpoint, &mut current.core, now, came, outbox, next);
            }
            (readers, current) => {
                drop(current);
                for reader in readers {
                    let mut core = reader.endpoint.core.lock();
                    reader.news = settle(&reader.endpoint, &mut core, now, came, outbox, next);
                }
            }
        }
        self.touched.readers = readers;
    }

    /// What the writers answer.
    #[inline(never)]
    fn answer_readers(&mut self, outbox: &mut Outbox, next: &mut Time) {
        for writer in &self.touched.writers {
            let mut core = writer.core.lock();
            core.poll_answers(outbox);
            *next = (*next).min(core.next_timeout().unwrap_or(Time::MAX));
            // An acknowledgement may make room for more of a large sample.
            if writer.publishing.is_some() && core.is_transmission_due(self.incoming.now) {
                drop(core);
                writer.tell_publisher();
            }
        }
    }

    /// Shows what a writer sends that nobody is matched with to the readers that want to know, see
    /// [`ReaderCore::note_history`]: only Cyclone DDS makes it necessary.
    #[cold]
    fn for_strangers(&mut self, mut f: impl FnMut(&mut ReaderCore)) {
        if self.header.vendor != VendorId::CYCLONE {
            return;
        }
        // The order of a hash table does not matter: each reader is a world of its own.
        self.incoming.table.readers.values().for_each(|reader| {
            let mut core = reader.core.lock();
            if core.heeds_strangers() {
                // It may have been matched meanwhile, and have something to say.
                f(&mut core);
                self.note_reader(reader);
            }
        });
    }
}

/// What one reader answers, and what there is for its listener.
#[inline(always)]
fn settle(
    reader: &ReaderEndpoint,
    core: &mut ReaderCore,
    now: Time,
    came: Option<Came>,
    outbox: &mut Outbox,
    next: &mut Time,
) -> News {
    core.poll_transmit(now, outbox);
    let news = News { has_unread: core.has_unread(), has_status_news: core.take_status_news() };
    if let Some(came) = came.filter(|_| news.has_unread) {
        came.note(reader);
    }
    if let Some(at) = core.take_timeout() {
        *next = (*next).min(at);
    }
    news
}

/// Remembers a writer once.
fn note(touched: &mut Vec<Arc<WriterEndpoint>>, endpoint: &Arc<WriterEndpoint>) {
    if !touched.iter().any(|known| Arc::ptr_eq(known, endpoint)) {
        touched.push(Arc::clone(endpoint));
    }
}
