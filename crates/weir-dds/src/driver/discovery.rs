//! The state of discovery, and waiting for matches.

use parking_lot::{Condvar, Mutex};
use weir_rtps::outbox::Outbox;
use weir_rtps::packing::Packing;
use weir_rtps::participant::ParticipantCore;
use weir_rtps::time::Time;

use super::sender::Sender;
use crate::clock;

/// The participant's discovery state. Its lock also keeps discovery events in order.
pub(crate) struct Discovery {
    pub(super) state: Mutex<State>,
    /// Notified after every change of matches.
    changed: Condvar,
    epoch: Mutex<u64>,
}

pub(super) struct State {
    pub(super) core: ParticipantCore,
    pub(super) outbox: Outbox,
    pub(super) user_outbox: Outbox,
    pub(super) packing: Packing,
    pub(super) sender: Sender,
}

impl Discovery {
    pub(crate) fn new(core: ParticipantCore) -> Self {
        let (outbox, user_outbox, packing) = (Outbox::new(), Outbox::new(), Packing::default());
        let state = Mutex::new(State { core, outbox, user_outbox, packing, sender: Sender::default() });
        Self { state, changed: Condvar::new(), epoch: Mutex::new(0) }
    }

    /// Wakes threads that wait for matches.
    pub(super) fn announce_change(&self) {
        *self.epoch.lock() += 1;
        self.changed.notify_all();
    }

    /// Sleeps until `is_done` after a change of matches, or until `deadline`. Returns whether it is
    /// done.
    pub(crate) fn wait_until(&self, deadline: Time, mut is_done: impl FnMut() -> bool) -> bool {
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
