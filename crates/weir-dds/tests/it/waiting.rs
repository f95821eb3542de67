//! Threads that wait on one participant take turns at receiving for all.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use weir_dds::{DataReader, DataWriter, DomainParticipant, Sample, WaitStrategy};

use crate::support::{
    DEADLINE, Numbered, World, lossless_reader, lossless_writer, matched, pair, settings, take_exactly,
};

const READERS: usize = 4;

/// Readers of one participant, each with its own topic and a writer in another participant.
struct Setup {
    writers: Vec<DataWriter<Numbered>>,
    readers: Vec<DataReader<Numbered>>,
}

fn setup(world: &World, here: &DomainParticipant, there: &DomainParticipant) -> Setup {
    let worlds = [0; READERS].map(|_| world.sibling());
    let readers: Vec<_> = worlds.iter().map(|world| world.reader(here, lossless_reader())).collect();
    let writers: Vec<_> = worlds.iter().map(|world| world.writer(there, lossless_writer())).collect();
    for (writer, reader) in writers.iter().zip(&readers) {
        matched(&[writer], &[reader]);
    }
    Setup { writers, readers }
}

/// Takes numbered samples until `u64::MAX` and sends on their numbers.
fn follow(reader: &DataReader<Numbered>, strategy: WaitStrategy, heard: &Sender<u64>) {
    loop {
        reader.wait_for_data_by(DEADLINE, strategy).unwrap();
        for sample in reader.take(usize::MAX) {
            if sample.data().unwrap().number == u64::MAX {
                return;
            }
            heard.send(sample.data().unwrap().number).unwrap();
        }
    }
}

/// Sends one sample at a time, to one reader after the other in a random order, while the threads
/// of all others wait. Every sample must arrive, whichever thread receives it.
fn one_at_a_time(strategies: [WaitStrategy; READERS], rounds: u64) {
    let world = World::new();
    let Setup { writers, readers } = setup(&world, &world.participant(), &world.participant());
    std::thread::scope(|scope| {
        let heard: Vec<_> = readers
            .iter()
            .zip(strategies)
            .map(|(reader, strategy)| {
                let (hears, heard) = channel();
                scope.spawn(move || follow(reader, strategy, &hears));
                heard
            })
            .collect();
        let deadline = Instant::now() + DEADLINE;
        let mut random = 1_u64;
        for round in 0..rounds {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let chosen = (random >> 33) as usize % READERS;
            writers[chosen].write(&Numbered::new(chosen as u32, round)).unwrap();
            let left = deadline.saturating_duration_since(Instant::now());
            assert_eq!(heard[chosen].recv_timeout(left).unwrap(), round);
        }
        for writer in &writers {
            writer.write(&Numbered { number: u64::MAX, ..Numbered::default() }).unwrap();
        }
    });
}

#[test]
fn every_waiting_thread_hears_its_own_data() {
    one_at_a_time([WaitStrategy::Block; READERS], 5_000);
}

#[test]
fn threads_that_wait_in_different_ways_hear_their_own_data() {
    let brief = WaitStrategy::SpinThenBlock(Duration::from_micros(20));
    one_at_a_time([WaitStrategy::Block, WaitStrategy::Spin, brief, WaitStrategy::Block], 2_000);
}

#[test]
fn all_threads_at_once_hear_everything() {
    const COUNT: u64 = 5_000;
    let world = World::new();
    let Setup { writers, readers } = setup(&world, &world.participant(), &world.participant());
    std::thread::scope(|scope| {
        for (source, (writer, reader)) in writers.iter().zip(&readers).enumerate() {
            scope.spawn(move || crate::support::take_numbered(reader, source as u32, COUNT));
            scope.spawn(move || {
                for number in 0..COUNT {
                    writer.write(&Numbered::new(source as u32, number)).unwrap();
                    if number % 97 == 0 {
                        writer.wait_for_acknowledgments(DEADLINE).unwrap();
                    }
                }
            });
        }
    });
}

#[test]
fn several_threads_share_a_reader() {
    const COUNT: u64 = 5_000;
    let (writer, reader) = pair::<Numbered>(lossless_writer(), lossless_reader());
    let (taken, sum) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut sample = Sample::<Numbered>::default();
                while taken.load(Ordering::SeqCst) < COUNT {
                    // Another thread may get the last sample.
                    let _ = reader.wait_for_data(Duration::from_millis(20));
                    while reader.take_next_sample(&mut sample) {
                        sum.fetch_add(sample.data().unwrap().number, Ordering::SeqCst);
                        taken.fetch_add(1, Ordering::SeqCst);
                    }
                }
            });
        }
        for number in 0..COUNT {
            writer.write(&Numbered::new(0, number)).unwrap();
        }
    });
    assert_eq!((taken.into_inner(), sum.into_inner()), (COUNT, COUNT * (COUNT - 1) / 2));
}

#[test]
fn data_that_another_threads_wait_receives_is_heard() {
    // One thread waits for a sample that never arrives, and so receives for all.
    let world = World::new();
    let Setup { writers, readers } = setup(&world, &world.participant(), &world.participant());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                assert!(readers[0].wait_for_data(Duration::from_millis(100)).is_err());
            }
        });
        for number in 0..1_000 {
            writers[1].write(&Numbered::new(1, number)).unwrap();
            assert_eq!(take_exactly(&readers[1], 1)[0].data().unwrap().number, number);
        }
        is_over.store(true, Ordering::SeqCst);
    });
}

