//! The measured part of a run, as a receiver sees it, and the end of receiving.

use std::time::Duration;

use crate::nanos;

/// The measured part: begins when the warm-up is over, which itself begins with the first arrival.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    warmup_ns: u64,
    /// The first arrival.
    first_ns: Option<u64>,
    /// The last arrival of the warm-up.
    from_ns: Option<u64>,
    /// The last counted arrival.
    to_ns: Option<u64>,
}

impl Window {
    /// Nothing has arrived yet.
    #[must_use]
    pub fn new(warmup: Duration) -> Self {
        Self { warmup_ns: nanos(warmup), first_ns: None, from_ns: None, to_ns: None }
    }

    /// Something arrived; true when it ends the warm-up.
    #[inline]
    pub fn arrived(&mut self, now_ns: u64) -> bool {
        let first_ns = *self.first_ns.get_or_insert(now_ns);
        if self.from_ns.is_some() {
            self.to_ns = Some(now_ns);
        } else if now_ns - first_ns >= self.warmup_ns {
            self.from_ns = Some(now_ns);
            return true;
        }
        false
    }

    /// From the last arrival of the warm-up to the last counted one, if there are both.
    #[must_use]
    pub fn bounds_ns(&self) -> Option<(u64, u64)> {
        self.from_ns.zip(self.to_ns)
    }
}

/// When a receiver whose senders are done gives up on what is missing.
#[derive(Clone, Copy, Debug)]
pub struct Drain {
    quiet_ns: u64,
    limit_ns: u64,
    last_arrival_ns: u64,
    told_ns: Option<u64>,
}

impl Drain {
    /// Gives up when nothing arrived for `quiet`, and `limit` after the senders' end however much arrives.
    #[must_use]
    pub fn new(quiet: Duration, limit: Duration) -> Self {
        Self { quiet_ns: nanos(quiet), limit_ns: nanos(limit), last_arrival_ns: 0, told_ns: None }
    }

    /// Something arrived.
    #[inline]
    pub fn arrived(&mut self, now_ns: u64) {
        self.last_arrival_ns = now_ns;
    }

    /// Whether to give up. The first call is the senders' end.
    pub fn is_over(&mut self, now_ns: u64) -> bool {
        let told_ns = *self.told_ns.get_or_insert(now_ns);
        let quiet_since_ns = self.last_arrival_ns.max(told_ns);
        now_ns.saturating_sub(quiet_since_ns) >= self.quiet_ns
            || now_ns.saturating_sub(told_ns) >= self.limit_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_window_begins_with_the_arrival_that_ends_the_warm_up() {
        let mut window = Window::new(Duration::from_millis(10));
        let ends: Vec<bool> = [100, 105, 110, 112, 120].map(|ms| window.arrived(ms * MS)).to_vec();
        assert_eq!(ends, [false, false, true, false, false]);
        assert_eq!(window.bounds_ns(), Some((110 * MS, 120 * MS)));
        let mut early = Window::new(Duration::from_secs(1));
        early.arrived(1);
        assert_eq!(early.bounds_ns(), None);
    }

    #[test]
    fn a_receiver_gives_up_when_it_is_quiet_or_takes_too_long() {
        let drain = || Drain::new(Duration::from_millis(200), Duration::from_secs(10));
        let mut quiet = drain();
        quiet.arrived(50 * MS);
        assert!(!quiet.is_over(100 * MS) && !quiet.is_over(299 * MS) && quiet.is_over(300 * MS));
        let mut busy = drain();
        let is_over = |busy: &mut Drain, now: u64| {
            busy.arrived(now);
            busy.is_over(now)
        };
        assert!(
            !is_over(&mut busy, MS) && !is_over(&mut busy, 10_000 * MS) && is_over(&mut busy, 10_001 * MS)
        );
    }
}
