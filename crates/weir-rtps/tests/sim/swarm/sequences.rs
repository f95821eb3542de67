//! Every sequence of two faults between two participants, on a network that loses nothing by itself.
//!
//! Where [`lives`](crate::lives) decides itself when two cores match, here their discovery does:
//! leases, goodbyes, restarts and new addresses decide when either side forgets the other.
//! `WEIR_SIM_FAULTS=n` tries the sequences of `n` faults.

use core::time::Duration;

use weir_netsim::Rng;
use weir_rtps::qos::{Durability, History, Qos, Reliability};

use super::faults::Fault;
use super::participants::Swarm;

/// Faults of a normal test run.
const FAULTS: u32 = 2;
const LEASE: Duration = Duration::from_secs(3);
/// Shorter and longer than a lease.
const PERIODS: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(8)];
/// How long the participants run before each fault: too short to meet again, and long enough.
const PAUSES: [Duration; 2] = [Duration::from_millis(30), Duration::from_secs(5)];

/// Every fault, of each participant.
fn faults() -> Vec<Fault> {
    let mut faults = Vec::new();
    for (one, other) in [(0, 1), (1, 0)] {
        for period in PERIODS {
            faults.push(Fault::CutOneWay(one, other, period));
            faults.push(Fault::Stop { member: one, period, are_timers_first: true });
            faults.push(Fault::Stop { member: one, period, are_timers_first: false });
        }
        faults.push(Fault::Goodbye(one, other));
        for (is_same, says_goodbye, downtime) in
            [(true, true, 8_000), (false, false, 8_000), (true, false, 1)]
        {
            let downtime = Duration::from_millis(downtime);
            faults.push(Fault::Restart { member: one, is_same, says_goodbye, downtime });
        }
        faults.push(Fault::Readdress(one, Duration::ZERO));
    }
    faults.push(Fault::CutOff(0, 1, PERIODS[1]));
    faults
}

fn try_all(durability: Durability, history: History) {
    let length = std::env::var("WEIR_SIM_FAULTS").ok();
    let length = length.map_or(FAULTS, |length| length.parse().expect("WEIR_SIM_FAULTS is a number"));
    let faults = faults();
    let qos = Qos { reliability: Reliability::Reliable, durability, history, ..Qos::for_reader() };
    for number in 0..faults.len().pow(length) {
        for pause in PAUSES {
            let mut swarm = Swarm::pair(number as u64, LEASE, &qos);
            swarm.run_for(Duration::from_secs(2));
            let mut rest = number;
            for _ in 0..length {
                swarm.apply(&faults[rest % faults.len()], &mut Rng::new(0));
                rest /= faults.len();
                swarm.run_for(pause);
            }
            swarm.end_well();
        }
    }
}

#[test]
fn a_durable_pair_goes_on_after_every_two_faults() {
    try_all(Durability::TransientLocal, History::KeepAll);
}

#[test]
fn a_volatile_pair_goes_on_after_every_two_faults() {
    try_all(Durability::Volatile, History::KeepAll);
}

#[test]
fn a_durable_pair_that_keeps_the_last_sample_goes_on_after_every_two_faults() {
    try_all(Durability::TransientLocal, History::KeepLast(1));
}
