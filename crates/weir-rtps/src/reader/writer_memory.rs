//! A bounded record of writers that are not matched, oldest first.

use alloc::collections::VecDeque;

use weir_wire::Guid;

/// A value for each of the last `MAX` writers.
#[derive(Debug)]
pub(super) struct WriterMemory<T, const MAX: usize> {
    list: VecDeque<(Guid, T)>,
    max: usize,
}

impl<T, const MAX: usize> Default for WriterMemory<T, MAX> {
    fn default() -> Self {
        Self { list: VecDeque::new(), max: MAX }
    }
}

impl<T, const MAX: usize> WriterMemory<T, MAX> {
    /// Reserves memory for so many writers, at most `MAX`.
    pub(super) fn fixed(writers: usize) -> Self {
        let max = writers.min(MAX);
        Self { list: VecDeque::with_capacity(max), max }
    }

    /// Memory for so many writers, in bytes.
    pub(super) fn bytes(writers: usize) -> usize {
        writers.min(MAX) * size_of::<(Guid, T)>()
    }

    /// The value of a writer.
    pub(super) fn get_mut(&mut self, writer: Guid) -> Option<&mut T> {
        self.list.iter_mut().find(|(known, _)| *known == writer).map(|(_, value)| value)
    }

    /// Adds a writer that is not there. Returns whether another one was forgotten for it.
    pub(super) fn add(&mut self, writer: Guid, value: T) -> bool {
        let is_full = self.list.len() >= self.max;
        if is_full {
            self.list.pop_front();
        }
        self.list.push_back((writer, value));
        is_full
    }

    /// Removes a writer. Returns its value.
    pub(super) fn remove(&mut self, writer: Guid) -> Option<T> {
        let index = self.list.iter().position(|(known, _)| *known == writer)?;
        self.list.remove(index).map(|(_, value)| value)
    }

    /// Memory in bytes.
    pub(super) fn memory(&self) -> usize {
        self.list.capacity() * size_of::<(Guid, T)>()
    }
}
