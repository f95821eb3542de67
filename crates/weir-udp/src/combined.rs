//! One descriptor for several others.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll;
use rustix::io::Errno;

use crate::wait::{self, Ready};

/// Most events of one [`CombinedFd::wait`]. More are reported by the next one.
const EVENTS_MAX: usize = 8;

/// A descriptor that is readable while one of several others is: an epoll instance. For [`poll`](crate::poll),
/// `poll(2)`, `epoll(7)` and what is built on them, or for [`CombinedFd::wait`].
#[derive(Debug)]
pub struct CombinedFd {
    epoll: OwnedFd,
}

impl CombinedFd {
    /// Makes a descriptor for nothing yet.
    ///
    /// # Errors
    /// The process is out of file descriptors.
    pub fn new() -> io::Result<Self> {
        Ok(Self { epoll: epoll::create(epoll::CreateFlags::CLOEXEC)? })
    }

    /// Adds a descriptor, if it is not there yet. A closed one is removed by the kernel. [`CombinedFd::wait`] reports
    /// it as `number`, which is below [`MAX_POLL_SOCKETS`](crate::MAX_POLL_SOCKETS); several may have the same.
    ///
    /// # Errors
    /// The process is over a limit.
    pub fn add(&self, fd: impl AsFd, number: u8) -> io::Result<()> {
        let data = epoll::EventData::new_u64(number.into());
        match epoll::add(&self.epoll, fd, data, epoll::EventFlags::IN) {
            Err(Errno::EXIST) => Ok(()),
            other => Ok(other?),
        }
    }

    /// Waits until one of the descriptors is readable, or `timeout` has passed. Returns the numbers of those that are.
    ///
    /// As [`poll`](crate::poll), but the kernel is not given all descriptors again. A zero timeout only polls. A signal
    /// ends the wait early, like a timeout.
    ///
    /// # Errors
    /// None are known.
    #[inline]
    pub fn wait(&self, timeout: Duration) -> io::Result<Ready> {
        match self.wait_precisely(timeout) {
            // Before Linux 5.11, or in a sandbox that does not know the call.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => {
                wait::poll(&[self], None, Some(timeout))?;
                self.wait_for_milliseconds(0)
            }
            other => other,
        }
    }

    fn wait_precisely(&self, timeout: Duration) -> io::Result<Ready> {
        if timeout.is_zero() {
            return self.wait_for_milliseconds(0);
        }
        let timeout = wait::timespec(timeout);
        self.collect(|epoll, events| {
            // SAFETY: `events` points to `EVENTS_MAX` events that live through the call, which writes no more;
            // `timeout` is a local that it only reads; a null signal mask is allowed.
            unsafe {
                libc::syscall(
                    libc::SYS_epoll_pwait2,
                    epoll,
                    events,
                    EVENTS_MAX,
                    &raw const timeout,
                    std::ptr::null::<libc::sigset_t>(),
                    0_usize,
                )
            }
        })
    }

    fn wait_for_milliseconds(&self, timeout: libc::c_int) -> io::Result<Ready> {
        self.collect(|epoll, events| {
            // SAFETY: `events` points to `EVENTS_MAX` events that live through the call, which writes no more.
            unsafe { libc::epoll_wait(epoll, events, EVENTS_MAX as libc::c_int, timeout).into() }
        })
    }

    #[inline]
    fn collect(
        &self,
        call: impl FnOnce(libc::c_int, *mut libc::epoll_event) -> libc::c_long,
    ) -> io::Result<Ready> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS_MAX];
        match usize::try_from(call(self.epoll.as_raw_fd(), events.as_mut_ptr())) {
            Ok(count) => Ok(events.iter().take(count).map(|event| event.u64).collect()),
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(Ready::default()),
                error => Err(error),
            },
        }
    }
}

impl AsFd for CombinedFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Timer, Waker, poll};

    fn is_readable(combined: &CombinedFd) -> bool {
        poll(&[combined], None, Some(Duration::ZERO)).unwrap().is_readable(0)
    }

    #[test]
    fn it_is_readable_while_a_descriptor_is() {
        let combined = CombinedFd::new().unwrap();
        let waker = Waker::new().unwrap();
        combined.add(&waker, 3).unwrap();
        combined.add(&waker, 3).unwrap();
        assert!(!is_readable(&combined));
        waker.wake();
        assert!(is_readable(&combined) && waker.is_woken());
        waker.drain();
        assert!(!is_readable(&combined) && !waker.is_woken());
        waker.wake();
        drop(waker);
        assert!(!is_readable(&combined));
    }

    #[test]
    fn it_is_readable_since_the_time_of_a_timer_until_another_is_set() {
        let (combined, timer) = (CombinedFd::new().unwrap(), Timer::new().unwrap());
        combined.add(&timer, 0).unwrap();
        timer.set(Some(1));
        assert!(is_readable(&combined));
        timer.set(None);
        assert!(!is_readable(&combined));
        timer.set(Some(u64::MAX));
        assert!(!is_readable(&combined));
    }

    #[test]
    fn a_wait_returns_the_numbers_of_all_that_are_readable_and_ends_after_its_timeout() {
        let combined = CombinedFd::new().unwrap();
        let wakers: Vec<_> = (0..12).map(|_| Waker::new().unwrap()).collect();
        for (number, waker) in (0..).zip(&wakers) {
            combined.add(waker, number).unwrap();
        }
        for timeout in [Duration::ZERO, Duration::from_micros(1), Duration::from_millis(1)] {
            assert!(combined.wait(timeout).unwrap().is_empty());
        }
        for number in [2, 7] {
            wakers[number].wake();
        }
        let long = Duration::from_secs(3600);
        assert_eq!(combined.wait(long).unwrap().readable().collect::<Vec<_>>(), [2, 7]);
        assert_eq!(combined.wait(Duration::ZERO).unwrap(), combined.wait(long).unwrap());
        // More than one call reports: the next one has the others.
        wakers.iter().for_each(Waker::wake);
        let mut left: Vec<usize> = (0..wakers.len()).collect();
        while !left.is_empty() {
            let ready = combined.wait(long).unwrap();
            ready.readable().for_each(|number| _ = wakers[number].drain());
            let before = left.len();
            left.retain(|number| !ready.is_readable(*number));
            assert!(left.len() < before);
        }
    }
}
