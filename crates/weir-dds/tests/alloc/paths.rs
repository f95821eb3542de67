//! After warm-up, no sample causes an allocation in any thread.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use weir_dds::{
    BatchPolicy, Bytes, Coalescing, DataReader, DataReaderListener, DataReaderQos, DataWriter, DataWriterQos,
    DdsType, DomainParticipant, ParticipantSettings, PublishMode, Sample, SampleSeq,
};

use crate::support::{
    DEADLINE, Keyed, Named, Unkeyed, allocated_bytes, allocations, alone, domain_id, endpoints, participant,
};

const WARM_UP: u64 = 20_000;
const COUNT: u64 = 20_000;
/// Fewer, because they are large.
const LOANS: u64 = 2_000;
/// Allowance for queues that grow to a new peak on a busy machine, and for the test harness. It is one allocation per
/// hundred samples. The cores alone, in weir-rtps, have no allowance.
const ALLOWED: usize = 200;
/// The same for what depends on time and not on samples: announcements, and on a machine that stops this process now
/// and then, the questions to a reader that did not answer meanwhile (about 4 allocations in each of two participants,
/// after a pause of at least 50 ms).
const ALLOWED_PER_SECOND: usize = 100;

/// The allocations since it was made.
struct Count {
    allocations: usize,
    bytes: usize,
    start: Instant,
}

impl Count {
    fn start() -> Self {
        Self { allocations: allocations(), bytes: allocated_bytes(), start: Instant::now() }
    }

    fn allocations(&self) -> usize {
        allocations() - self.allocations
    }

    fn bytes(&self) -> usize {
        allocated_bytes() - self.bytes
    }

    /// What is allowed for other reasons than samples.
    fn allowed(&self) -> usize {
        ALLOWED + self.start.elapsed().as_secs() as usize * ALLOWED_PER_SECOND
    }

    fn check(&self, what: &str) {
        let (count, allowed) = (self.allocations(), self.allowed());
        assert!(count <= allowed, "{what}: {count} allocations for {COUNT} samples, of {allowed} allowed");
    }
}

fn reliable() -> (DataWriterQos, DataReaderQos) {
    let writer = DataWriterQos::default().reliable().keep_all().max_blocking_time(DEADLINE);
    (writer, DataReaderQos::default().reliable().keep_all())
}

fn best_effort() -> (DataWriterQos, DataReaderQos) {
    (DataWriterQos::default().best_effort().keep_all(), DataReaderQos::default().best_effort().keep_all())
}

/// Writes bursts and takes them, on one thread; `change` produces the next sample.
fn bursts<T: DdsType>(
    what: &str,
    qos: (DataWriterQos, DataReaderQos),
    sample: T,
    change: impl FnMut(&mut T, u64),
) {
    let _alone = alone();
    let participants = [participant(), participant()];
    bursts_between(participants.each_ref(), what, qos, sample, change);
}

fn bursts_between<T: DdsType>(
    [here, there]: [&DomainParticipant; 2],
    what: &str,
    qos: (DataWriterQos, DataReaderQos),
    mut sample: T,
    mut change: impl FnMut(&mut T, u64),
) {
    const BURST: u64 = 50;
    let (writer, reader) = endpoints(what, (here, qos.0), (there, qos.1));
    let mut taken = SampleSeq::new();
    let mut exchange = |samples: u64| {
        for burst in 0..samples / BURST {
            for number in 0..BURST {
                change(&mut sample, burst * BURST + number);
                writer.write(&sample).unwrap();
            }
            let mut missing = BURST;
            while missing > 0 {
                assert!(reader.wait_for_data(DEADLINE).is_ok(), "{missing} are missing");
                missing -= reader.take_into(&mut taken, usize::MAX) as u64;
            }
        }
    };
    exchange(WARM_UP);
    let count = Count::start();
    exchange(COUNT);
    count.check(what);
}

