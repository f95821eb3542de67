//! Who is notified of news, and in which order: listeners that block hold up nothing that waits, and one thread at a
//! time calls them.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake};
use std::time::Duration;

use futures::StreamExt;
use weir_dds::{
    DataReader, DataReaderListener, DataWriter, DataWriterQos, DomainParticipant, Sample,
    SampleRejectedReason, SampleRejectedStatus, SampleSeq, States, StatusMask, Subscriber,
    SubscriberListener, SubscriptionMatchedStatus, WaitSet,
};

use crate::support::{DEADLINE, Numbered, World, lossless_reader, lossless_writer, matched};

fn is_readable(fd: &impl AsFd, timeout: Duration) -> bool {
    weir_udp::poll(&[fd], None, Some(timeout)).unwrap().is_readable(0)
}

/// A waker that sends to a channel.
struct Sends(Mutex<Sender<()>>);

impl Wake for Sends {
    fn wake(self: Arc<Self>) {
        let _ = self.0.lock().unwrap().send(());
    }
}

/// Says that it was called, and then blocks until the test ends that.
#[derive(Clone)]
struct Blocks(Sender<()>, Arc<Mutex<Receiver<()>>>);

impl Blocks {
    fn new() -> (Self, Receiver<()>, Sender<()>) {
        let ((entered, has_entered), (release, is_released)) = (channel(), channel());
        (Self(entered, Arc::new(Mutex::new(is_released))), has_entered, release)
    }

    fn block(&self) {
        let _ = self.0.send(());
        let _ = self.1.lock().unwrap().recv();
    }
}

struct BlocksOnData(Mutex<Blocks>);

impl DataReaderListener<Numbered> for BlocksOnData {
    fn on_data_available(&self, _: &DataReader<Numbered>) {
        let blocks = self.0.lock().unwrap().clone();
        blocks.block();
    }
}

struct BlocksOnMatch(Mutex<Blocks>);

impl DataReaderListener<Numbered> for BlocksOnMatch {
    fn on_subscription_matched(&self, _: &DataReader<Numbered>, _: SubscriptionMatchedStatus) {
        let blocks = self.0.lock().unwrap().clone();
        blocks.block();
    }
}

struct Ignores;

impl DataReaderListener<Numbered> for Ignores {}

#[test]
fn what_waits_for_data_is_notified_before_a_listener_that_blocks() {
    let world = World::new();
    let (here, there) = (world.participant(), world.participant());
    let (blocks, has_entered, release) = Blocks::new();
    // One datagram has the samples of both: the listener of either may be called first.
    let readers: [DataReader<Numbered>; 2] = [0; 2].map(|_| world.reader(&here, lossless_reader()));
    let waits = readers.each_ref().map(|reader| {
        reader.set_listener(Some(Arc::new(BlocksOnData(Mutex::new(blocks.clone())))));
        let wait_set = WaitSet::new();
        wait_set.attach_condition(&reader.read_condition(States::NOT_READ));
        let (wakes, is_woken) = channel();
        let waker = Arc::new(Sends(Mutex::new(wakes))).into();
        let mut stream = reader.stream();
        assert!(stream.poll_next_unpin(&mut Context::from_waker(&waker)).is_pending());
        (reader.event_fd().unwrap(), wait_set.event_fd().unwrap(), is_woken, (wait_set, stream))
    });
    let writer = world.writer(&there, lossless_writer());
    matched(&[&writer], &readers.each_ref());
    writer.write(&Numbered::new(0, 0)).unwrap();
    has_entered.recv_timeout(DEADLINE).unwrap();
    for (of_reader, of_wait_set, is_woken, _) in &waits {
        assert!(is_readable(of_reader, Duration::ZERO) && is_readable(of_wait_set, Duration::ZERO));
        is_woken.try_recv().unwrap();
    }
    drop(release);
}

#[test]
fn what_waits_for_a_status_is_not_queued_behind_a_listener_that_blocks() {
    let world = World::new();
    let (here, there) = (world.participant(), world.participant());
    let other = world.sibling();
    let (blocks, has_entered, release) = Blocks::new();
    let first: DataReader<Numbered> = world.reader(&here, lossless_reader());
    first.set_listener(Some(Arc::new(BlocksOnMatch(Mutex::new(blocks)))));
    let second: DataReader<Numbered> = other.reader(&here, lossless_reader());
    second.set_listener(Some(Arc::new(Ignores)));
    let wait_set = WaitSet::new();
    wait_set.attach_condition(&second.status_condition());
    let event_fd = wait_set.event_fd().unwrap();
    let _writer: DataWriter<Numbered> = world.writer(&there, lossless_writer());
    has_entered.recv_timeout(DEADLINE).unwrap();
    assert!(!is_readable(&event_fd, Duration::ZERO));
    // Its reader wants more, so nothing but discovery concerns it.
    let qos = DataWriterQos::default().best_effort();
    let _other_writer: DataWriter<Numbered> = other.writer(&there, qos);
    assert!(is_readable(&event_fd, DEADLINE));
    drop(release);
}

