//! Participants with limits tables, over the loopback interface. (What is refused, and what is allocated, is tested on
//! the simulated network and in weir-rtps.)

use weir_dds::budget::{Budget, Part};
use weir_dds::{DataReaderQos, DataWriterQos, DdsError, LimitsTable, ParticipantSettings, StaticDiscovery};

use crate::support::{DEADLINE, Keyed, World};

const LIMITS: &str = "
participants = 4
writers = 1
readers = 1

[endpoint]
samples = 16
instances = 4
sample_bytes = 64
";

fn table() -> LimitsTable {
    LimitsTable::from_text("limits.toml", LIMITS).unwrap()
}

fn settings() -> ParticipantSettings {
    ParticipantSettings::default().interface("lo").limits(table())
}

fn count(account: &Budget, part: Part) -> usize {
    account.items.iter().find(|item| item.part == part).unwrap().count
}

#[test]
fn samples_are_exchanged_within_limits_tables_and_the_account_has_what_exists() {
    let world = World::new();
    let [here, there] = [(); 2].map(|()| world.participant_with(settings()));
    let (ours, theirs) = (world.topic::<Keyed>(&here), world.topic::<Keyed>(&there));
    let qos = DataWriterQos::default().reliable().keep_all().max_blocking_time(DEADLINE);
    let writer = here.create_publisher().unwrap().create_datawriter(&ours, qos).unwrap();
    let qos = DataReaderQos::default().reliable().keep_all();
    let reader = there.create_subscriber().unwrap().create_datareader(&theirs, qos).unwrap();
    writer.wait_for_subscriptions(1, DEADLINE).unwrap();
    reader.wait_for_publications(1, DEADLINE).unwrap();
    for value in 0..200 {
        writer.write(&Keyed { id: value as u32 % 4, value }).unwrap();
        reader.wait_for_data(DEADLINE).unwrap();
        let values: Vec<_> =
            reader.take(usize::MAX).iter().filter_map(|it| it.data().map(|it| it.value)).collect();
        assert_eq!(values, [value]);
    }
    assert_eq!(writer.protocol_counters().blocks_beyond_limits, 0);
    assert_eq!(reader.protocol_counters().chunks_beyond_limits, 0);

    let (account, budget) = (here.memory_account().unwrap(), table().budget());
    assert_eq!((count(&account, Part::Writer), count(&account, Part::Reader)), (1, 0));
    assert_eq!(count(&account, Part::WriterMatch), 1);
    assert_eq!(count(&account, Part::RemoteParticipant), count(&budget, Part::RemoteParticipant));
    assert!(account.total() < budget.total());
    for (item, most) in account.items.iter().zip(&budget.items) {
        assert_eq!((item.part, item.bytes_each), (most.part, most.bytes_each));
    }
    let endless = world.participant();
    assert_eq!(endless.memory_account(), None);
}

#[test]
fn what_the_table_has_no_room_for_is_an_error_with_the_line_to_change() {
    let world = World::new();
    let participant = world.participant_with(settings());
    let topic = world.topic::<Keyed>(&participant);
    let publisher = participant.create_publisher().unwrap();
    let text = |error: DdsError| match error {
        DdsError::OutOfResources(text) => text,
        other => panic!("{other}"),
    };
    let keep = |depth| DataWriterQos::default().keep_last(depth);
    let error = publisher.create_datawriter(&topic, keep(5)).unwrap_err();
    assert!(text(error).starts_with("limits.toml:7: `samples` is 16, too few: KEEP_LAST keeps 20"));
    let writer = publisher.create_datawriter(&topic, keep(4)).unwrap();
    let error = publisher.create_datawriter(&topic, keep(4)).unwrap_err();
    assert_eq!(text(error), "limits.toml:3: `writers` is 1, too few: one more is created: use at least 2");
    writer.close().unwrap();
    drop(writer);
    assert!(publisher.create_datawriter(&topic, keep(4)).is_ok());
}

#[test]
fn a_table_without_room_for_the_static_system_is_refused_before_the_start() {
    let system = r#"
        [[participant]]
        name = "arm"
        [[participant.reader]]
        entity_key = 1
        topic = "Joints"
        type = "Joints"
        [[participant.reader]]
        entity_key = 2
        topic = "Joints"
        type = "Joints"
        "#;
    let system = StaticDiscovery::from_text("system.toml", system).unwrap();
    let settings = settings().name("arm").static_discovery(system);
    let world = World::new();
    match weir_dds::DomainParticipant::new(world.domain_id, settings) {
        Err(DdsError::BadParameter(text)) => assert_eq!(
            text,
            "limits.toml:4: `readers` is 1, too few: \"arm\" has 2 of them (system.toml): use at least 2"
        ),
        other => panic!("{:?}", other.map(|_| "started")),
    }
}
