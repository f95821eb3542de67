//! What an outside program is to measure, and why it may fail.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::time::Duration;

use thiserror::Error;
use weir_results::{LatencyKind, WaitStrategy};

use crate::case::{CaseSpec, CpuPair};

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

/// A free port. Another program may take it first; the measuring program then fails.
pub(super) fn free_port(case: &OutsideCase) -> Result<u16, OutsideError> {
    UdpSocket::bind(SocketAddrV4::new(case.address, 0))
        .and_then(|socket| socket.local_addr())
        .map(|address| address.port())
        .map_err(|error| OutsideError::Failed(format!("no free port on {}: {error}", case.address)))
}
