//! Limits how much may be sent again to a host: one account for each IPv4 address.
//!
//! Forged requests can direct repairs at another host. They may acknowledge a little more each time, and the reader
//! that they name may leave and return. The account therefore belongs to the host and outlives the match. It holds
//! bytes of samples:
//!
//! - [`config::REPAIR_SHARE`] times what is first sent to the host;
//! - [`config::REPAIR_FREE_BYTES`] at first, and as much again every [`config::REPAIR_INTERVAL`], so that a reader
//!   behind heavy loss makes progress;
//! - never more than these two for the samples that the history holds now, because no others can be requested.
//!
//! Once three eighths of what belongs to unacknowledged samples are spent, the path seems to carry less than what is
//! sent. Answers then become shorter and less frequent, so that the rest suffices.
//!
//! The history for a late joiner is first sent when the reader requests it. It counts once for each address that the
//! host has at the same time, as new samples do. It does not count again when readers return.
//!
//! A reader that moves to another host has not received there what was sent to its old address. What it has not
//! acknowledged counts as history of the new host, except for what was written while that host had readers.
//!
//! Hosts without readers are remembered, up to [`config::REPAIR_HOSTS_MAX`]. After one was forgotten, an unknown host
//! may be that one. Unknown hosts therefore begin with nothing for [`config::REPAIR_HOST_MEMORY`].

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, SocketAddrV4};
use core::ops::Range;

use weir_wire::SequenceNumber;

use super::path_uses::ADDRESSES_MAX;
use crate::address_lists::AddressLists;
use crate::config;
use crate::outbox::Destinations;
use crate::time::Time;

/// The accounts of all hosts.
#[derive(Debug)]
pub(super) struct RepairBudgets {
    hosts: Vec<Host>,
    sent: Sent,
    /// A host that is not in the table may have been forgotten, until this time.
    suspicious_until: Time,
    /// How many hosts are remembered at which no readers are matched any more.
    remembered_max: usize,
}

/// The bytes of a writer's samples.
#[derive(Debug, Clone, Copy)]
pub(super) struct SampleBytes {
    /// Written so far.
    pub(super) written: u64,
    /// Handed out so far, at least.
    pub(super) sent: u64,
    /// In the history.
    pub(super) kept: u64,
}

/// The addresses of a host at which reliable readers are matched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Addresses {
    pub(super) all: u64,
    /// Of these, addresses of readers that want history.
    pub(super) historic: u64,
}

/// What one answer to a reader may hold.
#[derive(Debug)]
pub(super) struct Room {
    /// In bytes as the kernel charges them.
    charge: u64,
    /// In bytes of samples, over all answers, and in this one.
    bytes: u64,
    burst: u64,
    charged: u64,
    taken: u64,
    /// The host may not be sent all of it.
    is_held_back: bool,
}

/// Whether a host may be sent repairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Repairs {
    /// Not before the account has income.
    Exhausted,
    /// Soon.
    Paced,
    /// Now.
    Due,
}

/// The account of one host.
#[derive(Debug)]
struct Host {
    ip: Ipv4Addr,
    addresses: Addresses,
    /// The most at a time, within limits.
    most: Addresses,
    /// What may be sent again. Negative after repairs that also went to another host, which might be sent more.
    balance: i64,
    /// History that the host was never sent.
    unsent_history: u64,
    /// What the account holds if nothing was sent again of what the reader that asks has not acknowledged.
    full: u64,
    /// `sent` up to which the account has income, while there are readers.
    counted: u64,
    /// `written` when the last reader left that wanted history.
    missed_from: u64,
    /// `written` when the last reader left, or moved here. 0 before.
    moved_from: u64,
    refilled_at: Time,
    settled_at: Time,
    /// Nothing is sent again before this.
    paced_until: Time,
    /// When the last reader left.
    left_at: Time,
}

/// How many bytes were handed out. It may lag behind, since samples are not counted one by one.
#[derive(Debug, Default)]
struct Sent {
    bytes: u64,
    /// Bytes written up to a sample, and everything up to it was handed out.
    whole: u64,
    /// The same for a sample that was not handed out when last asked.
    awaited: Option<(SequenceNumber, u64)>,
    /// The same, counted one by one: the first sample that is not counted, and the bytes before it.
    counted: Option<(SequenceNumber, u64)>,
}

impl Default for RepairBudgets {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            sent: Sent::default(),
            suspicious_until: Time::ZERO,
            remembered_max: config::REPAIR_HOSTS_MAX,
        }
    }
}

