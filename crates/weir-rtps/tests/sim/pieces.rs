//! Large samples filled piece by piece, with the first pieces in flight while others are filled.

use core::time::Duration;

use weir_netsim::{Link, Loss};
use weir_rtps::qos::{Durability, History};

use crate::harness::{Sim, seeds};

/// Time to fill a piece: about as long as to send it at 10 Gbit/s.
const PIECE: Duration = Duration::from_micros(200);

/// A writer of samples of all sizes, with large ones filled piece by piece, and a reader.
fn sim(name: &str, seed: u64, loss: f64, receive_buffer: u32) -> Sim {
    let link = Link::new().delay(Duration::from_micros(50)).loss(Loss::random(loss));
    let mut sim = Sim::new(name, seed, link);
    sim.add_writer(|setup| {
        setup.samples = 12;
        setup.fills_pieces_in = Some(PIECE);
        setup.gap = Duration::from_micros(20);
        setup.size = |n| [900_004, 32, 262_148, 8192, 3_000_000, 262_144][(n % 6) as usize];
        setup.coalesce();
    });
    sim.add_reader(|setup| setup.receive_buffer = receive_buffer);
    sim
}

#[test]
fn samples_in_pieces_get_through_whatever_is_lost_and_however_small_the_buffer() {
    for seed in seeds(3) {
        for (loss, receive_buffer) in [(0.0, 8 << 20), (0.0, 200 * 1024), (0.1, 8 << 20), (0.3, 200 * 1024)] {
            let mut sim = sim(&format!("pieces-{loss}-{receive_buffer}"), seed, loss, receive_buffer);
            sim.connect(0, 0);
            sim.run_to_the_end();
            assert!(loss > 0.0 || sim.writers[0].core.counters().samples_repaired == 0, "{sim}");
            assert_eq!(sim.readers[0].taken(sim.writers[0].config.guid).len(), 12, "{sim}");
        }
    }
}

#[test]
fn the_beginning_is_sent_before_the_end_is_filled() {
    let mut sim = sim("pieces-early", 1, 0.0, 8 << 20);
    sim.writers[0].samples = 1;
    sim.writers[0].size = |_| 3_000_000;
    sim.connect(0, 0);
    sim.run_until(|sim| sim.writers[0].core.is_amid_sample());
    assert!(sim.writers[0].is_filling(), "{sim}");
    let guid = sim.writers[0].config.guid;
    while sim.writers[0].is_filling() {
        assert!(sim.readers[0].taken(guid).is_empty(), "{sim}");
        sim.run_for(Duration::from_micros(10));
    }
    let filled = sim.now;
    sim.run_until(|sim| !sim.readers[0].taken(guid).is_empty());
    // At most the last piece and the delay were left.
    assert!(sim.now.since(filled) < Duration::from_micros(120), "{:?}: {sim}", sim.now.since(filled));
    sim.run_to_the_end();
}

#[test]
fn a_sample_left_unfinished_is_whole_when_the_reader_is_back() {
    for seed in seeds(3) {
        let mut sim = sim("pieces-left", seed, 0.05, 200 * 1024);
        sim.writers[0].samples = 3;
        sim.writers[0].size = |n| if n == 2 { 2_000_000 } else { 32 };
        sim.connect(0, 0);
        sim.run_until(|sim| sim.writers[0].is_filling());
        sim.run_for(PIECE);
        let (reader, guid) = (sim.readers[0].address, sim.writers[0].config.guid);
        sim.network.pause(reader);
        sim.run_until(|sim| !sim.writers[0].is_filling());
        sim.run_for(Duration::from_millis(100));
        assert!(sim.writers[0].core.is_amid_sample(), "{sim}");
        sim.writers[0].core.leave_sample();
        assert_eq!(sim.readers[0].taken(guid).last(), Some(&1), "{sim}");
        sim.network.resume(reader);
        sim.run_to_the_end();
        assert_eq!(sim.readers[0].taken(guid), [1, 2, 3], "{sim}");
    }
}

#[test]
fn readers_that_come_and_go_while_a_sample_is_filled_get_whole_samples_only() {
    for seed in seeds(3) {
        for durability in [Durability::Volatile, Durability::TransientLocal] {
            let link = Link::new().delay(Duration::from_micros(50)).loss(Loss::random(0.02));
            let mut sim = Sim::new("pieces-come-and-go", seed, link);
            sim.add_writer(|setup| {
                setup.samples = 4;
                setup.fills_pieces_in = Some(PIECE);
                setup.config.durability = durability;
                setup.config.history = History::KeepLast(4);
                setup.size = |_| 2_000_000;
            });
            (0..2).for_each(|_| _ = sim.add_reader(|setup| setup.wants_history = true));
            let guid = sim.writers[0].config.guid;
            sim.connect(0, 0);
            sim.run_until(|sim| sim.writers[0].core.is_amid_sample());
            assert!(sim.writers[0].is_filling(), "{sim}");
            sim.run_for(PIECE);
            // The only reader leaves, so that some pieces have no reader, and another one joins.
            sim.disconnect(0, 0);
            sim.run_for(2 * PIECE);
            assert!(sim.writers[0].is_filling(), "{sim}");
            sim.connect(0, 1);
            sim.run_to_the_end();
            let taken = sim.readers[1].taken(guid);
            let first = if durability == Durability::TransientLocal { 1 } else { 2 };
            assert!(taken.iter().copied().eq(first..=4), "{taken:?}: {sim}");
        }
    }
}
