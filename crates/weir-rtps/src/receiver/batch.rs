//! What a batch of datagrams leaves behind: news for listeners, endpoints that have to answer, and who may be predicted.

use weir_wire::{Guid, Header};

use super::Handle;
use super::prediction::Prediction;

/// What a batch brought for a reader.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct News {
    /// It holds samples that were not read.
    pub has_unread: bool,
    /// A status may have changed that a listener is to be notified of.
    pub has_status_news: bool,
}

/// A reader that a batch had something for.
#[derive(Debug)]
pub struct ReaderNews<R> {
    /// The reader.
    pub reader: R,
    /// What it got.
    pub news: News,
}

/// Numbers that the receiver counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams, as they were sent.
    pub datagrams: u64,
    /// Datagrams that are no RTPS message, or one with a malformed submessage.
    pub malformed: u64,
    /// Submessages for endpoints that do not exist, or of an unknown kind.
    pub ignored: u64,
}

/// Whom a batch was for.
#[derive(Debug, Clone, Copy, Default)]
enum Outcome {
    /// The predicted reader, and no other.
    Predicted(News),
    /// One reader that was not predicted, with samples of one writer, whose messages begin with this header.
    Single(Guid, Header),
    /// Any number of readers, which are listed.
    #[default]
    Readers,
}

/// What a batch leaves behind. Reused from batch to batch.
#[derive(Debug)]
pub struct Batch<R, W> {
    /// Counted since the receiver was made.
    pub counters: Counters,
    outcome: Outcome,
    /// Empty if the outcome is as predicted.
    readers: Vec<ReaderNews<R>>,
    /// The writer of the last batch whose outcome was `Single`, unless one was as predicted since.
    rival: Option<Guid>,
    /// A reader of an earlier batch: the next one usually has something for it too, and counting references costs more
    /// than comparing handles.
    spare: Option<R>,
    /// Writers that were acknowledged to or asked for repairs.
    writers: Vec<W>,
}

impl<R, W> Default for Batch<R, W> {
    fn default() -> Self {
        let (counters, outcome) = (Counters::default(), Outcome::default());
        Self { counters, outcome, readers: Vec::new(), rival: None, spare: None, writers: Vec::new() }
    }
}

impl<R: Handle, W: Handle> Batch<R, W> {
    /// The news for the predicted reader, if there was something for no other. They are taken once.
    #[inline]
    pub fn take_predicted(&mut self) -> Option<News> {
        let Outcome::Predicted(news) = self.outcome else { return None };
        self.outcome = Outcome::Readers;
        Some(news)
    }

    /// The readers that there was something for, unless the outcome was as predicted.
    #[inline]
    pub fn readers(&self) -> &[ReaderNews<R>] {
        &self.readers
    }

    /// The same, to be given back by [`Batch::give_back`].
    #[inline]
    pub fn take_readers(&mut self) -> Vec<ReaderNews<R>> {
        core::mem::take(&mut self.readers)
    }

    /// Reuses the memory of a list of readers for the next batch, unless that has a list already.
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

    /// Whether the next batches may be predicted otherwise than this one was.
    #[inline]
    pub fn may_change_prediction(&self) -> bool {
        matches!(self.outcome, Outcome::Single(..))
    }

    /// The prediction for the next batches, if it is another one than before. A prediction is made by two batches in a row
    /// from the same writer: writers that alternate do not take it from each other, and no reference is counted for them.
    ///
    /// `version` is that of the endpoints.
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

    /// A datagram was as predicted: another writer needs two batches in a row again.
    #[inline(always)]
    pub(super) fn forget_rival(&mut self) {
        self.rival = None;
    }

    /// Ends a batch that had something for the predicted reader alone.
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

    /// Lists a reader once. A batch has something for few.
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

    /// The writers that have to answer.
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
