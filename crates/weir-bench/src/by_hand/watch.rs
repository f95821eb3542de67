//! What an end that was started by hand sees of its own host meanwhile.

use weir_results::{
    Carried, DropCounters, LossAttribution, LossEvidence, ProcessFigures, SequenceCounts, Telemetry,
    attribute,
};
use weir_telemetry::{LossWatch, Sampler, SamplerOptions, process_figures, reset_peak_memory};

use crate::case::CaseSpec;

/// What the host and the process of one end did from when the other end was there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Watched {
    /// What this end's process used.
    pub process: ProcessFigures,
    /// What this end's host dropped.
    pub drops: DropCounters,
    /// What this end's host did; `None` without a period.
    pub telemetry: Option<Telemetry>,
}

/// What to sample. Created before the process is pinned: the sampler may use all processors.
#[derive(Debug)]
pub(super) struct Watch {
    sampler: Option<SamplerOptions>,
    interface: String,
}

/// A watch that is on.
pub(super) struct Watching {
    before: ProcessFigures,
    drops: LossWatch,
    sampler: Option<Sampler>,
}

impl Watch {
    pub(super) fn new(case: &CaseSpec) -> Self {
        let cpus = || weir_udp::affinity::allowed_cpus().unwrap_or_default();
        let sampler = case.method.telemetry_period.map(|period| SamplerOptions { period, cpus: cpus() });
        Self { sampler, interface: case.place.interface.clone() }
    }

    pub(super) fn start(self) -> Watching {
        reset_peak_memory();
        Watching {
            before: process_figures(),
            drops: LossWatch::start(Some(&self.interface)),
            sampler: self.sampler.map(Sampler::start),
        }
    }
}

impl Watching {
    /// Ends it while the sockets are still open: they count their own drops.
    pub(super) fn stop(self, samples: u64) -> Watched {
        let process = process_figures().since(&self.before);
        Watched {
            process: ProcessFigures { samples: Some(samples), ..process },
            drops: self.drops.counters(),
            telemetry: self.sampler.map(Sampler::stop),
        }
    }
}

/// Loss attribution by the receiving host alone: without the sender's counters, what this host does
/// not explain stays unplaced.
pub(super) fn explain(counts: &SequenceCounts, arrivals: u64, drops: &DropCounters) -> LossAttribution {
    let sender = DropCounters::default();
    let carried = Carried::measured(0, &sender, arrivals, drops, SAMPLES_MAX);
    let evidence =
        LossEvidence { refused: None, ..LossEvidence::new(counts.lost, 0, &sender, drops, carried) };
    LossAttribution { sender, receiver: drops.clone(), ..attribute(&evidence) }
}

/// Samples of one buffer of the kernel at most. Only the publisher knows whether it puts samples together: as many as a
/// message may have datagrams (`UDP_MAX_SEGMENTS`).
const SAMPLES_MAX: u64 = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_receiving_host_does_not_explain_has_no_place() {
        let counts = SequenceCounts { received: 990, lost: 10, ..SequenceCounts::default() };
        let drops = DropCounters { socket: Some(4), delivered: Some(990), ..DropCounters::default() };
        let loss = explain(&counts, 990, &drops);
        assert_eq!((loss.lost, loss.receiver_socket, loss.path, loss.unplaced), (10, 4, 0, 6));
    }
}
