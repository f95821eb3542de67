//! When and to whom a participant announces itself (RTPS 2.5, 8.5.3.2).
//!
//! To all participants: a few times in quick succession after the start, then once per period. To
//! each new participant: once and directly, so that it need not wait for the period. Such a
//! response goes to the address in its announcement, which may be forged. So responses are limited
//! (a token bucket), and only participants that have sent to us directly get the periodic
//! announcement by unicast.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use weir_wire::{
    DataHeader, EntityId, Guid, GuidPrefix, Header, InfoDestination, ProtocolVersion, SequenceNumber,
    VendorId, push,
};

use super::config::ParticipantConfig;
use super::remote_participant::RemoteParticipant;
use crate::config;
use crate::discovery_data::Locators;
use crate::inline_qos;
use crate::outbox::{Destinations, Outbox};
use crate::sorted_map::SortedMap;
use crate::spdp::{self, ParticipantData, builtin_endpoints};
use crate::time::Time;
use crate::writer::ChangeKind;

/// The stateless writer of our announcements.
#[derive(Debug)]
pub(super) struct Announcer {
    prefix: GuidPrefix,
    vendor: VendorId,
    /// The announcement.
    payload: Vec<u8>,
    /// The group and the initial peers.
    everywhere: Destinations,
    last_sequence_number: SequenceNumber,
    schedule: Schedule,
    budget: ReplyBudget,
    /// The limit on repeated responses, so that they do not use up the others.
    budget_again: ReplyBudget,
    /// The limit on announcements that are not in the schedule.
    unscheduled: ReplyBudget,
    /// When such an announcement is due; `Time::MAX`: none is.
    again_at: Time,
    announced_at: Time,
    is_due: bool,
    /// One beside the schedule is due.
    is_due_again: bool,
    is_closing: bool,
    /// Participants that are to get a separate announcement.
    replies: SortedMap<GuidPrefix, ()>,
    /// The key in the goodbye.
    key: Vec<u8>,
}

#[derive(Debug)]
struct Schedule {
    first: alloc::vec::IntoIter<Time>,
    period: Duration,
    next_at: Time,
}

/// A token bucket. Refilled only when a token is taken.
#[derive(Debug)]
struct ReplyBudget {
    tokens: u32,
    burst: u32,
    interval: Duration,
    counted_at: Time,
}

impl Announcer {
    pub(super) fn new(config: &ParticipantConfig, now: Time) -> Self {
        let (mut payload, mut key) = (Vec::new(), Vec::new());
        spdp::encode(&announcement(config), &mut payload);
        spdp::encode_key(config.guid_prefix, &mut key);
        let mut everywhere: Vec<_> = config.metatraffic_multicast.into_iter().collect();
        for peer in &config.initial_peers {
            if !everywhere.contains(peer) {
                everywhere.push(*peer);
            }
        }
        Self {
            prefix: config.guid_prefix,
            vendor: config.vendor,
            payload,
            everywhere: Arc::from(everywhere),
            last_sequence_number: SequenceNumber::ZERO,
            schedule: Schedule::new(config, now),
            budget: ReplyBudget::new(config.reply_burst, config.reply_interval, now),
            budget_again: ReplyBudget::new(config.reply_burst, config.reply_interval, now),
            unscheduled: ReplyBudget::new(UNSCHEDULED_BURST, UNSCHEDULED_INTERVAL, now),
            again_at: Time::MAX,
            announced_at: now,
            is_due: false,
            is_due_again: false,
            is_closing: false,
            replies: SortedMap::with_room(config.table.map_or(0, |table| table.participants + 1)),
            key,
        }
    }

    /// Announces other addresses, as soon and as often as at the start.
    pub(super) fn restart(&mut self, config: &ParticipantConfig, now: Time) {
        self.payload.clear();
        spdp::encode(&announcement(config), &mut self.payload);
        self.schedule = Schedule::new(config, now);
    }

    pub(super) fn next_at(&self) -> Time {
        self.schedule.next_at.min(self.again_at)
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        let is_scheduled = self.schedule.advance(now);
        if is_scheduled || self.again_at <= now {
            self.is_due |= is_scheduled;
            (self.is_due_again, self.again_at, self.announced_at) = (!is_scheduled, Time::MAX, now);
        }
    }

    /// Announces us once more, beside the schedule: a participant knows us whose own announcement is lost. These
    /// announcements are limited, because messages that cause them may be forged.
    pub(super) fn announce_again(&mut self, now: Time) {
        let at = now.max(self.announced_at + config::ANSWER_AGAIN);
        if at < self.next_at() && self.unscheduled.take(now) {
            self.again_at = at;
            // A participant that is refused for good never gets to know us.
            self.unscheduled.interval = (2 * self.unscheduled.interval).min(UNSCHEDULED_INTERVAL_MAX);
        }
    }

