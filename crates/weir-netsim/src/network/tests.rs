use super::*;
use crate::loss::Loss;
use crate::recording::Side;

const MS: Duration = Duration::from_millis(1);
const US: Duration = Duration::from_micros(1);

fn host(n: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, n)
}

fn at(n: u8) -> SocketAddrV4 {
    SocketAddrV4::new(host(n), 7410)
}

fn group() -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(239, 255, 0, 1), 7400)
}

fn network(builder: Builder, hosts: u8) -> Network {
    let mut network = builder.build();
    (1..=hosts).for_each(|n| network.bind(at(n)));
    network
}

/// Delivers until no datagram is left: (time read, receiver, bytes).
fn drain(network: &mut Network) -> Vec<(Duration, SocketAddrV4, Vec<u8>)> {
    let mut read = Vec::new();
    while let Some(next) = network.next_arrival() {
        let now = next.max(network.now());
        while let Some(delivery) = network.deliver(now) {
            read.push((now, delivery.receiver, delivery.bytes.to_vec()));
        }
    }
    read
}

#[test]
fn a_datagram_arrives_after_the_delay() {
    let mut net = network(Network::builder(1).link(Link::new().delay(3 * MS)), 2);
    net.send(MS, at(1), at(2), b"hello").unwrap();
    assert_eq!(net.next_arrival(), Some(4 * MS));
    assert_eq!(net.deliver(3 * MS), None, "not before its time");
    let delivery = net.deliver(5 * MS).unwrap();
    assert_eq!(delivery.arrived_at, 4 * MS);
    assert_eq!((delivery.from, delivery.to, delivery.receiver), (at(1), at(2), at(2)));
    assert_eq!(&*delivery.bytes, b"hello");
    assert!(net.is_silent());
    assert_eq!(net.next_arrival(), None);
}

#[test]
fn defaults_are_short_delays_without_faults() {
    let mut net = network(Network::builder(1), 2);
    net.send(Duration::ZERO, at(1), at(2), b"other").unwrap();
    net.send(Duration::ZERO, at(1), at(1), b"self").unwrap();
    assert_eq!(drain(&mut net), [(10 * US, at(1), b"self".to_vec()), (50 * US, at(2), b"other".to_vec())]);
}

