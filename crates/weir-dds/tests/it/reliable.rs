//! Reliable, KEEP_ALL: every sample arrives once and in order.

use std::time::Duration;

use weir_dds::{Coalescing, DataWriterQos, WaitStrategy};

use crate::support::{
    DEADLINE, Numbered, World, lossless_reader, lossless_writer, matched, pair, settings, take_exactly,
    take_numbered,
};

fn tight_loop(qos: DataWriterQos, count: u64) {
    let (writer, reader) = pair::<Numbered>(qos, lossless_reader());
    std::thread::scope(|scope| {
        scope.spawn(|| take_numbered(&reader, 7, count));
        for number in 0..count {
            writer.write(&Numbered::new(7, number)).unwrap();
        }
        writer.wait_for_acknowledgments(DEADLINE).unwrap();
    });
    assert_eq!(writer.last_sequence_number().0, count as i64);
    assert!(writer.lagging_subscriptions().is_empty());
}

#[test]
fn a_tight_loop_arrives_in_order_and_whole() {
    tight_loop(lossless_writer(), 100_000);
}

#[test]
fn a_tight_loop_without_coalescing_arrives_in_order_and_whole() {
    tight_loop(lossless_writer().coalescing(Coalescing::Off), 30_000);
}

#[test]
fn a_tight_loop_that_may_be_held_back_for_long_arrives_in_order_and_whole() {
    tight_loop(
        lossless_writer().coalescing(Coalescing::Automatic { delay_max: Duration::from_millis(20) }),
        30_000,
    );
}

#[test]
fn the_rest_of_a_burst_leaves_without_another_write() {
    // Without a flush: the timer sends the tail.
    let (writer, reader) = pair::<Numbered>(lossless_writer(), lossless_reader());
    for round in 0..20 {
        for number in 0..100 {
            writer.write(&Numbered::new(0, round * 100 + number)).unwrap();
        }
        let samples = take_exactly(&reader, 100);
        assert_eq!(samples[99].data().unwrap().number, round * 100 + 99);
    }
}

#[test]
fn samples_of_every_size_arrive() {
    let (writer, reader) = pair::<Numbered>(lossless_writer(), lossless_reader());
    let sizes = [0, 1, 2, 3, 4, 5, 100, 1_400, 1_500, 8_192, 32_000, 40_000, 63_000, 65_000];
    for (number, size) in sizes.iter().cycle().take(20 * sizes.len()).enumerate() {
        writer
            .write(&Numbered { source: 1, number: number as u64, bytes: vec![number as u8; *size] })
            .unwrap();
        if number % 5 == 4 {
            for sample in take_exactly(&reader, 5) {
                let number = sample.data().unwrap().number as usize;
                assert_eq!(sample.data().unwrap().bytes, vec![number as u8; sizes[number % sizes.len()]]);
            }
        }
    }
}

#[test]
fn a_sample_over_the_limit_is_refused_and_takes_no_number() {
    let (writer, reader) = pair::<Numbered>(lossless_writer(), lossless_reader());
    // The bytes are never touched, so they take no memory.
    let error = writer.write(&Numbered { bytes: vec![0; 2 << 30], ..Numbered::default() }).unwrap_err();
    assert!(matches!(error, weir_dds::DdsError::BadParameter(_)), "{error}");
    assert!(error.to_string().contains("too long"), "{error}");
    writer.write(&Numbered::new(1, 0)).unwrap();
    take_numbered(&reader, 1, 1);
}

#[test]
fn every_reader_gets_everything() {
    const COUNT: u64 = 5_000;
    let world = World::new();
    let writer = world.writer(&world.participant(), lossless_writer());
    // Two in one participant, one in its own participant, one in the writer's.
    let shared = world.participant();
    let readers = [
        world.reader(&shared, lossless_reader()),
        world.reader(&shared, lossless_reader()),
        world.reader(&world.participant(), lossless_reader()),
        world.reader(&world.participant(), lossless_reader()),
    ];
    matched(&[&writer], &readers.each_ref());
    std::thread::scope(|scope| {
        for reader in &readers {
            scope.spawn(|| take_numbered(reader, 3, COUNT));
        }
        for number in 0..COUNT {
            writer.write(&Numbered::new(3, number)).unwrap();
        }
        writer.wait_for_acknowledgments(DEADLINE).unwrap();
    });
}

#[test]
fn a_reader_beside_its_writer_gets_everything() {
    let world = World::new();
    let participant = world.participant();
    let (writer, reader) =
        (world.writer(&participant, lossless_writer()), world.reader(&participant, lossless_reader()));
    matched(&[&writer], &[&reader]);
    std::thread::scope(|scope| {
        scope.spawn(|| take_numbered(&reader, 0, 20_000));
        for number in 0..20_000 {
            writer.write(&Numbered::new(0, number)).unwrap();
        }
    });
}

