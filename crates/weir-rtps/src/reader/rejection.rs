//! Samples for which the cache has no room (SAMPLE_REJECTED, DDS 1.4, 2.2.4.1).

/// Why the cache has no room for a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rejection {
    /// It would exceed `max_instances`.
    InstancesLimit,
    /// It would exceed `max_samples`.
    SamplesLimit,
    /// It would exceed `max_samples_per_instance`.
    SamplesPerInstanceLimit,
    /// It would exceed `max_bytes`.
    BytesLimit,
}

impl Rejection {
    /// Whether there may be room for samples of other instances.
    pub(super) fn is_of_instance(self) -> bool {
        matches!(self, Self::InstancesLimit | Self::SamplesPerInstanceLimit)
    }
}
