//! Coherent sets and group sequence numbers of a writer (PRESENTATION, DDS 1.4, 2.2.3.6; RTPS 2.5, 8.7.5, 8.7.6).
//!
//! The history keeps plain datagrams. What samples say about their set is kept beside it, and added on the way out, to
//! first transmissions and repairs alike (`expected_qos`). The end of a set is a DATA without content in the history.
//!
//! Late readers need the end of a set as long as a sample of the set is kept. The last end is kept in any case: of a
//! writer without samples in a shared set, nothing else shows how far it has got.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use weir_wire::submessage::GroupInfo;
use weir_wire::{
    DataHeader, Emit, EntityId, InfoTimestamp, ParameterId, ParameterListWriter, SequenceNumber, Timestamp,
};

use super::admit::Form;
use super::compose;
use super::refusal::WriteRefused;
use super::settings::WriterConfig;
use super::state::WriterCore;
use super::timed::Timed;
use crate::group::{GroupSequence, SetTag, TAG_MAX_BYTES};
use crate::history::History as Store;
use crate::qos::History;
use crate::time::Time;
use crate::window::charge;

/// What a writer announces about sets and groups.
#[derive(Debug, Clone, Default)]
pub struct WriterPresentation {
    /// Its samples may belong to coherent sets.
    pub is_coherent: bool,
    /// The writers of its publisher have common sets and a common order.
    pub group: Option<GroupSequence>,
}

/// The sets of a writer.
#[derive(Debug)]
pub(super) struct Presented {
    is_coherent: bool,
    group: Option<GroupSequence>,
    /// Number of values that KEEP_LAST keeps without a key.
    depth: Option<usize>,
    open: Option<OpenSet>,
    /// By sample, in order.
    tags: VecDeque<(SequenceNumber, SetTag)>,
    /// The ends of sets in the history, with the first sample of each.
    ends: VecDeque<(SequenceNumber, SequenceNumber)>,
}

/// The set that is being written.
#[derive(Debug, Clone, Copy)]
struct OpenSet {
    first: SequenceNumber,
    group_set: Option<SequenceNumber>,
}

impl Presented {
    pub(super) fn new(config: &WriterConfig) -> Option<Self> {
        let WriterPresentation { is_coherent, group } = config.presentation.clone()?;
        let depth = match config.history {
            History::KeepLast(depth) if !config.guid.entity.is_keyed() => Some(depth.max(1) as usize),
            _ => None,
        };
        let (tags, ends) = Default::default();
        Some(Self { is_coherent, group, depth, open: None, tags, ends })
    }

    /// Records the next sample.
    pub(super) fn note(&mut self, sn: SequenceNumber, history: &Store) {
        let tag = SetTag {
            set: self.open.map(|open| open.first),
            group_set: self.open.and_then(|open| open.group_set),
            number: self.group.as_ref().map(GroupSequence::take),
        };
        if tag == SetTag::default() {
            return;
        }
        self.tags.push_back((sn, tag));
        if self.tags.len() > 2 * history.len() + TAGS_SPARE {
            // Most were released or replaced.
            let is_kept =
                |sn: SequenceNumber| sn > history.last() || history.get(sn).is_some_and(|it| it.is_alive());
            self.tags.retain(|(sn, _)| is_kept(*sn));
        }
    }

    /// Returns what a sample says about its set.
    pub(super) fn tag(&self, sn: SequenceNumber) -> Option<&SetTag> {
        let index = self.tags.binary_search_by_key(&sn, |(of, _)| *of).ok()?;
        self.tags.get(index).map(|(_, tag)| tag)
    }

    /// Returns what HEARTBEATs say about the group; `None`: there is none, or it has no samples yet.
    pub(super) fn group_info(&self, history: &Store) -> Option<GroupInfo> {
        let group = self.group.as_ref()?;
        let current = group.peek().prev();
        let numbers = self.tags.back().and_then(|(_, tag)| tag.number).and_then(|last| {
            let first = self.tag(history.first_alive(SequenceNumber::FIRST))?.number?;
            Some((first, last))
        });
        let (first, last) = numbers.unwrap_or((current, current.prev()));
        (current >= SequenceNumber::FIRST).then(|| GroupInfo {
            current,
            first,
            last,
            writers: group.writers(),
        })
    }

    /// Returns how many of the last numbers a KEEP_LAST history without a key keeps: ends of sets do not count as
    /// values. `None`: it is another history.
    pub(super) fn depth(&mut self, last: SequenceNumber, history: &Store) -> Option<usize> {
        let depth = self.depth?;
        self.forget_removed(history);
        let mut count = depth;
        for (end, _) in self.ends.iter().rev() {
            if last.0 - end.0 >= count as i64 {
                break;
            }
            count += 1;
        }
        Some(count)
    }

    /// Forgets the ends that the history has removed with all before them.
    fn forget_removed(&mut self, history: &Store) {
        while self.ends.front().is_some_and(|(end, _)| *end < history.first()) {
            self.ends.pop_front();
        }
    }

    /// Takes an end of a set that no reader needs any more, of a few that are looked at.
    fn take_outlived(&mut self, history: &Store, acknowledged: SequenceNumber) -> Option<SequenceNumber> {
        for _ in 0..self.ends.len().saturating_sub(1).min(ENDS_CHECKED) {
            let (end, first) = self.ends.pop_front()?;
            let is_there = history.get(end).is_some_and(|entry| entry.is_alive());
            if is_there && end <= acknowledged && history.first_alive(first) >= end {
                return Some(end);
            }
            if is_there {
                // The last one stays last.
                self.ends.insert(self.ends.len().saturating_sub(1), (end, first));
            }
        }
        None
    }

