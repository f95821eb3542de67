//! The results of a batch of datagrams: news for listeners, endpoints that have to respond, and the
//! next prediction.

use weir_wire::{Guid, Header};

use super::Handle;
use super::prediction::Prediction;

/// The news of a batch for a reader.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct News {
    /// Whether it holds unread samples.
    pub has_unread: bool,
    /// Whether a status may have changed that a listener is to be notified of.
    pub has_status_news: bool,
}

/// A reader that a batch had something for.
#[derive(Debug)]
pub struct ReaderNews<R> {
    /// The reader.
    pub reader: R,
    /// Its news.
    pub news: News,
}

/// Counters of the receiver.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams, as they were sent.
    pub datagrams: u64,
    /// Datagrams that are not RTPS messages, or have a malformed submessage.
    pub malformed: u64,
    /// Submessages for endpoints that do not exist, or of an unknown kind.
    pub ignored: u64,
}

/// The readers of a batch.
#[derive(Debug, Clone, Copy, Default)]
enum Outcome {
    /// The predicted reader only.
    Predicted(News),
    /// One reader that was not predicted, with samples of one writer, whose messages start with
    /// this header.
    Single(Guid, Header),
    /// Any number of readers, which are listed.
    #[default]
    Readers,
}

/// The results of a batch. Reused from batch to batch.
#[derive(Debug)]
pub struct Batch<R, W> {
    /// Counts since the receiver was created.
    pub counters: Counters,
    outcome: Outcome,
    /// Empty if the outcome is as predicted.
    readers: Vec<ReaderNews<R>>,
    /// The writer of the last batch with the outcome `Single`, unless a later one was as predicted.
    rival: Option<Guid>,
    /// A reader of an earlier batch: the next one usually has something for it, too, and comparing
    /// handles is cheaper than reference counting.
    spare: Option<R>,
    /// Writers that received acknowledgements or requests for repairs.
    writers: Vec<W>,
}

impl<R, W> Default for Batch<R, W> {
    fn default() -> Self {
        let (counters, outcome) = (Counters::default(), Outcome::default());
        Self { counters, outcome, readers: Vec::new(), rival: None, spare: None, writers: Vec::new() }
    }
}

impl<R: Handle, W: Handle> Batch<R, W> {
    /// Returns the news for the predicted reader, if there are none for others. They are returned
    /// once.
    #[inline]
    pub fn take_predicted(&mut self) -> Option<News> {
        let Outcome::Predicted(news) = self.outcome else { return None };
        self.outcome = Outcome::Readers;
        Some(news)
    }

    /// Returns the readers with news, unless the outcome was as predicted.
    #[inline]
    pub fn readers(&self) -> &[ReaderNews<R>] {
        &self.readers
    }

    /// The same, to be returned by [`Batch::give_back`].
    #[inline]
    pub fn take_readers(&mut self) -> Vec<ReaderNews<R>> {
        core::mem::take(&mut self.readers)
    }

    /// Reuses the memory of a list of readers for the next batch, unless that already has a list.
    #[inline]
    pub fn give_back(&mut self, mut readers: Vec<ReaderNews<R>>) {
        if self.readers.capacity() == 0 {
            self.keep_spare(&mut readers);
            self.readers = readers;
        }
    }

    /// Empties the list of readers.
    #[inline]
    pub fn clear_readers(&mut self) {
        let mut readers = self.take_readers();
        self.keep_spare(&mut readers);
        self.readers = readers;
    }

    /// Returns whether the next batches may have another prediction than this one.
    #[inline]
    pub fn may_change_prediction(&self) -> bool {
        matches!(self.outcome, Outcome::Single(..))
    }

    /// Returns the prediction for the next batches, if it changes.
    ///
    /// A prediction needs two consecutive batches from the same writer: writers that alternate do
    /// not replace each other's, and no reference is counted for them. `version` is that of the
    /// endpoints.
    #[inline(never)]
    pub fn next_prediction(&mut self, before: Option<&Prediction<R>>, version: u64) -> Option<Prediction<R>> {
        let Outcome::Single(writer, header) = self.outcome else { return None };
        self.outcome = Outcome::Readers;
        if before.is_some_and(|before| before.is_of(&header, writer)) {
            self.rival = None;
            return None;
        }
        let is_second = self.rival.replace(writer) == Some(writer);
        let [only] = &self.readers[..] else { return None };
        is_second.then(|| Prediction::new(version, &header, writer, &only.reader))
    }

    /// After a datagram that was as predicted, another writer needs two consecutive batches again.
    #[inline(always)]
    pub(super) fn forget_rival(&mut self) {
        self.rival = None;
    }

    /// Ends a batch that had something for the predicted reader only.
    #[inline(always)]
    pub(super) fn end_as_predicted(&mut self, news: News) {
        self.outcome = Outcome::Predicted(news);
    }

    /// Ends any other batch. `from`: the only writer, and the header of its messages.
    #[inline]
    pub(super) fn end_unpredicted(&mut self, from: Option<(Guid, Header)>) {
        self.outcome = from.map_or(Outcome::Readers, |(writer, header)| Outcome::Single(writer, header));
    }

    #[inline]
    pub(super) fn readers_mut(&mut self) -> &mut [ReaderNews<R>] {
        &mut self.readers
    }

    #[inline]
    pub(super) fn has_writers(&self) -> bool {
        !self.writers.is_empty()
    }

    /// Lists a reader once. Few readers are affected by a batch.
    #[inline]
    pub(super) fn note_reader(&mut self, reader: &R) {
        if self.readers.iter().any(|known| known.reader.is_same(reader)) {
            return;
        }
        let reader = match self.spare.take() {
            Some(spare) if spare.is_same(reader) => spare,
            _ => reader.clone(),
        };
        self.readers.push(ReaderNews { reader, news: News::default() });
    }

    /// Lists a writer once.
    pub(super) fn note_writer(&mut self, writer: &W) {
        if !self.writers.iter().any(|known| known.is_same(writer)) {
            self.writers.push(writer.clone());
        }
    }

    /// Returns the writers that have to respond.
    pub(super) fn take_writers(&mut self) -> impl Iterator<Item = W> {
        self.writers.drain(..)
    }

    fn keep_spare(&mut self, readers: &mut Vec<ReaderNews<R>>) {
        if let Some(last) = readers.pop() {
            self.spare = Some(last.reader);
        }
        readers.clear();
    }
}
