//! The result of a batch of datagrams: news for listeners, endpoints that owe answers, and the next
//! prediction.

use alloc::vec::Vec;

use weir_wire::{Guid, Header, SequenceNumber};

use super::Handle;
use super::prediction::Prediction;
use crate::config::UNMATCHED_WRITERS_MAX;
use crate::packing::Packing;

/// What a batch changed for the listener of a reader.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct News {
    /// The reader holds samples that were not read.
    pub has_unread: bool,
    /// A status for listeners may have changed.
    pub has_status_news: bool,
}

/// A reader that received something.
#[derive(Debug)]
pub struct ReaderNews<R> {
    /// The reader.
    pub reader: R,
    /// What is new for its listener.
    pub news: News,
}

/// Counters of the receiver.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams, counted as they were sent.
    pub datagrams: u64,
    /// Datagrams that are not RTPS messages, or contain a malformed submessage.
    pub malformed: u64,
    /// Submessages for endpoints that do not exist, or of an unknown kind.
    pub ignored: u64,
}

/// Which readers received something.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Outcome {
    /// Only the predicted reader.
    Predicted(News),
    /// Only one reader, by the general path, from one writer, whose messages have this header.
    Single(Guid, Header),
    /// The listed readers.
    #[default]
    Readers,
}

/// The result of a batch. Reused from batch to batch.
#[derive(Debug)]
pub struct Batch<R, W> {
    /// Counters since the start.
    pub counters: Counters,
    pub(super) outcome: Outcome,
    /// Readers that received something. Empty if the outcome is as predicted.
    pub(super) readers: Vec<ReaderNews<R>>,
    /// The writer of the last batch with outcome `Single`, unless a datagram was as predicted
    /// since.
    pub(super) rival: Option<Guid>,
    /// A reader of an earlier batch, kept because the next batch is usually for the same one:
    /// comparing handles is cheaper than counting references.
    spare: Option<R>,
    /// Writers that received an ACKNACK or a NACK_FRAG.
    pub(super) writers: Vec<W>,
    pub(super) packing: Packing,
    pub(super) unmatched: UnmatchedSamples,
}

/// The samples of unmatched writers in a batch that readers have noted.
#[derive(Debug)]
pub(super) struct UnmatchedSamples {
    noted: [(Guid, SequenceNumber); UNMATCHED_WRITERS_MAX],
    pub(super) len: usize,
}

impl UnmatchedSamples {
    /// Returns whether a sample is news to readers: not if they know one before it, or got many already.
    pub(super) fn note(&mut self, (writer, number): (Guid, SequenceNumber)) -> bool {
        let noted = &self.noted[..self.len];
        let is_known = noted.iter().any(|(known, first)| *known == writer && *first <= number);
        let is_new = !is_known && self.len < self.noted.len();
        if is_new {
            self.noted[self.len] = (writer, number);
            self.len += 1;
        }
        is_new
    }
}

impl<R, W> Default for Batch<R, W> {
    fn default() -> Self {
        let (counters, outcome) = (Counters::default(), Outcome::default());
        let packing = Packing::default();
        Self {
            counters,
            outcome,
            readers: Vec::new(),
            rival: None,
            spare: None,
            writers: Vec::new(),
            packing,
            unmatched: UnmatchedSamples {
                noted: [(Guid::UNKNOWN, SequenceNumber::ZERO); UNMATCHED_WRITERS_MAX],
                len: 0,
            },
        }
    }
}

impl<R: Handle, W: Handle> Batch<R, W> {
    /// Reserves memory for so many endpoints, and for so many bytes of answers.
    pub(super) fn with_room(writers: usize, readers: usize, answer_bytes: usize) -> Self {
        Self {
            readers: Vec::with_capacity(readers),
            writers: Vec::with_capacity(writers),
            packing: Packing::with_room(writers + readers, answer_bytes),
            ..Self::default()
        }
    }

    /// Takes the news for the predicted reader, if no other reader received anything.
    #[inline]
    pub fn take_predicted(&mut self) -> Option<News> {
        let Outcome::Predicted(news) = self.outcome else { return None };
        self.outcome = Outcome::Readers;
        Some(news)
    }

    /// The readers that received something, unless the outcome was as predicted.
    #[inline]
    pub fn readers(&self) -> &[ReaderNews<R>] {
        &self.readers
    }

    /// Takes the list of readers. Return its memory with [`Batch::give_back`].
    #[inline]
    pub fn take_readers(&mut self) -> Vec<ReaderNews<R>> {
        core::mem::take(&mut self.readers)
    }

    /// Reuses the memory of a list of readers, unless the next batch has begun a list.
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

    /// Whether [`Batch::next_prediction`] may return a new prediction.
    #[inline]
    pub fn may_change_prediction(&self) -> bool {
        matches!(self.outcome, Outcome::Single(..))
    }

    /// The prediction for the next batches, if it differs from `before`. It takes two batches in a
    /// row from the same writer, so that writers that alternate do not replace each other's
    /// prediction. `version`: that of the endpoints.
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

    /// Lists a reader, if it is not listed yet. A batch has few readers.
    #[inline]
    pub(super) fn list_reader(&mut self, reader: &R) {
        if self.readers.iter().any(|known| known.reader.is_same(reader)) {
            return;
        }
        let reader = match self.spare.take() {
            Some(spare) if spare.is_same(reader) => spare,
            _ => reader.clone(),
        };
        self.readers.push(ReaderNews { reader, news: News::default() });
    }

    /// Lists a writer, if it is not listed yet.
    pub(super) fn list_writer(&mut self, writer: &W) {
        if !self.writers.iter().any(|known| known.is_same(writer)) {
            self.writers.push(writer.clone());
        }
    }

    fn keep_spare(&mut self, readers: &mut Vec<ReaderNews<R>>) {
        if let Some(last) = readers.pop() {
            self.spare = Some(last.reader);
        }
        readers.clear();
    }
}
