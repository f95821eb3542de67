//! Matching: the readers that a writer sends to.

use alloc::sync::Arc;
use core::net::{Ipv4Addr, SocketAddrV4};
use core::ops::Range;

use weir_wire::{Guid, SequenceNumber};

use super::compose;
use super::group_reach::GroupReach;
use super::reader_proxy::{ReaderProxy, ReaderProxyConfig};
use super::repair_budget::{Addresses, Repairs, Room, SampleBytes};
use super::requested::Requested;
use super::state::{WriterCore, datagram_max};
use crate::config;
use crate::guid_index::reserve_one;
use crate::multicast::{GroupRoute, Plan};
use crate::outbox::Destinations;
use crate::path::Path;
use crate::qos::{Durability, Reliability};
use crate::time::Time;

impl WriterCore {
    /// Adds a reader, or replaces it if it is already matched.
    pub fn match_reader(&mut self, now: Time, reader: ReaderProxyConfig) {
        if self.places.find(&self.proxies, &reader.guid).is_some() {
            self.unmatch_reader(now, reader.guid);
        }
        let max = self.config.limits.map_or(config::PROXIES_MAX, |limits| limits.matches);
        if self.proxies.len() >= max.min(config::PROXIES_MAX) {
            return;
        }
        let is_reliable = reader.reliable && self.config.reliability == Reliability::Reliable;
        let wants_history = reader.wants_history && self.config.durability != Durability::Volatile;
        if wants_history && self.timed.is_some() {
            self.tidy_for_late_reader(now);
        }
        let start = if wants_history { self.history.first() } else { self.history.next() };
        let (destinations, has_group) = (Arc::clone(&reader.destinations), reader.group.is_some());
        let is_new = is_reliable && destinations.iter().all(|it| !self.destinations.contains(it));
        self.places.push(&reader.guid);
        reserve_one(&mut self.proxies);
        let reserved = if is_reliable { self.reserved.pop() } else { None };
        self.proxies.push(ReaderProxy::new(reader, is_reliable, wants_history, start, reserved));
        if let Some(proxy) = self.proxies.last_mut().filter(|proxy| proxy.group.is_some() && is_reliable) {
            proxy.requested.reach = GroupReach::since(self.unsent);
        }
        match &destinations[..] {
            // The common case, where all readers need not be counted.
            [address] if is_new && self.routes.is_empty() => {
                let bytes = self.sample_bytes();
                self.budgets.address_added(now, *address.ip(), wants_history, bytes);
            }
            _ => self.hosts_changed(now, &destinations),
        }
        if has_group || !self.routes.is_empty() {
            self.plan();
        } else {
            let new = destinations.iter().filter(|address| !self.destinations.contains(address));
            self.addresses.clear();
            self.addresses.extend(self.destinations.iter().chain(new));
            self.destinations = self.lists.list(&self.addresses);
        }
        if self.is_last_alike() {
            self.reader_added(now);
        } else {
            self.readers_changed(now);
        }
        let index = self.proxies.len() - 1;
        self.begin_history(now, index);
        self.pacing.receipts.is_due |= self.pacing.receipts.is_asking;
        self.due.add(index);
        self.give_time(now, index);
    }

    /// Puts off the first HEARTBEAT for a new reader if there is nothing to say: it is of this engine, on this host,
    /// and the writer has written nothing (RTPS 2.5, 8.4.2.2.3). Call this between the match and the next transmission.
    ///
    /// The HEARTBEAT says that the first sample is the first one meant for the reader. It is sent when that sample is
    /// to be acknowledged, and until the reader has answered it, the reader is sent no other. In a large domain, most
    /// matches are of writers that are silent for long: their HEARTBEATs, and the answers, were two thirds of all
    /// datagrams. A reader that needs it earlier [requests it](crate::reader::ReaderCore::await_heartbeat).
    pub fn spare_heartbeat(&mut self, reader: Guid) {
        let has_written = self.history.next() > SequenceNumber::FIRST;
        let Some(proxy) = self.reader_mut(&reader).filter(|_| !has_written) else { return };
        if proxy.is_near() && !proxy.is_introduced {
            (proxy.is_heartbeat_due, proxy.is_spared) = (false, true);
        }
    }

    /// Removes a reader. Samples that only it had not acknowledged are released.
    pub fn unmatch_reader(&mut self, now: Time, guid: Guid) {
        if let Some(index) = self.places.remove(&self.proxies, &guid) {
            let proxy = self.proxies.remove(index);
            self.forget_content_filter(guid);
            // The indices behind it have changed.
            self.due.add_all();
            self.hosts_changed(now, &proxy.destinations);
            if proxy.is_reliable && self.config.limits.is_some() {
                self.reserved.extend(proxy.into_memory());
            }
            self.plan();
            self.readers_changed(now);
        }
    }

