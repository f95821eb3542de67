//! Which samples of which instance a writer keeps: KEEP_LAST (DDS 1.4 §2.2.3.18).

use std::collections::VecDeque;
use std::hash::BuildHasherDefault;

use hashbrown::HashMap;
use weir_wire::SequenceNumber;

use super::{WriteRefused, WriterConfig};
use crate::config;
use crate::history::History as Store;
use crate::key_hasher::KeyHasher;
use crate::qos::History;

/// The samples of each instance, oldest first; empty for KEEP_ALL, which replaces nothing.
#[derive(Debug)]
pub(super) struct Instances {
    depth: Option<usize>,
    is_keyed: bool,
    unsent: Vec<([u8; 16], SequenceNumber)>,
    by_key: HashMap<[u8; 16], VecDeque<SequenceNumber>, BuildHasherDefault<KeyHasher>>,
    /// Instances that were disposed and unregistered, and the samples that say so, in their order.
    ended: VecDeque<([u8; 16], SequenceNumber)>,
}

impl Instances {
    pub(super) fn new(config: &WriterConfig) -> Self {
        let depth = match config.history {
            History::KeepAll => None,
            History::KeepLast(depth) => Some(depth.max(1) as usize),
        };
        let is_keyed = config.guid.entity.is_keyed();
        Self { depth, is_keyed, unsent: Vec::new(), by_key: HashMap::default(), ended: VecDeque::new() }
    }

    /// Whether a sample of this instance may be written.
    #[inline]
    pub(super) fn admit(&self, key: Option<[u8; 16]>) -> Result<(), WriteRefused> {
        let Some(key) = key.filter(|_| self.depth.is_some()) else { return Ok(()) };
        if self.by_key.len() >= config::INSTANCES_MAX && !self.by_key.contains_key(&key) {
            return Err(WriteRefused::TooManyInstances);
        }
        Ok(())
    }

    /// Takes note of a new sample.
    #[inline]
    pub(super) fn committed(&mut self, key: Option<[u8; 16]>, sn: SequenceNumber) {
        if let Some(key) = key.filter(|_| self.depth.is_some()) {
            self.unsent.push((key, sn));
        }
    }

    /// Removes the samples that were replaced by what was sent up to and with `last`. Not earlier: a sample
    /// that waits in a burst was written, and leaves, even when the next one replaces it.
    pub(super) fn sent(&mut self, history: &mut Store, last: SequenceNumber) {
        let Some(depth) = self.depth else { return };
        if !self.is_keyed {
            history.release_to(SequenceNumber(last.0 - depth as i64));
            return;
        }
        for (key, sn) in self.unsent.drain(..) {
            let samples = self.by_key.entry(key).or_default();
            while samples.front().is_some_and(|oldest| *oldest < history.first()) {
                samples.pop_front();
            }
            if samples.len() >= depth
                && let Some(oldest) = samples.pop_front()
            {
                history.remove(oldest);
            }
            samples.push_back(sn);
        }
    }

    /// Takes note that sample `sn` says that an instance is disposed and unregistered.
    pub(super) fn ended(&mut self, key: Option<[u8; 16]>, sn: SequenceNumber) {
        if let Some(key) = key.filter(|_| self.is_keyed && self.depth.is_some()) {
            self.ended.push_back((key, sn));
        }
    }

    /// Forgets instances that ended, and everybody knows: up to `last`, all is acknowledged. Those that ended last
    /// are kept, see [`config::ENDED_INSTANCES_KEPT`].
    pub(super) fn release_ended(&mut self, history: &mut Store, last: SequenceNumber) {
        while self.ended.len() > config::ENDED_INSTANCES_KEPT
            && let Some(&(key, sn)) = self.ended.front().filter(|(_, sn)| *sn <= last)
        {
            self.ended.pop_front();
            // It may have come back since.
            let is_over = self.by_key.get(&key).is_some_and(|samples| samples.back() == Some(&sn));
            let samples = if is_over { self.by_key.remove(&key) } else { None };
            samples.into_iter().flatten().for_each(|sn| history.remove(sn));
        }
    }

    /// Forgets the instances whose samples all lie up to `last`, which is about to be released, once they are
    /// many compared to what is left.
    pub(super) fn released(&mut self, history: &Store, last: SequenceNumber) {
        if self.by_key.len() > 1024 && self.by_key.len() > 4 * history.len() {
            self.by_key.retain(|_, samples| samples.back().is_some_and(|newest| *newest > last));
        }
    }
}
