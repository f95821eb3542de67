//! The message receiver: passes the submessages of user data to writers and readers (RTPS 2.5,
//! 8.3.4).
//!
//! Submessages are parsed in place. Each endpoint is locked once per batch of datagrams, and again
//! only if traffic for several endpoints alternates. Answers, repairs and news for listeners are
//! collected at the end of the batch, see [`batch`]. Most datagrams resemble the one before, see
//! [`prediction`].
//!
//! There is one function per kind of input: [`receive_single`] for a batch of one datagram, which
//! may be predicted, and [`receive_many`] for any other batch.
//!
//! The receiver finds endpoints through [`Endpoints`], which a driver implements with its locks.
//! [`unlocked`] implements it for endpoints that one thread owns, as in simulations.

pub mod batch;
mod endpoints;
pub mod prediction;
pub(crate) mod submessages;
#[cfg(test)]
mod tests;
pub mod unlocked;

use alloc::sync::Arc;

use weir_wire::{
    Data, EntityId, Guid, GuidPrefix, Header, Message, ProtocolVersion, SequenceNumber, Submessage,
    Submessages, Timestamp, VendorId,
};

use crate::block::Block;
use crate::outbox::Outbox;
use crate::reader::ReaderCore;
use crate::time::Time;
use crate::writer::WriterCore;
use batch::{Batch, News, Outcome};
use prediction::{Predicted, Prediction};
use submessages::{Addressee, Moment, Sink};

pub use endpoints::{Arrival, Endpoints, Handle};

/// What is known about a batch before it is parsed.
#[derive(Debug)]
pub struct Incoming<'t, E: Endpoints> {
    /// The endpoints of the participant.
    pub endpoints: &'t E,
    /// Writer and reader of the last samples.
    pub prediction: Option<&'t Prediction<E::Reader>>,
    /// The participant that receives.
    pub prefix: GuidPrefix,
    /// When the batch arrived.
    pub now: Time,
}

impl<E: Endpoints> Clone for Incoming<'_, E> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<E: Endpoints> Copy for Incoming<'_, E> {}

/// Handles a batch of one datagram, and appends the answers to `outbox`. A sample may stay in
/// `block`, the memory that the datagram lies in, until it is taken.
///
/// Returns the earliest timeout among those that may be earlier than before.
#[inline(never)]
pub fn receive_single<E: Endpoints>(
    incoming: Incoming<'_, E>,
    datagram: &[u8],
    block: Option<&Arc<Block>>,
    batch: &mut Batch<E::Reader, E::Writer>,
    outbox: &mut Outbox,
) -> Option<Time> {
    match incoming.prediction.and_then(|prediction| Predicted::new::<E>(prediction, datagram)) {
        Some(predicted) => receive_predicted(incoming, predicted, block, batch, outbox),
        None => receive_many(incoming, [datagram], block, batch, outbox),
    }
}

/// Handles any other batch, and appends the answers to `outbox`. Empty datagrams, which no
/// participant sends to another, are not counted: a driver may use one to wake its own receiver.
/// `block`: as for [`receive_single`], if all datagrams lie in it.
///
/// Returns the earliest timeout among those that may be earlier than before.
#[inline(never)]
pub fn receive_many<'d, E: Endpoints>(
    incoming: Incoming<'_, E>,
    datagrams: impl IntoIterator<Item = &'d [u8]>,
    block: Option<&Arc<Block>>,
    batch: &mut Batch<E::Reader, E::Writer>,
    outbox: &mut Outbox,
) -> Option<Time> {
    let mut receiver = Receiver::new(incoming, block, batch);
    datagrams.into_iter().for_each(|datagram| receiver.datagram(datagram));
    receiver.finish(outbox)
}

/// Handles a datagram that begins as predicted. Without lookups, and without a [`Receiver`] if
/// nothing follows the sample.
#[inline(always)]
fn receive_predicted<E: Endpoints>(
    incoming: Incoming<'_, E>,
    Predicted { prediction, timestamp, data, behind }: Predicted<'_, '_, E::Reader>,
    block: Option<&Arc<Block>>,
    batch: &mut Batch<E::Reader, E::Writer>,
    outbox: &mut Outbox,
) -> Option<Time> {
    batch.counters.datagrams += 1;
    batch.rival = None;
    let mut core = incoming.endpoints.lock(&prediction.reader);
    core.handle_data(incoming.now, &prediction.writer, &data, Some(timestamp), block);
    if !behind.is_empty() {
        let current = (prediction, core);
        return receive_behind(incoming, current, timestamp, behind, block, batch, outbox);
    }
    let mut next = Time::MAX;
    finish_predicted(incoming, prediction, &mut core, batch, outbox, &mut next);
    (next != Time::MAX).then_some(next)
}

