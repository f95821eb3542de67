//! Batches, timeouts, truncation, drops.

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use weir_udp::{Outgoing, RECV_BUFFER_BYTES, RecvBatch, SocketOptions, UdpSocket, Wait};

use crate::{GENEROUS, LOOPBACK, open, pair, pattern, take, train};

#[test]
fn batch_takes_what_is_there_up_to_the_limit() {
    let (sender, receiver) = pair();
    send(&sender, &receiver, &[b"a", b"bb", b"", b"dddd", b"eeeee"]);
    let mut batch = RecvBatch::new(3);
    let mut receive = |limit| {
        let count = receiver.recv_batch(&mut batch, limit, Wait::Block).unwrap();
        assert_eq!(batch.messages().len(), count);
        assert!(batch.messages().all(|message| message.from == sender.local_addr() && !message.truncated));
        batch.messages().map(|message| message.bytes.to_vec()).collect::<Vec<_>>()
    };
    assert_eq!(receive(1), [b"a"]);
    assert_eq!(receive(2), [&b"bb"[..], b""]);
    // More than the batch can hold, and more than has arrived: it does not wait for the third.
    assert_eq!(receive(100), [&b"dddd"[..], b"eeeee"]);
}

#[test]
fn nothing_there_is_no_message() {
    let (_sender, receiver) = pair();
    let mut batch = RecvBatch::new(2);
    for limit in [0, 1, 2] {
        assert_eq!(receiver.recv_batch(&mut batch, limit, Wait::DontWait).unwrap(), 0);
        assert_eq!(batch.messages().len(), 0);
        assert!(batch.get(0).is_none());
    }
    let error = receiver.recv(&mut [0; 8], Wait::DontWait).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
}

#[test]
fn earlier_messages_do_not_show_in_a_later_batch() {
    let sender = open(&SocketOptions::new(LOOPBACK));
    let receiver = open(&SocketOptions { gro: true, ..SocketOptions::new(LOOPBACK) });
    let mut batch = RecvBatch::new(4);
    let bytes = pattern(1000);
    let item = train(&receiver, &bytes, 100);
    sender.send_one(&item).unwrap();
    assert_eq!(receiver.recv_batch(&mut batch, 4, Wait::Block).unwrap(), 1);
    assert_eq!(batch.get(0).map(|message| message.segment), Some(100));
    send(&sender, &receiver, &[b"next"]);
    assert_eq!(receiver.recv_batch(&mut batch, 1, Wait::Block).unwrap(), 1);
    assert_eq!(batch.get(0).map(|message| (message.bytes, message.segment)), Some((&b"next"[..], 4)));
    assert!(batch.get(1).is_none());
    assert_eq!(receiver.recv_batch(&mut batch, 4, Wait::DontWait).unwrap(), 0);
    assert!(batch.get(0).is_none());
}

#[test]
fn the_kernel_tells_when_a_datagram_came_where_it_is_asked_to() {
    let sender = open(&SocketOptions::new(LOOPBACK));
    let receiver = open(&SocketOptions { gro: true, timestamps: true, ..SocketOptions::new(LOOPBACK) });
    let mut batch = RecvBatch::new(2);
    assert_eq!(batch.stamped_ns(), None);
    let wall_ns = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let before = wall_ns();
    let bytes = pattern(1000);
    let together = train(&receiver, &bytes, 100);
    sender.send_one(&together).unwrap();
    send(&sender, &receiver, &[b"next"]);
    let mut last = before;
    for segment in [100, 4] {
        assert_eq!(receiver.recv_batch(&mut batch, 1, Wait::Block).unwrap(), 1);
        assert_eq!(batch.get(0).map(|message| message.segment), Some(segment));
        let stamped = batch.stamped_ns().unwrap();
        // The wall clock may be slewed meanwhile.
        assert!(stamped + 1_000_000 >= last && stamped <= wall_ns() + 1_000_000);
        last = stamped;
    }
    let (sender, receiver) = pair();
    send(&sender, &receiver, &[b"unasked"]);
    let mut batch = RecvBatch::new(1);
    assert_eq!(receiver.recv_batch(&mut batch, 1, Wait::Block).unwrap(), 1);
    assert_eq!(batch.stamped_ns(), None);
}