impl RepairBudgets {
    /// Reserves memory for the hosts of so many readers, and remembers as many.
    pub(super) fn reserve(&mut self, readers: usize) {
        self.remembered_max = Self::remembered(readers);
        self.hosts.reserve_exact(Self::rooms(readers));
    }

    /// Returns the memory that this reserves, in bytes.
    pub(super) fn bytes(readers: usize) -> usize {
        Self::rooms(readers).saturating_mul(size_of::<Host>())
    }

    /// Returns the memory allocated, in bytes.
    pub(super) fn allocated(&self) -> usize {
        self.hosts.capacity() * size_of::<Host>()
    }

    fn remembered(readers: usize) -> usize {
        config::REPAIR_HOSTS_MAX.min(readers.saturating_mul(4).max(8))
    }

    fn rooms(readers: usize) -> usize {
        // One that has moved has two hosts. One more is forgotten after it is counted.
        readers.saturating_mul(ADDRESSES_MAX).saturating_add(Self::remembered(readers)).saturating_add(2)
    }

    /// Returns the bytes handed out, at least. `unsent` and `next` are the first samples not handed out and not
    /// written, `written` the bytes of all samples, and `begun` the bytes handed out of sample `unsent`. `waiting`:
    /// bytes of the samples from `unsent` on, unless they are too many, and at most. `handed_out`: returns the bytes of
    /// samples, at least.
    pub(super) fn sent(
        &mut self,
        (unsent, next): (SequenceNumber, SequenceNumber),
        written: u64,
        (waiting, waiting_max): (Option<u64>, u64),
        begun: u64,
        handed_out: impl FnOnce(Range<SequenceNumber>) -> u64,
    ) -> u64 {
        let sent = &mut self.sent;
        if let Some(waiting) = waiting {
            (sent.whole, sent.awaited) = (written.saturating_sub(waiting), None);
            sent.counted = Some((unsent, sent.whole));
        } else {
            // A path may have many samples waiting for as long as it is in use.
            if let Some((first, bytes)) = sent.counted.filter(|(first, _)| *first < unsent) {
                sent.counted = Some((unsent, (bytes + handed_out(first..unsent)).min(written)));
            }
            sent.whole = sent.counted.map_or(sent.whole, |(_, bytes)| sent.whole.max(bytes));
            if let Some((_, bytes)) = sent.awaited.filter(|(last, _)| unsent > *last) {
                (sent.whole, sent.awaited) = (bytes, None);
            }
            sent.awaited.get_or_insert((next.prev(), written));
            sent.bytes = sent.bytes.max(written.saturating_sub(waiting_max));
        }
        sent.bytes = sent.bytes.max(sent.whole + begun);
        sent.bytes
    }

    /// Records at which addresses of a host there are readers now. Returns how many hosts were forgotten.
    pub(super) fn readers_changed(
        &mut self,
        now: Time,
        ip: Ipv4Addr,
        addresses: Addresses,
        bytes: SampleBytes,
    ) -> u64 {
        let index = self.hosts.iter().position(|host| host.ip == ip).or_else(|| {
            let is_known = now >= self.suspicious_until;
            (addresses.all > 0).then(|| {
                self.hosts.push(Host::new(now, ip, bytes, is_known));
                self.hosts.len() - 1
            })
        });
        let Some(host) = index.and_then(|index| self.hosts.get_mut(index)) else { return 0 };
        host.settle(now, bytes);
        host.readers_changed(now, addresses, bytes);
        if addresses.all > 0 { 0 } else { self.forget(now) }
    }

    /// Records that readers are matched at one more address of a host.
    pub(super) fn address_added(&mut self, now: Time, ip: Ipv4Addr, is_historic: bool, bytes: SampleBytes) {
        let known = self.host(ip).map_or(Addresses::default(), |host| host.addresses);
        let addresses = Addresses { all: known.all + 1, historic: known.historic + u64::from(is_historic) };
        // Nothing is forgotten when readers come.
        self.readers_changed(now, ip, addresses, bytes);
    }

    /// Records that a reader without history has moved to these addresses, and has not acknowledged this many bytes.
    pub(super) fn reader_moved(&mut self, to: &[SocketAddrV4], outstanding: u64, written: u64) {
        for host in self.hosts.iter_mut().filter(|host| to.iter().any(|address| *address.ip() == host.ip)) {
            let from = core::mem::replace(&mut host.moved_from, written);
            host.unsent_history += outstanding.min(written.saturating_sub(from));
        }
    }

