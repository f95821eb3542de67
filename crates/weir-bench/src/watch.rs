//! What an end does to its own host while it runs, and what its engine knows of the paths to others.

use serde::{Deserialize, Serialize};
use weir_dds::cdr::copy;
use weir_results::{CopiedBytes, DropCounters, PathFigures, ProcessFigures, Telemetry};
use weir_telemetry::{
    LossWatch, Sampler, SamplerOptions, SystemCalls, SystemCallsError, process_figures, reset_peak_memory,
};

use crate::case::CaseSpec;
use crate::path_watch::{PathProbe, PathWatch};

/// What the host and the process of one end did from when the other end was there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Watched {
    /// What this end's process used.
    pub process: ProcessFigures,
    /// What this end's host dropped.
    pub drops: DropCounters,
    /// What this end's host did; `None` without a period.
    pub telemetry: Option<Telemetry>,
    /// The engine's paths to other hosts.
    pub paths: Vec<PathFigures>,
    /// Why system calls were not counted although they should have been.
    pub system_calls_uncounted: Option<String>,
}

/// What to watch.
pub(crate) struct Watch {
    sampler: Option<SamplerOptions>,
    interface: String,
    system_calls: Counting,
}

/// The counter of system calls, or why there is none; `None`: disabled.
type Counting = Option<Result<SystemCalls, SystemCallsError>>;

/// A watch that is on.
pub(crate) struct Watching {
    sampler: Option<Sampler>,
    paths: Option<PathWatch>,
    drops: LossWatch,
    system_calls: Counting,
    before: ProcessFigures,
}

impl Watch {
    /// Called before the process is pinned, as the sampler may use all processors, and before any thread starts, as
    /// threads inherit the count of system calls.
    pub(crate) fn new(case: &CaseSpec) -> Self {
        let counts_calls = case.method.count_system_calls;
        // The sampler's system calls would be counted with those of the engine.
        let sampler = case.method.telemetry_period.filter(|_| !counts_calls).map(|period| {
            let cpus = weir_udp::affinity::allowed_cpus().unwrap_or_default();
            SamplerOptions { period, cpus }
        });
        let interface = case.place.interface.clone();
        Self { sampler, interface, system_calls: counts_calls.then(SystemCalls::start) }
    }

    /// Reads the counters before the measurement. `probe` reads the engine's paths.
    pub(crate) fn start(mut self, probe: Option<PathProbe>) -> Watching {
        reset_peak_memory();
        // As with the sampler.
        let probe = probe.filter(|_| self.system_calls.is_none());
        Watching {
            paths: probe.and_then(PathWatch::start),
            sampler: self.sampler.map(Sampler::start),
            drops: LossWatch::start(Some(&self.interface)),
            before: figures(&mut self.system_calls),
            system_calls: self.system_calls,
        }
    }
}

impl Watching {
    /// Ends it while the sockets are still open: they count their own drops.
    pub(crate) fn stop(mut self, samples: Option<u64>) -> Watched {
        let process = figures(&mut self.system_calls).since(&self.before);
        Watched {
            process: ProcessFigures { samples, ..process },
            drops: self.drops.counters(),
            telemetry: self.sampler.map(Sampler::stop),
            paths: self.paths.map(PathWatch::stop).unwrap_or_default(),
            system_calls_uncounted: self.system_calls.and_then(Result::err).map(|reason| reason.to_string()),
        }
    }
}

fn figures(system_calls: &mut Counting) -> ProcessFigures {
    let counts = if let Some(Ok(calls)) = system_calls { calls.counts() } else { None };
    ProcessFigures {
        system_calls: counts.map(|counts| counts.all),
        send_calls: counts.and_then(|counts| counts.sends),
        receive_calls: counts.and_then(|counts| counts.receives),
        instructions: counts.and_then(|counts| counts.instructions),
        copied: copy::counted().map(|it| CopiedBytes {
            encode: it.encode,
            keep: it.keep,
            assemble: it.assemble,
            decode: it.decode,
        }),
        ..process_figures()
    }
}
