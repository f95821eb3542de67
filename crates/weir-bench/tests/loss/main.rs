//! Losses made in one place each, over a virtual cable between two network namespaces: the
//! attribution must name that place. The kernel decides how many are lost, but nothing else can
//! drop.
//!
//! Namespaces need root and some programs; without them a test reports that it is skipped and
//! passes, unless `WEIR_REQUIRE_NETNS` is set.

#![expect(clippy::unwrap_used, reason = "a helper of tests that can't go on fails the test")]

mod emulated;

use std::fs::File;
use std::io;
use std::net::SocketAddrV4;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use weir_bench::control::Role;
use weir_bench::path::{PathSpec, VirtualLink};
use weir_telemetry::{
    Carried, DropCounters, EngineCounts, LossAttribution, LossEvidence, LossWatch, attribute,
};
use weir_udp::{Outgoing, RecvBatch, SendScratch, SocketOptions, UdpSocket, Wait};

/// Datagrams of a test: fewer than a processor's backlog holds, so that it drops none.
const COUNT: u32 = 500;
const BYTES: usize = 1000;

/// Silence that means that nothing will arrive.
const QUIET: Duration = Duration::from_millis(500);

/// What is done to the datagrams.
struct Fault {
    /// Commands run inside the sender's namespace, and inside the receiver's.
    at_sender: &'static [&'static str],
    at_receiver: &'static [&'static str],
    /// Socket buffers, bytes.
    send_buffer: usize,
    recv_buffer: usize,
    /// A sender that does not wait for room.
    is_impatient: bool,
    /// Datagrams in one send.
    train: u32,
    /// After every so many sent datagrams the receiver may read one train.
    reads_one_of: Option<u32>,
}

const NONE: Fault = Fault {
    at_sender: &[],
    at_receiver: &[],
    send_buffer: 4 << 20,
    recv_buffer: 4 << 20,
    is_impatient: false,
    train: 1,
    reads_one_of: None,
};

#[test]
fn a_whole_cable_loses_nothing() {
    let Some(loss) = transfer("veth", &NONE) else { return };
    assert_eq!(loss.lost, 0, "{loss:?}");
}

#[test]
fn a_drop_rule_at_the_ingress_hook_is_the_path() {
    let fault = Fault {
        at_receiver: &[
            "nft add table netdev fault",
            "nft add chain netdev fault drops { type filter hook ingress device weir0 priority 0; }",
            "nft add rule netdev fault drops ip protocol udp numgen inc mod 2 == 0 drop",
        ],
        ..NONE
    };
    let Some(loss) = transfer("veth", &fault) else { return };
    assert_eq!((loss.lost, loss.path), (u64::from(COUNT) / 2, u64::from(COUNT) / 2), "{loss:?}");
}

#[test]
fn a_small_receive_buffer_is_the_receivers_socket() {
    // The receiver starts after all is sent.
    let fault = Fault { recv_buffer: 4096, reads_one_of: Some(u32::MAX), ..NONE };
    let Some(loss) = transfer("veth", &fault) else { return };
    assert!(loss.lost > 0 && loss.receiver_socket == loss.lost, "{loss:?}");
}

#[test]
fn a_slow_reader_is_the_receivers_socket() {
    let fault = Fault { recv_buffer: 64 << 10, reads_one_of: Some(10), ..NONE };
    let Some(loss) = transfer("veth", &fault) else { return };
    assert!(loss.lost > 0 && loss.receiver_socket == loss.lost, "{loss:?}");
}

#[test]
fn a_full_token_bucket_is_the_senders_queue() {
    let fault =
        Fault { at_sender: &["tc qdisc add dev weir0 root tbf rate 1mbit burst 1600 limit 4000"], ..NONE };
    let Some(loss) = transfer("veth", &fault) else { return };
    assert!(loss.lost > 0 && loss.sender_queue == loss.lost, "{loss:?}");
}

#[test]
fn a_sender_without_buffer_space_is_the_senders_socket() {
    // The queue has room for all of it, the socket's buffer for a few that wait there.
    let fault = Fault {
        at_sender: &["tc qdisc add dev weir0 root tbf rate 1mbit burst 1600 limit 10000000"],
        send_buffer: 4096,
        is_impatient: true,
        ..NONE
    };
    let Some(loss) = transfer("veth", &fault) else { return };
    assert!(loss.lost > 0 && loss.sender_refused == loss.lost, "{loss:?}");
}

#[test]
fn trains_that_are_dropped_whole_are_counted_as_what_they_held() {
    // The receiver accepts coalesced datagrams, and the cable does not segment them: the kernel
    // counts one drop for fifty.
    let fault = Fault { recv_buffer: 8192, train: 50, reads_one_of: Some(u32::MAX), ..NONE };
    let Some(loss) = transfer("veth,mtu=9000", &fault) else { return };
    assert!(loss.lost > 0 && loss.lost.is_multiple_of(50), "{loss:?}");
    assert_eq!(loss.receiver.socket, Some(loss.lost / 50), "{loss:?}");
    assert_eq!((loss.receiver_socket, loss.samples_per_drop), (loss.lost, Some(50.0)), "{loss:?}");
}

