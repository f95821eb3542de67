//! Several readers of one multicast group, with Cyclone DDS on the other side.

use weir_dds::{Coalescing, DataReaderQos, DataWriterQos, MulticastGroup, Reliability};
use weir_interop::Requirement;

use crate::cyclonedds::start;
use crate::types::{Numbered, ShapeType};
use crate::weir::{LIMIT, Run, take_exactly};

const COUNT: u32 = 1000;

#[test]
fn two_readers_of_cyclone_get_what_weir_sends_once() {
    if !Requirement::CycloneDds.is_met() {
        return;
    }
    let run = Run::new("multicast_to_cyclone");
    let mut peers = [start(&run, ""), start(&run, "")];
    for peer in &mut peers {
        peer.ask(&run.command::<ShapeType>("reader", Reliability::Reliable));
    }
    let qos = DataWriterQos::default().reliable().keep_all().coalescing(Coalescing::Off);
    let writer = run.writer_with_qos::<ShapeType>(qos.max_blocking_time(LIMIT));
    writer.wait_for_subscriptions(2, LIMIT).unwrap();
    peers.iter_mut().for_each(|peer| peer.tell(&format!("read 0 {COUNT} 10 3")));
    (0..COUNT).for_each(|number| writer.write(&ShapeType::make(number, 10, 3)).unwrap());
    writer.wait_for_acknowledgments(LIMIT).unwrap();
    for mut peer in peers {
        peer.answer();
        peer.quit();
    }
    // Cyclone DDS announces the group by default.
    let samples = writer.send_counters().samples;
    assert!(samples < 3 * u64::from(COUNT) / 2, "{samples} sends for {COUNT} samples");
}

#[test]
fn two_readers_of_weir_get_what_cyclone_sends_to_their_group() {
    if !Requirement::CycloneDds.is_met() {
        return;
    }
    let run = Run::new("multicast_to_weir");
    let runs = [run.another(), run];
    let qos = DataReaderQos::default().reliable().keep_all().multicast(MulticastGroup::default());
    let readers = runs.each_ref().map(|run| run.reader_with_qos::<ShapeType>(qos.clone()));
    let mut peer = start(&runs[0], "");
    peer.ask(&runs[0].command::<ShapeType>("writer", Reliability::Reliable));
    peer.ask("matched 2");
    peer.tell(&format!("write 0 {COUNT} 10 3"));
    readers.iter().for_each(|reader| take_exactly(reader, 0, COUNT, 10, 3));
    peer.answer();
    peer.ask("acknowledged");
    for run in &runs {
        let counters = run.participant().receive_counters();
        assert!(counters.multicast > u64::from(COUNT) / 2, "{counters:?}");
    }
    peer.quit();
}
