//! One thread at a time calls the listeners of an entity.
//!
//! No thread waits for the one that does so: it leaves its event to that thread, which calls for it next. Thus a
//! listener may block, call the engine, and drop entities.

use parking_lot::Mutex;

/// Which thread calls the listeners of an entity, and for what it is to call them next.
#[derive(Debug, Default)]
pub(crate) struct ListenerTurn {
    /// [`this_thread`]; 0: no thread.
    caller: usize,
    /// A set of events: one bit each.
    pending: u16,
}

impl ListenerTurn {
    /// Returns whether a thread has the turn.
    #[inline]
    pub(super) fn is_taken(&self) -> bool {
        self.caller != 0
    }

    /// Returns whether this thread has it.
    pub(super) fn is_mine(&self) -> bool {
        self.caller == this_thread()
    }

    /// Leaves an event to the thread that has the turn.
    #[inline]
    pub(super) fn leave(&mut self, event: u16) {
        self.pending |= event;
    }

    /// Takes the turn, which no thread may have.
    #[inline]
    pub(super) fn take(&mut self) {
        self.caller = this_thread();
    }

    /// Takes the turn, or leaves the event to the thread that has it. Returns whether it was taken.
    pub(super) fn begin(&mut self, event: u16) -> bool {
        let is_free = !self.is_taken();
        if is_free {
            self.take();
        } else {
            self.leave(event);
        }
        is_free
    }

    /// Ends the turn, unless events were left to this thread. Returns whether it has ended.
    #[inline]
    pub(super) fn end(&mut self) -> bool {
        let is_over = self.pending == 0;
        if is_over {
            self.caller = 0;
        }
        is_over
    }

    /// Returns the next event that was left to this thread, lowest bit first. `None`: the turn has ended.
    pub(super) fn next(&mut self) -> Option<u16> {
        if self.end() {
            return None;
        }
        let event = 1 << self.pending.trailing_zeros();
        self.pending &= !event;
        Some(event)
    }
}

/// Calls for an event and for those that are left to this thread meanwhile, or leaves it to the thread that has the
/// turn. No lock may be held.
pub(crate) fn call_in_turn(turn: &Mutex<ListenerTurn>, event: u16, call: impl Fn(u16)) {
    if !turn.lock().begin(event) {
        return;
    }
    let mut next = Some(event);
    while let Some(event) = next {
        call(event);
        next = turn.lock().next();
    }
}

thread_local! {
    static PLACE: u8 = const { 0 };
}

/// Returns a number that no other thread has while this one runs: the address of a variable of its own. It costs less
/// than the thread's id.
#[inline]
fn this_thread() -> usize {
    PLACE.with(|place| core::ptr::from_ref(place) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_to_the_thread_that_calls_is_called_after_the_present_call_and_once() {
        let (turn, calls) = (&Mutex::default(), &Mutex::new(Vec::new()));
        call_in_turn(turn, 1, |event| {
            calls.lock().push(event);
            if event == 1 {
                std::thread::scope(|scope| {
                    for event in [4, 2, 4] {
                        scope.spawn(move || call_in_turn(turn, event, |_| calls.lock().push(99)));
                    }
                });
                assert!(turn.lock().is_mine());
            }
        });
        assert_eq!(*calls.lock(), [1, 2, 4]);
        assert!(!turn.lock().is_taken());
    }
}
