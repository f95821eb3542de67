//! Policies and content filters, with Fast DDS.

use weir_dds::{DataReaderQos, Reliability};
use weir_interop::Requirement;

use super::start;
use crate::policies as shared;
use crate::types::{Numbered, ShapeType};
use crate::weir::{LIMIT, Run, take_exactly};

macro_rules! with_fast {
    ($($test:ident)*) => {
        $(
            #[test]
            fn $test() {
                if Requirement::FastDds.is_met() {
                    shared::$test(concat!("fast_", stringify!($test)), start);
                }
            }
        )*
    };
}

with_fast! {
    the_strongest_of_weirs_writers_owns_an_instance
    the_strongest_of_the_others_writers_owns_an_instance
    both_miss_a_deadline_of_weirs_writer
    both_miss_a_deadline_of_the_others_writer
    samples_of_the_other_expire_in_weirs_reader
    weirs_reader_is_delivered_one_sample_in_an_hour
    patterns_of_partitions_match_on_either_side
    a_reader_that_knows_no_sets_gets_all_samples_of_coherent_ones
}

#[test]
fn each_sees_the_data_of_the_other() {
    if Requirement::FastDds.is_met() {
        // Fast DDS 2 announces the data of topics with writers only.
        shared::each_sees_the_data_of_the_other("fast_data", start, "");
    }
}

#[test]
fn all_incompatible_policies_are_named() {
    if Requirement::FastDds.is_met() {
        shared::all_incompatible_policies_are_named("fast_incompatible_policies", start, (&[], ""));
    }
}

#[test]
fn weirs_writer_filters_for_fasts_reader() {
    if !Requirement::FastDds.is_met() {
        return;
    }
    let run = Run::new("fast_filter_to_fast");
    let mut peer = start(&run);
    let command = run.command::<ShapeType>("reader", Reliability::Reliable);
    peer.ask(&format!("{command} filter=x >= %0 AND color = 'C-0'"));
    let writer = run.writer::<ShapeType>(Reliability::Reliable);
    writer.wait_for_subscriptions(1, LIMIT).unwrap();
    peer.ask("matched 1");
    (0..40).for_each(|number| writer.write(&ShapeType::make(number, 10, 1)).unwrap());
    writer.wait_for_acknowledgments(LIMIT).unwrap();
    peer.ask("read 10 30 10 1");
    let counters = writer.protocol_counters();
    assert_eq!(counters.content_filters_ignored, 0);
    assert!(counters.gaps_sent > 0, "samples that the reader filters out were sent: {counters:?}");
    peer.quit();
}

#[test]
fn fasts_writer_filters_for_weirs_reader() {
    if !Requirement::FastDds.is_met() {
        return;
    }
    let run = Run::new("fast_filter_to_weir");
    let mut peer = start(&run);
    peer.ask(&(run.command::<ShapeType>("writer", Reliability::Reliable) + " heartbeats"));
    let (topic, participant) = (run.topic::<ShapeType>(), run.participant());
    let filtered = participant.create_contentfilteredtopic("filtered", &topic, "x >= %0", &["10"]).unwrap();
    let qos = DataReaderQos::default().reliable().keep_all();
    let reader = participant.create_subscriber().unwrap().create_datareader(&filtered, qos).unwrap();
    reader.wait_for_publications(1, LIMIT).unwrap();
    peer.ask("matched 1");
    peer.ask("write 0 40 10 1");
    peer.ask("acknowledged");
    take_exactly(&reader, 10, 30, 10, 1);
    let counters = reader.protocol_counters();
    assert_eq!((counters.samples_content_filtered, counters.samples_lost), (0, 0), "{counters:?}");
    peer.quit();
}
