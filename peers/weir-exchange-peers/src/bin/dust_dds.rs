//! dust_dds as the other side. Arguments: the domain and the interface.

use std::collections::HashMap;
use std::time::Duration;

use dust_dds::domain::domain_participant::DomainParticipant;
use dust_dds::domain::domain_participant_factory::DomainParticipantFactory;
use dust_dds::infrastructure::error::DdsError;
use dust_dds::infrastructure::instance::InstanceHandle;
use dust_dds::infrastructure::listener::NO_LISTENER;
use dust_dds::infrastructure::qos::{DataReaderQos, DataWriterQos, QosKind};
use dust_dds::infrastructure::qos_policy::HistoryQosPolicyKind::{KeepAll, KeepLast};
use dust_dds::infrastructure::qos_policy::ReliabilityQosPolicyKind::{BestEffort, Reliable};
use dust_dds::infrastructure::qos_policy::{
    DurabilityQosPolicy, DurabilityQosPolicyKind, HistoryQosPolicy, ReliabilityQosPolicy,
};
use dust_dds::infrastructure::sample_info::{
    ANY_INSTANCE_STATE, ANY_SAMPLE_STATE, ANY_VIEW_STATE, InstanceStateKind,
};
use dust_dds::infrastructure::status::NO_STATUS;
use dust_dds::infrastructure::time::DurationKind;
use dust_dds::infrastructure::type_support::DdsType;
use dust_dds::publication::data_writer::DataWriter;
use dust_dds::subscription::data_reader::DataReader;
use weir_exchange_peers::{Engine, Outcome, Qos, Shape, Taken, run};

#[derive(Debug, DdsType)]
#[dust_dds(extensibility = "appendable")]
struct ShapeType {
    #[dust_dds(key)]
    color: String,
    x: i32,
    y: i32,
    shapesize: i32,
    additional_payload_size: Vec<u8>,
}

impl From<Shape> for ShapeType {
    fn from(it: Shape) -> Self {
        let Shape { color, x, y, shapesize, additional_payload_size } = it;
        Self { color, x, y, shapesize, additional_payload_size }
    }
}

impl From<ShapeType> for Shape {
    fn from(it: ShapeType) -> Self {
        let ShapeType { color, x, y, shapesize, additional_payload_size } = it;
        Self { color, x, y, shapesize, additional_payload_size }
    }
}

struct Dust {
    participant: DomainParticipant,
    writer: Option<DataWriter<ShapeType>>,
    reader: Option<DataReader<ShapeType>>,
    colors: HashMap<InstanceHandle, String>,
}

fn failed(error: DdsError) -> String {
    format!("{error:?}")
}

fn durability(qos: Qos) -> DurabilityQosPolicy {
    let kind = if qos.is_transient_local {
        DurabilityQosPolicyKind::TransientLocal
    } else {
        DurabilityQosPolicyKind::Volatile
    };
    DurabilityQosPolicy { kind }
}

fn reliability(qos: Qos) -> ReliabilityQosPolicy {
    let max_blocking_time = DurationKind::Finite(Duration::from_secs(60).into());
    ReliabilityQosPolicy { kind: if qos.is_reliable { Reliable } else { BestEffort }, max_blocking_time }
}

fn history(qos: Qos) -> HistoryQosPolicy {
    HistoryQosPolicy { kind: qos.depth.map_or(KeepAll, KeepLast) }
}

impl Dust {
    fn topic(&self, name: &str) -> Outcome<dust_dds::topic_definition::topic::Topic> {
        let made = self.participant.create_topic::<ShapeType>(
            name,
            "ShapeType",
            QosKind::Default,
            NO_LISTENER,
            NO_STATUS,
        );
        Ok(made.map_err(failed)?)
    }
}

