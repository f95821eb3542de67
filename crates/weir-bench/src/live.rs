//! What the ends of a case have measured so far, sent to the coordinator while they measure.
//!
//! The measuring thread leaves its figures in a [`LiveSlot`] every [`Method::live_period`](crate::case::Method), which
//! takes it less than a microsecond. A second thread of the same process, with the lowest ordinary priority and on all
//! processors, sends them.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use weir_measure::Connection;
use weir_results::{LiveFigures, LiveSlot};
use weir_telemetry::{process_time, yield_to_others};

use crate::case::CaseSpec;
use crate::control::{FromAgent, Role};

/// What an end has measured and used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LiveReport {
    /// What it has measured; `None` during the warm-up, and for ends that measure nothing.
    pub figures: Option<LiveFigures>,
    /// Processor time of its process since the report before, percent of one processor.
    pub cpu_percent: f64,
}

/// The last report of an end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LiveEnd {
    /// Which end it is.
    pub role: Role,
    /// Which of the ends of its kind, from 0.
    pub index: u32,
    /// What it said last.
    pub report: LiveReport,
}

/// The thread that sends the figures of this end; dropping it ends the thread.
pub(crate) struct Reporter {
    slot: Arc<LiveSlot>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What a reporter is made of, before its end is there.
pub(crate) struct ReporterOptions {
    period: Duration,
    cpus: Vec<usize>,
}

impl ReporterOptions {
    /// `None`: the case wants no reports. Called before the process is pinned, as the reporter may use all processors.
    pub(crate) fn new(case: &CaseSpec) -> Option<Self> {
        let cpus = weir_udp::affinity::allowed_cpus().unwrap_or_default();
        // As with the sampler, its system calls would be counted with those of the engine.
        let period = case.method.live_period.filter(|_| !case.method.count_system_calls)?;
        Some(Self { period, cpus })
    }
}

impl Reporter {
    /// Starts to report. Without a thread or connection there are no reports.
    pub(crate) fn start(options: &ReporterOptions, control: &Connection) -> Self {
        let slot = Arc::new(LiveSlot::default());
        let (stop, stopped) = mpsc::channel();
        let (figures, cpus, period) = (Arc::clone(&slot), options.cpus.clone(), options.period);
        let spawn = |control| {
            let body = move || {
                yield_to_others(&cpus);
                report(&figures, control, period, &stopped);
            };
            thread::Builder::new().name("live".to_owned()).spawn(body).ok()
        };
        let thread = control.try_clone().ok().and_then(spawn);
        Self { slot, stop: Some(stop), thread }
    }

    /// Where the measuring thread leaves its figures.
    pub(crate) fn slot(&self) -> Arc<LiveSlot> {
        Arc::clone(&self.slot)
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        // The next message of this end follows when no other one is being written.
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // Joining fails only if the thread has panicked, which it does not.
            let _ = thread.join();
        }
    }
}

fn report(slot: &LiveSlot, mut control: Connection, period: Duration, stopped: &Receiver<()>) {
    let mut before = (Instant::now(), process_time());
    while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(period) {
        let now = (Instant::now(), process_time());
        let elapsed_s = now.0.duration_since(before.0).as_secs_f64();
        let used_s = now.1.saturating_sub(before.1).as_secs_f64();
        let cpu_percent = if elapsed_s > 0.0 { used_s / elapsed_s * 100.0 } else { 0.0 };
        before = now;
        let report = LiveReport { figures: slot.get(), cpu_percent };
        if control.send(&FromAgent::Live { report }).is_err() {
            // The main thread notices by itself.
            return;
        }
    }
}