    /// Returns the memory of what a reader has requested, if it has acknowledged everything. The reader is not expected
    /// to request as much again.
    pub fn release_room(&mut self, guid: Guid) {
        let (last, is_kept) = (self.history.last(), self.config.limits.is_some());
        let Some(proxy) = self.reader_mut(&guid).filter(|proxy| proxy.acknowledged >= last) else { return };
        let is_idle = |it: &Requested| {
            it.samples.is_empty()
                && it.fragments.is_empty()
                && it.withheld.is_none()
                && it.discards.is_none()
                && it.answered.is_none()
        };
        if is_idle(&proxy.requested) {
            proxy.requested.free_unless(is_kept);
        }
    }

    /// Changes the addresses of a reader, and with them the longest datagram that reaches it unfragmented.
    pub fn move_reader(
        &mut self,
        now: Time,
        guid: Guid,
        destinations: Destinations,
        group: Option<GroupRoute>,
        segment_max: u16,
        path: Option<Path>,
    ) {
        let (unsent, mut owed) = (self.unsent, 0);
        if let Some(proxy) = self.reader_mut(&guid) {
            let was_late = proxy.is_late();
            let before = core::mem::replace(&mut proxy.path, path);
            let is_same = match (&before, &proxy.path) {
                (Some(before), Some(after)) => before.is(after),
                (before, after) => before.is_none() && after.is_none(),
            };
            if !is_same {
                owed = proxy.forget_owed(unsent);
                proxy.begin_on_path(unsent);
            }
            proxy.segment_max = segment_max;
            // What its group did not reach is still there.
            let refuted = proxy.requested.reach.refuted.filter(|_| proxy.destinations == destinations);
            if refuted.is_none() || refuted != group {
                if group.is_some() {
                    proxy.requested.reach = GroupReach::since(unsent);
                }
                proxy.group = group;
            }
            let before = core::mem::replace(&mut proxy.destinations, Arc::clone(&destinations));
            // With history, all of it counts for a new host.
            let misses_samples = proxy.is_reliable && !proxy.wants_history;
            let acknowledged = proxy.acknowledged;
            self.counters.samples_left_out += owed;
            self.hosts_changed(now, &before);
            self.hosts_changed(now, &destinations);
            if misses_samples {
                let bytes = self.sample_bytes();
                let outstanding = self.outstanding(acknowledged).min(bytes.kept);
                self.budgets.reader_moved(&destinations, outstanding, bytes.sent);
            }
            self.plan();
            self.readers_changed(now);
            if was_late && let Some(index) = self.places.find(&self.proxies, &guid) {
                self.begin_history(now, index);
            }
            if !is_same && self.pacing.receipts.is_asking {
                self.pacing.receipts.is_due = true;
                self.due.add_all();
            }
        }
    }

    /// Changes the longest datagram that reaches a host unfragmented. Returns whether a reader is there.
    pub fn set_path_size(&mut self, now: Time, host: Ipv4Addr, bytes: u16) -> bool {
        let mut is_used = false;
        for proxy in &mut self.proxies {
            let is_there = |to: &SocketAddrV4| *to.ip() == host;
            let is_elsewhere = |to: &SocketAddrV4| !is_there(to) && !to.ip().is_multicast();
            if proxy.destinations.iter().any(is_there) {
                // At other addresses, the reader may be behind a narrower path.
                let has_others = proxy.destinations.iter().any(is_elsewhere);
                proxy.segment_max = if has_others { proxy.segment_max.min(bytes) } else { bytes };
                is_used = true;
            }
        }
        if is_used {
            self.readers_changed(now);
        }
        is_used
    }

    /// Returns the longest datagram that reaches every reader unfragmented, as far as known.
    pub fn datagram_max(&self) -> usize {
        self.datagram_max
    }

    /// Returns whether the ACKNACKs of a reader since the last call show that it has received a HEARTBEAT: they name
    /// the [first sample](super::WriterConfig::first) or a later one. `None`: they say nothing.
    pub fn take_answer(&mut self, reader: Guid) -> Option<bool> {
        self.reader_mut(&reader)?.knows_numbers.take()
    }

    /// Returns the place of a matched reader if it is reliable.
    #[inline]
    pub(super) fn reliable_reader(&self, reader: &Guid) -> Option<usize> {
        self.places.find(&self.proxies, reader).filter(|index| self.proxies[*index].is_reliable)
    }

    /// Returns a matched reader.
    pub(super) fn reader_mut(&mut self, reader: &Guid) -> Option<&mut ReaderProxy> {
        let index = self.places.find(&self.proxies, reader)?;
        self.proxies.get_mut(index)
    }

