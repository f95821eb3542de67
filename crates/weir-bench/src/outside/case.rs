//! What an outside program is to measure.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::time::Duration;

use weir_results::{LatencyKind, WaitStrategy};

use crate::case::{CaseError, CaseSpec, CpuPair};

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

/// A free port. Another program may take it first; the measuring program then fails.
pub(super) fn free_port(case: &OutsideCase) -> Result<u16, CaseError> {
    UdpSocket::bind(SocketAddrV4::new(case.address, 0))
        .and_then(|socket| socket.local_addr())
        .map(|address| address.port())
        .map_err(|error| CaseError::Failed(format!("no free port on {}: {error}", case.address)))
}
