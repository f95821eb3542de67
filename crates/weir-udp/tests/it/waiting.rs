//! `poll` and the waker.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use weir_udp::{MAX_POLL_SOCKETS, Outgoing, Ready, SocketOptions, UdpSocket, Wait, Waker, poll};

use crate::{GENEROUS, LOOPBACK, open, pair};

#[test]
fn poll_names_the_readable_sockets() {
    let (sender, first) = pair();
    let second = open(&SocketOptions::new(LOOPBACK));
    let sockets = [&sender, &first, &second];
    assert_eq!(poll(&sockets, None, Some(Duration::ZERO)).unwrap(), Ready::default());
    let to_second = Outgoing::datagram(Some(second.local_addr()), b"x");
    sender.send_one(&to_second).unwrap();
    let ready = poll(&sockets, None, Some(GENEROUS)).unwrap();
    assert_eq!([0, 1, 2].map(|index| ready.is_readable(index)), [false, false, true]);
    assert!(!ready.is_readable(3) && !ready.is_readable(1000) && !ready.is_woken() && !ready.is_empty());
    assert_eq!(ready.readable().collect::<Vec<_>>(), [2]);
    // Still readable until it is received; no time limit needed.
    assert!(poll(&sockets, None, None).unwrap().is_readable(2));
    second.recv(&mut [0; 8], Wait::DontWait).unwrap();
    assert!(poll(&sockets, None, Some(Duration::ZERO)).unwrap().is_empty());
}

#[test]
fn poll_ends_when_the_time_is_up() {
    let (_sender, receiver) = pair();
    let waker = Waker::new().unwrap();
    let timeout = Some(Duration::from_nanos(10));
    assert!(poll(&[&receiver], Some(&waker), timeout).unwrap().is_empty());
    assert!(poll::<&UdpSocket>(&[], None, timeout).unwrap().is_empty());
}

#[test]
fn error_of_a_send_makes_the_socket_readable() {
    let (left, right) = pair();
    left.connect(right.local_addr()).unwrap();
    // Connected to itself, it refuses datagrams of others.
    right.connect(right.local_addr()).unwrap();
    left.send(b"is not there").unwrap();
    assert!(poll(&[&left], None, Some(GENEROUS)).unwrap().is_readable(0));
    assert!(left.recv(&mut [0; 8], Wait::DontWait).is_err());
    assert!(poll(&[&left], None, Some(Duration::ZERO)).unwrap().is_empty());
}

#[test]
fn wakes_are_seen_until_they_are_drained() {
    let (_sender, receiver) = pair();
    let waker = Waker::new().unwrap();
    let look = || poll(&[&receiver], Some(&waker), Some(Duration::ZERO)).unwrap();
    assert!(!waker.drain());
    for _ in 0..3 {
        waker.wake();
        waker.wake();
        assert!(look().is_woken() && !look().is_readable(0) && !look().is_empty());
        assert!(waker.drain());
        assert!(look().is_empty());
        assert!(!waker.drain());
    }
}

#[test]
fn wake_ends_the_wait_of_another_thread() {
    let waker = Waker::new().unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| poll::<&UdpSocket>(&[], Some(&waker), Some(GENEROUS)).unwrap());
        waker.wake();
        assert!(waiting.join().unwrap().is_woken());
    });
}

#[test]
fn no_wake_is_lost() {
    // In each round the waiting thread must see the flag that was set before the wake; a lost wake
    // shows as a poll that times out.
    let waker = Waker::new().unwrap();
    let flag = AtomicBool::new(false);
    let rounds = 20_000;
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..rounds {
                while flag.swap(true, Ordering::Relaxed) {
                    std::hint::spin_loop();
                    thread::yield_now();
                }
                waker.wake();
            }
        });
        let mut seen = 0;
        while seen < rounds {
            assert!(
                poll::<&UdpSocket>(&[], Some(&waker), Some(GENEROUS)).unwrap().is_woken(),
                "lost after {seen}"
            );
            waker.drain();
            if flag.swap(false, Ordering::Relaxed) {
                seen += 1;
            }
        }
    });
}

#[test]
fn too_many_sockets_are_refused() {
    let socket = open(&SocketOptions::new(LOOPBACK));
    let waker = Waker::new().unwrap();
    let sockets = [&socket; MAX_POLL_SOCKETS + 1];
    assert!(poll(&sockets[1..], Some(&waker), Some(Duration::ZERO)).unwrap().is_empty());
    let error = poll(&sockets, Some(&waker), Some(Duration::ZERO)).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
}
