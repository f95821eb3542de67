//! RustDDS as the other side. Arguments: the domain and the interface's address.

use std::net::Ipv4Addr;
use std::time::Duration;

use rustdds::dds::qos::QosPolicyId;
use rustdds::dds::statusevents::{DataReaderStatus, DataWriterStatus, StatusEvented as _};
use rustdds::policy::{Durability, History, Reliability, ResourceLimits};
use rustdds::with_key::{DataReader, DataWriter, Sample};
use rustdds::{
    DomainParticipant, DomainParticipantBuilder, Keyed, QosPolicies, QosPolicyBuilder, ReadCondition, Topic,
    TopicKind,
};
use serde::{Deserialize, Serialize};
use weir_exchange_peers::{Engine, Outcome, Qos, Shape, Taken, run};

#[derive(Debug, Clone, Serialize, Deserialize)]
struct ShapeType {
    color: String,
    x: i32,
    y: i32,
    shapesize: i32,
    additional_payload_size: Vec<u8>,
}

impl Keyed for ShapeType {
    type K = String;

    fn key(&self) -> String {
        self.color.clone()
    }
}

struct Rust {
    participant: DomainParticipant,
    writer: Option<DataWriter<ShapeType>>,
    reader: Option<DataReader<ShapeType>>,
    matched: i32,
    incompatible: Option<i32>,
}

fn policies(qos: Qos) -> QosPolicies {
    let limits = ResourceLimits { max_samples: 20_000, max_instances: 64, max_samples_per_instance: 20_000 };
    let max_blocking_time = rustdds::Duration::from_secs(60);
    let reliability =
        if qos.is_reliable { Reliability::Reliable { max_blocking_time } } else { Reliability::BestEffort };
    let durability = if qos.is_transient_local { Durability::TransientLocal } else { Durability::Volatile };
    let history =
        qos.depth.map_or(History::KeepAll, |depth| History::KeepLast { depth: depth.cast_signed() });
    let builder = QosPolicyBuilder::new().reliability(reliability).durability(durability).history(history);
    builder.resource_limits(limits).build()
}

/// The policy's number in DDS 1.4, of those that are tested.
fn policy_number(policy: &QosPolicyId) -> Option<i32> {
    match policy {
        QosPolicyId::Durability => Some(2),
        QosPolicyId::Reliability => Some(11),
        _ => None,
    }
}

impl Rust {
    fn topic(&self, name: &str, qos: &QosPolicies) -> Outcome<Topic> {
        Ok(self.participant.create_topic(name.to_owned(), "ShapeType".to_owned(), qos, TopicKind::WithKey)?)
    }

    /// Reads the statuses that have changed.
    fn look(&mut self) {
        while let Some(status) = self.writer.as_ref().and_then(|it| it.try_recv_status()) {
            match status {
                DataWriterStatus::PublicationMatched { current, .. } => self.matched = current.count(),
                DataWriterStatus::OfferedIncompatibleQos { last_policy_id, .. } => {
                    self.incompatible = policy_number(&last_policy_id);
                }
                _ => {}
            }
        }
        while let Some(status) = self.reader.as_ref().and_then(|it| it.try_recv_status()) {
            match status {
                DataReaderStatus::SubscriptionMatched { current, .. } => self.matched = current.count(),
                DataReaderStatus::RequestedIncompatibleQos { last_policy_id, .. } => {
                    self.incompatible = policy_number(&last_policy_id);
                }
                _ => {}
            }
        }
    }
}

impl Engine for Rust {
    fn writer(&mut self, topic: &str, qos: Qos) -> Outcome<()> {
        let qos = policies(qos);
        let topic = self.topic(topic, &qos)?;
        let publisher = self.participant.create_publisher(&qos)?;
        self.writer = Some(publisher.create_datawriter_cdr(&topic, None)?);
        Ok(())
    }

    fn reader(&mut self, topic: &str, qos: Qos) -> Outcome<()> {
        let qos = policies(qos);
        let topic = self.topic(topic, &qos)?;
        let subscriber = self.participant.create_subscriber(&qos)?;
        self.reader = Some(subscriber.create_datareader_cdr(&topic, None)?);
        Ok(())
    }

    fn delete(&mut self) {
        (self.writer, self.reader, self.matched) = (None, None, 0);
    }

    fn matched(&mut self) -> Outcome<u32> {
        self.look();
        Ok(u32::try_from(self.matched)?)
    }

    fn incompatible(&mut self) -> Outcome<Option<i32>> {
        self.look();
        Ok(self.incompatible)
    }

    fn write(&mut self, shape: Shape) -> Outcome<()> {
        let Shape { color, x, y, shapesize, additional_payload_size } = shape;
        let shape = ShapeType { color, x, y, shapesize, additional_payload_size };
        let writer = self.writer.as_ref().ok_or("no writer")?;
        Ok(writer.write(shape, None).map_err(|error| format!("{error:?}"))?)
    }

    fn dispose(&mut self, shape: Shape) -> Outcome<()> {
        let writer = self.writer.as_ref().ok_or("no writer")?;
        Ok(writer.dispose(&shape.color, None).map_err(|error| format!("{error:?}"))?)
    }

    fn acknowledged(&mut self, limit: Duration) -> Outcome<()> {
        let writer = self.writer.as_ref().ok_or("no writer")?;
        match writer.wait_for_acknowledgments(limit) {
            Ok(true) => Ok(()),
            other => Err(format!("not acknowledged: {other:?}").into()),
        }
    }

    fn take(&mut self) -> Outcome<Option<Taken>> {
        let reader = self.reader.as_mut().ok_or("no reader")?;
        let mut samples = reader.take(1, ReadCondition::any()).map_err(|error| format!("{error:?}"))?;
        Ok(samples.pop().map(|sample| match sample.into_value() {
            Sample::Value(ShapeType { color, x, y, shapesize, additional_payload_size }) => {
                Taken::Shape(Shape { color, x, y, shapesize, additional_payload_size })
            }
            Sample::Dispose(color) => Taken::Disposed(Some(color)),
        }))
    }
}

fn main() -> Outcome<()> {
    const USAGE: &str = "usage: rustdds DOMAIN ADDRESS";
    let mut arguments = std::env::args().skip(1);
    let domain = arguments.next().ok_or(USAGE)?.parse()?;
    let address: Ipv4Addr = arguments.next().ok_or(USAGE)?.parse()?;
    let participant = DomainParticipantBuilder::new(domain).with_only_networks([address]).build()?;
    run(Rust { participant, writer: None, reader: None, matched: 0, incompatible: None })?;
    Ok(())
}
