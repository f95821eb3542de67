//! The state of discovery, and waiting for matches.

use std::panic::{AssertUnwindSafe, catch_unwind};

use parking_lot::{Condvar, Mutex};
use weir_rtps::outbox::Outbox;
use weir_rtps::packing::Packing;
use weir_rtps::participant::{DiscoveryCounters, ParticipantCore};
use weir_rtps::time::Time;

use crate::clock;

/// The participant's discovery state. Its lock also keeps discovery events in order.
pub(crate) struct Discovery {
    pub(super) state: Mutex<State>,
    /// Notified after every change of matches.
    changed: Condvar,
    epoch: Mutex<u64>,
    /// The first panic, with its thread.
    panic: Mutex<Option<(String, String)>>,
}

pub(super) struct State {
    pub(super) core: ParticipantCore,
    pub(super) outbox: Outbox,
    pub(super) user_outbox: Outbox,
    pub(super) packing: Packing,
}

impl State {
    /// Replaces the state, after a panic that may have left it inconsistent, by that of a closed participant. `send`
    /// sends the goodbye, if the state is sound enough for one.
    pub(super) fn reset(&mut self, send: impl FnOnce(&Outbox)) {
        let now = clock::now();
        let goodbye = || {
            let mut outbox = Outbox::new();
            self.core.close(now);
            self.core.poll_transmit(now, &mut outbox);
            send(&outbox);
        };
        let _ = catch_unwind(AssertUnwindSafe(goodbye));
        let mut core = ParticipantCore::new(self.core.config().clone(), now);
        core.close(now);
        core.poll_transmit(now, &mut Outbox::new());
        self.core = core;
        self.outbox.clear();
        self.user_outbox.clear();
    }
}

impl Discovery {
    pub(crate) fn new(core: ParticipantCore) -> Self {
        let (outbox, user_outbox, packing) = (Outbox::new(), Outbox::new(), Packing::default());
        let state = Mutex::new(State { core, outbox, user_outbox, packing });
        Self { state, changed: Condvar::new(), epoch: Mutex::new(0), panic: Mutex::new(None) }
    }

    pub(super) fn note_panic(&self, thread: String, text: String) {
        self.panic.lock().get_or_insert((thread, text));
    }

    /// Takes the thread and the text of a panic.
    pub(super) fn take_panic(&self) -> Option<(String, String)> {
        self.panic.lock().take()
    }

    /// Looks at the state without changing it.
    pub(crate) fn look<R>(&self, f: impl FnOnce(&ParticipantCore) -> R) -> R {
        f(&self.state.lock().core)
    }

    /// Returns counts of what was dropped.
    pub(crate) fn counters(&self) -> DiscoveryCounters {
        *self.state.lock().core.counters()
    }

    /// Wakes threads that wait for matches.
    pub(super) fn announce_change(&self) {
        *self.epoch.lock() += 1;
        self.changed.notify_all();
    }

    /// Sleeps until `is_done` after a change of matches or the end, or until `deadline`. Returns whether it is
    /// done.
    pub(super) fn wait_until(&self, deadline: Time, mut is_done: impl FnMut() -> bool) -> bool {
        let mut epoch = self.epoch.lock();
        loop {
            if is_done() {
                return true;
            }
            let left = deadline.since(clock::now());
            if left.is_zero() {
                return false;
            }
            self.changed.wait_for(&mut epoch, left);
        }
    }
}