#[test]
fn polls_allocate_nothing() {
    let _alone = alone();
    let settings = || ParticipantSettings::default().interface("lo").without_threads();
    let participant = DomainParticipant::new(domain_id(), settings()).unwrap();
    bursts_between([&participant; 2], "polled", reliable(), Unkeyed::default(), unkeyed);
    let asynchronous = reliable().0.publish_mode(PublishMode::Asynchronous);
    bursts_between([&participant; 2], "polled", (asynchronous, reliable().1), Unkeyed::default(), unkeyed);
}

fn unkeyed(sample: &mut Unkeyed, number: u64) {
    sample.number = number;
    sample.bytes.resize(1 + number as usize % 200, 7);
}

fn keyed(sample: &mut Keyed, number: u64) {
    sample.id = number as u32 % 1_000;
    sample.number = number;
    sample.bytes.resize(1 + number as usize % 200, 7);
}

fn named(sample: &mut Named, number: u64) {
    use std::fmt::Write;
    sample.name.clear();
    write!(sample.name, "instance {}", number % 1_000).unwrap();
    sample.number = number;
}

#[test]
fn reliable_bursts() {
    bursts("reliable bursts", reliable(), Unkeyed::default(), unkeyed);
}

#[test]
fn best_effort_bursts() {
    bursts("best-effort bursts", best_effort(), Unkeyed::default(), unkeyed);
}

#[test]
fn reliable_bursts_that_are_not_coalesced() {
    let (writer, reader) = reliable();
    let qos = (writer.coalescing(Coalescing::Off), reader);
    bursts("reliable bursts without coalescing", qos, Unkeyed::default(), unkeyed);
}

#[test]
fn bursts_that_another_thread_sends() {
    let max_delay = std::time::Duration::from_micros(500);
    let policy = BatchPolicy::new(8192, 1000, max_delay);
    for (what, (writer, reader)) in [("reliable", reliable()), ("best effort", best_effort())] {
        let writer = writer.publish_mode(PublishMode::Asynchronous);
        bursts(what, (writer.clone(), reader.clone()), Unkeyed::default(), unkeyed);
        bursts(what, (writer.batch(policy), reader), Unkeyed::default(), unkeyed);
    }
}

#[test]
fn reliable_bursts_of_1000_instances() {
    bursts("reliable keyed bursts", reliable(), Keyed::default(), keyed);
}

#[test]
fn best_effort_bursts_of_1000_instances() {
    bursts("best-effort keyed bursts", best_effort(), Keyed::default(), keyed);
}

#[test]
fn bursts_of_1000_instances_of_which_the_last_sample_is_kept() {
    let (writer, reader) = reliable();
    let qos = (writer.keep_last(1), reader.keep_last(1));
    bursts("keyed bursts that keep the last", qos, Keyed::default(), keyed);
}

#[test]
fn reliable_bursts_of_1000_instances_with_names() {
    bursts("reliable bursts with names", reliable(), Named::default(), named);
}

#[test]
fn reliable_bursts_in_batches() {
    let (writer, reader) = reliable();
    let max_delay = std::time::Duration::from_micros(500);
    let policy = BatchPolicy::new(8192, 1000, max_delay);
    bursts("reliable batches", (writer.batch(policy), reader), Unkeyed::default(), unkeyed);
}

#[test]
fn reliable_bursts_of_5000_instances() {
    let mut sample = Keyed::default();
    sample.bytes.resize(50, 7);
    bursts("reliable bursts of many instances", reliable(), sample, |sample, number| {
        sample.id = number as u32 % 5_000;
        sample.number = number;
    });
}

