//! Several writers over one bottleneck: those of a participant, which share a path, and those of several participants,
//! which do not know of each other.

use core::time::Duration;

use weir_netsim::{Link, LinkPair};
use weir_rtps::path::Path;
use weir_rtps::qos::Reliability;

use crate::harness::Sim;
use crate::links::{self, DATAGRAM_MAX, HEADERS, ways};

/// Writers and readers in pairs, all over the links between the first two.
struct Shared {
    sim: Sim,
    link: &'static str,
}

impl Shared {
    fn new(link: &'static str, seed: u64) -> Self {
        let mut sim = Sim::unrecorded(link, seed, Link::new());
        sim.set_steps_max(60_000_000);
        Self { sim, link }
    }

    /// Adds a writer of samples of `size` bytes every `gap`, and its reader at the end of `path`.
    fn add(&mut self, path: &Path, size: fn(u64) -> usize, gap: Duration, reliability: Reliability) {
        let sim = &mut self.sim;
        let index = sim.add_writer(|setup| {
            setup.config.reliability = reliability;
            (setup.samples, setup.size, setup.gap) = (u64::MAX, size, gap);
        });
        sim.add_reader(|setup| {
            setup.config.reliability = reliability;
            (setup.segment_max, setup.path) = (DATAGRAM_MAX, Some(path.clone()));
        });
        let (from, to) = (*sim.writers[index].address.ip(), *sim.readers[index].address.ip());
        if index == 0 {
            let [there, back] = ways(self.link);
            sim.network.set_link(from, to, there);
            sim.network.set_link(to, from, back);
        } else {
            let first = (*sim.writers[0].address.ip(), *sim.readers[0].address.ip());
            sim.network.share_link(from, to, first);
            sim.network.share_link(to, from, (first.1, first.0));
        }
        sim.connect(index, index);
    }

    /// Adds a saturated one.
    fn saturate(&mut self, path: &Path, size: fn(u64) -> usize) {
        self.add(path, size, Duration::from_micros(20), Reliability::Reliable);
    }

    fn taken(&self, index: usize) -> usize {
        self.sim.readers[index].taken(self.sim.writers[index].config.guid).len()
    }

    /// Runs for some time, and then so long that each sample taken counts. Returns the share of the link that each
    /// pair got, for samples of `size` bytes in one datagram.
    fn shares(&mut self, warm_up: Duration, time: Duration, size: usize) -> Vec<f64> {
        self.sim.run_for(warm_up);
        let before: Vec<_> = (0..self.sim.writers.len()).map(|index| self.taken(index)).collect();
        self.sim.run_for(time);
        let carried = rate(self.link) / 8.0 * time.as_secs_f64() / (size + HEADERS) as f64;
        before
            .iter()
            .enumerate()
            .map(|(index, before)| (self.taken(index) - before) as f64 / carried)
            .collect()
    }

    fn mean_queue(&mut self) -> Duration {
        let (from, to) = (*self.sim.writers[0].address.ip(), *self.sim.readers[0].address.ip());
        self.sim.network.traffic(from, to).queue.mean_wait()
    }
}

fn rate(link: &str) -> f64 {
    let pair: LinkPair = link.parse().expect("a preset");
    pair.down.first_rate_bps().expect("a preset has a rate") as f64
}

/// The mean queue that a link may have.
fn queue_max(link: &str) -> Duration {
    let pair: LinkPair = link.parse().expect("a preset");
    links::queue_max(pair.down.delay * 2)
}

/// 1 if all are equal, 1/n if one has everything (Jain, 1984).
fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    sum * sum / (shares.len() as f64 * shares.iter().map(|share| share * share).sum::<f64>())
}

#[test]
fn participants_share_a_bottleneck() {
    for (link, seconds) in [("lan100", 6), ("wifi", 10), ("lte", 30)] {
        for late in [0, 3] {
            let mut shared = Shared::new(link, 1);
            shared.saturate(&Path::new(), |_| 1024);
            shared.sim.run_for(Duration::from_secs(late));
            shared.saturate(&Path::new(), |_| 1024);
            let time = Duration::from_secs(seconds);
            let shares = shared.shares(time / 2, time, 1024);
            let sum: f64 = shares.iter().sum();
            let queue = shared.mean_queue();
            let shown = format!("{link}, {late} s late: {shares:?}, queue {queue:?}");
            assert!(sum > 0.94 && jain(&shares) > 0.95 && queue <= queue_max(link), "{shown}");
        }
    }
}

#[test]
fn the_writers_of_a_participant_are_as_one() {
    for (link, seconds) in [("lan100", 4), ("lte", 20)] {
        let mut shared = Shared::new(link, 1);
        let path = Path::new();
        (0..20).for_each(|_| shared.saturate(&path, |_| 1024));
        let time = Duration::from_secs(seconds);
        let shares = shared.shares(time / 2, time, 1024);
        let sum: f64 = shares.iter().sum();
        let queue = shared.mean_queue();
        let shown = format!("{link}: {shares:?}, queue {queue:?}");
        assert!(sum > 0.94 && jain(&shares) > 0.98 && queue <= queue_max(link), "{shown}");
    }
}

