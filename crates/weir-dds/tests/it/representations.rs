//! XCDR1 and XCDR2: which writers and readers match, and that instances are the same at both ends.

use weir_dds::{DataRepresentation, DdsType, InstanceState};

use crate::support::{World, lossless_reader, lossless_writer, matched, pair, take_exactly};

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

#[derive(DdsType, Default, Debug, Clone, PartialEq)]
#[dds(extensibility = "final")]
struct Reordered {
    #[dds(key, id = 2)]
    late: u64,
    #[dds(key, id = 1)]
    early: String,
    #[dds(id = 3)]
    value: u32,
}

#[test]
fn writers_of_either_representation_write_the_same_instances() {
    let world = World::new();
    let participant = world.participant();
    let reader = world.reader::<Reordered>(&world.participant(), lossless_reader());
    let writers = [DataRepresentation::Xcdr1, DataRepresentation::Xcdr2].map(|representation| {
        world.writer::<Reordered>(&participant, lossless_writer().data_representation(representation))
    });
    matched(&writers.each_ref(), &[&reader]);
    let sample = Reordered { late: 7, early: "early".to_owned(), value: 1 };
    let mut instances = Vec::new();
    for writer in &writers {
        writer.write(&sample).unwrap();
        let samples = take_exactly(&reader, 1);
        assert_eq!(samples[0].data, sample);
        instances.push(samples[0].info.instance_handle);
        assert_eq!(writer.register_instance(&sample).unwrap(), samples[0].info.instance_handle);
        assert_eq!(reader.lookup_instance(&sample).unwrap(), Some(samples[0].info.instance_handle));
    }
    assert_eq!(instances[0], instances[1]);
    // The end that one of them reports is that of the instance.
    for writer in &writers {
        writer.dispose(&sample).unwrap();
        let samples = take_exactly(&reader, 1);
        assert_eq!(samples[0].info.instance_handle, instances[0]);
        assert_eq!(samples[0].info.instance_state, InstanceState::NotAliveDisposed);
        writer.write(&sample).unwrap();
        assert_eq!(take_exactly(&reader, 1)[0].info.instance_handle, instances[0]);
    }
}

#[test]
fn writers_of_either_byte_order_write_the_same_instances() {
    let (writer, reader) = pair::<Reordered>(lossless_writer(), lossless_reader());
    let little = [0, 1, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, b'e', 0, 0, 0, 1, 0, 0, 0];
    let big = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 2, b'e', 0, 0, 0, 0, 0, 0, 1];
    writer.write_serialized(&little).unwrap();
    writer.write_serialized(&big).unwrap();
    let samples = take_exactly(&reader, 2);
    assert_eq!(samples[0].data, samples[1].data);
    assert_eq!(samples[0].info.instance_handle, samples[1].info.instance_handle);
}

#[test]
fn strings_that_are_not_utf_8_are_delivered_and_identify_their_instance() {
    let (writer, reader) = pair::<Reordered>(lossless_writer(), lossless_reader());
    for byte in [0xe9, 0xe8] {
        let payload = [0, 1, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, byte, 0, 0, 0, 1, 0, 0, 0];
        writer.write_serialized(&payload).unwrap();
    }
    let samples = take_exactly(&reader, 2);
    assert_eq!([&samples[0].data.early, &samples[1].data.early], ["\u{e9}", "\u{e8}"]);
    assert_ne!(samples[0].info.instance_handle, samples[1].info.instance_handle);
    assert_eq!(reader.lookup_instance(&samples[0].data).unwrap(), Some(samples[0].info.instance_handle));
    assert_eq!(reader.sample_rejected_status().total_count, 0);
}
