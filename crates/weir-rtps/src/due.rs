//! The matched endpoints that an endpoint may owe an answer.

use core::ops::Range;

/// A range of indices: mostly one, since most answers are to what one peer has just sent.
#[derive(Debug, Default)]
pub(crate) struct Due {
    from: usize,
    /// 0: none.
    to: usize,
}

impl Due {
    /// Adds one.
    #[inline]
    pub(crate) fn add(&mut self, index: usize) {
        self.from = if self.to == 0 { index } else { self.from.min(index) };
        self.to = self.to.max(index + 1);
    }

    /// Adds one if an answer may be due.
    #[inline]
    pub(crate) fn add_if(&mut self, index: usize, is_due: bool) {
        if is_due {
            self.add(index);
        }
    }

    /// Adds all.
    #[inline]
    pub(crate) fn add_all(&mut self) {
        (self.from, self.to) = (0, usize::MAX);
    }

    /// Returns whether there is any.
    #[inline]
    pub(crate) fn is_any(&self) -> bool {
        self.to > 0
    }

    /// Takes the range, of `len` at most.
    pub(crate) fn take(&mut self, len: usize) -> Range<usize> {
        let Self { from, to } = core::mem::take(self);
        from.min(len)..to.min(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_spans_what_was_added() {
        let mut due = Due::default();
        assert!(!due.is_any() && due.take(9).is_empty());
        due.add(5);
        due.add_if(7, false);
        due.add_if(3, true);
        assert!(due.is_any());
        assert_eq!(due.take(9), 3..6);
        assert!(!due.is_any());
        due.add_all();
        due.add(2);
        assert_eq!(due.take(4), 0..4);
        due.add(6);
        assert!(due.take(4).is_empty(), "there are fewer now");
    }
}
