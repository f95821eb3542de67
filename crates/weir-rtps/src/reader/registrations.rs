//! Which instances each writer writes, so that those of a writer that leaves are found without a search.

use alloc::vec::Vec;

use weir_wire::Guid;

/// The instances of all writers that write some.
#[derive(Debug, Default)]
pub(super) struct Registrations {
    /// In the order of their GUIDs.
    writers: Vec<(Guid, Registered)>,
    /// Reserved lists of writers that write nothing now.
    spare: Vec<Registered>,
    /// Whether all memory was reserved at the start.
    is_fixed: bool,
}

/// The instances of one writer.
#[derive(Debug, Default)]
struct Registered {
    /// Instances that it began to write, once for each time.
    begun: Vec<u32>,
    /// Instances that it ended. Each cancels one of the same number in `begun`.
    ended: Vec<u32>,
}

impl Registrations {
    /// Records that a writer begins to write an instance.
    #[cold]
    pub(super) fn add(&mut self, writer: Guid, instance: u32) {
        let index = match self.find(writer) {
            Ok(index) => index,
            Err(index) => {
                let registered = self.spare.pop().unwrap_or_default();
                self.writers.insert(index, (writer, registered));
                index
            }
        };
        self.writers[index].1.begun.push(instance);
    }

    /// Records that a writer no longer writes an instance, which it began to write.
    #[cold]
    pub(super) fn remove(&mut self, writer: Guid, instance: u32) {
        if let Ok(index) = self.find(writer) {
            self.writers[index].1.remove(instance, self.is_fixed);
        }
    }

    /// Removes a writer. Returns its instances in order.
    pub(super) fn take(&mut self, writer: Guid) -> Vec<u32> {
        let Ok(index) = self.find(writer) else { return Vec::new() };
        let (_, mut registered) = self.writers.remove(index);
        registered.compact(self.is_fixed);
        if self.is_fixed {
            let begun = core::mem::take(&mut registered.begun);
            self.spare.push(registered);
            return begun;
        }
        registered.begun
    }

    /// Returns a list from [`Registrations::take`], if its memory was reserved.
    pub(super) fn give_back(&mut self, mut begun: Vec<u32>) {
        if self.is_fixed
            && let Some(registered) = self.spare.iter_mut().find(|it| it.begun.capacity() == 0)
        {
            begun.clear();
            registered.begun = begun;
        }
    }

    /// Reserves memory for so many writers, which write all instances.
    pub(super) fn fixed(writers: usize, instances: usize) -> Self {
        let registered = || Registered {
            begun: Vec::with_capacity(begun_room(instances)),
            ended: Vec::with_capacity(ended_room(instances)),
        };
        let mut spare = Vec::with_capacity(writers);
        spare.extend((0..writers).map(|_| registered()));
        Self { writers: Vec::with_capacity(writers), spare, is_fixed: true }
    }

    /// Memory for so many writers, in bytes.
    pub(super) fn bytes(writers: usize, instances: usize) -> usize {
        let lists =
            (begun_room(instances).saturating_add(ended_room(instances))).saturating_mul(size_of::<u32>());
        let of_writer = size_of::<(Guid, Registered)>() + size_of::<Registered>();
        writers.saturating_mul(lists.saturating_add(of_writer))
    }

    /// Memory in bytes.
    pub(super) fn memory(&self) -> usize {
        let all = self.writers.iter().map(|(_, it)| it).chain(&self.spare);
        let lists = all.map(|it| it.begun.capacity() + it.ended.capacity());
        lists.sum::<usize>() * size_of::<u32>()
            + self.writers.capacity() * size_of::<(Guid, Registered)>()
            + self.spare.capacity() * size_of::<Registered>()
    }

    fn find(&self, writer: Guid) -> Result<usize, usize> {
        self.writers.binary_search_by_key(&writer, |(guid, _)| *guid)
    }
}

impl Registered {
    fn remove(&mut self, instance: u32, is_fixed: bool) {
        if self.begun.last() == Some(&instance) {
            self.begun.pop();
            return;
        }
        self.ended.push(instance);
        let spare = if is_fixed { SPARE_FIXED } else { SPARE };
        if self.ended.len() > self.begun.len() / 2 + spare {
            self.compact(is_fixed);
        }
    }

    /// Leaves each instance that it writes once in `begun`, in order.
    fn compact(&mut self, is_fixed: bool) {
        let Self { begun, ended } = self;
        begun.sort_unstable();
        ended.sort_unstable();
        let mut cancelled = ended.iter().peekable();
        begun.retain(|instance| cancelled.next_if_eq(&instance).is_none());
        ended.clear();
        if !is_fixed {
            self.ended = Vec::new();
            self.begun.shrink_to(2 * self.begun.len());
        }
    }
}

/// Instances that a writer ended which stay in its list, in addition to half of it.
const SPARE: usize = 64;
/// The same if all memory was reserved.
const SPARE_FIXED: usize = 8;

/// Room in `begun` for so many instances: each once, and those that were ended, at most half of `begun` and the spare.
fn begun_room(instances: usize) -> usize {
    instances.saturating_mul(2).saturating_add(2 * SPARE_FIXED + 2)
}

/// Room in `ended`.
fn ended_room(instances: usize) -> usize {
    instances.saturating_add(2 * SPARE_FIXED + 2)
}

#[cfg(test)]
mod tests {
    use weir_wire::{EntityId, GuidPrefix};

    use super::*;

    fn writer(number: u32) -> Guid {
        Guid::new(GuidPrefix([1; 12]), EntityId::user_writer(number, true))
    }

    #[test]
    fn what_a_writer_began_and_did_not_end_is_there_once_and_in_order() {
        let mut registrations = Registrations::default();
        for instance in [7, 3, 9, 5] {
            registrations.add(writer(1), instance);
            registrations.add(writer(2), instance + 1);
        }
        for _ in 0..3 {
            registrations.remove(writer(1), 3);
            registrations.remove(writer(1), 7);
            registrations.add(writer(1), 7);
            registrations.add(writer(1), 3);
        }
        registrations.remove(writer(1), 9);
        assert_eq!(registrations.take(writer(1)), [3, 5, 7]);
        assert_eq!(registrations.take(writer(1)), []);
        assert_eq!(registrations.take(writer(2)), [4, 6, 8, 10]);
    }

    #[test]
    fn instances_that_begin_and_end_all_the_time_take_no_more_memory() {
        let mut registrations = Registrations::default();
        (0..100).for_each(|instance| registrations.add(writer(1), instance));
        for round in 0..100_000 {
            registrations.remove(writer(1), round % 50);
            registrations.add(writer(1), round % 50);
        }
        assert!(registrations.memory() < 4096, "{}", registrations.memory());
        assert_eq!(registrations.take(writer(1)), (0..100).collect::<Vec<_>>());
    }
}
