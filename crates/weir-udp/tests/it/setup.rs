//! Opening and configuring sockets.

use std::io::{self, IoSlice};
use std::net::{Ipv4Addr, SocketAddrV4};

use weir_udp::{MAX_GSO_BYTES, Outgoing, RecvBatch, SocketOptions, UdpError, UdpSocket, Wait, path_mtu_to};

use crate::{LOOPBACK, open, pair, pattern, take};

#[test]
fn bind_reports_the_port_that_the_kernel_chose() {
    let socket = open(&SocketOptions::new(LOOPBACK));
    assert_eq!(*socket.local_addr().ip(), Ipv4Addr::LOCALHOST);
    assert_ne!(socket.local_addr().port(), 0);
}

#[test]
fn port_in_use_is_named_with_the_remedy() {
    let first = open(&SocketOptions::new(LOOPBACK));
    let error = UdpSocket::bind(&SocketOptions::new(first.local_addr())).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    let text = error.to_string();
    assert!(text.contains(&first.local_addr().to_string()), "{text}");
    assert!(text.contains("reuse_address"), "{text}");
}

#[test]
fn foreign_address_is_refused() {
    // 192.0.2.0/24 is for documentation: no host has it.
    let address = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 0);
    let error = UdpSocket::bind(&SocketOptions::new(address)).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable);
    assert!(matches!(error, UdpError::Bind { .. }), "{error:?}");
}

#[test]
fn reuse_address_shares_a_port() {
    let shared = |bind| SocketOptions { reuse_address: true, ..SocketOptions::new(bind) };
    let first = open(&shared(LOOPBACK));
    let second = open(&shared(first.local_addr()));
    assert_eq!(first.local_addr(), second.local_addr());
}

#[test]
fn granted_buffers_are_read_back() {
    let plain = open(&SocketOptions::new(LOOPBACK));
    assert!(plain.granted_recv_buffer() > 0 && plain.granted_send_buffer() > 0);
    // 64 KiB is below every host's limit; the kernel doubles it.
    let options = SocketOptions {
        recv_buffer: Some(65_536),
        send_buffer: Some(32_768),
        ..SocketOptions::new(LOOPBACK)
    };
    let socket = open(&options);
    assert_eq!((socket.granted_recv_buffer(), socket.granted_send_buffer()), (131_072, 65_536));
}

#[test]
fn too_large_a_buffer_is_not_an_error() {
    // A privileged process gets all of it, others what the host allows.
    let socket = open(&SocketOptions {
        recv_buffer: Some(usize::MAX),
        send_buffer: Some(64 << 20),
        ..SocketOptions::new(LOOPBACK)
    });
    let plain = open(&SocketOptions::new(LOOPBACK));
    assert!(socket.granted_recv_buffer() >= plain.granted_recv_buffer());
    assert!(socket.granted_send_buffer() >= plain.granted_send_buffer());
}

#[test]
fn the_limit_of_the_host_holds_for_buffers_that_are_not_forced() {
    let limit = |name: &str| -> usize {
        std::fs::read_to_string(format!("/proc/sys/net/core/{name}")).unwrap().trim().parse().unwrap()
    };
    let socket = open(&SocketOptions {
        recv_buffer: Some(usize::MAX),
        send_buffer: Some(usize::MAX),
        force_buffers: false,
        ..SocketOptions::new(LOOPBACK)
    });
    assert!(socket.granted_recv_buffer() <= 2 * limit("rmem_max"), "{}", socket.granted_recv_buffer());
    assert!(socket.granted_send_buffer() <= 2 * limit("wmem_max"), "{}", socket.granted_send_buffer());
}

#[test]
fn connected_sockets_exchange_single_datagrams() {
    let (left, right) = pair();
    left.connect(right.local_addr()).unwrap();
    right.connect(left.local_addr()).unwrap();
    let mut buffer = [0; 2000];
    for len in [1, 32, 1472, 2000] {
        let bytes = pattern(len);
        assert_eq!(left.send(&bytes).unwrap(), len);
        assert_eq!(right.recv(&mut buffer, Wait::Block).unwrap(), len);
        assert_eq!(buffer[..len], bytes);
        assert_eq!(right.send(&bytes).unwrap(), len);
        assert_eq!(left.recv(&mut buffer, Wait::Block).unwrap(), len);
        // The same from several parts.
        let (front, rest) = bytes.split_at(len / 3);
        let (middle, back) = rest.split_at(rest.len() / 2);
        assert_eq!(left.send_vectored(&[front, middle, back].map(IoSlice::new)).unwrap(), len);
        buffer.fill(0);
        assert_eq!(right.recv(&mut buffer, Wait::Block).unwrap(), len);
        assert_eq!(buffer[..len], bytes);
    }
}

