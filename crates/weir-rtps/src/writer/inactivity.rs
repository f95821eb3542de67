//! Readers that stop acknowledging.
//!
//! A reliable KEEP_ALL writer waits for its readers. A reader that is gone is removed when its lease ends, or when its
//! host reports that its process is gone. [`WriterCore::take_silence`] names the readers to ask about.
//!
//! A reader that is there, but stuck, would hold up the writer and all other readers for ever.
//! [`WriterConfig::reader_inactivity`] bounds that: after this time without a new acknowledgement, the writer no longer
//! waits for the reader. It sends it what a best-effort reader is sent, and goes on sending it directed HEARTBEATs.
//! When the reader acknowledges something new, it is reliable again, from the first sample that is still there.
//!
//! [`WriterConfig::reader_inactivity`]: super::WriterConfig::reader_inactivity

use alloc::vec::Vec;

use weir_wire::{Guid, SequenceNumber};

use super::reader_proxy::ReaderProxy;
use super::state::WriterCore;
use crate::config;
use crate::qos::History;
use crate::time::{OptionTime, Time};

/// What the last timeouts showed about readers.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Silence {
    /// Readers that answer no HEARTBEATs. Their process may be gone.
    pub silent: Vec<Guid>,
    /// Readers are no longer waited for: blocked writes may go on.
    pub has_stalled: bool,
}

impl WriterCore {
    /// Returns whether [`WriterCore::take_silence`] has news.
    #[inline]
    pub fn has_silence(&self) -> bool {
        self.silence.has_silent || self.silence.has_stalled
    }

    /// Returns what timeouts showed about readers since the last call.
    pub fn take_silence(&mut self) -> Silence {
        let has_silent = core::mem::take(&mut self.silence.has_silent);
        let has_stalled = core::mem::take(&mut self.silence.has_stalled);
        let is_silent = |proxy: &&ReaderProxy| has_silent && proxy.is_silent();
        Silence {
            silent: self.proxies.iter().filter(is_silent).map(|proxy| proxy.guid).collect(),
            has_stalled,
        }
    }

    /// Returns the readers that are not waited for because they stopped acknowledging.
    pub fn inactive_readers(&self) -> impl Iterator<Item = Guid> + '_ {
        self.proxies.iter().filter(|proxy| proxy.is_stalled).map(|proxy| proxy.guid)
    }

    /// Looks for readers that do not acknowledge, when a HEARTBEAT is due.
    pub(super) fn note_silence(&mut self, now: Time) {
        // No HEARTBEAT has announced the samples of an open batch.
        let last = if self.open.is_some() { self.unsent.prev() } else { self.history.last() };
        let limit = self.config.reader_inactivity.filter(|_| self.config.history == History::KeepAll);
        let mut stalled = 0;
        let unsent = self.unsent;
        let owes = |proxy: &&mut ReaderProxy| {
            proxy.is_awaited() && proxy.acknowledged < last && proxy.has_to_answer(unsent)
        };
        for proxy in self.proxies.iter_mut().filter(owes) {
            let since = proxy.idle_since.get().unwrap_or(now);
            proxy.idle_since = OptionTime::some(since);
            proxy.unanswered = proxy.unanswered.saturating_add(1);
            self.silence.has_silent |= proxy.is_silent();
            proxy.is_stalled = limit.is_some_and(|limit| now.since(since) >= limit);
            stalled += u64::from(proxy.is_stalled);
        }
        self.ask_alone();
        if self.taking.is_some() {
            self.serve(now);
        }
        if stalled > 0 {
            self.counters.readers_stalled += stalled;
            self.silence.has_stalled = true;
            self.readers_changed(now);
        }
        self.prompt_stalled(last);
        let deadline =
            |proxy: &ReaderProxy| Some(proxy.idle_since.get().filter(|_| proxy.is_awaited())? + limit?);
        self.heartbeat.latest = self.proxies.iter().filter_map(deadline).min().unwrap_or(Time::MAX);
    }

    /// Sends the readers that are not waited for a HEARTBEAT, if they have not acknowledged `last`.
    pub(super) fn prompt_stalled(&mut self, last: SequenceNumber) {
        for proxy in self.proxies.iter_mut().filter(|proxy| proxy.is_stalled && proxy.acknowledged < last) {
            proxy.is_heartbeat_due = true;
            self.due.add_all();
        }
    }

    /// Returns when the readers that are not waited for are sent the next HEARTBEAT.
    pub(super) fn next_prompt(&self, now: Time) -> Option<Time> {
        self.silence.is_prompting.then(|| now + config::HEARTBEAT_DELAY_MAX)
    }
}

impl ReaderProxy {
    /// Returns whether the writer waits for the reader's acknowledgements.
    #[inline]
    pub(super) fn is_awaited(&self) -> bool {
        self.is_reliable && !self.is_stalled
    }

    /// Returns whether the reader left several HEARTBEATs unanswered.
    pub(super) fn is_silent(&self) -> bool {
        self.unanswered >= config::UNANSWERED_HEARTBEATS
    }

    /// Records an answer of the reader. `is_progress`: it acknowledges something new, or restarts.
    /// Returns whether it is waited for again from now on.
    pub(super) fn note_answer(&mut self, is_progress: bool, first: SequenceNumber) -> bool {
        self.unanswered = 0;
        if !is_progress {
            return false;
        }
        self.idle_since = OptionTime::NONE;
        let is_back = core::mem::take(&mut self.is_stalled);
        if is_back {
            // What was released is no longer in flight to it.
            self.seen = self.seen.max(first.prev());
        }
        is_back
    }
}
