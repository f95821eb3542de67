//! Which limits a large domain has reached, and what to do.

use weir_rtps::discovery_data::DiscoveryLimits;
use weir_rtps::participant::DiscoveryCounters;

/// A limit that a participant has reached.
///
/// ```
/// use weir_dds::{DomainParticipant, ParticipantSettings};
///
/// let participant = DomainParticipant::new(99, ParticipantSettings::default().interface("lo"))?;
/// for limit in participant.limits_reached() {
///     println!("{} ({} times): {}", limit.what, limit.count, limit.advice);
/// }
/// # Ok::<(), weir_dds::DdsError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitReached {
    /// What is limited.
    pub what: &'static str,
    /// How often something was left out.
    pub count: u64,
    /// The limit, and which setting to change.
    pub advice: String,
}

/// Returns the limits that discovery has reached. `refused_sends`: datagrams that the kernel did not take.
/// `has_table`: a limits table has set the limits.
pub(crate) fn reached(
    counters: &DiscoveryCounters,
    refused_sends: u64,
    limits: &DiscoveryLimits,
    has_table: bool,
) -> Vec<LimitReached> {
    let advise = |key: &str, otherwise: &str| {
        if has_table { format!("raise {key} of the limits table") } else { otherwise.to_owned() }
    };
    let all = [
        (
            "remote participants",
            counters.participants_over_limit,
            format!(
                "at most {} are known; {}",
                limits.participants,
                advise(
                    "`participants`",
                    "use several domains, or fewer participants with more endpoints each"
                )
            ),
        ),
        (
            "remote endpoints",
            counters.endpoints_over_limit,
            format!(
                "at most {} are known, {} of one participant, with {} bytes of names and user data; {}",
                limits.endpoints,
                limits.endpoints_per_participant,
                limits.texts_bytes,
                advise(
                    "`participants`, `endpoints_per_participant` or `text_bytes`",
                    "use several domains, or PARTITION and content filters instead of many topics"
                )
            ),
        ),
        (
            "matches of an endpoint",
            counters.matches_over_limit,
            format!(
                "at most {}, {} with one participant; {}",
                limits.matches,
                limits.matches_per_participant,
                advise("`endpoint.matches`", "use several topics or partitions")
            ),
        ),
        (
            "socket buffer for discovery",
            refused_sends,
            "the kernel refused datagrams, which are repeated; raise `sysctl net.core.wmem_max`".to_owned(),
        ),
    ];
    let reached = all.into_iter().filter(|(_, count, _)| *count > 0);
    reached.map(|(what, count, advice)| LimitReached { what, count, advice }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_limits_that_were_reached_are_named() {
        let mut counters = DiscoveryCounters::default();
        let limits = DiscoveryLimits { matches: 8, matches_per_participant: 4, ..DiscoveryLimits::default() };
        assert_eq!(reached(&counters, 0, &limits, false), []);
        counters.matches_over_limit = 3;
        let named = reached(&counters, 1, &limits, false);
        assert_eq!(
            named.iter().map(|it| (it.what, it.count)).collect::<Vec<_>>(),
            [("matches of an endpoint", 3), ("socket buffer for discovery", 1)]
        );
        assert!(named[1].advice.contains("net.core.wmem_max"), "{named:?}");
        assert_eq!(named[0].advice, "at most 8, 4 with one participant; use several topics or partitions");
        let named = reached(&counters, 0, &limits, true);
        assert!(named[0].advice.ends_with("raise `endpoint.matches` of the limits table"), "{named:?}");
    }
}