    /// Forgets the hosts that were left first, if there are too many. Returns how many.
    fn forget(&mut self, now: Time) -> u64 {
        let mut left = self.hosts.iter().filter(|host| host.addresses.all == 0).count();
        let mut forgotten = 0;
        while left > self.remembered_max {
            let hosts = self.hosts.iter().enumerate().filter(|(_, host)| host.addresses.all == 0);
            let Some((index, _)) = hosts.min_by_key(|(_, host)| host.left_at) else { break };
            let until = self.hosts.swap_remove(index).left_at + config::REPAIR_HOST_MEMORY;
            if now < until {
                self.suspicious_until = self.suspicious_until.max(until);
            }
            (left, forgotten) = (left - 1, forgotten + 1);
        }
        forgotten
    }

    /// Adds the income of the hosts at these addresses. Returns what the most fortunate of them may be sent.
    /// `outstanding`: bytes that the reader that asks has not acknowledged, at most.
    pub(super) fn settle(
        &mut self,
        now: Time,
        to: &[SocketAddrV4],
        bytes: SampleBytes,
        outstanding: u64,
    ) -> Repairs {
        let mut most = Repairs::Exhausted;
        for host in self.hosts.iter_mut().filter(|host| to.iter().any(|address| *address.ip() == host.ip)) {
            host.settle(now, bytes);
            host.full = host.limit(bytes.kept.min(outstanding));
            most = most.max(match host.available() {
                0 => Repairs::Exhausted,
                _ if now < host.paced_until => Repairs::Paced,
                _ => Repairs::Due,
            });
        }
        most
    }

    /// Returns the addresses among `to` that may be sent repairs, and the room that the host with the fullest account
    /// leaves. `window`: room for one answer, in bytes as the kernel charges them. `lists` and `memory` are for the
    /// addresses.
    pub(super) fn allowed(
        &self,
        to: &Destinations,
        window: u64,
        (lists, memory): (&mut AddressLists, &mut Vec<SocketAddrV4>),
    ) -> (Destinations, Room) {
        let available = |address: &SocketAddrV4| self.host(*address.ip()).map_or(0, Host::available);
        let hosts = to.iter().filter_map(|address| self.host(*address.ip()));
        let (bytes, quick) = hosts.map(|host| (host.available(), host.quick())).max().unwrap_or((0, 0));
        let burst = quick.max(config::REPAIR_BURST_BYTES);
        let room = Room { charge: window, bytes, burst, charged: 0, taken: 0, is_held_back: false };
        if bytes == 0 || to.iter().all(|address| available(address) > 0) {
            return (Arc::clone(to), room);
        }
        memory.clear();
        memory.extend(to.iter().filter(|address| available(address) > 0));
        (lists.list(memory), room)
    }

    /// Charges the hosts at these addresses for repairs.
    pub(super) fn spend(&mut self, to: &[SocketAddrV4], bytes: u64) {
        for address in to {
            if let Some(host) = self.hosts.iter_mut().find(|host| bytes > 0 && host.ip == *address.ip()) {
                host.spend(bytes);
            }
        }
    }

    /// Returns the memory in bytes.
    pub(super) fn memory(&self) -> usize {
        self.hosts.capacity() * size_of::<Host>()
    }

    fn host(&self, ip: Ipv4Addr) -> Option<&Host> {
        self.hosts.iter().find(|host| host.ip == ip)
    }
}

impl Host {
    /// A host without readers. `is_known`: it cannot be one that was forgotten.
    fn new(now: Time, ip: Ipv4Addr, bytes: SampleBytes, is_known: bool) -> Self {
        let most = addresses_max(ip);
        Self {
            ip,
            addresses: Addresses::default(),
            most: if is_known { Addresses::default() } else { Addresses { all: 1, historic: most } },
            balance: if is_known { config::REPAIR_FREE_BYTES.cast_signed() } else { 0 },
            unsent_history: 0,
            full: 0,
            counted: bytes.written,
            missed_from: bytes.written,
            moved_from: if is_known { 0 } else { bytes.written },
            refilled_at: now,
            settled_at: now,
            paced_until: now,
            left_at: now,
        }
    }

