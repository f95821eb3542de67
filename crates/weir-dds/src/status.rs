//! Communication statuses (DDS 1.4, 2.2.4.1).
//!
//! Reading a status resets its changes to zero. Names are those of the specification. Its counts have 32 bits with a
//! sign; here they have 64: at a million samples per second, a count of lost samples would be over 2^32 after 72
//! minutes. All counts have the same type, so that they can be compared and added.
//!
//! ```no_run
//! # use weir_dds::{DataReader, DdsType};
//! # fn f<T: DdsType>(reader: &DataReader<T>) {
//! let matched = reader.subscription_matched_status();
//! println!("{} writers, {:+} since the last call", matched.current_count, matched.current_count_change);
//! # }
//! ```

use weir_rtps::discovery_event::TypeDifference;
use weir_rtps::qos::{PolicyId, PolicySet};
use weir_rtps::reader::Rejection;
use weir_wire::Guid;

use crate::instance_handle::InstanceHandle;

/// Matches of a writer (PUBLICATION_MATCHED).
///
/// ```no_run
/// # use weir_dds::{DataWriter, DdsType};
/// # fn f<T: DdsType>(writer: &DataWriter<T>) -> weir_dds::Result<()> {
/// let status = writer.publication_matched_status();
/// if status.current_count == 0 && status.total_count > 0 {
///     println!("all readers are gone, the last was {:?}", status.last_subscription_handle);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PublicationMatchedStatus {
    /// Total number of matches.
    pub total_count: u64,
    /// Matches since the status was last read.
    pub total_count_change: u64,
    /// Readers matched now.
    pub current_count: u64,
    /// Change of `current_count` since the status was last read.
    pub current_count_change: i64,
    /// The reader that caused the last change.
    pub last_subscription_handle: Option<InstanceHandle>,
}

/// Matches of a reader (SUBSCRIPTION_MATCHED).
///
/// ```no_run
/// # use weir_dds::{DataReader, DdsType};
/// # fn f<T: DdsType>(reader: &DataReader<T>) -> weir_dds::Result<()> {
/// let status = reader.subscription_matched_status();
/// if status.current_count == 0 && status.total_count > 0 {
///     println!("all writers are gone, the last was {:?}", status.last_publication_handle);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SubscriptionMatchedStatus {
    /// Total number of matches.
    pub total_count: u64,
    /// Matches since the status was last read.
    pub total_count_change: u64,
    /// Writers matched now.
    pub current_count: u64,
    /// Change of `current_count` since the status was last read.
    pub current_count_change: i64,
    /// The writer that caused the last change.
    pub last_publication_handle: Option<InstanceHandle>,
}

/// Matches of a writer or reader.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Matches {
    total_count: u64,
    total_count_change: u64,
    pub(crate) current_count: u64,
    current_count_change: i64,
    last_handle: Option<InstanceHandle>,
}

impl From<Matches> for PublicationMatchedStatus {
    fn from(matches: Matches) -> Self {
        let Matches { total_count, total_count_change, current_count, current_count_change, last_handle } =
            matches;
        let last_subscription_handle = last_handle;
        Self {
            total_count,
            total_count_change,
            current_count,
            current_count_change,
            last_subscription_handle,
        }
    }
}

impl From<Matches> for SubscriptionMatchedStatus {
    fn from(matches: Matches) -> Self {
        let Matches { total_count, total_count_change, current_count, current_count_change, last_handle } =
            matches;
        let last_publication_handle = last_handle;
        Self { total_count, total_count_change, current_count, current_count_change, last_publication_handle }
    }
}

impl Matches {
    pub(crate) fn matched(&mut self, guid: Guid) {
        self.total_count += 1;
        self.total_count_change += 1;
        self.current_count += 1;
        self.current_count_change += 1;
        self.last_handle = Some(guid.into());
    }

    pub(crate) fn unmatched(&mut self, guid: Guid) {
        self.current_count = self.current_count.saturating_sub(1);
        self.current_count_change -= 1;
        self.last_handle = Some(guid.into());
    }

    pub(crate) fn has_changed(&self) -> bool {
        self.total_count_change > 0 || self.current_count_change != 0
    }

