//! Communication statuses (DDS 1.4 §2.2.4.1). Reading a status sets its changes to zero.

pub use weir_rtps::liveliness::LivelinessChangedStatus;
use weir_rtps::qos::PolicyId;
use weir_wire::Guid;

/// Who is matched with a writer (PUBLICATION_MATCHED) or a reader (SUBSCRIPTION_MATCHED).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MatchedStatus {
    /// Matches so far.
    pub total_count: u32,
    /// Matches since the status was read.
    pub total_count_change: u32,
    /// Endpoints that are matched now.
    pub current_count: u32,
    /// By how much that changed since the status was read.
    pub current_count_change: i32,
    /// The endpoint that caused the last change.
    pub last_handle: Option<Guid>,
}

impl MatchedStatus {
    pub(crate) fn matched(&mut self, guid: Guid) {
        self.total_count += 1;
        self.total_count_change += 1;
        self.current_count += 1;
        self.current_count_change += 1;
        self.last_handle = Some(guid);
    }

    pub(crate) fn unmatched(&mut self, guid: Guid) {
        self.current_count = self.current_count.saturating_sub(1);
        self.current_count_change -= 1;
        self.last_handle = Some(guid);
    }

    pub(crate) fn read(&mut self) -> Self {
        let status = *self;
        self.total_count_change = 0;
        self.current_count_change = 0;
        status
    }
}

/// Endpoints of the same topic whose QoS does not fit (OFFERED_ and REQUESTED_INCOMPATIBLE_QOS).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IncompatibleQosStatus {
    /// Endpoints so far.
    pub total_count: u32,
    /// Endpoints since the status was read.
    pub total_count_change: u32,
    /// The first policy of the last endpoint that did not fit.
    pub last_policy: Option<PolicyId>,
}

impl IncompatibleQosStatus {
    pub(crate) fn found(&mut self, policy: PolicyId) {
        self.total_count += 1;
        self.total_count_change += 1;
        self.last_policy = Some(policy);
    }

    pub(crate) fn read(&mut self) -> Self {
        let status = *self;
        self.total_count_change = 0;
        status
    }
}

/// How often the application has not asserted a writer within its lease (LIVELINESS_LOST).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LivelinessLostStatus {
    /// Times so far.
    pub total_count: u32,
    /// Times since the status was read.
    pub total_count_change: u32,
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

/// Samples that a reader did not get (SAMPLE_LOST) or could not keep (SAMPLE_REJECTED).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampleCountStatus {
    /// Samples so far.
    pub total_count: u64,
    /// Samples since the status was read.
    pub total_count_change: u64,
}

impl SampleCountStatus {
    pub(crate) fn read(&mut self, total_count: u64) -> Self {
        let total_count_change = total_count - self.total_count;
        self.total_count = total_count;
        Self { total_count, total_count_change }
    }
}
