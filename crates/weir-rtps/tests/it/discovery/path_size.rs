//! How long datagrams may be on paths with routers that take less than the first hop.

use core::net::{Ipv4Addr, SocketAddrV4};
use core::time::Duration;
use std::cell::Cell;
use std::rc::Rc;

use weir_rtps::discovery_event::DiscoveryEvent;
use weir_rtps::outbox::Outbox;
use weir_rtps::qos::Qos;
use weir_wire::{Message, Submessage};

use super::world::{Datagram, METATRAFFIC_PORT, World, config};
use super::{matched_pair, ms};

/// An MTU of 1500, less the headers of IP and UDP.
const ETHERNET: u16 = 1472;
/// An MTU of 1280.
const NARROW: u16 = 1252;
const BASE: u16 = 1200;

/// A matched pair with a path between them that silently drops what is too long.
struct Hole {
    world: World,
    /// The longest datagram that passes.
    limit: Rc<Cell<u16>>,
    /// Per cent of datagrams lost in either direction.
    loss: Rc<Cell<u64>>,
    /// Lengths of the probes sent.
    probes: Vec<usize>,
    /// Sizes reported.
    sizes: Vec<u16>,
}

fn host() -> Ipv4Addr {
    *config(1).metatraffic_unicast[0].ip()
}

impl Hole {
    fn new(limit: u16) -> Self {
        let (mut world, _, _) = matched_pair();
        let (limit, loss) = (Rc::new(Cell::new(limit)), Rc::new(Cell::new(0)));
        let (its_limit, its_loss) = (Rc::clone(&limit), Rc::clone(&loss));
        let mut random = 1_u64;
        world.rewrite = Box::new(move |datagram: Datagram| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let is_lost = (random >> 33) % 100 < its_loss.get();
            let passes = datagram.bytes.len() <= usize::from(its_limit.get()) && !is_lost;
            if passes { vec![datagram] } else { Vec::new() }
        });
        let (probes, sizes) = (Vec::new(), Vec::new());
        Self { world, limit, loss, probes, sizes }
    }

    fn watch(&mut self, most: u16) -> u16 {
        let now = self.world.now;
        self.world.nodes[0].core.watch_path_size(now, host(), most)
    }

    fn suspect(&mut self) {
        let now = self.world.now;
        self.world.nodes[0].core.suspect_path_size(now, host());
    }

    fn run_for(&mut self, period: Duration) {
        let end = self.world.now + period;
        while self.world.now < end {
            let left = end.since(self.world.now);
            self.world.run_for(ms(1).min(left));
            let mut out = Outbox::new();
            self.world.nodes[0].core.poll_questions(&mut out);
            let mut datagrams = Vec::new();
            out.for_each_datagram(|to, bytes| datagrams.push((to[0], bytes.to_vec())));
            for (to, bytes) in datagrams {
                self.probes.push(bytes.len());
                // From a socket of its own: answers go to the metatraffic address.
                let from = SocketAddrV4::new(*config(0).metatraffic_unicast[0].ip(), 50_000);
                self.world.send(Datagram { from, to, bytes });
            }
        }
        let sizes = self.world.events(0).into_iter().filter_map(|event| match event {
            DiscoveryEvent::PathSizeChanged { size, host: there } if there == host() => Some(size),
            _ => None,
        });
        self.sizes.extend(sizes);
    }

    fn is_found(&self, limit: u16) -> bool {
        self.sizes.last().is_some_and(|size| (limit - 11..=limit).contains(size))
    }
}

#[test]
fn one_probe_verifies_what_the_first_hop_takes() {
    for most in [ETHERNET, ETHERNET + 1, 8_972] {
        let mut hole = Hole::new(u16::MAX);
        assert_eq!(hole.watch(most), most);
        hole.run_for(Duration::from_secs(10));
        assert_eq!(hole.watch(most), most);
        hole.run_for(Duration::from_secs(10));
        assert_eq!(hole.probes, [usize::from(most / 4 * 4)]);
        assert!(hole.sizes.is_empty());
    }
}

#[test]
fn a_probe_is_a_heartbeat_that_any_engine_answers() {
    let mut hole = Hole::new(u16::MAX);
    hole.watch(ETHERNET);
    hole.run_for(Duration::from_secs(1));
    let is_probe = |it: &&Datagram| it.to.port() == METATRAFFIC_PORT && it.bytes.len() == ETHERNET.into();
    let probe = hole.world.sent.iter().find(is_probe).unwrap();
    let kinds: Vec<_> = Message::parse(&probe.bytes).unwrap().submessages().map(Result::unwrap).collect();
    let [Submessage::InfoDestination(_), Submessage::Heartbeat(heartbeat), Submessage::Pad] = kinds[..]
    else {
        panic!("{kinds:?}");
    };
    assert!(!heartbeat.is_final);
}