    /// Responds to a new participant with the next transmission. `false`: the limit is exhausted.
    pub(super) fn reply(&mut self, now: Time, to: GuidPrefix) -> bool {
        self.unscheduled.interval = UNSCHEDULED_INTERVAL;
        let is_allowed = self.budget.take(now);
        if is_allowed {
            self.replies.insert(to, ());
        }
        is_allowed
    }

    /// Repeats a response with the next transmission. `false`: the limit is exhausted.
    pub(super) fn reply_again(&mut self, now: Time, to: GuidPrefix) -> bool {
        let is_allowed = self.budget_again.take(now);
        if is_allowed {
            self.replies.insert(to, ());
        }
        is_allowed
    }

    /// Returns the length of a response.
    pub(super) fn reply_len(&self) -> usize {
        REPLY_HEAD_LEN + self.payload.len()
    }

    /// Sends a goodbye to all participants with the next transmission.
    pub(super) fn close(&mut self) {
        self.is_closing = true;
        (self.is_due, self.is_due_again) = (false, false);
        self.replies.clear();
    }

    pub(super) fn poll_transmit(
        &mut self,
        now: Time,
        remotes: &SortedMap<GuidPrefix, RemoteParticipant>,
        out: &mut Outbox,
    ) {
        while let Some((prefix, ())) = self.replies.pop_first() {
            if let Some(remote) = remotes.get(&prefix) {
                self.announce(&remote.metatraffic, Some(prefix), out);
            }
        }
        // Participants that have answered do not need what is announced beside the schedule.
        let is_due = core::mem::take(&mut self.is_due);
        if core::mem::take(&mut self.is_due_again) || is_due {
            self.announce(&Arc::clone(&self.everywhere), None, out);
        }
        if is_due {
            // Multicast may not get through. Not directed: a directed announcement means "you are
            // new to me".
            let is_apart = |remote: &&RemoteParticipant| remote.has_answered && remote.grouped_to < now;
            for remote in remotes.values().filter(is_apart) {
                self.announce(&remote.metatraffic, None, out);
            }
        }
    }

    /// Appends the goodbye, if it is due. It is the last message: receivers would ignore later
    /// ones.
    pub(super) fn poll_farewell(
        &mut self,
        remotes: &SortedMap<GuidPrefix, RemoteParticipant>,
        out: &mut Outbox,
    ) {
        if !core::mem::take(&mut self.is_closing) {
            return;
        }
        self.say_goodbye(&Arc::clone(&self.everywhere), out);
        // The others received our announcements by multicast, if at all.
        for remote in remotes.values().filter(|remote| remote.has_answered) {
            self.say_goodbye(&remote.metatraffic, out);
        }
    }

    fn announce(&mut self, to: &Destinations, directed_to: Option<GuidPrefix>, out: &mut Outbox) {
        if to.is_empty() {
            return;
        }
        let mut data = self.next_data();
        data.payload_len = self.payload.len() as u32;
        out.message(to, |datagram| {
            push(datagram, &self.header());
            if let Some(prefix) = directed_to {
                push(datagram, &InfoDestination { prefix });
            }
            push(datagram, &data);
            datagram.extend_from_slice(&self.payload);
        });
    }

    /// Disposes the participant (RTPS 2.5, 9.6.4.9). The payload and inline QoS both name it:
    /// engines read either.
    fn say_goodbye(&mut self, to: &Destinations, out: &mut Outbox) {
        if to.is_empty() {
            return;
        }
        let guid = Guid::new(self.prefix, EntityId::PARTICIPANT);
        let inline_qos = inline_qos::encode(ChangeKind::DisposedUnregistered, Some(guid.to_bytes()));
        let mut data = self.next_data();
        data.is_key = true;
        data.inline_qos_len = inline_qos.len() as u32;
        data.payload_len = self.key.len() as u32;
        out.message(to, |datagram| {
            push(datagram, &self.header());
            push(datagram, &data);
            datagram.extend_from_slice(&inline_qos);
            datagram.extend_from_slice(&self.key);
        });
    }

    fn header(&self) -> Header {
        Header { version: ProtocolVersion::V2_5, vendor: self.vendor, prefix: self.prefix }
    }

    /// Each announcement has its own number, although the content is the same: a reader that drops
    /// old numbers would not see that we are alive.
    fn next_data(&mut self) -> DataHeader {
        self.last_sequence_number = self.last_sequence_number.next();
        DataHeader {
            reader: EntityId::SPDP_READER,
            writer: EntityId::SPDP_WRITER,
            sequence_number: self.last_sequence_number,
            inline_qos_len: 0,
            payload_len: 0,
            is_key: false,
        }
    }
}

