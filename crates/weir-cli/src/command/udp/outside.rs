//! iperf3 and sockperf, interleaved with our own measurements.

use std::net::Ipv4Addr;

use weir_bench::case::CaseError;
use weir_bench::outside::{OutsideCase, OutsideTool};
use weir_measure::MeasureError;
use weir_results::{Case, LatencyKind, NotMeasured, Reliability, Test, UdpFigures, UdpMode, WaitStrategy};

use super::plan::Step;
use super::{Runner, failure};
use crate::exit::Failure;

/// Runs one measurement by `tool`; the case says why it has no figures. Only an interruption ends the run.
pub(super) fn measure(tool: OutsideTool, step: &Step, runner: &Runner<'_>) -> (Vec<Case>, Option<Failure>) {
    let point = &step.point;
    let mut case = Case::new(tool.name(), tool.test(), Reliability::None, point.size_bytes as u64);
    // iperf3 always blocks in select(2).
    case.conditions.wait = if tool.test() == Test::Latency { point.wait } else { WaitStrategy::Block };
    runner.enter_conditions(&mut case, step);
    let asked = OutsideCase {
        size_bytes: point.size_bytes,
        duration: point.duration,
        wait: point.wait,
        cpus: runner.cpus,
        address: Ipv4Addr::LOCALHOST,
        socket_buffer_bytes: point.buffer_bytes.unwrap_or(0),
        kind: LatencyKind::Rtt,
    };
    let measured = if point.size_bytes > tool.size_bytes_max() {
        Err(CaseError::NotSupported(format!("datagrams of more than {} bytes", tool.size_bytes_max())))
    } else {
        tool.run(&asked, &mut case, runner.halt, &mut |_| {})
    };
    case.evidence.not_measured = match measured {
        Ok(()) => None,
        Err(CaseError::Interrupted) => return (Vec::new(), Some(failure(MeasureError::Interrupted))),
        Err(CaseError::NotSupported(reason)) => Some(NotMeasured::NotSupported { reason }),
        Err(CaseError::Failed(reason)) => Some(NotMeasured::Failed { reason }),
    };
    let sent = case.figures.throughput.map_or(0.0, |stream| stream.offered_samples_per_s);
    case.figures.udp = Some(UdpFigures {
        mode: UdpMode::Send,
        flows: 1,
        connected: true,
        ip_version: 4,
        offered_mbps: (sent * point.size_bytes as f64 * 8.0 / 1e3).round() / 1e3,
        ..UdpFigures::default()
    });
    (vec![case], None)
}
