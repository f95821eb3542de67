//! What is sent to participants that have not shown yet that they receive it.
//!
//! An announcement names the addresses for answers, and both they and its source address may be forged. A participant
//! has answered when it acknowledges announcements of endpoints by their numbers, which it can only know from us
//! ([`ParticipantConfig::first_announcement`](super::ParticipantConfig::first_announcement)). Until then
//!
//! - at most three times the bytes that arrived in its name are sent to its host (after RFC 9000, 8.1);
//! - no more than [`BURST`] and [`REFILL_PER_HOUR`] bytes are sent to a host where no participant has ever answered.
//!   The second half of the burst is spent slowly, on what has to be answered and on answers: if nothing reached them
//!   for a while, some of it is there when it does.
//!
//! Addresses of this host are exempt: nothing leaves it.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, SocketAddrV4};
use core::ops::Bound;
use core::time::Duration;

use weir_wire::submessage::id;
use weir_wire::{GuidPrefix, Message, Submessage};

use super::ParticipantCore;
use super::remote_participant::RemoteParticipant;
use crate::address_lists::AddressLists;
use crate::limits::Limits;
use crate::outbox::{Item, Outbox};
use crate::sorted_map::SortedMap;
use crate::time::Time;
use crate::writer::is_preemptive;

/// Accounts of hosts that have received something and have not answered.
#[derive(Debug, Default)]
pub(super) struct Validation {
    accounts: SortedMap<Ipv4Addr, Account>,
    /// Memory for the addresses that were charged with a header, and for those of a message.
    checked: Checked,
    allowed: Vec<SocketAddrV4>,
    lists: AddressLists,
    /// Bytes of the datagram that is being handled, if no host has been credited with them yet.
    pub(super) arriving: u64,
    /// Participants that have not answered.
    pub(super) unanswered: usize,
}

#[derive(Debug)]
struct Account {
    received: u64,
    sent: u64,
    /// A participant there has answered.
    has_answered: bool,
    /// When all that was sent of the second half is paid, at [`PACE`].
    paced_to: Time,
    /// Bytes that may be sent at once, at the time `counted_at`.
    room: u64,
    counted_at: Time,
}

/// What is known of destinations while messages are checked.
#[derive(Debug, Default)]
struct Checked {
    /// Those that were charged with a header already.
    charged: Vec<SocketAddrV4>,
    /// Those of participants that have answered, in order, once they are needed.
    answering: Vec<SocketAddrV4>,
    knows_answering: bool,
}

impl Checked {
    fn with_room(addresses: usize) -> Self {
        let [charged, answering] = [0; 2].map(|_| Vec::with_capacity(addresses));
        Self { charged, answering, knows_answering: false }
    }

    /// Returns whether a participant at this address has answered.
    fn answers(
        &mut self,
        address: &SocketAddrV4,
        remotes: &SortedMap<GuidPrefix, RemoteParticipant>,
    ) -> bool {
        if !self.knows_answering {
            self.answering.clear();
            let remotes = remotes.values().filter(|remote| remote.has_answered);
            self.answering.extend(remotes.flat_map(|remote| remote.metatraffic.iter().copied()));
            self.answering.sort_unstable();
            self.knows_answering = true;
        }
        self.answering.binary_search(address).is_ok()
    }
}

impl Validation {
    /// Reserves memory for the hosts that a limits table allows.
    pub(super) fn new(table: Option<&Limits>) -> Self {
        let Some(limits) = table else { return Self::default() };
        let (hosts, addresses) = Self::rooms(limits);
        Self {
            accounts: SortedMap::with_room(hosts),
            checked: Checked::with_room(addresses),
            allowed: Vec::with_capacity(addresses),
            lists: AddressLists::with_room(LISTS_EACH, list_len_max(limits)),
            ..Self::default()
        }
    }

    fn rooms(limits: &Limits) -> (usize, usize) {
        (hosts_max(limits.participants).saturating_add(1), limits.participants.saturating_mul(4) + 8)
    }

    /// Returns the memory that this reserves, in bytes.
    pub(super) fn bytes(limits: &Limits) -> usize {
        let (hosts, addresses) = Self::rooms(limits);
        SortedMap::<Ipv4Addr, Account>::bytes(hosts)
            .saturating_add(addresses.saturating_mul(3 * size_of::<SocketAddrV4>()))
            .saturating_add(AddressLists::bytes(LISTS_EACH, list_len_max(limits)))
    }

    /// Credits a host with what has arrived from there, or in the name of a participant there.
    fn received(&mut self, now: Time, host: Ipv4Addr, bytes: u64, hosts_max: usize) {
        if !self.accounts.contains_key(&host) && self.accounts.len() >= hosts_max {
            // The one to which nothing was sent for longest, and that has answered only if all have.
            let key = |account: &Account| (!account.has_answered, account.room_at(now));
            let unused = self.accounts.iter().max_by_key(|(_, account)| key(account));
            if let Some(host) = unused.map(|(host, _)| *host) {
                self.accounts.remove(&host);
            }
        }
        let new = Account {
            received: 0,
            sent: 0,
            has_answered: false,
            paced_to: now,
            room: BURST,
            counted_at: now,
        };
        self.accounts.get_or_insert_with(host, || new).received += bytes;
    }

