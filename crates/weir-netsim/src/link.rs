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
        self.mtu_bytes = Some(mtu_bytes);
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

    /// Returns what the link carried so far. `now` completes the time series.
    pub fn traffic(&mut self, now: Duration) -> Traffic {
        self.advance_series(now);
        self.traffic.clone()
    }

    /// Carries a datagram; sets `datagram.ordinal`.
    pub(crate) fn carry(&mut self, datagram: Datagram<'_>, ecn: Ecn) -> Verdict {
        self.carry_packet(datagram.bytes.len() + HEADER_BYTES, ecn, datagram)
    }

    fn carry_packet(&mut self, size: usize, ecn: Ecn, datagram: Datagram<'_>) -> Verdict {
        let now = datagram.sent_at;
        self.advance_series(now);
        let wait = self.wire_free_at.saturating_sub(now);
        let backlog_bytes = self.backlog_bytes(now);
        self.traffic.offered.add(size);
        self.traffic.queue.note(backlog_bytes, wait);
        self.traffic.series.offered(now, size);
        let limit = self
            .link
            .mtu_bytes
            .map_or(UDP_PAYLOAD_MAX, |mtu| mtu.saturating_sub(HEADER_BYTES).min(UDP_PAYLOAD_MAX));
        if size > limit + HEADER_BYTES {
            self.traffic.too_big.add(size);
            return Verdict::TooBig { limit };
        }
        if self.link.queue_bytes.is_some_and(|queue| backlog_bytes + size as u64 > queue as u64) {
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
mod tests {
    use super::*;
    use crate::traffic::{Bin, Count};

    struct Bench(LinkState);

    impl Bench {
        fn new(link: Link) -> Self {
            Self(LinkState::new(link, Rng::new(11)))
        }

        fn carry(&mut self, sent_at: Duration, len: usize) -> Verdict {
            let address = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 7400);
            let bytes = &vec![0; len];
            self.0.carry(Datagram { sent_at, ordinal: 0, from: address, to: address, bytes }, Ecn::NotEct)
        }

        fn arrivals(&mut self, count: usize, gap: Duration) -> Vec<(Duration, Option<Duration>, bool)> {
            (0..count)
                .map(|i| match self.carry(gap * u32::try_from(i).unwrap(), 100) {
                    Verdict::Arrives { at, copy_at, is_held, .. } => (at, copy_at, is_held),
                    other => panic!("{other:?}"),
                })
                .collect()
        }
    }

    fn arrives(at: Duration) -> Verdict {
        Verdict::Arrives { at, copy_at: None, is_held: false, ecn: Ecn::NotEct }
    }

    const MS: Duration = Duration::from_millis(1);
    const US: Duration = Duration::from_micros(1);

    #[test]
    fn a_new_link_carries_everything_at_once() {
        let mut bench = Bench::new(Link::new());
        assert_eq!(bench.carry(MS, 65_507), arrives(MS));
        assert_eq!(bench.carry(MS, 65_508), Verdict::TooBig { limit: 65_507 });
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
        assert_eq!(bench.carry(Duration::ZERO, 972), Verdict::QueueFull);
        assert_eq!(bench.carry(Duration::ZERO, 472), arrives(2 * MS + 500 * US), "a smaller one still fits");
        assert_eq!(bench.carry(MS, 972), arrives(3 * MS + 500 * US), "the queue drains at the link's rate");
    }

    #[test]
    fn a_lost_datagram_has_used_the_wire() {
        let mut bench = Bench::new(Link::new().rate_bps(8_000_000).loss(Loss::when(|d| d.ordinal == 1)));
        assert_eq!(bench.carry(Duration::ZERO, 972), Verdict::Lost);
        assert_eq!(bench.carry(Duration::ZERO, 972), arrives(2 * MS));
    }

    #[test]
    fn over_the_mtu_is_refused() {
        let mut bench = Bench::new(Link::new().mtu_bytes(1500));
        assert_eq!(bench.carry(MS, 1472), arrives(MS));
        assert_eq!(bench.carry(MS, 1473), Verdict::TooBig { limit: 1472 });
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
        let lost: Vec<bool> = (0..6).map(|_| bench.carry(MS, 1) == Verdict::Lost).collect();
        assert_eq!(lost, [false, true, true, true, false, true]);
    }

    #[test]
    fn a_rate_step_changes_the_rate_from_then_on() {
        let link = Link::new().rate_bps(8_000_000).rate_step(10 * MS, 800_000).rate_step(30 * MS, 8_000_000);
        let mut bench = Bench::new(link);
        assert_eq!(bench.carry(9 * MS, 972), arrives(10 * MS));
        assert_eq!(bench.carry(9 * MS, 972), arrives(20 * MS));
        assert_eq!(bench.carry(25 * MS, 972), arrives(30 * MS + 500 * US), "500 bytes at either rate");
        assert_eq!(bench.carry(40 * MS, 972), arrives(41 * MS));
    }

    #[test]
    fn a_delay_step_changes_the_delay_of_what_leaves_from_then_on() {
        let link = Link::new().rate_bps(8_000_000).delay(2 * MS);
        let mut bench = Bench::new(link.delay_step(10 * MS, 30 * MS).delay_step(50 * MS, 5 * MS));
        assert_eq!(bench.carry(8 * MS, 972), arrives(11 * MS));
        assert_eq!(bench.carry(9 * MS, 972), arrives(40 * MS), "it leaves at the time of the step");
        assert_eq!(bench.carry(48 * MS, 972), arrives(79 * MS));
        assert_eq!(bench.carry(50 * MS, 972), arrives(79 * MS), "order is kept");
        assert_eq!(bench.carry(80 * MS, 972), arrives(86 * MS));
    }

    #[test]
    fn a_queue_drains_at_the_rates_that_it_meets() {
        let link = Link::new().rate_bps(8_000_000).rate_step(2 * MS, 800_000).queue_bytes(3000);
        let mut bench = Bench::new(link);
        for at in [MS, 2 * MS, 12 * MS] {
            assert_eq!(bench.carry(Duration::ZERO, 972), arrives(at));
        }
        assert_eq!(bench.carry(2 * MS, 972), arrives(22 * MS));
        assert_eq!(bench.carry(2 * MS, 1972), Verdict::QueueFull, "2000 bytes are left, and it has 2000");
        assert_eq!(bench.carry(12 * MS, 1972), arrives(42 * MS), "1000 are left");
    }

    #[test]
    fn a_packet_is_judged_by_its_size_alone() {
        let link = Link::new().rate_bps(8_000_000).mtu_bytes(1500).loss(Loss::every_nth(3)).delay(MS);
        let mut state = LinkState::new(link, Rng::new(1));
        assert_eq!(state.offer(MS, 1000), arrives(3 * MS));
        assert_eq!(state.offer(MS, 1501), Verdict::TooBig { limit: 1472 });
        assert_eq!(state.offer(MS, 500), arrives(3 * MS + 500 * US));
        assert_eq!(state.offer(MS, 1500), Verdict::Lost);
    }

    /// A link with everything that a link can have.
    fn stormy() -> Link {
        Link::new()
            .delay(MS)
            .jitter(300 * US)
            .rate_bps(50_000_000)
            .rate_step(50 * MS, 5_000_000)
            .queue_bytes(20_000)
            .mtu_bytes(1500)
            .loss(Loss::random(0.02))
            .loss(Loss::burst(0.01, 0.2))
            .duplicate(0.05)
            .reorder(0.05, 500 * US)
            .series(10 * MS)
    }

    #[test]
    fn every_packet_and_byte_is_accounted_for() {
        let mut state = LinkState::new(stormy(), Rng::new(3));
        for i in 0..1000_u32 {
            state.offer(i * 100 * US, 40 + (i as usize * 37) % 1500);
        }
        let traffic = state.traffic(Duration::from_secs(1));
        let Traffic { offered, delivered, queue_full, lost, duplicated, held_back, too_big, .. } = traffic;
        for field in [|it: Count| it.packets, |it: Count| it.bytes] {
            let ended = [delivered, queue_full, lost, too_big].into_iter().map(field).sum::<u64>();
            assert_eq!(field(offered) + field(duplicated), ended, "{traffic:?}");
        }
        for count in [queue_full, lost, duplicated, held_back, too_big] {
            assert!(count.packets > 10, "{traffic:?}");
        }
        let sum = |field: fn(&Bin) -> u64| traffic.series.bins().iter().map(field).sum::<u64>();
        assert_eq!(sum(|bin| bin.offered_bytes), offered.bytes);
        assert_eq!(sum(|bin| bin.delivered_bytes), delivered.bytes);
        // 20000 bytes at 5 Mbit/s.
        assert!(traffic.queue.max_bytes() <= 20_000 && traffic.queue.max_wait() <= 32 * MS, "{traffic:?}");
        assert!(traffic.series.bins().iter().all(|bin| bin.queue_bytes <= 20_000));
        assert!(traffic.series.bins()[9].queue_bytes > 15_000, "{traffic:?}");
    }

    #[test]
    fn what_finds_a_queue_is_marked_and_counted() {
        let link = Link::new().rate_bps(8_000_000).queue_bytes(10_000).marking(Marking::Wait(2 * MS));
        let mut state = LinkState::new(link, Rng::new(1));
        let mut ecn = |ecn| match state.offer_with(Duration::ZERO, 1000, ecn) {
            Verdict::Arrives { ecn, .. } => Some(ecn),
            _ => None,
        };
        let fields = [Ecn::Ect0, Ecn::Ect0, Ecn::Ect0, Ecn::NotEct, Ecn::Ect0].map(&mut ecn);
        assert_eq!(fields, [Ecn::Ect0, Ecn::Ect0, Ecn::Ce, Ecn::NotEct, Ecn::Ce].map(Some));
        assert_eq!((0..10).filter(|_| ecn(Ecn::Ect0).is_none()).count(), 5, "a full queue drops");
        assert_eq!(state.traffic(MS).marked, Count { packets: 7, bytes: 7000 });
    }

    #[test]
    fn the_queue_is_what_packets_find() {
        let mut state = LinkState::new(Link::new().rate_bps(8_000_000), Rng::new(1));
        for _ in 0..4 {
            state.offer(Duration::ZERO, 1000);
        }
        let queue = state.traffic(MS).queue;
        assert_eq!((queue.mean_bytes(), queue.max_bytes()), (1500.0, 3000));
        assert_eq!((queue.mean_wait(), queue.max_wait()), (3 * MS / 2, 3 * MS));
    }

    #[test]
    fn the_same_seed_gives_the_same_packets_and_another_one_does_not() {
        let verdicts = |seed| {
            let mut state = LinkState::new(stormy(), Rng::new(seed));
            (0..500_u32).map(|i| state.offer(i * 200 * US, 1000)).collect::<Vec<_>>()
        };
        assert_eq!(verdicts(7), verdicts(7));
        assert_ne!(verdicts(7), verdicts(8));
    }

    #[test]
    fn a_saturated_link_delivers_its_rate() {
        for rate_bps in [64_000, 5_000_000, 1_000_000_000, 10_000_000_000_u64] {
            let link = Link::new().rate_bps(rate_bps).queue_bytes(256 * 1024).delay(MS);
            let mut state = LinkState::new(link, Rng::new(1));
            // Twice the rate, for 10000 packets.
            let gap = Duration::from_nanos(6_000 * 1_000_000_000 / rate_bps);
            let arrivals = (0..10_000_u32).filter_map(|i| match state.offer(gap * i, 1500) {
                Verdict::Arrives { at, .. } => Some(at),
                _ => None,
            });
            let arrivals: Vec<Duration> = arrivals.collect();
            let bits = (arrivals.len() - 1) as f64 * 12_000.0;
            let reached = bits / (arrivals[arrivals.len() - 1] - arrivals[0]).as_secs_f64();
            assert!((reached / rate_bps as f64 - 1.0).abs() < 1e-3, "{reached} of {rate_bps}");
        }
    }
}
