//! Matching: the readers that a writer sends to.

use std::sync::Arc;

use weir_wire::Guid;

use super::reader_proxy::{ReaderProxy, ReaderProxyConfig};
use super::state::WriterCore;
use crate::config;
use crate::multicast::{GroupRoute, Plan};
use crate::outbox::Destinations;
use crate::qos::{Durability, Reliability};
use crate::time::Time;

impl WriterCore {
    /// Adds a reader, or replaces it if it is already matched.
    pub fn match_reader(&mut self, now: Time, reader: ReaderProxyConfig) {
        self.unmatch_reader(now, reader.guid);
        if self.proxies.len() >= config::PROXIES_MAX {
            return;
        }
        let is_reliable = reader.reliable && self.config.reliability == Reliability::Reliable;
        let wants_history = reader.wants_history && self.config.durability != Durability::Volatile;
        let start = if wants_history { self.history.first() } else { self.history.next() };
        self.proxies.push(ReaderProxy::new(reader, is_reliable, wants_history, start));
        self.readers_changed(now);
    }

    /// Removes a reader. Samples that only it had not acknowledged are released.
    pub fn unmatch_reader(&mut self, now: Time, guid: Guid) {
        let before = self.proxies.len();
        self.proxies.retain(|proxy| proxy.guid != guid);
        if self.proxies.len() != before {
            self.readers_changed(now);
        }
    }

    /// Changes the addresses of a reader.
    pub fn move_reader(
        &mut self,
        now: Time,
        guid: Guid,
        destinations: Destinations,
        group: Option<GroupRoute>,
    ) {
        if let Some(proxy) = self.proxies.iter_mut().find(|proxy| proxy.guid == guid) {
            proxy.destinations = destinations;
            proxy.group = group;
            self.readers_changed(now);
        }
    }

    /// Returns whether a reader has acknowledged a sample.
    pub fn has_acknowledged_some(&self, reader: Guid) -> bool {
        self.proxies.iter().any(|proxy| proxy.guid == reader && proxy.acknowledged >= proxy.start)
    }

    pub(super) fn readers_changed(&mut self, now: Time) {
        self.has_reliable = self.proxies.iter().any(ReaderProxy::is_awaited);
        self.silence.is_prompting = self.proxies.iter().any(|proxy| proxy.is_stalled);
        let plan = Plan::new(self.proxies.iter().map(|proxy| (&proxy.destinations, proxy.group)));
        self.destinations = Arc::from(plan.destinations);
        self.routes = plan.routes;
        let buffers =
            self.proxies.iter().filter(|proxy| proxy.is_awaited()).map(|proxy| proxy.receive_buffer);
        self.window.set_receive_buffer(buffers.min_by_key(|buffer| buffer.unwrap_or(0)).flatten());
        self.fragments.set_receive_buffers(self.proxies.iter().map(|proxy| proxy.receive_buffer));
        if self.has_reliable {
            self.recount_acknowledged(now);
        } else {
            self.acknowledged = self.unsent.prev();
            self.acknowledged_charge = self.history.charged_to(self.acknowledged);
            self.seen_charge = self.acknowledged_charge;
            self.heartbeat.next_at = self.next_prompt(now);
            self.heartbeat.is_due = false;
            // A large sample that waited for room at a reliable reader continues without it.
            let is_waiting = self.is_amid_sample() && self.fragments.paced_at.is_none();
            self.fragments.paced_at = if is_waiting { Some(now) } else { self.fragments.paced_at };
        }
        self.release();
    }
}