#[test]
fn one_thread_that_writes_and_takes_never_waits_for_itself() {
    let world = World::new();
    let participant = world.participant();
    let (writer, reader) =
        (world.writer(&participant, lossless_writer()), world.reader(&participant, lossless_reader()));
    matched(&[&writer], &[&reader]);
    for number in 0..20_000 {
        writer.write(&Numbered::new(0, number)).unwrap();
    }
    take_numbered(&reader, 0, 20_000);
}

#[test]
fn a_reader_hears_many_writers_each_in_order() {
    const COUNT: u64 = 3_000;
    let world = World::new();
    let reader = world.reader(&world.participant(), lossless_reader());
    let shared = world.participant();
    let writers = [&shared, &shared, &world.participant(), &world.participant()]
        .map(|participant| world.writer(participant, lossless_writer()));
    matched(&writers.each_ref(), &[&reader]);
    std::thread::scope(|scope| {
        for (source, writer) in writers.iter().enumerate() {
            scope.spawn(move || {
                for number in 0..COUNT {
                    writer.write(&Numbered::new(source as u32, number)).unwrap();
                }
            });
        }
        let mut next = [0; 4];
        for sample in take_exactly(&reader, 4 * COUNT as usize) {
            let source = sample.data().unwrap().source;
            assert_eq!(*sample.data().unwrap(), Numbered::new(source, next[source as usize]));
            assert_eq!(sample.info.publication_handle, writers[source as usize].instance_handle());
            next[source as usize] += 1;
        }
    });
}

#[test]
fn eight_threads_share_a_writer_and_nothing_is_lost() {
    const COUNT: u64 = 3_000;
    let (writer, reader) = pair::<Numbered>(lossless_writer(), lossless_reader());
    std::thread::scope(|scope| {
        for source in 0..8 {
            let writer = writer.clone();
            scope.spawn(move || {
                for number in 0..COUNT {
                    writer.write(&Numbered::new(source, number)).unwrap();
                }
            });
        }
        let mut next = [0; 8];
        for (index, sample) in take_exactly(&reader, 8 * COUNT as usize).into_iter().enumerate() {
            assert_eq!(sample.info.sequence_number.0, index as i64 + 1);
            let source = sample.data().unwrap().source;
            assert_eq!(*sample.data().unwrap(), Numbered::new(source, next[source as usize]));
            next[source as usize] += 1;
        }
    });
}

#[test]
fn every_wait_strategy_gets_everything() {
    for wait in
        [WaitStrategy::Block, WaitStrategy::Spin, WaitStrategy::SpinThenBlock(Duration::from_micros(30))]
    {
        let world = World::new();
        let writer = world.writer(&world.participant_with(settings().wait(wait)), lossless_writer());
        let reader = world.reader(&world.participant_with(settings().wait(wait)), lossless_reader());
        matched(&[&writer], &[&reader]);
        std::thread::scope(|scope| {
            scope.spawn(|| take_numbered(&reader, 0, 5_000));
            for number in 0..5_000 {
                writer.write(&Numbered::new(0, number)).unwrap();
            }
            writer.wait_for_acknowledgments(DEADLINE).unwrap();
        });
    }
}

#[test]
fn a_small_receive_buffer_loses_nothing() {
    // The kernel drops what does not fit; it is sent again.
    let world = World::new();
    let mut small = settings();
    small.receive_buffer = 16 * 1024;
    let writer = world.writer(&world.participant(), lossless_writer());
    let reader = world.reader(&world.participant_with(small), lossless_reader());
    matched(&[&writer], &[&reader]);
    std::thread::scope(|scope| {
        scope.spawn(|| take_numbered(&reader, 0, 5_000));
        for number in 0..5_000 {
            writer.write(&Numbered::new(0, number)).unwrap();
        }
    });
}

#[test]
fn a_late_reader_gets_what_is_kept_only_when_both_sides_want_that() {
    use weir_dds::Durability;
    let world = World::new();
    let mut qos = lossless_writer();
    qos.durability = Durability::TransientLocal;
    let writer = world.writer(&world.participant(), qos);
    for number in 0..500 {
        writer.write(&Numbered::new(0, number)).unwrap();
    }
    let mut wants_history = lossless_reader();
    wants_history.durability = Durability::TransientLocal;
    let late = world.reader(&world.participant(), wants_history);
    take_numbered(&late, 0, 500);
    let volatile: weir_dds::DataReader<Numbered> = world.reader(&world.participant(), lossless_reader());
    volatile.wait_for_publications(1, DEADLINE).unwrap();
    writer.wait_for_subscriptions(2, DEADLINE).unwrap();
    writer.write(&Numbered::new(0, 500)).unwrap();
    assert_eq!(take_exactly(&volatile, 1)[0].data().unwrap().number, 500);
    assert_eq!(take_exactly(&late, 1)[0].data().unwrap().number, 500);
}
