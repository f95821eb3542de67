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
fn a_queue_without_a_rate_has_no_effect() {
    let mut bench = Bench::new(Link::new().queue_bytes(100));
    assert_eq!(bench.carry(MS, 972), arrives(MS));
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
fn fragments_each_have_a_header_and_take_the_wire_and_the_queue() {
    let link = Link::new().rate_bps(8_000_000).queue_bytes(4000).fragment_above(1500);
    let mut bench = Bench::new(link);
    assert_eq!(bench.carry(Duration::ZERO, 1472), arrives(1500 * US));
    // 1488 with the header of UDP leave as 1480 and 8 bytes, each behind a header of IP.
    assert_eq!(bench.carry(10 * MS, 1480), arrives(10 * MS + 1528 * US));
    assert_eq!(bench.carry(20 * MS, 4000), Verdict::QueueFull);
    let counts = bench.0.traffic(20 * MS);
    assert_eq!(counts.offered, Count { packets: 6, bytes: 1500 + 1528 + 4008 + 3 * 20 });
    assert_eq!(counts.queue_full.packets, 1);
    assert_eq!(bench.carry(30 * MS, 65_508), Verdict::TooBig { limit: 65_507 });
}

#[test]
fn a_datagram_is_lost_with_any_of_its_fragments_and_marked_with_any() {
    let carried = |link: Link| Bench::new(link.fragment_above(1500)).carry(MS, 4000);
    let lossy = |nth: u64| Link::new().loss(Loss::when(move |datagram| datagram.ordinal == nth));
    for nth in 1..=3 {
        assert_eq!(carried(lossy(nth)), Verdict::Lost);
    }
    assert_eq!(carried(lossy(4)), arrives(MS));
    assert_eq!(carried(Link::new().duplicate(1.0)), arrives(MS), "a second copy of a fragment is nothing");
    let verdicts = [Ecn::Ect0, Ecn::Ce, Ecn::Ect0].map(|ecn| Verdict::Arrives {
        at: MS,
        copy_at: None,
        is_held: false,
        ecn,
    });
    let whole = verdicts.into_iter().reduce(Verdict::joined).unwrap();
    assert!(matches!(whole, Verdict::Arrives { ecn: Ecn::Ce, .. }), "{whole:?}");
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
