//! Independent programs that measure the same baseline: `sockperf` for latency, `iperf3` for
//! throughput.
//!
//! They check our baseline, and so every ratio that divides by it. They run between our own cases,
//! with the same size, pinning, socket buffers and wait strategy. Their figures go through the same
//! arithmetic: of sockperf, the log of every round trip is read, not its summary.
//!
//! `iperf3` also makes the TCP connection beside a case (`tcp`).

mod case;
mod iperf3;
mod process;
mod sockperf;
mod tcp;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use weir_results::{Case, Test};

pub use case::OutsideCase;
pub(crate) use process::{UDP_SOCKETS, lists_port};
pub(crate) use tcp::TcpFlow;

use crate::case::CaseError;

/// A program that checks the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutsideTool {
    /// Latency.
    Sockperf,
    /// Throughput.
    Iperf3,
}

impl OutsideTool {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Sockperf, Self::Iperf3];

    /// The program, and the engine's name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sockperf => "sockperf",
            Self::Iperf3 => "iperf3",
        }
    }

    /// Its test.
    #[must_use]
    pub const fn test(self) -> Test {
        match self {
            Self::Sockperf => Test::Latency,
            Self::Iperf3 => Test::Throughput,
        }
    }

    /// The largest datagram that it sends, bytes.
    #[must_use]
    pub const fn size_bytes_max(self) -> usize {
        match self {
            Self::Sockperf => 65_506,
            Self::Iperf3 => 65_507,
        }
    }

    /// Whether the program is on the `PATH`.
    #[must_use]
    pub fn is_installed(self) -> bool {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&folders).any(|folder: PathBuf| folder.join(self.name()).is_file())
    }

    /// Measures `case` and enters the figures in `result`. `on_tick` is called regularly with the
    /// elapsed time.
    pub fn run(
        self,
        case: &OutsideCase,
        result: &mut Case,
        interrupted: &AtomicBool,
        on_tick: &mut dyn FnMut(Duration),
    ) -> Result<(), CaseError> {
        match self {
            Self::Sockperf => sockperf::run(case, result, interrupted, on_tick),
            Self::Iperf3 => iperf3::run(case, result, interrupted, on_tick),
        }
    }
}