/// Handles the submessages behind a sample that was predicted, whose reader is locked.
#[inline(never)]
fn receive_behind<'t, E: Endpoints>(
    incoming: Incoming<'t, E>,
    (prediction, core): (&'t Prediction<E::Reader>, E::Locked<'t>),
    timestamp: Timestamp,
    submessages: Submessages<'_>,
    block: Option<&'t Arc<Block>>,
    batch: &mut Batch<E::Reader, E::Writer>,
    outbox: &mut Outbox,
) -> Option<Time> {
    let mut receiver = Receiver::new(incoming, block, batch);
    receiver.is_as_predicted = true;
    receiver.current = Some(Current { writer: prediction.writer, reader: &prediction.reader, core });
    if let Ok(header) = Header::parse(&prediction.header) {
        receiver.header = header;
    }
    receiver.message(submessages, Some(timestamp));
    receiver.finish(outbox)
}

/// Ends a batch in which the predicted reader, which is locked, received something and no other
/// reader did.
#[inline(always)]
fn finish_predicted<E: Endpoints>(
    incoming: Incoming<'_, E>,
    prediction: &Prediction<E::Reader>,
    core: &mut ReaderCore,
    batch: &mut Batch<E::Reader, E::Writer>,
    outbox: &mut Outbox,
    next: &mut Time,
) {
    let news = settle(incoming, &prediction.reader, core, outbox, next);
    batch.outcome = Outcome::Predicted(news);
}

/// The reader that is locked, and the writer whose samples it receives.
#[derive(Debug)]
struct Current<'t, R, L> {
    writer: Guid,
    reader: &'t R,
    core: L,
}

/// The general receiver of a batch of datagrams.
#[derive(Debug)]
struct Receiver<'t, 'b, E: Endpoints + 't> {
    incoming: Incoming<'t, E>,
    batch: &'b mut Batch<E::Reader, E::Writer>,
    current: Option<Current<'t, E::Reader, E::Locked<'t>>>,
    /// Whether the predicted reader received something, and no other reader did.
    is_as_predicted: bool,
    /// The header of the last datagram.
    header: Header,
    /// The memory that the datagram lies in, if samples may stay there.
    block: Option<&'t Arc<Block>>,
}

impl<'t, 'b, E: Endpoints> Receiver<'t, 'b, E> {
    #[inline(always)]
    fn new(
        incoming: Incoming<'t, E>,
        block: Option<&'t Arc<Block>>,
        batch: &'b mut Batch<E::Reader, E::Writer>,
    ) -> Self {
        let header =
            Header { version: ProtocolVersion::V2_5, vendor: VendorId::UNKNOWN, prefix: GuidPrefix::UNKNOWN };
        Self { incoming, batch, current: None, is_as_predicted: false, header, block }
    }

    /// Handles a datagram. Always inlined, to save a call per datagram.
    #[inline(always)]
    fn datagram(&mut self, datagram: &[u8]) {
        if datagram.is_empty() {
            return;
        }
        self.batch.counters.datagrams += 1;
        let Ok(message) = Message::parse(datagram) else {
            self.batch.counters.malformed += 1;
            return;
        };
        self.header = message.header;
        self.message(message.submessages(), None);
    }

    /// Ends the batch: collects the answers of the endpoints. A lock that is still held is not
    /// taken again.
    #[inline]
    fn finish(mut self, outbox: &mut Outbox) -> Option<Time> {
        let (incoming, mut next) = (self.incoming, Time::MAX);
        match (self.is_as_predicted, incoming.prediction, self.current.take()) {
            (true, Some(prediction), current) => {
                let lock = || incoming.endpoints.lock(&prediction.reader);
                let mut core = current.map_or_else(lock, |current| current.core);
                finish_predicted(incoming, prediction, &mut core, self.batch, outbox, &mut next);
            }
            (_, _, current) => self.collect_reader_answers(current, outbox, &mut next),
        }
        self.batch.unmatched.len = 0;
        let has_many = self.batch.readers.len() + self.batch.writers.len() > 1;
        if !self.batch.writers.is_empty() {
            self.collect_writer_answers(outbox, &mut next);
        }
        if has_many {
            self.batch.packing.pack_answers(outbox);
        }
        (next != Time::MAX).then_some(next)
    }

