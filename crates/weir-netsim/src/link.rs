//! One direction between two hosts: delay, jitter, rate, queue, MTU, loss, duplication and
//! reordering.
//!
//! The same model carries the datagrams of a [`Network`](crate::Network) in virtual time and the
//! packets of weir-bench's link emulator in real time: [`LinkState`] reads no clock.
//!
//! A packet first waits in the queue until the previous ones were transmitted at the link's rate;
//! a full queue drops the new one. It may then be lost, held back or duplicated, and arrives after
//! the delay. Jitter alone never reorders: only datagrams held back by [`Link::reorder`] are
//! overtaken.

use core::time::Duration;
use std::net::{Ipv4Addr, SocketAddrV4};

use crate::ecn::{Ecn, Marking};
use crate::loss::{Datagram, Loss, LossState};
use crate::rate::Rate;
use crate::rng::Rng;
use crate::steps::Steps;
use crate::traffic::{Series, Traffic};

/// Size of the IPv4 and UDP headers of each datagram, which count against MTU, rate and queue.
pub const HEADER_BYTES: usize = 28;

const IP_HEADER_BYTES: usize = 20;

/// All fragments of a datagram but the last carry a multiple of this many bytes (RFC 791).
const FRAGMENT_UNIT: usize = 8;

/// The properties of a link; a template from which each direction between two hosts gets its own
/// state.
///
/// A new link has no delay, limits or faults. Every link refuses datagrams over 65507 bytes, as UDP
/// cannot carry them.
#[derive(Debug, Clone)]
pub struct Link {
    delay: Steps<Duration>,
    jitter: Duration,
    rate: Option<Rate>,
    queue_bytes: Option<usize>,
    mtu_bytes: Option<usize>,
    takes_fragments: bool,
    losses: Vec<Loss>,
    duplicate: f64,
    reorder: f64,
    hold: Duration,
    marking: Marking,
    series: Duration,
}

impl Link {
    /// Creates a link without delay, limits and faults.
    pub fn new() -> Self {
        Self {
            delay: Steps::constant(Duration::ZERO),
            jitter: Duration::ZERO,
            rate: None,
            queue_bytes: None,
            mtu_bytes: None,
            takes_fragments: false,
            losses: Vec::new(),
            duplicate: 0.0,
            reorder: 0.0,
            hold: Duration::ZERO,
            marking: Marking::default(),
            series: Duration::ZERO,
        }
    }

