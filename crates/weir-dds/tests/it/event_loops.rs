//! Readers and wait sets in event loops: futures, streams, file descriptors.

use std::future::Future;
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use futures::executor::{LocalPool, block_on};
use futures::task::LocalSpawnExt;
use futures::{FutureExt, Stream, StreamExt};
use weir_dds::{DataReader, DataReaderListener, DdsError, GuardCondition, States, StatusMask, WaitSet};

use crate::support::{DEADLINE, Numbered, World, lossless_reader, lossless_writer, pair, take_exactly};

fn is_readable(fd: &impl AsFd, timeout: Duration) -> bool {
    weir_udp::poll(&[fd], None, Some(timeout)).unwrap().is_readable(0)
}

#[test]
fn a_stream_has_every_sample_in_order() {
    const COUNT: u64 = 2_000;
    let (writer, reader) = pair::<Numbered>(lossless_writer(), lossless_reader());
    std::thread::scope(|scope| {
        scope.spawn(|| (0..COUNT).for_each(|number| writer.write(&Numbered::new(0, number)).unwrap()));
        let samples: Vec<_> = block_on(reader.stream().take(COUNT as usize).collect());
        let expected = (0..COUNT).map(|number| Numbered::new(0, number));
        assert!(samples.into_iter().map(|sample| sample.into_data().unwrap()).eq(expected));
    });
    assert!(reader.stream().next().now_or_never().is_none());
}

#[test]
fn one_thread_runs_many_tasks_that_read_and_write() {
    const READERS: u64 = 8;
    let world = World::new();
    let participant = world.participant();
    let readers: Vec<DataReader<Numbered>> =
        (0..READERS).map(|_| world.reader(&participant, lossless_reader())).collect();
    let writer = world.writer(&participant, lossless_writer());
    writer.wait_for_subscriptions(READERS, DEADLINE).unwrap();
    let mut pool = LocalPool::new();
    for reader in readers {
        let task = async move {
            let mut next = 0;
            while next < 100 {
                reader.readable().await.unwrap();
                for sample in reader.take(10) {
                    assert_eq!(sample.data().unwrap().number, next);
                    next += 1;
                }
            }
        };
        pool.spawner().spawn_local(task).unwrap();
    }
    let task = async move {
        for number in 0..100 {
            writer.write(&Numbered::new(0, number)).unwrap();
        }
        writer
    };
    let _writer = pool.run_until(task);
    pool.run();
}

#[test]
fn a_task_that_polls_again_and_again_is_kept_once() {
    let (writer, reader) = pair::<Numbered>(lossless_writer(), lossless_reader());
    let mut samples = pin!(reader.stream());
    let (waker, wakes) = futures_test_waker();
    let mut context = Context::from_waker(&waker);
    for _ in 0..1000 {
        assert!(samples.as_mut().poll_next(&mut context).is_pending());
    }
    writer.write(&Numbered::new(0, 0)).unwrap();
    wakes.recv_timeout(DEADLINE).unwrap();
    assert!(samples.as_mut().poll_next(&mut context).is_ready());
    assert!(wakes.try_recv().is_err(), "one wake for one sample");
}

/// A waker that sends to a channel.
fn futures_test_waker() -> (Waker, mpsc::Receiver<()>) {
    struct Sends(Mutex<mpsc::Sender<()>>);
    impl Wake for Sends {
        fn wake(self: Arc<Self>) {
            let _ = self.0.lock().unwrap().send(());
        }
    }
    let (sender, receiver) = mpsc::channel();
    (Arc::new(Sends(Mutex::new(sender))).into(), receiver)
}

