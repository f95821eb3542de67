//! The limits tables of the participants: those of the profile that the program simulates.

use weir_rtps::limits::{EndpointLimits, Limits};
use weir_rtps::participant::ParticipantConfig;

/// Whether the participants have the limits tables of the small profile: those of `tests/sim_small` have.
pub(crate) const IS_SMALL: bool = matches!(env!("CARGO_CRATE_NAME").as_bytes(), b"sim_small");

/// Returns the limits of a writer or reader of samples of at most this length, in the small profile. `samples`: how
/// many it has to hold at least.
pub(crate) fn endpoint(samples: u64, sample_bytes: usize) -> Option<EndpointLimits> {
    // Some writers have many readers.
    let small = EndpointLimits { matches: 64, ..EndpointLimits::SMALL };
    let samples = small.samples.max(usize::try_from(samples).unwrap_or(usize::MAX));
    let sample_bytes = small.sample_bytes.max(sample_bytes);
    IS_SMALL.then_some(EndpointLimits { samples, sample_bytes, ..small })
}

/// Sets the limits table of a participant, in the small profile. Returns the limits of its endpoints.
pub(crate) fn participant(config: &mut ParticipantConfig, limits: Limits) -> Option<EndpointLimits> {
    if !IS_SMALL {
        return None;
    }
    *config = config.clone().with_limits(limits);
    Some(limits.endpoint)
}

/// Returns the memory that a limits table reserves, which may be more than is used; 0 without one.
pub(crate) fn reserved(allocated: impl FnOnce() -> usize) -> usize {
    if IS_SMALL { allocated() } else { 0 }
}
