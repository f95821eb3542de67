//! The window of a reliable writer: its maximum data in flight, in bytes as accounted by a
//! receiving kernel.
//!
//! A socket buffer is charged for whole kernel buffers, not for payload: a datagram of 100 bytes
//! costs about eight times that. A window in payload would overrun the buffers with small samples
//! and starve them with large ones. The window starts small, grows with what leaves the readers'
//! sockets, and backs off when much of what is sent is lost: a smaller window does not reduce
//! random loss, but it prevents buffer overruns. Weir readers announce their granted socket buffer,
//! and the window never exceeds half of it; others are paced by their acknowledgements.

use crate::config;

/// Returns what the kernel charges a receiving socket for a datagram of `len` bytes, approximately
/// and not less.
///
/// Linux: `skb->truesize` is the size of `struct sk_buff` (256) and of the data area. That holds
/// the headers and `struct skb_shared_info` (320) besides the payload, and is a power of two if it
/// is small.
pub(crate) const fn charge(len: usize) -> u64 {
    const SK_BUFF: u64 = 256;
    const HEADROOM: u64 = 448;
    let area = len as u64 + HEADROOM;
    if area <= 16_384 { SK_BUFF + area.next_power_of_two() } else { SK_BUFF + area + area / 8 }
}

/// The window of one writer.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    size: u64,
    limit: u64,
    is_slow_start: bool,
    /// Bytes that left the readers' sockets since the window was last evaluated, and bytes sent
    /// again, as accounted by the kernel.
    round: u64,
    repaired: u64,
    /// The bound while a path is paced, and what it includes for a large sample that is in flight as a whole.
    path_limit: Option<u64>,
    last: u64,
    /// `limit` without it.
    receive_limit: u64,
}

impl Window {
    pub(crate) fn new() -> Self {
        Self {
            size: config::WINDOW_INITIAL_BYTES,
            limit: config::WINDOW_UNKNOWN_READER_MAX_BYTES,
            is_slow_start: true,
            round: 0,
            repaired: 0,
            path_limit: None,
            last: 0,
            receive_limit: config::WINDOW_UNKNOWN_READER_MAX_BYTES,
        }
    }

    /// Returns the window in bytes, as accounted by the kernel.
    #[inline]
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Returns the window without what it includes for the last sample.
    #[inline]
    pub(crate) fn share(&self) -> u64 {
        self.size.saturating_sub(self.last)
    }

    /// Sets the upper bound from the smallest receive buffer announced by a matched reader, in
    /// bytes as accounted by its kernel; `None` if a reader announced none.
    pub(crate) fn set_receive_buffer(&mut self, announced: Option<u32>) {
        self.receive_limit = match announced {
            Some(bytes) => (u64::from(bytes) / 2).max(config::WINDOW_MIN_BYTES),
            None => config::WINDOW_UNKNOWN_READER_MAX_BYTES,
        };
        self.bound();
    }

    /// Sets the window to what a paced path carries, or leaves it to the readers' buffers again. What is paced does
    /// not collect in a socket's buffer, so it may be more than that holds. The last sample, charged with `last`, may
    /// be in flight besides.
    pub(crate) fn set_path_limit(&mut self, bytes: Option<u64>, last: u64) {
        let limit = bytes.map(|bytes| bytes + last);
        if self.path_limit != limit {
            self.path_limit = limit;
            self.bound();
        }
        self.last = if limit.is_some() { last } else { 0 };
    }

    fn bound(&mut self) {
        self.limit = self.path_limit.unwrap_or(self.receive_limit);
        self.size = if self.path_limit.is_some() { self.limit } else { self.size.min(self.limit) };
    }

    /// Handles that `bytes` have left the socket of the slowest reader: grows by as much at first,
    /// by a share later. Once per window, backs off if too much of it was sent again.
    pub(crate) fn on_acknowledged(&mut self, bytes: u64) {
        self.round += bytes;
        let growth = if self.is_slow_start { bytes } else { bytes / 16 };
        self.size = (self.size + growth).min(self.limit);
        if self.round >= self.size {
            if self.path_limit.is_none() && self.repaired > self.round / config::WINDOW_LOSS_SHARE {
                self.is_slow_start = false;
                self.size = (self.size - self.size / 4).max(config::WINDOW_MIN_BYTES);
            }
            (self.round, self.repaired) = (0, 0);
        }
    }

    /// Records that `bytes` were sent again.
    pub(crate) fn on_repaired(&mut self, bytes: u64) {
        self.repaired += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_datagrams_are_charged_for_whole_kernel_buffers() {
        assert_eq!(charge(32), 768);
        assert_eq!(charge(92), 256 + 1024);
        assert!(charge(63_000) < 74_000);
    }

    #[test]
    fn the_window_grows_to_half_of_what_the_reader_announced_and_backs_off_when_much_is_lost() {
        let mut window = Window::new();
        window.set_receive_buffer(Some(8 << 20));
        for _ in 0..100 {
            window.on_repaired(window.size() / 20);
            window.on_acknowledged(window.size() / 2);
        }
        assert_eq!(window.size(), 4 << 20);
        window.on_repaired(3 << 20);
        window.on_acknowledged(4 << 20);
        assert_eq!(window.size(), 3 << 20);
        for _ in 0..1_000 {
            window.on_repaired(window.size());
            window.on_acknowledged(window.size());
        }
        assert!(window.size() < config::WINDOW_MIN_BYTES * 9 / 8, "{}", window.size());
        window.set_receive_buffer(Some(1024));
        assert_eq!(window.size(), config::WINDOW_MIN_BYTES);
    }
}
