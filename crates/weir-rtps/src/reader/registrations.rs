//! Which instances each writer writes, so that those of a writer that leaves are found without a search.
//!
//! A writer may leave with very many instances. They are handed out one by one, so that the reader can stop in between.
//! Meanwhile, the writer may be back, and write some of them: what it writes from then on is in a list of its own. An
//! instance is handed out before it enters that list, see [`Registrations::take_left`], so that it is in one of them.
//! Only sorting their numbers, if they are not in order, is done at once.

use alloc::vec::Vec;

use weir_wire::Guid;

/// The instances of all writers that write some.
#[derive(Debug, Default)]
pub(super) struct Registrations {
    /// In the order of their GUIDs.
    writers: Vec<(Guid, Registered)>,
    /// Reserved lists of writers that write nothing now.
    spare: Vec<Registered>,
    /// What writers have left that was not all handed out, in the order of leaving.
    leaving: Vec<(Guid, Registered)>,
    /// Whether all memory was reserved at the start.
    is_fixed: bool,
}

/// The instances of one writer.
#[derive(Debug, Default)]
struct Registered {
    /// Instances that it began to write, once for each time. After the writer has left: in order, each once, and with
    /// [`TAKEN`] if it was handed out before its turn.
    begun: Vec<u32>,
    /// Instances that it ended. Each cancels one of the same number in `begun`.
    ended: Vec<u32>,
    /// How many of `begun` were handed out since the writer left.
    handed_out: usize,
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

    /// Hands out the instances of a writer from now on. Returns whether there are any.
    pub(super) fn leave(&mut self, writer: Guid) -> bool {
        if let Ok(index) = self.find(writer) {
            let (_, mut registered) = self.writers.remove(index);
            registered.compact(self.is_fixed);
            match self.place_of_left(writer) {
                // It was back, and has left once more.
                Some(place) => {
                    self.leaving[place].1.add_left(&registered.begun);
                    self.give_back(registered);
                }
                None => self.leaving.push((writer, registered)),
            }
        }
        self.is_leaving(writer)
    }

    /// Hands out one instance of a writer that stays, and does not write it any more. `false`: no memory was reserved
    /// for that.
    pub(super) fn leave_one(&mut self, writer: Guid, instance: u32) -> bool {
        if self.is_fixed {
            return false;
        }
        let place = self.place_of_left(writer).unwrap_or_else(|| {
            self.leaving.push((writer, Registered::default()));
            self.leaving.len() - 1
        });
        self.leaving[place].1.add_one_left(instance);
        true
    }

