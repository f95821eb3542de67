//! State that most endpoints never need.
//!
//! In a large domain, each endpoint has hundreds of matches, most of which never lose anything. What only repairs need
//! is allocated when it is first changed; reading it before reads that of all others.

use alloc::boxed::Box;
use core::fmt::Debug;
use core::ops::{Deref, DerefMut};

/// State that can be left out until it changes.
pub(crate) trait Idle: Debug + Sized + 'static {
    /// What it is at first.
    const IDLE: Self;

    /// The same, to be read by all that have not changed it.
    fn idle() -> &'static Self;
}

/// State that is allocated when it is first changed.
#[derive(Debug)]
pub(crate) struct OnDemand<T>(Option<Box<T>>);

impl<T> Default for OnDemand<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> OnDemand<T> {
    /// Returns the state, if it was changed.
    #[inline]
    pub(crate) fn changed(&mut self) -> Option<&mut T> {
        self.0.as_deref_mut()
    }

    /// Returns whether there is anything to read but the idle state.
    #[inline]
    pub(crate) fn is_changed(&self) -> bool {
        self.0.is_some()
    }

    /// Forgets the changes and frees their memory, unless it is to be kept.
    pub(crate) fn free_unless(&mut self, is_kept: bool) {
        if !is_kept {
            self.0 = None;
        }
    }

    /// Uses memory that was reserved.
    pub(crate) fn reserve(&mut self, memory: Box<T>) {
        self.0 = Some(memory);
    }

    /// Returns the memory.
    pub(crate) fn into_memory(self) -> Option<Box<T>> {
        self.0
    }
}

impl<T: Idle> Deref for OnDemand<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        match &self.0 {
            Some(changed) => changed,
            None => T::idle(),
        }
    }
}

impl<T: Idle> DerefMut for OnDemand<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_with(|| Box::new(T::IDLE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Number {
        value: u8,
    }

    impl Idle for Number {
        const IDLE: Self = Self { value: 3 };

        fn idle() -> &'static Self {
            static IDLE: Number = Number::IDLE;
            &IDLE
        }
    }

    #[test]
    fn what_was_not_changed_takes_no_memory() {
        let mut number = OnDemand::<Number>::default();
        assert_eq!((number.value, number.is_changed(), size_of_val(&number)), (3, false, size_of::<usize>()));
        number.value += 1;
        assert_eq!((number.value, number.is_changed()), (4, true));
    }
}
