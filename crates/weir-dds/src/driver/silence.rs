//! Readers that do not answer: asks whether their participants are gone, and goes on without them.

use weir_rtps::time::Time;

use super::endpoints::WriterEndpoint;
use super::shared::Driver;

/// Refusals handled at a time; further ones wait for the next round.
const REFUSALS_MAX: usize = 256;

impl Driver {
    /// Does what is due for a writer, on the timer thread. Returns when something is due next.
    pub(super) fn writer_timeout(&self, writer: &WriterEndpoint, now: Time) -> Option<Time> {
        let next = writer.lane.timeout(&self.outlet, now);
        let Some(silence) = writer.lane.take_silence() else { return next };
        if silence.has_stalled {
            // Its destinations are the same, but threads that wait for room may find it.
            self.channel.announce_change();
        }
        if !silence.silent.is_empty() {
            self.with_discovery(|core, now| {
                silence.silent.iter().for_each(|reader| core.suspect(now, *reader))
            });
        }
        next
    }

    /// Handles what hosts report about the questions to participants that may be gone.
    pub(super) fn take_refusals(&self) {
        let refusals = std::iter::from_fn(|| self.meta.prober.take_refusal()).take(REFUSALS_MAX);
        let mut refusals = refusals.peekable();
        if refusals.peek().is_some() {
            self.with_discovery(|core, now| refusals.for_each(|to| core.refused(now, to)));
        }
    }
}
