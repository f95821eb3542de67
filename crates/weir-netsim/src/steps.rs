//! A value of a link that changes in steps at given times.

use core::time::Duration;

/// A value over time. The steps are known in advance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Steps<T> {
    /// Start and value of each step, in order of time. The first one starts at zero.
    steps: Vec<(Duration, T)>,
}

impl<T: Copy> Steps<T> {
    pub(crate) fn constant(value: T) -> Self {
        Self { steps: vec![(Duration::ZERO, value)] }
    }

    /// Changes the value from `at` on, until the next step.
    pub(crate) fn change(&mut self, at: Duration, value: T) {
        let index = self.steps.partition_point(|(start, _)| *start < at);
        if self.steps.get(index).is_some_and(|(start, _)| *start == at) {
            self.steps.remove(index);
        }
        self.steps.insert(index, (at, value));
    }

    /// Returns the value at a time.
    pub(crate) fn at(&self, time: Duration) -> T {
        self.steps[self.index(time)].1
    }

    /// Returns the values from the step at `time` on, each with its end.
    pub(crate) fn from(&self, time: Duration) -> impl Iterator<Item = (T, Option<Duration>)> {
        let first = self.index(time);
        let ends = self.steps.iter().skip(first + 1).map(|(start, _)| Some(*start)).chain([None]);
        self.steps.iter().skip(first).map(|(_, value)| *value).zip(ends)
    }

    fn index(&self, time: Duration) -> usize {
        self.steps.partition_point(|(start, _)| *start <= time).saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn steps_may_come_in_any_order_and_replace_each_other() {
        let mut one = Steps::constant(1);
        one.change(2 * MS, 3);
        one.change(MS, 2);
        one.change(MS, 5);
        assert_eq!(one.steps, [(Duration::ZERO, 1), (MS, 5), (2 * MS, 3)]);
        assert_eq!([0, 1, 2, 3].map(|at| one.at(at * MS)), [1, 5, 3, 3]);
    }
}
