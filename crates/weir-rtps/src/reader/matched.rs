//! The matched writers of a reader, and which of them are alive (DDS 1.4, 2.2.3.11).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use weir_wire::{Guid, GuidPrefix, Heartbeat, SequenceNumber};

use super::changes::Change;
use super::writer_proxy::WriterProxy;
use crate::guid_index::{GuidIndex, reserve_one};
use crate::liveliness::LivelinessChanges;
use crate::qos::LivelinessKind;
use crate::time::Time;

/// The matched writers, in the order of matching.
#[derive(Debug, Default)]
pub(super) struct MatchedWriters {
    pub(super) list: Vec<WriterProxy>,
    /// Their places by GUID.
    pub(super) places: GuidIndex,
    /// Index of the last writer found: samples arrive in runs.
    pub(super) recent: usize,
    pub(super) liveliness: LivelinessChanges,
    /// Writers visited to share assertions.
    #[cfg(test)]
    pub(super) visited: usize,
}

impl MatchedWriters {
    /// Reserves memory for so many writers.
    pub(super) fn with_room(writers: usize) -> Self {
        Self { list: Vec::with_capacity(writers), places: GuidIndex::with_room(writers), ..Self::default() }
    }

    /// The index of a writer.
    #[inline]
    pub(super) fn find(&mut self, writer: Guid) -> Option<usize> {
        if self.list.get(self.recent).is_some_and(|proxy| proxy.guid == writer) {
            return Some(self.recent);
        }
        let index = self.places.find(&self.list, &writer)?;
        self.recent = index;
        Some(index)
    }

    /// A writer, for an operation after which samples of the same one need not follow.
    pub(super) fn get_mut(&mut self, writer: Guid) -> Option<&mut WriterProxy> {
        let index = self.places.find(&self.list, &writer)?;
        self.list.get_mut(index)
    }

    /// The next sample of a writer that is matched.
    pub(super) fn expected(&self, writer: Guid) -> Option<SequenceNumber> {
        self.places.find(&self.list, &writer).map(|index| self.list[index].changes.expected)
    }

    /// Whether a writer is matched, and its lease is not over.
    pub(super) fn is_alive(&self, writer: Guid) -> bool {
        self.places.find(&self.list, &writer).is_some_and(|index| self.list[index].lease.is_alive())
    }

    /// Adds a writer.
    pub(super) fn add(&mut self, proxy: WriterProxy) {
        self.liveliness.change(proxy.guid, 1, 0);
        self.places.push(&proxy.guid);
        reserve_one(&mut self.list);
        self.list.push(proxy);
    }

    /// Removes a writer.
    pub(super) fn remove(&mut self, writer: Guid) -> Option<WriterProxy> {
        let index = self.places.remove(&self.list, &writer)?;
        self.recent = 0;
        let proxy = self.list.remove(index);
        let (alive, not_alive) = if proxy.lease.is_alive() { (-1, 0) } else { (0, -1) };
        self.liveliness.change(writer, alive, not_alive);
        Some(proxy)
    }

    /// Asserts the liveliness of all writers of a participant that have this kind. Returns whether
    /// one was not alive before: its lease runs again.
    pub(super) fn assert_all(&mut self, now: Time, participant: GuidPrefix, kind: LivelinessKind) -> bool {
        let is_meant = |proxy: &&mut WriterProxy| is_of(proxy, participant, kind);
        let liveliness = &mut self.liveliness;
        let mut has_returned = false;
        for proxy in self.list.iter_mut().filter(is_meant) {
            has_returned |= assert_alive(proxy, now, liveliness);
        }
        has_returned
    }

    /// Records when the first lease ends.
    pub(super) fn note_first_end(&mut self) {
        let ends = self.list.iter().filter_map(|proxy| proxy.lease.expires_at());
        self.liveliness.set_first_end(ends.min());
    }

    /// Returns whether a message of `sender` may assert the liveliness of the writer at `index`.
    pub(super) fn may_assert(&mut self, sender: Guid, index: usize) -> bool {
        let kind = LivelinessKind::ManualByParticipant;
        let of_participant = self.get_mut(sender).is_some_and(|proxy| proxy.lease.kind() == kind);
        let proxy = &self.list[index];
        proxy.guid == sender || (of_participant && is_of(proxy, sender.prefix, kind))
    }

    /// Whether the lease of the writer at `index` has just expired. Returns its GUID. `shared`: what was found out for
    /// others at the same time.
    pub(super) fn expire(
        &mut self,
        index: usize,
        now: Time,
        shared: Option<&mut SharedAssertions>,
    ) -> Option<Guid> {
        self.share_assertions(index, now, shared);
        let proxy = &mut self.list[index];
        let guid = proxy.guid;
        proxy.lease.changed()?.expire(now).then(|| {
            self.liveliness.change(guid, -1, 1);
            guid
        })
    }

