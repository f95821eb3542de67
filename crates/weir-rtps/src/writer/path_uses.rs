//! The paths that a writer uses, with the marks on each.

use alloc::collections::VecDeque;
use core::net::SocketAddrV4;
use core::time::Duration;

use weir_wire::SequenceNumber;

use super::apart::Taken;
use super::late_joiners::Served;
use super::pacing::{Pacing, Position};
use super::reader_proxy::ReaderProxy;
use crate::config;
use crate::path::{Flow, Mark, Path, Unreported};
use crate::time::Time;

/// A path in use by a writer.
#[derive(Debug)]
pub(super) struct PathUse {
    pub(super) path: Path,
    pub(super) flow: Flow,
    /// How often a datagram leaves on it: once for each address of the host.
    pub(super) copies: u64,
    /// Marks that have not passed, with their positions.
    pub(super) marks: Marks,
    /// How far a reader is known to have got.
    pub(super) passed: Position,
    /// Up to where a reader was sent samples on it, while there are older ones that it was [never
    /// sent](super::repairs_allowed).
    pub(super) sent_to: Option<Position>,
    /// What would mark the last new samples.
    pub(super) last: Option<Mark>,
    /// When something was last sent again.
    pub(super) repaired_at: Time,
    /// What it takes of what is to be sent now, and whether that is less.
    pub(super) taken: Taken,
    pub(super) is_limit: bool,
    /// Since when it takes less than others, and its readers are set [apart](super::apart) now.
    pub(super) late_since: Option<Time>,
    pub(super) is_out: bool,
    /// All of its readers are still to be sent the [history](super::late_joiners), and the one that is served.
    pub(super) is_late: bool,
    pub(super) served: Option<Served>,
    /// They are still to be sent something, or to acknowledge much.
    pub(super) owes: bool,
    /// The writer has reliable readers, and only best-effort ones at its end.
    pub(super) is_aside: bool,
    /// Its readers cannot be set apart: a multicast group serves one, several share an address, or there is no memory
    /// for what one is still to be sent.
    pub(super) is_joint: bool,
    /// A best-effort reader at its end has answered what it was [asked](super::receipts).
    pub(super) gives_receipts: bool,
    /// One that has not is expected to until then.
    pub(super) expects_receipts_until: Option<Time>,
    /// Bytes sent to such readers that do not count as in flight yet.
    pub(super) unasked: u64,
    /// A reader at its end would discard what is sent next.
    pub(super) is_full: bool,
    /// A reader at its end does not show how far it has got while something is missing, nor within a large sample.
    pub(super) is_silent: bool,
    /// When such a reader last answered, and how far apart its answers are.
    pub(super) answered_at: Time,
    pub(super) answers_apart: Duration,
    /// HEARTBEATs since then, and sixteen times how many there are between answers.
    pub(super) asked: u32,
    pub(super) asked_mean: u32,
}

pub(super) type Marks = VecDeque<(Position, Mark)>;

impl PathUse {
    pub(super) fn new(path: &Path, flow: Flow, marks: Marks) -> Self {
        Self {
            path: path.clone(),
            flow: Flow { number: path.lock().add_flow(), ..flow },
            copies: 0,
            marks,
            passed: (SequenceNumber::ZERO, 0),
            sent_to: None,
            last: None,
            repaired_at: Time::ZERO,
            taken: Taken::default(),
            is_limit: false,
            late_since: None,
            is_out: false,
            is_late: false,
            served: None,
            owes: false,
            is_aside: false,
            is_joint: false,
            gives_receipts: false,
            expects_receipts_until: None,
            unasked: 0,
            is_full: false,
            is_silent: false,
            answered_at: Time::ZERO,
            answers_apart: Duration::ZERO,
            asked: 0,
            asked_mean: 0,
        }
    }

    /// Returns what its readers do not show, if they do not show all. `large_bytes`: those of large samples.
    pub(super) fn unreported(&self, large_bytes: u64) -> Option<Unreported> {
        self.is_silent.then_some(Unreported { large_bytes, answers_apart: self.answers_apart })
    }

    /// Returns whether a best-effort reader at its end answers, or may still do.
    pub(super) fn is_answered(&self, now: Time) -> bool {
        self.gives_receipts || self.expects_receipts_until.is_some_and(|until| now < until)
    }

    /// Counts what was sent to readers that answer as in flight: as soon as that limits what may be sent, or with the
    /// next question.
    pub(super) fn account_unasked(&mut self, now: Time) {
        let bytes = core::mem::take(&mut self.unasked);
        if self.is_answered(now) {
            self.path.lock().note_answerable(bytes);
        }
    }

    /// Returns the bytes that the writer may keep, unsent or in flight, if the path is paced.
    pub(super) fn window(&self) -> Option<u64> {
        Some(self.path.lock().window(self.unreported(0))? / self.copies)
    }

    fn forget_marks(&mut self) {
        self.marks.clear();
        (self.passed, self.sent_to, self.unasked) = ((SequenceNumber::ZERO, 0), None, 0);
        self.expects_receipts_until = None;
    }

    /// Begins with the marks of a reader that has got as far as a position, and with no other marks.
    pub(super) fn begin_marks(&mut self, passed: Position) {
        self.marks.clear();
        (self.passed, self.sent_to) = (passed, None);
    }

    /// Returns whether an answer is to several HEARTBEATs, so that it shows what has arrived, and not when.
    pub(super) fn answers_together(&self) -> bool {
        self.is_silent && self.asked_mean > ANSWERED_TOGETHER * 16
    }

