//! One descriptor for several sockets and a timer.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll;
use rustix::io::Errno;

use crate::Timer;

/// A descriptor that is readable while one of several others is, or since a timer expired: an epoll instance with a
/// timerfd. For [`poll`](crate::poll), `poll(2)`, `epoll(7)` and what is built on them.
#[derive(Debug)]
pub struct CombinedFd {
    epoll: OwnedFd,
    timer: Timer,
}

impl CombinedFd {
    /// Makes a descriptor for nothing yet.
    ///
    /// # Errors
    /// The process is out of file descriptors.
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let combined = Self { epoll, timer: Timer::new()? };
        combined.add(&combined.timer)?;
        Ok(combined)
    }

    /// Adds a descriptor, if it is not there yet. A closed one is removed by the kernel.
    ///
    /// # Errors
    /// The process is over a limit.
    pub fn add(&self, fd: impl AsFd) -> io::Result<()> {
        match epoll::add(&self.epoll, fd, epoll::EventData::new_u64(0), epoll::EventFlags::IN) {
            Err(Errno::EXIST) => Ok(()),
            other => Ok(other?),
        }
    }

    /// Sets the timer to a time of the monotonic clock, in nanoseconds; `None`: never. The descriptor is not readable
    /// because of an earlier time any more.
    pub fn set_timer(&self, at_ns: Option<u64>) {
        self.timer.set(at_ns);
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
    use crate::{Waker, poll};

    fn is_readable(combined: &CombinedFd) -> bool {
        poll(&[combined], None, Some(Duration::ZERO)).unwrap().is_readable(0)
    }

    #[test]
    fn it_is_readable_while_a_descriptor_is() {
        let combined = CombinedFd::new().unwrap();
        let waker = Waker::new().unwrap();
        combined.add(&waker).unwrap();
        combined.add(&waker).unwrap();
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
    fn it_is_readable_since_its_time_until_another_is_set() {
        let combined = CombinedFd::new().unwrap();
        combined.set_timer(Some(1));
        assert!(is_readable(&combined));
        combined.set_timer(None);
        assert!(!is_readable(&combined));
        combined.set_timer(Some(u64::MAX));
        assert!(!is_readable(&combined));
    }
}