struct Rejections(Mutex<Sender<SampleRejectedStatus>>);

impl DataReaderListener<Numbered> for Rejections {
    fn on_sample_rejected(&self, _: &DataReader<Numbered>, status: SampleRejectedStatus) {
        let _ = self.0.lock().unwrap().send(status);
    }
}

#[test]
fn a_sample_that_cannot_be_decoded_is_news_for_all_that_waits_for_the_status() {
    let accesses: [fn(&DataReader<Numbered>); 4] = [
        |reader| assert!(reader.take(1)[0].error().is_some()),
        |reader| assert!(reader.take_next_sample(&mut Sample::default())),
        |reader| assert_eq!(reader.take_into(&mut SampleSeq::new(), 1), 1),
        |reader| assert_eq!(reader.select().states(States::NOT_READ).take().len(), 1),
    ];
    let world = World::new();
    let (here, there) = (world.participant(), world.participant());
    let [listens, waits]: [DataReader<Numbered>; 2] = [0; 2].map(|_| world.reader(&here, lossless_reader()));
    let (rejections, is_rejected) = channel();
    listens.set_listener(Some(Arc::new(Rejections(Mutex::new(rejections)))));
    let (wait_set, status) = (WaitSet::new(), waits.status_condition());
    status.set_enabled_statuses(StatusMask::SAMPLE_REJECTED);
    wait_set.attach_condition(&status);
    let event_fd = wait_set.event_fd().unwrap();
    let writer = world.writer(&there, lossless_writer());
    matched(&[&writer], &[&listens, &waits]);
    for (access, count) in accesses.into_iter().zip(1..) {
        // The members after the first are missing.
        writer.write_serialized(&[0, 1, 0, 0, 7, 0, 0, 0]).unwrap();
        listens.wait_for_data(DEADLINE).unwrap();
        waits.wait_for_data(DEADLINE).unwrap();
        assert!(!is_readable(&event_fd, Duration::ZERO));
        access(&listens);
        let told = is_rejected.recv_timeout(DEADLINE).unwrap();
        assert_eq!((told.total_count, told.last_reason), (count, Some(SampleRejectedReason::Malformed)));
        access(&waits);
        assert!(is_readable(&event_fd, Duration::ZERO) && wait_set.wait(DEADLINE).unwrap().contains(&status));
        assert_eq!(waits.sample_rejected_status().total_count_change, 1);
        assert!(!is_readable(&event_fd, Duration::ZERO));
    }
}

/// Notes each call, and whether it begins during another one. Blocks in the first one.
struct Overlaps {
    blocks: Mutex<Blocks>,
    is_first: AtomicBool,
    is_inside: AtomicBool,
    has_overlapped: Arc<AtomicBool>,
    calls: Mutex<Sender<usize>>,
}

impl Overlaps {
    /// Blocks in the first call. Sends what `count` returns in the others.
    fn note(&self, count: impl FnOnce() -> usize) {
        if self.is_inside.swap(true, Ordering::SeqCst) {
            self.has_overlapped.store(true, Ordering::SeqCst);
        }
        if self.is_first.swap(false, Ordering::SeqCst) {
            let blocks = self.blocks.lock().unwrap().clone();
            blocks.block();
        } else {
            let _ = self.calls.lock().unwrap().send(count());
        }
        self.is_inside.store(false, Ordering::SeqCst);
    }
}

impl DataReaderListener<Numbered> for Overlaps {
    fn on_data_available(&self, reader: &DataReader<Numbered>) {
        self.note(|| reader.take(10).len());
    }
}

#[test]
fn notify_datareaders_leaves_a_reader_to_the_thread_that_calls_its_listener() {
    let world = World::new();
    let (here, there) = (world.participant(), world.participant());
    let (blocks, has_entered, release) = Blocks::new();
    let (calls, is_called) = channel();
    let has_overlapped = Arc::new(AtomicBool::new(false));
    let reader: DataReader<Numbered> = world.reader(&here, lossless_reader());
    reader.set_listener(Some(Arc::new(Overlaps {
        blocks: Mutex::new(blocks),
        is_first: AtomicBool::new(true),
        is_inside: AtomicBool::new(false),
        has_overlapped: Arc::clone(&has_overlapped),
        calls: Mutex::new(calls),
    })));
    let writer = world.writer(&there, lossless_writer());
    matched(&[&writer], &[&reader]);
    writer.write(&Numbered::new(0, 0)).unwrap();
    has_entered.recv_timeout(DEADLINE).unwrap();
    reader.subscriber().notify_datareaders();
    assert!(is_called.try_recv().is_err(), "the other thread is still in its call");
    drop(release);
    assert_eq!(is_called.recv_timeout(DEADLINE).unwrap(), 1);
    assert!(!has_overlapped.load(Ordering::SeqCst));
}

