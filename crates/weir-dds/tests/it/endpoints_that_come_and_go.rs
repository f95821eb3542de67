//! Samples reach their readers while endpoints come and go, in whatever order their writers write.

use std::sync::Mutex;
use std::sync::mpsc::channel;

use weir_dds::{DataReader, DataReaderListener, DataWriter};

use crate::support::{DEADLINE, Numbered, World, lossless_reader, lossless_writer, matched, take_exactly};

/// Enough single-sample datagrams in a row for the receive prediction to hold.
const IN_A_ROW: u64 = 5;

/// Writes samples one by one; each must reach all readers before the next one is sent.
fn one_by_one(writer: &DataWriter<Numbered>, source: u32, readers: &[&DataReader<Numbered>]) {
    for number in 0..IN_A_ROW {
        let sample = Numbered::new(source, number);
        writer.write(&sample).unwrap();
        for reader in readers {
            assert_eq!(*take_exactly(reader, 1)[0].data().unwrap(), sample);
        }
    }
}

#[test]
fn a_reader_that_comes_later_gets_samples_and_one_that_goes_takes_none_with_it() {
    let world = World::new();
    let (here, there) = (world.participant(), world.participant());
    let writer = world.writer(&here, lossless_writer());
    let first = world.reader(&there, lossless_reader());
    matched(&[&writer], &[&first]);
    one_by_one(&writer, 0, &[&first]);
    let second = world.reader(&there, lossless_reader());
    matched(&[&writer], &[&first, &second]);
    one_by_one(&writer, 1, &[&first, &second]);
    drop(first);
    one_by_one(&writer, 2, &[&second]);
}

#[test]
fn writers_that_take_turns_reach_their_own_readers() {
    let world = World::new();
    let other_world = world.sibling();
    let (here, there) = (world.participant(), world.participant());
    let writers = [&world, &world, &other_world].map(|world| world.writer(&here, lossless_writer()));
    let reader = world.reader(&there, lossless_reader());
    let other = other_world.reader(&there, lossless_reader());
    matched(&[&writers[0], &writers[1]], &[&reader]);
    matched(&[&writers[2]], &[&other]);
    // In blocks, then interleaved.
    for _ in 0..3 {
        for (source, writer) in (0..).zip(&writers) {
            one_by_one(writer, source, &[if source < 2 { &reader } else { &other }]);
        }
    }
    for number in 0..20 {
        for (source, writer) in (0..).zip(&writers) {
            writer.write(&Numbered::new(source, number)).unwrap();
        }
        let mut sources: Vec<_> =
            take_exactly(&reader, 2).iter().map(|sample| sample.data().unwrap().source).collect();
        sources.sort_unstable();
        assert_eq!(sources, [0, 1]);
        assert_eq!(*take_exactly(&other, 1)[0].data().unwrap(), Numbered::new(2, number));
    }
}

#[test]
fn a_listener_that_is_set_and_removed_between_samples_hears_of_those_between() {
    /// Forwards the samples.
    struct Heard(Mutex<std::sync::mpsc::Sender<Numbered>>);

    impl DataReaderListener<Numbered> for Heard {
        fn on_data_available(&self, reader: &DataReader<Numbered>) {
            for sample in reader.take(usize::MAX) {
                let _ = self.0.lock().unwrap().send(sample.into_data().unwrap());
            }
        }
    }

    let world = World::new();
    let writer = world.writer(&world.participant(), lossless_writer());
    let reader = world.reader(&world.participant(), lossless_reader());
    matched(&[&writer], &[&reader]);
    for source in 0..3 {
        one_by_one(&writer, source, &[&reader]);
        let (sender, heard) = channel();
        reader.set_listener(Some(std::sync::Arc::new(Heard(Mutex::new(sender)))));
        for number in 0..IN_A_ROW {
            writer.write(&Numbered::new(source, number)).unwrap();
            assert_eq!(heard.recv_timeout(DEADLINE).unwrap(), Numbered::new(source, number));
        }
        reader.set_listener(None);
    }
}