/// The shares of a link that a writer and a TCP connection get, the second of which begins later.
fn beside_tcp(rate_bps: u64, round_trip: Duration, buffer: f64, is_tcp_second: bool) -> [f64; 2] {
    let mut sim = Sim::unrecorded("tcp", 1, Link::new());
    sim.set_steps_max(60_000_000);
    sim.add_writer(|setup| {
        (setup.samples, setup.size, setup.gap) = (u64::MAX, |_| 1024, Duration::from_micros(20));
    });
    sim.add_reader(|setup| (setup.segment_max, setup.path) = (DATAGRAM_MAX, Some(Path::new())));
    let (from, to) = (*sim.writers[0].address.ip(), *sim.readers[0].address.ip());
    let queue = (rate_bps as f64 / 8.0 * round_trip.as_secs_f64() * buffer) as usize;
    let link = Link::new().delay(round_trip / 2).rate_bps(rate_bps).queue_bytes(queue);
    sim.network.set_link(from, to, link.clone());
    sim.network.set_link(to, from, link);
    let time = round_trip * 600;
    if is_tcp_second {
        sim.connect(0, 0);
        sim.run_for(time / 8);
    }
    let index = sim.add_connection();
    let [sender, receiver] = [sim.connections[index].sender, sim.connections[index].receiver];
    sim.network.share_link(*sender.ip(), *receiver.ip(), (from, to));
    sim.network.share_link(*receiver.ip(), *sender.ip(), (to, from));
    if !is_tcp_second {
        sim.run_for(time / 8);
        sim.connect(0, 0);
    }
    let guid = sim.writers[0].config.guid;
    let bytes = |sim: &Sim| {
        let samples = sim.readers[0].taken(guid).len() as u64;
        [samples * (1024 + HEADERS) as u64, sim.connections[index].arrived_bytes()]
    };
    sim.run_for(time / 4);
    let before = bytes(&sim);
    sim.run_for(time);
    let after = bytes(&sim);
    let carried = rate_bps as f64 / 8.0 * time.as_secs_f64();
    [0, 1].map(|at| (after[at] - before[at]) as f64 / carried)
}

#[test]
fn tcp_keeps_its_share_and_we_ours() {
    for (mbps, round_trip_ms) in [(100, 20), (20, 60)] {
        for buffer in [0.5, 1.0, 2.0, 4.0] {
            for is_tcp_second in [true, false] {
                let round_trip = Duration::from_millis(round_trip_ms);
                let [ours, tcp] = beside_tcp(mbps * 1_000_000, round_trip, buffer, is_tcp_second);
                let shown = format!("{mbps} Mbit/s, {round_trip:?}, {buffer}, {is_tcp_second}: {ours} {tcp}");
                assert!((0.25..0.75).contains(&tcp) && ours > 0.25 && ours + tcp > 0.9, "{shown}");
            }
        }
    }
}

#[test]
fn what_is_small_and_rare_does_not_wait_behind_bulk() {
    for (link, gap_us) in [("lan100", 2_500), ("lte", 12_500), ("wan", 1_250)] {
        let small_at = Duration::from_millis(10);
        let small = || {
            let mut shared = Shared::new(link, 1);
            let path = Path::new();
            shared.add(&path, |_| 1024, small_at, Reliability::Reliable);
            (shared, path)
        };
        let alone = p99_age(&mut small().0, small_at);
        for reliability in [Reliability::Reliable, Reliability::BestEffort] {
            let (mut shared, path) = small();
            shared.sim.run_for(Duration::from_secs(1));
            // Twice what the link carries.
            shared.add(&path, |_| 63_000, Duration::from_micros(gap_us), reliability);
            let began = shared.sim.now;
            let age = p99_age(&mut shared, small_at);
            let bits = shared.taken(1) as f64 * 63_000.0 * 8.0;
            let share = bits / shared.sim.now.since(began).as_secs_f64() / rate(link);
            let queue = shared.mean_queue();
            let shown = format!("{link} {reliability:?}: age {age:?}, alone {alone:?}, {share}, {queue:?}");
            assert!(age <= alone + queue_max(link) * 2, "{shown}");
            // A large best-effort sample is lost if one of its fragments is.
            let least = if reliability == Reliability::Reliable { 0.8 } else { 0.6 };
            assert!(share > least && queue <= queue_max(link), "{shown}");
        }
    }
}

/// The 99th percentile of the age at which the samples of the first writer arrive, within a millisecond.
fn p99_age(shared: &mut Shared, gap: Duration) -> Duration {
    let step = Duration::from_millis(1);
    shared.sim.run_for(Duration::from_secs(5));
    let mut taken = shared.taken(0);
    let mut ages = Vec::new();
    for _ in 0..20_000 {
        shared.sim.run_for(step);
        let now = shared.taken(0);
        let age = |number: usize| Duration::from_nanos(shared.sim.now.0).saturating_sub(gap * number as u32);
        ages.extend((taken..now).map(age));
        taken = now;
    }
    ages.sort_unstable();
    ages[ages.len() * 99 / 100]
}
