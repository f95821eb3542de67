//! Endpoints with a limits table allocate nothing once they are created and matched. Counted over the whole process, so
//! this program has one thread, and no harness: its main thread would allocate, too.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod cores;
mod domain;
#[path = "../sim/live/forge.rs"]
#[expect(dead_code, reason = "the simulations use all of it")]
mod forge;
#[path = "../alloc/line.rs"]
mod line;
mod participants;

use std::alloc::System;
use std::io::Write;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Allocations and reallocations so far.
fn allocations() -> usize {
    let stats = ALLOCATOR.stats();
    stats.allocations + stats.reallocations
}

/// Bytes allocated now.
fn allocated() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

fn main() -> std::io::Result<()> {
    let name = "what_the_limits_table_says_is_allocated_at_the_start_and_nothing_later";
    let mut out = std::io::stdout().lock();
    // The form of the usual harness, for those who count tests.
    writeln!(out, "\nrunning 1 test\ntest {name} ...")?;
    cores::a_writer_allocates_what_its_size_says();
    cores::a_reader_allocates_what_its_size_says();
    cores::samples_one_by_one();
    cores::samples_of_instances_of_which_the_last_ones_are_kept();
    cores::samples_of_which_every_tenth_datagram_is_lost();
    cores::samples_for_three_readers_of_which_every_tenth_datagram_is_lost();
    cores::samples_in_fragments_of_which_every_tenth_is_lost();
    cores::writers_that_come_and_go();
    domain::a_remote_endpoint_and_its_match_take_no_more_than_320_bytes();
    participants::partitions_are_compared_without_memory();
    participants::a_participant_whose_tables_are_full_takes_no_more_than_its_budget();
    writeln!(out, "test {name} ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored\n")
}
