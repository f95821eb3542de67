//! A node of a workload in another engine.

use weir_peer_api::{EndpointOptions, EndpointReader, EndpointWriter, Participant, Written};
use weir_results::Reliability;

use super::WRITE_PATIENCE;
use crate::endpoint::{EndpointError, OnArrival, TopicReader, TopicSetup, TopicWriter, WorkloadNode};
use crate::payload::{HEADER_BYTES, SampleHeader};

pub(super) struct PeerNode {
    pub(super) participant: Box<dyn Participant>,
}

impl WorkloadNode for PeerNode {
    fn open_writer(&mut self, topic: &TopicSetup) -> Result<Box<dyn TopicWriter>, EndpointError> {
        let options = options(topic);
        let writer = self.participant.create_writer(&options)?;
        Ok(Box::new(Writer { writer, payload: vec![0; options.payload_bytes] }))
    }

    fn open_reader(
        &mut self,
        topic: &TopicSetup,
        on_sample: OnArrival,
    ) -> Result<Box<dyn TopicReader>, EndpointError> {
        Ok(Box::new(Reader(self.participant.create_reader(&options(topic), on_sample)?)))
    }
}

fn options(topic: &TopicSetup) -> EndpointOptions {
    EndpointOptions {
        topic: topic.name.clone(),
        is_reliable: topic.reliability == Reliability::Reliable,
        is_keyed: topic.instances > 0,
        instances: topic.instances,
        keep_last: topic.keep_last,
        payload_bytes: topic.size_bytes.saturating_sub(HEADER_BYTES),
        max_blocking_time: WRITE_PATIENCE,
    }
}

struct Writer {
    writer: Box<dyn EndpointWriter>,
    payload: Vec<u8>,
}

impl TopicWriter for Writer {
    fn write(&mut self, header: &SampleHeader) -> Result<bool, EndpointError> {
        Ok(self.writer.write(header, &self.payload)? == Written::Taken)
    }

    fn matched(&self) -> u32 {
        self.writer.matched()
    }
}

struct Reader(Box<dyn EndpointReader>);

impl TopicReader for Reader {
    fn matched(&self) -> u32 {
        self.0.matched()
    }
}
