//! What the raw UDP engines share: a connected socket on the measured interface.

use std::io;
use std::net::SocketAddrV4;

use weir_results::SocketBuffers;
use weir_udp::{SocketOptions, UdpError, UdpSocket};

use crate::case::CaseSpec;
use crate::endpoint::EndpointError;
use crate::payload;

/// The most that one UDP datagram carries over IPv4: 65535 less the headers of IP and UDP.
pub(crate) const DATAGRAM_BYTES_MAX: usize = 65_507;

/// Opens the socket of one end, on a port of the kernel's choice.
pub(super) fn open(case: &CaseSpec, gro: bool) -> Result<UdpSocket, EndpointError> {
    let options = SocketOptions {
        recv_buffer: Some(case.socket_buffer_bytes),
        send_buffer: Some(case.socket_buffer_bytes),
        gro,
        timestamps: case.method.breakdown,
        ..SocketOptions::new(SocketAddrV4::new(case.address, case.port.unwrap_or(0)))
    };
    UdpSocket::bind(&options).map_err(|error| environment(&error))
}

/// Connects to the address that the peer told.
pub(super) fn connect(socket: &UdpSocket, peer: Option<SocketAddrV4>) -> Result<(), EndpointError> {
    let peer = peer.ok_or_else(|| EndpointError::NoPeer("the other end told no address".to_owned()))?;
    socket.connect(peer).map_err(|error| environment(&error))
}

/// What was asked for and granted.
pub(super) fn buffers(case: &CaseSpec, socket: &UdpSocket) -> SocketBuffers {
    SocketBuffers {
        receive_asked: Some(case.socket_buffer_bytes as u64),
        receive_granted: Some(socket.granted_recv_buffer() as u64),
        send_asked: Some(case.socket_buffer_bytes as u64),
        send_granted: Some(socket.granted_send_buffer() as u64),
    }
}

/// Datagrams that the socket dropped so far.
pub(super) fn kernel_drops(socket: &UdpSocket) -> Option<u64> {
    socket.kernel_drops().ok().map(u64::from)
}

/// A sample of the case's size; its header is written before each send.
pub(super) fn sample_buffer(case: &CaseSpec) -> Vec<u8> {
    let mut sample = vec![0; case.size_bytes];
    payload::fill_octets(0, &mut sample[payload::HEADER_BYTES..]);
    sample
}

/// An error of the socket in the middle of a run.
pub(super) fn failed(what: &str, error: &io::Error) -> EndpointError {
    EndpointError::Engine(format!("{what} failed: {error}"))
}

fn environment(error: &UdpError) -> EndpointError {
    EndpointError::Environment(error.to_string())
}