#[test]
fn reliable_bursts_for_three_readers() {
    const BURST: u64 = 50;
    let _alone = alone();
    let here = participant();
    let others = [participant(), participant(), participant()];
    let name = format!("three readers of process {}", std::process::id());
    let topic = here.create_topic::<Unkeyed>(&name).unwrap();
    let writer = here.create_publisher().unwrap().create_datawriter(&topic, reliable().0).unwrap();
    let readers = others.each_ref().map(|other| {
        let topic = other.create_topic::<Unkeyed>(&name).unwrap();
        other.create_subscriber().unwrap().create_datareader(&topic, reliable().1).unwrap()
    });
    writer.wait_for_subscriptions(3, DEADLINE).unwrap();
    readers.iter().for_each(|reader| reader.wait_for_publications(1, DEADLINE).unwrap());
    let (mut sample, mut taken) = (Unkeyed::default(), SampleSeq::new());
    let mut exchange = |samples: u64| {
        for burst in 0..samples / BURST {
            for number in 0..BURST {
                unkeyed(&mut sample, burst * BURST + number);
                writer.write(&sample).unwrap();
            }
            for reader in &readers {
                let mut missing = BURST;
                while missing > 0 {
                    assert!(reader.wait_for_data(DEADLINE).is_ok(), "{missing} are missing");
                    missing -= reader.take_into(&mut taken, usize::MAX) as u64;
                }
            }
        }
    };
    exchange(WARM_UP);
    let count = Count::start();
    exchange(COUNT);
    count.check("three readers");
}

/// The memory of large samples is reused at both ends.
#[test]
fn reliable_samples_of_a_megabyte() {
    megabytes(reliable());
}

#[test]
fn reliable_samples_of_a_megabyte_that_another_thread_sends() {
    let (writer, reader) = reliable();
    megabytes((writer.publish_mode(PublishMode::Asynchronous), reader));
}

fn megabytes((writer, reader): (DataWriterQos, DataReaderQos)) {
    let _alone = alone();
    let (here, there) = (participant(), participant());
    let (writer, reader) = endpoints::<Unkeyed>("megabytes", (&here, writer), (&there, reader));
    let mut sample = Unkeyed { number: 0, bytes: vec![7; 1 << 20] };
    let mut taken = SampleSeq::new();
    let mut exchange = |samples: u64| {
        for number in 0..samples {
            sample.number = number;
            writer.write(&sample).unwrap();
            reader.wait_for_data(DEADLINE).unwrap();
            assert_eq!(reader.take_into(&mut taken, usize::MAX), 1);
        }
    };
    exchange(100);
    let count = Count::start();
    exchange(500);
    let (allowed, allocations, bytes) = (count.allowed(), count.allocations(), count.bytes());
    assert!(
        allocations <= allowed && bytes <= 4 << 20,
        "{allocations} allocations of {bytes} bytes for 500 samples"
    );
}

#[test]
fn a_reliable_flood_that_another_thread_takes() {
    flood(reliable());
}

#[test]
fn a_reliable_flood_that_one_thread_sends_and_another_takes() {
    let (writer, reader) = reliable();
    flood((writer.publish_mode(PublishMode::Asynchronous), reader));
}

fn flood(qos: (DataWriterQos, DataReaderQos)) {
    let _alone = alone();
    let (here, there) = (participant(), participant());
    let (writer, reader) = endpoints::<Unkeyed>("flood", (&here, qos.0), (&there, qos.1));
    let (taken, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut samples = SampleSeq::new();
            while !is_over.load(Ordering::SeqCst) {
                let _ = reader.wait_for_data(std::time::Duration::from_millis(20));
                taken.fetch_add(reader.take_into(&mut samples, 100) as u64, Ordering::SeqCst);
            }
        });
        let mut sample = Unkeyed { number: 0, bytes: vec![1; 100] };
        let mut flood = |count: u64| {
            for _ in 0..count {
                sample.number += 1;
                writer.write(&sample).unwrap();
            }
            writer.wait_for_acknowledgments(DEADLINE).unwrap();
            while taken.load(Ordering::SeqCst) < sample.number {
                std::thread::yield_now();
            }
        };
        flood(5 * WARM_UP);
        let count = Count::start();
        flood(COUNT);
        is_over.store(true, Ordering::SeqCst);
        count.check("flood");
    });
}

/// Sends every sample back.
struct Echo(DataWriter<Unkeyed>);

