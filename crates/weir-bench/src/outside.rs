//! Independent programs that measure the same baseline: `sockperf` for latency, `iperf3` for
//! throughput.
//!
//! They check our baseline, and so every ratio that divides by it. They run between our own cases,
//! with the same size, pinning, socket buffers and wait strategy. Their figures go through the same
//! arithmetic: of sockperf, the log of every round trip is read, not its summary.

mod iperf3;
mod process;
mod sockperf;

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use thiserror::Error;
use weir_results::{Case, LatencyKind, Test, WaitStrategy};

use crate::case::{CaseSpec, CpuPair};

/// A program that checks the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutsideTool {
    /// Latency.
    Sockperf,
    /// Throughput.
    Iperf3,
}

/// The case of such a program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OutsideCase {
    /// Bytes of UDP payload in a datagram.
    pub size_bytes: usize,
    /// The least duration: these programs take whole seconds.
    pub duration: Duration,
    /// How the ends wait for datagrams.
    pub wait: WaitStrategy,
    /// Processors of the end that sends and of the one that receives; `None` = not pinned.
    pub cpus: Option<CpuPair>,
    /// Both ends have this address.
    pub address: Ipv4Addr,
    /// Socket buffers to request, bytes, in each direction.
    pub socket_buffer_bytes: usize,
    /// Whether round trips count whole or half.
    pub kind: LatencyKind,
}

impl From<&CaseSpec> for OutsideCase {
    fn from(case: &CaseSpec) -> Self {
        Self {
            size_bytes: case.size_bytes,
            duration: case.duration,
            wait: case.wait,
            cpus: case.place.cpus,
            address: case.place.address,
            socket_buffer_bytes: case.place.socket_buffer_bytes,
            kind: LatencyKind::HalfRtt,
        }
    }
}

/// Why an outside program gave no figures.
#[derive(Debug, Error)]
pub enum OutsideError {
    /// The user stopped the run.
    #[error("interrupted")]
    Interrupted,
    /// It cannot do what the case asks.
    #[error("{0}")]
    NotSupported(String),
    /// It did not run as it should.
    #[error("{0}")]
    Failed(String),
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
    ) -> Result<(), OutsideError> {
        match self {
            Self::Sockperf => sockperf::run(case, result, interrupted, on_tick),
            Self::Iperf3 => iperf3::run(case, result, interrupted, on_tick),
        }
    }
}

/// A free port. Another program may take it first; the measuring program then fails.
fn free_port(case: &OutsideCase) -> Result<u16, OutsideError> {
    UdpSocket::bind(SocketAddrV4::new(case.address, 0))
        .and_then(|socket| socket.local_addr())
        .map(|address| address.port())
        .map_err(|error| OutsideError::Failed(format!("no free port on {}: {error}", case.address)))
}
