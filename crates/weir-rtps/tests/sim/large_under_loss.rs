//! Fragmented samples over a link with random loss: most samples lack a fragment, so hundreds of
//! samples in flight are being reassembled at the same time.

use core::time::Duration;

use weir_netsim::{Link, Loss};

use crate::harness::Sim;

const MS: Duration = Duration::from_millis(1);
const US: Duration = Duration::from_micros(1);
/// The link's rate in bits per second, and the size of its queue in bytes: more than the window.
const RATE: u64 = 10_000_000_000;
const QUEUE: usize = 16 << 20;

/// Samples of `size` bytes through a link that loses this share of all datagrams, in both
/// directions.
fn lossy(loss: f64, delay: Duration, samples: u64, size: fn(u64) -> usize) -> Sim {
    let link = Link::new().delay(delay).rate_bps(RATE).queue_bytes(QUEUE).loss(Loss::random(loss));
    Sim::saturated("large-under-loss", link, samples, size)
}

/// Received bits per second of virtual time, as a share of the link's rate.
fn share(loss: f64, delay: Duration, size: fn(u64) -> usize) -> f64 {
    let mut sim = lossy(loss, delay, u64::MAX, size);
    let guid = sim.writers[0].config.guid;
    let duration = if delay < MS { 50 * MS } else { 200 * MS };
    sim.run_for(duration);
    let before = sim.readers[0].taken(guid).len();
    sim.run_for(duration);
    let samples = sim.readers[0].taken(guid).len() - before;
    (samples * size(1) * 8) as f64 / duration.as_secs_f64() / RATE as f64
}

#[test]
fn one_datagram_in_ten_lost_leaves_most_of_the_goodput() {
    let check = |delay, size: fn(u64) -> usize, least| {
        let share = share(0.1, delay, size);
        assert!(share > least, "{} B, {delay:?}: {share:.3}", size(1));
    };
    check(50 * US, |_| 8192, 0.5);
    check(50 * US, |_| 63_000, 0.5);
    check(50 * US, |_| 1 << 20, 0.5);
    check(MS, |_| 8192, 0.5);
    check(MS, |_| 63_000, 0.5);
    // A window holds two samples, each of which waits for its last repair.
    check(MS, |_| 1 << 20, 0.1);
}

#[test]
fn nothing_is_missing_in_the_end_whatever_is_lost() {
    for loss in [0.01, 0.1, 0.3] {
        for (samples, size) in
            [(600, (|_| 8192) as fn(u64) -> usize), (100, |_| 63_000), (8, |sn| 900_000 + sn as usize * 1000)]
        {
            let mut sim = lossy(loss, 50 * US, samples, size);
            sim.run_until(Sim::is_delivered);
            let guid = sim.writers[0].config.guid;
            assert!(sim.readers[0].taken(guid).iter().copied().eq(1..=samples), "{loss}: {sim}");
            sim.run_to_silence();
            sim.check_acknowledged();
        }
    }
}
