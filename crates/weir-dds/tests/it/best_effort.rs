//! Best effort: samples that arrive are whole, in order and unique.

use weir_dds::{DataReaderQos, DataWriterQos};

use crate::support::{DEADLINE, Numbered, pair, take_exactly};

fn best_effort() -> (DataWriterQos, DataReaderQos) {
    (DataWriterQos::default().best_effort().keep_all(), DataReaderQos::default().best_effort().keep_all())
}

#[test]
fn samples_that_come_one_by_one_all_arrive() {
    let (writer, reader) = best_effort();
    let (writer, reader) = pair::<Numbered>(writer, reader);
    for number in 0..5_000 {
        writer.write(&Numbered::new(2, number)).unwrap();
        let samples = take_exactly(&reader, 1);
        assert_eq!(*samples[0].data().unwrap(), Numbered::new(2, number));
    }
    assert_eq!(reader.sample_lost_status().total_count, 0);
}

#[test]
fn a_flood_loses_samples_but_never_order_and_says_how_many() {
    const COUNT: u64 = 50_000;
    let (writer, reader) = best_effort();
    let (writer, reader) = pair::<Numbered>(writer, reader);
    for number in 0..COUNT {
        writer.write(&Numbered::new(2, number)).unwrap();
    }
    writer.flush();
    let (mut last, mut received) = (-1, 0);
    // Writes until one of these samples arrives: by then the flood has passed.
    let mut number = COUNT;
    while last < COUNT as i64 {
        writer.write(&Numbered::new(2, number)).unwrap();
        writer.flush();
        number += 1;
        reader.wait_for_data(DEADLINE).unwrap();
        for sample in reader.take(usize::MAX) {
            assert!(sample.data().unwrap().number as i64 > last);
            assert_eq!(*sample.data().unwrap(), Numbered::new(2, sample.data().unwrap().number));
            last = sample.data().unwrap().number as i64;
            received += 1;
        }
    }
    let lost = reader.sample_lost_status().total_count;
    assert_eq!(received + lost, last as u64 + 1);
}

#[test]
fn a_reliable_writer_serves_a_best_effort_reader_and_never_waits_for_it() {
    let (writer, reader) = pair::<Numbered>(
        DataWriterQos::default().reliable().keep_all(),
        DataReaderQos::default().best_effort().keep_all(),
    );
    writer.write(&Numbered::new(0, 0)).unwrap();
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    assert!(writer.lagging_subscriptions().is_empty());
    assert_eq!(take_exactly(&reader, 1)[0].data().unwrap().number, 0);
}

#[test]
fn a_best_effort_writer_has_nothing_to_be_acknowledged() {
    let (writer, _reader) = pair::<Numbered>(best_effort().0, best_effort().1);
    writer.write(&Numbered::new(0, 0)).unwrap();
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
}
