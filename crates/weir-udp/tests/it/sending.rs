//! One message, batches, and messages that the kernel splits.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4};
use std::os::fd::AsRawFd;

use weir_udp::{
    MAX_BATCH, MAX_GSO_SEGMENTS, Outgoing, RecvBatch, SendOutcome, SendScratch, SendScratchTo, SocketOptions,
    UdpSocket, Wait,
};

use crate::{LOOPBACK, open, pair, pattern, take, train};

#[test]
fn send_one_joins_head_and_tail() {
    let (sender, receiver) = pair();
    let mut batch = RecvBatch::new(4);
    let to = Some(receiver.local_addr());
    for (head, tail) in [(&b"head"[..], &b"tail"[..]), (b"head", b""), (b"", b"tail")] {
        let item = Outgoing { to, head, tail, segment: 0, joins: false, type_of_service: None };
        assert_eq!(sender.send_one(&item).unwrap(), head.len() + tail.len());
        assert_eq!(take(&receiver, &mut batch, 1), [[head, tail].concat()]);
    }
}

#[test]
fn send_one_to_the_connected_peer_needs_no_address() {
    let (sender, receiver) = pair();
    let item = Outgoing::datagram(None, b"hello");
    assert!(sender.send_one(&item).is_err(), "not connected yet");
    sender.connect(receiver.local_addr()).unwrap();
    assert_eq!(sender.send_one(&item).unwrap(), 5);
    assert_eq!(take(&receiver, &mut RecvBatch::new(1), 1), [b"hello"]);
}

#[test]
fn send_one_cuts_or_says_that_it_does_not() {
    let (sender, receiver) = pair();
    let bytes = pattern(250);
    let item = train(&receiver, &bytes, 100);
    assert_eq!(sender.send_one(&item).unwrap(), 250);
    let expected: Vec<&[u8]> = bytes.chunks(100).collect();
    assert_eq!(take(&receiver, &mut RecvBatch::new(4), 3), expected);

    let plain = open(&SocketOptions { gso: false, ..SocketOptions::new(LOOPBACK) });
    assert_eq!(plain.send_one(&item).unwrap_err().kind(), io::ErrorKind::Unsupported);
    // A single datagram needs no splitting.
    assert_eq!(plain.send_one(&Outgoing { segment: 250, ..item }).unwrap(), 250);
}

