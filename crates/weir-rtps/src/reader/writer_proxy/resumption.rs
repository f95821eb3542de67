//! A writer that is matched again.

use std::collections::VecDeque;

use weir_wire::{Heartbeat, SequenceNumber};

use super::{Slot, WriterProxy};
use crate::reader::cache::Held;
use crate::reader::departed::Departed;

impl WriterProxy {
    /// What to remember of the writer; `None` if nothing was delivered. A best-effort writer sends nothing again.
    pub(in crate::reader) fn departed(&self) -> Option<Departed> {
        let is_worth_it = self.is_reliable && self.expected > SequenceNumber::FIRST;
        is_worth_it.then_some(Departed {
            guid: self.guid,
            expected: self.expected,
            count: self.count,
            fragment_count: self.fragment_count,
            last_heartbeat: self.last_heartbeat,
        })
    }

    /// Continues where the reader was when it lost this writer. What the writer no longer keeps of the time between is
    /// not lost: the two were not matched.
    pub(in crate::reader) fn resume(&mut self, departed: &Departed) {
        if self.is_reliable {
            (self.expected, self.floor) = (departed.expected, departed.expected);
            self.request.frontier = departed.expected;
            self.announced = departed.expected.prev();
            (self.count, self.fragment_count) = (departed.count, departed.fragment_count);
            self.last_heartbeat = departed.last_heartbeat;
            self.is_resumed = true;
        }
    }

    /// Whether the first HEARTBEAT since the writer was matched again shows that its numbers have started anew. One that
    /// names no sample does not say what was written: it tells a volatile reader where its samples begin.
    pub(in crate::reader) fn has_started_anew(&mut self, heartbeat: &Heartbeat) -> bool {
        let names_samples = heartbeat.first <= heartbeat.last;
        let is_first = self.is_resumed && names_samples;
        self.is_resumed &= !names_samples;
        is_first && heartbeat.last < self.expected.prev()
    }

    /// Forgets what was read of the writer.
    pub(in crate::reader) fn read_from_start(&mut self) {
        (self.expected, self.floor) = (SequenceNumber::FIRST, SequenceNumber::FIRST);
        self.request.frontier = SequenceNumber::FIRST;
        self.announced = SequenceNumber::ZERO;
        self.is_start_known = false;
        self.missed_fragments = None;
    }

    /// Removes the samples that are held back.
    pub(in crate::reader) fn take_held(&mut self) -> impl Iterator<Item = Held> {
        let held: VecDeque<Slot> = core::mem::take(&mut self.held);
        held.into_iter().filter_map(|slot| match slot {
            Slot::Held(held) => Some(held),
            Slot::Missing { .. } | Slot::Irrelevant => None,
        })
    }
}
