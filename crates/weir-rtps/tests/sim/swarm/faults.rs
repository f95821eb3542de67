//! What can happen to the participants of a swarm.

use core::time::Duration;
use std::net::{Ipv4Addr, SocketAddrV4};

use weir_netsim::Rng;
use weir_rtps::participant::OwnAddresses;
use weir_rtps::time::Time;
use weir_wire::{EntityId, Guid};

use super::forgeries::Forgery;
use super::participants::{PORTS, Swarm, since_start};
use crate::live::forge::{self, Forged};
use crate::live::node::{META_PORT, Node, USER_PORT};

/// A fault, which is over when it was applied. Members by their index.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// Nothing from the first reaches the second.
    CutOneWay(usize, usize, Duration),
    CutOff(usize, usize, Duration),
    /// This share of what the first sends to the second is lost.
    Lose(usize, usize, f64, Duration),
    /// The process neither receives nor sends (SIGSTOP). Then its timers or its sockets come first.
    Stop {
        member: usize,
        period: Duration,
        are_timers_first: bool,
    },
    /// The same, while the others write fast.
    Overrun(usize, Duration),
    /// The first says goodbye to the second, and stays.
    Goodbye(usize, usize),
    /// A process ends, and another begins: of the same participant, or of a new one.
    Restart {
        member: usize,
        is_same: bool,
        says_goodbye: bool,
        downtime: Duration,
    },
    /// The host gets another address, after some time without any.
    Readdress(usize, Duration),
    /// An attacker's packets to the first, mostly in the name of the second.
    Forge(usize, usize, Forgery),
}

impl Fault {
    fn random(members: usize, rng: &mut Rng) -> Self {
        let one = rng.below(members as u64) as usize;
        let other = (one + 1 + rng.below(members as u64 - 1) as usize) % members;
        let period = Duration::from_millis(500 + rng.below(40_000));
        match rng.below(11) {
            0 => Self::CutOneWay(one, other, period),
            1 => Self::CutOff(one, other, period),
            2 => Self::Lose(one, other, 0.3 + 0.6 * rng.fraction(), period),
            3 => Self::Stop { member: one, period, are_timers_first: rng.chance(0.5) },
            4 => Self::Overrun(one, period),
            5 => Self::Goodbye(one, other),
            choice @ (6 | 7) => Self::Restart {
                member: one,
                is_same: choice == 6,
                says_goodbye: rng.chance(0.5),
                downtime: Duration::from_millis([1, 500, 40_000][rng.below(3) as usize] + rng.below(500)),
            },
            8 => Self::Readdress(one, Duration::from_millis([0, 200, 5_000][rng.below(3) as usize])),
            _ => Self::Forge(one, other, Forgery::random(rng)),
        }
    }
}

impl Swarm {
    /// Applies a random fault, with or without time to recover.
    pub(super) fn disturb(&mut self, rng: &mut Rng) {
        let fault = Fault::random(self.members.len(), rng);
        self.apply(&fault, rng);
        let pause = [10, 3_000, 45_000][rng.below(3) as usize];
        self.run_for(Duration::from_millis(1 + rng.below(pause)));
    }

    /// Applies a fault.
    pub(super) fn apply(&mut self, fault: &Fault, rng: &mut Rng) {
        self.note(format!("{fault:?}"));
        match *fault {
            Fault::CutOneWay(one, other, period) => self.cut(one, other, period, false),
            Fault::CutOff(one, other, period) => self.cut(one, other, period, true),
            Fault::Lose(one, other, share, period) => {
                self.lose(one, other, share);
                self.run_for(period);
                // For good: a link that was set does not change with the others.
                self.lose(one, other, 0.0);
            }
            Fault::Stop { member, period, are_timers_first } => {
                self.pause(member, true);
                self.run_for(period);
                // The order depends on the process's threads.
                if are_timers_first {
                    let now = self.now;
                    self.members[member].node.handle_timeout(now);
                }
                self.pause(member, false);
            }
            Fault::Overrun(one, period) => self.overrun(one, period),
            Fault::Goodbye(one, other) => self.say_goodbye(one, other),
            Fault::Restart { member, is_same, says_goodbye, downtime } => {
                self.restart(member, is_same, says_goodbye, downtime);
            }
            Fault::Readdress(one, gap) => self.readdress(one, gap),
            Fault::Forge(one, other, forgery) => self.forge(one, other, forgery, rng),
        }
    }

