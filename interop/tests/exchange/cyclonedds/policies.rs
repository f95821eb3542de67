//! Policies, with Cyclone DDS.

use weir_dds::PolicyId;
use weir_interop::Requirement;

use crate::cyclonedds;
use crate::peer::Peer;
use crate::policies as shared;
use crate::weir::Run;

fn start(run: &Run) -> Peer {
    cyclonedds::start(run, "")
}

macro_rules! with_cyclone {
    ($($test:ident)*) => {
        $(
            #[test]
            fn $test() {
                if Requirement::CycloneDds.is_met() {
                    shared::$test(stringify!($test), start);
                }
            }
        )*
    };
}

with_cyclone! {
    the_strongest_of_weirs_writers_owns_an_instance
    the_strongest_of_the_others_writers_owns_an_instance
    both_miss_a_deadline_of_weirs_writer
    both_miss_a_deadline_of_the_others_writer
    samples_of_weir_expire_in_the_others_reader
    samples_of_the_other_expire_in_weirs_reader
    weirs_reader_is_delivered_one_sample_in_an_hour
    the_others_reader_orders_by_source_timestamp
    weirs_reader_orders_by_source_timestamp
    patterns_of_partitions_match_on_either_side
    a_reader_that_knows_no_sets_gets_all_samples_of_coherent_ones
    presentation_is_offered_and_requested
}

#[test]
fn each_sees_the_data_of_the_other() {
    if Requirement::CycloneDds.is_met() {
        shared::each_sees_the_data_of_the_other("data", start, "their-topic");
    }
}

#[test]
fn all_incompatible_policies_are_named() {
    if Requirement::CycloneDds.is_met() {
        let more = [PolicyId::DestinationOrder, PolicyId::Presentation];
        let more = (&more[..], "by-source-timestamp presentation=topic coherent");
        shared::all_incompatible_policies_are_named("incompatible_policies", start, more);
    }
}
