//! What plain loopback cannot show: a path MTU smaller than a segment. The test moves its own
//! thread into a new network namespace, which takes privileges and the `ip` program; without them
//! it prints a note and passes.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::process::Command;

use weir_udp::{Outgoing, RecvBatch, SendScratch, SocketOptions, UdpSocket, Wait, interfaces, path_mtu_to};

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
        let item =
            Outgoing { to: Some(to), head: &bytes[..3333], tail: &bytes[3333..], segment, joins: false };
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

/// Moves the calling thread into a network namespace with only a loopback interface, of MTU 1500.
fn enter_namespace() -> Result<(), String> {
    // SAFETY: the call affects the calling thread only, which has no socket yet.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return Err(format!("no new network namespace: {}", std::io::Error::last_os_error()));
    }
    // A child inherits the namespace of the thread that starts it.
    let status = Command::new("ip").args(["link", "set", "lo", "up", "mtu", "1500"]).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("ip ended with {status}")),
        Err(error) => Err(format!("cannot run ip: {error}")),
    }
}
