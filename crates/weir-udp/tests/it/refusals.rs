//! Refusals that ICMP reports, and sends that do not wait.

use std::net::{Ipv4Addr, SocketAddrV4};

use weir_udp::{Refusal, SocketOptions, poll};

use crate::{GENEROUS, LOOPBACK, open};

#[test]
fn a_destination_without_a_socket_is_reported_once_for_each_datagram() {
    let prober = open(&SocketOptions { report_refusals: true, ..SocketOptions::new(LOOPBACK) });
    let there = open(&SocketOptions::new(LOOPBACK));
    let gone = open(&SocketOptions::new(LOOPBACK)).local_addr();
    let refused = Refusal { to: gone, mtu: None };
    assert_eq!(prober.take_refusal(), None);
    prober.send_now(b"there", there.local_addr()).unwrap();
    prober.send_now(b"gone", gone).unwrap();
    assert!(poll(&[&prober], None, Some(GENEROUS)).unwrap().is_readable(0));
    assert_eq!(prober.take_refusal(), Some(refused));
    assert_eq!(prober.take_refusal(), None);
    // The error itself was not fetched by a call yet, or was by the first one.
    let _ = prober.send_now(b"gone", gone);
    let _ = prober.send_now(b"gone", gone);
    assert!(poll(&[&prober], None, Some(GENEROUS)).unwrap().is_readable(0));
    assert_eq!(prober.take_refusal(), Some(refused));
}

#[test]
fn a_socket_without_the_option_reports_nothing() {
    let plain = open(&SocketOptions::new(LOOPBACK));
    let gone = open(&SocketOptions::new(LOOPBACK)).local_addr();
    plain.send_now(b"gone", gone).unwrap();
    plain.send_now(b"gone", gone).unwrap();
    assert_eq!(plain.take_refusal(), None);
}

#[test]
fn a_send_that_does_not_wait_reports_the_errors_of_the_kernel() {
    let socket = open(&SocketOptions::new(LOOPBACK));
    let there = open(&SocketOptions::new(LOOPBACK));
    assert_eq!(socket.send_now(b"datagram", there.local_addr()).unwrap(), 8);
    let too_long = vec![0; 70_000];
    assert!(socket.send_now(&too_long, there.local_addr()).is_err());
    let elsewhere = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 9);
    assert!(socket.send_now(b"datagram", elsewhere).is_err());
}