    /// Records that a reader was just sent something to answer.
    pub(super) fn give_time(&mut self, now: Time, index: usize) {
        if !self.config.answer_time.is_zero() {
            self.proxies[index].ask_at = now + self.heartbeat.delay_min;
        }
    }

    /// Chooses anew where samples are sent.
    pub(super) fn plan(&mut self) {
        let (destinations, routes) =
            (core::mem::take(&mut self.addresses), core::mem::take(&mut self.routes));
        let readers = self.proxies.iter().map(|proxy| (&proxy.destinations, proxy.group));
        let plan = Plan { destinations, routes }.of(readers);
        self.group_since = self.unsent;
        self.destinations = self.lists.list(&plan.destinations);
        (self.addresses, self.routes) = (plan.destinations, plan.routes);
    }

    /// Returns whether the last reader sets no limits but those of the one before it, as most do in a large domain.
    pub(super) fn is_last_alike(&self) -> bool {
        let [.., before, last] = &self.proxies[..] else { return false };
        let limits = |proxy: &ReaderProxy| (proxy.receive_buffer, proxy.segment_max, proxy.is_awaited());
        let has_path = last.path.is_some() || !self.pacing.is_unused();
        let is_simple = !has_path && self.taking.is_none();
        self.has_reliable && before.is_awaited() && limits(before) == limits(last) && is_simple
    }

    /// [`WriterCore::readers_changed`] after one was added that is like another, without visiting all others.
    fn reader_added(&mut self, now: Time) {
        let Some(last) = self.proxies.last() else { return };
        self.reveals_losses &= last.is_near();
        let acknowledged = last.acknowledged.max(self.history.first().prev()).min(self.acknowledged);
        let seen_charge = self.history.charged_to(last.seen).min(self.seen_charge);
        self.limit_heartbeats();
        self.set_acknowledged(now, acknowledged, seen_charge);
        self.release();
    }

    /// Adapts the least time between HEARTBEATs to the number of readers.
    fn limit_heartbeats(&mut self) {
        let answer_time = self.config.answer_time * self.proxies.len() as u32;
        self.heartbeat.delay_min =
            answer_time.clamp(config::HEARTBEAT_DELAY_MIN, config::HEARTBEAT_DELAY_MAX);
    }

