//! One descriptor for several others.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use crate::Ready;

/// Most descriptors that one [`CombinedFd::ready`] reports. The next one reports others.
const EVENTS_MAX: usize = 8;

/// A descriptor that is readable while one of several others is: an epoll instance. For [`poll`](crate::poll),
/// `poll(2)`, `epoll(7)` and what is built on them.
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

    /// Adds a descriptor, if it is not there yet. A closed one is removed by the kernel. [`CombinedFd::ready`] reports
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

    /// Returns the numbers of the descriptors that are readable, without waiting.
    ///
    /// # Errors
    /// None are known.
    pub fn ready(&self) -> io::Result<Ready> {
        let none = epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) };
        let mut events = [none; EVENTS_MAX];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        match epoll::wait(&self.epoll, &mut events, Some(&now)) {
            Ok(count) => Ok(events.iter().take(count).map(|event| event.data.u64()).collect()),
            Err(Errno::INTR) => Ok(Ready::default()),
            Err(error) => Err(error.into()),
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
    fn all_that_are_readable_are_reported_by_their_numbers() {
        let combined = CombinedFd::new().unwrap();
        let wakers: Vec<_> = (0..12).map(|_| Waker::new().unwrap()).collect();
        for (number, waker) in (0..).zip(&wakers) {
            combined.add(waker, number).unwrap();
        }
        assert!(combined.ready().unwrap().is_empty());
        for number in [2, 7] {
            wakers[number].wake();
        }
        assert_eq!(combined.ready().unwrap().readable().collect::<Vec<_>>(), [2, 7]);
        // More than one call reports: the next one has the others.
        wakers.iter().for_each(Waker::wake);
        let mut left: Vec<usize> = (0..wakers.len()).collect();
        while !left.is_empty() {
            let ready = combined.ready().unwrap();
            ready.readable().for_each(|number| _ = wakers[number].drain());
            let before = left.len();
            left.retain(|number| !ready.is_readable(*number));
            assert!(left.len() < before);
        }
    }
}
