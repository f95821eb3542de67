//! Writers that publish asynchronously (PUBLISH_MODE).

use std::sync::Arc;
use std::time::{Duration, Instant};

use weir_dds::{
    BatchPolicy, Coalescing, DataReader, DataReaderListener, DataReaderQos, DataWriter, DataWriterQos,
    DdsError, DomainParticipant, PublishMode, ResourceLimits, WaitStrategy,
};

use crate::support::{
    DEADLINE, Keyed, Numbered, World, lossless_reader, lossless_writer, matched, pair, settings,
    take_exactly, take_numbered,
};

const PATIENCE: Duration = Duration::from_millis(50);

fn asynchronous(qos: DataWriterQos) -> DataWriterQos {
    qos.publish_mode(PublishMode::Asynchronous)
}

/// Batches without a delay limit.
fn endless_batch(qos: DataWriterQos) -> DataWriterQos {
    qos.batch(BatchPolicy::new(8192, u32::MAX, DEADLINE))
}

fn best_effort() -> (DataWriterQos, DataReaderQos) {
    let writer = DataWriterQos::default().best_effort().keep_all().max_blocking_time(DEADLINE);
    (asynchronous(writer), DataReaderQos::default().best_effort().keep_all())
}

fn write_numbered(writer: &DataWriter<Numbered>, count: u64) {
    (0..count).for_each(|number| writer.write(&Numbered::new(0, number)).unwrap());
}

/// Asserts that the samples of a stream all arrive in order.
fn stream(qos: DataWriterQos, wait: WaitStrategy, count: u64) {
    let world = World::new();
    let writer = world.writer(&world.participant_with(settings().wait(wait)), asynchronous(qos));
    let reader = world.reader(&world.participant(), lossless_reader());
    matched(&[&writer], &[&reader]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            write_numbered(&writer, count);
            writer.wait_for_acknowledgments(DEADLINE).unwrap();
        });
        take_numbered(&reader, 0, count);
    });
    assert_eq!(reader.sample_lost_status().total_count, 0);
}

#[test]
fn a_hundred_thousand_reliable_samples_arrive_in_order() {
    stream(lossless_writer(), WaitStrategy::Block, 100_000);
}

#[test]
fn samples_arrive_in_order_in_every_way_of_waiting() {
    for wait in [WaitStrategy::Spin, WaitStrategy::SpinThenBlock(Duration::from_micros(50))] {
        stream(lossless_writer(), wait, 10_000);
    }
}

#[test]
fn samples_arrive_in_order_whether_they_are_put_together_or_not() {
    let batch = BatchPolicy::new(8192, u32::MAX, Duration::from_millis(1));
    stream(lossless_writer().coalescing(Coalescing::Off), WaitStrategy::Block, 10_000);
    stream(lossless_writer().batch(batch), WaitStrategy::Block, 100_000);
    stream(lossless_writer().batch(batch).coalescing(Coalescing::Off), WaitStrategy::Block, 10_000);
}

#[test]
fn several_threads_share_a_writer() {
    let (writer, reader) = pair::<Numbered>(asynchronous(lossless_writer()), lossless_reader());
    std::thread::scope(|scope| {
        for source in 0..3 {
            let writer = &writer;
            scope.spawn(move || {
                (0..5_000).for_each(|number| writer.write(&Numbered::new(source, number)).unwrap());
            });
        }
        let mut expected = [0; 3];
        for sample in take_exactly(&reader, 15_000) {
            let next = &mut expected[sample.data().unwrap().source as usize];
            assert_eq!(sample.data().unwrap().number, *next);
            *next += 1;
        }
    });
}

fn large(number: u64, len: usize) -> Numbered {
    Numbered { source: 1, number, bytes: (0..len).map(|at| (at as u64 * 31 + number) as u8).collect() }
}

