//! Loans: samples that are filled in the memory they are sent from.

use std::time::Duration;

use weir_dds::{DataReader, DataRepresentation, DataWriter, DdsError, DdsType};

use crate::support::{Numbered, World, lossless_reader, lossless_writer, matched, pair, take_exactly};

/// The byte at one position of a sample.
fn byte(number: u64, at: usize) -> u8 {
    (at as u64 * 31 + number) as u8
}

fn sample(number: u64, len: usize) -> Numbered {
    Numbered { source: 1, number, bytes: (0..len).map(|at| byte(number, at)).collect() }
}

fn write_loan(writer: &DataWriter<Numbered>, number: u64, len: usize) {
    let mut loan = writer.loan(len).unwrap();
    (loan.sample.source, loan.sample.number) = (1, number);
    loan.iter_mut().enumerate().for_each(|(at, place)| *place = byte(number, at));
    loan.write().unwrap();
}

#[test]
fn loans_of_any_size_arrive_like_writes_between_them() {
    let (writer, reader) = pair(lossless_writer(), lossless_reader());
    for size in [0, 1, 1000, 40_001, 65_500, 100_000, 3_000_000] {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..6 {
                    match number % 3 {
                        2 => writer.write(&sample(number, size)).unwrap(),
                        _ => write_loan(&writer, number, size),
                    }
                }
            });
            for number in 0..6 {
                assert!(
                    *take_exactly(&reader, 1)[0].data().unwrap() == sample(number, size),
                    "{number} of {size} bytes"
                );
            }
        });
    }
    assert_eq!(reader.sample_lost_status().total_count, 0);
}

#[test]
fn writes_go_on_while_a_loan_is_out_and_a_dropped_one_leaves_nothing() {
    let (writer, reader): (DataWriter<Numbered>, DataReader<Numbered>) =
        pair(lossless_writer(), lossless_reader());
    let mut late = writer.loan(200_000).unwrap();
    let dropped = writer.loan(200_000).unwrap();
    writer.write(&sample(0, 10)).unwrap();
    drop(dropped);
    (late.sample.source, late.sample.number) = (1, 1);
    late.iter_mut().enumerate().for_each(|(at, place)| *place = byte(1, at));
    late.truncate(150_000);
    assert_eq!(late.len(), 150_000);
    std::thread::scope(|scope| {
        scope.spawn(|| late.write().unwrap());
        let got = take_exactly(&reader, 2);
        assert!(*got[0].data().unwrap() == sample(0, 10) && *got[1].data().unwrap() == sample(1, 150_000));
    });
    assert_eq!(writer.last_sequence_number().0, 2);
}

#[derive(DdsType, Default, Debug, Clone, PartialEq)]
#[dds(extensibility = "appendable")]
struct Cloud {
    #[dds(key)]
    name: String,
    points: Vec<f64>,
}

#[test]
fn elements_of_several_bytes_and_long_keys_are_framed_in_every_representation() {
    for representation in [DataRepresentation::Xcdr1, DataRepresentation::Xcdr2] {
        let world = World::new();
        let (ours, theirs) = (world.participant(), world.participant());
        let qos = lossless_writer().data_representation(representation);
        let writer: DataWriter<Cloud> = world.writer(&ours, qos);
        let reader: DataReader<Cloud> = world.reader(&theirs, lossless_reader());
        matched(&[&writer], &[&reader]);
        // The second has no room for its name before the points.
        for name_len in [7, 10_000] {
            let mut cloud =
                Cloud { name: "n".repeat(name_len), points: (0..30_000).map(f64::from).collect() };
            let mut loan = writer.loan(cloud.points.len()).unwrap();
            loan.sample.name.clone_from(&cloud.name);
            for (bytes, point) in loan.as_chunks_mut().0.iter_mut().zip(&cloud.points) {
                *bytes = point.to_le_bytes();
            }
            loan.truncate(29_999);
            cloud.points.pop();
            std::thread::scope(|scope| {
                scope.spawn(|| loan.write().unwrap());
                assert!(
                    *take_exactly(&reader, 1)[0].data().unwrap() == cloud,
                    "{representation:?}, {name_len}"
                );
            });
        }
    }
}

#[test]
fn a_loan_that_finds_no_room_comes_back_and_can_be_written_later() {
    let world = World::new();
    let (ours, theirs) = (world.participant(), world.participant());
    let mut qos = lossless_writer().max_blocking_time(Duration::from_millis(1));
    qos.resource_limits.max_samples = Some(1);
    let mut reader_qos = lossless_reader();
    reader_qos.resource_limits.max_samples = Some(1);
    let writer: DataWriter<Numbered> = world.writer(&ours, qos);
    let reader: DataReader<Numbered> = world.reader(&theirs, reader_qos);
    matched(&[&writer], &[&reader]);
    let refused = (0..1000).find_map(|number| {
        let mut loan = writer.loan(50_000).unwrap();
        (loan.sample.source, loan.sample.number) = (1, number);
        loan.iter_mut().enumerate().for_each(|(at, place)| *place = byte(number, at));
        loan.write().err().map(|not_written| (number, not_written))
    });
    let (first_refused, not_written) = refused.unwrap();
    assert!(matches!(not_written.error, DdsError::Timeout { .. }), "{not_written}");
    let mut loan = not_written.loan;
    for number in 0..first_refused {
        assert!(*take_exactly(&reader, 1)[0].data().unwrap() == sample(number, 50_000));
    }
    while let Err(again) = loan.write() {
        loan = again.loan;
    }
    assert!(*take_exactly(&reader, 1)[0].data().unwrap() == sample(first_refused, 50_000));
}

#[test]
fn loans_have_a_limit_and_keep_their_writer() {
    let world = World::new();
    let writer: DataWriter<Numbered> = world.writer(&world.participant(), lossless_writer().keep_last(1));
    let loans: Vec<_> = (0..64).map(|_| writer.loan(10).unwrap()).collect();
    assert!(matches!(writer.loan(10), Err(DdsError::OutOfResources(_))));
    assert!(matches!(writer.loan(2 << 30), Err(DdsError::BadParameter(_))));
    drop(writer);
    loans.into_iter().for_each(|loan| loan.write().unwrap());
}
