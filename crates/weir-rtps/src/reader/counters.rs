//! Counters of a reader.

/// Counters of a reader. They only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ReaderCounters {
    /// Samples passed to the cache.
    pub samples_received: u64,
    /// Samples that had arrived before.
    pub samples_duplicate: u64,
    /// Samples that will never arrive (SAMPLE_LOST): skipped by a best-effort writer, or no longer
    /// available from a reliable one.
    pub samples_lost: u64,
    /// Best-effort samples dropped because the cache was full (SAMPLE_REJECTED).
    pub samples_rejected: u64,
    /// Reliable samples refused because the cache was full (SAMPLE_REJECTED). They are requested
    /// again later.
    pub samples_refused: u64,
    /// Samples dropped because too many others waited behind a missing one, or the cache was full with those that did.
    /// They are requested again.
    pub samples_too_early: u64,
    /// Samples whose key could not be decoded.
    pub samples_malformed: u64,
    /// Samples removed because their lifespan ended before they were taken (LIFESPAN).
    pub samples_expired: u64,
    /// Samples of instances that a stronger writer owned (OWNERSHIP).
    pub samples_not_owned: u64,
    /// Samples with an older source timestamp than the one before (DESTINATION_ORDER).
    pub samples_out_of_order: u64,
    /// Samples that came too soon after the one before (TIME_BASED_FILTER).
    pub samples_filtered: u64,
    /// Samples whose content did not pass the filter, and changes of instances of which no value passed. Those that
    /// the writer leaves out do not count.
    pub samples_content_filtered: u64,
    /// Samples removed some time after their instance ended (READER_DATA_LIFECYCLE).
    pub samples_purged: u64,
    /// Submessages without content that end a coherent set of changes.
    pub coherent_sets_ended: u64,
    /// Coherent sets that were dropped: a sample was lost, the writer left, or the set exceeded the reader's limits.
    pub coherent_sets_dropped: u64,
    /// Writers that restarted their sequence numbers under the same GUID.
    pub writers_restarted: u64,
    /// Times that samples were skipped as unavailable, by a HEARTBEAT or GAP that later HEARTBEATs refuted.
    pub leaps_taken_back: u64,
    /// GAPs dropped in part, because those since the last answer named too many samples. The writer repeats them.
    pub gaps_dropped: u64,
    /// Unmatched writers whose position was forgotten to make room for others.
    pub writers_forgotten: u64,
    /// Reliable samples in fragments above
    /// [`sample_max_bytes`](super::ReassemblyLimits::sample_max_bytes), and samples longer than a limits table allows;
    /// also counted as lost.
    pub samples_oversized: u64,
    /// Pieces of memory allocated although a limits table had all memory reserved: the application shares the others.
    pub chunks_beyond_limits: u64,
    /// Submessages from unmatched writers.
    pub unknown_writers: u64,
    /// Fragments dropped because they contradict others of their sample, exceed a limit, or lie too
    /// far ahead of what has arrived.
    pub fragments_refused: u64,
    /// Fragments dropped because memory could not be allocated. A reliable reader requests them
    /// again.
    pub allocations_failed: u64,
    /// Instances updated because a writer of theirs left or was silent for too long.
    pub instances_left: u64,
    /// Liveliness leases raised to [`LIVELINESS_LEASE_MIN`](crate::config::LIVELINESS_LEASE_MIN).
    pub leases_raised: u64,
    /// Negative acknowledgements sent.
    pub nacks_sent: u64,
}
