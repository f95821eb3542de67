//! What an end says while it waits for the other one.

use super::Event;
use super::probe::Probe;
use super::settings::NodeSettings;
use crate::clock;

/// Nobody for so long is worth a word.
const PATIENCE_NS: u64 = 5_000_000_000;

/// Says why nobody comes, as far as that can be known.
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

    /// To be called now and then while `other` is waited for; `found` is how many of them there are.
    pub(super) fn look(&mut self, other: &str, found: u32, on_event: &mut dyn FnMut(Event)) {
        for reason in self.probe.mismatches() {
            // Who fits but for something is no stranger.
            self.has_hinted = true;
            on_event(Event::Warning(reason));
        }
        if !self.has_hinted && found == 0 && clock::now_ns() - self.since_ns >= PATIENCE_NS {
            self.has_hinted = true;
            on_event(Event::Warning(format!(
                "no {other} in domain {} yet: is one running, with the same -domain, on a network that reaches us by \
                 multicast (or named by -peer)?",
                self.domain
            )));
        }
    }
}
