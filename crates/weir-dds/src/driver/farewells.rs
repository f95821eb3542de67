//! Participants whose readers did not acknowledge the end of a writer in time.
//!
//! Other writers that end soon afterwards do not wait for them: otherwise a participant with many writers could take
//! that time for each of them to end.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use parking_lot::Mutex;
use weir_rtps::time::Time;
use weir_wire::GuidPrefix;

/// How long a closed or dropped writer waits for readers to acknowledge the end of its instances. After that, readers
/// learn from discovery that the writer is gone.
pub(crate) const FAREWELL_TIME: Duration = Duration::from_secs(1);

/// The participants, and when each was waited for in vain.
#[derive(Default)]
pub(crate) struct Farewells(Mutex<BTreeMap<GuidPrefix, Time>>);

impl Farewells {
    /// Returns the participants that are not waited for now.
    pub(crate) fn silent(&self, now: Time) -> BTreeSet<GuidPrefix> {
        let mut known = self.0.lock();
        known.retain(|_, at| now.since(*at) < FAREWELL_TIME);
        known.keys().copied().collect()
    }

    /// Records participants that were waited for in vain until now: those of the readers of one writer.
    pub(crate) fn note_silent(&self, now: Time, participants: impl Iterator<Item = GuidPrefix>) {
        self.0.lock().extend(participants.map(|it| (it, now)));
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

    #[test]
    fn several_participants_are_remembered_each_for_its_time() {
        let (farewells, [one, two]) = (Farewells::default(), [7, 8].map(|byte| GuidPrefix([byte; 12])));
        let now = Time(1 << 40);
        farewells.note_silent(now, [one].into_iter());
        farewells.note_silent(now + FAREWELL_TIME / 2, [two].into_iter());
        assert_eq!(farewells.silent(now + FAREWELL_TIME / 2), BTreeSet::from([one, two]));
        assert_eq!(farewells.silent(now + FAREWELL_TIME), BTreeSet::from([two]));
    }
}
