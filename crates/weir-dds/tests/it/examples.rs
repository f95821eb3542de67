//! The examples, through the functions that their `main` calls.

#[expect(dead_code, reason = "its main is not called here")]
#[path = "../../examples/event_loop.rs"]
mod event_loop;
#[expect(dead_code, reason = "its main is not called here")]
#[path = "../../examples/footprint.rs"]
mod footprint;
#[expect(dead_code, reason = "its main is not called here")]
#[path = "../../examples/hello_publisher.rs"]
mod hello_publisher;
#[expect(dead_code, reason = "its main is not called here")]
#[path = "../../examples/hello_subscriber.rs"]
mod hello_subscriber;
#[expect(dead_code, reason = "its main is not called here")]
#[path = "../../examples/large_samples.rs"]
mod large_samples;
#[expect(dead_code, reason = "its main is not called here")]
#[path = "../../examples/ping_pong.rs"]
mod ping_pong;
#[expect(dead_code, reason = "its main is not called here")]
#[path = "../../examples/streams.rs"]
mod streams;

use crate::support::{World, settings};

#[test]
fn hello_is_heard() {
    let world = World::new();
    let (mut said, mut heard) = (Vec::new(), Vec::new());
    std::thread::scope(|scope| {
        scope.spawn(|| hello_subscriber::run(&world.participant(), &world.topic, 5, &mut heard).unwrap());
        hello_publisher::run(&world.participant(), &world.topic, 5, &mut said).unwrap();
    });
    let (said, heard) = (String::from_utf8(said).unwrap(), String::from_utf8(heard).unwrap());
    assert!(said.contains("Said:  Hello, world (5 of 5)"), "{said}");
    assert!(heard.contains("Received: Hello, world (number 5 of its publisher)"), "{heard}");
}

#[test]
fn one_event_loop_drives_two_participants() {
    let (world, mut out) = (World::new(), Vec::new());
    let participants = [0, 1].map(|_| world.participant_with(settings().without_threads()));
    event_loop::run(participants.each_ref(), &world.topic, 3, &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "Received: tick 0\nReceived: tick 1\nReceived: tick 2\n");
}

#[test]
fn a_small_system_exchanges_samples_in_one_participant_and_prints_its_memory() {
    let (world, mut out) = (World::new(), Vec::new());
    let participant = || Ok(world.participant_with(settings().without_threads()));
    footprint::run(participant, &world.topic, 100, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains("The last sample is number Some(99) of 100."), "{text}");
    assert_eq!(text.matches(" resident (RssAnon ").count(), 3, "{text}");
    assert!(!text.contains("unknown"), "{text}");
}

#[test]
fn large_samples_are_seen_as_they_were_recorded() {
    let world = World::new();
    let mut out = Vec::new();
    large_samples::run(&world.participant(), &world.participant(), &world.topic, 5, &mut out).unwrap();
    assert!(String::from_utf8(out).unwrap().contains("5 images, 0.25 Gbit"));
}

#[test]
fn ping_pong_is_measured() {
    let world = World::new();
    let mut out = Vec::new();
    ping_pong::run(&world.participant(), &world.participant(), &world.topic, 100, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains("100 round trips") && text.contains("median"), "{text}");
}

#[test]
fn one_task_reads_two_streams() {
    let (world, mut out) = (World::new(), Vec::new());
    let topics = [&*world.topic, &*world.sibling().topic].map(str::to_owned);
    streams::run(&world.participant(), topics.each_ref().map(|topic| &**topic), &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "Received [100, 101, 102, 200, 201, 202]\n");
}
