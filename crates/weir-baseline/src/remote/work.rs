//! The threads of a measurement at one end: one for each flow and direction.

use std::io;
use std::net::SocketAddr;
use std::thread::{Builder, Scope, ScopedJoinHandle};

use weir_measure::{Signal, interface_of, now_ns};
use weir_results::{DropCounters, LatencyRecorder, ProcessFigures, ScheduleLag};
use weir_telemetry::{LossWatch, process_figures};
use weir_udp::affinity;

use super::ends::Ends;
use super::point::{Point, PointTest};
use super::receiver::{self, FlowReceived};
use super::reports::{ReceiveReport, SendReport};
use super::round_trip;
use super::sender::{self, Flow, FlowSent};

/// A running thread.
pub(super) type Worker<'scope, T> = ScopedJoinHandle<'scope, io::Result<T>>;

/// One end of a measurement, ready to run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work<'a> {
    pub(super) point: &'a Point,
    pub(super) ends: &'a Ends,
    pub(super) mark: u32,
    pub(super) cpu: Option<usize>,
    pub(super) signal: &'a Signal,
}

impl<'a> Work<'a> {
    /// Starts the receivers, or the answering end of round trips. `ahead_ns` is how far this end's clock is ahead of
    /// the senders'.
    pub(super) fn receive<'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
        ahead_ns: i64,
    ) -> io::Result<Vec<Worker<'scope, FlowReceived>>>
    where
        'a: 'scope,
    {
        let Self { point, ends, signal, .. } = self;
        self.start(scope, "receive", move |flow, mark| match point.test {
            PointTest::Stream => receiver::run(&ends.sockets[flow], point, flow, mark, ahead_ns, signal),
            PointTest::RoundTrip => {
                round_trip::echo(&ends.sockets[flow], ends.to[flow], point, mark, signal)?;
                Ok(FlowReceived::default())
            }
        })
    }

    /// Starts the senders, all at the same time, or the measuring end of round trips.
    pub(super) fn send<'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
    ) -> io::Result<Vec<Worker<'scope, FlowSent>>>
    where
        'a: 'scope,
    {
        let Self { point, ends, signal, .. } = self;
        let start_ns = now_ns() + LEAD_NS;
        self.start(scope, "send", move |index, mark| {
            let (socket, to) = (&ends.sockets[index], ends.to[index]);
            match point.test {
                PointTest::Stream => {
                    sender::run(socket, to, point, Flow { index: index as u32, mark, start_ns }, signal)
                }
                PointTest::RoundTrip => {
                    round_trip::ping(socket, to, point, mark, signal).map(FlowSent::of_round_trips)
                }
            }
        })
    }

    /// Starts a thread for each flow, which runs with the number of the flow and the mark of its datagrams.
    fn start<'scope, T: Send + 'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
        name: &str,
        run: impl Fn(usize, u32) -> io::Result<T> + Copy + Send + 'scope,
    ) -> io::Result<Vec<Worker<'scope, T>>> {
        let Self { mark, cpu, .. } = self;
        let start = |flow: usize| {
            Builder::new().name(format!("{name} {flow}")).spawn_scoped(scope, move || {
                if let Some(cpu) = cpu {
                    affinity::pin_current_thread(cpu)?;
                }
                run(flow, mark.wrapping_add(flow as u32))
            })
        };
        (0..self.ends.sockets.len()).map(start).collect()
    }
}

/// Whether all threads have ended.
pub(super) fn all_ended<T>(workers: &[Worker<'_, T>]) -> bool {
    workers.iter().all(ScopedJoinHandle::is_finished)
}

/// Waits for the threads.
pub(super) fn join<T>(workers: Vec<Worker<'_, T>>) -> io::Result<Vec<T>> {
    // All of them, before the first error is returned.
    let ended: Vec<io::Result<T>> = workers
        .into_iter()
        .map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        .collect();
    ended.into_iter().collect()
}

/// Measures what an end's process uses and its host drops.
pub(super) struct Meter {
    before: ProcessFigures,
    watch: LossWatch,
}

/// What a [`Meter`] measured.
#[derive(Clone)]
pub(super) struct Usage {
    pub(super) process: ProcessFigures,
    pub(super) drops: DropCounters,
}

impl Meter {
    /// Starts at the end with this address.
    pub(super) fn start(local: SocketAddr) -> Self {
        let interface = interface_of(local.ip()).map(|(name, _)| name);
        Self { before: process_figures(), watch: LossWatch::start(interface.as_deref()) }
    }

    /// What was used so far. The sockets of this measurement have the best counters of their own.
    pub(super) fn read(&self, ends: &Ends) -> Usage {
        let counters = self.watch.counters();
        let drops = DropCounters { socket: ends.drops().or(counters.socket), ..counters };
        Usage { process: process_figures().since(&self.before), drops }
    }
}

/// The report of the receivers of an end.
pub(super) fn receive_report(flows: &[FlowReceived], ends: &Ends, usage: Usage) -> ReceiveReport {
    let Usage { process, drops } = usage;
    let (kernel_drops, buffers) = (ends.drops(), ends.buffers);
    ReceiveReport { kernel_drops, drops, process, buffers, ..receiver::report(flows) }
}

/// The report of the senders of an end: sums up their flows.
pub(super) fn send_report(flows: Vec<FlowSent>, ends: &Ends, usage: Usage) -> SendReport {
    let Usage { process, drops } = usage;
    let mut report = SendReport { buffers: ends.buffers, process, drops, ..SendReport::default() };
    let mut lags: Option<LatencyRecorder> = None;
    let busy: Option<f64> = flows.iter().map(|flow| flow.busy).sum();
    report.busy_percent =
        busy.filter(|_| !flows.is_empty()).map(|busy| (busy * 1e3 / flows.len() as f64).round() / 10.0);
    for flow in flows {
        report.sent.push(flow.counts.datagrams);
        report.offered += flow.offered;
        report.offered_in_ns = report.offered_in_ns.max(flow.offered_in_ns);
        if flow.offered_in_ns > 0 {
            report.offered_per_s += flow.offered as f64 * 1e9 / flow.offered_in_ns as f64;
        }
        report.system_calls += flow.counts.system_calls;
        report.refused += flow.counts.refused;
        report.gso_fallbacks += flow.counts.gso_fallbacks;
        if let Some(flow_lags) = flow.lags {
            lags.get_or_insert_with(LatencyRecorder::new).merge(&flow_lags);
        }
    }
    let us = |ns: u64| (ns as f64).round() / 1e3;
    report.lag = lags.map(|lags| ScheduleLag {
        p50: us(lags.quantile_ns(0.5)),
        p99: us(lags.quantile_ns(0.99)),
        p99_9: Some(us(lags.quantile_ns(0.999))),
        max: us(lags.quantile_ns(1.0)),
    });
    report
}

/// The time between creating the senders' threads and their start.
const LEAD_NS: u64 = 2_000_000;
