//! Links that are slower than the writer, with a queue smaller than the reader's buffer, without a path that paces.
//!
//! The window is that of the reader's buffer, so the queue before such a link overflows, and much
//! is sent again. These tests check what must still hold: no sample is missing in the end, and from
//! 1 Gbit/s on samples of one packet each use most of the link. docs/performance/log.md has the results
//! for slower links and larger samples.

use core::time::Duration;

use weir_netsim::Link;
use weir_rtps::qos::Reliability;

use crate::harness::Sim;

const MS: Duration = Duration::from_millis(1);
const US: Duration = Duration::from_micros(1);
const GBIT: u64 = 1_000_000_000;
/// Overhead of a datagram on the simulated link, and the RTPS headers before the payload.
const HEADERS: usize = 28 + 56 + 4;

fn link(rate_bps: u64, queue_bytes: usize) -> Link {
    Link::new().delay(50 * US).rate_bps(rate_bps).queue_bytes(queue_bytes)
}

/// A saturated writer of `samples` samples of `size` bytes, through `link` and back through an
/// unlimited one.
fn saturated(name: &str, link: Link, samples: u64, size: fn(u64) -> usize) -> Sim {
    let mut sim = Sim::saturated(name, Link::new().delay(50 * US), samples, size);
    let (writer, reader) = (*sim.writers[0].address.ip(), *sim.readers[0].address.ip());
    sim.network.set_link(writer, reader, link);
    sim
}

#[test]
fn small_samples_use_most_of_a_slow_link() {
    for (rate, queue) in [(GBIT, 64_000), (GBIT, 256_000), (10 * GBIT, 64_000), (10 * GBIT, 256_000)] {
        let mut sim = saturated("slow", link(rate, queue), u64::MAX, |_| 1024);
        let guid = sim.writers[0].config.guid;
        let duration = if rate > GBIT { 50 * MS } else { 300 * MS };
        sim.run_for(duration);
        let before = sim.readers[0].taken(guid).len();
        sim.run_for(duration);
        let samples = sim.readers[0].taken(guid).len() - before;
        let carried = duration.as_secs_f64() * rate as f64 / 8.0 / (1024 + HEADERS) as f64;
        let share = samples as f64 / carried;
        assert!(share > 0.8, "{rate} {queue}: {share:.3} {sim}");
    }
}

#[test]
fn what_a_full_queue_drops_is_sent_again_until_nothing_is_missing() {
    let check = |rate, queue, samples, size: fn(u64) -> usize| {
        let mut sim = saturated("dropped", link(rate, queue), samples, size);
        sim.run_until(Sim::is_delivered);
        let guid = sim.writers[0].config.guid;
        assert!(sim.readers[0].taken(guid).iter().copied().eq(1..=samples), "{sim}");
        assert!(sim.network.counters().queue_full > 0, "the queue was never full: {sim}");
        sim.run_to_silence();
        sim.check_acknowledged();
    };
    for (rate, queue) in [(GBIT, 64_000), (GBIT, 256_000), (10 * GBIT, 256_000)] {
        check(rate, queue, 2_000, |_| 1024);
        check(rate, queue, 300, |_| 8192);
        check(rate, queue, 40, |_| 63_000);
        check(rate, queue, 4, |_| 1 << 20);
    }
    check(GBIT / 10, 64_000, 500, |_| 1024);
}

#[test]
fn best_effort_samples_leave_as_they_come() {
    let mut sim = Sim::unrecorded("best-effort", 1, link(GBIT / 10, 64_000));
    sim.add_writer(|setup| {
        setup.config.reliability = Reliability::BestEffort;
        setup.size = |_| 1024;
    });
    sim.add_reader(|setup| setup.config.reliability = Reliability::BestEffort);
    sim.connect(0, 0);
    sim.run_to_silence();
    assert_eq!(sim.writers[0].refused, 0, "{sim}");
    assert!(sim.network.counters().queue_full > 800, "{sim}");
}
