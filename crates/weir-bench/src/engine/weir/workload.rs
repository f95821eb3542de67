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
        bounded(self.writer.publication_matched_status().current_count)
    }
}

impl<T: Data> TopicReader for DataReader<T> {
    fn matched(&self) -> u32 {
        bounded(self.subscription_matched_status().current_count)
    }
}

fn bounded(matches: u64) -> u32 {
    u32::try_from(matches).unwrap_or(u32::MAX)
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use weir_results::Test;

    use super::*;
    use crate::case::tests::case;
    use crate::engine;

    fn of_engine(name: &str, settings: &[(&str, &str)]) -> CaseSpec {
        let engine = engine::find(name).unwrap();
        let usual = engine.settings().iter().map(|it| (it.name, it.value));
        let settings: BTreeMap<_, _> = usual.chain(settings.iter().copied()).collect();
        case(name, Test::Workload).with(|case| {
            case.settings = settings.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        })
    }

    #[test]
    fn engines_without_threads_refuse_workloads_at_once() {
        for case in [of_engine("weir-small", &[]), of_engine("weir", &[("threads", "no")])] {
            let opened = engine::find(&case.engine).unwrap().open_node(&case);
            let error = opened.err().expect("it is refused");
            assert!(matches!(error, EndpointError::NotSupported { .. }), "{error:?}");
            let expected = "does not support workloads without threads: set threads = \"yes\" in --settings";
            assert_eq!(error.to_string(), format!("{} {expected}", case.engine));
        }
        assert!(
            engine::find("weir-small")
                .unwrap()
                .open_node(&of_engine("weir-small", &[("threads", "yes")]))
                .is_ok()
        );
    }

    #[test]
    fn histories_have_room_for_samples_of_their_own_topic() {
        let node = Node::open(&of_engine("weir", &[("history", "1k")])).unwrap();
        let bytes = |size_bytes: usize, keep_last: Option<u32>| {
            let topic = TopicSetup {
                name: format!("limits_{size_bytes}_{keep_last:?}"),
                size_bytes,
                reliability: Reliability::Reliable,
                keep_last,
                instances: 0,
                writers: 0..1,
                readers: vec![0],
            };
            let case = of_topic(&node.case, &topic);
            let writer = node.writer_of::<TestData>(&case, &topic.name).unwrap();
            let listener = Listener { on_sample: Box::new(|_| ()), sample: Mutex::new(Sample::default()) };
            let reader = node.reader_of::<TestData, _>(&case, &topic.name, Some(listener)).unwrap();
            let of_reader = reader.get_qos().resource_limits.max_bytes;
            assert_eq!(writer.get_qos().resource_limits.max_bytes, of_reader);
            of_reader
        };
        // At least four samples, with the overhead of each.
        assert_eq!(bytes(64, None), Some(1024));
        assert_eq!(bytes(1 << 20, None), Some((4 << 20) + 512));
        assert_eq!(bytes(1 << 20, Some(2)), bytes(64, Some(2)));
    }
}