    /// Records an answer.
    pub(super) fn note_answer(&mut self, now: Time) {
        let apart = now.since(core::mem::replace(&mut self.answered_at, now));
        // A longer time is a pause, or several answers were lost.
        if !apart.is_zero() && apart <= config::ANSWERS_APART_MAX {
            self.answers_apart = apart.max(self.answers_apart - self.answers_apart / 8);
            self.asked_mean += core::mem::take(&mut self.asked).min(ASKED_MAX);
            self.asked_mean -= self.asked_mean / 16;
        }
    }
}

impl Pacing {
    /// Reserves memory for the paths to so many readers, of a writer with so many samples.
    pub(super) fn reserve(&mut self, readers: usize, samples: usize) {
        self.marks_max = Self::marks(samples);
        self.uses.reserve_exact(readers);
        self.counted.reserve_exact(readers.saturating_mul(ADDRESSES_MAX));
        self.spare_marks.reserve_exact(readers);
        self.spare_marks.extend((0..readers).map(|_| Marks::with_capacity(self.marks_max)));
    }

    /// Returns the memory that this reserves, in bytes.
    pub(super) fn bytes(readers: usize, samples: usize) -> usize {
        let marks = Self::marks(samples).saturating_mul(size_of::<(Position, Mark)>());
        let of_reader = size_of::<PathUse>() + size_of::<Marks>() + ADDRESSES_MAX * size_of::<SocketAddrV4>();
        readers.saturating_mul(marks.saturating_add(of_reader))
    }

    /// Returns the memory allocated, in bytes.
    pub(super) fn allocated(&self) -> usize {
        let marks = self.spare_marks.iter().chain(self.uses.iter().map(|it| &it.marks));
        marks.map(|it| it.capacity() * size_of::<(Position, Mark)>()).sum::<usize>()
            + self.spare_marks.capacity() * size_of::<Marks>()
            + self.uses.capacity() * size_of::<PathUse>()
            + self.counted.capacity() * size_of::<SocketAddrV4>()
    }

    fn marks(samples: usize) -> usize {
        config::MARKS_MAX.min(samples.saturating_mul(2).saturating_add(16))
    }

    /// Sets the paths in use: those of reliable readers, if there are any, then those of the others alone.
    /// `destinations`: where a datagram is sent. `is_limited`: only reliable readers have memory for requests.
    pub(super) fn set_paths(
        &mut self,
        proxies: &[ReaderProxy],
        destinations: &[SocketAddrV4],
        is_limited: bool,
    ) {
        let has_reliable = proxies.iter().any(|proxy| proxy.is_reliable);
        self.has_near = proxies.iter().any(|proxy| proxy.path.is_none());
        // What was sent to readers without a path, or to others, does not count on the paths from now on.
        self.unrecorded = 0;
        if core::mem::replace(&mut self.is_reliable, has_reliable) != has_reliable {
            // The marks of HEARTBEATs are samples, those of questions are not.
            self.uses.iter_mut().for_each(PathUse::forget_marks);
        }
        self.counted.clear();
        // The paths that are used come first, in the order of the readers.
        let mut used = 0;
        let reliable = proxies.iter().filter(|proxy| proxy.is_reliable);
        for proxy in reliable.chain(proxies.iter().filter(|proxy| !proxy.is_reliable)) {
            let Some(path) = &proxy.path else { continue };
            let is_aside = has_reliable && !proxy.is_reliable;
            let index = self.uses.iter().position(|known| known.path.is(path)).unwrap_or_else(|| {
                let marks = self.spare_marks.pop().unwrap_or_default();
                self.uses.push(PathUse::new(path, self.flow, marks));
                self.uses.len() - 1
            });
            let index = if index >= used {
                self.uses.swap(index, used);
                (self.uses[used].copies, self.uses[used].is_silent) = (0, false);
                (self.uses[used].is_joint, self.uses[used].is_aside) = (false, is_aside);
                self.uses[used].gives_receipts = false;
                used += 1;
                used - 1
            } else {
                index
            };
            self.uses[index].is_silent |= !proxy.shows_progress() && !is_aside;
            self.uses[index].gives_receipts |= !has_reliable && proxy.gives_receipts();
            self.uses[index].is_joint |= proxy.group.is_some() || is_limited && !proxy.is_reliable;
            for to in proxy.destinations.iter() {
                if self.counted.contains(to) {
                    self.uses[index].is_joint = true;
                } else if destinations.contains(to) {
                    self.counted.push(*to);
                    self.uses[index].copies += 1;
                }
            }
        }
        for mut gone in self.uses.drain(used..) {
            if self.spare_marks.len() < self.spare_marks.capacity() {
                gone.marks.clear();
                self.spare_marks.push(gone.marks);
            }
        }
        // A datagram to a group leaves once for all.
        self.uses.iter_mut().for_each(|it| it.copies = it.copies.max(1));
        (self.next_at, self.is_blocked) = (None, false);
        self.is_used = self.uses.iter().any(|it| !it.is_aside);
        self.is_paced = self.uses.iter().any(|it| !it.is_aside && it.path.lock().is_paced());
    }
}

/// Addresses of a reader: of two hosts, if it has moved.
pub(super) const ADDRESSES_MAX: usize = 2;
/// A reader that answers fewer than one in so many HEARTBEATs answers several at once.
const ANSWERED_TOGETHER: u32 = 3;
/// No more HEARTBEATs count between two answers.
const ASKED_MAX: u32 = 64;
