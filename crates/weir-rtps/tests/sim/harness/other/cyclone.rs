//! When Cyclone DDS answers (`ddsi_acknack.c`).
//!
//! A request for what was not requested before is sent at once. One that overlaps the last is sent again 100 ms later
//! (NackDelay), whatever HEARTBEATs arrive; until then it acknowledges without requesting anything. (A HEARTBEAT for
//! one reader makes an exception if the writer is Cyclone's.) It requests fragments of the first incomplete sample
//! only, and nothing behind it.

use core::net::SocketAddrV4;
use core::time::Duration;

use weir_rtps::time::Time;
use weir_wire::{FragmentNumberSet, SequenceNumber, SequenceNumberSet};

use super::Other;

/// The state of a proxy writer and a reader.
#[derive(Default)]
pub(super) struct Cyclone {
    pub(super) event: Option<Time>,
    heartbeat_since_ack: bool,
    ack_requested: bool,
    acked_at: Option<Time>,
    nacked_at: Option<Time>,
    last_nack: Summary,
}

/// What a NACK names: samples from `base` to before `end`, and fragments of `end`.
#[derive(Debug, Clone, Copy, Default)]
struct Summary {
    base: i64,
    end: i64,
    fragment_base: u32,
    fragment_end: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    SilentAck,
    Ack,
    SilentNack,
    SuppressedNack,
    Nack,
    FragmentsOnly,
}

struct Info {
    kind: Kind,
    set: SequenceNumberSet,
    fragments: Option<(i64, FragmentNumberSet)>,
    summary: Summary,
}

impl Cyclone {
    fn schedule(&mut self, at: Time) {
        self.event = Some(self.event.map_or(at, |before| before.min(at)));
    }

    fn nack_again_at(&self) -> Time {
        self.nacked_at.map_or(Time::ZERO, |at| at + NACK_DELAY)
    }
}

impl Other {
    pub(super) fn cyclone_heartbeat(&mut self, now: Time, is_final: bool) {
        self.cyclone.heartbeat_since_ack = true;
        self.cyclone.ack_requested |= !is_final;
        match self.cyclone_info(now).kind {
            Kind::SilentAck => {}
            Kind::Ack | Kind::Nack | Kind::FragmentsOnly => self.cyclone.schedule(now),
            Kind::SilentNack | Kind::SuppressedNack => {
                self.cyclone.schedule(self.cyclone.nack_again_at().max(now));
            }
        }
    }

    pub(super) fn cyclone_heartbeat_frag(&mut self, now: Time, sn: i64) {
        let is_missing =
            |fragments: u32| self.partial.get(&sn).is_none_or(|partial| partial.missing(fragments).is_some());
        if self.has_heartbeat && sn == self.last && sn >= self.base && is_missing(self.last_fragment) {
            self.cyclone.schedule(now + NACK_DELAY);
        }
    }

    pub(super) fn cyclone_answer(&mut self, now: Time) -> Option<(SocketAddrV4, Vec<u8>)> {
        self.cyclone.event.take_if(|at| *at <= now)?;
        let Info { kind, set, fragments, summary } = self.cyclone_info(now);
        let state = &mut self.cyclone;
        match kind {
            Kind::SilentAck => return None,
            Kind::SilentNack => {
                let at = state.nack_again_at();
                state.schedule(if at < now { now + NACK_DELAY } else { at.max(now.plus_nanos(1)) });
                return None;
            }
            Kind::SuppressedNack => {
                let at = state.nack_again_at();
                state.schedule(if at < now { now + NACK_DELAY } else { at.max(now.plus_nanos(1)) });
            }
            Kind::Nack | Kind::FragmentsOnly => state.schedule(now + RESCHEDULE_DELAY),
            Kind::Ack => {}
        }
        state.heartbeat_since_ack = false;
        if kind != Kind::FragmentsOnly {
            (state.ack_requested, state.acked_at) = (false, Some(now));
        }
        if matches!(kind, Kind::Nack | Kind::FragmentsOnly) {
            (state.last_nack, state.nacked_at) = (summary, Some(now));
        } else {
            state.last_nack.base = summary.base;
        }
        let set = (kind != Kind::FragmentsOnly).then_some((set, true));
        let fragments: Vec<_> = fragments.into_iter().collect();
        Some(self.message(set, &fragments))
    }

    /// Returns what an answer would be now (`get_acknack_info`).
    fn cyclone_info(&self, now: Time) -> Info {
        let state = &self.cyclone;
        let is_ack_due = state.acked_at.is_none_or(|at| now >= at + ACK_DELAY);
        let is_nack_due = now >= state.nack_again_at();
        let (mut set, mut fragments, is_suppressed, end) = self.cyclone_sets();
        let mut summary = Summary { base: self.base, ..Summary::default() };
        let mut kind = if is_suppressed { Kind::SuppressedNack } else { Kind::Ack };
        if !set.is_empty() || fragments.is_some() {
            summary.end = end;
            if let Some((_, missing)) = &fragments {
                summary.fragment_base = missing.base().0;
                summary.fragment_end = missing.iter().last().map_or(0, |last| last.0 + 1);
            }
            let last = &state.last_nack;
            let is_new = summary.base > last.end
                || (summary.base == last.end && summary.fragment_base >= last.fragment_end);
            if is_new || is_nack_due {
                kind = Kind::Nack;
            } else {
                (kind, fragments) = (Kind::SuppressedNack, None);
                set = SequenceNumberSet::new(SequenceNumber(self.base));
            }
        }
        if matches!(kind, Kind::Ack | Kind::SuppressedNack) {
            let is_asked = state.heartbeat_since_ack && state.ack_requested;
            if !is_asked || !(summary.base > state.last_nack.base || is_ack_due) {
                kind = if kind == Kind::Ack { Kind::SilentAck } else { Kind::SilentNack };
            }
        } else if set.num_bits() == 0 && fragments.is_some() && !state.ack_requested {
            kind = Kind::FragmentsOnly;
        }
        Info { kind, set, fragments, summary }
    }

    /// Returns what is missing: samples, and fragments of the first incomplete one; whether nothing can be requested of
    /// it yet; and the end of the samples (`add_acknack_makebitmaps`).
    fn cyclone_sets(&self) -> (SequenceNumberSet, Option<(i64, FragmentNumberSet)>, bool, i64) {
        let mut set = SequenceNumberSet::new(SequenceNumber(self.base));
        let end = (self.last + 1).min(self.base + self.reorder_max() as i64);
        for sn in self.base..end {
            if self.received.contains(&sn) {
                _ = set.cover(SequenceNumber(sn));
                continue;
            }
            let known = if sn == self.last { self.last_fragment } else { u32::MAX };
            match self.partial.get(&sn).map(|partial| partial.missing(known)) {
                None => _ = set.insert(SequenceNumber(sn)),
                Some(None) => return (set, None, sn == self.base, sn),
                Some(Some(missing)) => return (set, Some((sn, missing)), false, sn),
            }
        }
        (set, None, false, end)
    }
}

const NACK_DELAY: Duration = Duration::from_millis(100);
const ACK_DELAY: Duration = Duration::from_millis(10);
const RESCHEDULE_DELAY: Duration = Duration::from_secs(3);