    /// Sets the propagation delay: from the last bit leaving to its arrival.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = Steps::constant(delay);
        self
    }

    /// Changes the propagation delay of what leaves from a time on, until the next step. Order is
    /// kept: after a step to a shorter delay, packets arrive with the last one sent before it.
    #[must_use]
    pub fn delay_step(mut self, at: Duration, delay: Duration) -> Self {
        self.delay.change(at, delay);
        self
    }

    /// Adds a uniformly distributed delay of up to `jitter` to each datagram. Order is kept.
    #[must_use]
    pub fn jitter(mut self, jitter: Duration) -> Self {
        self.jitter = jitter;
        self
    }

    /// Sets the rate in bits per second, headers included; 0 (the default) is unlimited.
    #[must_use]
    pub fn rate_bps(mut self, rate_bps: u64) -> Self {
        self.rate = (rate_bps != 0).then(|| Rate::constant(rate_bps));
        self
    }

    /// Changes the rate at a time, until the next step. A packet that is being transmitted
    /// continues at the new rate.
    ///
    /// # Panics
    ///
    /// If no [`rate_bps`](Self::rate_bps) was set before, or this one is 0.
    #[must_use]
    pub fn rate_step(mut self, at: Duration, rate_bps: u64) -> Self {
        assert!(rate_bps > 0, "a rate step of 0 would stop the link");
        self.rate.as_mut().expect("a step needs a rate to start from").change(at, rate_bps);
        self
    }

    /// Sets the queue's size in bytes, headers included. A datagram that does not fit is dropped.
    /// Without a rate it has no effect.
    #[must_use]
    pub fn queue_bytes(mut self, queue_bytes: usize) -> Self {
        self.queue_bytes = Some(queue_bytes);
        self
    }

    /// Sets the maximum IP packet size. Larger packets are refused to the sender, as with EMSGSIZE
    /// (no fragmentation).
    #[must_use]
    pub fn mtu_bytes(mut self, mtu_bytes: usize) -> Self {
        (self.mtu_bytes, self.takes_fragments) = (Some(mtu_bytes), false);
        self
    }

    /// Sets the maximum IP packet size. Larger datagrams travel in fragments (RFC 791): each takes its place in the
    /// queue and its time on the wire, and what has lost one does not arrive. It arrives with its last fragment, marked
    /// if one of them is (RFC 3168, section 5.3), and no second time.
    ///
    /// # Panics
    ///
    /// If a fragment could carry nothing: at less than 28 bytes.
    #[must_use]
    pub fn fragment_above(mut self, mtu_bytes: usize) -> Self {
        assert!(
            mtu_bytes >= IP_HEADER_BYTES + FRAGMENT_UNIT,
            "an MTU of {mtu_bytes} bytes carries no fragment"
        );
        (self.mtu_bytes, self.takes_fragments) = (Some(mtu_bytes), true);
        self
    }

    /// Returns the maximum IP packet size, in bytes; `None`: what UDP can carry.
    pub fn mtu(&self) -> Option<usize> {
        self.mtu_bytes
    }

    /// Adds a loss model.
    #[must_use]
    pub fn loss(mut self, loss: Loss) -> Self {
        self.losses.push(loss);
        self
    }

    /// Sets the probability that a datagram arrives twice; the second copy has its own jitter.
    #[must_use]
    pub fn duplicate(mut self, probability: f64) -> Self {
        self.duplicate = probability;
        self
    }

    /// Sets the probability that a datagram is held back for `hold`. Those sent less than `hold`
    /// later overtake it.
    #[must_use]
    pub fn reorder(mut self, probability: f64, hold: Duration) -> Self {
        self.reorder = probability;
        self.hold = hold;
        self
    }

    /// Sets what the link does with the ECN field. A threshold has no effect without a rate.
    #[must_use]
    pub fn marking(mut self, marking: Marking) -> Self {
        self.marking = marking;
        self
    }

    /// Records a time series of the traffic, in steps of `width`.
    #[must_use]
    pub fn series(mut self, width: Duration) -> Self {
        self.series = width;
        self
    }

    /// Returns the link without losses, duplicates and reordering.
    #[must_use]
    pub fn without_faults(&self) -> Self {
        Self { losses: Vec::new(), duplicate: 0.0, reorder: 0.0, ..self.clone() }
    }
}

impl Default for Link {
    fn default() -> Self {
        Self::new()
    }
}

/// A [`Link`] in use: takes packets, decides what becomes of each, and counts.
#[derive(Debug)]
pub struct LinkState {
    link: Link,
    losses: Vec<LossState>,
    rng: Rng,
    count: u64,
    wire_free_at: Duration,
    last_arrival: Duration,
    traffic: Traffic,
}

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is over the MTU and refused to the sender.
    TooBig {
        /// The largest UDP payload that the link takes.
        limit: usize,
    },
    /// The queue is full.
    QueueFull,
    /// The link loses it.
    Lost,
    /// It arrives.
    Arrives {
        /// When.
        at: Duration,
        /// When a second copy arrives, if any.
        copy_at: Option<Duration>,
        /// Whether it is held back, so that later ones may overtake it.
        is_held: bool,
        /// Its ECN field on arrival.
        ecn: Ecn,
    },
}

