//! Stations with a limits table under a mixed load, with the allocator locked: what a call of a running station
//! allocates is an error.
//!
//! Counted over the whole process, so this program has one thread, and no harness: its main thread would allocate, too.
//! `WEIR_LOCKED_MINUTES=n` computes for `n` minutes, and `WEIR_SIM_SEED=n` chooses another load.

#[path = "../sim/live/forge.rs"]
#[expect(dead_code, reason = "the simulations use all of it")]
mod forge;
mod forgery;
mod load;
mod locked;
mod wire;

use std::io::Write;
use std::time::{Duration, Instant};

use load::Load;

/// Rounds of a normal test run.
const ROUNDS: usize = 100;

/// Returns the value of a variable that is a number.
fn number(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

fn main() -> std::io::Result<()> {
    let name = "stations_under_a_mixed_load_allocate_nothing_after_their_start";
    let mut out = std::io::stdout().lock();
    // The form of the usual harness, for those who count tests.
    writeln!(out, "\nrunning 1 test\ntest {name} ...")?;
    let (start, minutes) = (Instant::now(), number("WEIR_LOCKED_MINUTES"));
    let mut load = Load::new(number("WEIR_SIM_SEED").unwrap_or(1));
    let mut rounds = 0;
    while minutes.map_or(rounds < ROUNDS, |minutes| start.elapsed() < Duration::from_secs(60 * minutes)) {
        load.run_round();
        rounds += 1;
    }
    writeln!(out, "{:5.0} s: {rounds} rounds, {}", start.elapsed().as_secs_f64(), load.summary())?;
    load.check();
    writeln!(out, "test {name} ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored\n")
}