#[test]
fn connect_chooses_the_local_address() {
    let peer = open(&SocketOptions::new(LOOPBACK));
    let socket = open(&SocketOptions::default());
    assert_eq!(*socket.local_addr().ip(), Ipv4Addr::UNSPECIFIED);
    socket.connect(peer.local_addr()).unwrap();
    assert_eq!(*socket.local_addr().ip(), Ipv4Addr::LOCALHOST);
}

#[test]
fn connect_without_a_route_says_so() {
    // A socket bound to loopback reaches nothing else; nothing is sent.
    let socket = open(&SocketOptions::new(LOOPBACK));
    let error = socket.connect(SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 9)).unwrap_err();
    assert!(matches!(error, UdpError::Connect { .. }), "{error:?}");
    assert!(error.to_string().contains("192.0.2.1:9"), "{error}");
}

#[test]
fn longest_datagram_passes_and_one_byte_more_is_refused() {
    let (left, right) = pair();
    left.connect(right.local_addr()).unwrap();
    let bytes = pattern(MAX_GSO_BYTES + 1);
    assert_eq!(left.send(&bytes[..MAX_GSO_BYTES]).unwrap(), MAX_GSO_BYTES);
    let mut buffer = vec![0; MAX_GSO_BYTES];
    assert_eq!(right.recv(&mut buffer, Wait::Block).unwrap(), MAX_GSO_BYTES);
    assert!(buffer == bytes[..MAX_GSO_BYTES]);
    assert!(left.send(&bytes).is_err());
}

#[test]
fn path_mtu_of_loopback_is_large() {
    let (left, right) = pair();
    assert_eq!(left.path_mtu().unwrap_err().kind(), io::ErrorKind::NotConnected);
    left.connect(right.local_addr()).unwrap();
    let mtu = left.path_mtu().unwrap();
    assert!(mtu >= 1500, "{mtu}");
    assert_eq!(path_mtu_to(right.local_addr()).unwrap(), mtu);
    assert_eq!(path_mtu_to(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap(), mtu);
}

#[test]
fn offload_can_be_declined() {
    let plain = open(&SocketOptions { gso: false, ..SocketOptions::new(LOOPBACK) });
    assert!(!plain.gso_supported() && !plain.gro_enabled());
    let offloading = open(&SocketOptions { gro: true, ..SocketOptions::new(LOOPBACK) });
    assert!(offloading.gso_supported() && offloading.gro_enabled());
}

#[test]
fn only_datagrams_to_the_chosen_addresses_are_received() {
    // All of 127.0.0.0/8 is local.
    let [first, second, other] = [1, 2, 3].map(|last| Ipv4Addr::new(127, 0, 1, last));
    let everywhere = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
    let receiver = open(&SocketOptions { only_at: vec![first, second], ..SocketOptions::new(everywhere) });
    let sender = open(&SocketOptions::new(LOOPBACK));
    let port = receiver.local_addr().port();
    let send = |to: Ipv4Addr| {
        let datagram = to.octets();
        let outgoing = Outgoing::datagram(Some(SocketAddrV4::new(to, port)), &datagram);
        sender.send_one(&outgoing).unwrap();
    };
    let mut batch = RecvBatch::new(4);
    let to_all = || [other, Ipv4Addr::LOCALHOST, first, second].map(send);
    to_all();
    assert_eq!(take(&receiver, &mut batch, 2), [first.octets(), second.octets()]);
    assert_eq!(receiver.kernel_drops().unwrap(), 2);
    receiver.receive_only_at(&[other]).unwrap();
    to_all();
    assert_eq!(take(&receiver, &mut batch, 1), [other.octets()]);
    // Loopback delivers before the send returns.
    assert_eq!(receiver.recv_batch(&mut batch, 4, Wait::DontWait).unwrap(), 0);
}

#[test]
fn a_process_can_wake_itself_whatever_the_chosen_addresses() {
    let everywhere = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
    let only_at = vec![Ipv4Addr::new(192, 0, 2, 1)];
    let receiver = open(&SocketOptions { only_at, ..SocketOptions::new(everywhere) });
    let to = Some(SocketAddrV4::new(Ipv4Addr::LOCALHOST, receiver.local_addr().port()));
    receiver.send_one(&Outgoing::datagram(to, &[])).unwrap();
    let mut batch = RecvBatch::new(1);
    assert_eq!(receiver.recv_batch(&mut batch, 1, Wait::Block).unwrap(), 1);
    assert!(batch.get(0).unwrap().bytes.is_empty());
}

#[test]
fn a_list_of_addresses_beyond_the_kernels_limit_is_refused() {
    let socket = open(&SocketOptions::new(LOOPBACK));
    let addresses: Vec<_> = (0..3000).map(|n| Ipv4Addr::from_bits(0x0a00_0000 + n)).collect();
    assert_eq!(socket.receive_only_at(&addresses).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    socket.receive_only_at(&addresses[..200]).unwrap();
}
