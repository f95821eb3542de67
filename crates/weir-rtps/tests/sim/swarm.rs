//! Random configurations: each seed has another network, other endpoints, other faults.
//!
//! There are two swarms: of cores, here, and of complete participants. Both check that samples
//! arrive once and in order, and that then there is silence. To know that the second one would find
//! a defect, defects that Weir once had were put back by hand, each alone:
//!
//! | defect | first seed | what is seen |
//! |---|---|---|
//! | the writer ignores requests for what was acknowledged | 1 | requests without end |
//! | the writer keeps an acknowledgement that was taken back | 100 | samples count as acknowledged |
//! | the reader forgets what it read of a writer that is gone | 17 | samples delivered twice |
//! | fragments of announcements are ignored | 2 | a reader gets nothing |
//! | every change of a match is an event | 17 | 200 events by one datagram |
//! | claims from another host are believed at once | 64 | a peer is cut off |
//! | a reader with numbers of the future is not introduced | 33 | a writer is held up |
//!
//! Requests to a silent writer that go on every half second were found by seed 107, by what reached a bystander. Now
//! nothing reaches it before it has answered, so 1000 seeds do not find that;
//! `a_silent_writer_is_asked_ever_more_rarely_however_busy_the_reader_is` tests it.
//!
//! `WEIR_SIM_SEED=n` shows how each run went on.

mod acknowledged;
mod faults;
mod forgeries;
mod fragmenter;
mod limits;
mod participants;
mod random;
mod sequences;

use core::time::Duration;

use weir_netsim::{Link, Loss, Rng};
use weir_rtps::qos::{Durability, History, Reliability};

use crate::harness::{Sim, seeds};

/// Seeds of a normal test run.
const SEEDS: u64 = 60;

fn link(rng: &mut Rng) -> Link {
    let delay = Duration::from_nanos(1_000 + rng.below(2_000_000));
    let share = [0.0, 0.0, 0.01, 0.1, 0.3][rng.below(5) as usize];
    let loss = if rng.chance(0.5) { Loss::random(share) } else { Loss::burst(share / 4.0, 0.3) };
    let mut link = Link::new().delay(delay).loss(loss);
    if rng.chance(0.5) {
        link = link.jitter(Duration::from_nanos(rng.below(1_000_000)));
    }
    if rng.chance(0.4) {
        link = link.reorder(rng.fraction() / 4.0, Duration::from_nanos(rng.below(3_000_000)));
    }
    if rng.chance(0.4) {
        link = link.duplicate(rng.fraction() / 2.0);
    }
    if rng.chance(0.3) {
        link = link
            .rate_bps(10_000_000 + rng.below(1_000_000_000))
            .queue_bytes(70_000 + rng.below(500_000) as usize);
    }
    link
}

fn history(rng: &mut Rng) -> History {
    if rng.chance(0.6) { History::KeepAll } else { History::KeepLast(1 + rng.below(40) as u32) }
}

fn reliability(rng: &mut Rng) -> Reliability {
    if rng.chance(0.8) { Reliability::Reliable } else { Reliability::BestEffort }
}

fn populate(sim: &mut Sim, rng: &mut Rng) {
    for _ in 0..=rng.below(3) {
        sim.add_writer(|setup| {
            setup.samples = 1 + rng.below(300);
            setup.gap = Duration::from_nanos([100, 1_000, 50_000, 3_000_000][rng.below(4) as usize]);
            setup.config.reliability = reliability(rng);
            setup.config.history = history(rng);
            if rng.chance(0.3) {
                setup.config.durability = Durability::TransientLocal;
            }
            if rng.chance(0.3) {
                setup.coalesce();
            }
            setup.size = [
                |_| 32_usize,
                |n| 12 + (n * 37 % 400) as usize,
                |_| 8192,
                |n| if n % 10 == 0 { 60_000 } else { 100 },
            ][rng.below(4) as usize];
        });
    }
    for _ in 0..=rng.below(3) {
        sim.add_reader(|setup| {
            setup.config.reliability = reliability(rng);
            setup.config.history = history(rng);
            setup.wants_history = rng.chance(0.3);
            setup.receive_buffer = [100_000, 212_992, 8 << 20][rng.below(3) as usize];
            setup.announces_buffer = rng.chance(0.7);
            if rng.chance(0.3) {
                setup.config.max_samples = Some(1 + rng.below(50) as u32);
            }
        });
    }
}

/// All hosts meet, some late; some may be cut off or stop taking for a while. Then all samples must
/// be delivered.
fn run(seed: u64) {
    let mut rng = Rng::new(seed).fork(1);
    let mut sim = Sim::new("swarm", seed, link(&mut rng));
    populate(&mut sim, &mut rng);
    for writer in 0..sim.writers.len() {
        for reader in 0..sim.readers.len() {
            if rng.chance(0.3) {
                sim.run_for(Duration::from_nanos(rng.below(2_000_000)));
            }
            sim.connect(writer, reader);
        }
    }
    if rng.chance(0.4) {
        let writer = *sim.writers[rng.below(sim.writers.len() as u64) as usize].address.ip();
        let reader = *sim.readers[rng.below(sim.readers.len() as u64) as usize].address.ip();
        sim.run_for(Duration::from_nanos(rng.below(1_000_000)));
        sim.network.partition().cut(writer, reader);
        sim.run_for(Duration::from_nanos(rng.below(3_000_000_000)));
        sim.network.partition().heal();
    }
    if rng.chance(0.3) {
        let reader = rng.below(sim.readers.len() as u64) as usize;
        sim.readers[reader].is_taking = false;
        sim.run_for(Duration::from_nanos(rng.below(300_000_000)));
        sim.readers[reader].is_taking = true;
        sim.wake_reader(reader);
    }
    sim.run_to_the_end();
}

#[test]
fn all_ends_well_whatever_the_network_does() {
    let wanted = std::env::var("WEIR_SIM_SEEDS").ok();
    let count = wanted.map_or(SEEDS, |count| count.parse().expect("WEIR_SIM_SEEDS is a number"));
    seeds(count).into_iter().for_each(run);
}
