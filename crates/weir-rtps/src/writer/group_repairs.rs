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

use super::reader_proxy::ReaderProxy;
use super::state::WriterCore;
use crate::config;
use crate::multicast::GroupRoute;
use crate::outbox::Destinations;
use crate::time::Time;

/// The latest repairs of readers in groups.
#[derive(Debug, Default)]
pub(super) struct GroupRepairs {
    /// Samples that are requested by several of the readers that are answered now, in order.
    common: Vec<(SequenceNumber, GroupRoute)>,
    latest: VecDeque<Repaired>,
}

#[derive(Debug)]
struct Repaired {
    sn: SequenceNumber,
    route: GroupRoute,
    at: Time,
    /// The reader that had requested it.
    reader: Guid,
    is_for_group: bool,
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
        let mut all: Vec<_> = Vec::new();
        for proxy in &self.proxies[due] {
            let Some(route) = proxy.group else { continue };
            let mut requested = proxy.requested.samples.clone();
            requested.sort_unstable();
            requested.dedup();
            all.extend(requested.into_iter().map(|sn| (sn, route)));
        }
        all.sort_unstable();
        let several = all.chunk_by(|a, b| a == b).filter(|same| same.len() > 1);
        self.group_repairs.common.extend(several.map(|same| same[0]));
    }

    /// Returns how a sample is sent again to the reader at `index`.
    pub(super) fn repair_way(&self, now: Time, index: usize, sn: SequenceNumber) -> RepairWay {
        let proxy = &self.proxies[index];
        let Some(route) = proxy.group.filter(|route| self.routes.contains(route)) else {
            return RepairWay::Alone;
        };
        let GroupRepairs { common, latest } = &self.group_repairs;
        let time = config::GROUP_REPAIR_TIME.max(proxy.repair_time());
        let is_it = |it: &&Repaired| it.sn == sn && it.route == route && now.since(it.at) <= MEMORY;
        let mut repairs = latest.iter().rev().filter(is_it).peekable();
        let last = repairs.peek().copied().filter(|it| now.since(it.at) <= time);
        if repairs.any(|it| it.is_for_group && it.reader == proxy.guid) {
            // A repair to the group, made for this reader, has not reached it.
            return RepairWay::Alone;
        }
        let is_of_other = last.is_some_and(|it| it.reader != proxy.guid);
        let was_for_group = last.is_some_and(|it| it.is_for_group);
        if is_of_other && was_for_group {
            return RepairWay::Sent;
        }
        let was_alone = is_of_other && !was_for_group;
        let is_common = was_alone || common.binary_search(&(sn, route)).is_ok();
        // A reader that does not know its first sample yet must not receive an earlier one, and a reader under test
        // must not receive a withheld sample. Readers behind other interfaces receive the datagram as well.
        let may_get = |proxy: &ReaderProxy| {
            let is_withheld = proxy.requested.withheld.as_ref().is_some_and(|it| it.contains(sn, None));
            proxy.is_introduced && proxy.start <= sn && !is_withheld
        };
        let is_of_group = |proxy: &&ReaderProxy| proxy.group.is_some_and(|it| it.group == route.group);
        if is_common && self.proxies.iter().filter(is_of_group).all(may_get) {
            RepairWay::Group(Arc::from([route.group]))
        } else {
            RepairWay::Alone
        }
    }

    /// Records that a sample is sent again for the reader at `index`.
    pub(super) fn note_group_repair(&mut self, now: Time, index: usize, sn: SequenceNumber, way: &RepairWay) {
        let proxy = &self.proxies[index];
        let Some(route) = proxy.group else { return };
        let is_for_group = matches!(way, RepairWay::Group(_));
        let reader = proxy.guid;
        self.counters.repairs_multicast += u64::from(is_for_group);
        let latest = &mut self.group_repairs.latest;
        // Repairs of this moment are kept: the readers that are answered next may have requested them as well.
        let is_over = |it: &Repaired, len| len >= REMEMBERED_MAX && it.at != now || now.since(it.at) > MEMORY;
        while latest.front().is_some_and(|it| is_over(it, latest.len())) {
            latest.pop_front();
        }
        latest.push_back(Repaired { sn, route, at: now, reader, is_for_group });
    }
}

/// So many repairs are remembered, ...
const REMEMBERED_MAX: usize = 256;
/// ... for this time.
const MEMORY: core::time::Duration = core::time::Duration::from_secs(1);