/// Counts the references to wakers.
struct Counted(#[expect(dead_code, reason = "only held")] Arc<()>);

impl Wake for Counted {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn futures_and_streams_that_are_dropped_leave_no_wakers() {
    const FUTURES: usize = 100_000;
    let world = World::new();
    let reader: DataReader<Numbered> = world.reader(&world.participant(), lossless_reader());
    let (wait_set, wakers) = (WaitSet::new(), Arc::new(()));
    wait_set.attach_condition(&reader.read_condition(States::NOT_READ));
    let waker = || Waker::from(Arc::new(Counted(Arc::clone(&wakers))));
    for _ in 0..FUTURES {
        let waker = waker();
        let mut context = Context::from_waker(&waker);
        assert!(pin!(reader.readable()).poll(&mut context).is_pending());
        assert!(pin!(wait_set.wait_async()).poll(&mut context).is_pending());
        assert!(reader.stream().poll_next_unpin(&mut context).is_pending());
    }
    assert_eq!(Arc::strong_count(&wakers), 1);
    // Without a future, nothing says when a task does not wait any more.
    for _ in 0..FUTURES {
        assert!(reader.poll_readable(&mut Context::from_waker(&waker())).is_pending());
    }
    assert!(Arc::strong_count(&wakers) <= 1 + 64);
}

#[test]
fn the_descriptor_of_a_reader_is_readable_while_there_are_unread_samples() {
    let (writer, reader) = pair::<Numbered>(lossless_writer(), lossless_reader());
    writer.write(&Numbered::new(0, 0)).unwrap();
    reader.wait_for_data(DEADLINE).unwrap();
    let fd = reader.event_fd().unwrap();
    assert!(is_readable(&fd, Duration::ZERO), "a sample was there before the descriptor");
    assert_eq!(reader.read(1).len(), 1);
    assert!(!is_readable(&fd, Duration::ZERO), "all were read");
    for number in 1..=2 {
        writer.write(&Numbered::new(0, number)).unwrap();
    }
    writer.wait_for_acknowledgments(DEADLINE).unwrap();
    assert!(is_readable(&fd, DEADLINE));
    assert_eq!(take_exactly(&reader, 2).len(), 2);
    assert!(is_readable(&reader.event_fd().unwrap(), DEADLINE), "one is left");
    assert_eq!(reader.take(10).len(), 1);
    assert!(!is_readable(&fd, Duration::ZERO));
    // The descriptor outlives the reader.
    drop(reader);
    assert!(!is_readable(&fd, Duration::ZERO));
}

#[test]
fn a_reader_that_is_closed_or_dropped_with_samples_leaves_nothing_to_wait_for() {
    for is_closed in [true, false] {
        let (writer, reader) = pair::<Numbered>(lossless_writer(), lossless_reader());
        let (subscriber, wait_set) = (reader.subscriber(), WaitSet::new());
        wait_set.attach_condition(&subscriber.status_condition());
        let (of_reader, of_wait_set) = (reader.event_fd().unwrap(), wait_set.event_fd().unwrap());
        writer.write(&Numbered::new(0, 0)).unwrap();
        assert!(is_readable(&of_reader, DEADLINE) && is_readable(&of_wait_set, DEADLINE));
        if is_closed {
            reader.close().unwrap();
            assert!(is_readable(&of_reader, Duration::ZERO), "the sample can still be taken");
        } else {
            drop(reader);
            assert!(!is_readable(&of_reader, Duration::ZERO));
        }
        assert_eq!(subscriber.status_changes(), StatusMask::NONE);
        assert!(!is_readable(&of_wait_set, Duration::ZERO));
    }
}

#[test]
fn the_descriptor_of_a_wait_set_is_readable_while_a_condition_is_true() {
    let (writer, reader) = pair::<Numbered>(lossless_writer(), lossless_reader());
    let (wait_set, guard) = (WaitSet::new(), GuardCondition::new());
    guard.set_trigger_value(true);
    wait_set.attach_condition(&guard);
    wait_set.attach_condition(&reader.read_condition(States::NOT_READ));
    let fd = wait_set.event_fd().unwrap();
    assert!(is_readable(&fd, Duration::ZERO));
    guard.set_trigger_value(false);
    assert!(!is_readable(&fd, Duration::ZERO));
    writer.write(&Numbered::new(0, 0)).unwrap();
    assert!(is_readable(&fd, DEADLINE));
    assert_eq!(reader.take(1).len(), 1);
    assert!(!is_readable(&fd, Duration::ZERO));
    let status = reader.status_condition();
    wait_set.attach_condition(&status);
    assert!(is_readable(&fd, Duration::ZERO), "matches were not read yet");
    reader.subscription_matched_status();
    reader.liveliness_changed_status();
    assert!(!is_readable(&fd, Duration::ZERO));
    wait_set.detach_condition(&status).unwrap();
}

/// The function is called by the engine's thread, to bring the descriptor up to date.
#[test]
fn a_function_that_panics_ends_no_thread_of_the_engine() {
    let (writer, reader) = pair::<Numbered>(lossless_writer(), lossless_reader());
    let wait_set = WaitSet::new();
    let fails = reader.query_condition(States::NOT_READ, |_| panic!("in a function of the application"));
    wait_set.attach_condition(&fails);
    let fd = wait_set.event_fd().unwrap();
    writer.write(&Numbered::new(0, 0)).unwrap();
    assert!(is_readable(&fd, DEADLINE));
    let waits = AssertUnwindSafe(|| wait_set.wait(DEADLINE));
    assert!(catch_unwind(waits).is_err(), "the thread that waits meets the panic");
    wait_set.detach_condition(&fails).unwrap();
    writer.write(&Numbered::new(0, 1)).unwrap();
    assert_eq!(take_exactly(&reader, 2).len(), 2);
    assert!(reader.failure().is_none());
}

/// The thread that waits receives, and leaves nothing to the engine's thread meanwhile.
#[test]
fn a_function_that_panics_amid_a_wait_does_not_end_receiving() {
    let (writer, reader) = pair::<Numbered>(lossless_writer(), lossless_reader());
    let wait_set = WaitSet::new();
    let (looks, looked) = mpsc::channel();
    let fails = reader.query_condition(States::NOT_READ, move |sample: &Numbered| {
        looks.send(()).unwrap();
        assert!(sample.number == 0, "in a function of the application");
        false
    });
    wait_set.attach_condition(&fails);
    writer.write(&Numbered::new(0, 0)).unwrap();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| catch_unwind(AssertUnwindSafe(|| wait_set.wait(DEADLINE))).is_err());
        looked.recv_timeout(DEADLINE).unwrap();
        writer.write(&Numbered::new(0, 1)).unwrap();
        assert!(waits.join().unwrap());
    });
    wait_set.detach_condition(&fails).unwrap();
    let (calls, called) = mpsc::channel();
    reader.set_listener(Some(Arc::new(Arrivals(calls))));
    reader.take(2);
    writer.write(&Numbered::new(0, 2)).unwrap();
    called.recv_timeout(DEADLINE).unwrap();
}