    pub(crate) fn read(&mut self) -> Self {
        let status = *self;
        self.total_count_change = 0;
        self.current_count_change = 0;
        status
    }
}

/// Endpoints of the topic with incompatible QoS.
///
/// Of a writer, [`OfferedIncompatibleQosStatus`]; of a reader, [`RequestedIncompatibleQosStatus`].
///
/// ```no_run
/// # use weir_dds::{DataReader, DdsType};
/// # fn f<T: DdsType>(reader: &DataReader<T>) -> weir_dds::Result<()> {
/// let status = reader.requested_incompatible_qos_status();
/// if let Some(policy) = status.last_policy_id {
///     println!("{} writers do not fit, the last one because of {}", status.total_count, policy.name());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct IncompatibleQosStatus {
    /// Total number of endpoints.
    pub total_count: u64,
    /// Endpoints since the status was last read.
    pub total_count_change: u64,
    /// The first incompatible policy of the last such endpoint.
    pub last_policy_id: Option<PolicyId>,
    /// All incompatible policies of the last such endpoint. Not in DDS 1.4.
    pub last_policies: PolicySet,
    /// For each policy that was incompatible: the number of endpoints.
    pub policies: Vec<QosPolicyCount>,
}

/// Readers of the topic whose requested QoS a writer does not offer (OFFERED_INCOMPATIBLE_QOS).
///
/// ```no_run
/// # use weir_dds::{DataWriter, DataWriterListener, OfferedIncompatibleQosStatus};
/// struct Log;
///
/// impl<T> DataWriterListener<T> for Log {
///     fn on_offered_incompatible_qos(&self, writer: &DataWriter<T>, status: OfferedIncompatibleQosStatus) {
///         eprintln!("{}: {:?} does not fit", writer.topic_name(), status.last_policy_id);
///     }
/// }
/// ```
pub type OfferedIncompatibleQosStatus = IncompatibleQosStatus;

/// Writers of the topic that do not offer the QoS that a reader requests (REQUESTED_INCOMPATIBLE_QOS).
///
/// ```no_run
/// # use weir_dds::{DataReader, DataReaderListener, RequestedIncompatibleQosStatus};
/// struct Log;
///
/// impl<T> DataReaderListener<T> for Log {
///     fn on_requested_incompatible_qos(&self, reader: &DataReader<T>, status: RequestedIncompatibleQosStatus) {
///         eprintln!("{}: {:?} does not fit", reader.topic_name(), status.last_policy_id);
///     }
/// }
/// ```
pub type RequestedIncompatibleQosStatus = IncompatibleQosStatus;

/// How many endpoints had an incompatible value of a policy.
///
/// ```no_run
/// # use weir_dds::{DataReader, DdsType};
/// # fn f<T: DdsType>(reader: &DataReader<T>) -> weir_dds::Result<()> {
/// for of_policy in reader.requested_incompatible_qos_status().policies {
///     println!("{}: {}", of_policy.policy_id, of_policy.count);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct QosPolicyCount {
    /// The policy.
    pub policy_id: PolicyId,
    /// The number of endpoints.
    pub count: u64,
}

impl IncompatibleQosStatus {
    pub(crate) fn found(&mut self, policies: PolicySet) {
        self.total_count += 1;
        self.total_count_change += 1;
        self.last_policy_id = policies.first();
        self.last_policies = policies;
        for policy_id in policies.iter() {
            match self.policies.iter_mut().find(|known| known.policy_id == policy_id) {
                Some(known) => known.count += 1,
                None => self.policies.push(QosPolicyCount { policy_id, count: 1 }),
            }
        }
    }

    pub(crate) fn read(&mut self) -> Self {
        let status = self.clone();
        self.total_count_change = 0;
        status
    }
}