#[test]
fn simultaneous_arrivals_keep_the_order_of_sending() {
    let mut net = network(Network::builder(1).link(Link::new().delay(MS)), 3);
    for n in 0..10u8 {
        net.send(Duration::ZERO, at(1), at(2 + n % 2), &[n]).unwrap();
    }
    let read: Vec<u8> = drain(&mut net).into_iter().map(|(_, _, bytes)| bytes[0]).collect();
    assert_eq!(read, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
}

#[test]
fn a_group_reaches_every_member_once_also_the_senders_own() {
    let mut net = network(Network::builder(1), 3);
    let second = SocketAddrV4::new(host(2), 7412);
    net.bind(second);
    for socket in [at(1), at(2), second] {
        net.join(group(), socket);
        net.join(group(), socket);
    }
    net.send(Duration::ZERO, at(1), group(), b"m").unwrap();
    let mut receivers: Vec<_> = drain(&mut net).into_iter().map(|(_, receiver, _)| receiver).collect();
    receivers.sort_unstable();
    assert_eq!(receivers, [at(1), at(2), second]);
    net.leave(group(), second);
    net.leave(group(), at(1));
    net.send(MS, at(1), group(), b"m").unwrap();
    assert_eq!(drain(&mut net).len(), 1);
    assert_eq!((net.counters().sent, net.counters().delivered), (2, 4));
}

#[test]
fn another_port_is_another_group() {
    let mut net = network(Network::builder(1), 2);
    net.join(group(), at(2));
    net.send(Duration::ZERO, at(1), SocketAddrV4::new(*group().ip(), 7650), b"m").unwrap();
    assert_eq!(drain(&mut net), []);
    assert_eq!(net.counters().no_socket, 1);
}

#[test]
fn sockets_of_one_host_share_the_fate_of_a_group_datagram() {
    // One packet per host: both sockets of the host receive it, or neither does.
    let mut net = network(Network::builder(4).link(Link::new().loss(Loss::random(0.5))), 2);
    let second = SocketAddrV4::new(host(2), 7412);
    net.bind(second);
    net.join(group(), at(2));
    net.join(group(), second);
    for n in 0..100u32 {
        net.send(n * MS, at(1), group(), &n.to_le_bytes()).unwrap();
    }
    let read = drain(&mut net);
    assert!(read.chunks(2).all(|pair| pair[0].2 == pair[1].2 && pair[0].1 != pair[1].1));
    assert_eq!(net.counters().lost + net.counters().delivered / 2, 100);
}

#[test]
fn a_datagram_to_an_unbound_address_is_counted() {
    let mut net = network(Network::builder(1), 1);
    net.send(Duration::ZERO, at(1), at(2), b"x").unwrap();
    assert_eq!(drain(&mut net), []);
    assert_eq!(net.counters().no_socket, 1);
}

#[test]
fn a_closed_socket_gets_nothing_and_can_be_bound_again() {
    let mut net = network(Network::builder(1), 2);
    net.join(group(), at(2));
    net.send(Duration::ZERO, at(1), at(2), b"old").unwrap();
    net.close(at(2));
    net.bind(at(2));
    net.send(MS, at(1), group(), b"left").unwrap();
    net.send(MS, at(1), at(2), b"new").unwrap();
    let bytes: Vec<_> = drain(&mut net).into_iter().map(|(_, _, bytes)| bytes).collect();
    assert_eq!(
        bytes,
        [b"old".to_vec(), b"new".to_vec()],
        "a datagram in flight reaches the socket that is bound when it arrives"
    );
}

#[test]
fn too_big_is_refused_but_others_of_the_group_get_it() {
    let narrow = Link::new().mtu_bytes(128);
    let mut net = network(Network::builder(1).link_between(host(1), host(2), narrow), 3);
    net.join(group(), at(2));
    net.join(group(), at(3));
    assert_eq!(net.send(MS, at(1), at(2), &[0; 101]), Err(TooBig { len: 101, limit: 100 }));
    assert_eq!(net.send(MS, at(1), at(2), &[0; 100]), Ok(()));
    assert_eq!(net.send(MS, at(2), at(1), &[0; 101]), Ok(()), "the other direction has a link of its own");
    let refused = net.send(MS, at(1), group(), &[0; 101]).unwrap_err();
    assert_eq!(refused.to_string(), "datagram of 101 bytes exceeds the 100 bytes that the link accepts");
    assert_eq!(drain(&mut net).len(), 3);
    assert_eq!(net.counters().too_big, 2);
}

#[test]
fn a_cut_drops_what_is_sent_not_what_is_on_its_way() {
    let mut net = network(Network::builder(1).link(Link::new().delay(5 * MS)), 2);
    net.send(Duration::ZERO, at(1), at(2), b"before").unwrap();
    net.partition().cut(host(1), host(2));
    net.send(MS, at(1), at(2), b"during").unwrap();
    net.send(MS, at(2), at(1), b"during").unwrap();
    net.partition().heal();
    net.send(2 * MS, at(1), at(2), b"after").unwrap();
    let bytes: Vec<_> = drain(&mut net).into_iter().map(|(_, _, bytes)| bytes).collect();
    assert_eq!(bytes, [b"before".to_vec(), b"after".to_vec()]);
    assert_eq!(net.counters().cut, 2);
}

#[test]
fn a_late_caller_lets_the_buffer_overflow() {
    let mut net = network(Network::builder(1).buffer_bytes(10 * 832), 2);
    for n in 0..20u32 {
        net.send(n * US, at(1), at(2), b"x").unwrap();
    }
    let mut read = 0;
    while net.deliver(MS).is_some() {
        read += 1;
    }
    assert_eq!(read, 11);
    assert_eq!(net.counters().buffer_full, 9);
}

#[test]
fn a_slow_reader_loses_to_its_buffer_and_a_prompt_one_does_not() {
    let mut net = network(Network::builder(1), 3);
    net.close(at(3));
    net.bind_with_buffer(at(3), 5 * 832);
    net.set_read_gap(at(3), MS);
    for n in 0..100u32 {
        net.send(n * 100 * US, at(1), at(2), b"x").unwrap();
        net.send(n * 100 * US, at(1), at(3), b"x").unwrap();
        while net.next_arrival().is_some_and(|next| next <= n * 100 * US) {
            if net.deliver(n * 100 * US).is_none() {
                break;
            }
        }
    }
    let read = drain(&mut net);
    assert!(net.counters().buffer_full > 80, "{:?}", net.counters());
    assert_eq!(net.counters().buffer_full + net.counters().delivered, 200);
    let times: Vec<Duration> =
        read.iter().filter(|(_, receiver, _)| *receiver == at(3)).map(|r| r.0).collect();
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] == MS));
    assert!(net.is_silent());
}

#[test]
fn a_paused_reader_keeps_what_fits_and_reads_it_later() {
    let mut net = network(Network::builder(1), 2);
    net.pause(at(2));
    net.send(Duration::ZERO, at(1), at(2), b"x").unwrap();
    assert_eq!(drain(&mut net), []);
    assert!(!net.is_silent());
    assert_eq!(net.buffered_bytes(at(2)), 832);
    net.resume(at(2));
    assert_eq!(drain(&mut net).len(), 1);
    assert_eq!(net.buffered_bytes(at(2)), 0);
}

#[test]
fn links_can_change_during_the_run() {
    let mut net = network(Network::builder(1), 2);
    net.set_default_link(Link::new().loss(Loss::random(1.0)));
    net.send(Duration::ZERO, at(1), at(2), b"1").unwrap();
    net.set_link(host(1), host(2), Link::new().delay(MS));
    net.send(Duration::ZERO, at(1), at(2), b"2").unwrap();
    net.set_default_link(Link::new().delay(2 * MS));
    net.send(Duration::ZERO, at(1), at(2), b"3").unwrap();
    net.send(Duration::ZERO, at(2), at(1), b"4").unwrap();
    let read: Vec<_> = drain(&mut net).into_iter().map(|(now, _, bytes)| (now, bytes[0])).collect();
    assert_eq!(read, [(MS, b'2'), (MS, b'3'), (2 * MS, b'4')]);
}