struct Arrivals(mpsc::Sender<()>);

impl DataReaderListener<Numbered> for Arrivals {
    fn on_data_available(&self, reader: &DataReader<Numbered>) {
        if reader.take(1).iter().any(|sample| sample.data().is_some_and(|it| it.number == 2)) {
            _ = self.0.send(());
        }
    }
}

#[test]
fn a_task_that_waits_for_a_reader_is_woken_when_another_thread_closes_it() {
    let world = World::new();
    let participant = world.participant();
    let reader = world.reader::<Numbered>(&participant, lossless_reader());
    let (waker, woken) = futures_test_waker();
    let mut samples = reader.stream();
    assert!(samples.poll_next_unpin(&mut Context::from_waker(&waker)).is_pending());
    participant.delete_contained_entities().unwrap();
    woken.recv_timeout(DEADLINE).unwrap();
    assert!(samples.next().now_or_never().unwrap().is_none());
    assert!(matches!(reader.readable().now_or_never(), Some(Err(DdsError::AlreadyDeleted(_)))));
    assert!(matches!(reader.wait_for_data(Duration::ZERO), Err(DdsError::AlreadyDeleted(_))));
}

/// An executor that fails to wake one task.
struct Fails;

impl Wake for Fails {
    fn wake(self: Arc<Self>) {
        panic!("in an executor");
    }
}

#[test]
fn a_task_that_cannot_be_woken_holds_up_no_other() {
    let (wait_set, stop) = (WaitSet::new(), GuardCondition::new());
    wait_set.attach_condition(&stop);
    let fd = wait_set.event_fd().unwrap();
    let mut waits = pin!(wait_set.wait_async());
    let waker = Waker::from(Arc::new(Fails));
    assert!(waits.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    stop.set_trigger_value(true);
    assert!(is_readable(&fd, Duration::ZERO));
}

#[test]
fn a_wait_set_is_a_future() {
    let (writer, reader) = pair::<Numbered>(lossless_writer(), lossless_reader());
    let (wait_set, stop) = (WaitSet::new(), GuardCondition::new());
    let data = reader.read_condition(States::NOT_READ);
    wait_set.attach_condition(&data);
    wait_set.attach_condition(&stop);
    assert!(wait_set.wait_async().now_or_never().is_none());
    std::thread::scope(|scope| {
        scope.spawn(|| writer.write(&Numbered::new(0, 0)).unwrap());
        assert!(block_on(wait_set.wait_async()).unwrap().contains(&data));
        reader.take(1);
        scope.spawn(|| stop.set_trigger_value(true));
        assert!(block_on(wait_set.wait_async()).unwrap().contains(&stop));
    });
}
