//! One direction between two hosts: delay, jitter, rate, queue, MTU, loss, duplication and
//! reordering.
//!
//! A datagram first waits in the queue until the previous ones were transmitted at the link's rate;
//! a full queue drops the new one. It may then be lost, held back or duplicated, and arrives after
//! the delay. Jitter alone never reorders: only datagrams held back by [`Link::reorder`] are
//! overtaken.

use core::time::Duration;

use crate::loss::{Datagram, Loss, LossState};
use crate::rng::Rng;

/// Size of the IPv4 and UDP headers of each datagram, which count against MTU, rate and queue.
pub const HEADER_BYTES: usize = 28;

/// The properties of a link; a template from which each direction between two hosts gets its own
/// state.
///
/// A new link has no delay, limits or faults. Every link refuses datagrams over 65507 bytes, as UDP
/// cannot carry them.
#[derive(Debug, Clone, Default)]
pub struct Link {
    delay: Duration,
    jitter: Duration,
    rate_bps: Option<u64>,
    queue_bytes: Option<usize>,
    mtu_bytes: Option<usize>,
    losses: Vec<Loss>,
    duplicate: f64,
    reorder: f64,
    hold: Duration,
}

impl Link {
    /// Creates a link without delay, limits and faults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the propagation delay: from the last bit leaving to its arrival.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
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
        self.rate_bps = (rate_bps != 0).then_some(rate_bps);
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
        self.mtu_bytes = Some(mtu_bytes);
        self
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
}

/// The state of a [`Link`] between two hosts.
#[derive(Debug)]
pub(crate) struct LinkState {
    link: Link,
    losses: Vec<LossState>,
    rng: Rng,
    count: u64,
    wire_free_at: Duration,
    last_arrival: Duration,
}

/// The result of giving a datagram to a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transit {
    TooBig { limit: usize },
    QueueFull,
    Lost,
    Arrives { at: Duration, copy_at: Option<Duration>, is_held: bool },
}

impl LinkState {
    pub(crate) fn new(link: Link, rng: Rng) -> Self {
        let losses = link.losses.iter().cloned().map(LossState::new).collect();
        Self { link, losses, rng, count: 0, wire_free_at: Duration::ZERO, last_arrival: Duration::ZERO }
    }

    /// Carries a datagram; sets `datagram.ordinal`.
    pub(crate) fn carry(&mut self, mut datagram: Datagram<'_>) -> Transit {
        let limit = self
            .link
            .mtu_bytes
            .map_or(UDP_PAYLOAD_MAX, |mtu| mtu.saturating_sub(HEADER_BYTES).min(UDP_PAYLOAD_MAX));
        if datagram.bytes.len() > limit {
            return Transit::TooBig { limit };
        }
        let now = datagram.sent_at;
        let size = datagram.bytes.len() + HEADER_BYTES;
        if self.link.queue_bytes.is_some_and(|queue| self.backlog_bytes(now) + size > queue) {
            return Transit::QueueFull;
        }
        let left_at = now.max(self.wire_free_at) + self.time_on_wire(size);
        self.wire_free_at = left_at;
        self.count += 1;
        datagram.ordinal = self.count;
        // Every model sees every datagram, so that the models are independent.
        let mut is_lost = false;
        for loss in &mut self.losses {
            is_lost |= loss.loses(&datagram, &mut self.rng);
        }
        if is_lost {
            return Transit::Lost;
        }
        let in_order = (left_at + self.link.delay + self.draw_jitter()).max(self.last_arrival);
        let is_held = self.rng.chance(self.link.reorder);
        let at = if is_held {
            in_order + self.link.hold
        } else {
            self.last_arrival = in_order;
            in_order
        };
        let copy_at = if self.rng.chance(self.link.duplicate) { Some(at + self.draw_jitter()) } else { None };
        Transit::Arrives { at, copy_at, is_held }
    }

    /// Bytes still queued or being transmitted.
    fn backlog_bytes(&self, now: Duration) -> usize {
        let Some(rate_bps) = self.link.rate_bps else { return 0 };
        let bits = self.wire_free_at.saturating_sub(now).as_nanos() * u128::from(rate_bps);
        usize::try_from(bits.div_ceil(8 * NANOS_PER_SECOND)).unwrap_or(usize::MAX)
    }

