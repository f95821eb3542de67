//! Which policies cannot be changed (DDS 1.4, 2.2.3, column "Changeable").

use weir_rtps::qos::PolicyId;

use super::{DataReaderQos, DataWriterQos};
use crate::error::{DdsError, Result};
use crate::group_qos::{PublisherQos, SubscriberQos};

impl DataWriterQos {
    /// Refuses other values of policies that cannot be changed.
    pub(crate) fn check_change(&self, now: &Self) -> Result<()> {
        let reliability = |qos: &Self| (qos.reliability, qos.max_blocking_time);
        refuse([
            (PolicyId::Durability.name(), self.durability != now.durability),
            (PolicyId::DurabilityService.name(), self.durability_service != now.durability_service),
            (PolicyId::Liveliness.name(), self.liveliness != now.liveliness),
            (PolicyId::Reliability.name(), reliability(self) != reliability(now)),
            (PolicyId::DestinationOrder.name(), self.destination_order != now.destination_order),
            (PolicyId::History.name(), self.history != now.history),
            (PolicyId::ResourceLimits.name(), self.resource_limits != now.resource_limits),
            (PolicyId::Ownership.name(), self.ownership != now.ownership),
            (PolicyId::DataRepresentation.name(), self.representation != now.representation),
            ("coalescing", self.coalescing != now.coalescing),
            ("BATCH", self.batch != now.batch),
            ("PUBLISH_MODE", self.publish_mode != now.publish_mode),
            ("reader_inactivity", self.reader_inactivity != now.reader_inactivity),
            ("multicast", self.multicast != now.multicast),
        ])
    }
}

impl DataReaderQos {
    /// Refuses other values of policies that cannot be changed.
    pub(crate) fn check_change(&self, now: &Self) -> Result<()> {
        refuse([
            (PolicyId::Durability.name(), self.durability != now.durability),
            (PolicyId::Liveliness.name(), self.liveliness != now.liveliness),
            (PolicyId::Reliability.name(), self.reliability != now.reliability),
            (PolicyId::DestinationOrder.name(), self.destination_order != now.destination_order),
            (PolicyId::History.name(), self.history != now.history),
            (PolicyId::ResourceLimits.name(), self.resource_limits != now.resource_limits),
            (PolicyId::Ownership.name(), self.ownership != now.ownership),
            (PolicyId::DataRepresentation.name(), self.representation != now.representation),
            (PolicyId::TypeConsistencyEnforcement.name(), self.type_consistency != now.type_consistency),
            ("multicast", self.multicast != now.multicast),
        ])
    }
}

impl PublisherQos {
    /// Refuses another PRESENTATION, which cannot be changed.
    pub(crate) fn check_change(&self, now: &Self) -> Result<()> {
        refuse([(PolicyId::Presentation.name(), self.presentation != now.presentation)])
    }
}

impl SubscriberQos {
    /// Refuses another PRESENTATION, which cannot be changed.
    pub(crate) fn check_change(&self, now: &Self) -> Result<()> {
        refuse([(PolicyId::Presentation.name(), self.presentation != now.presentation)])
    }
}

fn refuse(changes: impl IntoIterator<Item = (&'static str, bool)>) -> Result<()> {
    let changed: Vec<_> = changes.into_iter().filter(|(_, is_changed)| *is_changed).collect();
    if changed.is_empty() {
        return Ok(());
    }
    let policies = changed.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    Err(DdsError::ImmutablePolicy { policies })
}