    pub(super) fn readers_changed(&mut self, now: Time) {
        self.has_reliable = self.proxies.iter().any(ReaderProxy::is_awaited);
        self.reveals_losses = self.proxies.iter().filter(|it| it.is_awaited()).all(ReaderProxy::is_near);
        self.limit_heartbeats();
        self.silence.is_prompting = self.proxies.iter().any(|proxy| proxy.is_stalled);
        let was_waiting = self.pacing.is_waiting();
        self.pacing.set_paths(&self.proxies, &self.destinations, self.config.limits.is_some());
        if was_waiting {
            // The paths are asked again.
            self.pacing.next_at = Some(now);
        }
        self.consider_receipts();
        if self.taking.is_some() {
            self.serve(now);
            self.part();
        }
        let buffers =
            self.proxies.iter().filter(|proxy| proxy.is_awaited()).map(|proxy| proxy.receive_buffer);
        self.window.set_receive_buffer(buffers.min_by_key(|buffer| buffer.unwrap_or(0)).flatten());
        self.fragments.set_receive_buffers(self.proxies.iter().map(|proxy| proxy.receive_buffer));
        self.limit_datagrams();
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

    /// Limits datagrams to what the sockets and the paths to all matched readers carry.
    pub(super) fn limit_datagrams(&mut self) {
        self.set_segment_max(self.proxies.iter().map(|proxy| proxy.segment_max).min().unwrap_or(u16::MAX));
    }

    /// Limits datagrams to those that reach every matched reader unfragmented, as far as known.
    ///
    /// Longer samples are sent in fragments. Batches end at this length. A large sample keeps the size of its
    /// fragments.
    fn set_segment_max(&mut self, bytes: u16) {
        if self.is_closed {
            return;
        }
        self.datagram_max = datagram_max(&self.config, bytes);
        if let Some(coalescing) = &mut self.config.coalescing {
            coalescing.segment_max = self.configured.segment_max.min(bytes.min(self.config.datagram_max));
        }
        if let Some(batch) = &mut self.config.batch {
            // Leaves room for a HEARTBEAT. If IP had to fragment the message, losing one fragment
            // would lose it all.
            batch.max_bytes = self.configured.batch_bytes.min(self.datagram_max - compose::HEARTBEAT_LEN);
        }
    }

    /// Updates the accounts of the hosts at these addresses: the readers there have changed.
    fn hosts_changed(&mut self, now: Time, changed: &[SocketAddrV4]) {
        let bytes = self.sample_bytes();
        for (index, address) in changed.iter().enumerate() {
            let ip = *address.ip();
            if changed[..index].iter().all(|before| *before.ip() != ip) {
                let addresses = self.addresses_at(ip);
                self.counters.hosts_forgotten += self.budgets.readers_changed(now, ip, addresses, bytes);
            }
        }
    }

    /// Returns the number of addresses of a host at which reliable readers are matched.
    fn addresses_at(&mut self, ip: Ipv4Addr) -> Addresses {
        let [all, historic] = [false, true].map(|only_historic| {
            let proxies =
                self.proxies.iter().filter(|it| it.is_reliable && (it.wants_history || !only_historic));
            let addresses = proxies.flat_map(|proxy| proxy.destinations.iter()).filter(|it| *it.ip() == ip);
            self.addresses.clear();
            self.addresses.extend(addresses);
            // Several readers may be at one address.
            self.addresses.sort_unstable();
            self.addresses.dedup();
            self.addresses.len() as u64
        });
        Addresses { all, historic }
    }

    fn sample_bytes(&mut self) -> SampleBytes {
        let (unsent, next) = (self.unsent, self.history.next());
        let begun = match self.history.entry(unsent) {
            Some(entry) if self.is_amid_sample() => {
                u64::from(self.fragments.sent.saturating_mul(entry.fragment_size.into()).min(entry.len))
            }
            _ => 0,
        };
        let waiting = (next.0 - unsent.0 <= COUNTED_MAX).then(|| {
            let entries = (unsent.0..next.0).filter_map(|sn| self.history.get(SequenceNumber(sn)));
            entries.map(|entry| entry.own_len() as u64).sum()
        });
        let (written, kept) = (self.history.written(), self.history.live_bytes() as u64);
        // The kernel charges more than the bytes of a sample.
        let waiting_max = self.history.charged() - self.history.charged_to(unsent.prev());
        let handed_out = |samples: Range<SequenceNumber>| {
            let from = samples.start.max(self.history.first());
            let entries = (from.0..samples.end.0).filter_map(|sn| self.history.get(SequenceNumber(sn)));
            entries.map(|entry| entry.own_len() as u64).sum()
        };
        let sent = self.budgets.sent((unsent, next), written, (waiting, waiting_max), begun, handed_out);
        SampleBytes { written, sent, kept }
    }

    /// Returns how many bytes were handed out behind a sample, at most: as the kernel charges them.
    fn outstanding(&self, acknowledged: SequenceNumber) -> u64 {
        let handed_out = self.history.charged_to(self.unsent.prev());
        handed_out.saturating_sub(self.history.charged_to(acknowledged))
    }

    /// Returns whether anything may be sent to the host of a reader again.
    pub(super) fn may_repair(&mut self, now: Time, index: usize) -> bool {
        let repairs = self.settle_repairs_of(now, index);
        self.counters.repairs_held_back += u64::from(repairs == Repairs::Exhausted);
        self.counters.repairs_paced += u64::from(repairs == Repairs::Paced);
        repairs == Repairs::Due
    }

    /// Returns whether anything may be sent on request, without counting it.
    pub(super) fn settle_repairs_of(&mut self, now: Time, index: usize) -> Repairs {
        let bytes = self.sample_bytes();
        let proxy = &self.proxies[index];
        let outstanding = self.outstanding(proxy.acknowledged);
        self.budgets.settle(now, &proxy.destinations, bytes, outstanding)
    }

    /// Records the bytes of samples sent to a reader's addresses, as on request.
    pub(super) fn note_history_sent(&mut self, index: usize, bytes: u64) {
        self.budgets.spend(&self.proxies[index].destinations, bytes);
    }

    /// Returns which of a reader's addresses may be sent repairs now, and how much in one answer: at most one window.
    pub(super) fn room_for_repairs_of(&mut self, index: usize) -> (Destinations, Room) {
        let (proxy, lists) = (&self.proxies[index], (&mut self.lists, &mut self.addresses));
        let (to, room) = self.budgets.allowed(&proxy.destinations, self.window.size(), lists);
        // What is sent unasked is not on the account.
        (if proxy.is_apart() { Arc::clone(&proxy.destinations) } else { to }, room)
    }

    /// Records repairs sent.
    pub(super) fn note_repaired(&mut self, to: &Destinations, room: &Room) {
        self.budgets.spend(to, room.taken());
        self.counters.repairs_held_back += u64::from(room.is_held_back());
    }
}

/// Samples not handed out yet whose bytes are counted one by one.
const COUNTED_MAX: i64 = 128;