impl Verdict {
    /// Returns what becomes of a datagram, of one of its fragments and of those before.
    fn joined(self, fragment: Self) -> Self {
        match (self, fragment) {
            (
                Self::Arrives { at: before, is_held: was_held, ecn: marked, .. },
                Self::Arrives { at, is_held, ecn, .. },
            ) => Self::Arrives {
                at: at.max(before),
                copy_at: None,
                is_held: is_held || was_held,
                ecn: if marked == Ecn::Ce { marked } else { ecn },
            },
            (Self::Arrives { .. }, lost) | (lost, _) => lost,
        }
    }
}

impl LinkState {
    /// Starts to use a link, with all randomness from `rng`.
    pub fn new(link: Link, rng: Rng) -> Self {
        let losses = link.losses.iter().cloned().map(LossState::new).collect();
        let traffic = Traffic { series: Series::new(link.series), ..Traffic::default() };
        let (wire_free_at, last_arrival) = (Duration::ZERO, Duration::ZERO);
        Self { link, losses, rng, count: 0, wire_free_at, last_arrival, traffic }
    }

    /// Gives the link an IP packet of so many bytes, without ECN. Times must not decrease.
    ///
    /// [`Loss::when`] sees an empty datagram without addresses.
    pub fn offer(&mut self, now: Duration, packet_bytes: usize) -> Verdict {
        self.offer_with(now, packet_bytes, Ecn::NotEct)
    }

    /// Gives the link an IP packet with this ECN field; otherwise as [`offer`](Self::offer).
    pub fn offer_with(&mut self, now: Duration, packet_bytes: usize, ecn: Ecn) -> Verdict {
        let nowhere = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
        let datagram = Datagram { sent_at: now, ordinal: 0, from: nowhere, to: nowhere, bytes: &[] };
        self.carry_packet(packet_bytes, ecn, datagram)
    }

    /// Returns how long the link takes to send so many bytes that begin to leave at `start`; none without a rate.
    pub fn wire_time(&self, start: Duration, packet_bytes: usize) -> Duration {
        self.link.rate.as_ref().map_or(Duration::ZERO, |rate| rate.done_at(start, packet_bytes) - start)
    }

    /// Returns what the link carried so far. `now` completes the time series.
    pub fn traffic(&mut self, now: Duration) -> Traffic {
        self.advance_series(now);
        self.traffic.clone()
    }

    /// Carries a datagram; sets `datagram.ordinal`.
    pub(crate) fn carry(&mut self, datagram: Datagram<'_>, ecn: Ecn) -> Verdict {
        let size = datagram.bytes.len() + HEADER_BYTES;
        let is_in_fragments = self.link.takes_fragments && datagram.bytes.len() <= UDP_PAYLOAD_MAX;
        match self.link.mtu_bytes.filter(|mtu| is_in_fragments && size > *mtu) {
            Some(mtu) => self.carry_fragments(mtu, ecn, datagram),
            None => self.carry_packet(size, ecn, datagram),
        }
    }

    /// Carries a datagram that is longer than the link's packets, as IP does.
    fn carry_fragments(&mut self, mtu: usize, ecn: Ecn, datagram: Datagram<'_>) -> Verdict {
        let payload = datagram.bytes.len() + HEADER_BYTES - IP_HEADER_BYTES;
        let most = (mtu - IP_HEADER_BYTES) / FRAGMENT_UNIT * FRAGMENT_UNIT;
        let lens = (0..payload).step_by(most).map(|from| most.min(payload - from));
        let fragments = lens.map(|len| self.carry_packet(IP_HEADER_BYTES + len, ecn, datagram));
        fragments.reduce(Verdict::joined).expect("a datagram has bytes")
    }

