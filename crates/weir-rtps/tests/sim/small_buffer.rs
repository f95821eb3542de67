//! Socket buffers of the stock size, charged as the kernel charges them, and receivers that are slower than
//! the sender.

use core::time::Duration;

use weir_netsim::Link;

use crate::harness::{Sim, seeds};

const STOCK_BYTES: u32 = 200 * 1024;

fn run(name: &str, seed: u64, writers: usize, announces: bool, size: fn(u64) -> usize) -> Sim {
    let mut sim = Sim::new(name, seed, Link::new().delay(Duration::from_micros(50)));
    for _ in 0..writers {
        sim.add_writer(|setup| {
            setup.samples = 700;
            setup.size = size;
        });
    }
    sim.add_reader(|setup| {
        setup.receive_buffer = STOCK_BYTES;
        setup.announces_buffer = announces;
    });
    let reader = sim.readers[0].address;
    sim.network.set_read_gap(reader, Duration::from_micros(3));
    sim.connect_all();
    sim.run_to_the_end();
    sim
}

#[test]
fn a_writer_that_knows_the_buffer_never_overruns_it() {
    for seed in seeds(2) {
        for size in [|_| 32_usize, |_| 1000, |_| 8192, |_| 63_000] {
            let sim = run("announced", seed, 1, true, size);
            assert_eq!(sim.network.counters().buffer_full, 0, "{sim}");
            assert_eq!(sim.writers[0].core.counters().samples_repaired, 0, "{sim}");
        }
    }
}

#[test]
fn overruns_lose_nothing_in_the_end() {
    for seed in seeds(2) {
        for size in [|_| 32_usize, |_| 8192] {
            run("unannounced", seed, 1, false, size);
            run("shared", seed, 4, true, size);
            run("shared-unannounced", seed, 4, false, size);
        }
    }
}
