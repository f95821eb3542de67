//! Where the background thread sleeps while application threads receive.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// The sleep of one thread, which others end.
#[derive(Default)]
pub(super) struct Parking {
    /// Whether it was woken since it last fell asleep or looked.
    is_kicked: Mutex<bool>,
    kicked: Condvar,
    /// It sleeps, or is about to, until [`Parking::leave`].
    waits_for_leave: AtomicBool,
}

impl Parking {
    /// Sleeps for `time`, or until [`Parking::kick`]. Returns whether it was that, also one before this call.
    pub(super) fn sleep(&self, time: Duration) -> bool {
        let mut is_kicked = self.is_kicked.lock();
        if !*is_kicked {
            self.kicked.wait_for(&mut is_kicked, time);
        }
        std::mem::take(&mut *is_kicked)
    }

    /// As [`Parking::sleep`], but [`Parking::leave`] ends it, too, which does not count as a kick. `is_anyone_there`
    /// returns whether that call is yet to come.
    pub(super) fn sleep_until_leave(&self, time: Duration, is_anyone_there: impl FnOnce() -> bool) -> bool {
        self.waits_for_leave.store(true, Ordering::SeqCst);
        // Either the last one is seen to have left here, or it sees the store above.
        if is_anyone_there() {
            let mut is_kicked = self.is_kicked.lock();
            let sleeps = |is_kicked: &mut bool| !*is_kicked && self.waits_for_leave.load(Ordering::SeqCst);
            self.kicked.wait_while_for(&mut is_kicked, sleeps, time);
        }
        self.waits_for_leave.store(false, Ordering::SeqCst);
        std::mem::take(&mut *self.is_kicked.lock())
    }

    /// Wakes the thread, or keeps it from its next sleep.
    pub(super) fn kick(&self) {
        *self.is_kicked.lock() = true;
        self.kicked.notify_all();
    }

    /// Wakes the thread if it sleeps until this call.
    #[inline]
    pub(super) fn leave(&self) {
        if self.waits_for_leave.load(Ordering::SeqCst) {
            self.wake_from_leave();
        }
    }

    #[cold]
    fn wake_from_leave(&self) {
        let _is_kicked = self.is_kicked.lock();
        self.waits_for_leave.store(false, Ordering::SeqCst);
        self.kicked.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOR_EVER: Duration = Duration::from_secs(3600);

    #[test]
    fn a_kick_before_the_sleep_is_not_lost_and_counts_once() {
        let parking = Parking::default();
        parking.kick();
        assert!(parking.sleep(FOR_EVER));
        assert!(!parking.sleep(Duration::from_nanos(1)));
    }

    #[test]
    fn only_a_sleep_that_waits_for_it_ends_when_the_last_one_leaves() {
        let parking = Parking::default();
        parking.leave();
        assert!(!parking.sleep(Duration::from_nanos(1)));
        // It left before.
        assert!(!parking.sleep_until_leave(FOR_EVER, || false));
        // It leaves at the last moment.
        assert!(!parking.sleep_until_leave(FOR_EVER, || {
            parking.leave();
            true
        }));
        for (wake, is_kick) in [(Parking::leave as fn(&Parking), false), (Parking::kick, true)] {
            std::thread::scope(|scope| {
                let sleeper = scope.spawn(|| parking.sleep_until_leave(FOR_EVER, || true));
                while !parking.waits_for_leave.load(Ordering::SeqCst) {
                    std::hint::spin_loop();
                }
                wake(&parking);
                assert_eq!(sleeper.join().unwrap(), is_kick);
            });
        }
    }
}
