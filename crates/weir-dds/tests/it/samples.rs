//! Reading and taking samples, and their metadata.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use weir_dds::{BatchPolicy, InstanceHandle, Sample, SampleSeq, SampleState, States, ViewState};

use crate::support::{DEADLINE, Keyed, Numbered, lossless_reader, lossless_writer, pair, take_exactly};

fn numbers(samples: &[Sample<Numbered>]) -> Vec<u64> {
    samples.iter().map(|sample| sample.data().unwrap().number).collect()
}

/// A reader with the samples 0 to 9.
fn ten() -> (weir_dds::DataWriter<Numbered>, weir_dds::DataReader<Numbered>) {
    let (writer, reader) = pair::<Numbered>(lossless_writer(), lossless_reader());
    for number in 0..10 {
        writer.write(&Numbered::new(1, number)).unwrap();
    }
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    assert_eq!(reader.available(), 10);
    (writer, reader)
}

#[test]
fn taking_removes_the_oldest_first() {
    let (_writer, reader) = ten();
    assert_eq!(numbers(&reader.take(3)), [0, 1, 2]);
    assert_eq!(reader.available(), 7);
    assert_eq!(numbers(&reader.take(0)), []);
    assert_eq!(numbers(&reader.take(usize::MAX)), [3, 4, 5, 6, 7, 8, 9]);
    assert!(reader.take(1).is_empty());
}

#[test]
fn large_samples_that_came_one_by_one_and_are_left_lying_stay_as_they_are() {
    let (writer, reader) = pair::<Numbered>(lossless_writer(), lossless_reader());
    let sample = |number: u64| Numbered { bytes: vec![number as u8; 8_000], ..Numbered::new(1, number) };
    // More than there are buffers for them to stay in.
    for number in 0..30 {
        writer.write(&sample(number)).unwrap();
        writer.wait_for_acknowledgments(DEADLINE).unwrap();
    }
    for number in 0..30 {
        assert_eq!(*reader.take(1)[0].data().unwrap(), sample(number));
    }
    // Again, with the reader dropped before its last sample.
    for number in 0..30 {
        writer.write(&sample(number)).unwrap();
        writer.wait_for_acknowledgments(DEADLINE).unwrap();
    }
    assert_eq!(*reader.read(2)[1].data().unwrap(), sample(1));
    drop(reader);
}

#[test]
fn reading_leaves_samples_and_marks_them() {
    let (_writer, reader) = ten();
    let first = reader.read(4);
    assert_eq!(numbers(&first), [0, 1, 2, 3]);
    assert!(first.iter().all(|sample| sample.info.sample_state == SampleState::NotRead));
    let again = reader.read(5);
    assert_eq!(numbers(&again), [0, 1, 2, 3, 4]);
    let states: Vec<_> = again.iter().map(|sample| sample.info.sample_state).collect();
    assert_eq!(states[3..], [SampleState::Read, SampleState::NotRead]);
    assert_eq!(numbers(&reader.select().states(States::NOT_READ).max(2).read()), [5, 6]);
    assert_eq!(numbers(&reader.select().states(States::NOT_READ).read()), [7, 8, 9]);
    assert!(reader.wait_for_data(Duration::ZERO).is_err(), "everything was read");
    let taken = reader.take(usize::MAX);
    assert_eq!(taken.len(), 10);
    assert!(taken.iter().all(|sample| sample.info.sample_state == SampleState::Read));
}

#[test]
fn the_instance_is_new_in_the_first_access_only() {
    let (_writer, reader) = ten();
    let views: Vec<_> = reader.read(3).iter().map(|sample| sample.info.view_state).collect();
    assert_eq!(views, [ViewState::New; 3]);
    assert_eq!(reader.take(1)[0].info.view_state, ViewState::NotNew);
}

#[test]
fn taking_into_memory_uses_it_again() {
    let (writer, reader) = ten();
    let mut samples = SampleSeq::new();
    assert_eq!(reader.take_into(&mut samples, 6), 6);
    assert_eq!(numbers(samples.as_slice()), [0, 1, 2, 3, 4, 5]);
    assert_eq!(reader.take_into(&mut samples, 6), 4);
    assert_eq!(numbers(samples.as_slice()), [6, 7, 8, 9]);
    assert_eq!(reader.take_into(&mut samples, 6), 0);
    assert!(samples.is_empty() && samples.iter().next().is_none());
    writer.write(&Numbered::new(1, 10)).unwrap();
    reader.wait_for_data(DEADLINE).unwrap();
    assert_eq!(reader.take_into(&mut samples, 6), 1);
    assert_eq!(*samples.as_slice()[0].data().unwrap(), Numbered::new(1, 10));
}

