//! One sample that is assembled from fragments (RTPS 2.5, 8.4.14.1).

use alloc::vec::Vec;
use core::time::Duration;

use weir_wire::{DataFrag, FragmentNumber, FragmentNumberSet, SequenceNumber, Timestamp};

use super::sample_memory::SampleMemory;
use crate::config;
use crate::time::Time;
use crate::writer::ChangeKind;

/// A sample of which fragments have arrived.
///
/// Its memory is proportional to what has arrived, whatever size the first fragment announces: only
/// the first `reach` fragments may use memory. The reach is [`config::REASSEMBLY_REACH_MIN_BYTES`]
/// at first, then two to four times the number of fragments that have arrived. Fragments beyond it
/// are refused, and requested once the reach has grown. Memory is reserved for the reach, or for
/// the whole sample if one of this size was completed before.
#[derive(Debug)]
pub(super) struct Assembly {
    pub(super) sequence_number: SequenceNumber,
    pub(super) kind: ChangeKind,
    pub(super) key_hash: Option<[u8; 16]>,
    pub(super) is_key: bool,
    pub(super) source_timestamp: Option<Timestamp>,
    pub(super) sample_size: usize,
    pub(super) memory: SampleMemory,
    fragment_size: usize,
    /// Number of fragments.
    total: u32,
    missing: u32,
    reach: u32,
    /// Whether to reserve memory for the whole sample at once.
    is_reserved_whole: bool,
    /// 64 fragments each. Fragments behind the last word have not arrived and were not requested.
    words: Vec<Word>,
    /// Number of leading words whose fragments have all arrived.
    whole_words: usize,
    /// The last fragment known to exist: it has arrived, or the writer has announced it.
    highest: u32,
    /// Whether the writer has requested a progress report.
    pub(super) is_progress_wanted: bool,
    /// When the last fragment arrived that was not there before.
    pub(super) added_at: Time,
}

/// What became of a fragment.
pub(super) enum Added {
    /// It is stored.
    Stored {
        /// Whether fragments are missing that were not known to exist, or could not be requested
        /// before.
        reveals_missing: bool,
    },
    /// It lies beyond the reach and was dropped.
    TooFar {
        /// As above.
        reveals_missing: bool,
    },
    /// Memory for it could not be allocated.
    NoMemory,
}

/// Why a fragment arrives.
pub(super) enum Origin {
    /// It was not requested.
    Original,
    /// It was last requested at `asked_at`, for the `tries`-th time.
    Repair { asked_at: Time, tries: u8 },
    /// It has arrived before, and was requested more than once: the repeated request was premature.
    PrematureRepair,
}

/// 64 fragments, one bit for each.
#[derive(Debug, Clone, Default)]
pub(super) struct Word {
    received: u64,
    /// Fragments that were requested.
    asked: u64,
    /// When the last request was sent.
    asked_at: Time,
    /// How many times the same fragments were requested. Only the repair of a first request
    /// measures the round trip.
    tries: u8,
    /// Fragments named by the last request. The repair of any other measures nothing.
    latest: u64,
    /// When they were last named, in case that the request was lost.
    named_at: Time,
}

/// When missing fragments are requested again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// The time after which a repair counts as lost.
    pub(super) repair_ns: u64,
    /// The time after which the same request is sent once more, because it may be lost; `u64::MAX`: never.
    pub(super) request_ns: u64,
    /// Everything that was requested is to be named again, and only that.
    pub(super) is_repeat: bool,
    /// Everything that is missing is to be named.
    pub(super) is_named: bool,
}

impl Word {
    /// The missing ones among the first `known` fragments.
    fn missing(&self, known: u32) -> u64 {
        let known = if known < FRAGMENTS_PER_WORD { (1 << known) - 1 } else { u64::MAX };
        known & !self.received
    }

    /// Marks fragments as requested and returns them: of the first `known`, those never requested
    /// before, or all that are missing if the last request is old enough.
    fn ask(&mut self, now: Time, patience: Patience, known: u32) -> u64 {
        let missing = self.missing(known);
        let is_due = now.nanos_since(self.asked_at) >= patience.repair_ns && !patience.is_repeat;
        let is_again = missing & self.asked != 0 && is_due;
        let is_lately = now.nanos_since(self.asked_at) / REPEATED_MAX < patience.request_ns;
        let is_repeated = is_lately && now.nanos_since(self.named_at) >= patience.request_ns;
        let new = missing & !self.asked;
        if is_again || new != 0 {
            self.latest = if is_again { missing } else { new };
            self.tries = if is_again { self.tries.saturating_add(1) } else { 1 };
            self.asked = missing;
            self.asked_at = now;
        }
        let is_named = is_repeated || patience.is_repeat || patience.is_named;
        let wanted = if is_again || is_named { missing } else { new };
        if wanted != 0 {
            self.named_at = now;
        }
        wanted
    }
}

