//! What late readers of a TRANSIENT or PERSISTENT writer are sent (DURABILITY_SERVICE; DDS 1.4, 2.2.3.5).
//!
//! There is no durability service: the writer itself serves them from its history. Before a late reader is matched, the
//! writer removes what the service would not keep. Only samples that all matched readers have acknowledged are removed,
//! so that these lose nothing.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use weir_wire::SequenceNumber;

use super::state::WriterCore;
use crate::change_kind::ChangeKind;
use crate::qos::{DurabilityService, History};
use crate::time::Time;

/// The key of an instance; `None`: the topic has none.
type Key = Option<[u8; 16]>;

/// The samples in the history, with their instances.
#[derive(Debug)]
pub(super) struct Service {
    policy: DurabilityService,
    samples: VecDeque<Kept>,
}

#[derive(Debug, Clone, Copy)]
struct Kept {
    sn: SequenceNumber,
    key: Key,
    kind: ChangeKind,
    at: Time,
}

impl Service {
    pub(super) fn new(policy: DurabilityService) -> Self {
        Self { policy, samples: VecDeque::new() }
    }

    /// Records a sample.
    pub(super) fn written(&mut self, sn: SequenceNumber, key: Key, kind: ChangeKind, at: Time) {
        self.samples.push_back(Kept { sn, key, kind, at });
    }

    /// Number of recorded samples, whether they are still in the history or not.
    pub(super) fn recorded(&self) -> usize {
        self.samples.len()
    }

    /// Forgets the samples that are not in the history any more.
    pub(super) fn retain(&mut self, is_kept: impl Fn(SequenceNumber) -> bool) {
        self.samples.retain(|kept| is_kept(kept.sn));
    }

    /// Memory in bytes.
    pub(super) fn memory(&self) -> usize {
        self.samples.capacity() * size_of::<Kept>()
    }

    /// Returns the samples that late readers are not to be sent, in ascending order.
    fn superfluous(&self, now: Time) -> Vec<SequenceNumber> {
        let or_endless = |limit: Option<u32>| limit.map_or(usize::MAX, |limit| limit as usize);
        let depth = match self.policy.history {
            History::KeepLast(depth) => depth as usize,
            History::KeepAll => usize::MAX,
        };
        let per_instance = depth.min(or_endless(self.policy.max_samples_per_instance));
        let (samples, instances) =
            (or_endless(self.policy.max_samples), or_endless(self.policy.max_instances));
        let mut served: BTreeMap<Key, Served> = BTreeMap::new();
        let (mut count, mut superfluous) = (0, Vec::new());
        for kept in self.samples.iter().rev() {
            let known = served.len();
            let instance = served.entry(kept.key).or_insert_with(|| Served {
                is_excluded: known >= instances || self.is_over(kept, now),
                values: 0,
            });
            let is_value = kept.kind == ChangeKind::Alive;
            let has_room = count < samples && (!is_value || instance.values < per_instance);
            if instance.is_excluded || !has_room {
                superfluous.push(kept.sn);
                continue;
            }
            count += 1;
            instance.values += usize::from(is_value);
        }
        superfluous.reverse();
        superfluous
    }

    /// Whether the last sample of an instance ended it, longer ago than it is to be served.
    fn is_over(&self, last: &Kept, now: Time) -> bool {
        let delay = self.policy.service_cleanup_delay;
        last.kind != ChangeKind::Alive && delay < Duration::MAX && now.since(last.at) >= delay
    }
}

/// What is served of an instance.
struct Served {
    is_excluded: bool,
    values: usize,
}

impl WriterCore {
    /// Removes what a late reader is not to be sent.
    #[cold]
    pub(super) fn tidy_for_late_reader(&mut self, now: Time) {
        let amid = self.is_amid_sample().then_some(self.unsent);
        let Some(service) = self.timed.as_mut().and_then(|timed| timed.service.as_mut()) else { return };
        let history = &mut self.history;
        service.retain(|sn| history.get(sn).is_some_and(|entry| entry.is_alive()));
        let mut superfluous = service.superfluous(now);
        let acknowledged = self.acknowledged;
        superfluous.retain(|sn| *sn <= acknowledged && Some(*sn) != amid);
        superfluous.iter().for_each(|sn| history.remove(*sn));
        service.retain(|sn| superfluous.binary_search(&sn).is_err());
        self.instances.removed(&superfluous);
        self.counters.samples_not_served += superfluous.len() as u64;
        self.large.release(self.history.first());
    }
}
