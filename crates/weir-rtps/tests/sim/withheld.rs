//! Datagrams that are withheld, to see whether readers acknowledge what they have not received.

use core::time::Duration;

use weir_netsim::{Link, Loss};
use weir_rtps::path::Path;

use crate::harness::Sim;
use crate::links::{DATAGRAM_MAX, ways};

/// Streams end while a datagram is withheld, and no request for it arrives any more.
#[test]
fn the_end_of_a_stream_does_not_wait_for_a_request_of_what_is_withheld() {
    let round_trip = Duration::from_millis(60);
    // One that sends less than the link carries, and one that would send more.
    let sizes: [fn(u64) -> usize; 2] = [|_| 256, |_| 63_000];
    for (size, gap_us) in sizes.into_iter().zip([194, 20]) {
        let gap = Duration::from_micros(gap_us);
        let mut sim = Sim::unrecorded("withheld", 1, Link::new());
        sim.set_steps_max(1_000_000);
        sim.add_writer(|setup| (setup.samples, setup.size, setup.gap) = (u64::MAX, size, gap));
        sim.add_reader(|setup| (setup.segment_max, setup.path) = (DATAGRAM_MAX, Some(Path::new())));
        let (writer, reader) = (*sim.writers[0].address.ip(), *sim.readers[0].address.ip());
        let [there, back] = ways("rate=20M,rtt=60ms,queue=256k");
        sim.network.set_link(writer, reader, there);
        sim.network.set_link(reader, writer, back);
        sim.connect(0, 0);
        sim.run_until(|sim| sim.writers[0].core.counters().samples_withheld > 0);
        sim.writers[0].samples = sim.writers[0].written;
        sim.run_until(|sim| !sim.writers[0].core.has_unsent());
        assert!(!sim.is_delivered(), "{} B: {sim}", size(1));
        sim.network.set_link(reader, writer, Link::new().loss(Loss::random(1.0)));
        sim.run_for(round_trip);
        assert!(sim.is_delivered(), "{} B: {sim}", size(1));
    }
}
