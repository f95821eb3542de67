//! The threads of a measurement at one end: one for each flow and direction.

use std::io;
use std::thread::{Builder, Scope, ScopedJoinHandle};

use weir_measure::{Signal, now_ns};
use weir_results::{LatencyRecorder, ScheduleLag};
use weir_udp::affinity;

use super::ends::Ends;
use super::point::Point;
use super::receiver::{self, FlowReceived};
use super::reports::{PingReport, SendReport};
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
    /// Starts the receivers. `ahead_ns` is how far this end's clock is ahead of the senders'.
    pub(super) fn receive<'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
        ahead_ns: i64,
    ) -> io::Result<Vec<Worker<'scope, FlowReceived>>>
    where
        'a: 'scope,
    {
        let sockets = self.ends.sockets.iter().enumerate();
        sockets
            .map(|(flow, socket)| {
                let mark = mark_of(self.mark, flow);
                let run = move || receiver::run(socket, self.point, flow, mark, ahead_ns, self.signal);
                self.start(scope, format!("receive {flow}"), run)
            })
            .collect()
    }

    /// Starts the senders, all at the same time.
    pub(super) fn send<'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
    ) -> io::Result<Vec<Worker<'scope, FlowSent>>>
    where
        'a: 'scope,
    {
        let start_ns = now_ns() + LEAD_NS;
        let sockets = self.ends.sockets.iter().zip(&self.ends.to).enumerate();
        sockets
            .map(|(index, (socket, to))| {
                let flow = Flow { index: index as u32, mark: mark_of(self.mark, index), start_ns };
                let run = move || sender::run(socket, *to, self.point, flow, self.signal);
                self.start(scope, format!("send {index}"), run)
            })
            .collect()
    }

    /// Starts the measuring end of round trips.
    pub(super) fn ping<'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
    ) -> io::Result<Worker<'scope, PingReport>>
    where
        'a: 'scope,
    {
        let run = move || {
            round_trip::ping(&self.ends.sockets[0], self.ends.to[0], self.point, self.mark, self.signal)
        };
        self.start(scope, "ping".to_owned(), run)
    }

    /// Starts the answering end of round trips.
    pub(super) fn echo<'scope>(self, scope: &'scope Scope<'scope, '_>) -> io::Result<Worker<'scope, u64>>
    where
        'a: 'scope,
    {
        let run = move || {
            round_trip::echo(&self.ends.sockets[0], self.ends.to[0], self.point, self.mark, self.signal)
        };
        self.start(scope, "echo".to_owned(), run)
    }

    fn start<'scope, T: Send + 'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
        name: String,
        run: impl FnOnce() -> io::Result<T> + Send + 'scope,
    ) -> io::Result<Worker<'scope, T>>
    where
        'a: 'scope,
    {
        Builder::new().name(name).spawn_scoped(scope, move || {
            if let Some(cpu) = self.cpu {
                affinity::pin_current_thread(cpu)?;
            }
            run()
        })
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

/// Sums up the flows of an end.
pub(super) fn send_report(flows: Vec<FlowSent>, ends: &Ends) -> SendReport {
    let mut report = SendReport { buffers: ends.buffers, ..SendReport::default() };
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
        match (&mut lags, flow.lags) {
            (Some(all), Some(one)) => all.merge(&one),
            (all @ None, one) => *all = one,
            (Some(_), None) => {}
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

/// The mark of a flow's datagrams.
fn mark_of(mark: u32, flow: usize) -> u32 {
    mark.wrapping_add(flow as u32)
}

/// The time between creating the senders' threads and their start.
const LEAD_NS: u64 = 2_000_000;
