//! Participants that live through many cycles of faults: losses in one direction, pauses longer than
//! a lease, goodbyes, restarts, new addresses, forged packets.
//!
//! After each cycle nothing that was promised is lost, and in the end the memory of the process is
//! flat. It is counted over the whole process, so this is a test binary of its own. The network and
//! the time are simulated: a minute of computing is hours for the participants.
//! `WEIR_SOAK_MINUTES=n` computes for `n` minutes instead of a number of rounds, and
//! `WEIR_SIM_SEED=n` chooses other faults.
#![expect(clippy::print_stdout, reason = "a long run shows how far it is")]

use core::time::Duration;
use std::alloc::System;
use std::time::Instant;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use weir_rtps::qos::{Durability, History, Reliability};

use swarm::cycles::Cycles;

#[expect(dead_code, reason = "shared with the simulations, which use all of it")]
#[path = "../sim/live"]
mod live {
    pub(crate) mod forge;
    pub(crate) mod node;
}

#[expect(dead_code, reason = "shared with the simulations, which use all of it")]
#[path = "../sim/swarm"]
mod swarm {
    mod acknowledged;
    #[path = "../../soak/cycles.rs"]
    pub(crate) mod cycles;
    mod faults;
    mod forgeries;
    mod fragmenter;
    mod limits;
    mod participants;
}

#[path = "../sim/profile.rs"]
#[expect(dead_code, reason = "shared with the simulations, which use all of it")]
mod profile;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Bytes allocated now.
fn allocated() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

/// Rounds of a normal test run.
const ROUNDS: usize = 40;
/// Rounds after which a line is printed.
const ROUNDS_PER_LINE: usize = 20;
/// The least memory of a quarter of the rounds varies by this share.
const VARIATION_SHARE: usize = 16;

/// Every policy that decides what is kept for whom, each in a swarm of its own.
fn swarms(seed: u64) -> Vec<Cycles> {
    [
        (Reliability::Reliable, Durability::Volatile, History::KeepAll),
        (Reliability::Reliable, Durability::TransientLocal, History::KeepAll),
        (Reliability::Reliable, Durability::TransientLocal, History::KeepLast(10)),
        (Reliability::BestEffort, Durability::Volatile, History::KeepLast(1)),
    ]
    .into_iter()
    .map(|(reliability, durability, history)| Cycles::new(seed, reliability, durability, history))
    .collect()
}

/// Returns whether another round is to follow.
fn goes_on(rounds: usize, start: Instant) -> bool {
    let minutes = std::env::var("WEIR_SOAK_MINUTES").ok();
    minutes.map_or(rounds < ROUNDS, |minutes| {
        let minutes: u64 = minutes.parse().expect("WEIR_SOAK_MINUTES is a number");
        start.elapsed() < Duration::from_secs(60 * minutes)
    })
}

/// Prints how much has happened so far.
fn print(swarms: &[Cycles], start: Instant, at_rest: &[usize]) {
    let sum = |of: fn(&Cycles) -> u64| swarms.iter().map(of).sum::<u64>();
    println!(
        "{:5.0} s: {} rounds, {:.1} simulated hours, {} faults, {} samples taken, {} KiB allocated",
        start.elapsed().as_secs_f64(),
        at_rest.len(),
        sum(|it| it.age().as_secs()) as f64 / 3600.0,
        sum(|it| it.faults),
        sum(|it| it.taken),
        at_rest.last().unwrap_or(&0) / 1024
    );
}

#[test]
fn a_long_run_of_faults_loses_nothing_and_ends_with_flat_memory() {
    let seed = std::env::var("WEIR_SIM_SEED").ok();
    let seed = seed.map_or(1, |seed| seed.parse().expect("WEIR_SIM_SEED is a number"));
    let (start, mut swarms, mut at_rest) = (Instant::now(), swarms(seed), Vec::with_capacity(1 << 16));
    while goes_on(at_rest.len(), start) {
        swarms.iter_mut().for_each(Cycles::run_one);
        at_rest.push(allocated());
        if at_rest.len().is_multiple_of(ROUNDS_PER_LINE) {
            print(&swarms, start, &at_rest);
        }
    }
    print(&swarms, start, &at_rest);
    // The first quarter fills what is bounded: records of hosts, and of writers that are gone. In any round, buffers
    // may have grown that shrink only when their participant ends, so the least of many rounds counts.
    let quarter = at_rest.len() / 4;
    let least = |rounds: &[usize]| rounds.iter().copied().min().unwrap_or(0);
    let (second, last) = (least(&at_rest[quarter..2 * quarter]), least(&at_rest[3 * quarter..]));
    println!(
        "at least {} KiB allocated in the second quarter, {} KiB in the last",
        second / 1024,
        last / 1024
    );
    assert!(last <= second + second / VARIATION_SHARE, "memory has grown from {second} to {last} bytes");
}