    /// Returns whether instances of writers that have left were not handed out yet.
    #[inline]
    pub(super) fn has_left(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// Returns whether a writer has left, and not all of its instances were handed out.
    pub(super) fn is_leaving(&self, writer: Guid) -> bool {
        self.place_of_left(writer).is_some()
    }

    /// Returns whether a writer has left this instance, and it was not handed out yet.
    pub(super) fn is_left(&self, writer: Guid, instance: u32) -> bool {
        let left = self.place_of_left(writer).map(|place| &self.leaving[place].1);
        left.is_some_and(|left| left.position_of_left(instance).is_some())
    }

    /// Hands out an instance before its turn. Returns whether the writer has left it, and it was not handed out yet.
    pub(super) fn take_left(&mut self, writer: Guid, instance: u32) -> bool {
        let Some(place) = self.place_of_left(writer) else { return false };
        let left = &mut self.leaving[place].1;
        let position = left.position_of_left(instance);
        position.into_iter().for_each(|position| left.begun[position] |= TAKEN);
        position.is_some()
    }

    /// Hands out an instance of a writer that has left: those of a writer in order. `None` stands for their end.
    pub(super) fn next_left(&mut self) -> Option<(Guid, Option<u32>)> {
        let (writer, left) = self.leaving.first_mut()?;
        let writer = *writer;
        while let Some(instance) = left.begun.get(left.handed_out).copied() {
            left.handed_out += 1;
            if instance & TAKEN == 0 {
                return Some((writer, Some(instance)));
            }
        }
        let (_, left) = self.leaving.remove(0);
        self.give_back(left);
        Some((writer, None))
    }

    fn place_of_left(&self, writer: Guid) -> Option<usize> {
        self.leaving.iter().position(|(leaving, _)| *leaving == writer)
    }

    /// Keeps the memory of a list, if it was reserved.
    fn give_back(&mut self, mut registered: Registered) {
        if self.is_fixed {
            registered.begun.clear();
            registered.ended.clear();
            registered.handed_out = 0;
            self.spare.push(registered);
        }
    }

    /// Reserves memory for so many writers, which write all instances.
    pub(super) fn fixed(writers: usize, instances: usize) -> Self {
        let registered = || Registered {
            begun: Vec::with_capacity(begun_room(instances)),
            ended: Vec::with_capacity(ended_room(instances)),
            handed_out: 0,
        };
        let mut spare = Vec::with_capacity(writers);
        spare.extend((0..writers).map(|_| registered()));
        let leaving = Vec::with_capacity(writers);
        Self { writers: Vec::with_capacity(writers), spare, leaving, is_fixed: true }
    }

    /// Memory for so many writers, in bytes.
    pub(super) fn bytes(writers: usize, instances: usize) -> usize {
        let lists =
            (begun_room(instances).saturating_add(ended_room(instances))).saturating_mul(size_of::<u32>());
        let of_writer = 2 * size_of::<(Guid, Registered)>() + size_of::<Registered>();
        writers.saturating_mul(lists.saturating_add(of_writer))
    }

    /// Memory in bytes.
    pub(super) fn memory(&self) -> usize {
        let all = self.writers.iter().chain(&self.leaving).map(|(_, it)| it).chain(&self.spare);
        let lists = all.map(|it| it.begun.capacity() + it.ended.capacity());
        lists.sum::<usize>() * size_of::<u32>()
            + (self.writers.capacity() + self.leaving.capacity()) * size_of::<(Guid, Registered)>()
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

    /// The position of an instance that is to be handed out.
    fn position_of_left(&self, instance: u32) -> Option<usize> {
        let position = self.begun.binary_search_by_key(&instance, |it| it & !TAKEN).ok()?;
        (position >= self.handed_out && self.begun[position] == instance).then_some(position)
    }

    /// Adds what the writer has left once more to what was not handed out yet.
    fn add_left(&mut self, more: &[u32]) {
        self.begun.drain(..core::mem::take(&mut self.handed_out));
        self.begun.retain(|instance| instance & TAKEN == 0);
        self.begun.extend_from_slice(more);
        self.begun.sort_unstable();
    }

    /// Adds an instance to what was not handed out yet.
    fn add_one_left(&mut self, instance: u32) {
        self.begun.drain(..core::mem::take(&mut self.handed_out));
        match self.begun.binary_search_by_key(&instance, |it| it & !TAKEN) {
            Ok(position) => self.begun[position] = instance,
            Err(position) => self.begun.insert(position, instance),
        }
    }

    /// Leaves each instance that it writes once in `begun`, in order.
    fn compact(&mut self, is_fixed: bool) {
        let Self { begun, ended, .. } = self;
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

/// Marks an instance as handed out before its turn. Indices of instances are smaller: their memory would be larger than
/// that of any machine.
const TAKEN: u32 = 1 << 31;
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

    /// The instances that a writer leaves.
    fn left(registrations: &mut Registrations, writer: Guid) -> Vec<u32> {
        let mut instances = Vec::new();
        registrations.leave(writer);
        while let Some((of, Some(instance))) = registrations.next_left() {
            assert_eq!(of, writer);
            instances.push(instance);
        }
        assert!(!registrations.has_left() && !registrations.is_leaving(writer));
        instances
    }

    #[test]
    fn a_list_that_was_handed_out_says_nothing_of_its_next_writer() {
        let mut registrations = Registrations::fixed(1, 8);
        (1..5).for_each(|instance| registrations.add(writer(1), instance));
        assert!(registrations.leave(writer(1)));
        // A sample of it was held back until now.
        registrations.remove(writer(1), 2);
        assert_eq!(left(&mut registrations, writer(1)), [1, 2, 3, 4]);
        [2, 6].into_iter().for_each(|instance| registrations.add(writer(2), instance));
        assert_eq!(left(&mut registrations, writer(2)), [2, 6]);
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
        assert_eq!(left(&mut registrations, writer(1)), [3, 5, 7]);
        assert_eq!(left(&mut registrations, writer(1)), []);
        assert_eq!(left(&mut registrations, writer(2)), [4, 6, 8, 10]);
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
        assert_eq!(left(&mut registrations, writer(1)), (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn single_instances_are_handed_out_once_among_those_of_writers_that_have_left() {
        let mut registrations = Registrations::default();
        [7, 3, 5].into_iter().for_each(|instance| registrations.add(writer(1), instance));
        registrations.remove(writer(1), 3);
        assert!(registrations.leave_one(writer(1), 3) && registrations.has_left());
        assert!(registrations.is_left(writer(1), 3) && !registrations.is_left(writer(1), 5));
        assert!(registrations.leave(writer(1)));
        assert_eq!(registrations.next_left(), Some((writer(1), Some(3))));
        // It is back, and writes two of them once more: one that was handed out, one that was not.
        assert_eq!([3, 7].map(|instance| registrations.take_left(writer(1), instance)), [false, true]);
        assert!(registrations.leave_one(writer(1), 7) && registrations.leave_one(writer(1), 3));
        assert!([3, 5, 7].into_iter().all(|instance| registrations.is_left(writer(1), instance)));
        let rest: Vec<_> = core::iter::from_fn(|| registrations.next_left()).collect();
        assert_eq!(rest, [Some(3), Some(5), Some(7), None].map(|instance| (writer(1), instance)));
        assert!(!Registrations::fixed(1, 8).leave_one(writer(1), 3));
    }

    #[test]
    fn what_a_writer_has_left_and_begins_anew_is_handed_out_before_once() {
        for mut registrations in [Registrations::default(), Registrations::fixed(3, 10)] {
            for (number, instance) in [(1, 4), (1, 5), (1, 8), (2, 6), (3, 7)] {
                registrations.add(writer(number), instance);
            }
            assert!(registrations.leave(writer(1)) && registrations.leave(writer(2)));
            assert!(registrations.leave(writer(1)) && !registrations.leave(writer(4)));
            assert_eq!(registrations.next_left(), Some((writer(1), Some(4))));
            // It is back, and writes an instance that was handed out, one that was not, and another one.
            assert!(registrations.is_left(writer(1), 5) && !registrations.is_left(writer(2), 5));
            let taken = [4, 5, 9, 5].map(|instance| registrations.take_left(writer(1), instance));
            assert_eq!(taken, [false, true, false, false]);
            [9, 5].into_iter().for_each(|instance| registrations.add(writer(1), instance));
            // It leaves once more.
            assert!(registrations.leave(writer(1)));
            let taken = [8, 8].map(|instance| registrations.take_left(writer(1), instance));
            assert_eq!(taken, [true, false]);
            let mut rest = Vec::new();
            while let Some((of, instance)) = registrations.next_left() {
                rest.push((of, instance));
            }
            let one = [Some(5), Some(9), None].map(|instance| (writer(1), instance));
            assert_eq!(rest, [&one[..], &[(writer(2), Some(6)), (writer(2), None)]].concat());
            assert!(!registrations.is_leaving(writer(1)));
            assert_eq!(left(&mut registrations, writer(3)), [7]);
        }
    }
}
