//! Repairs that several readers of a multicast group ask for: sent to the group once.
//!
//! A sample that is lost before the network copies it is missing at all readers of the group, which all request it.
//! A sample that one reader has lost is repaired by unicast, so that the others do not have to receive it again. The
//! second request shows which of the two it is:
//!
//! - Requests that are answered together, and have a sample in common, are answered by multicast.
//! - The first request for a sample is answered by unicast, the second of another reader by multicast.
//! - Further ones that come within [`config::GROUP_REPAIR_TIME`], or the time that a repair takes on the reader's path,
//!   have crossed the repair, and are not answered. If it was lost, the reader requests it again.
//!
//! Fragments are repaired by unicast.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use weir_wire::{Guid, SequenceNumber};

use super::state::WriterCore;
use crate::config;
use crate::multicast::GroupRoute;
use crate::outbox::Destinations;
use crate::time::Time;

/// The latest repairs of readers in groups.
#[derive(Debug, Default)]
pub(super) struct GroupRepairs {
    /// Samples that are requested by several of the readers that are answered now, in order.
    common: Vec<SequenceNumber>,
    latest: VecDeque<Repaired>,
}

#[derive(Debug)]
struct Repaired {
    sn: SequenceNumber,
    route: GroupRoute,
    at: Time,
    /// Who was sent it; `None`: the group.
    reader: Option<Guid>,
}

/// How a requested sample is sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RepairWay {
    /// To the reader.
    Alone,
    /// To its group.
    Group(Destinations),
    /// Not: it was just sent to the group.
    Sent,
}

impl WriterCore {
    /// Prepares for answers to several readers.
    pub(super) fn note_common_requests(&mut self, due: core::ops::Range<usize>) {
        self.group_repairs.common.clear();
        if self.routes.is_empty() || due.len() < 2 {
            return;
        }
        let in_group = self.proxies[due].iter().filter(|proxy| proxy.group.is_some());
        let mut all: Vec<_> = Vec::new();
        for proxy in in_group {
            let mut requested = proxy.requested.clone();
            requested.sort_unstable();
            requested.dedup();
            all.extend(requested);
        }
        all.sort_unstable();
        let several = all.chunk_by(|a, b| a == b).filter(|same| same.len() > 1);
        self.group_repairs.common.extend(several.map(|same| same[0]));
    }

    /// Returns how a sample is sent again to the reader at `index`, and records that.
    pub(super) fn repair_way(&mut self, now: Time, index: usize, sn: SequenceNumber) -> RepairWay {
        let proxy = &self.proxies[index];
        let Some(route) = proxy.group.filter(|route| self.routes.contains(route)) else {
            return RepairWay::Alone;
        };
        let guid = proxy.guid;
        let time = config::GROUP_REPAIR_TIME.max(proxy.repair_time());
        let latest = &mut self.group_repairs.latest;
        while latest.front().is_some_and(|it| latest.len() >= REMEMBERED_MAX || now.since(it.at) > MEMORY) {
            latest.pop_front();
        }
        let mut same =
            latest.iter().filter(|it| it.sn == sn && it.route == route && now.since(it.at) <= time);
        let was_alone = match same.next_back() {
            Some(Repaired { reader: None, .. }) => return RepairWay::Sent,
            other => other.is_some_and(|it| it.reader != Some(guid)),
        };
        let is_common = was_alone || self.group_repairs.common.binary_search(&sn).is_ok();
        // A reader that does not know yet where its samples begin must not get an earlier one.
        let mut group = self.proxies.iter().filter(|proxy| proxy.group == Some(route));
        let is_for_group = is_common && group.all(|proxy| proxy.is_introduced && proxy.start <= sn);
        let reader = (!is_for_group).then_some(guid);
        self.group_repairs.latest.push_back(Repaired { sn, route, at: now, reader });
        if !is_for_group {
            return RepairWay::Alone;
        }
        self.counters.repairs_multicast += 1;
        RepairWay::Group(Arc::from([route.group]))
    }
}

/// So many repairs are remembered, ...
const REMEMBERED_MAX: usize = 256;
/// ... for this time.
const MEMORY: core::time::Duration = core::time::Duration::from_secs(1);