#[test]
fn samples_of_any_size_arrive_whole_through_small_buffers_too() {
    for receive_buffer in [4 << 20, 212_992] {
        let world = World::new();
        let theirs = world.participant_with(settings().receive_buffer(receive_buffer));
        let writer = world.writer(&world.participant(), asynchronous(lossless_writer()));
        let reader: DataReader<Numbered> = world.reader(&theirs, lossless_reader());
        matched(&[&writer], &[&reader]);
        let sizes = [0, 64_000, 1_000_000, 65_508, 10, 3_000_000, 100];
        std::thread::scope(|scope| {
            scope.spawn(|| sizes.iter().zip(0..).for_each(|(len, n)| writer.write(&large(n, *len)).unwrap()));
            for (len, number) in sizes.into_iter().zip(0..) {
                assert!(*take_exactly(&reader, 1)[0].data().unwrap() == large(number, len), "{len} bytes");
            }
        });
    }
}

#[test]
fn a_large_sample_leaves_while_its_writer_does_something_else() {
    // No application thread receives here: the engine's threads process the acknowledgements.
    let (writer, reader) = pair::<Numbered>(asynchronous(lossless_writer()), lossless_reader());
    for number in 0..5 {
        writer.write(&large(number, 10_000_000)).unwrap();
        assert!(*take_exactly(&reader, 1)[0].data().unwrap() == large(number, 10_000_000));
    }
}

#[test]
fn loans_are_sent_from_where_they_were_filled() {
    let (writer, reader) = pair::<Numbered>(asynchronous(lossless_writer()), lossless_reader());
    for size in [0, 1_000, 40_001, 65_500, 1_000_000] {
        for number in 0..10 {
            let expected = large(number, size);
            let mut loan = writer.loan(size).unwrap();
            (loan.sample.source, loan.sample.number) = (1, number);
            loan.copy_from_slice(&expected.bytes);
            loan.write().unwrap();
            assert!(*take_exactly(&reader, 1)[0].data().unwrap() == expected, "{number} of {size} bytes");
        }
    }
}

#[test]
fn what_is_not_sent_is_bounded_for_best_effort_and_a_writer_is_woken_when_it_is() {
    // The pauses between large samples when the receive buffer is small: writing is far faster than
    // sending.
    let world = World::new();
    let theirs = world.participant_with(settings().receive_buffer(212_992));
    let writer = world.writer(&world.participant(), best_effort().0);
    let reader: DataReader<Numbered> = world.reader(&theirs, best_effort().1);
    matched(&[&writer], &[&reader]);
    for number in 0..20 {
        writer.write(&large(number, 1_000_000)).unwrap();
    }
    writer.wait_for_asynchronous_publishing(DEADLINE).unwrap();
    let counters = writer.send_counters();
    assert_eq!((counters.samples, counters.datagrams), (20, 20 * 16));
}

#[test]
fn a_limit_of_samples_counts_those_that_are_not_sent() {
    let limits = ResourceLimits::UNLIMITED.max_samples(10);
    for (writer, reader) in [best_effort(), (asynchronous(lossless_writer()), lossless_reader())] {
        let (writer, reader) = pair::<Numbered>(writer.resource_limits(limits), reader);
        std::thread::scope(|scope| {
            scope.spawn(|| take_exactly(&reader, 2_000));
            write_numbered(&writer, 2_000);
        });
    }
}