impl Assembly {
    /// The sample that `frag` belongs to, without fragments. `words` is empty memory for reuse.
    /// `is_reserved_whole`: memory is to be reserved for all of the sample.
    pub(super) fn new(
        frag: &DataFrag<'_>,
        (kind, key_hash): (ChangeKind, Option<[u8; 16]>),
        source_timestamp: Option<Timestamp>,
        memory: SampleMemory,
        words: Vec<Word>,
        is_reserved_whole: bool,
    ) -> Self {
        let (sample_size, fragment_size) = (frag.sample_size as usize, usize::from(frag.fragment_size));
        let total = sample_size.div_ceil(fragment_size) as u32;
        let reach_min = config::REASSEMBLY_REACH_MIN_BYTES.div_ceil(fragment_size) as u32;
        Self {
            sequence_number: frag.sequence_number,
            kind,
            key_hash,
            is_key: frag.is_key,
            source_timestamp,
            sample_size,
            fragment_size,
            total,
            missing: total,
            reach: match memory {
                SampleMemory::Recycled(_) => total,
                SampleMemory::Growing(_) => total.min(reach_min),
            },
            memory,
            is_reserved_whole,
            words,
            whole_words: 0,
            highest: 0,
            is_progress_wanted: false,
            added_at: Time::ZERO,
        }
    }

    /// A sample without fragments, which stands for none.
    pub(super) fn vacant() -> Self {
        Self {
            sequence_number: SequenceNumber::ZERO,
            kind: ChangeKind::Alive,
            key_hash: None,
            is_key: false,
            source_timestamp: None,
            sample_size: 0,
            fragment_size: 1,
            total: 0,
            missing: 0,
            reach: 0,
            memory: SampleMemory::Growing(Vec::new()),
            is_reserved_whole: false,
            words: Vec::new(),
            whole_words: 0,
            highest: 0,
            is_progress_wanted: false,
            added_at: Time::ZERO,
        }
    }

    /// Words for which there is memory.
    pub(super) fn words_room(&self) -> usize {
        self.words.capacity()
    }

    /// Whether `frag` agrees with the fragments before it.
    pub(super) fn is_of(&self, frag: &DataFrag<'_>) -> bool {
        self.sample_size == frag.sample_size as usize && self.fragment_size == usize::from(frag.fragment_size)
    }

    /// Whether no fragment has arrived for this time.
    pub(super) fn is_idle(&self, now: Time, time: Duration) -> bool {
        now.since(self.added_at) >= time
    }

    /// Whether the missing fragments will not arrive, it seems, although they were requested several times: those that
    /// are there may be false. They are few, so that not much is lost if they are not.
    pub(super) fn is_hopeless(&self, now: Time) -> bool {
        let arrived = (self.total - self.missing) as usize * self.fragment_size;
        arrived <= config::ASSEMBLY_MIN_BYTES
            && self.is_idle(now, config::REASSEMBLY_IDLE * 2)
            && self.was_asked_often()
    }

    /// Whether missing fragments were requested several times, and have not arrived.
    pub(super) fn was_asked_often(&self) -> bool {
        self.words.iter().any(|word| word.tries >= HOPELESS_TRIES)
    }

    /// Whether all fragments have arrived.
    pub(super) fn is_complete(&self) -> bool {
        self.missing == 0
    }

    /// Copies fragments to their place, if they are within reach and memory can be allocated.
    pub(super) fn add(&mut self, now: Time, frag: &DataFrag<'_>) -> Added {
        let first = frag.fragment_start - 1;
        let reveals_missing = frag.fragment_start > self.highest + 1;
        let end = (first + u32::from(frag.fragments)).min(self.total);
        self.added_at = if end > self.highest { now } else { self.added_at };
        self.highest = self.highest.max(end);
        if end > self.reach {
            return Added::TooFar { reveals_missing };
        }
        let start = first as usize * self.fragment_size;
        // The parser has checked that the fragments lie within the sample and that their bytes are
        // there.
        if !self.has_words() || !self.has_memory(start + frag.payload.len()) {
            return Added::NoMemory;
        }
        self.memory.write(start, frag.payload);
        let missing = self.missing;
        for number in first..end {
            let (index, bit) = place_of(number);
            let word = &mut self.words[index];
            self.missing -= u32::from(word.received & bit == 0);
            word.received |= bit;
        }
        self.added_at = if self.missing < missing { now } else { self.added_at };
        let whole = self.words[self.whole_words..].iter().take_while(|word| word.received == u64::MAX);
        self.whole_words += whole.count();
        Added::Stored { reveals_missing: self.extend_reach() || reveals_missing }
    }

    /// Whether there is memory for the first `end` bytes. Reserves it if necessary.
    #[inline]
    fn has_memory(&mut self, end: usize) -> bool {
        end <= self.memory.room() || self.reserve(end)
    }

