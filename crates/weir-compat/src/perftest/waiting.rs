//! Hints while an end waits for the other one.

use std::time::Duration;

use weir_measure::{clock, nanos};

use super::event::Event;
use super::node::Node;
use super::probe::{Probe, Role};
use weir_bench::endpoint::EndpointError;

/// After this time without a peer, a hint is due.
const PATIENCE_NS: u64 = 5_000_000_000;

/// Reports why no peer is found, as far as known.
pub(super) struct Waiting {
    probe: Probe,
    own: Role,
    wanted: u32,
    domain: u32,
    since_ns: u64,
    has_hinted: bool,
}

/// How long publishers may be missing between two sizes of a scan. One that was killed is missed after its lease of
/// 5 s; one that goes on makes its endpoints again at once.
pub(super) const NEXT_SIZE: Duration = Duration::from_secs(15);

/// The wait of a subscriber for the next size of a scan.
pub(super) struct NextSize {
    /// When all publishers were last there; `None`: this wait has no limit.
    last_ns: Option<u64>,
}

impl NextSize {
    /// Begins at `now_ns`; has a limit if the previous size has just ended.
    pub(super) fn start(is_next_size: bool, now_ns: u64) -> Self {
        Self { last_ns: is_next_size.then_some(now_ns) }
    }

    /// Whether publishers have been missing for too long. `are_there`: none is missing now.
    pub(super) fn is_over(&mut self, are_there: bool, now_ns: u64) -> bool {
        let Some(last_ns) = &mut self.last_ns else { return false };
        if are_there {
            *last_ns = now_ns;
        }
        now_ns.saturating_sub(*last_ns) > nanos(NEXT_SIZE)
    }
}

impl Waiting {
    /// The end in role `own` waits for `wanted` of the other one.
    pub(super) fn start(node: &Node, own: Role, wanted: u32) -> Result<Self, EndpointError> {
        let (probe, domain) = (Probe::open(node, own)?, node.settings.domain);
        Ok(Self { probe, own, wanted, domain, since_ns: clock::now_ns(), has_hinted: false })
    }

    /// Call regularly while waiting; `found` is their number so far.
    pub(super) fn look(&mut self, found: u32, on_event: &mut dyn FnMut(Event)) {
        for reason in self.probe.mismatches() {
            // A mismatch explains the wait.
            self.has_hinted = true;
            on_event(Event::Warning(reason));
        }
        if self.has_hinted || found >= self.wanted || clock::now_ns() - self.since_ns < PATIENCE_NS {
            return;
        }
        self.has_hinted = true;
        on_event(Event::Warning(self.hint(found)));
    }

    fn hint(&self, found: u32) -> String {
        let Self { wanted, domain, .. } = self;
        let (who, number) = self.own.other().named();
        if found == 0 {
            return format!(
                "no {who} in domain {domain} yet: is one running, with the same -domain, on a network that reaches us \
                 by multicast (or named by -peer)?"
            );
        }
        format!(
            "{found} of {wanted} {who}s in domain {domain} so far: do all of them run, each with a number of its own \
             ({number})?"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn publishers_that_do_not_return_with_the_next_size_are_gone() {
        let limit_ns = nanos(NEXT_SIZE);
        let mut next = NextSize::start(true, 10);
        assert!(!next.is_over(false, 10 + limit_ns));
        assert!(!next.is_over(true, 11 + limit_ns) && !next.is_over(false, 11 + 2 * limit_ns));
        assert!(next.is_over(false, 12 + 2 * limit_ns));
        assert!(!NextSize::start(false, 10).is_over(false, u64::MAX));
    }
}