    /// Handles the submessages of a message, from its beginning or behind a sample written at
    /// `timestamp`.
    #[inline(never)]
    fn message(&mut self, submessages: Submessages<'_>, timestamp: Option<Timestamp>) {
        let (own, source) = (self.incoming.prefix, self.header.prefix);
        if submessages::walk(submessages, own, source, timestamp, self).is_err() {
            self.batch.counters.malformed += 1;
        }
    }

    /// Handles a sample for another reader than the one that is locked.
    #[inline(never)]
    fn data_unlocked(&mut self, writer: Guid, data: &Data<'_>, timestamp: Option<Timestamp>) {
        let (now, block) = (self.incoming.now, self.block);
        let handle = |core: &mut ReaderCore| core.handle_data(now, &writer, data, timestamp, block);
        if !self.for_readers(writer, data.reader, handle) {
            self.for_unmatched((writer, data.sequence_number), handle);
        }
    }

    /// Passes a writer to `f`, if it exists.
    fn for_writer(&mut self, entity: EntityId, f: impl FnOnce(&mut WriterCore)) {
        let Some(writer) = self.incoming.endpoints.writer(entity) else {
            self.batch.counters.ignored += 1;
            return;
        };
        // Only one lock is held at a time.
        self.current = None;
        self.incoming.endpoints.with_writer(writer, f);
        self.batch.list_writer(writer);
    }

    /// Whether a submessage of this writer is for the reader that is locked.
    #[inline(always)]
    fn is_current(&self, writer: &Guid, meant: EntityId) -> bool {
        self.current.as_ref().is_some_and(|current| {
            current.writer == *writer && (meant == EntityId::UNKNOWN || meant == E::entity(current.reader))
        })
    }

    /// Lists a reader that received something by the general path. It may be the predicted one.
    #[inline]
    fn list_reader(&mut self, reader: &E::Reader) {
        if core::mem::take(&mut self.is_as_predicted)
            && let Some(prediction) = self.incoming.prediction
        {
            self.batch.list_reader(&prediction.reader);
        }
        self.batch.list_reader(reader);
    }

    /// Passes to `f` the reader that is named, or all readers matched with the writer. Returns
    /// `false` if it has none.
    #[inline]
    fn for_readers(&mut self, writer: Guid, meant: EntityId, mut f: impl FnMut(&mut ReaderCore)) -> bool {
        if self.is_current(&writer, meant)
            && let Some(current) = &mut self.current
        {
            f(&mut current.core);
            return true;
        }
        // Only one lock is held at a time.
        self.current = None;
        let Incoming { endpoints, prediction, .. } = self.incoming;
        // The prediction saves the general path its look-up, too.
        let readers = match prediction.filter(|prediction| prediction.writer == writer) {
            Some(prediction) => Some(core::slice::from_ref(&prediction.reader)),
            None => endpoints.readers_of(&writer),
        };
        let Some(readers) = readers else {
            self.batch.counters.ignored += 1;
            if self.header.vendor == VendorId::WEIR {
                endpoints.note_unmatched(&writer);
            }
            return false;
        };
        if let [reader] = readers {
            if meant != EntityId::UNKNOWN && meant != E::entity(reader) {
                return true;
            }
            self.list_reader(reader);
            let mut current = Current { writer, reader, core: endpoints.lock(reader) };
            f(&mut current.core);
            self.current = Some(current);
            return true;
        }
        for reader in readers.iter().filter(|it| meant == EntityId::UNKNOWN || meant == E::entity(it)) {
            self.list_reader(reader);
            f(&mut endpoints.lock(reader));
        }
        true
    }

    /// Passes the readers that want samples of unmatched writers to `f`. Necessary only for Cyclone
    /// DDS, see [`ReaderCore::note_history`]. A reader remembers the first sample of few writers, so anything else is
    /// passed over: anyone can fill a datagram with such samples, and each visits all readers.
    #[cold]
    fn for_unmatched(&mut self, sample: (Guid, SequenceNumber), mut f: impl FnMut(&mut ReaderCore)) {
        if self.header.vendor != VendorId::CYCLONE || !self.batch.unmatched.note(sample) {
            return;
        }
        let endpoints = self.incoming.endpoints;
        endpoints.readers().for_each(|reader| {
            let mut core = endpoints.lock(reader);
            if core.wants_unmatched() {
                f(&mut core);
                // The writer may have been matched in the meantime, and the reader may have to
                // answer.
                if core.is_matched(sample.0) {
                    self.list_reader(reader);
                }
            }
        });
    }

