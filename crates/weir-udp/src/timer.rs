//! A timer that other threads set without waking the thread that waits for it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

/// A timerfd: a descriptor that becomes readable at a set time, for [`poll`](crate::poll).
///
/// Another thread can set an earlier time without waking the waiting thread, unlike with a [`Waker`](crate::Waker).
#[derive(Debug)]
pub struct Timer {
    fd: OwnedFd,
}

impl Timer {
    /// Creates a timer that is not set.
    ///
    /// # Errors
    /// The process is out of file descriptors.
    pub fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        Ok(Self { fd: timerfd_create(TimerfdClockId::Monotonic, flags)? })
    }

    /// Sets the timer to a time of the monotonic clock, in nanoseconds; `None`: never. The descriptor is not readable
    /// because of an earlier time any more.
    pub fn set(&self, at_ns: Option<u64>) {
        // Zero would disarm it.
        let at = at_ns.map_or(0, |at| at.max(1));
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let it_value = Timespec { tv_sec: (at / 1_000_000_000) as i64, tv_nsec: (at % 1_000_000_000) as _ };
        let time = Itimerspec { it_interval: zero, it_value };
        // A valid time on an open timer is never refused.
        let _ = timerfd_settime(&self.fd, TimerfdTimerFlags::ABSTIME, &time);
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::poll;

    fn is_readable(timer: &Timer) -> bool {
        poll(&[timer], None, Some(Duration::ZERO)).unwrap().is_readable(0)
    }

    #[test]
    fn it_is_readable_since_its_time_until_another_is_set() {
        let timer = Timer::new().unwrap();
        assert!(!is_readable(&timer));
        timer.set(Some(1));
        assert!(is_readable(&timer));
        timer.set(None);
        assert!(!is_readable(&timer));
        timer.set(Some(0));
        assert!(is_readable(&timer));
        timer.set(Some(u64::MAX));
        assert!(!is_readable(&timer));
    }
}
