//! The cost of loss for a reliable writer: the table is a snapshot, so that changes of the protocol
//! show.

use core::fmt::Write as _;
use core::time::Duration;

use weir_netsim::{Link, Loss};

use crate::harness::Sim;

/// The result of one run.
struct Outcome {
    samples_per_s: f64,
    repairs_per_lost: f64,
    control_per_sample: f64,
}

fn run(delay: Duration, loss_percent: u32, is_coalescing: bool) -> Outcome {
    let link = Link::new().delay(delay).loss(Loss::random(f64::from(loss_percent) / 100.0));
    let mut sim = Sim::unrecorded("goodput", 1, link);
    sim.add_writer(|setup| {
        // Many round trips in either case.
        setup.samples = if delay < Duration::from_millis(1) { 6_000 } else { 20_000 };
        if is_coalescing {
            setup.coalesce();
        }
    });
    sim.add_reader(|_| {});
    sim.connect(0, 0);
    // Without the end, where no later sample would show what is missing.
    let (guid, count) = (sim.writers[0].config.guid, sim.writers[0].samples / 20 * 19);
    sim.run_until(|sim| sim.readers[0].taken(guid).len() as u64 >= count);
    let samples_per_s = count as f64 / (sim.now.0 as f64 / 1e9);
    sim.run_to_the_end();

    let (writer, reader) = (&sim.writers[0], &sim.readers[0]);
    let samples = writer.samples as f64;
    let sent = writer.samples_sent as f64;
    let repairs = sent - samples;
    // Losses on the link, of samples and repairs: sent less received.
    let received = reader.core.counters().samples_received + reader.core.counters().samples_duplicate;
    let lost = sent - received as f64;
    let control = sim.network.counters().sent as f64 - sent;
    Outcome {
        samples_per_s,
        repairs_per_lost: if lost > 0.0 { repairs / lost } else { repairs },
        control_per_sample: control / samples,
    }
}

#[test]
fn goodput_under_loss_is_as_in_the_table() {
    let mut table = String::from(
        "one-way us | coalescing | loss % | goodput % | repairs per lost sample | control messages per sample\n",
    );
    for delay_us in [50, 1000] {
        for is_coalescing in [false, true] {
            let delay = Duration::from_micros(delay_us);
            let mut lossless = 0.0;
            for loss_percent in [0, 1, 5, 10, 20, 30] {
                let outcome = run(delay, loss_percent, is_coalescing);
                if loss_percent == 0 {
                    lossless = outcome.samples_per_s;
                }
                let goodput = 100.0 * outcome.samples_per_s / lossless;
                let coalescing = if is_coalescing { "on" } else { "off" };
                writeln!(
                    table,
                    "{delay_us:10} | {coalescing:>10} | {loss_percent:6} | {goodput:9.1} | {:23.2} | {:27.3}",
                    outcome.repairs_per_lost, outcome.control_per_sample
                )
                .expect("a string takes everything");
            }
            writeln!(table, "lossless: {lossless:.0} samples/s").expect("a string takes everything");
        }
    }
    insta::assert_snapshot!(table);
}
