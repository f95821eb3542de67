//! Endpoints of Cyclone DDS whose announcements are longer than one of its fragments (1344 bytes by
//! default).

use weir_dds::{DataReaderQos, DataWriterQos, Reliability};
use weir_interop::Requirement;

use crate::cyclonedds::start;
use crate::types::{Blob, Numbered};
use crate::weir::{LIMIT, Run, take_exactly};

/// The partitions of an endpoint, as the peer creates them.
fn partitions() -> impl Iterator<Item = String> {
    (0..60).map(|number| format!("a partition whose name makes announcements longer {number:02}"))
}

/// Creates three writers and three readers of one Cyclone DDS participant, one after the other,
/// each with a policy that makes its announcement long; the last ones have none. Exchanges samples
/// both ways between each and an endpoint of Weir.
fn exchange(name: &str, general: &str) {
    if !Requirement::CycloneDds.is_met() {
        return;
    }
    let mut run = Run::new(name);
    let topic = run.topic.clone();
    let mut peer = start(&run, general);
    for (number, (options, has_partitions)) in
        [(" user-data=3000", false), (" partitions=60", true), ("", false)].into_iter().enumerate()
    {
        run.topic = format!("{topic}_{number}_to_weir");
        let mut qos = DataReaderQos::default().reliable().keep_all();
        if has_partitions {
            qos = qos.partition(partitions());
        }
        let reader = run.reader_with_qos::<Blob>(qos);
        peer.ask(&(run.command::<Blob>("writer", Reliability::Reliable) + options));
        peer.ask("matched 1");
        peer.ask("write 0 20 100 1");
        take_exactly(&reader, 0, 20, 100, 1);

        run.topic = format!("{topic}_{number}_to_cyclone");
        let mut qos = DataWriterQos::default().reliable().keep_all();
        if has_partitions {
            qos = qos.partition(partitions());
        } else if !options.is_empty() {
            // The maximum that a Weir participant announces.
            qos.user_data = vec![7; 1024];
        }
        let writer = run.writer_with_qos::<Blob>(qos);
        peer.ask(&(run.command::<Blob>("reader", Reliability::Reliable) + options));
        writer.wait_for_subscriptions(1, LIMIT).unwrap();
        peer.tell("read 0 20 100 1");
        (0..20).for_each(|number| writer.write(&Blob::make(number, 100, 1)).unwrap());
        writer.wait_for_acknowledgments(LIMIT).unwrap();
        peer.answer();
    }
    peer.quit();
}

#[test]
fn endpoints_with_long_announcements_and_later_ones_are_discovered() {
    exchange("long_announcements", "");
}

#[test]
fn announcements_in_many_short_fragments_are_discovered() {
    // The shortest fragments of Cyclone DDS, one per message.
    exchange("short_fragments", "<MaxMessageSize>1456B</MaxMessageSize><FragmentSize>1025B</FragmentSize>");
}
