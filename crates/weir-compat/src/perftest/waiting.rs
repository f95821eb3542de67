//! Hints while an end waits for the other one.

use weir_measure::clock;

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