#[test]
fn a_pair_that_shares_a_link_has_its_counts_and_changes_it() {
    let mut net = network(Network::builder(1), 3);
    net.share_link(host(1), host(3), (host(1), host(2)));
    net.send(Duration::ZERO, at(1), at(3), b"1").unwrap();
    assert_eq!(net.traffic(host(1), host(3)).offered.packets, 1);
    assert_eq!(net.traffic(host(1), host(2)), net.traffic(host(1), host(3)));
    net.set_link(host(1), host(3), Link::new().delay(5 * MS));
    for to in [2, 3] {
        net.send(Duration::ZERO, at(1), at(to), b"2").unwrap();
    }
    let at_end = drain(&mut net).into_iter().filter(|(now, _, bytes)| (*now, bytes[0]) == (5 * MS, b'2'));
    assert_eq!(at_end.count(), 2);
}

fn stormy(seed: u64) -> Network {
    let link = Link::new()
        .delay(MS)
        .jitter(300 * US)
        .rate_bps(50_000_000)
        .queue_bytes(20_000)
        .loss(Loss::random(0.05))
        .loss(Loss::burst(0.01, 0.3))
        .duplicate(0.05)
        .reorder(0.05, 500 * US);
    let mut net = network(Network::builder(seed).link(link).record(), 3);
    (1..=3).for_each(|n| net.join(group(), at(n)));
    for n in 0..1000u32 {
        let bytes = vec![0; (n as usize * 37) % 1400];
        let now = n * 100 * US;
        net.send(now, at(1), at(2), &bytes).unwrap();
        net.send(now, at(2), group(), &bytes).unwrap();
        while net.deliver(now).is_some() {}
    }
    drain(&mut net);
    net
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_seed_another_one() {
    let (one, two, other) = (stormy(7), stormy(7), stormy(8));
    assert_eq!(one.recording(), two.recording());
    assert_eq!(one.counters(), two.counters());
    assert_ne!(one.recording(), other.recording());
}

#[test]
fn every_datagram_is_accounted_for() {
    let counters = stormy(7).counters();
    // 1000 to one host, 1000 to the three hosts of the group.
    let carried = 4000 + counters.duplicated;
    let ended =
        counters.delivered + counters.lost + counters.queue_full + counters.buffer_full + counters.no_socket;
    assert_eq!(carried, ended, "{counters:?}");
    assert_eq!(counters.sent, 2000);
    for (name, count) in
        [("lost", counters.lost), ("duplicated", counters.duplicated), ("held back", counters.held_back)]
    {
        assert!(count > 50, "{name}: {count}");
    }
}

#[test]
fn what_one_link_carries_does_not_change_another_links_luck() {
    let fates = |noise: bool| {
        let mut net = network(Network::builder(3).link(Link::new().loss(Loss::random(0.5))), 3);
        for n in 0..200u8 {
            if noise {
                net.send(Duration::ZERO, at(1), at(3), &[n]).unwrap();
            }
            net.send(Duration::ZERO, at(1), at(2), &[n]).unwrap();
        }
        let mut read = drain(&mut net);
        read.retain(|(_, receiver, _)| *receiver == at(2));
        read
    };
    assert_eq!(fates(false), fates(true));
}

#[test]
fn nothing_is_recorded_unless_asked() {
    let mut net = network(Network::builder(1), 2);
    net.send(Duration::ZERO, at(1), at(2), b"x").unwrap();
    drain(&mut net);
    assert!(net.recording().records().is_empty());
    let net = stormy(1);
    let sent = net.recording().records().iter().filter(|record| record.event == Event::Sent).count();
    assert_eq!(sent, 2000);
    assert!(net.recording().to_pcap(Side::Senders).len() > 2000 * 44);
}

#[test]
fn each_direction_has_its_own_traffic() {
    let link = Link::new().delay(MS).rate_bps(8_000_000);
    let mut net = network(Network::builder(1).link(link).link_between(host(2), host(1), Link::new()), 2);
    for _ in 0..2 {
        net.send(Duration::ZERO, at(1), at(2), &[0; 972]).unwrap();
    }
    net.send(Duration::ZERO, at(2), at(1), b"x").unwrap();
    let [there, back] = [(1, 2), (2, 1)].map(|(from, to)| net.traffic(host(from), host(to)));
    assert_eq!((there.offered.packets, there.offered.bytes, there.queue.max_wait()), (2, 2000, MS));
    assert_eq!((back.offered.packets, back.offered.bytes, back.queue.max_wait()), (1, 29, Duration::ZERO));
    assert_eq!(net.traffic(host(1), host(3)).offered.packets, 0);
}
