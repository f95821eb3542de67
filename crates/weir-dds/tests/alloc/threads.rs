//! Threads start with a participant and end with its last handle.

use std::sync::Arc;
use std::time::{Duration, Instant};

use weir_dds::{
    DataReaderQos, DataWriterQos, DomainParticipant, DomainParticipantListener, ParticipantSettings,
    PublishMode, StatusMask,
};

use crate::support::{DEADLINE, Unkeyed, alone, domain_id, endpoints, participant};

/// The engine's threads in this process, by name, sorted.
fn engine_threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    // A thread may end between the two reads.
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok());
    let mut names: Vec<_> =
        names.map(|name| name.trim().to_owned()).filter(|name| name.starts_with("weir-")).collect();
    names.sort_unstable();
    names
}

/// A thread sets its name shortly after it starts, and stays listed shortly after it ends.
fn until_there_are(expected: &[&str]) {
    let deadline = Instant::now() + DEADLINE;
    while engine_threads() != expected {
        assert!(Instant::now() < deadline, "{:?} instead of {expected:?}", engine_threads());
        std::thread::yield_now();
    }
}

#[test]
fn no_thread_survives_the_last_handle() {
    const TWO: [&str; 2] = ["weir-receive", "weir-timers"];
    const FOUR: [&str; 4] = ["weir-receive", "weir-receive", "weir-timers", "weir-timers"];
    let _alone = alone();
    until_there_are(&[]);
    for _ in 0..5 {
        let one = participant();
        until_there_are(&TWO);
        let other = participant();
        let (writer, reader) =
            endpoints::<Unkeyed>("threads", (&one, Default::default()), (&other, Default::default()));
        writer.write(&Unkeyed::default()).unwrap();
        drop((one, other));
        until_there_are(&FOUR);
        drop(reader);
        until_there_are(&TWO);
        drop(writer);
        until_there_are(&[]);
    }
}

#[test]
fn a_participant_that_is_polled_starts_no_thread() {
    let _alone = alone();
    until_there_are(&[]);
    let own_name = std::fs::read_to_string("/proc/thread-self/comm").unwrap();
    // A thread without a name would have that of the thread that started it.
    let with_own_name = || {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let names = tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok());
        names.filter(|name| *name == own_name).count()
    };
    let before = with_own_name();
    let settings = || ParticipantSettings::default().interface("lo").without_threads();
    let participants = [0, 1].map(|_| DomainParticipant::new(domain_id(), settings()).unwrap());
    let qos = DataWriterQos::default().publish_mode(PublishMode::Asynchronous);
    let name = format!("polled of process {}", std::process::id());
    let topics = participants.each_ref().map(|it| it.create_topic::<Unkeyed>(&name).unwrap());
    let writer = participants[0].create_publisher().unwrap().create_datawriter(&topics[0], qos).unwrap();
    let subscriber = participants[1].create_subscriber().unwrap();
    let reader = subscriber.create_datareader(&topics[1], DataReaderQos::default()).unwrap();
    participants[1].set_listener(Some(Arc::new(Nothing)), StatusMask::ALL);
    while writer.publication_matched_status().current_count == 0
        || reader.subscription_matched_status().current_count == 0
    {
        participants.iter().for_each(|it| _ = it.poll(Duration::from_millis(1)).unwrap());
    }
    writer.write(&Unkeyed::default()).unwrap();
    participants[0].poll(DEADLINE).unwrap();
    reader.wait_for_data(DEADLINE).unwrap();
    assert_eq!((engine_threads(), with_own_name()), (Vec::new(), before));
}

struct Nothing;

impl DomainParticipantListener for Nothing {}

#[test]
fn the_thread_that_publishes_ends_with_its_writer() {
    const THREADS: [&str; 3] = ["weir-publish", "weir-receive", "weir-timers"];
    let _alone = alone();
    until_there_are(&[]);
    for _ in 0..5 {
        let participant = participant();
        let qos = DataWriterQos::default().publish_mode(PublishMode::Asynchronous);
        let (writer, reader) =
            endpoints::<Unkeyed>("publishing", (&participant, qos), (&participant, Default::default()));
        until_there_are(&THREADS);
        let other = writer.clone();
        drop((writer, participant));
        other.write(&Unkeyed::default()).unwrap();
        until_there_are(&THREADS);
        drop(other);
        // Joined: a thread that is still listed has ended.
        until_there_are(&THREADS[1..]);
        drop(reader);
        until_there_are(&[]);
    }
}