    /// Collects the answers of the listed readers.
    #[inline(never)]
    fn collect_reader_answers(
        &mut self,
        current: Option<Current<'t, E::Reader, E::Locked<'t>>>,
        outbox: &mut Outbox,
        next: &mut Time,
    ) {
        let incoming = self.incoming;
        let mut sender = None;
        match (&mut self.batch.readers[..], current) {
            ([only], Some(mut current)) => {
                let is_senders = self.header.prefix == current.writer.prefix;
                sender = is_senders.then_some((current.writer, self.header));
                only.news = settle(incoming, &only.reader, &mut current.core, outbox, next);
            }
            (readers, current) => {
                drop(current);
                for it in readers {
                    let mut core = incoming.endpoints.lock(&it.reader);
                    it.news = settle(incoming, &it.reader, &mut core, outbox, next);
                }
            }
        }
        self.batch.outcome =
            sender.map_or(Outcome::Readers, |(writer, header)| Outcome::Single(writer, header));
    }

    /// Collects the answers of the listed writers.
    #[inline(never)]
    fn collect_writer_answers(&mut self, outbox: &mut Outbox, next: &mut Time) {
        let Incoming { endpoints, now, .. } = self.incoming;
        for writer in self.batch.writers.drain(..) {
            let has_publisher = endpoints.has_publisher(&writer);
            let is_due = endpoints.with_writer(&writer, |core| {
                if endpoints.is_sending(&writer) {
                    core.poll_answers_beside_sender(now, outbox);
                } else {
                    core.poll_answers(now, outbox);
                }
                match (core.next_timeout(), core.take_cancelled_timeout()) {
                    (Some(at), _) => *next = (*next).min(at),
                    (None, Some(before)) => endpoints.cancel_timeout(before),
                    (None, None) => {}
                }
                has_publisher && core.is_transmission_due(now)
            });
            // An acknowledgement may open the window for more of a large sample.
            if is_due {
                endpoints.wake_publisher(&writer);
            }
        }
    }
}

impl<E: Endpoints> Sink for Receiver<'_, '_, E> {
    /// Always inlined, like [`ReaderCore::handle_data`].
    #[inline(always)]
    fn data(&mut self, writer: &Guid, data: &Data<'_>, timestamp: Option<Timestamp>) {
        let (now, block) = (self.incoming.now, self.block);
        if !self.is_current(writer, data.reader) {
            self.data_unlocked(*writer, data, timestamp);
        } else if let Some(current) = &mut self.current {
            current.core.handle_data(now, &current.writer, data, timestamp, block);
        }
    }

    #[inline(always)]
    fn other(&mut self, source: GuidPrefix, submessage: &Submessage<'_>, timestamp: Option<Timestamp>) {
        let Incoming { endpoints, now, .. } = self.incoming;
        let block = self.block;
        // Asked when the endpoint is known, so that nothing else makes the kernel stamp what arrives.
        let moment = || {
            let is_measured = matches!(submessage, Submessage::Receipt(_));
            Moment { now, arrival: if is_measured { endpoints.arrival() } else { None } }
        };
        match submessages::addressee(source, submessage) {
            Some(Addressee::Readers { writer, reader }) => {
                let handle = |core: &mut ReaderCore| {
                    submessages::to_reader(core, moment(), writer, submessage, timestamp, block);
                };
                let sample = match submessage {
                    Submessage::Data(data) => Some(data.sequence_number),
                    Submessage::DataFrag(frag) => Some(frag.sequence_number),
                    _ => None,
                };
                if !self.for_readers(writer, reader, handle)
                    && let Some(number) = sample
                {
                    self.for_unmatched((writer, number), handle);
                }
            }
            Some(Addressee::Writer { writer, reader }) => {
                let handle =
                    |core: &mut WriterCore| submessages::to_writer(core, moment(), reader, submessage);
                self.for_writer(writer, handle);
            }
            None if matches!(submessage, Submessage::Unknown { .. }) => self.batch.counters.ignored += 1,
            // The walk has interpreted the others, or they mean nothing here.
            None => {}
        }
    }
}

/// Collects the answers of a reader. Returns what is new for its listener.
#[inline(always)]
fn settle<E: Endpoints>(
    incoming: Incoming<'_, E>,
    reader: &E::Reader,
    core: &mut ReaderCore,
    outbox: &mut Outbox,
    next: &mut Time,
) -> News {
    core.poll_transmit(incoming.now, outbox);
    let news = News { has_unread: core.has_unread(), has_status_news: core.take_status_news() };
    if news.has_unread {
        incoming.endpoints.note_unread(reader);
    }
    if let Some(at) = core.take_timeout() {
        *next = (*next).min(at);
    }
    news
}
