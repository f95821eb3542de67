//! The sockets with the running kernel, on loopback only.

#![expect(clippy::unwrap_used, reason = "a failed call fails the test, in its helpers too")]

mod affinity;
mod interfaces;
mod multicast;
mod receiving;
mod refusals;
mod sending;
mod setup;
mod threads;
mod type_of_service;
mod waiting;

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use weir_udp::{Outgoing, RecvBatch, SocketOptions, UdpSocket, Wait};

/// Long enough never to expire on a busy machine while the datagram is in flight.
const GENEROUS: Duration = Duration::from_secs(20);

/// An ephemeral port of 127.0.0.1.
const LOOPBACK: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);

/// A socket on loopback with a generous receive timeout.
fn open(options: &SocketOptions) -> UdpSocket {
    let socket = UdpSocket::bind(options).unwrap();
    socket.set_recv_timeout(Some(GENEROUS)).unwrap();
    socket
}

/// Two plain sockets on loopback: a sender and a receiver.
fn pair() -> (UdpSocket, UdpSocket) {
    (open(&SocketOptions::new(LOOPBACK)), open(&SocketOptions::new(LOOPBACK)))
}

/// Returns the next `count` datagrams, from as many batches as needed.
fn take(socket: &UdpSocket, batch: &mut RecvBatch, count: usize) -> Vec<Vec<u8>> {
    let mut datagrams = Vec::new();
    while datagrams.len() < count {
        let messages = socket.recv_batch(batch, usize::MAX, Wait::Block).unwrap();
        assert!(messages > 0, "only {} of {count} datagrams came", datagrams.len());
        datagrams.extend(batch.messages().flat_map(|message| message.datagrams().map(<[u8]>::to_vec)));
    }
    assert_eq!(datagrams.len(), count);
    datagrams
}

/// Bytes that leave in datagrams of `segment` bytes each, by one send.
fn train<'a>(to: &UdpSocket, head: &'a [u8], segment: u16) -> Outgoing<'a> {
    let to = Some(to.local_addr());
    Outgoing { to, head, tail: &[], segment, joins: false, type_of_service: None }
}

/// `count` bytes that differ from position to position.
fn pattern(count: usize) -> Vec<u8> {
    (0..count).map(|index| (index * 7 + index / 251) as u8).collect()
}