impl DataReaderListener<Unkeyed> for Echo {
    fn on_data_available(&self, reader: &DataReader<Unkeyed>) {
        // Kept per thread: a local value would cost an allocation per call.
        thread_local! {
            static SAMPLE: std::cell::RefCell<Sample<Unkeyed>> = std::cell::RefCell::default();
        }
        SAMPLE.with_borrow_mut(|sample| {
            while reader.take_next_sample(sample) {
                let _ = sample.data().map(|ball| self.0.write(ball));
            }
        });
    }
}

fn ping_pong(what: &str, qos: fn() -> (DataWriterQos, DataReaderQos)) {
    ping_pong_of(32, what, qos);
}

/// The same with `len` bytes.
fn ping_pong_of(len: usize, what: &str, qos: fn() -> (DataWriterQos, DataReaderQos)) {
    let _alone = alone();
    let (near, far) = (participant(), participant());
    let (back, reader) = endpoints::<Unkeyed>(&format!("{what} back"), (&far, qos().0), (&near, qos().1));
    let (writer, far_reader) =
        endpoints::<Unkeyed>(&format!("{what} there"), (&near, qos().0), (&far, qos().1));
    far_reader.set_listener(Some(std::sync::Arc::new(Echo(back))));
    let mut ball = Sample::default();
    let mut play = |count: u64| {
        let mut sample = Unkeyed { number: 0, bytes: vec![1; len] };
        for number in 0..count {
            sample.number = number;
            writer.write(&sample).unwrap();
            reader.wait_for_data(DEADLINE).unwrap();
            assert!(reader.take_next_sample(&mut ball));
            assert_eq!(ball.data().unwrap().number, number);
        }
    };
    play(WARM_UP / 4);
    let count = Count::start();
    play(COUNT);
    count.check(what);
}

#[test]
fn reliable_ping_pong_with_a_listener() {
    ping_pong("reliable ping-pong", reliable);
}

#[test]
fn best_effort_ping_pong_with_a_listener() {
    ping_pong("best-effort ping-pong", best_effort);
}

#[test]
fn ping_pong_of_samples_that_stay_where_they_were_received() {
    ping_pong_of(8_000, "large reliable ping-pong", reliable);
}

/// [`Unkeyed`], whose bytes stay in the receive memory.
#[derive(DdsType, Default, Debug)]
#[dds(extensibility = "final", name = "Shared")]
struct Shared {
    number: u64,
    bytes: Bytes,
}

#[test]
fn loans_and_shared_bytes_cost_handles_but_no_memory_for_payloads() {
    // The handle of the bytes; for fragmented samples also the bitmap of fragments.
    for (len, handles) in [(50_000, 1), (200_000, 2)] {
        let _alone = alone();
        let (here, there) = (participant(), participant());
        let qos = reliable();
        let (writer, reader): (DataWriter<Shared>, DataReader<Shared>) =
            endpoints("loans", (&here, qos.0), (&there, qos.1));
        let mut sample = Sample::<Shared>::default();
        let mut exchange = |samples: u64| {
            for number in 0..samples {
                let mut loan = writer.loan(len).unwrap();
                loan.sample.number = number;
                loan[len - 1] = number as u8;
                loan.write().unwrap();
                assert!(reader.wait_for_data(DEADLINE).is_ok(), "{number} is missing");
                assert!(reader.take_next_sample(&mut sample));
                let got = sample.data().unwrap();
                assert_eq!((got.number, got.bytes[len - 1]), (number, number as u8));
                // Waits until its memory is free: on a busy machine more and more samples would be
                // in flight.
                writer.wait_for_acknowledgments(DEADLINE).unwrap();
            }
        };
        exchange(200);
        let count = Count::start();
        exchange(LOANS);
        let (allowed, allocations, bytes) = (count.allowed(), count.allocations(), count.bytes());
        assert!(
            allocations <= LOANS as usize * handles + allowed,
            "{len}: {allocations} allocations for {LOANS} samples"
        );
        assert!(bytes <= LOANS as usize * len / 20, "{len}: {bytes} bytes for {LOANS} samples");
    }
}
