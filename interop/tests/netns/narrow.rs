//! A router between two hosts, whose second link takes shorter packets than the first.

use weir_dds::{DataReaderQos, DataWriterQos, DdsType, ParticipantSettings, Topic};
use weir_interop::Requirement;
use weir_interop::netns::Cable;

use crate::pair::{LIMIT, participant};

#[derive(Debug, Default, Clone, PartialEq, DdsType)]
#[dds(extensibility = "final")]
struct Blob {
    bytes: Vec<u8>,
}

/// Writes samples of these lengths, and waits for each.
fn exchange(cable: &Cable, lengths: &[usize]) {
    // Multicast does not pass the router.
    let peers = ["10.77.0.1", "10.77.1.2"].map(|peer| peer.parse().unwrap());
    let settings = peers.iter().fold(ParticipantSettings::default(), |settings, peer| settings.peer(*peer));
    let ends = [&cable.one, &cable.other].map(|end| (end, participant(end, &settings)));
    let [(one, sender), (other, receiver)] = &ends;
    let topics: Vec<Topic<Blob>> =
        [sender, receiver].map(|end| end.create_topic("narrow").unwrap()).into_iter().collect();
    let qos = DataWriterQos::default().reliable().keep_all().max_blocking_time(LIMIT);
    let writer =
        one.within(|| sender.create_publisher().unwrap().create_datawriter(&topics[0], qos).unwrap());
    let qos = DataReaderQos::default().reliable().keep_all();
    let reader =
        other.within(|| receiver.create_subscriber().unwrap().create_datareader(&topics[1], qos).unwrap());
    one.within(|| writer.wait_for_subscriptions(1, LIMIT).unwrap());
    for (number, len) in lengths.iter().enumerate() {
        let sample = Blob { bytes: vec![number as u8; *len] };
        one.within(|| writer.write(&sample).unwrap());
        other.within(|| assert!(reader.wait_for_data(LIMIT).is_ok(), "{len} bytes do not arrive"));
        let received: Vec<_> = other
            .within(|| reader.take(usize::MAX))
            .into_iter()
            .map(|it| it.data().unwrap().clone())
            .collect();
        assert_eq!(received, [sample]);
    }
    one.within(|| writer.wait_for_acknowledgments(LIMIT).unwrap());
}

#[test]
fn samples_that_fit_the_first_hop_only_arrive_whether_the_router_reports_them_or_not() {
    if !Requirement::Netns.is_met() {
        return;
    }
    for is_silent in [false, true] {
        let cable = Cable::lay_through_router(1280);
        if is_silent {
            cable.silence_router();
        }
        exchange(&cable, &[1_300, 1_100, 60_000, 1_200, 1_250, 1_399]);
    }
}