#[test]
fn a_stalled_reader_stalls_its_writer_which_goes_on_after_it_takes() {
    let mut small = lossless_reader();
    small.resource_limits.max_samples = Some(100);
    let qos = asynchronous(lossless_writer().max_blocking_time(PATIENCE));
    let (writer, reader) = pair::<Numbered>(qos, small);
    let mut number = 0;
    let error = loop {
        match writer.write(&Numbered::new(0, number)) {
            Ok(()) => number += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(&error, DdsError::Timeout { waited, .. } if *waited == PATIENCE), "{error}");
    assert!(error.to_string().contains(&reader.guid().to_string()), "{error}");
    assert_eq!(writer.last_sequence_number().0, number as i64, "what was refused took no number");
    assert!(writer.wait_for_acknowledgments(PATIENCE).is_err());
    take_numbered(&reader, 0, number);
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
}

#[test]
fn a_stalled_reader_that_leaves_lets_a_large_sample_go_on() {
    let world = World::new();
    let writer = world.writer(&world.participant(), asynchronous(lossless_writer()));
    let mut small = lossless_reader();
    small.resource_limits.max_samples = Some(1);
    let stalled: DataReader<Numbered> = world.reader(&world.participant(), small);
    let healthy: DataReader<Numbered> = world.reader(&world.participant(), lossless_reader());
    matched(&[&writer], &[&stalled, &healthy]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (0..20).for_each(|number| writer.write(&large(number, 2_000_000)).unwrap());
            writer.wait_for_acknowledgments(DEADLINE).unwrap();
        });
        stalled.wait_for_data(DEADLINE).unwrap();
        drop(stalled);
        (0..20).for_each(|number| {
            assert!(*take_exactly(&healthy, 1)[0].data().unwrap() == large(number, 2_000_000))
        });
    });
}

#[test]
fn waiting_for_acknowledgements_or_the_end_of_publishing_sends_what_was_held_back() {
    for (writer, reader) in [best_effort(), (asynchronous(lossless_writer()), lossless_reader())] {
        let (writer, reader) = pair::<Numbered>(endless_batch(writer), reader);
        write_numbered(&writer, 10);
        writer.wait_for_acknowledgments(DEADLINE).unwrap();
        writer.wait_for_asynchronous_publishing(DEADLINE).unwrap();
        assert_eq!(writer.send_counters().samples, 10);
        writer.write(&Numbered::new(0, 10)).unwrap();
        writer.wait_for_asynchronous_publishing(DEADLINE).unwrap();
        assert_eq!(writer.send_counters().samples, 11);
        take_numbered(&reader, 0, 11);
    }
}

#[test]
fn nothing_is_waited_for_without_readers_or_a_thread() {
    let world = World::new();
    let participant = world.participant();
    for qos in [asynchronous(lossless_writer()), best_effort().0, lossless_writer()] {
        let writer = world.writer(&participant, qos);
        write_numbered(&writer, 10_000);
        writer.wait_for_acknowledgments(Duration::ZERO).unwrap();
        writer.wait_for_asynchronous_publishing(Duration::ZERO).unwrap();
        assert_eq!(writer.send_counters(), weir_dds::SendCounters::default());
    }
}

/// Waits until `datagrams` datagrams of user data were received, or dropped before a socket of this
/// host. Best-effort ones are dropped if their receiver gets no processor time. How many of them
/// become samples is not checked: the reader may learn first that the writer is gone.
fn until_received(participant: &DomainParticipant, datagrams: u64, dropped_before: u64) {
    let deadline = Instant::now() + DEADLINE;
    loop {
        let received = participant.receive_counters().datagrams;
        // Closed sockets no longer count.
        let dropped = dropped().saturating_sub(dropped_before);
        if received + dropped >= datagrams {
            return;
        }
        assert!(Instant::now() < deadline, "{received} received, {dropped} dropped and not {datagrams}");
        std::thread::yield_now();
    }
}

/// Datagrams dropped by the kernel because a socket buffer was full: the last column of
/// `/proc/net/udp`.
fn dropped() -> u64 {
    let sockets = std::fs::read_to_string("/proc/self/net/udp").unwrap();
    let drops = sockets.lines().skip(1).filter_map(|line| line.split_whitespace().next_back());
    drops.map(|drops| drops.parse::<u64>().unwrap()).sum()
}

#[test]
fn a_writer_that_is_dropped_sends_what_it_has() {
    let small = settings().receive_buffer(212_992);
    for (writer, reader) in [best_effort(), (asynchronous(lossless_writer()), lossless_reader())] {
        let (batch, plain) = (endless_batch(writer.clone()), writer);
        for (qos, samples, len, datagrams) in
            [(&plain, 50, 10, 50), (&batch, 50, 10, 1), (&plain, 1, 1_000_000, 16)]
        {
            let world = World::new();
            let theirs = world.participant_with(small.clone());
            let writer = world.writer(&world.participant(), qos.clone());
            let reader: DataReader<Numbered> = world.reader(&theirs, reader.clone());
            matched(&[&writer], &[&reader]);
            let (before, dropped) = (theirs.receive_counters().datagrams, dropped());
            (0..samples).for_each(|number| writer.write(&large(number, len)).unwrap());
            drop(writer);
            until_received(&theirs, before + datagrams, dropped);
        }
    }
}

