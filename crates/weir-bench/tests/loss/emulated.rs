//! Datagrams through the link emulator: its counters must agree with the two ends.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::mpsc::channel;
use std::thread;

use weir_bench::control::Role;
use weir_bench::path::{PathSpec, VirtualLink};
use weir_results::LinkFigures;
use weir_udp::{Outgoing, RecvBatch, SendScratch, SocketOptions, UdpSocket, Wait};

use super::{BYTES, enter, is_refused, receive};

/// Datagrams in one segmented send.
const TRAIN: usize = 40;

/// More packets than the kernel sends by itself on a new device (IGMP, MLD, router solicitations).
const OTHERS_MAX: u64 = 50;

/// The IP packet of a datagram.
const PACKET_BYTES: u64 = BYTES as u64 + 28;

#[test]
fn everything_offered_is_delivered_or_dropped() {
    // The queue takes about half of it.
    let link = "tun,rate=20M,rtt=2ms,jitter=1ms,queue=1M,loss=5%,duplicate=2%,reorder=1%";
    let Some(([received, _], figures)) = exchange(link, [2000, 0]) else { return };
    let down = &figures.to_subscribers;
    let ended = down.delivered_packets + down.queue_full_packets + down.lost_packets + down.too_big_packets;
    assert_eq!(down.offered_packets + down.duplicated_packets, ended, "{down:?}");
    // The kernel cut the segmented sends: each datagram is a packet with a fate of its own.
    assert!((2000..2000 + OTHERS_MAX).contains(&down.offered_packets), "{down:?}");
    assert!(down.offered_bytes >= 2000 * PACKET_BYTES && down.too_big_packets == 0, "{down:?}");
    let others =
        down.delivered_packets.checked_sub(received).expect("nothing arrives that was not delivered");
    assert!(others < OTHERS_MAX, "{received} of {down:?}");
    let counts =
        [down.queue_full_packets, down.lost_packets, down.duplicated_packets, down.held_back_packets];
    assert!(counts.iter().all(|count| *count > 0), "{down:?}");
    // A megabyte at 20 Mbit/s takes 419 ms.
    assert!(down.queue_max_bytes <= 1 << 20 && down.queue_max_ms <= 420.0, "{down:?}");
    assert_eq!(figures.overrun_packets, 0);
    let series = &down.series;
    assert_eq!(series.offered_bytes.iter().sum::<u64>(), down.offered_bytes);
    assert_eq!(series.delivered_bytes.iter().sum::<u64>(), down.delivered_bytes);
}

#[test]
fn each_direction_has_its_own_link() {
    let Some(([down, up], figures)) = exchange("tun,down-rate=50M,queue=2M,up-loss=50%", [500, 1000]) else {
        return;
    };
    assert_eq!(down, 500, "{figures:?}");
    assert_eq!(figures.to_subscribers.lost_packets, 0);
    let lost = figures.to_publishers.lost_packets;
    assert!((350..650).contains(&lost) && up >= 1000 - lost, "{up}, {figures:?}");
    assert!(figures.to_subscribers.queue_mean_ms > 10.0, "500 packets at 50 Mbit/s take 82 ms: {figures:?}");
    assert_eq!(figures.to_publishers.queue_max_bytes, 0, "there is no rate");
}