#[test]
fn empty_datagram_is_a_message_without_datagrams() {
    let (sender, receiver) = pair();
    send(&sender, &receiver, &[b""]);
    let mut batch = RecvBatch::new(2);
    assert_eq!(receiver.recv_batch(&mut batch, 2, Wait::Block).unwrap(), 1);
    let message = batch.get(0).unwrap();
    assert_eq!((message.bytes, message.datagram_count(), message.datagrams().count()), (&b""[..], 1, 0));
}

#[test]
fn timeout_ends_a_blocking_receive() {
    let (sender, receiver) = pair();
    let mut batch = RecvBatch::new(2);
    // Less than a microsecond must not mean "no timeout".
    for timeout in [Duration::from_millis(1), Duration::from_nanos(1), Duration::ZERO] {
        receiver.set_recv_timeout(Some(timeout)).unwrap();
        for limit in [1, 2] {
            assert_eq!(receiver.recv_batch(&mut batch, limit, Wait::Block).unwrap(), 0);
        }
        let error = receiver.recv(&mut [0; 8], Wait::Block).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }
    receiver.set_recv_timeout(None).unwrap();
    send(&sender, &receiver, &[b"x"]);
    assert_eq!(receiver.recv(&mut [0; 8], Wait::Block).unwrap(), 1);
}

#[test]
fn receive_timeout_reaches_the_kernel_when_it_changes() {
    let socket = open(&SocketOptions::new(LOOPBACK));
    let in_force = || socket2::SockRef::from(&socket).read_timeout().unwrap();
    assert_eq!(in_force(), Some(GENEROUS));
    for timeout in [Some(Duration::from_millis(1500)), None, Some(GENEROUS), Some(GENEROUS)] {
        socket.set_recv_timeout(timeout).unwrap();
        assert_eq!(in_force(), timeout);
    }
}

#[test]
fn truncated_datagram_is_marked() {
    let (sender, receiver) = pair();
    send(&sender, &receiver, &[b"0123456789", b"0123", b"01234567"]);
    let mut batch = RecvBatch::with_buffer_bytes(4, 8);
    assert_eq!(batch.buffer_bytes(), 8);
    assert_eq!(receiver.recv_batch(&mut batch, 1, Wait::Block).unwrap(), 1);
    assert_eq!(
        batch.get(0).map(|message| (message.bytes, message.truncated)),
        Some((&b"01234567"[..], true))
    );
    assert_eq!(receiver.recv_batch(&mut batch, 4, Wait::Block).unwrap(), 2);
    let found: Vec<_> = batch.messages().map(|message| (message.bytes, message.truncated)).collect();
    assert_eq!(found, [(&b"0123"[..], false), (b"01234567", false)]);
}

#[test]
fn buffers_of_a_batch_do_not_overlap() {
    let (sender, receiver) = pair();
    let longest: Vec<_> = (1..=3).map(|fill| vec![fill; 65_507]).collect();
    let mut batch = RecvBatch::new(3);
    assert_eq!((batch.capacity(), batch.buffer_bytes()), (3, RECV_BUFFER_BYTES));
    send(&sender, &receiver, &longest.iter().map(Vec::as_slice).collect::<Vec<_>>());
    assert!(take(&receiver, &mut batch, 3) == longest);
}

#[test]
fn refusal_of_an_earlier_send_is_not_about_receiving() {
    let (left, right) = pair();
    left.connect(right.local_addr()).unwrap();
    // Connected to itself, it refuses datagrams of others.
    right.connect(right.local_addr()).unwrap();
    assert_eq!(left.send(b"is not there").unwrap(), 12);
    assert_eq!(left.recv_batch(&mut RecvBatch::new(2), 2, Wait::DontWait).unwrap(), 0);
    // The single receive reports it, once.
    assert_eq!(left.send(b"is not there").unwrap(), 12);
    let receive = || left.recv(&mut [0; 8], Wait::DontWait).unwrap_err().kind();
    assert_eq!(receive(), io::ErrorKind::ConnectionRefused);
    assert_eq!(receive(), io::ErrorKind::WouldBlock);
}

