//! A participant without threads, whose path to the other host is paced: it sends when it is polled.

use std::time::Duration;

use weir_dds::{DataReaderQos, DataWriterQos, DdsType, ParticipantSettings};
use weir_interop::Requirement;
use weir_interop::netns::Cable;

use crate::pair::{LIMIT, participant};

#[derive(Debug, Default, Clone, PartialEq, DdsType)]
#[dds(extensibility = "final")]
struct Blob {
    number: u32,
    bytes: Vec<u8>,
}

/// Samples of 1 KiB.
const COUNT: u32 = 600;
/// In bits per second. The samples take about half a second.
const RATE: u64 = 10_000_000;

#[test]
fn a_paced_writer_of_a_participant_without_threads_sends_in_polls() {
    if !Requirement::Netns.is_met() {
        return;
    }
    let cable = Cable::lay();
    let Cable { one, other, .. } = &cable;
    let settings = ParticipantSettings::default().rate_max(RATE);
    let sender = participant(one, &settings.without_threads());
    let receiver = participant(other, &ParticipantSettings::default());
    let topics = [&sender, &receiver].map(|end| end.create_topic::<Blob>("paced").unwrap());
    let qos = DataWriterQos::default().reliable().keep_all().max_blocking_time(LIMIT);
    let writer =
        one.within(|| sender.create_publisher().unwrap().create_datawriter(&topics[0], qos).unwrap());
    let qos = DataReaderQos::default().reliable().keep_all();
    let reader =
        other.within(|| receiver.create_subscriber().unwrap().create_datareader(&topics[1], qos).unwrap());
    one.within(|| writer.wait_for_subscriptions(1, LIMIT).unwrap());
    one.within(|| {
        for number in 0..COUNT {
            writer.write(&Blob { number, bytes: vec![7; 1024] }).unwrap();
        }
        // What exceeded the rate is still in the history.
        while sender.paths().iter().all(|(_, path)| path.sent_bytes < u64::from(COUNT) * 1024) {
            sender.poll(Duration::from_millis(100)).unwrap();
        }
        writer.wait_for_acknowledgments(LIMIT).unwrap();
    });
    let rates: Vec<_> = sender.paths().iter().filter_map(|(_, path)| path.rate).collect();
    assert!(rates.len() == 1 && rates[0] * 8.0 <= RATE as f64, "{rates:?}");
    let received = other.within(|| reader.take(usize::MAX));
    let numbers: Vec<_> = received.iter().filter_map(|it| it.data().map(|blob| blob.number)).collect();
    assert_eq!(numbers, (0..COUNT).collect::<Vec<_>>());
}
