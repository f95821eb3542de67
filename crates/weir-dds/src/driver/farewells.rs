//! Participants whose readers did not acknowledge the end of a writer in time.
//!
//! Other writers that end soon afterwards do not wait for them: otherwise a participant with many writers could take
//! that time for each of them to end.

use std::collections::BTreeSet;
use std::time::Duration;

use parking_lot::Mutex;
use weir_rtps::time::Time;
use weir_wire::GuidPrefix;

/// How long a closed or dropped writer waits for readers to acknowledge the end of its instances. After that, readers
/// learn from discovery that the writer is gone.
pub(crate) const FAREWELL_TIME: Duration = Duration::from_secs(1);

/// The participants, and when they were waited for in vain.
#[derive(Default)]
pub(crate) struct Farewells(Mutex<(Time, BTreeSet<GuidPrefix>)>);

impl Farewells {
    /// Returns the participants that are not waited for now.
    pub(crate) fn silent(&self, now: Time) -> BTreeSet<GuidPrefix> {
        let mut known = self.0.lock();
        if now.since(known.0) >= FAREWELL_TIME {
            known.1.clear();
        }
        known.1.clone()
    }

    /// Records participants that were waited for in vain until now: those of the readers of one writer.
    pub(crate) fn note_silent(&self, now: Time, participants: impl Iterator<Item = GuidPrefix>) {
        let mut known = self.0.lock();
        known.0 = now;
        known.1 = participants.collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn participants_that_were_waited_for_in_vain_are_waited_for_again_later() {
        let (farewells, silent) = (Farewells::default(), GuidPrefix([7; 12]));
        let now = Time(1 << 40);
        assert!(farewells.silent(now).is_empty());
        farewells.note_silent(now, [silent].into_iter());
        assert!(farewells.silent(now + FAREWELL_TIME / 2).contains(&silent));
        assert!(farewells.silent(now + FAREWELL_TIME).is_empty());
        assert!(farewells.silent(now).is_empty());
    }
}