/// Endpoints of a topic that have another type than it (INCONSISTENT_TOPIC).
///
/// Types are compared by their names and by whether they have a key.
///
/// ```no_run
/// # use weir_dds::{DdsType, Topic};
/// # fn f<T: DdsType>(topic: &Topic<T>) -> weir_dds::Result<()> {
/// let status = topic.inconsistent_topic_status();
/// if let Some(last) = status.last {
///     eprintln!("{} endpoints have another type, the last one {}", status.total_count, last.type_name);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct InconsistentTopicStatus {
    /// Total number of endpoints.
    pub total_count: u64,
    /// Endpoints since the status was last read.
    pub total_count_change: u64,
    /// The last such endpoint. Not in DDS 1.4.
    pub last: Option<InconsistentEndpoint>,
}

/// An endpoint that has another type than its topic: see [`InconsistentTopicStatus::last`].
///
/// ```no_run
/// # use weir_dds::{DdsType, Topic};
/// # fn f<T: DdsType>(topic: &Topic<T>) -> weir_dds::Result<()> {
/// if let Some(last) = topic.inconsistent_topic_status().last {
///     eprintln!("{} has the type {}: {:?}", last.handle, last.type_name, last.difference);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InconsistentEndpoint {
    /// The writer or reader.
    pub handle: InstanceHandle,
    /// The name of its type.
    pub type_name: String,
    /// How the types differ.
    pub difference: TypeDifference,
}

impl InconsistentTopicStatus {
    pub(crate) fn found(&mut self, other: Guid, type_name: String, difference: TypeDifference) {
        self.total_count += 1;
        self.total_count_change += 1;
        self.last = Some(InconsistentEndpoint { handle: other.into(), type_name, difference });
    }

    pub(crate) fn read(&mut self) -> Self {
        let status = self.clone();
        self.total_count_change = 0;
        status
    }
}

/// Instances that were not written within the period of DEADLINE.
///
/// Of a writer, [`OfferedDeadlineMissedStatus`]; of a reader, [`RequestedDeadlineMissedStatus`]. Each period counts for
/// each instance that has begun and not ended.
///
/// ```no_run
/// # use weir_dds::{DataWriter, DdsType};
/// # fn f<T: DdsType>(writer: &DataWriter<T>) -> weir_dds::Result<()> {
/// let status = writer.offered_deadline_missed_status();
/// println!("{} periods were missed, {} of them new", status.total_count, status.total_count_change);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct DeadlineMissedStatus {
    /// Total number of periods.
    pub total_count: u64,
    /// Periods since the status was last read.
    pub total_count_change: u64,
    /// The last instance that missed one; `None` before that, and for topics without a key.
    pub last_instance_handle: Option<InstanceHandle>,
}

/// Instances that a writer did not write within the offered period (OFFERED_DEADLINE_MISSED).
///
/// ```no_run
/// # use weir_dds::{DataWriter, DataWriterListener, OfferedDeadlineMissedStatus};
/// struct Log;
///
/// impl<T> DataWriterListener<T> for Log {
///     fn on_offered_deadline_missed(&self, writer: &DataWriter<T>, status: OfferedDeadlineMissedStatus) {
///         eprintln!("{}: {} deadlines missed", writer.topic_name(), status.total_count);
///     }
/// }
/// ```
pub type OfferedDeadlineMissedStatus = DeadlineMissedStatus;

/// Instances that no writer wrote within the period that a reader requests (REQUESTED_DEADLINE_MISSED).
///
/// ```no_run
/// # use weir_dds::{DataReader, DataReaderListener, RequestedDeadlineMissedStatus};
/// struct Log;
///
/// impl<T> DataReaderListener<T> for Log {
///     fn on_requested_deadline_missed(&self, reader: &DataReader<T>, status: RequestedDeadlineMissedStatus) {
///         eprintln!("{}: {} deadlines missed", reader.topic_name(), status.total_count);
///     }
/// }
/// ```
pub type RequestedDeadlineMissedStatus = DeadlineMissedStatus;

impl DeadlineMissedStatus {
    pub(crate) fn new(
        missed: weir_rtps::reader::DeadlineMissedStatus,
        handle: impl FnOnce([u8; 16]) -> InstanceHandle,
    ) -> Self {
        Self {
            total_count: missed.total_count,
            total_count_change: missed.total_count_change,
            last_instance_handle: missed.last_key.map(handle),
        }
    }
}

