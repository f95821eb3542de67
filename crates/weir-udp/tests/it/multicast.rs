//! Multicast on the loopback interface.

use std::net::{Ipv4Addr, SocketAddrV4};

use weir_udp::{
    Interface, MulticastInterface, Outgoing, RecvBatch, SocketOptions, UdpError, UdpSocket, Wait, interfaces,
};

use crate::{open, take};

#[test]
fn members_on_loopback_share_a_group() {
    let group = Ipv4Addr::new(239, 255, 77, 1);
    let first = member(0);
    let second = member(first.local_addr().port());
    // By address and by index.
    first.join_multicast(group, Ipv4Addr::LOCALHOST).unwrap();
    second.join_multicast(group, loopback().index).unwrap();
    let to = SocketAddrV4::new(group, first.local_addr().port());
    let sender = sender();
    sender.send_one(&Outgoing::datagram(Some(to), b"all")).unwrap();
    let mut batch = RecvBatch::new(2);
    assert_eq!(take(&first, &mut batch, 1), [b"all"]);
    assert_eq!(take(&second, &mut batch, 1), [b"all"]);

    first.leave_multicast(group, Ipv4Addr::LOCALHOST).unwrap();
    sender.send_one(&Outgoing::datagram(Some(to), b"you")).unwrap();
    // Loopback delivers before the send returns, so a datagram that is missing now will not arrive.
    assert_eq!(take(&second, &mut batch, 1), [b"you"]);
    assert_eq!(first.recv_batch(&mut batch, 2, Wait::DontWait).unwrap(), 0);
}

#[test]
fn groups_of_other_sockets_are_not_received() {
    let group = Ipv4Addr::new(239, 255, 77, 2);
    let joined = member(0);
    let other = member(joined.local_addr().port());
    joined.join_multicast(group, Ipv4Addr::LOCALHOST).unwrap();
    let to = SocketAddrV4::new(group, joined.local_addr().port());
    sender().send_one(&Outgoing::datagram(Some(to), b"one")).unwrap();
    let mut batch = RecvBatch::new(2);
    assert_eq!(take(&joined, &mut batch, 1), [b"one"]);
    assert_eq!(other.recv_batch(&mut batch, 2, Wait::DontWait).unwrap(), 0);
}

#[test]
fn multicast_leaves_from_the_interface_with_the_index() {
    let lo = loopback();
    let with_index = |index| SocketOptions {
        multicast_interface: Some(lo.address),
        multicast_interface_index: Some(index),
        ..SocketOptions::new(SocketAddrV4::new(lo.address, 0))
    };
    let group = Ipv4Addr::new(239, 255, 77, 4);
    let member = member(0);
    member.join_multicast(group, lo.index).unwrap();
    let to = SocketAddrV4::new(group, member.local_addr().port());
    open(&with_index(lo.index)).send_one(&Outgoing::datagram(Some(to), b"one")).unwrap();
    assert_eq!(take(&member, &mut RecvBatch::new(2), 1), [b"one"]);
    let text = UdpSocket::bind(&with_index(u32::MAX >> 1)).unwrap_err().to_string();
    assert!(text.contains("IP_MULTICAST_IF"), "{text}");
}

#[test]
fn refused_membership_names_group_and_interface() {
    let socket = member(0);
    let group = Ipv4Addr::new(239, 255, 77, 3);
    let check = |result: Result<(), UdpError>, parts: [&str; 3]| {
        let text = result.unwrap_err().to_string();
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    };
    let lo = Ipv4Addr::LOCALHOST;
    check(socket.join_multicast(lo, lo), ["join", "127.0.0.1", "use a group from"]);
    check(socket.leave_multicast(group, lo), ["leave", "239.255.77.3", "not a member"]);
    check(socket.join_multicast(group, u32::MAX), ["join", "index 4294967295", "no interface"]);
    socket.join_multicast(group, lo).unwrap();
    check(socket.join_multicast(group, MulticastInterface::Address(lo)), ["join", "239.255.77.3", "already"]);
}

fn member(port: u16) -> UdpSocket {
    let bind = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port);
    open(&SocketOptions { reuse_address: true, ..SocketOptions::new(bind) })
}

/// A socket that sends multicast by the loopback interface only.
fn sender() -> UdpSocket {
    open(&SocketOptions {
        multicast_interface: Some(Ipv4Addr::LOCALHOST),
        multicast_ttl: 0,
        ..SocketOptions::new(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))
    })
}

fn loopback() -> Interface {
    interfaces().unwrap().into_iter().find(|interface| interface.is_loopback).unwrap()
}