/// Sends [`COUNT`] datagrams over a cable with that fault, and attributes the missing ones; `None`
/// where cables are not available.
fn transfer(path: &str, fault: &Fault) -> Option<LossAttribution> {
    if is_refused() {
        return None;
    }
    let cable = VirtualLink::lay(path.parse::<PathSpec>().unwrap()).unwrap();
    let (from, to) = (cable.place(Role::Publisher), cable.place(Role::Subscriber));
    fault.at_sender.iter().for_each(|command| run_inside(&from.namespace, command));
    fault.at_receiver.iter().for_each(|command| run_inside(&to.namespace, command));
    let (address_told, address) = channel();
    let (turn_given, turns) = channel();
    let (sent, received) = thread::scope(|scope| {
        let receiver = scope.spawn(move || {
            enter(&to.namespace);
            let options = SocketOptions {
                recv_buffer: Some(fault.recv_buffer),
                gro: fault.train > 1,
                ..SocketOptions::new(SocketAddrV4::new(to.address, 0))
            };
            let socket = UdpSocket::bind(&options).unwrap();
            let watch = LossWatch::start(Some(to.interface));
            address_told.send(socket.local_addr()).unwrap();
            let count = receive(&socket, &turns);
            // The sender's socket belongs to this process, too, but to another namespace.
            (count, watch.counters())
        });
        let sender = scope.spawn(move || {
            enter(&from.namespace);
            let options = SocketOptions {
                send_buffer: Some(fault.send_buffer),
                ..SocketOptions::new(SocketAddrV4::new(from.address, 0))
            };
            let socket = UdpSocket::bind(&options).unwrap();
            let watch = LossWatch::start(Some(from.interface));
            socket.connect(address.recv().unwrap()).unwrap();
            let refused = send(&socket, fault, &turn_given);
            (refused, watch.counters())
        });
        (sender.join().unwrap(), receiver.join().unwrap())
    });
    Some(explain(sent, received))
}

fn explain(
    (refused, sender): (u64, DropCounters),
    (count, receiver): (u64, DropCounters),
) -> LossAttribution {
    let lost = u64::from(COUNT) - count;
    let max = 128;
    let carried = Carried::measured(u64::from(COUNT) - refused, &sender, count, &receiver, max);
    let evidence = LossEvidence::new(
        lost,
        EngineCounts { refused, ..EngineCounts::default() },
        &sender,
        &receiver,
        carried,
    );
    LossAttribution { sender, receiver, ..attribute(&evidence) }
}

/// Sends everything, and gives the receiver its turns; returns how many datagrams were refused.
fn send(socket: &UdpSocket, fault: &Fault, turns: &Sender<()>) -> u64 {
    if fault.is_impatient {
        rustix::io::ioctl_fionbio(socket.as_fd(), true).unwrap();
    }
    let bytes = vec![7; BYTES * fault.train as usize];
    let segment = if fault.train > 1 { BYTES as u16 } else { 0 };
    let train = Outgoing { to: None, head: &bytes, tail: &[], segment, joins: false, type_of_service: None };
    let mut scratch = SendScratch::new();
    let mut refused = 0;
    for sent in (fault.train..=COUNT).step_by(fault.train as usize) {
        if fault.train > 1 {
            refused += socket.send_all(&[train], &mut scratch).refused;
        } else {
            match socket.send(&bytes) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => refused += 1,
                Err(error) => panic!("{error}"),
            }
        }
        if sent.is_multiple_of(fault.reads_one_of.unwrap_or(1)) {
            turns.send(()).unwrap();
        }
    }
    refused
}

/// Receives one message for each turn, and everything when there are no more turns; returns how many datagrams came.
fn receive(socket: &UdpSocket, turns: &Receiver<()>) -> u64 {
    let mut batch = RecvBatch::new(1);
    let mut count = 0;
    let mut take = |wait| match socket.recv_batch(&mut batch, usize::MAX, wait) {
        Ok(_) => {
            let datagrams: usize = batch.messages().map(|message| message.datagrams().count()).sum();
            count += datagrams as u64;
            datagrams > 0
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
        Err(error) => panic!("{error}"),
    };
    while turns.recv().is_ok() {
        take(Wait::DontWait);
    }
    socket.set_recv_timeout(Some(QUIET)).unwrap();
    while take(Wait::Block) {}
    count
}

/// Moves this thread into a network namespace.
fn enter(namespace: &Path) {
    let file = File::open(namespace).unwrap();
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
}

fn run_inside(namespace: &Path, command: &str) {
    let mut inside = Command::new("nsenter");
    inside.arg(format!("--net={}", namespace.display())).args(command.split(' '));
    let output = inside.output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Whether there can be no cable here.
#[expect(clippy::print_stdout, reason = "a test that skips itself says so")]
fn is_refused() -> bool {
    let works = |words: &[&str]| {
        Command::new(words[0]).args(&words[1..]).output().is_ok_and(|output| output.status.success())
    };
    let needed: [&[&str]; 3] = [&["unshare", "--net", "ip", "link"], &["nft", "--version"], &["tc", "-V"]];
    let missing = needed.iter().find(|words| !works(words));
    if let Some(words) = missing {
        assert!(std::env::var_os("WEIR_REQUIRE_NETNS").is_none(), "`{}` does not work", words.join(" "));
        println!("skipped: `{}` does not work here (root, iproute2, nftables)", words.join(" "));
    }
    missing.is_some()
}
