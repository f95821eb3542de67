//! Participants that are killed: their hosts refuse what is sent to them, or others have their addresses.

use core::net::SocketAddrV4;
use core::time::Duration;

use weir_rtps::discovery_event::DiscoveryEvent;
use weir_rtps::outbox::Outbox;
use weir_wire::{Guid, Message, Submessage};

use super::world::{Datagram, METATRAFFIC_PORT, USER_PORT, World, config, prefix};
use super::{matched_pair, ms};

fn metatraffic(node: usize) -> SocketAddrV4 {
    config(node).metatraffic_unicast[0]
}

fn user(node: usize) -> SocketAddrV4 {
    config(node).default_unicast[0]
}

/// Sends the questions of node 0, and returns where they go. Those to participants that are up arrive there.
fn ask(world: &mut World) -> Vec<SocketAddrV4> {
    let mut out = Outbox::new();
    world.nodes[0].core.poll_questions(&mut out);
    let mut asked = Vec::new();
    let mut questions = Vec::new();
    out.for_each_datagram(|to, bytes| {
        let message = Message::parse(bytes).unwrap();
        let kinds: Vec<_> = message.submessages().map(Result::unwrap).collect();
        for &to in to.iter() {
            match to.port() {
                METATRAFFIC_PORT => assert!(matches!(kinds[..], [_, Submessage::Heartbeat(_)]), "{kinds:?}"),
                _ => assert!(matches!(kinds[..], [Submessage::InfoDestination(_)]), "{kinds:?}"),
            }
            asked.push(to);
            // From a socket of its own: answers go to the metatraffic address.
            let from = SocketAddrV4::new(*metatraffic(0).ip(), 50_000);
            questions.push(Datagram { from, to, bytes: bytes.to_vec() });
        }
    });
    questions.into_iter().for_each(|question| world.send(question));
    asked
}

fn suspect(world: &mut World, reader: Guid) {
    let now = world.now;
    world.nodes[0].core.suspect(now, reader);
}

fn refuse(world: &mut World, to: SocketAddrV4) {
    let now = world.now;
    world.nodes[0].core.refused(now, to);
}

fn is_lost(world: &mut World, node: usize) -> bool {
    world.events(0).iter().any(|event| *event == DiscoveryEvent::ParticipantLost { prefix: prefix(node) })
}

#[test]
fn a_killed_participant_whose_addresses_refuse_twice_is_gone() {
    let (mut world, _, reader) = matched_pair();
    world.run_for(Duration::from_secs(1));
    world.kill(1);
    world.events(0);
    suspect(&mut world, reader);
    for round in 0..2 {
        assert_eq!(ask(&mut world), [metatraffic(1), user(1)]);
        for to in [user(1), metatraffic(1)] {
            assert!(!is_lost(&mut world, 1), "{round} {to}");
            refuse(&mut world, to);
        }
    }
    let events = world.events(0);
    assert!(matches!(events[..], [.., DiscoveryEvent::ParticipantLost { .. }]), "{events:?}");
    assert!(events.iter().any(|event| matches!(event, DiscoveryEvent::ReaderUnmatched { .. })), "{events:?}");
    let counters = world.nodes[0].core.counters();
    assert_eq!((counters.participants_suspected, counters.participants_gone), (1, 1));
    assert_eq!(world.nodes[0].core.remote_participants(), 0);
}

#[test]
fn a_participant_that_answers_stays_however_much_is_refused() {
    let (mut world, _, reader) = matched_pair();
    for _ in 0..20 {
        world.run_for(Duration::from_secs(1));
        suspect(&mut world, reader);
        ask(&mut world);
        // Its answers arrive before the second round of refusals.
        refuse(&mut world, user(1));
        refuse(&mut world, metatraffic(1));
        world.run_for(ms(20));
        ask(&mut world);
        refuse(&mut world, user(1));
        refuse(&mut world, metatraffic(1));
    }
    assert!(!is_lost(&mut world, 1));
    let counters = world.nodes[0].core.counters();
    assert_eq!((counters.participants_suspected, counters.participants_gone), (20, 0));
}

#[test]
fn refusals_of_one_port_or_without_a_question_mean_nothing() {
    let (mut world, _, reader) = matched_pair();
    world.run_for(Duration::from_secs(1));
    world.kill(1);
    for to in [user(1), metatraffic(1), user(1), metatraffic(1)] {
        refuse(&mut world, to);
    }
    suspect(&mut world, reader);
    let mut asked = Vec::new();
    for _ in 0..100 {
        asked.extend(ask(&mut world));
        refuse(&mut world, metatraffic(1));
        refuse(&mut world, SocketAddrV4::new(*metatraffic(1).ip(), USER_PORT + 2));
        world.run_for(ms(50));
    }
    // Some questions, then silence; an address that has refused is not asked again in that round.
    assert_eq!(asked.iter().filter(|to| **to == metatraffic(1)).count(), 1);
    assert!((5..=8).contains(&asked.len()), "{asked:?}");
    // The lease is another matter.
    assert_eq!(world.nodes[0].core.counters().participants_gone, 0);
}

#[test]
fn a_participant_whose_address_another_one_has_is_gone() {
    let (mut world, _, reader) = matched_pair();
    world.run_for(Duration::from_secs(1));
    world.kill(1);
    // Its successor uses the same ports.
    world.start_with(|config| {
        config.metatraffic_unicast = vec![metatraffic(1)];
        config.default_unicast = vec![user(1)];
    });
    world.run_for(ms(500));
    world.events(0);
    let before = world.now;
    suspect(&mut world, reader);
    while !is_lost(&mut world, 1) {
        ask(&mut world);
        world.run_for(ms(10));
        assert!(world.now.since(before) < Duration::from_secs(1), "still there");
    }
    assert_eq!(world.nodes[0].core.remote_participants(), 1);
}

#[test]
fn a_participant_that_claims_the_address_of_another_one_does_not_remove_it() {
    let (mut world, _, reader) = matched_pair();
    // It names the other's addresses beside its own.
    world.start_with(|config| {
        config.metatraffic_unicast.push(metatraffic(1));
        config.default_unicast.push(user(1));
    });
    for _ in 0..10 {
        world.run_for(Duration::from_secs(1));
        suspect(&mut world, reader);
        for _ in 0..100 {
            ask(&mut world);
            world.run_for(ms(10));
        }
    }
    assert!(!is_lost(&mut world, 1));
}