#[test]
fn send_all_of_nothing_does_nothing() {
    let (sender, _receiver) = pair();
    check(&sender.send_all(&[] as &[Outgoing<'_>], &mut SendScratch::new()), 0, 0, 0);
}

#[test]
fn send_all_of_mixed_sizes_takes_one_call_per_batch() {
    let (sender, receiver) = pair();
    let to = Some(receiver.local_addr());
    let bytes = pattern(9000);
    let expected: Vec<&[u8]> = (0..MAX_BATCH + 6).map(|index| &bytes[..1 + index * 40]).collect();
    let items: Vec<_> = expected
        .iter()
        .map(|bytes| {
            let (head, tail) = bytes.split_at(bytes.len() / 3);
            Outgoing { to, head, tail, segment: 0, joins: false, type_of_service: None }
        })
        .collect();
    let mut scratch = SendScratch::new();
    // Twice: the scratch of the first call must not affect the second.
    for _ in 0..2 {
        let sum = expected.iter().map(|bytes| bytes.len()).sum::<usize>();
        check(&sender.send_all(&items, &mut scratch), items.len(), sum, 2);
        assert_eq!(take(&receiver, &mut RecvBatch::new(16), items.len()), expected);
    }
}

#[test]
fn send_all_serves_several_destinations() {
    let (sender, first) = pair();
    let second = open(&SocketOptions::new(LOOPBACK));
    let items = [
        Outgoing::datagram(Some(first.local_addr()), b"one"),
        Outgoing::datagram(Some(second.local_addr()), b"two"),
        Outgoing {
            to: Some(first.local_addr()),
            head: b"thr",
            tail: b"ee",
            segment: 3,
            joins: false,
            type_of_service: None,
        },
    ];
    check(&sender.send_all(&items, &mut SendScratch::new()), 4, 11, 1);
    assert_eq!(take(&first, &mut RecvBatch::new(8), 3), [&b"one"[..], b"thr", b"ee"]);
    assert_eq!(take(&second, &mut RecvBatch::new(8), 1), [b"two"]);
}

#[test]
fn cut_message_arrives_coalesced_when_the_receiver_agrees() {
    // The last segment is shorter, and segments cross from head to tail.
    let sender = open(&SocketOptions::new(LOOPBACK));
    let receiver = open(&SocketOptions { gro: true, ..SocketOptions::new(LOOPBACK) });
    let bytes = pattern(10 * 500 + 123);
    let (head, tail) = bytes.split_at(777);
    let item = Outgoing {
        to: Some(receiver.local_addr()),
        head,
        tail,
        segment: 500,
        joins: false,
        type_of_service: None,
    };
    assert_eq!(item.datagram_count(), 11);
    check(&sender.send_all(&[item], &mut SendScratch::new()), 11, bytes.len(), 1);

    let mut batch = RecvBatch::new(16);
    assert_eq!(receiver.recv_batch(&mut batch, 16, Wait::Block).unwrap(), 1);
    let message = batch.get(0).unwrap();
    assert_eq!((message.segment, message.bytes, message.truncated), (500, &bytes[..], false));
    assert_eq!(message.datagram_count(), 11);
    assert_eq!(message.from, sender.local_addr());
    let expected: Vec<&[u8]> = bytes.chunks(500).collect();
    assert_eq!(message.datagrams().collect::<Vec<_>>(), expected);
    // A datagram that was not coalesced has its own length.
    sender.send_one(&Outgoing::datagram(item.to, b"alone")).unwrap();
    assert_eq!(receiver.recv_batch(&mut batch, 16, Wait::Block).unwrap(), 1);
    assert_eq!(batch.get(0).map(|message| (message.segment, message.bytes)), Some((5, &b"alone"[..])));
}

#[test]
fn cut_message_arrives_as_datagrams_otherwise() {
    let (sender, receiver) = pair();
    let bytes = pattern(10 * 500 + 123);
    let item = train(&receiver, &bytes, 500);
    check(&sender.send_all(&[item], &mut SendScratch::new()), 11, bytes.len(), 1);
    let expected: Vec<&[u8]> = bytes.chunks(500).collect();
    assert_eq!(take(&receiver, &mut RecvBatch::new(4), 11), expected);
}

#[test]
fn longer_messages_leave_as_several() {
    let (sender, receiver) = pair();
    let to = Some(receiver.local_addr());
    let mut scratch = SendScratch::new();
    let mut batch = RecvBatch::new(64);
    // Too many segments for one message: 64 and then 36.
    let bytes = pattern(99 * 20 + 7);
    let (head, tail) = bytes.split_at(64 * 20 + 3);
    let item = Outgoing { to, head, tail, segment: 20, joins: false, type_of_service: None };
    check(&sender.send_all(&[item], &mut scratch), 100, bytes.len(), 1);
    assert_eq!(take(&receiver, &mut batch, 100), bytes.chunks(20).collect::<Vec<_>>());
    assert!(item.datagram_count() > MAX_GSO_SEGMENTS);
    // Too many bytes for one message: 8 segments of 8000, and then one and a half.
    let bytes = pattern(76_000);
    let item = Outgoing { to, head: &bytes, tail: &[], segment: 8000, joins: false, type_of_service: None };
    check(&sender.send_all(&[item], &mut scratch), 10, bytes.len(), 1);
    assert_eq!(take(&receiver, &mut batch, 10), bytes.chunks(8000).collect::<Vec<_>>());
}

#[test]
fn socket_without_gso_sends_datagram_by_datagram() {
    let sender = open(&SocketOptions { gso: false, ..SocketOptions::new(LOOPBACK) });
    let receiver = open(&SocketOptions::new(LOOPBACK));
    let bytes = pattern(1050);
    let item = train(&receiver, &bytes, 100);
    let outcome = sender.send_all(&[item], &mut SendScratch::new());
    check(&outcome, 11, 1050, 1);
    assert_eq!(take(&receiver, &mut RecvBatch::new(16), 11), bytes.chunks(100).collect::<Vec<_>>());
}

#[test]
fn refused_cut_is_sent_again_datagram_by_datagram() {
    // The kernel splits nothing without checksums, whatever the route: the refusal is certain.
    let (sender, receiver) = pair();
    leave_out_checksums(&sender);
    let to = Some(receiver.local_addr());
    let bytes = pattern(1050);
    let (head, tail) = bytes.split_at(333);
    let items = [
        Outgoing::datagram(to, b"before"),
        Outgoing { to, head, tail, segment: 100, joins: false, type_of_service: None },
        Outgoing::datagram(to, b"after"),
    ];
    let outcome = sender.send_all(&items, &mut SendScratch::new());
    assert_eq!((outcome.datagrams, outcome.bytes), (13, 1061));
    assert_eq!((outcome.gso_fallbacks, outcome.refused), (1, 0));
    assert!(outcome.last_error.is_none(), "{:?}", outcome.last_error);
    let mut expected: Vec<&[u8]> = vec![b"before"];
    expected.extend(bytes.chunks(100));
    expected.push(b"after");
    assert_eq!(take(&receiver, &mut RecvBatch::new(16), 13), expected);
}

#[test]
fn refused_datagram_does_not_stop_the_others() {
    let (sender, receiver) = pair();
    let to = Some(receiver.local_addr());
    let oversized = pattern(70_000);
    // A socket bound to loopback cannot reach the outside; one datagram cannot have 70 000 bytes.
    let outside = Some(SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 9));
    let items = [
        Outgoing::datagram(outside, b"nowhere"),
        Outgoing::datagram(to, b"one"),
        Outgoing::datagram(to, &oversized),
        Outgoing::datagram(outside, b"nowhere"),
        Outgoing::datagram(to, b"two"),
        Outgoing::datagram(to, &oversized),
    ];
    let outcome = sender.send_all(&items, &mut SendScratch::new());
    assert_eq!((outcome.datagrams, outcome.bytes, outcome.refused), (2, 6, 4));
    assert_eq!(outcome.gso_fallbacks, 0);
    let error = outcome.last_error.and_then(|error| error.raw_os_error());
    assert_eq!(error, Some(libc::EMSGSIZE));
    assert_eq!(take(&receiver, &mut RecvBatch::new(4), 2), [b"one", b"two"]);
}

#[test]
fn closed_port_does_not_poison_the_rest() {
    let (sender, receiver) = pair();
    let to = Some(receiver.local_addr());
    let closed_port = closed_port();
    let closed = Some(closed_port.local_addr());
    let items = [
        Outgoing::datagram(closed, b"lost"),
        Outgoing::datagram(to, b"one"),
        Outgoing::datagram(closed, b"lost"),
        Outgoing::datagram(closed, b"lost"),
        Outgoing::datagram(to, b"two"),
    ];
    let mut scratch = SendScratch::new();
    let mut batch = RecvBatch::new(4);
    // Unconnected: the kernel does not report that the port is closed.
    for _ in 0..3 {
        check(&sender.send_all(&items, &mut scratch), 5, 18, 1);
        assert_eq!(take(&receiver, &mut batch, 2), [b"one", b"two"]);
    }
}

#[test]
fn connected_socket_counts_the_refusal_of_a_closed_port() {
    // On loopback the refusal arrives before the send returns. The next send reports it, whatever
    // its destination, and sends nothing; the one after that is not affected.
    let (sender, receiver) = pair();
    let closed = closed_port();
    sender.connect(closed.local_addr()).unwrap();
    let to_peer = Outgoing::datagram(None, b"lost");
    let elsewhere = Outgoing::datagram(Some(receiver.local_addr()), b"one");
    let mut scratch = SendScratch::new();
    check(&sender.send_all(&[to_peer], &mut scratch), 1, 4, 1);
    let outcome = sender.send_all(&[elsewhere, elsewhere], &mut scratch);
    assert_eq!((outcome.datagrams, outcome.refused), (1, 1));
    assert_eq!(outcome.last_error.map(|error| error.kind()), Some(io::ErrorKind::ConnectionRefused));
    assert_eq!(take(&receiver, &mut RecvBatch::new(4), 1), [b"one"]);
}

/// Checks that nothing was refused, and the figures.
fn check(outcome: &SendOutcome, datagrams: usize, bytes: usize, system_calls: u64) {
    assert!(outcome.last_error.is_none(), "{:?}", outcome.last_error);
    assert_eq!((outcome.refused, outcome.gso_fallbacks), (0, 0));
    assert_eq!((outcome.datagrams, outcome.bytes), (datagrams as u64, bytes as u64));
    assert_eq!(outcome.system_calls, system_calls);
}

fn leave_out_checksums(socket: &UdpSocket) {
    let on: libc::c_int = 1;
    // SAFETY: the socket is open, and the kernel reads one `int` from a live local.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NO_CHECK,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    assert_eq!(result, 0);
}

/// A socket whose port refuses datagrams of others: it is connected to itself.
fn closed_port() -> UdpSocket {
    let socket = open(&SocketOptions::new(LOOPBACK));
    socket.connect(socket.local_addr()).unwrap();
    socket
}

#[test]
fn messages_that_join_leave_as_one_and_arrive_as_they_were() {
    let (sender, receiver) = pair();
    let to = Some(receiver.local_addr());
    let bytes = pattern(1000);
    let joined = |from: usize, split: usize, end: usize| Outgoing {
        to,
        head: &bytes[from..split],
        tail: &bytes[split..end],
        segment: 0,
        joins: true,
        type_of_service: None,
    };
    let items = [
        joined(0, 10, 100),
        Outgoing { segment: 100, ..joined(100, 100, 300) },
        joined(300, 400, 400),
        // Shorter, hence the last to join the first ones.
        joined(400, 450, 460),
        joined(460, 470, 560),
        // Longer than the one before it.
        joined(560, 560, 700),
        Outgoing { joins: false, ..joined(700, 800, 840) },
        joined(840, 860, 980),
    ];
    let expected: Vec<&[u8]> = [(0, 100), (100, 200), (200, 300), (300, 400), (400, 460), (460, 560)]
        .into_iter()
        .chain([(560, 700), (700, 840), (840, 980)])
        .map(|(from, end)| &bytes[from..end])
        .collect();
    let mut scratch = SendScratch::new();
    check(&sender.send_all(&items, &mut scratch), 9, 980, 1);
    assert_eq!(take(&receiver, &mut RecvBatch::new(16), 9), expected);
    // Five messages instead of eight.
    let train = &items[..4];
    check(&sender.send_all(train, &mut scratch), 5, 460, 1);
    // Without the kernel's help each is sent separately.
    leave_out_checksums(&sender);
    let _ = take(&receiver, &mut RecvBatch::new(16), 5);
    let outcome = sender.send_all(&items, &mut scratch);
    assert_eq!((outcome.datagrams, outcome.bytes, outcome.refused), (9, 980, 0));
    assert!(outcome.gso_fallbacks > 0);
    assert_eq!(take(&receiver, &mut RecvBatch::new(16), 9), expected);
}

#[test]
fn joined_messages_stay_within_what_one_send_takes() {
    let (sender, receiver) = pair();
    let bytes = pattern(200 * 30);
    let to = Some(receiver.local_addr());
    let items = bytes.chunks(30).map(|chunk| {
        let (head, tail) = chunk.split_at(7);
        Outgoing { to, head, tail, segment: 0, joins: true, type_of_service: None }
    });
    check(&sender.send_all(items, &mut SendScratch::new()), 200, bytes.len(), 2);
    assert_eq!(take(&receiver, &mut RecvBatch::new(64), 200), bytes.chunks(30).collect::<Vec<_>>());
    // Fewer long ones fit.
    let long = pattern(9 * 20_000);
    let items = long.chunks(20_000).map(|head| Outgoing { joins: true, ..Outgoing::datagram(to, head) });
    let outcome = sender.send_all(items, &mut SendScratch::new());
    assert_eq!((outcome.datagrams, outcome.bytes), (9, long.len() as u64));
    assert_eq!(take(&receiver, &mut RecvBatch::new(64), 9), long.chunks(20_000).collect::<Vec<_>>());
}

#[test]
fn without_being_connected_all_goes_to_one_destination_of_either_version_of_ip() {
    for bind in [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), SocketAddr::from((Ipv6Addr::LOCALHOST, 0))] {
        let options = SocketOptions { recv_buffer: Some(4 << 20), ..SocketOptions::new(bind) };
        let (sender, receiver) = (open(&options), open(&options));
        let mut scratch = SendScratchTo::new(receiver.local_address());
        let mut batch = RecvBatch::new(MAX_BATCH);
        let bytes = pattern(20 * (MAX_BATCH + 1));
        let each = bytes.chunks(20).map(|datagram| Outgoing::datagram(None, datagram));
        check(&sender.send_all_to(each, &mut scratch), MAX_BATCH + 1, bytes.len(), 2);
        assert_eq!(take(&receiver, &mut batch, MAX_BATCH + 1).concat(), bytes, "{bind}");
        // One message alone, and one that the kernel splits.
        let alone = [Outgoing::datagram(None, b"alone")];
        check(&sender.send_all_to(alone, &mut scratch), 1, 5, 1);
        assert_eq!(take(&receiver, &mut batch, 1), [b"alone"]);
        let train = Outgoing {
            to: None,
            head: &bytes[..1000],
            tail: &[],
            segment: 100,
            joins: false,
            type_of_service: None,
        };
        check(&sender.send_all_to([train], &mut scratch), 10, 1000, 1);
        assert_eq!(take(&receiver, &mut batch, 10).concat(), bytes[..1000], "{bind}");
        if bind.is_ipv4() {
            // And one that it does not split, which is sent datagram by datagram.
            leave_out_checksums(&sender);
            let outcome = sender.send_all_to([train], &mut scratch);
            assert_eq!((outcome.datagrams, outcome.gso_fallbacks, outcome.refused), (10, 1, 0));
            assert_eq!(take(&receiver, &mut batch, 10).concat(), bytes[..1000]);
        }
    }
}
