//! Policies of DDS 1.4, 2.2.3, that are not enforced yet are refused.

use std::time::Duration;

use weir_dds::{DataReaderQos, DataWriterQos, DdsError, INFINITE, Qos};
use weir_rtps::qos::{DestinationOrder, Ownership, PresentationScope};

use crate::support::{Numbered, World};

/// Creates a writer and a reader with QoS changed by `change`; returns their errors.
fn create(world: &World, change: impl Fn(&mut Qos)) -> [Option<DdsError>; 2] {
    let participant = world.participant();
    let topic = world.topic::<Numbered>(&participant);
    let (mut writer, mut reader) = (DataWriterQos::default(), DataReaderQos::default());
    change(&mut writer.policies);
    change(&mut reader.policies);
    [
        participant.create_publisher().create_datawriter(&topic, writer).err(),
        participant.create_subscriber().create_datareader(&topic, reader).err(),
    ]
}

#[test]
fn a_policy_that_is_not_enforced_is_refused_at_both_ends_with_its_name_value_and_default() {
    let world = World::new();
    let check = |change: fn(&mut Qos), expected: &str| {
        for result in create(&world, change) {
            match result {
                Some(DdsError::Unsupported(text)) => assert_eq!(text, expected),
                other => panic!("{other:?} is not {expected:?}"),
            }
        }
    };
    check(
        |qos| qos.deadline = Duration::from_millis(100),
        "DEADLINE: a period of 100ms is not enforced yet: leave it at its default (infinite)",
    );
    check(
        |qos| qos.ownership = Ownership::Exclusive,
        "OWNERSHIP: EXCLUSIVE is not enforced yet: leave it at its default (SHARED)",
    );
    check(
        |qos| qos.ownership_strength = -3,
        "OWNERSHIP_STRENGTH: a strength of -3 is not enforced yet: leave it at its default (0)",
    );
    check(
        |qos| qos.lifespan = Duration::from_secs(2),
        "LIFESPAN: a duration of 2s is not enforced yet: leave it at its default (infinite)",
    );
    check(
        |qos| qos.destination_order = DestinationOrder::BySourceTimestamp,
        "DESTINATION_ORDER: BY_SOURCE_TIMESTAMP is not enforced yet: leave it at its default \
         (BY_RECEPTION_TIMESTAMP)",
    );
    check(
        |qos| qos.presentation.scope = PresentationScope::Topic,
        "PRESENTATION: access scope TOPIC, coherent_access false, ordered_access false is not enforced yet: \
         leave it at its default (INSTANCE, false, false)",
    );
    check(
        |qos| qos.presentation.coherent_access = true,
        "PRESENTATION: access scope INSTANCE, coherent_access true, ordered_access false is not enforced yet: \
         leave it at its default (INSTANCE, false, false)",
    );
    check(
        |qos| qos.presentation.ordered_access = true,
        "PRESENTATION: access scope INSTANCE, coherent_access false, ordered_access true is not enforced yet: \
         leave it at its default (INSTANCE, false, false)",
    );
}

#[test]
fn the_defaults_a_latency_budget_and_a_priority_are_accepted_at_both_ends() {
    let world = World::new();
    let changes: [fn(&mut Qos); 4] = [
        |_| {},
        |qos| (qos.deadline, qos.lifespan, qos.ownership_strength) = (INFINITE, INFINITE, 0),
        |qos| qos.latency_budget = Duration::from_millis(10),
        |qos| qos.transport_priority = -7,
    ];
    for change in changes {
        let results = create(&world, change);
        assert!(results.iter().all(Option::is_none), "{results:?}");
    }
}
