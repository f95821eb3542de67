//! After warm-up, no sample costs the cores an allocation: batches, bursts, fragments, several
//! readers, many instances, and with every tenth datagram lost and sent again. Counted over the
//! whole process, so this program has one thread, and no harness: its main thread would allocate, too.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod fragments;
mod line;

use std::alloc::System;
use std::io::Write;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use weir_rtps::qos::{Durability, History};
use weir_rtps::writer::{BatchPolicy, Coalescing};

use line::{Line, Setup};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Allocations and reallocations so far, and their bytes.
fn allocations() -> (usize, usize) {
    let stats = ALLOCATOR.stats();
    let grown = usize::try_from(stats.bytes_reallocated).unwrap_or(0);
    (stats.allocations + stats.reallocations, stats.bytes_allocated + grown)
}

/// Bytes allocated now.
fn allocated() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

/// Sends samples until everything is warm, then as many again, without an allocation.
fn check(samples: u64, setup: impl FnOnce(&mut Setup)) {
    check_allowing(0, samples, setup);
}

/// The same, with an allowance for events so rare that warm-up does not include them all.
fn check_allowing(allowed: usize, samples: u64, setup: impl FnOnce(&mut Setup)) {
    let mut line = Line::new(setup);
    line.exchange(samples);
    line.exchange(samples);
    let before = allocations();
    line.exchange(samples);
    let after = allocations();
    let (count, bytes) = (after.0 - before.0, after.1 - before.1);
    assert!(count <= allowed, "{count} allocations of {bytes} bytes for {samples} samples");
}

fn samples_one_by_one() {
    check(20_000, |_| {});
}

fn samples_in_batches() {
    check(20_000, |setup| {
        let max_delay = core::time::Duration::from_micros(100);
        setup.writer.batch = Some(BatchPolicy::new(8192, 1000, max_delay));
    });
}

fn samples_in_bursts() {
    check(20_000, |setup| setup.writer.coalescing = Some(Coalescing::default()));
}

fn samples_of_10_000_instances_of_which_the_last_is_kept() {
    check(60_000, |setup| {
        setup.instances = 10_000;
        setup.writer.history = History::KeepLast(1);
        setup.reader.history = History::KeepLast(1);
    });
}

fn samples_of_10_000_instances_that_are_kept_for_late_readers() {
    check(60_000, |setup| {
        setup.instances = 10_000;
        setup.writer.history = History::KeepLast(1);
        setup.writer.durability = Durability::TransientLocal;
        setup.reader.history = History::KeepLast(1);
    });
}

fn samples_for_three_readers() {
    check(20_000, |setup| setup.readers = 3);
}

fn samples_of_which_every_tenth_datagram_is_lost() {
    check(40_000, |setup| setup.loses_every = Some(10));
}

fn samples_for_three_readers_of_which_every_tenth_datagram_is_lost() {
    check_allowing(3, 40_000, |setup| {
        setup.readers = 3;
        setup.loses_every = Some(10);
    });
}

fn samples_of_a_megabyte() {
    check(40, |setup| setup.len = 1 << 20);
}

fn samples_of_a_megabyte_of_which_every_tenth_datagram_is_lost() {
    check(60, |setup| {
        setup.len = 1 << 20;
        setup.loses_every = Some(10);
    });
}

/// Runs a test, and says so in the form of the usual harness, for those who count tests.
macro_rules! run {
    ($($test:path),* $(,)?) => {{
        let mut out = std::io::stdout().lock();
        let mut count = 0;
        $(
            write!(out, "test {} ... ", stringify!($test))?;
            out.flush()?;
            $test();
            writeln!(out, "ok")?;
            count += 1;
        )*
        writeln!(out, "\ntest result: ok. {count} passed; 0 failed; 0 ignored\n")
    }};
}

fn main() -> std::io::Result<()> {
    run!(
        samples_one_by_one,
        samples_in_batches,
        samples_in_bursts,
        samples_of_10_000_instances_of_which_the_last_is_kept,
        samples_of_10_000_instances_that_are_kept_for_late_readers,
        samples_for_three_readers,
        samples_of_which_every_tenth_datagram_is_lost,
        samples_for_three_readers_of_which_every_tenth_datagram_is_lost,
        samples_of_a_megabyte,
        samples_of_a_megabyte_of_which_every_tenth_datagram_is_lost,
        fragments::one_fragment_of_a_sample_of_a_gigabyte_allocates_about_a_megabyte_at_most,
    )
}
