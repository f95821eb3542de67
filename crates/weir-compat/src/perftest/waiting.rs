//! Hints while an end waits for the other one.

use weir_measure::clock;

use super::Event;
use super::probe::{Probe, Role};
use super::settings::NodeSettings;

/// After this time without a peer, a hint is due.
const PATIENCE_NS: u64 = 5_000_000_000;

/// Reports why no peer is found, as far as known.
pub(super) struct Waiting {
    probe: Probe,
    since_ns: u64,
    domain: u32,
    has_hinted: bool,
}

impl Waiting {
    pub(super) fn new(probe: Probe, settings: &NodeSettings) -> Self {
        Self { probe, since_ns: clock::now_ns(), domain: settings.domain, has_hinted: false }
    }

    /// Call regularly while waiting for `wanted` of `other`; `found` is their number so far.
    pub(super) fn look(&mut self, other: Role, found: u32, wanted: u32, on_event: &mut dyn FnMut(Event)) {
        for reason in self.probe.mismatches() {
            // A mismatch explains the wait.
            self.has_hinted = true;
            on_event(Event::Warning(reason));
        }
        if self.has_hinted || found >= wanted || clock::now_ns() - self.since_ns < PATIENCE_NS {
            return;
        }
        self.has_hinted = true;
        on_event(Event::Warning(hint(other, found, wanted, self.domain)));
    }
}

fn hint(other: Role, found: u32, wanted: u32, domain: u32) -> String {
    let (who, number) = match other {
        Role::Publisher => ("publisher", "-pidMultiPubTest"),
        Role::Subscriber => ("subscriber", "-sidMultiSubTest"),
    };
    if found == 0 {
        return format!(
            "no {who} in domain {domain} yet: is one running, with the same -domain, on a network that reaches us by \
             multicast (or named by -peer)?"
        );
    }
    format!(
        "{found} of {wanted} {who}s in domain {domain} so far: do all of them run, each with a number of its own \
         ({number})?"
    )
}
