//! What conditions and those who wait ask of a reader (DDS 1.4, 2.2.2.5.8, 2.2.2.5.9).

use super::ReaderCore;
use super::cache::Cache;
use super::raw_sample::RawSample;
use super::states::States;

impl ReaderCore {
    /// Returns whether a sample in these states satisfies `matches`. Marks nothing as read or seen.
    pub fn any_sample(&mut self, states: States, matches: impl FnMut(&RawSample<'_>) -> bool) -> bool {
        self.delivery.cache.any(states, matches)
    }

    /// Returns a number that is larger after samples or changes of instances have arrived, and the same if nothing has.
    pub fn arrivals(&self) -> u64 {
        let entries = &self.delivery.cache.entries;
        entries.position_of(entries.ring.len())
    }

    /// Makes every access an errand: see [`ReaderCore::has_errand`].
    pub fn set_watched(&mut self) {
        self.errands |= Self::WATCHED;
    }

    /// Returns whether the caller has something to do after an access: samples were removed that had left no room for
    /// others, which [`ReaderCore::is_request_due`] reports, or the reader is watched.
    #[inline]
    pub fn has_errand(&self) -> bool {
        self.errands != 0
    }

    /// Whether samples were removed that had left no room for others. The caller then calls
    /// [`ReaderCore::poll_transmit`]: otherwise the writer learns of the room with its next HEARTBEAT.
    #[inline]
    pub fn is_request_due(&self) -> bool {
        self.errands & Self::REQUEST != 0
    }

    pub(super) const REQUEST: u8 = 1;
    const WATCHED: u8 = 1 << 1;
}

impl Cache {
    fn any(&mut self, states: States, mut matches: impl FnMut(&RawSample<'_>) -> bool) -> bool {
        let is_unread_only = states.is_unread_only();
        if self.entries.live == 0 || (is_unread_only && self.entries.unread == 0) {
            return false;
        }
        let first = if is_unread_only { self.entries.first_unread() } else { 0 };
        (first..self.entries.ring.len()).any(|index| {
            self.entries.ring[index].is_live && {
                let sample = self.peek(index, self.accesses + 1);
                states.contains(sample.was_read, sample.is_new_instance, sample.instance_state)
                    && matches(&sample)
            }
        })
    }

    /// Returns a sample as an access with this number would show it.
    fn peek(&self, index: usize, access: u64) -> RawSample<'_> {
        let entry = &self.entries.ring[index];
        let instance = self.instances.get(entry.instance);
        let is_new_instance = instance.viewed_by == 0 || instance.viewed_by == access;
        RawSample::of(
            entry,
            instance,
            self.chunks.payload(entry.at),
            (self.instances.is_keyed, is_new_instance),
        )
    }
}