/// Leases without an assertion by the application (LIVELINESS_LOST).
///
/// ```no_run
/// # use weir_dds::{DataWriter, DdsType};
/// # fn f<T: DdsType>(writer: &DataWriter<T>) -> weir_dds::Result<()> {
/// println!("{} leases ended without an assertion", writer.liveliness_lost_status().total_count);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LivelinessLostStatus {
    /// Total number of times.
    pub total_count: u64,
    /// Times since the status was last read.
    pub total_count_change: u64,
}

impl LivelinessLostStatus {
    pub(crate) fn lost(&mut self) {
        self.total_count += 1;
        self.total_count_change += 1;
    }

    pub(crate) fn read(&mut self) -> Self {
        let status = *self;
        self.total_count_change = 0;
        status
    }
}

/// Matched writers of a reader that are alive, and those that are not (LIVELINESS_CHANGED).
///
/// ```no_run
/// # use weir_dds::{DataReader, DdsType};
/// # fn f<T: DdsType>(reader: &DataReader<T>) -> weir_dds::Result<()> {
/// let status = reader.liveliness_changed_status();
/// if status.not_alive_count_change > 0 {
///     println!("{:?} does not assert itself any more", status.last_publication_handle);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LivelinessChangedStatus {
    /// Matched writers that are alive now.
    pub alive_count: u64,
    /// Matched writers that are not alive now.
    pub not_alive_count: u64,
    /// Change of `alive_count` since the status was last read.
    pub alive_count_change: i64,
    /// Change of `not_alive_count` since the status was last read.
    pub not_alive_count_change: i64,
    /// The writer that caused the last change.
    pub last_publication_handle: Option<InstanceHandle>,
}

impl From<weir_rtps::liveliness::LivelinessChangedStatus> for LivelinessChangedStatus {
    fn from(changed: weir_rtps::liveliness::LivelinessChangedStatus) -> Self {
        Self {
            alive_count: changed.alive_count.into(),
            not_alive_count: changed.not_alive_count.into(),
            alive_count_change: changed.alive_count_change.into(),
            not_alive_count_change: changed.not_alive_count_change.into(),
            last_publication_handle: changed.last_publication_handle.map(InstanceHandle::from),
        }
    }
}

/// Readers that a writer does not wait for, because they acknowledged nothing for
/// [`DataWriterQos::reader_inactivity`](crate::DataWriterQos::reader_inactivity()). Not in DDS 1.4.
///
/// ```no_run
/// # use weir_dds::{DataWriter, DdsType};
/// # fn f<T: DdsType>(writer: &DataWriter<T>) -> weir_dds::Result<()> {
/// if writer.reader_inactivity_status().current_count > 0 {
///     println!("not waited for: {:?}", writer.inactive_subscriptions());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ReaderInactivityStatus {
    /// Total number of times that a reader was no longer waited for.
    pub total_count: u64,
    /// Times since the status was last read.
    pub total_count_change: u64,
    /// Readers that are not waited for now.
    pub current_count: u64,
}

impl ReaderInactivityStatus {
    pub(crate) fn read(&mut self, total_count: u64, current_count: u64) -> Self {
        // Another thread may have read a later count meanwhile.
        let total_count = total_count.max(self.total_count);
        let total_count_change = total_count - self.total_count;
        self.total_count = total_count;
        Self { total_count, total_count_change, current_count }
    }
}

/// Samples that a reader did not receive (SAMPLE_LOST).
///
/// ```no_run
/// # use weir_dds::{DataReader, DdsType};
/// # fn f<T: DdsType>(reader: &DataReader<T>) -> weir_dds::Result<()> {
/// let lost = reader.sample_lost_status();
/// println!("{} samples are lost, {} of them new", lost.total_count, lost.total_count_change);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SampleLostStatus {
    /// Total number of samples.
    pub total_count: u64,
    /// Samples since the status was last read.
    pub total_count_change: u64,
}

impl SampleLostStatus {
    pub(crate) fn read(&mut self, total_count: u64) -> Self {
        // Another thread may have read a later count meanwhile.
        let total_count = total_count.max(self.total_count);
        let total_count_change = total_count - self.total_count;
        self.total_count = total_count;
        Self { total_count, total_count_change }
    }
}