    /// Charges a host with a message. `false`: it may not be sent. `is_vital`: the other side needs it to answer, or to
    /// get our answer.
    fn charge(&mut self, now: Time, host: Ipv4Addr, bytes: u64, is_vital: bool) -> bool {
        let Some(account) = self.accounts.get_mut(&host) else { return false };
        let room = account.room_at(now);
        let is_first_half = account.has_answered || room >= bytes + BURST / 2;
        let paced_to = account.paced_to.max(now) + PACE * bytes as u32;
        let is_in_reserve = is_vital && paced_to <= now + PACE * AHEAD;
        let has_room = is_first_half || (room >= bytes && is_in_reserve);
        let may_send = has_room && account.sent + bytes <= 3 * account.received;
        if may_send {
            account.sent += bytes;
            if !is_first_half {
                account.paced_to = paced_to;
            }
            (account.room, account.counted_at) = (room.saturating_sub(bytes), now);
        }
        may_send
    }
}

impl Account {
    fn room_at(&self, now: Time) -> u64 {
        let earned = now.since(self.counted_at).as_millis() as u64 * REFILL_PER_HOUR / 3_600_000;
        (self.room + earned).min(BURST)
    }
}

impl ParticipantCore {
    /// A datagram has arrived in a participant's name.
    pub(super) fn arrived(&mut self, now: Time, source: GuidPrefix, bytes: usize) {
        self.validation.arriving = bytes as u64;
        if self.validation.unanswered == 0 {
            return;
        }
        if let Some(remote) = self.remotes.get(&source).filter(|remote| !remote.has_answered) {
            let host = remote.metatraffic.first().map(|address| *address.ip());
            host.into_iter().for_each(|host| self.credit(now, host));
        }
    }

    /// Credits a host with the datagram that is being handled.
    pub(super) fn credit(&mut self, now: Time, host: Ipv4Addr) {
        let bytes = core::mem::take(&mut self.validation.arriving);
        if bytes > 0 && !self.reachability.is_on_this_host(host) {
            self.validation.received(now, host, bytes, hosts_max(self.config.limits.participants));
        }
    }

    /// Returns whether a message may be sent to a participant that has not answered.
    pub(super) fn may_send(&mut self, now: Time, host: Ipv4Addr, bytes: usize, is_vital: bool) -> bool {
        if self.reachability.is_on_this_host(host) {
            return true;
        }
        let may_send = self.validation.charge(now, host, bytes as u64, is_vital);
        self.counters.messages_held_back += u64::from(!may_send);
        may_send
    }

    /// Removes from `unpacked` what may not be sent to participants that have not answered.
    pub(super) fn hold_back(&mut self, now: Time) {
        let mut unpacked = core::mem::take(&mut self.unpacked);
        let mut items = core::mem::take(&mut unpacked.items);
        let mut checked = core::mem::take(&mut self.validation.checked);
        checked.charged.clear();
        checked.knows_answering = false;
        items.retain_mut(|item| self.may_leave(now, &unpacked, item, &mut checked));
        unpacked.items = items;
        (self.validation.checked, self.unpacked) = (checked, unpacked);
    }

    /// Leaves a message the destinations that it may be sent to. Returns whether there are any.
    fn may_leave(&mut self, now: Time, outbox: &Outbox, item: &mut Item, checked: &mut Checked) -> bool {
        if item.to.iter().all(|address| self.reachability.is_on_this_host(*address.ip())) {
            return true;
        }
        let (head, tail) = outbox.parts(item);
        let message = if head.is_empty() { tail } else { head };
        let bytes = head.len() + tail.len();
        let directed_to = (message.get(HEADER_LEN) == Some(&id::INFO_DST))
            .then(|| message.get(HEADER_LEN + 4..HEADER_LEN + 16)?.try_into().ok().map(GuidPrefix))
            .flatten();
        let remote = directed_to.and_then(|prefix| self.remotes.get(&prefix));
        if remote.is_some_and(|remote| remote.has_answered && remote.metatraffic == item.to) {
            return true;
        }
        let mut to = core::mem::take(&mut self.validation.allowed);
        to.clear();
        to.extend_from_slice(&item.to);
        to.retain(|address| {
            let is_known = directed_to.is_none() && checked.answers(address, &self.remotes);
            // Messages are packed behind one header.
            let is_first = !checked.charged.contains(address);
            let bytes = if is_first { bytes } else { bytes - HEADER_LEN };
            let may_send = is_known || self.may_send(now, *address.ip(), bytes, is_vital(message));
            if may_send && !is_known && is_first {
                checked.charged.push(*address);
            }
            may_send
        });
        if to.len() != item.to.len() {
            item.to = self.validation.lists.list(&to);
        }
        self.validation.allowed = to;
        !item.to.is_empty()
    }

