//! Asserts the local writers towards other participants, and monitors their leases (DDS 1.4,
//! 2.2.3.11; RTPS 2.5, 8.4.13).
//!
//! Participant messages assert all AUTOMATIC writers periodically, or all MANUAL_BY_PARTICIPANT
//! ones after the application has asserted one of them. MANUAL_BY_TOPIC writers assert themselves
//! on their own topic; here their leases are only monitored.

use alloc::collections::BTreeMap;
use core::time::Duration;

use weir_wire::{EntityId, GuidPrefix};

use super::ParticipantCore;
use crate::discovery_event::DiscoveryEvent;
use crate::qos::{INFINITE, LivelinessKind, Qos};
use crate::sedp::EndpointKind;
use crate::time::Time;

/// Automatic assertions per lease: two may be lost.
const AUTOMATIC_SHARE: u32 = 3;
/// Maximum number of messages per lease caused by writes of MANUAL_BY_PARTICIPANT writers. Each may
/// extend by that much the time that the application is considered alive.
const MANUAL_SHARE: u32 = 8;
/// Minimum time between messages, however short leases are.
const PERIOD_MIN: Duration = Duration::from_millis(1);

/// Times when participant messages are due.
#[derive(Debug, Default)]
pub(super) struct Assertions {
    /// Time between automatic messages, if a writer needs them.
    automatic_period: Option<Duration>,
    automatic_at: Option<Time>,
    /// Minimum time between messages caused by writes, if a writer needs them.
    manual_period: Option<Duration>,
    manual_sent_at: Option<Time>,
    manual_at: Option<Time>,
    /// Some local writer has a lease that the application must renew.
    has_leases: bool,
}

impl Assertions {
    pub(super) fn next_at(&self) -> Option<Time> {
        self.automatic_at.into_iter().chain(self.manual_at).min()
    }
}

impl ParticipantCore {
    /// Asserts all MANUAL_BY_PARTICIPANT writers for the application.
    pub fn assert_liveliness(&mut self, now: Time) {
        self.assert_manual_by_participant(now);
        if self.assertions.manual_period.is_some() {
            self.send_message(now, LivelinessKind::ManualByParticipant);
        }
    }

    /// Records that a local writer wrote or was asserted by the application, at `at`, which may be
    /// some time ago.
    pub fn assert_writer(&mut self, now: Time, at: Time, writer: EntityId) {
        let Some(lease) = self.locals.get_mut(&writer).and_then(|entry| entry.lease.as_mut()) else { return };
        lease.assert(at);
        if lease.kind() != LivelinessKind::ManualByParticipant {
            return;
        }
        self.assert_manual_by_participant(at);
        let (Some(period), Some(sent_at)) = (self.assertions.manual_period, self.assertions.manual_sent_at)
        else {
            return self.send_message(now, LivelinessKind::ManualByParticipant);
        };
        if at <= sent_at {
            return;
        }
        if now.since(sent_at) >= period {
            self.send_message(now, LivelinessKind::ManualByParticipant);
        } else {
            self.assertions.manual_at = Some(sent_at + period);
        }
    }

    fn assert_manual_by_participant(&mut self, at: Time) {
        let leases = self.locals.values_mut().filter_map(|entry| entry.lease.as_mut());
        for lease in leases.filter(|lease| lease.kind() == LivelinessKind::ManualByParticipant) {
            lease.assert(at);
        }
    }

    /// Updates the periods after the participant's writers have changed.
    pub(super) fn writers_changed(&mut self, now: Time) {
        let shortest = |kind| {
            let writers = self.locals.values().filter(|entry| entry.kind() == EndpointKind::Writer);
            let policies = writers.map(|entry| entry.seen.qos.liveliness);
            policies.filter(|policy| policy.kind == kind).map(|policy| policy.lease).min()
        };
        let period = |kind, share| {
            let lease = shortest(kind).filter(|lease| *lease < INFINITE)?;
            Some((lease / share).max(PERIOD_MIN))
        };
        let automatic = period(LivelinessKind::Automatic, AUTOMATIC_SHARE);
        let manual = period(LivelinessKind::ManualByParticipant, MANUAL_SHARE);
        self.assertions.has_leases = self.locals.values().any(|entry| entry.lease.is_some());
        let assertions = &mut self.assertions;
        if assertions.automatic_period != automatic {
            assertions.automatic_period = automatic;
            assertions.automatic_at = automatic.map(|_| now);
        }
        assertions.manual_period = manual;
        if manual.is_none() {
            (assertions.manual_at, assertions.manual_sent_at) = (None, None);
        }
    }

    /// Sends due messages, and reports writers that were not asserted in time.
    pub(super) fn liveliness_timeout(&mut self, now: Time) {
        if self.assertions.automatic_at.is_some_and(|at| at <= now) {
            self.assertions.automatic_at = self.assertions.automatic_period.map(|period| now + period);
            self.send_message(now, LivelinessKind::Automatic);
        }
        if self.assertions.manual_at.is_some_and(|at| at <= now) {
            self.send_message(now, LivelinessKind::ManualByParticipant);
        }
        let has_leases = self.assertions.has_leases;
        for (entity, entry) in self.locals.iter_mut().filter(|_| has_leases) {
            if entry.lease.as_mut().is_some_and(|lease| lease.expire(now)) {
                self.news.push(DiscoveryEvent::LivelinessLost { writer: *entity });
            }
        }
    }

    /// Returns when something here is due.
    pub(super) fn next_liveliness(&self) -> Option<Time> {
        let locals = self.assertions.has_leases.then_some(&self.locals);
        let entries = locals.into_iter().flat_map(BTreeMap::values);
        let leases = entries.filter_map(|entry| entry.lease.as_ref()?.expires_at());
        leases.chain(self.assertions.next_at()).min()
    }

    fn send_message(&mut self, now: Time, kind: LivelinessKind) {
        if self.is_closed {
            return;
        }
        if kind == LivelinessKind::ManualByParticipant {
            self.assertions.manual_sent_at = Some(now);
            self.assertions.manual_at = None;
        }
        self.builtin.assert_liveliness(now, kind);
        // Readers of this participant do not receive its metatraffic.
        self.news.push(DiscoveryEvent::LivelinessAsserted { prefix: self.config.guid_prefix, kind });
    }

    /// Processes the participant messages that have arrived.
    pub(super) fn take_participant_messages(&mut self) {
        while let Some((source, message)) = self.builtin.take_message() {
            match message {
                Some((prefix, kind)) if prefix == source => self.told_alive(prefix, kind),
                Some(_) => self.counters.foreign_announcements += 1,
                None => self.counters.refused_announcements += 1,
            }
        }
    }

    fn told_alive(&mut self, prefix: GuidPrefix, kind: LivelinessKind) {
        let offers = |qos: &Qos| qos.liveliness.kind == kind && qos.liveliness.lease < INFINITE;
        let has_such_writers = self
            .remotes
            .get(&prefix)
            .is_some_and(|remote| remote.endpoints.values().any(|entry| offers(&entry.qos)));
        if has_such_writers {
            self.news.push(DiscoveryEvent::LivelinessAsserted { prefix, kind });
        }
    }
}
