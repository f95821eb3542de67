//! Readers whose process is killed, and readers that stop acknowledging.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use weir_dds::{DataReader, DataReaderQos, DataWriter, DataWriterQos, ResourceLimits, Topic};

use crate::support::{DEADLINE, Numbered, World, lossless_reader, lossless_writer, matched, settings};

/// Domain and topic for [`child`].
const VARIABLE: &str = "WEIR_TEST_READER";
const READY: &str = "the reader is there";

/// Longer than the test.
const LEASE: Duration = Duration::from_secs(3600);

/// A process with a reader; killed when dropped.
struct Reader(Child);

impl Reader {
    fn start(world: &World) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "killed::child", "--nocapture"])
            .env(VARIABLE, format!("{}/{}", world.domain_id, world.topic))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains(READY)));
        Self(child)
    }

    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Not a test: the other process of the tests below.
#[test]
fn child() {
    let Ok(text) = std::env::var(VARIABLE) else { return };
    let (domain_id, topic) = text.split_once('/').unwrap();
    let settings = settings().lease_duration(LEASE);
    let participant = weir_dds::DomainParticipant::new(domain_id.parse().unwrap(), settings).unwrap();
    let topic: Topic<Numbered> = participant.create_topic(topic).unwrap();
    let qos = DataReaderQos::default().reliable();
    let reader = participant.create_subscriber().unwrap().create_datareader(&topic, qos).unwrap();
    reader.wait_for_publications(1, DEADLINE).unwrap();
    println!("{READY}");
    // Until it is killed, or its parent is.
    let _ = std::io::stdin().lines().next();
    drop(reader);
}

fn write_all(writer: &DataWriter<Numbered>) {
    for number in 0..5_000 {
        writer.write(&Numbered { source: 0, number, bytes: vec![0; 1000] }).unwrap();
    }
}

#[test]
fn a_killed_reader_holds_up_no_writer() {
    let world = World::new();
    let writer = world.writer(&world.participant(), lossless_writer());
    for _ in 0..3 {
        let mut reader = Reader::start(&world);
        writer.wait_for_subscriptions(1, DEADLINE).unwrap();
        reader.kill();
        // More than fits any window. Were the reader waited for until the end of its lease, a write would time out.
        write_all(&writer);
        assert_eq!(writer.publication_matched_status().current_count, 0);
    }
}

#[test]
fn a_killed_reader_with_a_successor_at_its_address_holds_up_no_writer() {
    let world = World::new();
    let writer = world.writer(&world.participant(), lossless_writer());
    let mut reader = Reader::start(&world);
    writer.wait_for_subscriptions(1, DEADLINE).unwrap();
    for _ in 0..2 {
        reader.kill();
        // The next process gets the same ports.
        reader = Reader::start(&world);
        write_all(&writer);
        writer.wait_for_acknowledgments(DEADLINE).unwrap();
        assert_eq!(writer.publication_matched_status().current_count, 1);
    }
}

#[test]
fn a_stuck_reader_holds_up_a_writer_as_long_as_its_policy_says() {
    let world = World::new();
    let qos: DataWriterQos = lossless_writer().reader_inactivity(Duration::from_millis(100));
    let writer = world.writer(&world.participant(), qos);
    let healthy: DataReader<Numbered> =
        world.reader(&world.participant(), DataReaderQos::default().reliable());
    // Keeps one sample, which is not taken.
    let limits = ResourceLimits::default().max_samples(1);
    let stuck: DataReader<Numbered> =
        world.reader(&world.participant(), lossless_reader().resource_limits(limits));
    matched(&[&writer], &[&healthy, &stuck]);
    write_all(&writer);
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    let status = writer.reader_inactivity_status();
    assert!(status.total_count >= 1 && status.total_count == status.total_count_change, "{status:?}");
    assert_eq!(
        writer.inactive_subscriptions().iter().filter(|reader| **reader != stuck.instance_handle()).count(),
        0
    );
    // It is matched all the same. What was released it gets as lost, and then it is waited for again.
    assert_eq!(writer.publication_matched_status().current_count, 2);
    for number in 0.. {
        if writer.protocol_counters().readers_resumed > 0 {
            break;
        }
        writer.write(&Numbered::new(1, number)).unwrap();
        healthy.wait_for_data(DEADLINE).unwrap();
        healthy.take(usize::MAX);
        stuck.take(usize::MAX);
    }
}