    /// A participant names the numbers of our announcements. If it guesses, it may not name others for a second, and
    /// then for twice as long each time. What another host guesses in its name holds up only other hosts.
    pub(super) fn answer_given(&mut self, now: Time, prefix: GuidPrefix, is_home: bool, is_right: bool) {
        let Some(remote) = self.remotes.get_mut(&prefix) else { return };
        let guesses = &mut remote.guesses[usize::from(!is_home)];
        if now < guesses.refused_to {
            // Others may have guessed in its name.
            let at = guesses.refused_to;
            remote.ask_at = Some(at);
            return self.deadlines.look_by(prefix, &mut remote.due_at, at);
        }
        if is_right {
            return self.participant_answers(now, prefix);
        }
        guesses.count += 1;
        guesses.refused_to = now + GUESS_TIME * (1 << guesses.count.min(GUESSES_MAX));
    }

    /// Asks a participant for the numbers again that it has named when they were not believed, if they are now.
    pub(super) fn ask_unheard(&mut self, now: Time, prefix: GuidPrefix) {
        let Some(remote) = self.remotes.get_mut(&prefix) else { return };
        if remote.ask_at.take_if(|at| *at <= now).is_some() && !remote.has_answered {
            self.builtin.ask_for_position(prefix);
        }
    }

    /// A participant has answered: the others of its host need not wait.
    pub(super) fn host_answers(&mut self, now: Time, prefix: GuidPrefix) {
        let Some(remote) = self.remotes.get(&prefix) else { return };
        let hosts = Arc::clone(&remote.metatraffic);
        for host in hosts.iter() {
            if let Some(account) = self.validation.accounts.get_mut(host.ip()) {
                account.has_answered = true;
            }
        }
        let is_there = |to: &SocketAddrV4| hosts.iter().any(|host| host.ip() == to.ip());
        let waits = |(_, remote): &(&GuidPrefix, &RemoteParticipant)| {
            !remote.is_introduced && remote.metatraffic.iter().any(is_there)
        };
        let waiting_from = |core: &Self, from: Bound<GuidPrefix>| {
            let mut behind = core.remotes.range((from, Bound::Unbounded));
            behind.find(waits).map(|(prefix, _)| *prefix)
        };
        let mut next = waiting_from(self, Bound::Unbounded);
        while let Some(prefix) = next {
            self.introduce(now, prefix, false);
            // Those without SEDP had theirs when they were discovered, so that this makes no other host answer.
            self.add_static_endpoints(now, prefix);
            next = waiting_from(self, Bound::Excluded(prefix));
        }
    }
}

/// Returns how many addresses a message has at most.
fn list_len_max(limits: &Limits) -> usize {
    limits.participants.saturating_mul(2).min(LIST_LEN_MAX)
}

/// Returns how many hosts have an account.
fn hosts_max(participants: usize) -> usize {
    HOSTS_PER_PARTICIPANT.saturating_mul(participants).min(HOSTS_MAX)
}

/// Returns whether the answer to a message, or the message as an answer, shows that a participant receives what it is
/// sent: HEARTBEATs, and ACKNACKs but for those that ask for a HEARTBEAT.
fn is_vital(message: &[u8]) -> bool {
    let submessages = Message::parse(message).into_iter().flat_map(|message| message.submessages());
    submessages.filter_map(Result::ok).any(|submessage| match submessage {
        Submessage::Heartbeat(_) => true,
        Submessage::AckNack(acknack) => !is_preemptive(&acknack),
        _ => false,
    })
}

/// Lists of each length that leave at the same time, and the longest of them.
const LISTS_EACH: usize = 4;
const LIST_LEN_MAX: usize = 32;
/// Half of the time between the first guess of a participant and the second.
const GUESS_TIME: Duration = Duration::from_millis(500);
/// The time doubles so often.
const GUESSES_MAX: u32 = 7;
/// Time per byte of the second half.
const PACE: Duration = Duration::from_millis(50);
/// So many bytes may leave at once.
const AHEAD: u32 = 250;
/// Bytes that are sent at once to a host where no participant has answered.
const BURST: u64 = 4_000;
/// Bytes per hour that are sent after that.
const REFILL_PER_HOUR: u64 = 4_500;
/// Hosts with an account. Beyond that, the one to which nothing was sent for longest is forgotten.
const HOSTS_MAX: usize = 4_096;
/// So many for each participant that may be known, if these are fewer.
const HOSTS_PER_PARTICIPANT: usize = 8;
const HEADER_LEN: usize = 20;
