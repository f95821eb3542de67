//! Static endpoint discovery from a file, over the loopback interface. (What peers do that differ from the file is
//! tested on the simulated network.)

use weir_dds::{
    DataReader, DataReaderQos, DataWriter, DataWriterQos, DdsError, DdsType, DomainParticipant,
    ParticipantSettings, StaticDiscovery,
};

use crate::support::{DEADLINE, Keyed, Numbered, World};

/// Two participants and one that is not in the file exchange samples of one topic.
const SYSTEM: &str = r#"
[[participant]]
name = "arm"

[[participant.writer]]
entity_key = 0x0a0b0c
topic = "Joints"
type = "TYPE"
keyed = true

[[participant.reader]]
entity_key = 7
topic = "Commands"
type = "TYPE"
keyed = true
reliability = "reliable"
deadline = "60s"
partition = ["left", "right*"]

[[participant]]
name = "controller"

[[participant.reader]]
entity_key = 3
topic = "Joints"
type = "TYPE"
keyed = true
reliability = "reliable"
"#;

fn system() -> StaticDiscovery {
    StaticDiscovery::from_text("system.toml", &SYSTEM.replace("TYPE", Keyed::TYPE_NAME)).unwrap()
}

fn participant(world: &World, name: &str) -> DomainParticipant {
    let settings = ParticipantSettings::default().interface("lo").name(name).static_discovery(system());
    DomainParticipant::new(world.domain_id, settings).unwrap()
}

fn reader<T: DdsType>(
    participant: &DomainParticipant,
    topic: &str,
    qos: DataReaderQos,
) -> weir_dds::Result<DataReader<T>> {
    participant.create_subscriber()?.create_datareader(&participant.create_topic::<T>(topic)?, qos)
}

fn writer<T: DdsType>(
    participant: &DomainParticipant,
    topic: &str,
    qos: DataWriterQos,
) -> weir_dds::Result<DataWriter<T>> {
    participant.create_publisher()?.create_datawriter(&participant.create_topic::<T>(topic)?, qos)
}

#[test]
fn endpoints_of_a_file_exchange_samples_with_each_other_and_with_others() {
    let world = World::new();
    let (arm, controller) = (participant(&world, "arm"), participant(&world, "controller"));
    let unknown =
        DomainParticipant::new(world.domain_id, ParticipantSettings::default().interface("lo")).unwrap();
    let qos = DataReaderQos::default().reliable().keep_all();
    let known = reader::<Keyed>(&controller, "Joints", qos.clone()).unwrap();
    let other = reader::<Keyed>(&unknown, "Joints", qos).unwrap();
    let joints = writer::<Keyed>(&arm, "Joints", DataWriterQos::default().keep_all()).unwrap();
    assert_eq!(joints.guid().entity.0, [0x0a, 0x0b, 0x0c, 0x02]);
    assert_eq!(known.guid().entity.0, [0, 0, 3, 0x07]);
    joints.wait_for_subscriptions(2, DEADLINE).unwrap();
    for value in 0..100 {
        joints.write(&Keyed { id: 1, value }).unwrap();
    }
    joints.wait_for_acknowledgments(DEADLINE).unwrap();
    for reader in [&known, &other] {
        let taken: Vec<_> = reader.take(200).iter().filter_map(|it| it.data().map(|it| it.value)).collect();
        assert_eq!(taken, (0..100).collect::<Vec<_>>());
    }
    for participant in [&arm, &controller] {
        assert_eq!(participant.static_differences(), []);
    }
}

