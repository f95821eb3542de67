//! QoS profiles in XML files (OMG DDS-XML 1.0).

use std::time::Duration;

use weir_dds::{
    DataReader, DataReaderQos, DataRepresentation, DataWriter, DataWriterQos, DestinationOrder,
    DomainParticipantQos, Durability, DurabilityService, History, INFINITE, LivelinessKind, Ownership,
    PublisherQos, QosProvider, ReaderDataLifecycle, ResourceLimits, SubscriberQos, TopicQos, TypeConsistency,
    TypeConsistencyKind,
};
use weir_rtps::qos::PresentationScope;

use crate::profile_text::ALL;
use crate::support::{Numbered, World, matched, take_exactly};

fn parse(profile_content: &str) -> QosProvider {
    QosProvider::from_text("test.xml", &in_profile(profile_content)).unwrap()
}

fn in_profile(content: &str) -> String {
    format!(
        "<dds><qos_library name=\"L\"><qos_profile name=\"P\">\n{content}\n</qos_profile></qos_library></dds>"
    )
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn every_policy_is_read() {
    let provider = QosProvider::from_text("all.xml", ALL).unwrap();
    assert_eq!(provider.warnings(), [""; 0]);
    assert_eq!(provider.profiles().collect::<Vec<_>>(), ["All::Profile"]);
    let limits = ResourceLimits::default().max_samples(100).max_instances(10).max_samples_per_instance(20);
    let service = DurabilityService {
        service_cleanup_delay: Duration::new(1, 500_000_000),
        history: History::KeepLast(7),
        max_samples: Some(70),
        max_instances: None,
        max_samples_per_instance: Some(8),
    };
    let topic = TopicQos::default()
        .topic_data(*b"hello")
        .durability(Durability::Persistent)
        .durability_service(service)
        .deadline(ms(100))
        .latency_budget(ms(5))
        .liveliness(LivelinessKind::ManualByTopic, Duration::from_secs(3))
        .reliable()
        .max_blocking_time(ms(250))
        .destination_order(DestinationOrder::BySourceTimestamp)
        .keep_last(6)
        .resource_limits(limits)
        .transport_priority(-4)
        .lifespan(Duration::from_secs(60))
        .ownership(Ownership::Exclusive)
        .data_representation([DataRepresentation::Xcdr2, DataRepresentation::Xcdr1]);
    assert_eq!(provider.topic_qos("All::Profile", None), Ok(topic.clone()));
    let writer = DataWriterQos::default()
        .copy_from_topic_qos(&topic)
        .user_data(vec![1, 2, 255])
        .ownership_strength(12)
        .autodispose_unregistered_instances(false)
        .partition(["left", "r*"]);
    assert_eq!(provider.datawriter_qos("All::Profile", Some("any")), Ok(writer));
    let reader = DataReaderQos::default()
        .copy_from_topic_qos(&topic)
        .deadline(ms(200))
        .user_data(vec![9])
        .time_based_filter(ms(40))
        .reader_data_lifecycle(ReaderDataLifecycle {
            autopurge_nowriter_samples_delay: Duration::from_secs(4),
            autopurge_disposed_samples_delay: INFINITE,
        })
        .type_consistency(
            TypeConsistency::default()
                .kind(TypeConsistencyKind::DisallowTypeCoercion)
                .ignore_sequence_bounds(false)
                .ignore_string_bounds(false)
                .ignore_member_names(true)
                .prevent_type_widening(true)
                .force_type_validation(true),
        )
        .partition(["right"]);
    assert_eq!(provider.datareader_qos("All::Profile", None), Ok(reader));
    let participant = DomainParticipantQos::default().user_data(*b"robot").autoenable_created_entities(false);
    assert_eq!(provider.participant_qos("All::Profile"), Ok(participant));
    let publisher = PublisherQos::default()
        .coherent_access(PresentationScope::Group)
        .ordered_access(PresentationScope::Group)
        .partition(["left", "r*"])
        .group_data(vec![7])
        .autoenable_created_entities(false);
    assert_eq!(provider.publisher_qos("All::Profile", Some("any")), Ok(publisher));
    let subscriber = SubscriberQos::default().partition(["right"]);
    assert_eq!(provider.subscriber_qos("All::Profile", None), Ok(subscriber));
}

#[test]
fn an_empty_profile_has_the_defaults() {
    let provider = parse("");
    assert_eq!(provider.datawriter_qos("L::P", None), Ok(DataWriterQos::default()));
    assert_eq!(provider.datareader_qos("L::P", None), Ok(DataReaderQos::default()));
    assert_eq!(provider.topic_qos("L::P", None), Ok(TopicQos::default()));
    assert_eq!(provider.publisher_qos("L::P", None), Ok(PublisherQos::default()));
    assert_eq!(provider.subscriber_qos("L::P", None), Ok(SubscriberQos::default()));
    assert_eq!(provider.participant_qos("L::P"), Ok(DomainParticipantQos::default()));
}

#[test]
fn bytes_are_a_list_with_a_comma_or_of_one_number_and_base_64_otherwise() {
    for (text, bytes) in [
        ("0042", &[0xd3, 0x4e, 0x36][..]),
        ("12345678", &[0xd7, 0x6d, 0xf8, 0xe7, 0xae, 0xfc]),
        ("255", &[255]),
        ("7", &[7]),
        ("0,042", &[0, 42]),
        ("", &[]),
    ] {
        let provider = parse(&format!(
            "<participant_qos><user_data><value>{text}</value></user_data></participant_qos>"
        ));
        let expected = DomainParticipantQos::default().user_data(bytes);
        assert_eq!(provider.participant_qos("L::P"), Ok(expected), "{text}");
    }
}

#[test]
fn a_profile_inherits_what_it_does_not_set_itself() {
    let base = r#"<dds><qos_library name="Base">
        <qos_profile name="Reliable">
          <datawriter_qos>
            <reliability><kind>RELIABLE_RELIABILITY_QOS</kind></reliability>
            <history><depth>3</depth><kind>KEEP_LAST_HISTORY_QOS</kind></history>
            <deadline><period><sec>1</sec><nanosec>0</nanosec></period></deadline>
          </datawriter_qos>
        </qos_profile>
        <qos_profile name="Durable" base_name="Reliable">
          <datawriter_qos><durability><kind>TRANSIENT_LOCAL_DURABILITY_QOS</kind></durability></datawriter_qos>
        </qos_profile>
        <datawriter_qos name="Strong"><ownership_strength><value>5</value></ownership_strength></datawriter_qos>
        </qos_library></dds>"#;
    let derived = r#"<dds><qos_library name="Mine">
        <qos_profile name="Status" base_name="Base::Durable">
          <datawriter_qos><history><kind>KEEP_ALL_HISTORY_QOS</kind></history></datawriter_qos>
          <datawriter_qos topic_filter="Odd*" base_name="Base::Strong">
            <history><depth>9</depth></history>
          </datawriter_qos>
        </qos_profile></qos_library></dds>"#;
    let directory = tempfile(&[("base.xml", base), ("mine.xml", derived)]);
    let provider = QosProvider::from_files(&directory.paths).unwrap();
    let status = provider.datawriter_qos("Mine::Status", Some("Pose")).unwrap();
    let expected =
        DataWriterQos::default().reliable().transient_local().keep_all().deadline(Duration::from_secs(1));
    assert_eq!(status, expected);
    // The first element that fits counts: here the one without a filter.
    assert_eq!(provider.datawriter_qos("Mine::Status", Some("OddOne")), Ok(expected));
    let names: Vec<_> = provider.profiles().collect();
    assert_eq!(names, ["Base::Reliable", "Base::Durable", "Base::Strong", "Mine::Status"]);
    assert_eq!(provider.datawriter_qos("Base::Strong", None).unwrap().ownership_strength, 5);
}

#[test]
fn topic_filters_choose_and_the_base_of_an_element_goes_before_that_of_its_profile() {
    let text = r#"<dds><qos_library name="L">
        <qos_profile name="A">
          <datareader_qos topic_filter="Image?"><history><depth>4</depth></history></datareader_qos>
          <datareader_qos><history><depth>2</depth></history></datareader_qos>
        </qos_profile>
        <qos_profile name="B"><datareader_qos>
          <reliability><kind>RELIABLE_RELIABILITY_QOS</kind></reliability>
        </datareader_qos></qos_profile>
        <qos_profile name="C" base_name="A">
          <datareader_qos topic_filter="Log*" base_name="L::B"/>
          <datareader_qos topic_filter="Image1"><durability><kind>TRANSIENT_LOCAL</kind></durability></datareader_qos>
        </qos_profile></qos_library></dds>"#;
    let provider = QosProvider::from_text("test.xml", text).unwrap();
    let qos = |topic| provider.datareader_qos("L::C", topic).unwrap();
    assert_eq!(qos(Some("Image1")), DataReaderQos::default().keep_last(4).transient_local());
    assert_eq!(qos(Some("Image2")), DataReaderQos::default().keep_last(4));
    assert_eq!(qos(Some("Pose")), DataReaderQos::default().keep_last(2));
    assert_eq!(qos(None), DataReaderQos::default().keep_last(2));
    assert_eq!(qos(Some("Logs")), DataReaderQos::default().reliable());
}

#[test]
fn elements_of_other_engines_are_skipped_with_a_warning() {
    let provider = parse(
        "<participant_factory_qos/>\n<datawriter_qos>\n<protocol><rtps_reliable_writer/></protocol>\n\
         <reliability><acknowledgment_kind>X</acknowledgment_kind></reliability></datawriter_qos>",
    );
    let expected = [
        "test.xml:2: <participant_factory_qos> is skipped: Weir has no such entity",
        "test.xml:4: <protocol> is skipped: it is specific to another engine",
        "test.xml:5: <acknowledgment_kind> in <reliability> is skipped: it is specific to another engine",
    ];
    assert_eq!(provider.warnings(), expected);
    assert_eq!(provider.datawriter_qos("L::P", None), Ok(DataWriterQos::default()));
}

/// Checks the error of a file.
fn check(text: &str, expected: &str) {
    let error = QosProvider::from_text("robot.xml", text).unwrap_err().to_string();
    assert_eq!(error, expected, "{text}");
}

#[test]
fn a_mistake_in_the_structure_is_reported_with_file_line_and_cause() {
    check("<dds>", "robot.xml:1:1: the root node was opened but never closed");
    check("<profiles/>", "robot.xml:1:1: the root element is <profiles>: QoS profiles are in <dds>");
    check("<dds><a/></dds>", "robot.xml:1:6: <dds> has no element <a>: profiles are in <qos_library>");
    check("<dds><qos_library/></dds>", "robot.xml:1:6: <qos_library> needs the attribute name");
    check(
        "<dds>\n<qos_library name=\"a::b\"/></dds>",
        "robot.xml:2:1: name \"a::b\": use a name without \"::\"",
    );
    check(
        "<dds><qos_library name=\"L\"><profile name=\"P\"/></qos_library></dds>",
        "robot.xml:1:28: <qos_library> has no element <profile>: profiles are <qos_profile>",
    );
    check(
        "<dds><qos_library name=\"L\"><qos_profile name=\"P\"/>\n<qos_profile name=\"P\"/></qos_library></dds>",
        "robot.xml:2:1: there is a profile L::P already",
    );
    check(
        "<dds><qos_library name=\"L\"><qos_profile name=\"P\" base_name=\"Q\"/></qos_library></dds>",
        "robot.xml:1:28: base_name: there is no profile \"L::Q\"; did you mean \"L::P\"?",
    );
    check(
        "<dds><qos_library name=\"L\"><qos_profile name=\"P\" base_name=\"Q\"/>\n\
         <qos_profile name=\"Q\" base_name=\"P\"/></qos_library></dds>",
        "robot.xml:1:28: base_name \"L::Q\": the profiles inherit from each other without end",
    );
    let error = parse("").datawriter_qos("L::Q", None).unwrap_err();
    assert_eq!(error.to_string(), "there is no QoS profile \"L::Q\"; did you mean \"L::P\"?");
    let error = QosProvider::from_file("/nowhere/qos.xml").unwrap_err().to_string();
    assert!(error.starts_with("/nowhere/qos.xml: cannot be read: "), "{error}");
}

#[test]
fn comments_do_not_end_a_value() {
    let text =
        "<datawriter_qos><history><depth>1<!-- no -->2<?not this?>3</depth></history></datawriter_qos>";
    let qos = parse(text).datawriter_qos("L::P", None).unwrap();
    assert_eq!(qos.history, History::KeepLast(123));
}

#[test]
fn text_and_attributes_without_meaning_are_refused_with_file_line_and_cause() {
    let in_p = |content: &str, expected: &str| check(&in_profile(content), expected);
    check("<dds>\n x</dds>", "robot.xml:2:2: <dds> has elements, and no text \"x\"");
    check("<dds a=\"1\"/>", "robot.xml:1:1: <dds> has no attribute \"a\"");
    check(
        "<dds><qos_library name=\"L\">x</qos_library></dds>",
        "robot.xml:1:28: <qos_library> has elements, and no text \"x\"",
    );
    check(
        "<dds><qos_library name=\"L\"><qos_profile name=\"P\" priority=\"1\"/></qos_library></dds>",
        "robot.xml:1:28: <qos_profile> has no attribute \"priority\"",
    );
    in_p("x", "robot.xml:2:1: <qos_profile> has elements, and no text \"x\"");
    in_p(
        "<topic_qos>\n<history/> keep all</topic_qos>",
        "robot.xml:3:12: <topic_qos> has elements, and no text \"keep all\"",
    );
    in_p(
        "<topic_qos topic_filters=\"a\"/>",
        "robot.xml:2:1: <topic_qos> has no attribute \"topic_filters\"; did you mean \"topic_filter\"?",
    );
    in_p(
        "<topic_qos><deadline>5</deadline></topic_qos>",
        "robot.xml:2:22: <deadline> has elements, and no text \"5\"",
    );
    in_p(
        "<topic_qos><deadline><period>5<sec>1</sec></period></deadline></topic_qos>",
        "robot.xml:2:30: <period> has elements, and no text \"5\"",
    );
    in_p(
        "<topic_qos><history><depth unit=\"1\">7</depth></history></topic_qos>",
        "robot.xml:2:21: <depth> has no attribute \"unit\"",
    );
    in_p(
        "<publisher_qos><partition><name>a<element>b</element></name></partition></publisher_qos>",
        "robot.xml:2:33: <name> has elements, and no text \"a\"",
    );
}

#[test]
fn attributes_for_validators_are_no_mistakes() {
    let text = "<dds xmlns=\"http://www.omg.org/spec/DDS-XML\" \
                xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
                xsi:schemaLocation=\"http://www.omg.org/spec/DDS-XML dds.xsd\"/>";
    assert!(QosProvider::from_text("test.xml", text).is_ok());
}

#[test]
fn attributes_that_only_other_engines_have_are_skipped_with_a_warning() {
    let text = "<dds version=\"7.3.0\"><qos_library name=\"L\">\n\
                <qos_profile name=\"P\" is_default_qos=\"true\"/></qos_library></dds>";
    let provider = QosProvider::from_text("test.xml", text).unwrap();
    let expected = [
        "test.xml:1: the attribute version of <dds> is skipped: it is specific to another engine",
        "test.xml:2: the attribute is_default_qos of <qos_profile> is skipped: it is specific to another engine",
    ];
    assert_eq!(provider.warnings(), expected);
}

#[test]
fn a_mistake_in_a_policy_is_reported_with_file_line_and_cause() {
    let in_p = |content: &str, expected: &str| check(&in_profile(content), expected);
    in_p(
        "<datawriter_qso/>",
        "robot.xml:2:1: <qos_profile> has no element <datawriter_qso>; did you mean \"datawriter_qos\"?",
    );
    in_p(
        "<datawriter_qos>\n  <relibility/></datawriter_qos>",
        "robot.xml:3:3: <datawriter_qos> has no element <relibility>; did you mean \"reliability\"?",
    );
    in_p(
        "<datareader_qos><lifespan/></datareader_qos>",
        "robot.xml:2:17: <datareader_qos> has no element <lifespan>: this kind of entity has no such policy",
    );
    in_p(
        "<datareader_qos><history><dept>1</dept></history></datareader_qos>",
        "robot.xml:2:26: <history> has no element <dept>; did you mean \"depth\"?",
    );
    in_p(
        "<datareader_qos><history><depth>0</depth></history></datareader_qos>",
        "robot.xml:2:26: <depth> is \"0\": use a number from 1 to 2147483647",
    );
    in_p(
        "<datareader_qos><history><kind>KEEP_SOME</kind></history></datareader_qos>",
        "robot.xml:2:26: <kind> is \"KEEP_SOME\": use KEEP_LAST_HISTORY_QOS or KEEP_ALL_HISTORY_QOS",
    );
    in_p(
        "<datareader_qos><history><kind><a/></kind></history></datareader_qos>",
        "robot.xml:2:26: <kind> has a value, and no element <a>",
    );
}

#[test]
fn a_value_out_of_range_is_reported_with_file_line_and_cause() {
    let in_p = |content: &str, expected: &str| check(&in_profile(content), expected);
    in_p(
        "<datareader_qos><deadline><period>3</period></deadline></datareader_qos>",
        "robot.xml:2:27: <period> has no value: use <sec> and <nanosec>",
    );
    in_p(
        "<datareader_qos><deadline><period><sec>x</sec></period></deadline></datareader_qos>",
        "robot.xml:2:35: <sec> is \"x\": use a number, or DURATION_INFINITE_SEC",
    );
    in_p(
        "<datareader_qos><deadline><period><nanosec>1000000000</nanosec></period></deadline></datareader_qos>",
        "robot.xml:2:27: <nanosec> is a whole second or more: use <sec>",
    );
    in_p(
        "<datareader_qos><resource_limits><max_samples>0</max_samples></resource_limits></datareader_qos>",
        "robot.xml:2:34: <max_samples> is \"0\": use a positive number or LENGTH_UNLIMITED",
    );
    in_p(
        "<datawriter_qos><user_data><value>1,256</value></user_data></datawriter_qos>",
        "robot.xml:2:28: <value> is neither base 64 nor numbers up to 255 separated by commas",
    );
    in_p(
        "<datawriter_qos>\n<history><depth>5</depth></history>\n<resource_limits><max_samples>4</max_samples>\
         </resource_limits></datawriter_qos>",
        "robot.xml:2:1: HISTORY: a depth of 5 does not fit RESOURCE_LIMITS: max_samples is 4",
    );
    in_p(
        "<publisher_qos><partition><name><part>a</part></name></partition></publisher_qos>",
        "robot.xml:2:33: <name> has no element <part>: use <element>",
    );
    in_p(
        "<participant_qos><entity_factory><autoenable_created_entities>maybe</autoenable_created_entities>\
         </entity_factory></participant_qos>",
        "robot.xml:2:34: <autoenable_created_entities> is \"maybe\": use true or false",
    );
}

#[test]
fn hostile_files_are_refused_in_bounded_time_and_memory() {
    let entities = "<!DOCTYPE d [<!ENTITY a \"aa\"><!ENTITY b \"&a;&a;\">]><dds>&b;</dds>";
    let error = QosProvider::from_text("evil.xml", entities).unwrap_err().to_string();
    assert!(error.ends_with(": remove the DOCTYPE"), "{error}");
    let error = QosProvider::from_text("evil.xml", "<!DOCTYPE d>\n<dds/>").unwrap_err().to_string();
    assert!(error.ends_with(": remove the DOCTYPE"), "{error}");
    let deep = format!("<dds>{}{}</dds>", "<a>".repeat(120_000), "</a>".repeat(120_000));
    QosProvider::from_text("deep.xml", &deep).unwrap_err();
    let many = format!("<dds>{}</dds>", "<a/>".repeat(250_000));
    let error = QosProvider::from_text("many.xml", &many).unwrap_err().to_string();
    assert!(error.ends_with(": split the file"), "{error}");
    let large = tempfile(&[("large.xml", &"x".repeat((1 << 20) + 1))]);
    let error = QosProvider::from_file(&large.paths[0]).unwrap_err().to_string();
    assert!(error.contains("has 1048577 bytes"), "{error}");
    // A long chain of bases is not a cycle, and is refused, too.
    let chain: String =
        (0..100).map(|n| format!("<qos_profile name=\"P{}\" base_name=\"P{n}\"/>", n + 1)).collect();
    let text = format!("<dds><qos_library name=\"L\"><qos_profile name=\"P0\"/>{chain}</qos_library></dds>");
    QosProvider::from_text("chain.xml", &text).unwrap_err();
}

#[test]
fn endpoints_of_a_profile_meet() {
    let provider = parse(
        "<datawriter_qos><history><kind>KEEP_ALL_HISTORY_QOS</kind></history></datawriter_qos>\
         <datareader_qos><reliability><kind>RELIABLE_RELIABILITY_QOS</kind></reliability>\
         <history><kind>KEEP_ALL_HISTORY_QOS</kind></history></datareader_qos>",
    );
    let world = World::new();
    let participant = world.participant();
    let writer: DataWriter<Numbered> =
        world.writer(&participant, provider.datawriter_qos("L::P", None).unwrap());
    let reader: DataReader<Numbered> =
        world.reader(&participant, provider.datareader_qos("L::P", None).unwrap());
    matched(&[&writer], &[&reader]);
    writer.write(&Numbered::new(1, 1)).unwrap();
    writer.write(&Numbered::new(1, 2)).unwrap();
    assert_eq!(take_exactly(&reader, 2).len(), 2);
}

/// Files that are removed at the end.
struct Files {
    directory: std::path::PathBuf,
    paths: Vec<std::path::PathBuf>,
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn tempfile(files: &[(&str, &str)]) -> Files {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let directory = std::env::temp_dir().join(format!("weir-profiles-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let paths = files.iter().map(|(name, text)| {
        let path = directory.join(name);
        std::fs::write(&path, text).unwrap();
        path
    });
    let paths = paths.collect();
    Files { directory, paths }
}
