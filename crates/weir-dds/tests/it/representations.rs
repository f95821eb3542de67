//! XCDR1 and XCDR2: which writers and readers match, and that instances are the same at both ends.

use weir_dds::{DataRepresentation, DataWriterQos, DdsError, DdsType, InstanceState};

use crate::support::{World, lossless_reader, lossless_writer, pair, take_exactly};

#[derive(DdsType, Default, Debug, Clone, PartialEq)]
#[dds(extensibility = "appendable")]
struct Evolving {
    #[dds(key)]
    id: u32,
    #[dds(key)]
    wide: u64,
    level: Level,
    note: Option<String>,
}

#[derive(DdsType, Default, Debug, Clone, Copy, PartialEq)]
enum Level {
    #[default]
    Low,
    High = 7,
}

#[test]
fn a_reader_understands_either_representation_unless_told_otherwise() {
    for representation in [DataRepresentation::Xcdr1, DataRepresentation::Xcdr2] {
        let writer = lossless_writer().data_representation(representation);
        let (writer, reader) = pair::<Evolving>(writer, lossless_reader());
        let sample = Evolving { id: 1, wide: 2, level: Level::High, note: Some("n".to_owned()) };
        writer.write(&sample).unwrap();
        writer.dispose(&sample).unwrap();
        let samples = take_exactly(&reader, 2);
        assert_eq!(samples[0].data, sample);
        assert_eq!(samples[0].info.instance_handle, writer.lookup_instance(&sample).unwrap());
        assert_eq!(samples[1].info.instance_state, InstanceState::NotAliveDisposed);
        assert_eq!(samples[1].info.instance_handle, samples[0].info.instance_handle);
        assert_eq!(samples[1].data, Evolving { id: 1, wide: 2, ..Evolving::default() });
    }
}

#[test]
fn unsupported_representations_are_refused() {
    let world = World::new();
    let participant = world.participant();
    let topic = world.topic::<Evolving>(&participant);
    let create = |representation: Vec<i16>| {
        let mut qos = DataWriterQos::default();
        qos.policies.representation = representation;
        participant.create_publisher().create_datawriter(&topic, qos).map(drop)
    };
    assert!(matches!(create(vec![1]), Err(DdsError::InconsistentPolicy(_))));
    assert!(matches!(create(vec![0, 2]), Err(DdsError::InconsistentPolicy(_))));
    assert!(create(Vec::new()).is_ok());
}
