//! Which instances each writer writes, so that those of a writer that leaves are found without a search.

use alloc::vec::Vec;

use weir_wire::Guid;

/// The instances of all writers that write some.
#[derive(Debug, Default)]
pub(super) struct Registrations {
    /// In the order of their GUIDs.
    writers: Vec<(Guid, Registered)>,
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
                self.writers.insert(index, (writer, Registered::default()));
                index
            }
        };
        self.writers[index].1.begun.push(instance);
    }

    /// Records that a writer no longer writes an instance, which it began to write.
    #[cold]
    pub(super) fn remove(&mut self, writer: Guid, instance: u32) {
        if let Ok(index) = self.find(writer) {
            self.writers[index].1.remove(instance);
        }
    }

    /// Removes a writer. Returns its instances in order.
    pub(super) fn take(&mut self, writer: Guid) -> Vec<u32> {
        let Ok(index) = self.find(writer) else { return Vec::new() };
        let (_, mut registered) = self.writers.remove(index);
        registered.compact();
        registered.begun
    }

    /// Memory in bytes.
    pub(super) fn memory(&self) -> usize {
        let lists = self.writers.iter().map(|(_, it)| it.begun.capacity() + it.ended.capacity());
        lists.sum::<usize>() * size_of::<u32>() + self.writers.capacity() * size_of::<(Guid, Registered)>()
    }

    fn find(&self, writer: Guid) -> Result<usize, usize> {
        self.writers.binary_search_by_key(&writer, |(guid, _)| *guid)
    }
}

impl Registered {
    fn remove(&mut self, instance: u32) {
        if self.begun.last() == Some(&instance) {
            self.begun.pop();
            return;
        }
        self.ended.push(instance);
        if self.ended.len() > self.begun.len() / 2 + SPARE {
            self.compact();
        }
    }

    /// Leaves each instance that it writes once in `begun`, in order.
    fn compact(&mut self) {
        self.begun.sort_unstable();
        self.ended.sort_unstable();
        let mut ended = core::mem::take(&mut self.ended).into_iter().peekable();
        self.begun.retain(|instance| ended.next_if_eq(instance).is_none());
        self.begun.shrink_to(2 * self.begun.len());
    }
}

/// Instances that a writer ended which stay in its list, in addition to half of it.
const SPARE: usize = 64;

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
