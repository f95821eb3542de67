//! Samples larger than a datagram.

use weir_cdr::{CdrError, CdrReader, CdrValue, CdrWriter, Encoding, Layout};
use weir_dds::{
    DataReader, DataReaderListener, DataReaderQos, DataWriter, DataWriterQos, DdsError, DdsType, Durability,
    ParticipantSettings, WaitStrategy,
};

use crate::support::{Numbered, World, lossless_reader, lossless_writer, matched, settings, take_exactly};

fn sample(number: u64, len: usize) -> Numbered {
    let bytes = (0..len).map(|n| (n as u64 * 31 + number) as u8).collect();
    Numbered { source: 1, number, bytes }
}

fn exchange(settings: ParticipantSettings, sizes: &[usize], rounds: u64) {
    let world = World::new();
    let (ours, theirs) = (world.participant(), world.participant_with(settings));
    let writer: DataWriter<Numbered> = world.writer(&ours, lossless_writer());
    let reader: DataReader<Numbered> = world.reader(&theirs, lossless_reader());
    matched(&[&writer], &[&reader]);
    for &size in sizes {
        std::thread::scope(|scope| {
            scope.spawn(|| (0..rounds).for_each(|number| writer.write(&sample(number, size)).unwrap()));
            for number in 0..rounds {
                let got = take_exactly(&reader, 1);
                assert!(*got[0].data().unwrap() == sample(number, size), "sample {number} of {size} bytes");
            }
        });
    }
    assert_eq!(reader.sample_lost_status().total_count, 0);
}

#[test]
fn reliable_samples_of_any_size_arrive_whole_and_in_order() {
    exchange(settings(), &[0, 64_000, 65_000, 65_508, 100_000, 1_000_000, 10_000_000], 5);
}

/// Their bytes are sent from the application's memory.
#[test]
fn large_samples_one_by_one_arrive_whole_and_are_kept_whole() {
    let world = World::new();
    let (ours, theirs) = (world.participant(), world.participant());
    let sizes = [8_192, 12_287, 12_288, 12_289, 12_290, 12_291, 40_001, 65_000];
    for (writer_qos, reader_qos) in [
        (DataWriterQos::default().best_effort(), DataReaderQos::default().best_effort()),
        (lossless_writer(), lossless_reader()),
        (lossless_writer().transient_local(), lossless_reader().transient_local()),
    ] {
        let world = world.sibling();
        let is_kept = writer_qos.durability == Durability::TransientLocal;
        let writer: DataWriter<Numbered> = world.writer(&ours, writer_qos);
        let reader: DataReader<Numbered> = world.reader(&theirs, reader_qos.clone());
        matched(&[&writer], &[&reader]);
        for (number, &size) in (0..).zip(&sizes) {
            writer.write(&sample(number, size)).unwrap();
            assert!(*take_exactly(&reader, 1)[0].data().unwrap() == sample(number, size), "{size} bytes");
        }
        if is_kept {
            let late: DataReader<Numbered> = world.reader(&theirs, reader_qos);
            for (got, (number, &size)) in take_exactly(&late, sizes.len()).iter().zip((0..).zip(&sizes)) {
                assert!(*got.data().unwrap() == sample(number, size), "{size} bytes, late");
            }
        }
    }
}

#[test]
fn a_write_returns_when_all_of_a_large_best_effort_sample_has_left() {
    for wait in [WaitStrategy::Block, WaitStrategy::Spin] {
        let world = World::new();
        let ours = world.participant_with(settings().wait(wait));
        let theirs = world.participant_with(settings().receive_buffer(106_496));
        let writer: DataWriter<Numbered> = world.writer(&ours, DataWriterQos::default().best_effort());
        let reader: DataReader<Numbered> = world.reader(&theirs, DataReaderQos::default().best_effort());
        matched(&[&writer], &[&reader]);
        for (number, len) in [(1, 3_000_000), (2, 100_000)] {
            let before = writer.send_counters();
            writer.write(&sample(number, len)).unwrap();
            let after = writer.send_counters();
            assert_eq!(after.samples - before.samples, 1);
            assert_eq!(after.datagrams - before.datagrams, len.div_ceil(64_000) as u64, "{len} bytes");
        }
    }
}

#[test]
fn large_samples_find_their_way_through_a_small_socket_buffer() {
    exchange(settings().receive_buffer(212_992), &[1_000_000, 5_000_000], 5);
}