#[test]
fn an_endpoint_that_differs_from_its_file_is_refused_with_the_line_and_the_difference() {
    let world = World::new();
    let arm = participant(&world, "arm");
    let refused = |error: DdsError| match error {
        DdsError::BadParameter(text) => text,
        other => panic!("{other}"),
    };
    let commands = DataReaderQos::default().reliable().deadline(std::time::Duration::from_secs(60));
    let text = refused(reader::<Keyed>(&arm, "Commands", commands.clone()).unwrap_err());
    let expected = "system.toml:11: the reader of the topic \"Commands\" has other policies here than in the program \
                    (PARTITION): change one of them";
    assert_eq!(text, expected);
    let commands = commands.partition(["left", "right*"]);
    let text = refused(reader::<Numbered>(&arm, "Commands", commands.clone()).unwrap_err());
    assert!(text.starts_with("system.toml:11: the reader of the topic \"Commands\" has the type "), "{text}");
    let text = refused(writer::<Unkeyed>(&arm, "Joints", DataWriterQos::default()).unwrap_err());
    assert!(text.contains("keyed = true here, and its type has false"), "{text}");

    let first = reader::<Keyed>(&arm, "Commands", commands.clone()).unwrap();
    let text = refused(reader::<Keyed>(&arm, "Commands", commands.clone()).unwrap_err());
    let expected = "system.toml: all readers of the topic \"Commands\" are in use already (line 11): add one to the \
                    file";
    assert_eq!(text, expected);
    // Its id is free when it is gone. Endpoints of other topics are not in the file.
    drop(first);
    reader::<Keyed>(&arm, "Commands", commands).unwrap();
    let ids: Vec<_> =
        (0..8).map(|_| reader::<Numbered>(&arm, "Log", DataReaderQos::default()).unwrap()).collect();
    assert!(ids.iter().all(|reader| reader.guid().entity.0[..3] != [0, 0, 7]));
}

/// As [`Keyed`], without a key.
#[derive(DdsType, Default)]
#[dds(extensibility = "final", name = "Keyed")]
struct Unkeyed {
    value: u64,
}

#[test]
fn a_mistake_in_a_file_is_reported_with_its_line_and_cause() {
    let error = |change: &dyn Fn(&str) -> String| {
        StaticDiscovery::from_text("system.toml", &change(SYSTEM)).unwrap_err().to_string()
    };
    let replaced = |from: &'static str, to: &'static str| error(&move |text| text.replacen(from, to, 1));
    for (from, to, expected) in [
        ("name = \"arm\"", "name = arm", "system.toml:3: "),
        ("name = \"arm\"", "", "system.toml:2: the participant has no `name`"),
        ("name = \"arm\"", "name = \"\"", "system.toml:3: `name`: use 1 to 256 bytes"),
        (
            "name = \"controller\"",
            "name = \"arm\"",
            "system.toml:20: there is another participant \"arm\": use each name once",
        ),
        ("entity_key = 7", "entity_key = 0", "system.toml:12: `entity_key`: use a number from 1 to 16777215"),
        (
            "entity_key = 7",
            "entity_key = \"7\"",
            "system.toml:12: `entity_key`: use a number from 1 to 16777215",
        ),
        ("topic = \"Joints\"", "", "system.toml:5: the writer has no `topic`"),
        (
            "deadline = \"60s\"",
            "deadline = 60",
            "system.toml:17: `deadline`: use a period such as \"100ms\" (units ns, us, ms, s), or \"infinite\"",
        ),
        (
            "reliability = \"reliable\"",
            "reliability = \"RELIABLE\"",
            "system.toml:16: `reliability`: use \"best_effort\" or \"reliable\"",
        ),
        (
            "deadline = \"60s\"",
            "deadlin = \"60s\"",
            "system.toml:17: unknown key `deadlin`: a reader has the keys ",
        ),
        ("[\"left\", \"right*\"]", "\"left\"", "system.toml:18: `partition`: use a list of texts in quotes"),
        ("name = \"arm\"", "name = \"arm\"\nhosts = [\"arm\"]", "system.toml:4: `hosts`: use IPv4 addresses"),
        (
            "[[participant.reader]]",
            "[participant.reader]",
            "system.toml:11: `reader`: use tables [[...reader]]",
        ),
    ] {
        let found = replaced(from, to);
        assert!(found.starts_with(expected), "{found}");
    }
    let doubled = "[[participant.reader]]\nentity_key = 3\ntopic = \"A\"\ntype = \"B\"\n";
    let found = error(&|text| format!("{text}{doubled}"));
    assert_eq!(found, "system.toml:29: the entity key is that of line 23: use another one");
    let missing = StaticDiscovery::from_file("/nonexistent/system.toml").unwrap_err();
    assert!(missing.to_string().starts_with("/nonexistent/system.toml: cannot be read: "), "{missing}");
    assert_eq!(missing.line(), None);
}