#[test]
fn a_thread_that_polls_receives_what_no_thread_waits_for() {
    // First alone, so that the background thread receives; then next to a thread that waits for
    // something else.
    let world = World::new();
    let Setup { writers, readers } = setup(&world, &world.participant(), &world.participant());
    let poll = |from: u64| {
        for number in from..from + 200 {
            writers[1].write(&Numbered::new(1, number)).unwrap();
            let deadline = Instant::now() + DEADLINE;
            let mut sample = Sample::default();
            while !readers[1].take_next_sample(&mut sample) {
                assert!(Instant::now() < deadline);
                std::thread::yield_now();
            }
            assert_eq!(sample.data().unwrap().number, number);
        }
    };
    poll(0);
    std::thread::scope(|scope| {
        scope.spawn(|| assert!(readers[0].wait_for_data(DEADLINE).is_ok()));
        poll(200);
        writers[0].write(&Numbered::new(0, 0)).unwrap();
    });
    poll(400);
}

#[test]
fn a_wait_in_vain_ends_when_it_should_and_not_before() {
    let world = World::new();
    let here = world.participant();
    let Setup { writers: _writers, readers } = setup(&world, &here, &world.participant());
    let wait = |reader: &DataReader<Numbered>, milliseconds: u64, strategy| {
        let timeout = Duration::from_millis(milliseconds);
        let started = Instant::now();
        assert!(reader.wait_for_data_by(timeout, strategy).is_err());
        assert!(started.elapsed() >= timeout);
    };
    wait(&readers[0], 0, WaitStrategy::Block);
    wait(&readers[0], 1, WaitStrategy::Block);
    wait(&readers[0], 30, WaitStrategy::Spin);
    wait(&readers[0], 30, WaitStrategy::SpinThenBlock(Duration::from_millis(5)));
    // Together: one of them receives, the others sleep.
    std::thread::scope(|scope| {
        for (index, reader) in readers.iter().enumerate() {
            scope.spawn(move || {
                for round in 0..5 {
                    wait(reader, 7 + 11 * index as u64 + round, WaitStrategy::Block);
                }
            });
        }
    });
}

#[test]
fn a_writer_that_waits_for_room_and_a_reader_that_waits_for_data_share_the_socket() {
    // One participant echoes without a listener: a thread takes and writes back, others wait for
    // acknowledgements.
    const COUNT: u64 = 3_000;
    let world = World::new();
    let (near, far) = (world.participant(), world.participant());
    let (ping, pong) = (world.sibling(), world.sibling());
    let (writer, far_reader) = (ping.writer(&near, lossless_writer()), ping.reader(&far, lossless_reader()));
    let (far_writer, reader) = (pong.writer(&far, lossless_writer()), pong.reader(&near, lossless_reader()));
    matched(&[&writer], &[&far_reader]);
    matched(&[&far_writer], &[&reader]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for sample in 0..COUNT {
                let echo: Numbered = take_exactly(&far_reader, 1).remove(0).into_data().unwrap();
                assert_eq!(echo.number, sample);
                far_writer.write(&echo).unwrap();
            }
            far_writer.wait_for_acknowledgments(DEADLINE).unwrap();
        });
        scope.spawn(|| {
            for number in 0..COUNT {
                writer.write(&Numbered::new(0, number)).unwrap();
                if number % 10 == 0 {
                    writer.wait_for_acknowledgments(DEADLINE).unwrap();
                }
            }
        });
        crate::support::take_numbered(&reader, 0, COUNT);
    });
}

#[test]
fn ping_pong_goes_on_in_every_way_of_waiting() {
    for wait in
        [WaitStrategy::Block, WaitStrategy::Spin, WaitStrategy::SpinThenBlock(Duration::from_micros(50))]
    {
        let world = World::new();
        let near = world.participant_with(settings().wait(wait));
        let far = world.participant_with(settings().wait(wait));
        let (ping, pong) = (world.sibling(), world.sibling());
        let (writer, far_reader) =
            (ping.writer(&near, lossless_writer()), ping.reader(&far, lossless_reader()));
        let (far_writer, reader) =
            (pong.writer(&far, lossless_writer()), pong.reader(&near, lossless_reader()));
        matched(&[&writer], &[&far_reader]);
        matched(&[&far_writer], &[&reader]);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..2_000 {
                    far_writer.write(take_exactly(&far_reader, 1)[0].data().unwrap()).unwrap();
                }
            });
            for number in 0..2_000 {
                writer.write(&Numbered::new(0, number)).unwrap();
                assert_eq!(take_exactly(&reader, 1)[0].data().unwrap().number, number);
            }
        });
    }
}

#[test]
fn news_of_a_writer_that_leaves_reach_a_thread_that_waits() {
    use crate::support::Keyed;
    let (writer, reader) = pair::<Keyed>(lossless_writer(), lossless_reader());
    writer.write(&Keyed { id: 1, value: 1 }).unwrap();
    take_exactly(&reader, 1);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| take_exactly(&reader, 1));
        drop(writer);
        assert!(!waiting.join().unwrap()[0].info.valid_data);
    });
}