    fn carry_packet(&mut self, size: usize, ecn: Ecn, datagram: Datagram<'_>) -> Verdict {
        let now = datagram.sent_at;
        self.advance_series(now);
        let wait = self.wire_free_at.saturating_sub(now);
        let backlog_bytes = self.backlog_bytes(now);
        self.traffic.offered.add(size);
        self.traffic.queue.note(backlog_bytes, wait);
        self.traffic.series.offered(now, size);
        let refusing = self.link.mtu_bytes.filter(|_| !self.link.takes_fragments);
        let limit =
            refusing.map_or(UDP_PAYLOAD_MAX, |mtu| mtu.saturating_sub(HEADER_BYTES).min(UDP_PAYLOAD_MAX));
        if size > limit + HEADER_BYTES {
            self.traffic.too_big.add(size);
            return Verdict::TooBig { limit };
        }
        let queue_bytes = self.link.queue_bytes.filter(|_| self.link.rate.is_some());
        if queue_bytes.is_some_and(|queue| backlog_bytes + size as u64 > queue as u64) {
            self.traffic.queue_full.add(size);
            return Verdict::QueueFull;
        }
        let start = now.max(self.wire_free_at);
        let left_at = self.link.rate.as_ref().map_or(start, |rate| rate.done_at(start, size));
        self.wire_free_at = left_at;
        let arriving = self.link.marking.apply(ecn, backlog_bytes, wait);
        if arriving == Ecn::Ce && ecn != Ecn::Ce {
            self.traffic.marked.add(size);
        }
        let verdict = self.pass(left_at, arriving, datagram);
        self.count_verdict(verdict, size);
        verdict
    }

    /// Decides about a packet that leaves the queue at `left_at`.
    fn pass(&mut self, left_at: Duration, ecn: Ecn, mut datagram: Datagram<'_>) -> Verdict {
        self.count += 1;
        datagram.ordinal = self.count;
        // Every model sees every datagram, so that the models are independent.
        let mut is_lost = false;
        for loss in &mut self.losses {
            is_lost |= loss.loses(&datagram, &mut self.rng);
        }
        if is_lost {
            return Verdict::Lost;
        }
        let in_order = (left_at + self.link.delay.at(left_at) + self.draw_jitter()).max(self.last_arrival);
        let is_held = self.rng.chance(self.link.reorder);
        let at = if is_held {
            in_order + self.link.hold
        } else {
            self.last_arrival = in_order;
            in_order
        };
        let copy_at = if self.rng.chance(self.link.duplicate) { Some(at + self.draw_jitter()) } else { None };
        Verdict::Arrives { at, copy_at, is_held, ecn }
    }

    fn count_verdict(&mut self, verdict: Verdict, size: usize) {
        let Verdict::Arrives { at, copy_at, is_held, .. } = verdict else {
            return self.traffic.lost.add(size);
        };
        if is_held {
            self.traffic.held_back.add(size);
        }
        if copy_at.is_some() {
            self.traffic.duplicated.add(size);
        }
        for at in [Some(at), copy_at].into_iter().flatten() {
            self.traffic.delivered.add(size);
            self.traffic.series.delivered(at, size);
        }
    }

    fn advance_series(&mut self, now: Duration) {
        let Self { link, wire_free_at, traffic, .. } = self;
        traffic.series.advance(now, |at| backlog_bytes(link, at, *wire_free_at));
    }

    /// Bytes still queued or being transmitted.
    fn backlog_bytes(&self, now: Duration) -> u64 {
        backlog_bytes(&self.link, now, self.wire_free_at)
    }

    fn draw_jitter(&mut self) -> Duration {
        if self.link.jitter.is_zero() {
            return Duration::ZERO;
        }
        let nanos = u64::try_from(self.link.jitter.as_nanos()).unwrap_or(u64::MAX - 1);
        Duration::from_nanos(self.rng.below(nanos + 1))
    }
}

fn backlog_bytes(link: &Link, now: Duration, wire_free_at: Duration) -> u64 {
    match &link.rate {
        Some(rate) if now < wire_free_at => rate.bytes_between(now, wire_free_at),
        _ => 0,
    }
}

/// The UDP payload of an IPv4 packet of 65535 bytes.
const UDP_PAYLOAD_MAX: usize = 65_535 - HEADER_BYTES;

#[cfg(test)]
mod tests;
