//! A node of a workload: a participant with writers, and readers with listeners.

use parking_lot::Mutex;
use weir_dds::{DataReader, DataReaderListener, DataWriter, Sample};
use weir_results::Reliability;

use super::{Node, in_time};
use crate::case::CaseSpec;
use crate::endpoint::{EndpointError, OnArrival, TopicReader, TopicSetup, TopicWriter, WorkloadNode};
use crate::payload::SampleHeader;
use crate::test_data::{Data, KeyedTestData, SharedKeyedTestData, SharedTestData, TestData};

impl WorkloadNode for Node {
    fn open_writer(&mut self, topic: &TopicSetup) -> Result<Box<dyn TopicWriter>, EndpointError> {
        let (case, name) = (of_topic(&self.case, topic), topic.name.as_str());
        Ok(match (topic.instances > 0, case.loans) {
            (false, false) => Writer::<TestData>::boxed(self.writer_of(&case, name)?, case),
            (true, false) => Writer::<KeyedTestData>::boxed(self.writer_of(&case, name)?, case),
            (false, true) => Writer::<SharedTestData>::boxed(self.writer_of(&case, name)?, case),
            (true, true) => Writer::<SharedKeyedTestData>::boxed(self.writer_of(&case, name)?, case),
        })
    }

    fn open_reader(
        &mut self,
        topic: &TopicSetup,
        on_sample: OnArrival,
    ) -> Result<Box<dyn TopicReader>, EndpointError> {
        let (case, name) = (of_topic(&self.case, topic), topic.name.as_str());
        Ok(match (topic.instances > 0, case.loans) {
            (false, false) => Box::new(self.listen::<TestData>(&case, name, on_sample)?),
            (true, false) => Box::new(self.listen::<KeyedTestData>(&case, name, on_sample)?),
            (false, true) => Box::new(self.listen::<SharedTestData>(&case, name, on_sample)?),
            (true, true) => Box::new(self.listen::<SharedKeyedTestData>(&case, name, on_sample)?),
        })
    }
}

impl Node {
    fn listen<T: Data>(
        &self,
        case: &CaseSpec,
        topic: &str,
        on_sample: OnArrival,
    ) -> Result<DataReader<T>, EndpointError> {
        self.reader_of(case, topic, Some(Listener { on_sample, sample: Mutex::new(Sample::default()) }))
    }
}

/// The case as a single topic has it.
fn of_topic(case: &CaseSpec, topic: &TopicSetup) -> CaseSpec {
    case.clone().with(|case| {
        (case.size_bytes, case.instances) = (topic.size_bytes, topic.instances);
        case.reliability = topic.reliability;
        // A best-effort reader that falls behind keeps what it has room for.
        case.method.keep_last = topic.keep_last;
        debug_assert!(case.reliability != Reliability::None);
    })
}

struct Writer<T> {
    writer: DataWriter<T>,
    case: CaseSpec,
    sample: T,
}

impl<T: Data> Writer<T> {
    fn boxed(writer: DataWriter<T>, case: CaseSpec) -> Box<dyn TopicWriter> {
        Box::new(Self { writer, case, sample: T::default() })
    }
}

impl<T: Data> TopicWriter for Writer<T> {
    fn write(&mut self, header: &SampleHeader) -> Result<bool, EndpointError> {
        in_time(self.sample.write(&self.writer, &self.case, header))
    }

    fn matched(&self) -> u32 {
        self.writer.publication_matched_status().current_count
    }
}

impl<T: Data> TopicReader for DataReader<T> {
    fn matched(&self) -> u32 {
        self.subscription_matched_status().current_count
    }
}

/// Takes samples on the thread that receives, into the same memory again and again.
struct Listener<T> {
    on_sample: OnArrival,
    sample: Mutex<Sample<T>>,
}

impl<T: Data> DataReaderListener<T> for Listener<T> {
    fn on_data_available(&self, reader: &DataReader<T>) {
        let mut sample = self.sample.lock();
        while reader.take_next_sample(&mut sample) {
            if let Some(data) = sample.data_mut() {
                (self.on_sample)(&data.header());
                data.release();
            }
        }
    }
}
