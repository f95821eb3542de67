//! What is sent to a new participant may be lost.

use core::net::{Ipv4Addr, SocketAddrV4};

use super::*;
use weir_wire::GuidPrefix;

/// A participant at rest with a writer, and one that starts, with a reader. Of what is sent to the second one by
/// unicast, `is_lost` decides by its index and bytes. Returns when both have matched, from the start of the second.
fn joined(mut is_lost: impl FnMut(usize, &[u8]) -> bool + 'static) -> [Duration; 2] {
    let mut world = World::new();
    world.start();
    world.add_writer(0, 1, "Square", Qos::for_writer());
    // Between two announcements of the first.
    world.run_for(ms(2500));
    let start = world.now;
    let node = world.start();
    world.add_reader(node, 1, "Square", Qos::for_reader());
    let (to, mut index) = (world.nodes[node].address, 0);
    world.rewrite = Box::new(move |datagram| {
        let is_to_it = datagram.to == to;
        let is_gone = is_to_it && is_lost(index, &datagram.bytes);
        index += usize::from(is_to_it);
        if is_gone { vec![] } else { vec![datagram] }
    });
    world.run_for(Duration::from_secs(10));
    [0, node].map(|node| world.first_time(node, |event| matched(event).is_some()).unwrap().since(start))
}

fn is_announcement(datagram: &[u8]) -> bool {
    Message::parse(datagram).unwrap().submessages().any(
        |submessage| matches!(submessage, Ok(Submessage::Data(data)) if data.writer == EntityId::SPDP_WRITER),
    )
}

#[test]
fn a_lost_answer_to_a_new_participant_is_repeated() {
    let mut answers = 0;
    let first_answer = move |_, bytes: &[u8]| {
        answers += usize::from(is_announcement(bytes));
        answers == 1 && is_announcement(bytes)
    };
    for at in joined(first_answer) {
        assert!(at < ms(60), "{at:?}");
    }
}

#[test]
fn answers_that_are_lost_with_what_follows_are_repeated() {
    for at in joined(|index, _| index < 5) {
        assert!(at < ms(260), "{at:?}");
    }
}

/// All that the scheduled announcements cause is lost.
#[test]
fn a_participant_announces_itself_again_when_it_does_not_know_who_sends() {
    let mut answers = 0;
    let first_answers = move |_, bytes: &[u8]| {
        answers += usize::from(is_announcement(bytes));
        answers <= 4 && is_announcement(bytes)
    };
    for at in joined(first_answers) {
        assert!(at < Duration::from_secs(1), "{at:?}");
    }
}

/// The announcements that messages of unknown participants cause are limited.
#[test]
fn messages_of_unknown_participants_cause_few_announcements() {
    let mut world = World::new();
    world.start();
    world.run_for(ms(2500));
    world.sent.clear();
    let to = world.nodes[0].address;
    for step in 0..1000_u32 {
        let mut source = [0xee; 12];
        source[8..].copy_from_slice(&step.to_be_bytes());
        let bytes = hostile::acknowledgement(GuidPrefix(source), prefix(0));
        world.send(Datagram { from: SocketAddrV4::new(Ipv4Addr::new(10, 9, 9, 9), 7410), to, bytes });
        world.run_for(ms(3));
    }
    let announcements = world.sent.iter().filter(|datagram| datagram.to == GROUP).count();
    // Four at once, one per second; none is scheduled.
    assert!((1..=7).contains(&announcements), "{announcements}");
}

/// A participant that has sent something to us has our announcement.
#[test]
fn answers_that_have_arrived_are_not_repeated() {
    let mut world = World::new();
    for _ in 0..2 {
        world.start();
    }
    world.run_for(Duration::from_secs(3));
    let is_directed = |datagram: &Datagram| {
        let message = Message::parse(&datagram.bytes).unwrap();
        message.submessages().any(|submessage| matches!(submessage, Ok(Submessage::InfoDestination(_))))
    };
    let is_answer = |datagram: &&Datagram| is_announcement(&datagram.bytes) && is_directed(datagram);
    // They start together, so that each answers the other.
    assert_eq!(world.sent.iter().filter(is_answer).count(), 2);
}