    fn time_on_wire(&self, size: usize) -> Duration {
        let Some(rate_bps) = self.link.rate_bps else { return Duration::ZERO };
        let nanos = (size as u128 * 8 * NANOS_PER_SECOND).div_ceil(u128::from(rate_bps));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    fn draw_jitter(&mut self) -> Duration {
        if self.link.jitter.is_zero() {
            return Duration::ZERO;
        }
        let nanos = u64::try_from(self.link.jitter.as_nanos()).unwrap_or(u64::MAX - 1);
        Duration::from_nanos(self.rng.below(nanos + 1))
    }
}

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// The UDP payload of an IPv4 packet of 65535 bytes.
const UDP_PAYLOAD_MAX: usize = 65_535 - HEADER_BYTES;

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4};

    use super::*;

    struct Bench(LinkState);

    impl Bench {
        fn new(link: Link) -> Self {
            Self(LinkState::new(link, Rng::new(11)))
        }

        fn carry(&mut self, sent_at: Duration, len: usize) -> Transit {
            let address = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 7400);
            self.0.carry(Datagram { sent_at, ordinal: 0, from: address, to: address, bytes: &vec![0; len] })
        }

        fn arrivals(&mut self, count: usize, gap: Duration) -> Vec<(Duration, Option<Duration>, bool)> {
            (0..count)
                .map(|i| match self.carry(gap * u32::try_from(i).unwrap(), 100) {
                    Transit::Arrives { at, copy_at, is_held } => (at, copy_at, is_held),
                    other => panic!("{other:?}"),
                })
                .collect()
        }
    }

    fn arrives(at: Duration) -> Transit {
        Transit::Arrives { at, copy_at: None, is_held: false }
    }

    const MS: Duration = Duration::from_millis(1);
    const US: Duration = Duration::from_micros(1);

    #[test]
    fn a_new_link_carries_everything_at_once() {
        let mut bench = Bench::new(Link::new());
        assert_eq!(bench.carry(MS, 65_507), arrives(MS));
        assert_eq!(bench.carry(MS, 65_508), Transit::TooBig { limit: 65_507 });
    }

    #[test]
    fn the_rate_spaces_datagrams_and_counts_headers() {
        // 972 + 28 bytes at 8 Mbit/s take one millisecond.
        let mut bench = Bench::new(Link::new().rate_bps(8_000_000).delay(5 * MS));
        assert_eq!(bench.carry(Duration::ZERO, 972), arrives(6 * MS));
        assert_eq!(bench.carry(Duration::ZERO, 972), arrives(7 * MS));
        assert_eq!(bench.carry(10 * MS, 972), arrives(16 * MS), "an idle link owes nothing");
    }

    #[test]
    fn a_full_queue_drops_the_newcomer() {
        let mut bench = Bench::new(Link::new().rate_bps(8_000_000).queue_bytes(2500));
        assert_eq!(bench.carry(Duration::ZERO, 972), arrives(MS));
        assert_eq!(bench.carry(Duration::ZERO, 972), arrives(2 * MS));
        assert_eq!(bench.carry(Duration::ZERO, 972), Transit::QueueFull);
        assert_eq!(bench.carry(Duration::ZERO, 472), arrives(2 * MS + 500 * US), "a smaller one still fits");
        assert_eq!(bench.carry(MS, 972), arrives(3 * MS + 500 * US), "the queue drains at the link's rate");
    }

    #[test]
    fn a_lost_datagram_has_used_the_wire() {
        let mut bench = Bench::new(Link::new().rate_bps(8_000_000).loss(Loss::when(|d| d.ordinal == 1)));
        assert_eq!(bench.carry(Duration::ZERO, 972), Transit::Lost);
        assert_eq!(bench.carry(Duration::ZERO, 972), arrives(2 * MS));
    }

    #[test]
    fn over_the_mtu_is_refused() {
        let mut bench = Bench::new(Link::new().mtu_bytes(1500));
        assert_eq!(bench.carry(MS, 1472), arrives(MS));
        assert_eq!(bench.carry(MS, 1473), Transit::TooBig { limit: 1472 });
    }

    #[test]
    fn jitter_spreads_but_keeps_order() {
        let mut bench = Bench::new(Link::new().delay(MS).jitter(MS));
        let all = bench.arrivals(1000, 10 * US);
        assert!(all.windows(2).all(|pair| pair[0].0 <= pair[1].0));
        let first = Bench::new(Link::new().delay(MS).jitter(MS)).arrivals(1, US)[0].0;
        assert!((MS..=2 * MS).contains(&first));
        let sparse = bench.arrivals(1, Duration::ZERO)[0].0;
        assert!(sparse >= all[999].0);
    }

    #[test]
    fn what_is_held_back_is_overtaken() {
        let mut bench = Bench::new(Link::new().delay(MS).reorder(0.1, 50 * US));
        let all = bench.arrivals(1000, 10 * US);
        let held = all.iter().filter(|arrival| arrival.2).count();
        assert!((70..130).contains(&held), "{held}");
        let overtaken = all.windows(2).filter(|pair| pair[0].0 > pair[1].0).count();
        assert!((held / 2..=held).contains(&overtaken), "{overtaken} of {held}");
    }

    #[test]
    fn duplicates_follow_the_original() {
        let mut bench = Bench::new(Link::new().delay(MS).jitter(100 * US).duplicate(0.2));
        let all = bench.arrivals(1000, 10 * US);
        let copies: Vec<_> = all.iter().filter_map(|(at, copy, _)| copy.map(|copy| (*at, copy))).collect();
        assert!((150..250).contains(&copies.len()), "{}", copies.len());
        assert!(copies.iter().all(|(at, copy)| copy >= at));
    }

    #[test]
    fn several_losses_each_take_their_share() {
        let mut bench = Bench::new(Link::new().loss(Loss::every_nth(2)).loss(Loss::every_nth(3)));
        let lost: Vec<bool> = (0..6).map(|_| bench.carry(MS, 1) == Transit::Lost).collect();
        assert_eq!(lost, [false, true, true, true, false, true]);
    }
}