#[test]
fn a_black_hole_is_found_and_the_size_falls_to_the_base_and_then_rises_to_what_passes() {
    for (most, limit) in [(ETHERNET, NARROW), (ETHERNET, 1_464), (8_972, ETHERNET), (8_972, 1_204)] {
        let mut hole = Hole::new(limit);
        hole.watch(most);
        hole.run_for(Duration::from_secs(2));
        assert_eq!(hole.sizes.first(), Some(&BASE), "{:?}", hole.probes);
        hole.run_for(Duration::from_secs(20));
        assert!(hole.is_found(limit) || limit < BASE + 12, "{limit}: {:?}", hole.sizes);
        assert!(hole.sizes.len() <= 2 && hole.probes.len() < 100, "{:?}", hole.probes);
        // Another reader there is matched, and the kernel knows by now, or not.
        let found = hole.sizes[hole.sizes.len() - 1];
        assert_eq!((hole.watch(most), hole.watch(limit)), (found, found));
    }
}

#[test]
fn a_wider_path_is_noticed_after_some_minutes() {
    let mut hole = Hole::new(NARROW);
    hole.watch(ETHERNET);
    hole.run_for(Duration::from_secs(20));
    assert!(hole.is_found(NARROW));
    hole.limit.set(ETHERNET);
    hole.run_for(Duration::from_secs(560));
    assert!(hole.is_found(NARROW));
    hole.run_for(Duration::from_secs(60));
    assert_eq!(hole.sizes.last(), Some(&ETHERNET));
}

#[test]
fn a_path_that_becomes_narrower_is_noticed_soon_after_losses_and_without_them_within_a_minute() {
    for has_losses in [true, false] {
        let mut hole = Hole::new(u16::MAX);
        hole.watch(ETHERNET);
        hole.run_for(Duration::from_secs(5));
        hole.limit.set(NARROW);
        if has_losses {
            hole.suspect();
        }
        hole.run_for(Duration::from_secs(if has_losses { 2 } else { 40 }));
        assert_eq!(hole.sizes.first(), Some(&BASE));
        hole.run_for(Duration::from_secs(10));
        assert!(hole.is_found(NARROW), "{:?}", hole.sizes);
        assert_eq!(hole.sizes.len(), 2);
    }
}

#[test]
fn random_losses_are_no_black_hole() {
    for loss in [1, 10, 30] {
        let mut hole = Hole::new(u16::MAX);
        hole.watch(ETHERNET);
        hole.run_for(Duration::from_secs(1));
        hole.loss.set(loss);
        for _ in 0..200 {
            hole.suspect();
            hole.run_for(Duration::from_secs(1));
        }
        assert!(hole.sizes.is_empty(), "{loss} %: {:?}", hole.sizes);
    }
}

#[test]
fn a_black_hole_with_random_losses_is_found() {
    for loss in [10, 30] {
        let mut hole = Hole::new(NARROW);
        hole.loss.set(loss);
        hole.watch(ETHERNET);
        hole.run_for(Duration::from_secs(30));
        assert_eq!(hole.sizes.first(), Some(&BASE), "{loss} %");
    }
}

#[test]
fn what_a_router_reports_is_used_at_once_but_not_below_the_base() {
    for (reported, used) in [(NARROW, NARROW), (68, BASE), (ETHERNET, ETHERNET), (9_000, ETHERNET)] {
        let mut hole = Hole::new(used);
        hole.watch(ETHERNET);
        hole.run_for(ms(100));
        let now = hole.world.now;
        hole.world.nodes[0].core.path_size_reported(now, host(), reported);
        hole.run_for(Duration::ZERO);
        hole.run_for(Duration::from_secs(30));
        let changes = if used < ETHERNET { vec![used] } else { Vec::new() };
        assert_eq!(hole.sizes, changes, "{reported}");
        assert_eq!(hole.watch(ETHERNET), used);
    }
}

#[test]
fn answers_to_other_heartbeats_confirm_nothing() {
    let mut hole = Hole::new(NARROW);
    hole.watch(ETHERNET);
    for key in 10..60 {
        hole.world.add_writer(0, key, "Other", Qos::for_writer());
        hole.run_for(ms(u64::from(key) * 3));
    }
    hole.run_for(Duration::from_secs(10));
    assert!(hole.is_found(NARROW), "{:?}", hole.sizes);
}

#[test]
fn a_host_that_does_not_answer_is_sent_few_probes() {
    let mut hole = Hole::new(0);
    hole.watch(ETHERNET);
    hole.run_for(Duration::from_secs(60));
    assert!(hole.sizes.is_empty() && hole.probes.len() <= 40, "{:?}", hole.probes);
    hole.run_for(Duration::from_secs(3600));
    // It is lost by now.
    let before = hole.probes.len();
    hole.run_for(Duration::from_secs(600));
    assert_eq!(hole.probes.len(), before);
    assert_eq!(hole.watch(ETHERNET), ETHERNET);
}

/// Otherwise, a participant that moves often would leave an entry for each of its addresses.
#[test]
fn a_host_that_a_participant_has_left_is_forgotten() {
    let mut hole = Hole::new(ETHERNET);
    hole.watch(ETHERNET);
    hole.run_for(ms(100));
    hole.world.readdress(1, Ipv4Addr::new(10, 0, 9, 9));
    hole.run_for(Duration::from_secs(60));
    let now = hole.world.now;
    hole.world.nodes[0].core.path_size_reported(now, host(), NARROW);
    hole.run_for(ms(1));
    assert_eq!(hole.sizes, [0; 0], "nothing is known about it that could change");
}