    #[cold]
    fn reserve(&mut self, end: usize) -> bool {
        // If memory for all of it cannot be allocated, memory for a part may.
        self.is_reserved_whole = self.is_reserved_whole && self.memory.reserve(self.sample_size);
        let within_reach = self.sample_size.min(self.reach as usize * self.fragment_size);
        self.is_reserved_whole || self.memory.reserve(within_reach.max(end))
    }

    /// Extends the reach to four times what has arrived, once that is half of the reach. Returns
    /// whether fragments beyond the old reach are known to exist.
    #[inline]
    fn extend_reach(&mut self) -> bool {
        let (before, arrived) = (self.reach, self.total - self.missing);
        if arrived < before / 2 || before == self.total {
            return false;
        }
        self.reach = arrived.saturating_mul(REACH_RATIO).clamp(before, self.total);
        self.highest > before
    }

    /// Whether the words cover the reach. Adds words if necessary.
    #[inline]
    fn has_words(&mut self) -> bool {
        let wanted = self.reach.div_ceil(FRAGMENTS_PER_WORD) as usize;
        wanted <= self.words.len() || self.add_words(wanted)
    }

    #[cold]
    fn add_words(&mut self, wanted: usize) -> bool {
        let is_done = self.words.try_reserve_exact(wanted - self.words.len()).is_ok();
        if is_done {
            self.words.resize_with(wanted, Word::default);
        }
        is_done
    }

    /// Records that the fragments up to `last`, at most all, are known to exist.
    pub(super) fn announce(&mut self, last: u32) {
        self.highest = self.highest.max(last.min(self.total));
    }

    /// The NACK_FRAG set that reports progress: how far the reader has looked. What is missing before its base was
    /// requested.
    pub(super) fn progress(&self) -> FragmentNumberSet {
        FragmentNumberSet::new(FragmentNumber(self.highest.min(self.reach) + 1))
    }

    /// Appends the sets to request now: fragments known to exist, missing, within reach, and not
    /// requested lately.
    pub(super) fn ask(
        &mut self,
        now: Time,
        patience: Patience,
        out: &mut Vec<(SequenceNumber, FragmentNumberSet)>,
    ) {
        let (mut set, before): (Option<FragmentNumberSet>, _) = (None, out.len());
        // Without memory for more words, only those that exist are requested. The next HEARTBEAT
        // tries again.
        self.has_words();
        let known = self.highest.min(self.reach);
        let words = (known.div_ceil(FRAGMENTS_PER_WORD) as usize).min(self.words.len());
        for index in self.whole_words..words {
            // A writer remembers a limited number of requests. The rest is requested with the next
            // answer.
            if out.len() - before >= config::NACK_FRAG_SETS_MAX || out.len() >= config::NACK_FRAGS_MAX {
                break;
            }
            let first = index as u32 * FRAGMENTS_PER_WORD;
            let mut wanted = self.words[index].ask(now, patience, known - first);
            while wanted != 0 {
                let number = FragmentNumber(first + wanted.trailing_zeros() + 1);
                wanted &= wanted - 1;
                if !set.as_mut().is_some_and(|set| set.insert(number)) {
                    out.extend(set.map(|set| (self.sequence_number, set)));
                    let next = set.insert(FragmentNumberSet::new(number));
                    next.insert(number);
                }
            }
        }
        out.extend(set.map(|set| (self.sequence_number, set)));
    }

    /// Why the first of these fragments arrives.
    pub(super) fn origin(&self, frag: &DataFrag<'_>) -> Origin {
        let (index, bit) = place_of(frag.fragment_start - 1);
        match self.words.get(index) {
            Some(word) if word.received & word.latest & bit != 0 && word.tries > 1 => Origin::PrematureRepair,
            Some(Word { received, latest, asked_at, tries, .. }) if latest & !received & bit != 0 => {
                Origin::Repair { asked_at: *asked_at, tries: *tries }
            }
            _ => Origin::Original,
        }
    }

    /// The memory of the words, emptied for reuse.
    pub(super) fn take_words(&mut self) -> Vec<Word> {
        let mut words = core::mem::take(&mut self.words);
        words.clear();
        words
    }

    /// Memory in bytes. Memory that is reserved and was never written to does not count.
    pub(super) fn memory(&self) -> usize {
        self.memory.written() + size_of::<Self>() + self.words.capacity() * size_of::<Word>()
    }
}

/// The word and bit of a fragment, counted from 0.
fn place_of(number: u32) -> (usize, u64) {
    ((number / FRAGMENTS_PER_WORD) as usize, 1 << (number % FRAGMENTS_PER_WORD))
}

const FRAGMENTS_PER_WORD: u32 = u64::BITS;
/// A sample may be false if fragments were requested so often, and none has arrived.
const HOPELESS_TRIES: u8 = 3;
/// Times that a request is repeated at most.
const REPEATED_MAX: u64 = 4;
/// See [`Assembly`].
const REACH_RATIO: u32 = 4;
