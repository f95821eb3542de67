//! What plain loopback cannot show: a path MTU smaller than a segment, interfaces that change, a full send buffer. Each
//! test moves its own thread into a new network namespace, which takes privileges and the `ip` program; without them
//! it prints a note and passes.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::process::Command;
use std::time::Duration;

use weir_udp::{
    NetworkWatch, Outgoing, RecvBatch, SendScratch, SocketOptions, UdpSocket, Wait, interfaces, path_mtu_to,
    poll,
};

#[test]
fn segment_over_the_path_mtu_is_sent_uncut() {
    if let Err(reason) = enter_namespace() {
        println!("skipped: {reason}");
        return;
    }
    let options = SocketOptions::new(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));
    let sender = UdpSocket::bind(&options).unwrap();
    let receiver = UdpSocket::bind(&options).unwrap();
    let to = receiver.local_addr();
    assert_eq!(path_mtu_to(to).unwrap(), 1500);
    let found = interfaces().unwrap();
    assert_eq!(
        found.iter().map(|found| (found.name.as_str(), found.mtu)).collect::<Vec<_>>(),
        [("lo", 1500)]
    );

    let bytes: Vec<u8> = (0..10_000).map(|index| index as u8).collect();
    let mut scratch = SendScratch::new();
    let mut batch = RecvBatch::new(32);
    // 1472 bytes and the headers are just 1500; one byte more does not fit. Twice, because the
    // second time reuses the arrays of the first.
    for (segment, fallbacks) in [(1472, 0), (1473, 1), (5000, 1), (5000, 1)] {
        let item = Outgoing {
            to: Some(to),
            head: &bytes[..3333],
            tail: &bytes[3333..],
            segment,
            joins: false,
            type_of_service: None,
        };
        let outcome = sender.send_all(&[item, item], &mut scratch);
        assert_eq!(outcome.datagrams as usize, 2 * item.datagram_count(), "{segment}: {outcome:?}");
        assert_eq!((outcome.gso_fallbacks, outcome.refused), (2 * fallbacks, 0), "{segment}: {outcome:?}");
        let mut received = Vec::new();
        while receiver.recv_batch(&mut batch, 32, Wait::DontWait).unwrap() > 0 {
            received.extend(batch.messages().map(|message| message.bytes.to_vec()));
        }
        let expected: Vec<&[u8]> = bytes.chunks(segment.into()).collect();
        assert!(received == [&expected[..], &expected].concat(), "{segment}");
    }
}

#[test]
fn changes_of_interfaces_and_addresses_are_noticed() {
    if let Err(reason) = enter_namespace() {
        println!("skipped: {reason}");
        return;
    }
    let watch = NetworkWatch::new().unwrap();
    let is_readable = || poll(&[&watch], None, Some(Duration::ZERO)).unwrap().is_readable(0);
    assert!(!is_readable() && !watch.drain());
    let carriers = || -> Vec<_> {
        let found = interfaces().unwrap();
        found.iter().map(|it| (it.name.clone(), it.address.to_string(), it.has_carrier)).collect()
    };
    let lo = ("lo".to_owned(), "127.0.0.1".to_owned(), true);
    let far = |has_carrier| ("far".to_owned(), "10.77.0.1".to_owned(), has_carrier);
    for (change, expected) in [
        ("link add far type veth peer name near", vec![lo.clone()]),
        ("address add 10.77.0.1/24 dev far", vec![lo.clone(), far(false)]),
        ("link set far up", vec![lo.clone(), far(false)]),
        ("link set near up", vec![lo.clone(), far(true)]),
        ("link set near down", vec![lo.clone(), far(false)]),
        ("address del 10.77.0.1/24 dev far", vec![lo.clone()]),
        ("link del far", vec![lo.clone()]),
    ] {
        ip(change).unwrap();
        // The kernel reports a change of the carrier with a delay.
        assert!(poll(&[&watch], None, Some(Duration::from_secs(60))).unwrap().is_readable(0), "{change}");
        assert!(watch.drain(), "{change}");
        while carriers() != expected {
            poll(&[&watch], None, Some(Duration::from_secs(60))).unwrap();
            assert!(watch.drain(), "{change}: {:?}", carriers());
        }
        // Late reports of this change must not pass for the next one's.
        watch.drain();
    }
}

#[test]
fn a_send_that_does_not_wait_reports_a_full_send_buffer() {
    let steps = [
        "link add one type veth peer name other",
        "address add 10.9.0.1/24 dev one",
        "link set one up",
        "link set other up",
    ];
    if let Err(reason) = enter_namespace().and_then(|()| steps.into_iter().try_for_each(ip)) {
        println!("skipped: {reason}");
        return;
    }
    let address = SocketAddrV4::new(Ipv4Addr::new(10, 9, 0, 1), 0);
    let options = SocketOptions { send_buffer: Some(1), ..SocketOptions::new(address) };
    let socket = UdpSocket::bind(&options).unwrap();
    // No host has this address. What is sent there waits for an answer to ARP, and uses up the send buffer.
    let no_host = SocketAddrV4::new(Ipv4Addr::new(10, 9, 0, 2), 9);
    let refused = (0..1000).find_map(|_| socket.send_now(&[0; 1000], no_host).err()).unwrap();
    assert_eq!(refused.kind(), std::io::ErrorKind::WouldBlock);
}

/// Moves the calling thread into a network namespace with only a loopback interface, of MTU 1500.
fn enter_namespace() -> Result<(), String> {
    // SAFETY: the call affects the calling thread only, which has no socket yet.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return Err(format!("no new network namespace: {}", std::io::Error::last_os_error()));
    }
    ip("link set lo up mtu 1500")
}

/// Runs `ip`: a child inherits the namespace of the thread that starts it.
fn ip(arguments: &str) -> Result<(), String> {
    match Command::new("ip").args(arguments.split(' ')).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("ip ended with {status}")),
        Err(error) => Err(format!("cannot run ip: {error}")),
    }
}
