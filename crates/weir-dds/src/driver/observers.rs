//! What waits for changes of an entity: wait sets.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::Waker;

use parking_lot::Mutex;

/// Why conditions may have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Something happened: a condition may have become true.
    News,
    /// The application has read samples or a status: conditions may have become false. Those for samples that were
    /// read may have become true.
    Access,
}

/// Is called after changes, with no lock held. It may lock what conditions depend on.
pub(crate) trait Observe: Send + Sync {
    fn changed(&self, cause: Cause);
}

type List = Arc<[Weak<dyn Observe>]>;

/// The observers of an entity.
#[derive(Default)]
pub(crate) struct Observers {
    /// Replaced when it changes, so that it is not locked during calls.
    list: Mutex<Option<List>>,
    is_any: AtomicBool,
}

impl Observers {
    /// Adds an observer. Several conditions of one wait set may each add it.
    pub(crate) fn add(&self, observer: Weak<dyn Observe>) {
        self.replace(|list| list.filter(|it| it.strong_count() > 0).chain([observer]).collect());
    }

    /// Undoes one [`Observers::add`].
    pub(crate) fn remove(&self, observer: &Weak<dyn Observe>) {
        self.replace(|list| {
            let mut is_found = false;
            let is_it = |it: &Weak<dyn Observe>| {
                let is_first = !is_found && Weak::ptr_eq(it, observer);
                is_found |= is_first;
                is_first
            };
            let mut is_it = is_it;
            list.filter(|it| it.strong_count() > 0 && !is_it(it)).collect()
        });
    }

    pub(crate) fn is_any(&self) -> bool {
        self.is_any.load(Ordering::Relaxed)
    }

    /// Calls all. No lock may be held.
    ///
    /// They may call the application's code. A panic there, which the panic hook reports, ends neither the other calls
    /// nor the engine's thread.
    pub(crate) fn notify(&self, cause: Cause) {
        if !self.is_any() {
            return;
        }
        let list = self.list.lock().clone();
        for observer in list.iter().flat_map(|list| list.iter()).filter_map(Weak::upgrade) {
            let _ = catch_unwind(AssertUnwindSafe(|| observer.changed(cause)));
        }
    }

    fn replace(
        &self,
        change: impl FnOnce(&mut dyn Iterator<Item = Weak<dyn Observe>>) -> Vec<Weak<dyn Observe>>,
    ) {
        let mut list = self.list.lock();
        let before = list.take();
        let after = change(&mut before.iter().flat_map(|list| list.iter()).cloned());
        self.is_any.store(!after.is_empty(), Ordering::Relaxed);
        *list = (!after.is_empty()).then(|| after.into());
    }
}

/// Wakes a task. A panic of its executor, which the panic hook reports, keeps no other one from being woken.
pub(crate) fn wake(task: Waker) {
    _ = catch_unwind(AssertUnwindSafe(|| task.wake()));
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    #[derive(Default)]
    struct Counts(AtomicU32);

    impl Observe for Counts {
        fn changed(&self, _: Cause) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn an_observer_is_called_until_it_is_removed_as_often_as_it_was_added_or_is_gone() {
        let observers = Observers::default();
        let (one, other) = (Arc::new(Counts::default()), Arc::new(Counts::default()));
        let weak = |it: &Arc<Counts>| {
            let weak: Weak<dyn Observe> = Arc::<Counts>::downgrade(it);
            weak
        };
        for it in [&one, &one, &other] {
            observers.add(weak(it));
        }
        observers.notify(Cause::News);
        observers.remove(&weak(&one));
        observers.notify(Cause::News);
        let counts = || [&one, &other].map(|it| it.0.load(Ordering::Relaxed));
        assert_eq!(counts(), [3, 2]);
        observers.remove(&weak(&one));
        observers.notify(Cause::News);
        assert_eq!(counts(), [3, 3]);
        drop(other);
        observers.remove(&weak(&one));
        assert!(!observers.is_any());
    }
}