#[test]
fn what_finds_a_queue_arrives_marked() {
    if is_refused() {
        return;
    }
    let link = VirtualLink::lay("tun,rate=20M,queue=2M,ecn=5ms".parse::<PathSpec>().unwrap()).unwrap();
    link.begin_case(1).unwrap();
    let (from, to) = (link.place(Role::Publisher), link.place(Role::Subscriber));
    let (address_told, address) = channel();
    // Of those that arrived, by their ECN field.
    let fields = thread::scope(|scope| {
        let receiver = scope.spawn(move || {
            enter(&to.namespace);
            let options =
                SocketOptions { recv_buffer: Some(4 << 20), ..SocketOptions::new(any_port(to.address)) };
            let socket = UdpSocket::bind(&options).unwrap();
            socket.report_type_of_service().unwrap();
            address_told.send(socket.local_addr()).unwrap();
            let (mut batch, mut fields) = (RecvBatch::new(8), [0_u64; 4]);
            // Nothing is lost.
            while fields.iter().sum::<u64>() < 400 {
                socket.recv_batch(&mut batch, 8, Wait::Block).unwrap();
                for message in batch.messages() {
                    fields[usize::from(message.type_of_service & 3)] += message.datagram_count() as u64;
                    assert_eq!(message.type_of_service >> 2, 46);
                }
            }
            fields
        });
        scope.spawn(move || {
            enter(&from.namespace);
            let socket = UdpSocket::bind(&SocketOptions::new(any_port(from.address))).unwrap();
            socket.connect(address.recv().unwrap()).unwrap();
            let bytes = [7; BYTES];
            for ecn in [0, 2].repeat(200) {
                let type_of_service = Some(46 << 2 | ecn);
                let datagram = Outgoing { type_of_service, ..Outgoing::datagram(None, &bytes) };
                assert_eq!(socket.send_one(&datagram).unwrap(), BYTES);
            }
        });
        receiver.join().unwrap()
    });
    let figures = link.end_case().unwrap().figures.unwrap();
    let marked = figures.to_subscribers.marked_packets;
    // The queue of 400 datagrams takes longer than 5 ms.
    assert!(fields[0] == 200 && fields[1] == 0 && fields[2] + fields[3] == 200, "{fields:?}");
    assert!(fields[3] > 0 && fields[3] == marked && figures.to_publishers.marked_packets == 0, "{fields:?}");
}

#[test]
fn nothing_is_lost_or_counted_outside_a_case() {
    if is_refused() {
        return;
    }
    let link = VirtualLink::lay("tun,loss=99%".parse::<PathSpec>().unwrap()).unwrap();
    assert_eq!(send(&link, Role::Publisher, 200), 200);
    link.begin_case(1).unwrap();
    assert!(send(&link, Role::Publisher, 200) < 50);
    let figures = link.end_case().unwrap().figures.unwrap();
    assert!((200..200 + OTHERS_MAX).contains(&figures.to_subscribers.offered_packets), "{figures:?}");
    assert_eq!(send(&link, Role::Publisher, 200), 200);
}

/// Sends that many datagrams down and up an emulated link, during one case; returns how many
/// arrived, and what the link counted. `None` where links are not available.
fn exchange(link: &str, [down, up]: [usize; 2]) -> Option<([u64; 2], LinkFigures)> {
    if is_refused() {
        return None;
    }
    let link = VirtualLink::lay(link.parse::<PathSpec>().unwrap()).unwrap();
    link.begin_case(1).unwrap();
    let received = [send(&link, Role::Publisher, down), send(&link, Role::Subscriber, up)];
    let outcome = link.end_case().unwrap();
    Some((received, outcome.figures.unwrap()))
}

/// Sends datagrams from that end to the other one, in trains; returns how many arrived.
fn send(link: &VirtualLink, from: Role, count: usize) -> u64 {
    let to = if from == Role::Publisher { Role::Subscriber } else { Role::Publisher };
    let (from, to) = (link.place(from), link.place(to));
    let (address_told, address) = channel();
    thread::scope(|scope| {
        let (turns_ended, turns) = channel();
        let receiver = scope.spawn(move || {
            enter(&to.namespace);
            let options =
                SocketOptions { recv_buffer: Some(4 << 20), ..SocketOptions::new(any_port(to.address)) };
            let socket = UdpSocket::bind(&options).unwrap();
            address_told.send(socket.local_addr()).unwrap();
            receive(&socket, &turns)
        });
        scope.spawn(move || {
            enter(&from.namespace);
            let socket = UdpSocket::bind(&SocketOptions::new(any_port(from.address))).unwrap();
            socket.connect(address.recv().unwrap()).unwrap();
            let bytes = vec![7; BYTES * TRAIN];
            let segment = u16::try_from(BYTES).unwrap();
            let train =
                Outgoing { to: None, head: &bytes, tail: &[], segment, joins: false, type_of_service: None };
            for _ in 0..count / TRAIN {
                assert_eq!(socket.send_all(&[train], &mut SendScratch::new()).refused, 0);
            }
            for _ in 0..count % TRAIN {
                socket.send(&bytes[..BYTES]).unwrap();
            }
            drop(turns_ended);
        });
        receiver.join().unwrap()
    })
}

fn any_port(address: Ipv4Addr) -> SocketAddrV4 {
    SocketAddrV4::new(address, 0)
}
