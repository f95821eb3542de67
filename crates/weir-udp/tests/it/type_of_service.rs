//! DSCP and ECN: set per socket and per message, and reported with what is received.

use weir_udp::{Outgoing, RecvBatch, SendScratch, SocketOptions, UdpSocket, Wait};

use crate::{LOOPBACK, open, pattern};

/// EF (RFC 3246), and with ECT(0).
const EF: u8 = 46 << 2;
const ECT: u8 = 2;

fn reporting() -> UdpSocket {
    let receiver = open(&SocketOptions { gro: true, ..SocketOptions::new(LOOPBACK) });
    receiver.report_type_of_service().unwrap();
    receiver
}

/// Receives so many datagrams; returns the bytes and the type of service of each.
fn received(receiver: &UdpSocket, count: usize) -> Vec<(Vec<u8>, u8)> {
    let mut batch = RecvBatch::new(8);
    let mut all = Vec::new();
    while all.len() < count {
        receiver.recv_batch(&mut batch, 8, Wait::Block).unwrap();
        for message in batch.messages() {
            all.extend(message.datagrams().map(|datagram| (datagram.to_vec(), message.type_of_service)));
        }
    }
    all
}

#[test]
fn a_message_has_its_own_or_that_of_the_socket() {
    let receiver = reporting();
    let sender = open(&SocketOptions { type_of_service: Some(EF), ..SocketOptions::new(LOOPBACK) });
    let to = Some(receiver.local_addr());
    let datagram = |bytes, type_of_service| Outgoing { type_of_service, ..Outgoing::datagram(to, bytes) };
    assert_eq!(sender.type_of_service(), EF);
    sender.send_one(&datagram(b"one", None)).unwrap();
    sender.send_one(&datagram(b"two", Some(ECT))).unwrap();
    let items = [datagram(b"three", Some(EF | ECT)), datagram(b"four", None), datagram(b"five", Some(0))];
    assert_eq!(sender.send_all(items, &mut SendScratch::new()).system_calls, 1);
    sender.set_type_of_service(ECT).unwrap();
    sender.send_one(&datagram(b"six", None)).unwrap();
    let found = received(&receiver, 6);
    let found: Vec<_> = found.iter().map(|(bytes, tos)| (&bytes[..], *tos)).collect();
    let expected: [(&[u8], u8); 6] =
        [(b"one", EF), (b"two", ECT), (b"three", EF | ECT), (b"four", EF), (b"five", 0), (b"six", ECT)];
    assert_eq!(found, expected);
}

#[test]
fn a_connected_socket_sends_it_per_message_too() {
    let (receiver, sender) = (reporting(), open(&SocketOptions::new(LOOPBACK)));
    sender.connect(receiver.local_addr()).unwrap();
    let mut scratch = SendScratch::new();
    for type_of_service in [Some(ECT), None] {
        let item = Outgoing { type_of_service, ..Outgoing::datagram(None, b"lone") };
        assert_eq!(sender.send_all([item], &mut scratch).datagrams, 1);
    }
    assert_eq!(received(&receiver, 2), [(b"lone".to_vec(), ECT), (b"lone".to_vec(), 0)]);
}

#[test]
fn a_segmented_send_has_one_for_all_and_others_do_not_join_it() {
    let (receiver, sender) = (reporting(), open(&SocketOptions::new(LOOPBACK)));
    let bytes = pattern(1000);
    let to = Some(receiver.local_addr());
    let fields = [Some(ECT), Some(ECT), None, Some(EF)];
    let items = bytes.chunks(250).zip(fields).map(|(head, type_of_service)| Outgoing {
        segment: 50,
        joins: true,
        type_of_service,
        ..Outgoing::datagram(to, head)
    });
    let outcome = sender.send_all(items.collect::<Vec<_>>(), &mut SendScratch::new());
    assert_eq!((outcome.datagrams, outcome.refused), (20, 0));
    let found = received(&receiver, 20);
    assert_eq!(found.iter().flat_map(|(bytes, _)| bytes.clone()).collect::<Vec<_>>(), bytes);
    let expected = [[ECT; 5], [ECT; 5], [0; 5], [EF; 5]].concat();
    assert_eq!(found.iter().map(|(_, tos)| *tos).collect::<Vec<_>>(), expected);
}

#[test]
fn what_the_kernel_does_not_split_keeps_it() {
    let receiver = reporting();
    let sender = open(&SocketOptions { gso: false, ..SocketOptions::new(LOOPBACK) });
    let bytes = pattern(500);
    let train = Outgoing {
        segment: 100,
        type_of_service: Some(ECT),
        ..Outgoing::datagram(Some(receiver.local_addr()), &bytes)
    };
    assert_eq!(sender.send_all([train], &mut SendScratch::new()).datagrams, 5);
    assert!(received(&receiver, 5).iter().all(|(bytes, tos)| bytes.len() == 100 && *tos == ECT));
}

#[test]
fn nothing_is_reported_unless_it_was_asked_for() {
    let receiver = open(&SocketOptions::new(LOOPBACK));
    let sender = open(&SocketOptions { type_of_service: Some(EF), ..SocketOptions::new(LOOPBACK) });
    sender.send_one(&Outgoing::datagram(Some(receiver.local_addr()), b"one")).unwrap();
    assert_eq!(received(&receiver, 1), [(b"one".to_vec(), 0)]);
}