/// The reason why a reader rejected a sample.
///
/// `SampleRejectedStatusKind`, DDS 1.4, 2.2.4.1.
///
/// ```no_run
/// # use weir_dds::{DataReader, DdsType};
/// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
/// use weir_dds::SampleRejectedReason;
///
/// if reader.sample_rejected_status().last_reason == Some(SampleRejectedReason::Malformed) {
///     eprintln!("a writer has another type");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SampleRejectedReason {
    /// Over `max_instances`.
    InstancesLimit,
    /// Over `max_samples`.
    SamplesLimit,
    /// Over `max_samples_per_instance`.
    SamplesPerInstanceLimit,
    /// Over `max_bytes`. Not a reason in DDS 1.4.
    BytesLimit,
    /// Not of the reader's type. Not a reason in DDS 1.4.
    Malformed,
}

impl From<Rejection> for SampleRejectedReason {
    fn from(rejection: Rejection) -> Self {
        match rejection {
            Rejection::InstancesLimit => Self::InstancesLimit,
            Rejection::SamplesLimit => Self::SamplesLimit,
            Rejection::SamplesPerInstanceLimit => Self::SamplesPerInstanceLimit,
            Rejection::BytesLimit => Self::BytesLimit,
        }
    }
}

/// Samples that a reader could not keep (SAMPLE_REJECTED).
///
/// ```no_run
/// # use weir_dds::{DataReader, DdsType};
/// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
/// let rejected = reader.sample_rejected_status();
/// if rejected.total_count_change > 0 {
///     println!("{:?} of {:?}", rejected.last_reason, rejected.last_instance_handle);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SampleRejectedStatus {
    /// Total number of samples.
    pub total_count: u64,
    /// Samples since the status was last read.
    pub total_count_change: u64,
    /// The reason for the last rejection, if there was one.
    pub last_reason: Option<SampleRejectedReason>,
    /// The instance of the last sample that was over a limit.
    pub last_instance_handle: Option<InstanceHandle>,
}

/// A status of rejected samples, and the counts that it was computed from.
#[derive(Debug, Default)]
pub(crate) struct Rejected {
    status: SampleRejectedStatus,
    /// Samples over a limit when the status was last read.
    pub(crate) rejected: u64,
    malformed: u64,
}

impl Rejected {
    /// Returns whether the counts are others than when the status was last read.
    pub(crate) fn differs(&self, rejected: u64, malformed: u64) -> bool {
        (self.rejected, self.malformed) != (rejected, malformed)
    }

    pub(crate) fn read(
        &mut self,
        rejected: u64,
        malformed: u64,
        last: Option<(Rejection, Option<[u8; 16]>)>,
    ) -> SampleRejectedStatus {
        let status = &mut self.status;
        // Another thread may have read later counts meanwhile.
        let (rejected, malformed) = (rejected.max(self.rejected), malformed.max(self.malformed));
        status.total_count_change = rejected + malformed - status.total_count;
        status.total_count = rejected + malformed;
        if rejected > self.rejected {
            status.last_reason = last.map(|(rejection, _)| rejection.into());
            status.last_instance_handle = last.and_then(|(_, key)| key).map(InstanceHandle);
        } else if malformed > self.malformed {
            status.last_reason = Some(SampleRejectedReason::Malformed);
        }
        (self.rejected, self.malformed) = (rejected, malformed);
        *status
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_is_older_than_the_last_one_changes_nothing() {
        let mut lost = SampleLostStatus::default();
        assert_eq!(lost.read(6).total_count_change, 6);
        assert_eq!((lost.read(5).total_count_change, lost.read(7).total_count_change), (0, 1));
        let mut inactive = ReaderInactivityStatus::default();
        assert_eq!((inactive.read(2, 1).total_count_change, inactive.read(1, 1).total_count_change), (2, 0));
        let mut rejected = Rejected::default();
        let mut change =
            |rejections, malformed| rejected.read(rejections, malformed, None).total_count_change;
        assert_eq!((change(3, 2), change(2, 2), change(3, 3)), (5, 0, 1));
    }
}
