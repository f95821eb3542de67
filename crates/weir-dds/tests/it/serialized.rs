//! Samples that are not decoded, and bytes that are not copied.

use weir_dds::cdr;
use weir_dds::{Bytes, DataReader, DataRepresentation, DataWriter, DdsError, DdsType, InstanceHandle};

use crate::support::{
    DEADLINE, Keyed, Numbered, World, lossless_reader, lossless_writer, matched, take_exactly,
};

/// [`Numbered`], for a reader that does not copy the bytes.
#[derive(DdsType, Default, Debug, Clone, PartialEq)]
#[dds(extensibility = "final", name = "Numbered")]
struct Shared {
    source: u32,
    number: u64,
    bytes: Bytes,
}

fn sample(number: u64, len: usize) -> Numbered {
    Numbered { source: 1, number, bytes: (0..len).map(|at| (at as u64 * 31 + number) as u8).collect() }
}

/// A writer of numbered samples and a reader that shares their bytes.
fn sharing_pair() -> (DataWriter<Numbered>, DataReader<Shared>) {
    let world = World::new();
    let (ours, theirs) = (world.participant(), world.participant());
    let (writer, reader) = (world.writer(&ours, lossless_writer()), world.reader(&theirs, lossless_reader()));
    writer.wait_for_subscriptions(1, DEADLINE).unwrap();
    reader.wait_for_publications(1, DEADLINE).unwrap();
    (writer, reader)
}

#[test]
fn bytes_of_any_size_arrive_and_stay_while_others_come() {
    let (writer, reader) = sharing_pair();
    for size in [0, 1, 1000, 33_000, 60_000, 100_000, 2_000_000] {
        let mut kept = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..8).for_each(|number| writer.write(&sample(number, size)).unwrap()));
            for _ in 0..8 {
                kept.extend(take_exactly(&reader, 1));
            }
        });
        for (number, kept) in (0..).zip(&kept) {
            let Numbered { source, number, bytes } = sample(number, size);
            assert!(
                *kept.data().unwrap() == Shared { source, number, bytes: Bytes::from(bytes) },
                "{number} of {size}"
            );
        }
    }
}

#[test]
fn large_samples_are_read_where_they_were_put_together() {
    for size in [60_000, 2_000_000] {
        let (writer, reader) = sharing_pair();
        std::thread::scope(|scope| {
            scope.spawn(|| writer.write(&sample(7, size)).unwrap());
            reader.wait_for_data(DEADLINE).unwrap();
        });
        let raw = reader.read_serialized(1);
        let (decoded, again): (Shared, _) = (raw[0].decode().unwrap(), reader.take(1));
        assert_eq!(decoded.bytes.len(), size);
        assert_eq!(
            decoded.bytes.as_ptr(),
            again[0].data().unwrap().bytes.as_ptr(),
            "{size} bytes: both are the same memory"
        );
        drop((raw, again, reader));
        assert!(decoded.bytes == sample(7, size).bytes, "it outlives its reader");
    }
}

#[test]
fn what_was_taken_serialized_can_be_written_again() {
    for representation in [DataRepresentation::Xcdr1, DataRepresentation::Xcdr2] {
        let qos = || lossless_writer().data_representation(representation);
        let (from, to) = (World::new(), World::new());
        let (ours, bridge) = (from.participant(), from.participant());
        let source: DataWriter<Numbered> = from.writer(&ours, qos());
        let tap: DataReader<Numbered> = from.reader(&bridge, lossless_reader());
        matched(&[&source], &[&tap]);
        let (bridge, theirs) = (to.participant(), to.participant());
        let again: DataWriter<Numbered> = to.writer(&bridge, qos());
        let sink: DataReader<Numbered> = to.reader(&theirs, lossless_reader());
        matched(&[&again], &[&sink]);
        for (number, size) in (0..).zip([0, 5, 1000, 100_000]) {
            source.write(&sample(number, size)).unwrap();
            tap.wait_for_data(DEADLINE).unwrap();
            let taken = tap.take_serialized(usize::MAX);
            assert_eq!(taken.len(), 1);
            let stamp = taken[0].info.source_timestamp().unwrap();
            again.write_serialized_w_timestamp(&taken[0].payload, stamp).unwrap();
            let got = take_exactly(&sink, 1);
            assert!(*got[0].data().unwrap() == sample(number, size), "{representation:?}, {size} bytes");
            assert_eq!(got[0].info.source_timestamp_ns(), taken[0].info.source_timestamp_ns());
        }
    }
}

#[test]
fn serialized_samples_belong_to_their_instances() {
    let world = World::new();
    let (ours, theirs) = (world.participant(), world.participant());
    let writer: DataWriter<Keyed> = world.writer(&ours, lossless_writer().keep_last(1));
    let reader: DataReader<Keyed> = world.reader(&theirs, lossless_reader());
    matched(&[&writer], &[&reader]);
    let mut payload = Vec::new();
    cdr::to_payload(&Keyed { id: 3, value: 4 }, &mut payload).unwrap();
    writer.write_serialized(&payload).unwrap();
    let got = take_exactly(&reader, 1);
    assert_eq!(*got[0].data().unwrap(), Keyed { id: 3, value: 4 });
    assert_eq!(got[0].info.instance_handle, InstanceHandle::of(&Keyed { id: 3, value: 0 }).unwrap());

    writer.dispose(&Keyed { id: 3, value: 0 }).unwrap();
    reader.wait_for_data(DEADLINE).unwrap();
    let disposed = reader.take_serialized(1).remove(0);
    assert!(!disposed.info.valid_data);
    assert_eq!(disposed.decode::<Keyed>().unwrap(), Keyed { id: 3, value: 0 });
}

#[test]
fn payloads_that_cannot_be_right_are_refused() {
    let world = World::new();
    let writer: DataWriter<Keyed> = world.writer(&world.participant(), lossless_writer().keep_last(1));
    assert!(matches!(writer.write_serialized(&[0, 1]), Err(DdsError::Encoding(_))), "no header");
    assert!(matches!(writer.write_serialized(&[0, 7, 0, 0, 1, 2, 3, 4]), Err(DdsError::BadParameter(_))));
    assert!(matches!(writer.write_serialized(&[0, 1, 0, 0]), Err(DdsError::BadParameter(_))), "no key");
    assert_eq!(writer.last_sequence_number().0, 0);
}

#[test]
fn a_payload_without_its_padding_is_padded() {
    let (writer, reader) = sharing_pair();
    let mut payload = Vec::new();
    cdr::to_payload(&sample(1, 1), &mut payload).unwrap();
    writer.write_serialized(&payload[..payload.len() - 3]).unwrap();
    reader.wait_for_data(DEADLINE).unwrap();
    assert_eq!(reader.take_serialized(1)[0].payload, payload);
}
