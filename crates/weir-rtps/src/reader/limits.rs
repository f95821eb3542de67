//! Limits of a cache.

use super::config::ReaderConfig;
use crate::qos::History;

/// How much a cache may hold (DDS 1.4, 2.2.3.18 and 2.2.3.19).
#[derive(Debug)]
pub(super) struct Limits {
    /// Number of values per instance that KEEP_LAST keeps.
    pub(super) depth: Option<usize>,
    pub(super) max_samples: usize,
    pub(super) max_samples_per_instance: usize,
    pub(super) max_bytes: usize,
    /// Number of samples from which on there may be no room: 0 if that depends on the instance, or on coherent sets.
    pub(super) crowded_from: usize,
    /// Longest payload of a sample.
    pub(super) sample_bytes: usize,
    /// Number of samples that are held back behind missing ones.
    pub(super) held: usize,
    /// Whether all memory was reserved at the start.
    pub(super) is_fixed: bool,
}

impl Limits {
    pub(super) fn new(config: &ReaderConfig) -> Self {
        let is_keyed = config.key_of.is_some();
        let or_unlimited = |limit: Option<u32>| limit.map_or(usize::MAX, |limit| limit as usize);
        let max_samples_per_instance = or_unlimited(config.max_samples_per_instance);
        // A topic without a key is one instance.
        let max_of_topic = if is_keyed { usize::MAX } else { max_samples_per_instance };
        let max_samples = or_unlimited(config.max_samples).min(max_of_topic);
        let are_per_instance = (is_keyed
            && (config.max_instances.is_some() || config.max_samples_per_instance.is_some()))
            || config.presentation.coherent_access;
        Self {
            depth: match config.history {
                History::KeepAll => None,
                History::KeepLast(depth) => Some(depth.max(1) as usize),
            },
            max_samples,
            max_samples_per_instance,
            max_bytes: config.max_bytes,
            // With a limits table, every sample is looked at: it may be too long.
            crowded_from: if are_per_instance || config.limits.is_some() { 0 } else { max_samples },
            sample_bytes: config.limits.map_or(usize::MAX, |limits| limits.sample_bytes),
            held: config.limits.map_or(usize::MAX, |limits| limits.early_samples),
            is_fixed: config.limits.is_some(),
        }
    }
}
