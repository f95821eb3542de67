//! The whole engine on the loopback interface: two participants of one process, what one writes is taken from the other by
//! the same thread.
//!
//! Writing only. Which thread receives depends on who waits when, so that the counts of the other end differ from run to
//! run; what it does with datagrams is in `cores`.

use std::time::Duration;

use weir_dds::{
    BatchPolicy, Coalescing, DataReader, DataReaderQos, DataWriter, DataWriterQos, DomainParticipant,
    ParticipantSettings,
};

use crate::codec::TestData;
use crate::measured;

const PATIENCE: Duration = Duration::from_secs(60);
const WARM_UP: u32 = 1_000;
const SAMPLES: u32 = 4_000;

/// `write` of one sample, to the return of the system call.
pub(crate) fn write() -> u32 {
    let ends = Ends::new(qos().coalescing(Coalescing::Off));
    ends.exchange(WARM_UP, |writer, sample| writer.write(sample).unwrap(), take);
    ends.exchange(SAMPLES, |writer, sample| measured(|| writer.write(sample).unwrap()), take);
    SAMPLES
}

/// The same with a batch of 100 samples that leaves at once.
pub(crate) fn write_batch() -> u32 {
    const BATCH: u32 = 100;
    let policy = BatchPolicy { max_bytes: 65_000, max_samples: BATCH, max_delay: PATIENCE };
    let ends = Ends::new(qos().batch(policy));
    let write = |writer: &DataWriter<TestData>, sample: &TestData| {
        (0..BATCH).for_each(|_| writer.write(sample).unwrap());
        writer.flush();
    };
    let take = |reader: &DataReader<TestData>, value: &mut TestData| {
        let mut missing = BATCH;
        while missing > 0 {
            while reader.take_next_sample(value).is_some() {
                missing -= 1;
            }
            if missing > 0 {
                assert!(reader.wait_for_data(PATIENCE));
            }
        }
    };
    ends.exchange(WARM_UP / 10, write, take);
    ends.exchange(SAMPLES / 10, |writer, sample| measured(|| write(writer, sample)), take);
    SAMPLES / 10 * BATCH
}

fn qos() -> DataWriterQos {
    DataWriterQos::default().best_effort().keep_all()
}

fn take(reader: &DataReader<TestData>, value: &mut TestData) {
    assert!(reader.wait_for_data(PATIENCE));
    assert!(reader.take_next_sample(value).is_some());
}

/// A writer and a reader that know each other, each in a participant of its own.
struct Ends {
    writer: DataWriter<TestData>,
    reader: DataReader<TestData>,
}

impl Ends {
    fn new(qos: DataWriterQos) -> Self {
        let domain_id = 1 + std::process::id().wrapping_mul(37) % 100;
        let participant =
            || DomainParticipant::new(domain_id, ParticipantSettings::default().interface("lo")).unwrap();
        let name = format!("instructions of process {}", std::process::id());
        let (here, there) = (participant(), participant());
        let topic = here.create_topic(&name).unwrap();
        let writer = here.create_publisher().create_datawriter(&topic, qos).unwrap();
        let topic = there.create_topic(&name).unwrap();
        let qos = DataReaderQos::default().best_effort().keep_all();
        let reader = there.create_subscriber().create_datareader(&topic, qos).unwrap();
        writer.wait_for_subscriptions(1, PATIENCE).unwrap();
        reader.wait_for_publications(1, PATIENCE).unwrap();
        Self { writer, reader }
    }

    fn exchange(
        &self,
        count: u32,
        mut write: impl FnMut(&DataWriter<TestData>, &TestData),
        mut take: impl FnMut(&DataReader<TestData>, &mut TestData),
    ) {
        let mut sample = TestData::of(32);
        let mut value = TestData::default();
        for number in 0..count {
            sample.seq_num = number;
            write(&self.writer, &sample);
            take(&self.reader, &mut value);
        }
    }
}
