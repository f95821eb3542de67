//! Which of a reader's writers are alive (DDS 1.4 §2.2.3.11).

use weir_wire::{Guid, GuidPrefix, Heartbeat};

use super::ReaderCore;
use super::writer_proxy::WriterProxy;
use crate::liveliness::{Lease, LivelinessChangedStatus, LivelinessChanges};
use crate::qos::{Liveliness, LivelinessKind};
use crate::time::Time;

impl ReaderCore {
    /// Tells what a matched writer offers: without that it counts as alive until it is unmatched. The lease
    /// begins now.
    pub fn set_liveliness(&mut self, now: Time, writer: Guid, policy: Liveliness) {
        if let Some(proxy) = self.proxies.iter_mut().find(|proxy| proxy.guid == writer) {
            proxy.lease = Lease::new(now, policy);
            self.is_timeout_news = true;
        }
    }

    /// A participant says that all its writers of a kind are alive.
    pub fn assert_liveliness(&mut self, now: Time, participant: GuidPrefix, kind: LivelinessKind) {
        let is_meant =
            |proxy: &&mut WriterProxy| proxy.guid.prefix == participant && proxy.lease.kind() == kind;
        for proxy in self.proxies.iter_mut().filter(is_meant) {
            self.is_timeout_news |= assert(proxy, now, &mut self.liveliness);
        }
    }

    /// How many writers are alive; the changes of the status become zero.
    pub fn take_liveliness_changed(&mut self) -> LivelinessChangedStatus {
        self.liveliness.take()
    }

    /// Whether the status has changed since it was taken.
    pub fn has_liveliness_news(&self) -> bool {
        self.liveliness.has_news()
    }

    /// How many writers are not alive.
    pub fn not_alive_writers(&self) -> u32 {
        self.liveliness.not_alive_count()
    }

    /// Writers that were silent for too long are not alive, and neither is what only they write.
    pub(super) fn expire_leases(&mut self, now: Time) {
        for index in 0..self.proxies.len() {
            self.share_assertions(index, now);
            let proxy = &mut self.proxies[index];
            if proxy.lease.expire(now) {
                let guid = proxy.guid;
                self.liveliness.change(guid, -1, 1);
                self.cache.writer_gone(guid);
                self.room_was_made();
            }
        }
    }

    /// What asserts one MANUAL_BY_PARTICIPANT writer asserts all of its participant. Looked at only when a lease
    /// is about to run out, so that samples cost nothing.
    fn share_assertions(&mut self, index: usize, now: Time) {
        let Some(proxy) = self.proxies.get(index) else { return };
        let is_due = proxy.lease.expires_at().is_some_and(|at| at <= now);
        if !is_due || proxy.lease.kind() != LivelinessKind::ManualByParticipant {
            return;
        }
        let prefix = proxy.guid.prefix;
        let others = self.proxies.iter().filter(|other| {
            other.guid.prefix == prefix && other.lease.kind() == LivelinessKind::ManualByParticipant
        });
        let latest = others.map(|other| other.lease.asserted_at()).max();
        if let (Some(latest), Some(proxy)) = (latest, self.proxies.get_mut(index)) {
            proxy.lease.assert(latest);
        }
    }

    pub(super) fn next_lease(&self) -> Option<Time> {
        self.proxies.iter().filter_map(|proxy| proxy.lease.expires_at()).min()
    }
}

/// Takes note that a writer is alive. Whether it was thought dead: its lease ends some time again.
#[inline]
pub(super) fn assert(proxy: &mut WriterProxy, now: Time, liveliness: &mut LivelinessChanges) -> bool {
    let is_back = proxy.lease.assert(now);
    if is_back {
        liveliness.change(proxy.guid, 1, -1);
    }
    is_back
}

/// Whether a HEARTBEAT shows that the writer is alive: those that the middleware sends for itself say nothing
/// about the application (DDSI-RTPS 2.5 §8.3.8.6).
pub(super) fn is_assertion(proxy: &WriterProxy, heartbeat: &Heartbeat) -> bool {
    heartbeat.is_liveliness || proxy.lease.kind() == LivelinessKind::Automatic
}

/// A writer is matched no more.
pub(super) fn forget(proxy: &WriterProxy, liveliness: &mut LivelinessChanges) {
    let (alive, not_alive) = if proxy.lease.is_alive() { (-1, 0) } else { (0, -1) };
    liveliness.change(proxy.guid, alive, not_alive);
}

#[cfg(test)]
mod tests;
