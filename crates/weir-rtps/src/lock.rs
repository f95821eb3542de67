//! What endpoints of a participant share: a mutex, or, without the standard library, a cell for one thread.

#[cfg(not(feature = "std"))]
use core::cell::{RefCell, RefMut};
#[cfg(feature = "std")]
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Shared state. Without the standard library it is not `Sync`, so one thread uses all endpoints of a participant.
#[cfg(feature = "std")]
#[derive(Debug, Default)]
pub(crate) struct Lock<T>(Mutex<T>);

/// Shared state of one thread.
#[cfg(not(feature = "std"))]
#[derive(Debug, Default)]
pub(crate) struct Lock<T>(RefCell<T>);

/// Access to shared state.
#[cfg(feature = "std")]
pub(crate) type Guard<'a, T> = MutexGuard<'a, T>;
/// Access to shared state.
#[cfg(not(feature = "std"))]
pub(crate) type Guard<'a, T> = RefMut<'a, T>;

#[cfg(feature = "std")]
impl<T> Lock<T> {
    #[inline]
    pub(crate) fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    #[inline]
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(not(feature = "std"))]
impl<T> Lock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(RefCell::new(value))
    }

    /// # Panics
    /// If the state is in use, where a mutex would never return.
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        self.0.borrow_mut()
    }
}