impl Engine for Dust {
    fn writer(&mut self, topic: &str, qos: Qos) -> Outcome<()> {
        let topic = self.topic(topic)?;
        let publisher =
            self.participant.create_publisher(QosKind::Default, NO_LISTENER, NO_STATUS).map_err(failed)?;
        let qos = DataWriterQos {
            durability: durability(qos),
            reliability: reliability(qos),
            history: history(qos),
            ..DataWriterQos::default()
        };
        let made = publisher.create_datawriter(&topic, QosKind::Specific(qos), NO_LISTENER, NO_STATUS);
        self.writer = Some(made.map_err(failed)?);
        Ok(())
    }

    fn reader(&mut self, topic: &str, qos: Qos) -> Outcome<()> {
        let topic = self.topic(topic)?;
        let subscriber =
            self.participant.create_subscriber(QosKind::Default, NO_LISTENER, NO_STATUS).map_err(failed)?;
        let qos = DataReaderQos {
            durability: durability(qos),
            reliability: reliability(qos),
            history: history(qos),
            ..DataReaderQos::default()
        };
        let made = subscriber.create_datareader(&topic, QosKind::Specific(qos), NO_LISTENER, NO_STATUS);
        self.reader = Some(made.map_err(failed)?);
        Ok(())
    }

    fn delete(&mut self) {
        (self.writer, self.reader) = (None, None);
        // What cannot be deleted ends with the process.
        let _ = self.participant.delete_contained_entities();
    }

    fn matched(&mut self) -> Outcome<u32> {
        let count = match (&self.writer, &self.reader) {
            (Some(writer), _) => writer.get_matched_subscriptions().map_err(failed)?.len(),
            (_, Some(reader)) => reader.get_matched_publications().map_err(failed)?.len(),
            _ => 0,
        };
        Ok(u32::try_from(count)?)
    }

    fn incompatible(&mut self) -> Outcome<Option<i32>> {
        // Its functions for this status are not implemented, and panic.
        Err("dust_dds does not report incompatible QoS".into())
    }

    fn write(&mut self, shape: Shape) -> Outcome<()> {
        let writer = self.writer.as_ref().ok_or("no writer")?;
        Ok(writer.write(shape.into(), None).map_err(failed)?)
    }

    fn dispose(&mut self, shape: Shape) -> Outcome<()> {
        let writer = self.writer.as_ref().ok_or("no writer")?;
        Ok(writer.dispose(shape.into(), None).map_err(failed)?)
    }

    fn acknowledged(&mut self, limit: Duration) -> Outcome<()> {
        let writer = self.writer.as_ref().ok_or("no writer")?;
        Ok(writer.wait_for_acknowledgments(limit.into()).map_err(failed)?)
    }

    fn take(&mut self) -> Outcome<Option<Taken>> {
        let reader = self.reader.as_ref().ok_or("no reader")?;
        let mut samples = match reader.take(1, ANY_SAMPLE_STATE, ANY_VIEW_STATE, ANY_INSTANCE_STATE) {
            Ok(samples) => samples,
            Err(DdsError::NoData) => return Ok(None),
            Err(error) => return Err(failed(error).into()),
        };
        let Some(sample) = samples.pop() else { return Ok(None) };
        let handle = sample.sample_info.instance_handle;
        if let Some(shape) = sample.data.filter(|_| sample.sample_info.valid_data) {
            self.colors.insert(handle, shape.color.clone());
            return Ok(Some(Taken::Shape(shape.into())));
        }
        let is_disposed = sample.sample_info.instance_state == InstanceStateKind::NotAliveDisposed;
        Ok(is_disposed.then(|| Taken::Disposed(self.colors.get(&handle).cloned())))
    }
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let domain = arguments.next().ok_or("usage: dust_dds DOMAIN INTERFACE")?.parse()?;
    let factory = DomainParticipantFactory::get_instance();
    factory.get_mut_transport().set_interface_name(arguments.next());
    let participant =
        factory.create_participant(domain, QosKind::Default, NO_LISTENER, NO_STATUS).map_err(failed)?;
    let dust = Dust { participant, writer: None, reader: None, colors: HashMap::new() };
    run(dust)?;
    Ok(())
}