#[test]
fn the_next_sample_is_taken_into_a_value() {
    let (_writer, reader) = ten();
    let mut sample = Sample::default();
    for number in 0..10 {
        assert!(reader.take_next_sample(&mut sample));
        assert_eq!(*sample.data().unwrap(), Numbered::new(1, number));
        assert_eq!(sample.info.sequence_number.0, number as i64 + 1);
    }
    assert!(!reader.take_next_sample(&mut sample));
    assert_eq!(*sample.data().unwrap(), Numbered::new(1, 9), "left alone when there is nothing");
}

#[test]
fn a_sample_tells_who_wrote_it_and_when() {
    let (writer, reader) = pair::<Numbered>(lossless_writer(), lossless_reader());
    let before = SystemTime::now();
    writer.write(&Numbered::new(0, 0)).unwrap();
    let after = SystemTime::now();
    let info = take_exactly(&reader, 1)[0].info;
    let stamped = info.source_timestamp().unwrap();
    // The engine measures the wall clock once a second; it may be slewed in between.
    let slack = Duration::from_millis(100);
    assert!(stamped + slack >= before && stamped <= after + slack);
    assert_eq!(info.publication_handle, writer.instance_handle());
    assert_eq!(info.instance_handle, InstanceHandle::default());
    assert!(info.valid_data);
    assert_eq!((info.disposed_generation_count, info.no_writers_generation_count), (0, 0));
}

#[test]
fn the_writers_own_time_stamp_arrives() {
    let (writer, reader) = pair::<Keyed>(lossless_writer(), lossless_reader());
    let stamps = [UNIX_EPOCH + Duration::new(1, 0), UNIX_EPOCH + Duration::new(1_700_000_000, 123_456_789)];
    for stamp in stamps {
        writer.write_w_timestamp(&Keyed { id: 1, value: 1 }, stamp).unwrap();
        let told = take_exactly(&reader, 1)[0].info.source_timestamp().unwrap();
        // RTPS 2.5, 9.3.2.1: fractions of 2^-32 s, so rounding may change a nanosecond.
        let error = told.duration_since(stamp).unwrap_or_else(|early| early.duration());
        assert!(error <= Duration::from_nanos(1), "{error:?}");
    }
}

#[test]
fn a_batch_gives_the_writers_own_time_stamp_to_no_other_sample() {
    let policy = BatchPolicy::new(8192, 100, DEADLINE);
    let (writer, reader) = pair::<Keyed>(lossless_writer().batch(policy), lossless_reader());
    let own = UNIX_EPOCH + Duration::from_secs(1);
    for value in 0..3 {
        writer.write(&Keyed { id: 1, value }).unwrap();
        writer.write_w_timestamp(&Keyed { id: 2, value }, own).unwrap();
    }
    writer.flush();
    for sample in take_exactly(&reader, 6) {
        let is_own = sample.info.source_timestamp().unwrap() < own + Duration::from_secs(1);
        assert_eq!(is_own, sample.data().unwrap().id == 2, "{:?}", sample.data());
    }
}

#[test]
fn what_does_not_fit_the_type_is_rejected_and_counted() {
    // The same type name at both ends, but different types.
    mod other {
        #[derive(weir_dds::DdsType, Default)]
        #[dds(extensibility = "final", name = "Numbered")]
        pub(super) struct Short {
            pub(super) byte: u8,
        }
    }
    let world = crate::support::World::new();
    let participant = world.participant();
    let reader = world.reader::<Numbered>(&participant, lossless_reader());
    let wrong = world.writer::<other::Short>(&participant, lossless_writer());
    let right = world.writer::<Numbered>(&participant, lossless_writer());
    reader.wait_for_publications(2, DEADLINE).unwrap();
    wrong.wait_for_subscriptions(1, DEADLINE).unwrap();
    right.wait_for_subscriptions(1, DEADLINE).unwrap();
    for round in 1..=3 {
        wrong.write(&other::Short { byte: 1 }).unwrap();
        wrong.wait_for_acknowledgments(DEADLINE).unwrap();
        right.write(&Numbered::new(1, round)).unwrap();
        right.wait_for_acknowledgments(DEADLINE).unwrap();
        let mut samples = reader.read(usize::MAX);
        assert_eq!(reader.read(usize::MAX).len(), samples.len());
        if round == 1 {
            samples = vec![Sample::default(); 2];
            assert!(samples.iter_mut().all(|sample| reader.take_next_sample(sample)));
        } else {
            reader.take(usize::MAX);
        }
        // Reported with its error, and counted once.
        assert_eq!((samples.len(), samples[0].data(), samples[0].key()), (2, None, None));
        assert_eq!(samples[0].error(), Some(weir_dds::cdr::CdrError::UnexpectedEnd));
        assert_eq!(samples[0].info.publication_handle, wrong.instance_handle());
        assert_eq!((samples[1].data(), samples[1].error()), (Some(&Numbered::new(1, round)), None));
        assert_eq!(reader.sample_rejected_status().total_count_change, 1);
    }
    assert_eq!(reader.sample_rejected_status().total_count, 3);
}