    fn readers_changed(&mut self, now: Time, addresses: Addresses, bytes: SampleBytes) {
        let (before, most) = (self.addresses, self.most);
        let max = addresses_max(self.ip);
        let capped = |count: u64| count.min(max);
        if before.all == 0 {
            // Samples handed out before are not sent to it.
            self.counted = bytes.written;
        }
        if addresses.historic > before.historic {
            // New samples will be sent to it anyway.
            let history = bytes.kept.saturating_sub(bytes.written.saturating_sub(bytes.sent));
            let new = capped(addresses.historic).saturating_sub(most.historic);
            let returning =
                if before.historic == 0 { capped(addresses.historic).min(most.historic) } else { 0 };
            let missed = history.min(bytes.written.saturating_sub(self.missed_from));
            self.unsent_history += new * history + returning * missed;
        } else if addresses.historic == 0 && before.historic > 0 {
            self.missed_from = bytes.written;
        }
        if before.all > 0 {
            // It was sent what the others there were sent.
            self.moved_from = bytes.written;
        }
        if addresses.all == 0 {
            (self.left_at, self.moved_from) = (now, bytes.written);
        }
        self.most.all = most.all.max(capped(addresses.all));
        self.most.historic = most.historic.max(capped(addresses.historic));
        self.addresses = addresses;
    }

    /// Adds the income since the last call.
    fn settle(&mut self, now: Time, bytes: SampleBytes) {
        let interval_ns = config::REPAIR_INTERVAL.as_nanos() as u64;
        let intervals = now.nanos_since(self.refilled_at) / interval_ns;
        self.refilled_at = self.refilled_at.plus_nanos(intervals * interval_ns);
        let mut income = intervals.saturating_mul(config::REPAIR_FREE_BYTES);
        if self.addresses.all > 0 && bytes.sent > self.counted {
            let first_sent = self.addresses.all.saturating_mul(bytes.sent - self.counted);
            income = income.saturating_add(first_sent.saturating_mul(config::REPAIR_SHARE));
            self.counted = bytes.sent;
        }
        self.unsent_history = self.unsent_history.min(bytes.kept.saturating_mul(self.most.all));
        let limit = i64::try_from(self.limit(bytes.kept)).unwrap_or(i64::MAX);
        self.balance = self.balance.saturating_add_unsigned(income).min(limit);
        self.settled_at = now;
    }

    /// What may be sent again of this many bytes.
    fn limit(&self, bytes: u64) -> u64 {
        let first_sent = bytes.saturating_mul(self.most.all);
        first_sent.saturating_mul(config::REPAIR_SHARE).saturating_add(config::REPAIR_FREE_BYTES)
    }

    /// What is left, with the income from history that was not sent yet.
    fn left(&self) -> u64 {
        let history = self.unsent_history.saturating_mul(config::REPAIR_SHARE + 1);
        history.saturating_add_signed(self.balance)
    }

    /// How much may be sent as fast as it is requested.
    fn quick(&self) -> u64 {
        self.left().saturating_sub(self.full / 8 * 5)
    }

    /// What may be sent on request, in bytes.
    fn available(&self) -> u64 {
        self.unsent_history.saturating_add_signed(self.balance)
    }

    fn spend(&mut self, bytes: u64) {
        let first = bytes.min(self.unsent_history);
        self.unsent_history -= first;
        let income = first.saturating_mul(config::REPAIR_SHARE);
        self.balance = self.balance.saturating_add_unsigned(income).saturating_sub_unsigned(bytes - first);
        if self.quick() == 0 {
            let halves = (1..=3).take_while(|halves| self.left() < self.full >> halves).count();
            self.paced_until = self.settled_at + config::REPAIR_PACE * 4_u32.pow(halves as u32);
        }
    }
}

impl Room {
    /// Whether one answer has room for a datagram.
    pub(super) fn is_in_answer(&self, charge: u64, bytes: u64) -> bool {
        self.charged + charge <= self.charge && (self.taken == 0 || self.taken + bytes <= self.burst)
    }

    /// Takes room for a datagram. Returns `false` if there is none.
    pub(super) fn take(&mut self, charge: u64, bytes: u64) -> bool {
        let is_allowed = self.taken + bytes <= self.bytes;
        self.is_held_back |= !is_allowed;
        if !is_allowed || !self.is_in_answer(charge, bytes) {
            return false;
        }
        (self.charged, self.taken) = (self.charged + charge, self.taken + bytes);
        true
    }

    /// Bytes of samples that may be taken.
    pub(super) fn left(&self) -> u64 {
        self.bytes.saturating_sub(self.taken)
    }

    /// Bytes of samples taken.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Whether the host may not be sent some of what was requested.
    pub(super) fn is_held_back(&self) -> bool {
        self.is_held_back
    }
}

/// Returns at how many addresses of a host samples count as first sent. What is sent to the loopback interface is sent
/// to no other host.
fn addresses_max(host: Ipv4Addr) -> u64 {
    if host.is_loopback() { config::PROXIES_MAX as u64 } else { config::REPAIR_ADDRESSES_MAX }
}

#[cfg(test)]
mod tests;