#[test]
fn drops_for_want_of_buffer_space_are_counted() {
    let sender = open(&SocketOptions::new(LOOPBACK));
    // The kernel turns this into the smallest allowed buffer.
    let receiver = open(&SocketOptions { recv_buffer: Some(1), ..SocketOptions::new(LOOPBACK) });
    let sent = 200;
    for _ in 0..sent {
        send(&sender, &receiver, &[&[7; 500]]);
    }
    let dropped = receiver.kernel_drops().unwrap();
    assert!(dropped > 0 && dropped < sent, "{dropped} of {sent}");
    // The queued datagrams precede the first drop: only a later datagram reports it.
    let mut batch = RecvBatch::new(256);
    assert_eq!(receiver.recv_batch(&mut batch, 256, Wait::Block).unwrap(), (sent - dropped) as usize);
    assert_eq!(batch.kernel_drops(), 0);
    send(&sender, &receiver, &[b"after"]);
    assert_eq!(receiver.recv_batch(&mut batch, 256, Wait::Block).unwrap(), 1);
    assert_eq!(batch.kernel_drops(), dropped);
    assert_eq!(batch.get(0).map(|message| message.segment), Some(5), "that was another control message");
}

#[test]
fn batch_moves_between_threads() {
    let (sender, receiver) = pair();
    let mut batch = Box::new(RecvBatch::new(2));
    send(&sender, &receiver, &[b"one"]);
    assert_eq!(receiver.recv_batch(&mut batch, 2, Wait::Block).unwrap(), 1);
    let mut batch = std::thread::spawn(move || {
        assert_eq!(batch.get(0).map(|message| message.bytes), Some(&b"one"[..]));
        *batch
    })
    .join()
    .unwrap();
    send(&sender, &receiver, &[b"two", b"three"]);
    assert_eq!(take(&receiver, &mut batch, 2), [&b"two"[..], b"three"]);
}

#[test]
fn a_buffer_is_given_away_with_its_message_and_the_next_one_is_received_into_the_other() {
    let (sender, receiver) = pair();
    let mut batch = RecvBatch::with_buffer_bytes(2, 100);
    let mut buffer = vec![0; 100].into_boxed_slice();
    let other = buffer.as_ptr();
    send(&sender, &receiver, &[b"kept", b"gone"]);
    assert_eq!(receiver.recv_batch(&mut batch, 2, Wait::Block).unwrap(), 2);
    assert_eq!(batch.single_datagram_len(), None, "there are two");
    assert!(batch.exchange_first(&mut buffer));
    assert_eq!((batch.messages().len(), batch.get(0).is_none()), (0, true));
    send(&sender, &receiver, &[b"next", b"last"]);
    assert_eq!(take(&receiver, &mut batch, 2), [b"next", b"last"]);
    assert_eq!(batch.get(0).map(|message| message.bytes.as_ptr()), Some(other));
    assert_eq!(&buffer[..4], b"kept");
    send(&sender, &receiver, &[b"alone"]);
    assert_eq!(receiver.recv_batch(&mut batch, 2, Wait::Block).unwrap(), 1);
    assert_eq!(batch.single_datagram_len(), Some(5));
    let mut wrong = vec![0; 99].into_boxed_slice();
    assert!(!batch.exchange_first(&mut wrong), "the kernel would write beyond its end");
    assert_eq!(batch.get(0).map(|message| message.bytes), Some(&b"alone"[..]));
}

fn send(sender: &UdpSocket, receiver: &UdpSocket, datagrams: &[&[u8]]) {
    for datagram in datagrams {
        let sent = sender.send_one(&Outgoing::datagram(Some(receiver.local_addr()), datagram)).unwrap();
        assert_eq!(sent, datagram.len());
    }
}
