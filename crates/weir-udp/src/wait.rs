//! Waits for several sockets at once, and wakes a waiting thread.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};

use crate::{UdpSocket, Wait};

/// Maximum number of sockets per [`poll`].
pub const MAX_POLL_SOCKETS: usize = 63;

/// Calls `receive` until it has something or `timeout` has passed.
///
/// Calls it repeatedly for `spin`, then, if that is less than `timeout`, once more, blocking. The
/// blocking call may wait for the full `timeout` again after spinning. So the socket's receive
/// timeout never has to be changed.
///
/// # Errors
/// Those of `receive`, and of setting the timeout of `socket`.
#[inline]
pub fn receive_within<T>(
    socket: &UdpSocket,
    spin: Duration,
    timeout: Duration,
    mut receive: impl FnMut(Wait) -> io::Result<Option<T>>,
) -> io::Result<Option<T>> {
    if !spin.is_zero() {
        let start = Instant::now();
        loop {
            for _ in 0..RECEIVES_PER_CLOCK_READ {
                if let Some(received) = receive(Wait::DontWait)? {
                    return Ok(Some(received));
                }
                std::hint::spin_loop();
            }
            if start.elapsed() >= spin.min(timeout) {
                break;
            }
        }
        if spin >= timeout {
            return Ok(None);
        }
    }
    socket.set_recv_timeout(Some(timeout))?;
    receive(Wait::Block)
}

/// Receive calls of a spinning receiver per clock read.
const RECEIVES_PER_CLOCK_READ: u32 = 16;

/// Waits until a socket is readable, `waker` is woken, or `timeout` (`None`: no limit) has passed.
///
/// A socket is a [`UdpSocket`] or a [`NetworkWatch`](crate::NetworkWatch), by reference or as a
/// [`BorrowedFd`](std::os::fd::BorrowedFd).
///
/// A zero timeout only polls. The resolution is nanoseconds; for how late the kernel may be see
/// [`crate::affinity::set_timer_slack_ns`]. A signal ends the wait early, like a timeout: check the
/// clock.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] for more than [`MAX_POLL_SOCKETS`] sockets.
pub fn poll<S: AsFd>(sockets: &[S], waker: Option<&Waker>, timeout: Option<Duration>) -> io::Result<Ready> {
    if sockets.len() > MAX_POLL_SOCKETS {
        let text = format!("cannot wait for {} sockets: at most {MAX_POLL_SOCKETS}", sockets.len());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let mut watched = [libc::pollfd { fd: -1, events: libc::POLLIN, revents: 0 }; MAX_POLL_SOCKETS + 1];
    for (entry, socket) in watched.iter_mut().zip(sockets) {
        entry.fd = socket.as_fd().as_raw_fd();
    }
    let mut count = sockets.len();
    if let Some(waker) = waker {
        watched[count].fd = waker.fd.as_raw_fd();
        count += 1;
    }
    let timeout = timeout.map(|timeout| libc::timespec {
        tv_sec: libc::time_t::try_from(timeout.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: timeout.subsec_nanos() as _,
    });
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: `watched` has at least `count` entries and lives through the call; its descriptors
    // are open, because sockets and waker are borrowed; `timeout` is null or points to a local that
    // the call only reads; a null signal mask is allowed.
    let result = unsafe { libc::ppoll(watched.as_mut_ptr(), count as _, timeout, std::ptr::null()) };
    if result < 0 {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::Interrupted { Ok(Ready::default()) } else { Err(error) };
    }
    let mut ready = Ready::default();
    for (index, entry) in watched[..count].iter().enumerate() {
        // The next receive fetches an error of the socket (POLLERR), so it counts as readable.
        if entry.revents != 0 {
            if index < sockets.len() {
                ready.readable |= 1 << index;
            } else {
                ready.woken = true;
            }
        }
    }
    Ok(ready)
}

/// The result of [`poll`], or of [`CombinedFd::ready`](crate::CombinedFd::ready).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    readable: u64,
    woken: bool,
}

impl Ready {
    /// Returns whether the socket at `index` of the slice given to [`poll`] is readable.
    pub fn is_readable(&self, index: usize) -> bool {
        index < MAX_POLL_SOCKETS && self.readable & (1 << index) != 0
    }

    /// Returns whether the waker was woken; [`Waker::drain`] it.
    pub fn is_woken(&self) -> bool {
        self.woken
    }

    /// Returns whether neither was the case: a timeout or a signal.
    pub fn is_empty(&self) -> bool {
        self.readable == 0 && !self.woken
    }

    /// Iterates over the indices of the readable sockets.
    pub fn readable(&self) -> impl Iterator<Item = usize> + use<> {
        let readable = self.readable;
        (0..MAX_POLL_SOCKETS).filter(move |index| readable & (1 << index) != 0)
    }
}

/// Collects the numbers of readable descriptors.
impl FromIterator<u64> for Ready {
    fn from_iter<I: IntoIterator<Item = u64>>(numbers: I) -> Self {
        let readable = numbers.into_iter().fold(0, |readable, number| readable | 1 << (number & 63));
        Self { readable, woken: false }
    }
}

/// Wakes a thread out of [`poll`] (an eventfd). Waking it again before it has noticed costs no
/// system call.
#[derive(Debug)]
pub struct Waker {
    fd: OwnedFd,
    /// Woken and not drained since.
    pending: AtomicBool,
}

impl Waker {
    /// Creates a waker that is not woken.
    ///
    /// # Errors
    /// The process is out of file descriptors.
    pub fn new() -> io::Result<Self> {
        let fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { fd, pending: AtomicBool::new(false) })
    }

    /// Makes the current or next [`poll`] with this waker return. What the caller did before is
    /// visible to the thread that drains.
    pub fn wake(&self) {
        if !self.pending.swap(true, Ordering::AcqRel) {
            // The counter cannot overflow (each write follows a drain), and an open eventfd has no
            // other error.
            let _ = rustix::io::write(&self.fd, &1_u64.to_ne_bytes());
        }
    }

    /// Returns whether it was woken and not drained since.
    pub fn is_woken(&self) -> bool {
        self.pending.load(Ordering::Acquire)
    }

    /// Clears all wakes so far; returns whether there was one. Check the reasons for the wakes
    /// *after* this call.
    pub fn drain(&self) -> bool {
        // The order matters. If `pending` were cleared first, the read could swallow a wake in
        // between and leave `pending` set with nothing to read: no later wake would get through.
        // This way such a wake writes nothing, but the caller sees its reason, which is checked
        // after the swap.
        let _ = rustix::io::read(&self.fd, &mut [0; 8]);
        self.pending.swap(false, Ordering::AcqRel)
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
