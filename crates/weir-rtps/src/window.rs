//! How much a reliable writer may have in flight: a window in bytes as a receiving kernel charges them.
//!
//! A socket buffer is charged for whole kernel buffers, not for payload: a datagram of 100 bytes costs about
//! eight times that. A window counted in payload would overrun the buffers of small samples and starve those
//! of large ones. The window starts small, doubles with what leaves the readers' sockets, and backs off when much
//! of what is sent is lost: random loss, which a smaller window would not make less, is no reason to slow down,
//! a buffer that is overrun is. Weir readers announce what their socket was granted, and the window never passes
//! half of it; others are paced by what they acknowledge.

use crate::config;

/// What the kernel charges a receiving socket for one datagram of `len` bytes, approximately and not less.
///
/// Linux: `skb->truesize` is the size of `struct sk_buff` (256) and of the data area, which holds the
/// headers and `struct skb_shared_info` (320) besides the payload and is a power of two when it is small.
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
    /// What left the readers' sockets since the window was last judged, and what had to be sent again, in
    /// bytes as the kernel charges them.
    round: u64,
    repaired: u64,
}

impl Window {
    pub(crate) fn new() -> Self {
        Self {
            size: config::WINDOW_INITIAL_BYTES,
            limit: config::WINDOW_UNKNOWN_READER_MAX_BYTES,
            is_slow_start: true,
            round: 0,
            repaired: 0,
        }
    }

    /// Bytes that may be in flight, charged.
    #[inline]
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Sets the upper bound from the smallest receive buffer that a matched reader announced, in bytes as
    /// its kernel charges them; `None` when some reader announced none.
    pub(crate) fn set_receive_buffer(&mut self, announced: Option<u32>) {
        self.limit = match announced {
            Some(bytes) => (u64::from(bytes) / 2).max(config::WINDOW_MIN_BYTES),
            None => config::WINDOW_UNKNOWN_READER_MAX_BYTES,
        };
        self.size = self.size.min(self.limit);
    }

    /// An acknowledgement says that `bytes` have left the socket of the slowest reader: grow by as much at first,
    /// by a share later. Once per window, back off when too much of it had to be sent again.
    pub(crate) fn on_acknowledged(&mut self, bytes: u64) {
        self.round += bytes;
        let growth = if self.is_slow_start { bytes } else { bytes / 16 };
        self.size = (self.size + growth).min(self.limit);
        if self.round >= self.size {
            if self.repaired > self.round / config::WINDOW_LOSS_SHARE {
                self.is_slow_start = false;
                self.size = (self.size - self.size / 4).max(config::WINDOW_MIN_BYTES);
            }
            (self.round, self.repaired) = (0, 0);
        }
    }

    /// `bytes` were sent again.
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