    fn cut(&mut self, one: usize, other: usize, period: Duration, is_both_ways: bool) {
        let hosts = (self.members[one].node.host, self.members[other].node.host);
        if is_both_ways {
            self.network.partition().cut(hosts.0, hosts.1);
        } else {
            self.network.partition().cut_one_way(hosts.0, hosts.1);
        }
        self.run_for(period);
        self.network.partition().heal();
    }

    fn overrun(&mut self, one: usize, period: Duration) {
        let gaps: Vec<Duration> = self.sources.iter().map(|source| source.gap).collect();
        self.sources.iter_mut().for_each(|source| source.gap = Duration::from_millis(2));
        self.pause(one, true);
        self.run_for(period / 8);
        self.sources.iter_mut().zip(gaps).for_each(|(source, gap)| source.gap = gap);
        self.run_for(period * 7 / 8);
        self.pause(one, false);
    }

    fn pause(&mut self, index: usize, is_paused: bool) {
        self.members[index].is_paused = is_paused;
        for port in PORTS {
            let socket = SocketAddrV4::new(self.members[index].node.host, port);
            if is_paused {
                self.network.pause(socket);
            } else {
                self.network.resume(socket);
            }
        }
    }

    fn say_goodbye(&mut self, one: usize, other: usize) {
        let node = &self.members[one].node;
        let inline_qos = forge::disposal(Guid::new(node.prefix, EntityId::PARTICIPANT));
        let message = Forged::by(node.prefix).any_data(EntityId::SPDP_WRITER, 2, &inline_qos, &[], false);
        let from = SocketAddrV4::new(node.host, META_PORT);
        let to = SocketAddrV4::new(self.members[other].node.host, META_PORT);
        self.network.send(since_start(self.now), from, to, &message.0).expect("it fits a datagram");
    }

    pub(super) fn restart(&mut self, one: usize, is_same: bool, says_goodbye: bool, downtime: Duration) {
        if says_goodbye {
            let now = self.now;
            self.members[one].node.core.close(now);
            self.transmit(one);
        }
        self.members[one].is_paused = true;
        self.close_sockets(one);
        self.run_for(downtime);
        let has_lapsed = downtime > self.lease + Duration::from_secs(1);
        self.revive(one, is_same, has_lapsed);
    }

    fn readdress(&mut self, one: usize, gap: Duration) {
        self.close_sockets(one);
        self.members[one].is_paused = true;
        self.run_for(gap);
        let now = self.now;
        let member = &mut self.members[one];
        member.is_paused = false;
        member.moves = (member.moves + 1) % ADDRESSES;
        let host = member.host();
        move_to(&mut member.node, now, host);
        self.open_sockets(one);
        self.transmit(one);
    }
}

/// Addresses that a host takes in turn.
const ADDRESSES: u8 = 8;

/// Gives the host of a participant another address instead of the one that it has.
fn move_to(node: &mut Node, now: Time, host: Ipv4Addr) {
    node.host = host;
    let addresses = OwnAddresses {
        metatraffic_unicast: vec![SocketAddrV4::new(host, META_PORT)],
        default_unicast: vec![SocketAddrV4::new(host, USER_PORT)],
        interfaces: Vec::new(),
        multicast_interfaces: Vec::new(),
    };
    node.core.set_addresses(now, addresses);
    node.apply_events(now);
}