    /// Asserting one MANUAL_BY_PARTICIPANT writer asserts all of its participant. Applied only when
    /// a lease is about to expire, so that samples cost nothing.
    fn share_assertions(&mut self, index: usize, now: Time, shared: Option<&mut SharedAssertions>) {
        let proxy = &self.list[index];
        let (prefix, kind) = (proxy.guid.prefix, proxy.lease.kind());
        let is_due = proxy.lease.expires_at().is_some_and(|at| at <= now);
        if !is_due || kind != LivelinessKind::ManualByParticipant {
            return;
        }
        #[cfg(test)]
        if shared.as_ref().is_none_or(|shared| shared.0.is_none()) {
            self.visited += self.list.len();
        }
        let latest = match shared {
            Some(SharedAssertions(shared)) => {
                shared.get_or_insert_with(|| latest_assertions(&self.list)).get(&prefix).copied()
            }
            None => {
                let others = self.list.iter().filter(|other| is_of(other, prefix, kind));
                others.map(|other| other.lease.asserted_at()).max()
            }
        };
        if let Some(latest) = latest {
            self.list[index].lease.assert(latest);
        }
    }

    /// When the next request or lease is due.
    pub(super) fn next_timeout(&self) -> Option<Time> {
        let leases = self.list.iter().filter_map(|proxy| proxy.lease.expires_at());
        self.list.iter().filter_map(WriterProxy::next_timeout).chain(leases).min()
    }

    /// Capacity of all lists of samples, in samples.
    pub(super) fn listed(&self) -> usize {
        self.list.iter().map(|proxy| proxy.changes.list.capacity()).sum()
    }

    /// Memory of all lists of samples in bytes, payloads excluded.
    pub(super) fn memory(&self) -> usize {
        self.listed() * size_of::<Change>()
    }
}

/// When each participant last asserted its MANUAL_BY_PARTICIPANT writers; `None`: no lease of one was due.
#[derive(Debug, Default)]
pub(super) struct SharedAssertions(Option<BTreeMap<GuidPrefix, Time>>);

fn latest_assertions(writers: &[WriterProxy]) -> BTreeMap<GuidPrefix, Time> {
    let mut latest = BTreeMap::new();
    for proxy in writers.iter().filter(|it| it.lease.kind() == LivelinessKind::ManualByParticipant) {
        let at = latest.entry(proxy.guid.prefix).or_default();
        *at = proxy.lease.asserted_at().max(*at);
    }
    latest
}

/// Finds a writer that is not the last one found, and makes it that.
#[cold]
#[inline(never)]
pub(super) fn find_other<'a>(
    (list, places): (&'a mut [WriterProxy], &GuidIndex),
    recent: &mut usize,
    writer: Guid,
) -> Option<&'a mut WriterProxy> {
    let index = places.find(list, &writer)?;
    *recent = index;
    list.get_mut(index)
}

/// Asserts the liveliness of a writer. Returns whether it was not alive before: its lease runs
/// again.
#[inline]
pub(super) fn assert_alive(proxy: &mut WriterProxy, now: Time, liveliness: &mut LivelinessChanges) -> bool {
    let has_returned = proxy.lease.changed().is_some_and(|lease| lease.assert(now));
    if has_returned {
        liveliness.change(proxy.guid, 1, -1);
        liveliness.lease_began(proxy.lease.expires_at());
    }
    has_returned
}

/// Asserts the liveliness of a writer by a sample. Returns whether the writer is not settled: instances that it left
/// may not have ended yet.
#[inline]
pub(super) fn assert_by_sample(
    proxy: &mut WriterProxy,
    now: Time,
    liveliness: &mut LivelinessChanges,
) -> bool {
    assert_alive(proxy, now, liveliness) || proxy.lease.changed().is_some_and(|lease| !lease.is_settled())
}

/// Whether a HEARTBEAT asserts the liveliness of its writer. Periodic ones do so only for AUTOMATIC
/// liveliness, since they say nothing about the application (RTPS 2.5, 8.3.8.6).
pub(super) fn is_assertion(proxy: &WriterProxy, heartbeat: &Heartbeat) -> bool {
    heartbeat.is_liveliness || proxy.lease.kind() == LivelinessKind::Automatic
}

fn is_of(proxy: &WriterProxy, participant: GuidPrefix, kind: LivelinessKind) -> bool {
    proxy.guid.prefix == participant && proxy.lease.kind() == kind
}