    /// Memory in bytes.
    pub(super) fn memory(&self) -> usize {
        self.tags.capacity() * size_of::<(SequenceNumber, SetTag)>()
            + self.ends.capacity() * size_of::<(SequenceNumber, SequenceNumber)>()
    }
}

impl WriterCore {
    /// Begins a coherent set: samples from now on belong to it. `group_set`: the number at which a set begins that the
    /// writers of the group share. Has no effect on a writer that is not coherent, or within a set.
    pub fn begin_set(&mut self, group_set: Option<SequenceNumber>) {
        let first = self.history.next();
        if let Some(presented) = self.presented()
            && presented.is_coherent
            && presented.open.is_none()
        {
            presented.open = Some(OpenSet { first, group_set });
        }
    }

    /// Ends the coherent set. Returns the number of the submessage that says so; `None`: none is necessary, because the
    /// writer has written nothing, and shares no sets or is not enabled. `writers`: the digest of the writers of the
    /// group.
    ///
    /// # Errors
    /// As [`WriterCore::write`]. The set goes on then.
    pub fn end_set(
        &mut self,
        now: Time,
        timestamp: Timestamp,
        writers: Option<[u8; 4]>,
    ) -> Result<Option<SequenceNumber>, WriteRefused> {
        let (sn, is_closed) = (self.history.next(), self.is_closed);
        let Some(presented) = self.presented() else { return Ok(None) };
        let Some(open) = presented.open else { return Ok(None) };
        // A writer that admits nothing has no part in the set of its group.
        if (open.group_set.is_none() || is_closed) && open.first == sn {
            presented.open = None;
            return Ok(None);
        }
        if is_closed {
            return Err(WriteRefused::Closed);
        }
        if !self.has_room(charge(END_MAX_BYTES)) {
            return Err(self.refuse(WriteRefused::WindowFull));
        }
        let header = compose::header(&self.config);
        let entity = self.config.guid.entity;
        let Some(presented) = self.presented() else { return Ok(None) };
        presented.open = None;
        let tag = SetTag {
            set: Some(SequenceNumber::UNKNOWN),
            group_set: open.group_set,
            number: presented.group.as_ref().map(GroupSequence::take),
        };
        presented.ends.push_back((sn, open.first));
        self.open = None;
        let list = list_of_end(&tag, writers);
        let mut datagram = vec![0; END_MAX_BYTES];
        header.emit(&mut datagram);
        let mut len = header.wire_len();
        let stamp = InfoTimestamp { timestamp: Some(timestamp) };
        stamp.emit(&mut datagram[len..]);
        len += stamp.wire_len();
        let data = DataHeader {
            reader: EntityId::UNKNOWN,
            writer: entity,
            sequence_number: sn,
            inline_qos_len: list.len() as u32,
            payload_len: 0,
            is_key: false,
        };
        data.emit(&mut datagram[len..]);
        len += DataHeader::LEN;
        datagram[len..len + list.len()].copy_from_slice(&list);
        len += list.len();
        self.history.reserve(len).copy_from_slice(&datagram[..len]);
        self.history.commit(len, 0, charge(len));
        self.count_ends(sn);
        self.laid(now, Timestamp::INVALID, Form::Datagram, sn, len);
        self.release_ends();
        Ok(Some(sn))
    }

    /// Returns whether a coherent set is being written.
    pub fn is_in_set(&self) -> bool {
        self.timed.as_ref().and_then(|timed| timed.presented.as_ref()).is_some_and(|it| it.open.is_some())
    }

    fn presented(&mut self) -> Option<&mut Presented> {
        self.timed.as_mut()?.presented.as_mut()
    }

    /// Lets KEEP_LAST without a key not count the ends of sets as values.
    pub(super) fn count_ends(&mut self, last: SequenceNumber) {
        let Some(Timed { presented: Some(presented), .. }) = self.timed.as_deref_mut() else { return };
        if let Some(depth) = presented.depth(last, &self.history) {
            self.instances.set_depth_of_topic(depth);
        }
    }

    /// Removes ends of sets that late readers do not need.
    fn release_ends(&mut self) {
        let acknowledged = self.acknowledged.min(self.unsent.prev());
        let Some(Timed { presented: Some(presented), .. }) = self.timed.as_deref_mut() else { return };
        presented.forget_removed(&self.history);
        if self.config.keeps_nothing_for_late_readers() {
            return;
        }
        while let Some(end) = presented.take_outlived(&self.history, acknowledged) {
            self.history.remove(end);
        }
    }
}

/// Returns the inline QoS of the end of a set.
fn list_of_end(tag: &SetTag, writers: Option<[u8; 4]>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(TAG_MAX_BYTES);
    let mut list = ParameterListWriter::new(&mut bytes);
    tag.encode(&mut list);
    if let Some(digest) = writers.filter(|_| tag.group_set.is_some()) {
        list.bytes4(ParameterId::WRITER_GROUP_INFO, digest);
    }
    list.finish();
    bytes
}

/// Most bytes of the datagram of an end: headers, INFO_TS, DATA, and inline QoS.
const END_MAX_BYTES: usize = 20 + 12 + DataHeader::LEN + TAG_MAX_BYTES + 8;
/// Recorded samples that may be gone, in addition to twice those in the history.
const TAGS_SPARE: usize = 1024;
/// Ends of sets that are looked at with each new one.
const ENDS_CHECKED: usize = 16;