/// A thread that encodes a large sample piece by piece may receive, and so call a listener that
/// writes with the same writer. The pieces still form one sample, and there is no deadlock.
#[test]
fn a_listener_that_answers_by_the_writer_of_large_samples_does_not_come_between_their_pieces() {
    struct Answer(DataWriter<Numbered>);
    impl DataReaderListener<Numbered> for Answer {
        fn on_data_available(&self, reader: &DataReader<Numbered>) {
            for question in reader.take(usize::MAX) {
                self.0.write(&sample(question.data().unwrap().number, 2_000_000)).unwrap();
            }
        }
    }

    const QUESTIONS: u64 = 50;
    let world = World::new();
    let questions = world.sibling();
    let (ours, theirs) = (world.participant(), world.participant());
    let writer: DataWriter<Numbered> = world.writer(&ours, lossless_writer());
    let reader: DataReader<Numbered> = world.reader(&theirs, lossless_reader());
    let asker: DataWriter<Numbered> = questions.writer(&theirs, lossless_writer());
    let asked: DataReader<Numbered> = questions.reader(&ours, lossless_reader());
    asked.set_listener(Some(std::sync::Arc::new(Answer(writer.clone()))));
    matched(&[&writer], &[&reader]);
    matched(&[&asker], &[&asked]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (0..QUESTIONS).for_each(|number| writer.write(&sample(1000 + number, 3_000_000)).unwrap())
        });
        scope.spawn(|| (0..QUESTIONS).for_each(|number| asker.write(&sample(number, 10)).unwrap()));
        let mut numbers = Vec::new();
        for _ in 0..2 * QUESTIONS {
            let got = take_exactly(&reader, 1).remove(0).into_data().unwrap();
            let len = if got.number < 1000 { 2_000_000 } else { 3_000_000 };
            assert!(got == sample(got.number, len), "sample {}", got.number);
            numbers.push(got.number);
        }
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq((0..QUESTIONS).chain(1000..1000 + QUESTIONS)));
    });
}

/// A byte sequence whose encoding can fail.
#[derive(Default, Debug, Clone, PartialEq)]
struct Moody {
    bytes: Vec<u8>,
    mood: Mood,
}

#[derive(Default, Debug, Clone, Copy, PartialEq)]
enum Mood {
    #[default]
    Willing,
    Refuses,
    Panics,
}

impl CdrValue for Moody {
    const LAYOUT: Layout = <Vec<u8> as CdrValue>::LAYOUT;
    const BULK_ELEMENT: Option<usize> = <Vec<u8> as CdrValue>::BULK_ELEMENT;

    fn end_offset(&self, offset: usize, encoding: Encoding) -> usize {
        self.bytes.end_offset(offset, encoding)
    }

    fn encode(&self, writer: &mut CdrWriter<'_>) -> Result<(), CdrError> {
        self.bytes.encode(writer)
    }

    fn decode(reader: &mut CdrReader<'_>) -> Result<Self, CdrError> {
        Ok(Self { bytes: Vec::decode(reader)?, mood: Mood::Willing })
    }

    fn skip(reader: &mut CdrReader<'_>) -> Result<(), CdrError> {
        Vec::<u8>::skip(reader)
    }

    fn copy(reader: &mut CdrReader<'_>, writer: &mut CdrWriter<'_>) -> Result<(), CdrError> {
        Vec::<u8>::copy(reader, writer)
    }

    fn encode_before_bulk(&self, count: usize, writer: &mut CdrWriter<'_>) -> Result<(), CdrError> {
        self.bytes.encode_before_bulk(count, writer)
    }

    fn bulk_count(&self) -> usize {
        self.bytes.len()
    }

    fn encode_bulk_part(&self, at: usize, out: &mut [u8]) -> Result<(), CdrError> {
        // Fails midway.
        match self.mood {
            Mood::Refuses if at > self.bytes.len() / 2 => Err(CdrError::NoBulk),
            Mood::Panics if at > self.bytes.len() / 2 => panic!("refused by the test"),
            _ => self.bytes.encode_bulk_part(at, out),
        }
    }
}

#[derive(DdsType, Default, Debug, Clone, PartialEq)]
#[dds(extensibility = "final")]
struct MoodySample {
    number: u64,
    value: Moody,
}

#[test]
fn a_writer_goes_on_when_half_of_a_large_sample_could_not_be_encoded() {
    let world = World::new();
    let writer: DataWriter<MoodySample> = world.writer(&world.participant(), lossless_writer());
    let reader: DataReader<MoodySample> = world.reader(&world.participant(), lossless_reader());
    matched(&[&writer], &[&reader]);
    let sample = |number: u64, mood| {
        let bytes = sample(number, 3_000_000).bytes;
        MoodySample { number, value: Moody { bytes, mood } }
    };
    for round in 0..3 {
        assert!(matches!(
            writer.write(&sample(round, Mood::Refuses)),
            Err(DdsError::Encoding(CdrError::NoBulk))
        ));
        let write = std::panic::AssertUnwindSafe(|| writer.write(&sample(round, Mood::Panics)));
        assert!(std::panic::catch_unwind(write).is_err());
        let whole = sample(round, Mood::Willing);
        std::thread::scope(|scope| {
            scope.spawn(|| writer.write(&whole).unwrap());
            assert!(*take_exactly(&reader, 1)[0].data().unwrap() == whole);
        });
    }
    // It had received a part of those.
    assert_eq!(reader.sample_lost_status().total_count, 6);
}
