//! A queue whose elements are built in place. Passing one by value would copy it through memory, in
//! other units than it was written in, which causes a store-forwarding stall.

use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

/// Elements, indexed by their distance from the front.
#[derive(Debug)]
pub(super) struct Ring<T> {
    /// The slots used so far. Memory of the others is not touched yet.
    slots: Vec<T>,
    /// Number of slots, a power of two or 0, minus 1.
    mask: usize,
    /// The slot of the first element.
    head: usize,
    len: usize,
    /// Initial value of a slot.
    filler: T,
}

/// Number of slots of the smallest ring that is not empty.
const SLOTS_MIN: usize = 4;

impl<T: Copy> Ring<T> {
    pub(super) fn new(filler: T) -> Self {
        Self { slots: Vec::new(), mask: usize::MAX, head: 0, len: 0, filler }
    }

    /// Reserves slots for so many elements.
    pub(super) fn with_room(filler: T, elements: usize) -> Self {
        let slots = Self::room_for(elements);
        Self { slots: Vec::with_capacity(slots), mask: slots - 1, ..Self::new(filler) }
    }

    /// Number of slots to reserve for so many elements.
    pub(super) fn room_for(elements: usize) -> usize {
        elements.max(SLOTS_MIN).checked_next_power_of_two().unwrap_or(1 << (usize::BITS - 1))
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Number of elements for which there is memory.
    pub(super) fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    #[inline]
    fn slot(&self, index: usize) -> usize {
        self.head.wrapping_add(index) & self.mask
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&T> {
        if index < self.len { self.slots.get(self.slot(index)) } else { None }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let slot = self.slot(index);
        if index < self.len { self.slots.get_mut(slot) } else { None }
    }

    #[inline]
    pub(super) fn front(&self) -> Option<&T> {
        self.get(0)
    }

    /// All elements, first to last.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len).map(|index| &self[index])
    }

    /// Drops the first element, if there is one.
    #[inline]
    pub(super) fn pop_front(&mut self) {
        if self.len > 0 {
            self.head = self.slot(1);
            self.len -= 1;
        }
    }

    /// Always inlined, and without another use of the element, so that it is built in its slot.
    #[inline(always)]
    pub(super) fn push_back(&mut self, element: T) {
        if self.len > self.mask {
            self.grow();
        }
        let mut slot = self.slot(self.len);
        if slot >= self.slots.len() {
            slot = self.begin();
        }
        self.slots[slot] = element;
        self.len += 1;
    }

    /// Adds the next slot. Returns it.
    #[cold]
    #[inline(never)]
    fn begin(&mut self) -> usize {
        if self.len == self.mask.wrapping_add(1) {
            self.grow();
        }
        self.slots.push(self.filler);
        self.slot(self.len)
    }

    /// Keeps the elements that are wanted, in their order.
    pub(super) fn retain(&mut self, is_wanted: impl Fn(&T) -> bool) {
        let mut kept = 0;
        for index in 0..self.len {
            let element = self[index];
            if is_wanted(&element) {
                self[kept] = element;
                kept += 1;
            }
        }
        self.len = kept;
    }

    /// Doubles the number of slots of a full ring.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let before = self.len;
        let slots = (2 * before).max(SLOTS_MIN);
        self.slots.reserve_exact(slots - before);
        // Elements that had wrapped around to the first slots continue behind the last one.
        self.slots.extend_from_within(..self.head);
        self.mask = slots - 1;
    }
}

impl<T: Copy> Index<usize> for Ring<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: usize) -> &T {
        assert!(index < self.len, "no element {index} of {}", self.len);
        &self.slots[self.slot(index)]
    }
}

impl<T: Copy> IndexMut<usize> for Ring<T> {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut T {
        assert!(index < self.len, "no element {index} of {}", self.len);
        let slot = self.slot(index);
        &mut self.slots[slot]
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::VecDeque;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_behaves_as_a_queue(steps in vec((0..10_u8, any::<u16>()), 0..400)) {
            let (mut ring, mut model) = (Ring::new(0), VecDeque::new());
            for (step, value) in steps {
                match step {
                    0..6 => {
                        ring.push_back(value);
                        model.push_back(value);
                    }
                    6..8 => {
                        ring.pop_front();
                        model.pop_front();
                    }
                    8 if !model.is_empty() => {
                        let index = usize::from(value) % model.len();
                        ring[index] ^= 1;
                        model[index] ^= 1;
                    }
                    9 if value % 8 == 0 => {
                        ring.retain(|value| value % 3 > 0);
                        model.retain(|value| value % 3 > 0);
                    }
                    _ => {}
                }
                prop_assert_eq!(ring.len(), model.len());
                prop_assert_eq!(ring.front(), model.front());
                prop_assert_eq!(ring.get_mut(model.len()), None);
                prop_assert!(ring.iter().eq(&model));
                prop_assert!(ring.capacity() <= (2 * 400).max(SLOTS_MIN) && ring.slots.len() <= ring.mask.wrapping_add(1));
            }
        }
    }
}