impl Schedule {
    fn new(config: &ParticipantConfig, now: Time) -> Self {
        let first: Vec<_> = config.first_announcements.iter().map(|&after| now + after).collect();
        let mut schedule = Self {
            first: first.into_iter(),
            // A period of zero would cause endless announcements.
            period: config.announce_period.max(ANNOUNCE_PERIOD_MIN),
            next_at: now,
        };
        schedule.next_at = schedule.first.next().unwrap_or(now);
        schedule
    }

    /// Returns whether an announcement is due. Missed ones are not made up for.
    fn advance(&mut self, now: Time) -> bool {
        let is_due = self.next_at <= now;
        while self.next_at <= now {
            self.next_at = self.first.next().unwrap_or(now + self.period);
        }
        is_due
    }
}

impl ReplyBudget {
    fn new(burst: u32, interval: Duration, now: Time) -> Self {
        Self { tokens: burst, burst, interval, counted_at: now }
    }

    fn take(&mut self, now: Time) -> bool {
        let interval = self.interval.as_nanos().max(1);
        let earned = now.since(self.counted_at).as_nanos() / interval;
        if earned >= u128::from(self.burst - self.tokens) {
            self.tokens = self.burst;
            self.counted_at = now;
        } else {
            // Fewer than a `u32` can hold, so the product is a time that has passed.
            self.tokens += earned as u32;
            self.counted_at = self.counted_at.plus_nanos((earned * interval) as u64);
        }
        let is_there = self.tokens > 0;
        self.tokens = self.tokens.saturating_sub(1);
        is_there
    }
}

fn announcement(config: &ParticipantConfig) -> ParticipantData {
    let locators = |addresses: &[_]| Locators { addresses: addresses.to_vec(), skipped: 0 };
    ParticipantData {
        prefix: config.guid_prefix,
        version: ProtocolVersion::V2_5,
        vendor: config.vendor,
        domain_id: Some(config.domain_id),
        builtin_endpoints: builtin_endpoints::WEIR,
        lease: config.lease_duration,
        metatraffic_unicast: locators(&config.metatraffic_unicast),
        metatraffic_multicast: config.metatraffic_multicast,
        default_unicast: locators(&config.default_unicast),
        default_multicast: locators(config.default_multicast.as_slice()),
        entity_name: config.entity_name.clone(),
        user_data: config.user_data.clone(),
        receive_buffer: (config.receive_buffer > 0).then_some(config.receive_buffer),
        delimits_keys: true,
    }
}

/// Minimum time between two periodic announcements.
const ANNOUNCE_PERIOD_MIN: Duration = Duration::from_millis(1);
/// Announcements beside the schedule: so many at once, ...
const UNSCHEDULED_BURST: u32 = 4;
/// ... and then one per interval.
const UNSCHEDULED_INTERVAL: Duration = Duration::from_secs(1);
/// ... which doubles each time, up to this, until a participant is discovered.
const UNSCHEDULED_INTERVAL_MAX: Duration = Duration::from_secs(8);
/// The RTPS header, INFO_DST, and the header of DATA.
const REPLY_HEAD_LEN: usize = 20 + 16 + 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announcements_start_close_together_and_then_keep_to_the_period() {
        let config = ParticipantConfig::new(GuidPrefix([1; 12]), 0);
        let start = Time(5_000_000_000);
        let mut schedule = Schedule::new(&config, start);
        let mut at_ms = Vec::new();
        for _ in 0..7 {
            at_ms.push(schedule.next_at.since(start).as_millis());
            assert!(schedule.advance(schedule.next_at));
        }
        assert_eq!(at_ms, [0, 50, 200, 1000, 7000, 13000, 19000]);
    }

    #[test]
    fn missed_announcements_are_not_made_up_for() {
        let mut schedule = Schedule::new(&ParticipantConfig::new(GuidPrefix([1; 12]), 0), Time::ZERO);
        let late = Time::ZERO + Duration::from_secs(60);
        assert!(schedule.advance(late));
        assert!(!schedule.advance(late));
        assert_eq!(schedule.next_at.since(late), Duration::from_secs(6));
    }

    #[test]
    fn replies_are_as_many_as_the_burst_and_then_one_per_interval() {
        let ms = |ms: u64| Time(ms * 1_000_000);
        let mut budget =
            ReplyBudget { tokens: 3, burst: 3, interval: Duration::from_millis(10), counted_at: Time::ZERO };
        let mut taken = |at: Time| (0..10).filter(|_| budget.take(at)).count();
        assert_eq!(taken(ms(0)), 3);
        assert_eq!(taken(ms(9)), 0);
        assert_eq!(taken(ms(10)), 1);
        assert_eq!(taken(ms(25)), 1);
        assert_eq!(taken(ms(30)), 1);
        assert_eq!(taken(ms(1000)), 3);
    }
}
