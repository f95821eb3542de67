//! The complete engine on the loopback interface: two participants in one process.
//!
//! For writing, the same thread takes the samples at the other participant. Which thread receives
//! then depends on which one waits, so counts at the receiving end would vary between runs. For
//! receiving, no thread waits: a listener takes the samples on the engine's thread, the only one
//! that receives.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use weir_dds::{
    BatchPolicy, Coalescing, DataReader, DataReaderListener, DataReaderQos, DataWriter, DataWriterQos,
    DomainParticipant, ParticipantSettings, Sample,
};

use crate::codec::TestData;
use crate::measured;

const PATIENCE: Duration = Duration::from_secs(60);
const WARM_UP: u32 = 1_000;
const SAMPLES: u32 = 4_000;

/// `write` of one sample, until the system call returns.
pub(crate) fn write() -> u32 {
    let ends = Ends::new(qos().coalescing(Coalescing::Off));
    ends.exchange(WARM_UP, |writer, sample| writer.write(sample).unwrap(), take);
    ends.exchange(SAMPLES, |writer, sample| measured(|| writer.write(sample).unwrap()), take);
    SAMPLES
}

/// The same with a batch of 100 samples that is sent at once.
pub(crate) fn write_batch() -> u32 {
    const BATCH: u32 = 100;
    let policy = BatchPolicy::new(65_000, BATCH, PATIENCE);
    let ends = Ends::new(qos().batch(policy));
    let write = |writer: &DataWriter<TestData>, sample: &TestData| {
        (0..BATCH).for_each(|_| writer.write(sample).unwrap());
        writer.flush();
    };
    let take = |reader: &DataReader<TestData>, value: &mut Sample<TestData>| {
        let mut missing = BATCH;
        while missing > 0 {
            while reader.take_next_sample(value) {
                missing -= 1;
            }
            if missing > 0 {
                reader.wait_for_data(PATIENCE).unwrap();
            }
        }
    };
    ends.exchange(WARM_UP / 10, write, take);
    ends.exchange(SAMPLES / 10, |writer, sample| measured(|| write(writer, sample)), take);
    SAMPLES / 10 * BATCH
}

/// From the receive call until a listener has the sample.
///
/// Counts the call without the kernel, parsing, insertion, listener and decoding. All samples are
/// counted, including the first ones, which warm memory up.
pub(crate) fn receive(size_bytes: usize) -> u32 {
    let taken = Arc::new(AtomicU32::new(0));
    let listener = Taker { value: Mutex::new(Sample::default()), taken: Arc::clone(&taken) };
    let ends = Ends::new(qos().coalescing(Coalescing::Off));
    ends.reader.set_listener(Some(Arc::new(listener)));
    let mut sample = TestData::of(size_bytes);
    for number in 0..SAMPLES {
        sample.seq_num = number;
        ends.writer.write(&sample).unwrap();
        while taken.load(Ordering::Acquire) <= number {
            std::thread::yield_now();
        }
    }
    SAMPLES
}

/// Takes the available samples.
struct Taker {
    value: Mutex<Sample<TestData>>,
    taken: Arc<AtomicU32>,
}

impl DataReaderListener<TestData> for Taker {
    fn on_data_available(&self, reader: &DataReader<TestData>) {
        let mut value = self.value.lock();
        while reader.take_next_sample(&mut value) && value.info.valid_data {
            self.taken.fetch_add(1, Ordering::Release);
        }
    }
}

fn qos() -> DataWriterQos {
    DataWriterQos::default().best_effort().keep_all()
}

fn take(reader: &DataReader<TestData>, value: &mut Sample<TestData>) {
    reader.wait_for_data(PATIENCE).unwrap();
    assert!(reader.take_next_sample(value));
}

/// A matched writer and reader, each in its own participant.
struct Ends {
    writer: DataWriter<TestData>,
    reader: DataReader<TestData>,
}

impl Ends {
    fn new(qos: DataWriterQos) -> Self {
        let domain_id = 1 + std::process::id().wrapping_mul(37) % 100;
        let name = format!("instructions of process {}", std::process::id());
        let participant =
            || DomainParticipant::new(domain_id, ParticipantSettings::default().interface("lo")).unwrap();
        let (here, there) = (participant(), participant());
        let topic = here.create_topic(&name).unwrap();
        let writer: DataWriter<TestData> =
            here.create_publisher().unwrap().create_datawriter(&topic, qos).unwrap();
        let (topic, qos) = (there.create_topic(&name).unwrap(), DataReaderQos::default());
        let qos = qos.best_effort().keep_all();
        let reader = there.create_subscriber().unwrap().create_datareader(&topic, qos).unwrap();
        writer.wait_for_subscriptions(1, PATIENCE).unwrap();
        reader.wait_for_publications(1, PATIENCE).unwrap();
        Self { writer, reader }
    }

    fn exchange(
        &self,
        count: u32,
        mut write: impl FnMut(&DataWriter<TestData>, &TestData),
        mut take: impl FnMut(&DataReader<TestData>, &mut Sample<TestData>),
    ) {
        let mut sample = TestData::of(32);
        let mut value = Sample::default();
        for number in 0..count {
            sample.seq_num = number;
            write(&self.writer, &sample);
            take(&self.reader, &mut value);
        }
    }
}