impl SubscriberListener for Overlaps {
    fn on_data_on_readers(&self, subscriber: &Subscriber) {
        self.note(|| subscriber.datareaders(States::NOT_READ).len());
    }
}

#[test]
fn one_thread_at_a_time_calls_a_listener_for_data_on_readers() {
    let (world, other) = (World::new(), World::new());
    let (here, there) = (world.participant(), world.participant());
    let (blocks, has_entered, release) = Blocks::new();
    let (calls, is_called) = channel();
    let has_overlapped = Arc::new(AtomicBool::new(false));
    let group = here.create_subscriber().unwrap();
    let readers: [DataReader<Numbered>; 2] = [&world, &other]
        .map(|world| group.create_datareader(&world.topic::<Numbered>(&here), lossless_reader()).unwrap());
    let writers: [DataWriter<Numbered>; 2] =
        [&world, &other].map(|world| world.writer(&there, lossless_writer()));
    (0..2).for_each(|index| matched(&[&writers[index]], &[&readers[index]]));
    let listener = Overlaps {
        blocks: Mutex::new(blocks),
        is_first: AtomicBool::new(true),
        is_inside: AtomicBool::new(false),
        has_overlapped: Arc::clone(&has_overlapped),
        calls: Mutex::new(calls),
    };
    group.set_listener(Some(Arc::new(listener)), StatusMask::DATA_ON_READERS);
    writers[0].write(&Numbered::new(0, 0)).unwrap();
    has_entered.recv_timeout(DEADLINE).unwrap();
    // The engine's thread is in the call: this one receives the other sample.
    writers[1].write(&Numbered::new(0, 0)).unwrap();
    readers[1].wait_for_data(DEADLINE).unwrap();
    assert!(is_called.try_recv().is_err(), "the other thread is still in its call");
    drop(release);
    assert_eq!(is_called.recv_timeout(DEADLINE).unwrap(), 2);
    assert!(!has_overlapped.load(Ordering::SeqCst));
}

/// Says what it is called for, and passes data on in each call.
struct PassesOn(Mutex<Sender<&'static str>>);

impl PassesOn {
    fn say(&self, text: &'static str) {
        let _ = self.0.lock().unwrap().send(text);
    }
}

impl DataReaderListener<Numbered> for PassesOn {
    fn on_data_available(&self, reader: &DataReader<Numbered>) {
        self.say("data");
        reader.subscriber().notify_datareaders();
        // What is left unread is reported again with whatever comes next.
        reader.take(10);
        self.say("end of data");
    }
}

impl SubscriberListener for PassesOn {
    fn on_data_on_readers(&self, subscriber: &Subscriber) {
        self.say("readers");
        subscriber.notify_datareaders();
        self.say("end of readers");
    }
}

#[test]
fn a_listener_that_notifies_the_readers_itself_is_not_called_again_for_the_same_samples() {
    let world = World::new();
    let (here, there) = (world.participant(), world.participant());
    let (says, said) = channel();
    let listener = || Arc::new(PassesOn(Mutex::new(says.clone())));
    let reader: DataReader<Numbered> = world.reader(&here, lossless_reader());
    reader.set_listener(Some(listener()));
    let writer = world.writer(&there, lossless_writer());
    matched(&[&writer], &[&reader]);
    let next = || said.recv_timeout(DEADLINE).unwrap();
    writer.write(&Numbered::new(0, 0)).unwrap();
    assert_eq!([next(), next()], ["data", "end of data"]);
    reader.subscriber().set_listener(Some(listener()), StatusMask::DATA_ON_READERS);
    writer.write(&Numbered::new(0, 1)).unwrap();
    assert_eq!([next(), next(), next(), next()], ["readers", "data", "end of data", "end of readers"]);
}

/// Drops what it holds in a call.
struct Drops(Mutex<Option<(DomainParticipant, DataReader<Numbered>)>>);

impl DataReaderListener<Numbered> for Drops {
    fn on_data_available(&self, _: &DataReader<Numbered>) {
        let last = self.0.lock().unwrap().take();
        drop(last);
    }
}

#[test]
fn a_listener_that_is_called_by_notify_datareaders_may_drop_the_last_handles() {
    let world = World::new();
    let (here, there) = (world.participant(), world.participant());
    let reader: DataReader<Numbered> = world.reader(&here, lossless_reader());
    let subscriber = reader.subscriber();
    let writer = world.writer(&there, lossless_writer());
    matched(&[&writer], &[&reader]);
    writer.write(&Numbered::new(0, 0)).unwrap();
    reader.wait_for_data(DEADLINE).unwrap();
    reader.set_listener(Some(Arc::new(Drops(Mutex::new(Some((here, reader.clone())))))));
    drop(reader);
    subscriber.notify_datareaders();
    assert!(subscriber.datareaders(States::ANY).is_empty());
}
