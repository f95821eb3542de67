//! Tasks that wait in an event loop.

use std::collections::{BTreeMap, VecDeque};
use std::task::Waker;

use parking_lot::Mutex;

use super::observers::wake;

/// Tasks to be woken at the next news, each once.
#[derive(Default)]
pub(crate) struct Tasks(Mutex<List>);

#[derive(Default)]
struct List {
    /// Those of futures and streams, by the number of their place.
    placed: BTreeMap<u64, Waker>,
    /// The number of the last place.
    last: u64,
    /// Those that polled without a future, oldest first: at most [`POLLS_MAX`].
    polls: VecDeque<Waker>,
}

/// The place of a future or stream among the tasks, which it leaves when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Place(u64);

/// A future that waits.
pub(crate) struct Waiting<'a> {
    tasks: &'a Tasks,
    place: Place,
}

impl Tasks {
    /// Has the task of a future or stream woken. It replaces the task that polled this one before.
    pub(crate) fn add(&self, place: &mut Place, waker: &Waker) {
        let mut list = self.0.lock();
        if place.0 == 0 {
            list.last += 1;
            place.0 = list.last;
        }
        let is_known = list.placed.get(&place.0).is_some_and(|known| known.will_wake(waker));
        let replaced = if is_known { None } else { list.placed.insert(place.0, waker.clone()) };
        // A waker is dropped without the lock: that may call the executor.
        drop(list);
        drop(replaced);
    }

    /// Has a task woken that polls without a future. If there are too many, the oldest is woken now: it polls again if
    /// it still waits.
    pub(crate) fn add_poll(&self, waker: &Waker) {
        let mut list = self.0.lock();
        if list.polls.iter().any(|known| known.will_wake(waker)) {
            return;
        }
        list.polls.push_back(waker.clone());
        let oldest = if list.polls.len() > POLLS_MAX { list.polls.pop_front() } else { None };
        drop(list);
        oldest.into_iter().for_each(wake);
    }

    /// Removes the task of a future or stream that ends.
    pub(crate) fn remove(&self, place: &Place) {
        let removed = self.0.lock().placed.remove(&place.0);
        drop(removed);
    }

    /// Begins the wait of a future.
    pub(crate) fn wait(&self) -> Waiting<'_> {
        Waiting { tasks: self, place: Place::default() }
    }

    /// Wakes all. No lock may be held.
    pub(crate) fn wake(&self) {
        let (placed, polls) = {
            let mut list = self.0.lock();
            (core::mem::take(&mut list.placed), core::mem::take(&mut list.polls))
        };
        placed.into_values().chain(polls).for_each(wake);
    }
}

impl Waiting<'_> {
    /// Has the task woken that polls the future.
    pub(crate) fn add(&mut self, waker: &Waker) {
        self.tasks.add(&mut self.place, waker);
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.tasks.remove(&self.place);
    }
}

/// Most tasks that wait for one reader without a future or stream.
const POLLS_MAX: usize = 64;