#[test]
fn instances_end_with_their_writer() {
    let (writer, reader) = pair::<Keyed>(asynchronous(lossless_writer()), lossless_reader());
    for id in 0..10 {
        writer.register_instance(&Keyed { id, value: 0 }).unwrap();
        writer.write(&Keyed { id, value: 1 }).unwrap();
    }
    writer.dispose(&Keyed { id: 0, value: 0 }).unwrap();
    drop(writer);
    let samples = take_exactly(&reader, 20);
    assert_eq!(samples.iter().filter(|sample| sample.info.valid_data).count(), 10);
}

#[test]
fn the_last_of_a_burst_is_kept_for_certain() {
    let qos = asynchronous(DataWriterQos::default().reliable().keep_last(1));
    let (writer, reader) = pair::<Numbered>(qos, lossless_reader());
    write_numbered(&writer, 20_000);
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    let taken = reader.take(usize::MAX);
    assert!(taken.is_sorted_by(|one, next| one.data().unwrap().number < next.data().unwrap().number));
    assert_eq!(taken.last().unwrap().data().unwrap().number, 19_999);
}

/// Sends every sample back, several times.
struct Echo(DataWriter<Numbered>);

const ECHOES: u32 = 20;

impl DataReaderListener<Numbered> for Echo {
    fn on_data_available(&self, reader: &DataReader<Numbered>) {
        for sample in reader.take(usize::MAX).iter().filter(|sample| sample.info.valid_data) {
            for source in 0..ECHOES {
                self.0.write(&Numbered { source, ..sample.data().unwrap().clone() }).unwrap();
            }
        }
    }
}

#[test]
fn a_listener_that_writes_may_wait_for_room() {
    const COUNT: u64 = 2_000;
    let world = World::new();
    let (near, far) = (world.participant(), world.participant());
    let (ping, pong) = (world.sibling(), world.sibling());
    let limits = ResourceLimits::UNLIMITED.max_samples(5);
    let narrow = || asynchronous(lossless_writer().resource_limits(limits));
    let (writer, far_reader) = (ping.writer(&near, narrow()), ping.reader(&far, lossless_reader()));
    let (far_writer, reader) = (pong.writer(&far, narrow()), pong.reader(&near, lossless_reader()));
    matched(&[&writer], &[&far_reader]);
    matched(&[&far_writer], &[&reader]);
    far_reader.set_listener(Some(Arc::new(Echo(far_writer))));
    std::thread::scope(|scope| {
        scope.spawn(|| write_numbered(&writer, COUNT));
        let echoes = take_exactly(&reader, COUNT as usize * ECHOES as usize);
        for (echo, at) in echoes.iter().zip(0..) {
            let echoes = u64::from(ECHOES);
            assert_eq!(
                (echo.data().unwrap().number, u64::from(echo.data().unwrap().source)),
                (at / echoes, at % echoes)
            );
        }
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
        let writer = ping.writer(&near, asynchronous(lossless_writer()));
        let far_reader = ping.reader(&far, lossless_reader());
        let far_writer = pong.writer(&far, asynchronous(lossless_writer()));
        let reader = pong.reader(&near, lossless_reader());
        matched(&[&writer], &[&far_reader]);
        matched(&[&far_writer], &[&reader]);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..500 {
                    far_writer.write(take_exactly(&far_reader, 1)[0].data().unwrap()).unwrap();
                }
            });
            for number in 0..500 {
                writer.write(&Numbered::new(0, number)).unwrap();
                assert_eq!(take_exactly(&reader, 1)[0].data().unwrap().number, number);
            }
        });
    }
}
