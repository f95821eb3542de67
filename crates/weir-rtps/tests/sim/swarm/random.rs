//! Random configurations of participants that lose each other: losses in one direction, pauses longer
//! than a lease, goodbyes, restarts, new addresses, forged packets.

use core::time::Duration;

use weir_netsim::Rng;
use weir_rtps::qos::{Durability, History, Qos, Reliability};

use super::fragmenter::Fragmenter;
use super::participants::Swarm;
use crate::harness::seeds;

/// Seeds of a normal test run.
const SEEDS: u64 = 200;

impl Swarm {
    /// Random participants.
    fn random(seed: u64, rng: &mut Rng) -> Self {
        let delay = Duration::from_nanos(20_000 + rng.below(20_000_000));
        let losses = [0.0, 0.0, 0.02, 0.1][rng.below(4) as usize];
        let lease = Duration::from_secs([3, 10, 20][rng.below(3) as usize]);
        let mut swarm = Self::new(seed, (delay, losses), lease, (qos(rng), qos(rng)));
        for number in 1..=2 + rng.below(2) as u8 {
            // The first one writes, possibly others too.
            let writes = number == 1 || rng.chance(0.3);
            let fragmenter = rng.chance(0.2).then(Fragmenter::default);
            let buffer = [100_000, 212_992, 8 << 20][rng.below(3) as usize];
            let gap = Duration::from_millis(20 + rng.below(200));
            swarm.add(number, writes.then_some(gap), fragmenter, buffer);
        }
        swarm
    }
}

/// Policies of all writers or all readers.
fn qos(rng: &mut Rng) -> Qos {
    let reliability = if rng.chance(0.85) { Reliability::Reliable } else { Reliability::BestEffort };
    let durability = if rng.chance(0.6) { Durability::TransientLocal } else { Durability::Volatile };
    let history =
        if rng.chance(0.7) { History::KeepAll } else { History::KeepLast(1 + rng.below(10) as u32) };
    Qos { reliability, durability, history, ..Qos::for_reader() }
}

fn run(seed: u64) {
    let mut rng = Rng::new(seed).fork(2);
    let mut swarm = Swarm::random(seed, &mut rng);
    swarm.run_for(Duration::from_millis(1 + rng.below(10_000)));
    for _ in 0..=rng.below(4) {
        swarm.disturb(&mut rng);
    }
    swarm.end_well();
}

#[test]
fn participants_that_lost_each_other_go_on_where_they_were() {
    let wanted = std::env::var("WEIR_SIM_SEEDS").ok();
    let count = wanted.map_or(SEEDS, |count| count.parse().expect("WEIR_SIM_SEEDS is a number"));
    seeds(count).into_iter().for_each(run);
}
