//! A thread that takes samples, in place of a listener.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use weir_dds::{DataReader, DataReaderListener};
use weir_measure::{clock, nanos};

use weir_bench::test_data::Owned;

/// How often a reading thread checks whether to end.
const LOOK_AROUND: Duration = Duration::from_millis(100);

/// The thread; dropping it ends the thread.
pub(super) struct Reading {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Reading {
    /// Starts a thread that does the listener's work as soon as `count` samples are there, and `delay` after the first
    /// one at the latest.
    pub(super) fn start<T: Owned>(
        reader: DataReader<T>,
        delay: Duration,
        count: usize,
        listener: impl DataReaderListener<T> + 'static,
    ) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                if reader.wait_for_data(LOOK_AROUND).is_ok() {
                    let is_enough = || reader.available() >= count || is_over.load(Ordering::Relaxed);
                    wait_at_most(delay, is_enough, std::thread::sleep, clock::now_ns);
                    listener.on_data_available(&reader);
                }
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

/// Waits until `is_enough`, in steps, and for `delay` at most.
fn wait_at_most(
    delay: Duration,
    is_enough: impl Fn() -> bool,
    sleep: impl Fn(Duration),
    now_ns: impl Fn() -> u64,
) {
    if delay.is_zero() {
        return;
    }
    let step = (delay / 10).clamp(STEP_MIN, STEP_MAX);
    let end_ns = now_ns().saturating_add(nanos(delay));
    while !is_enough() {
        let left = Duration::from_nanos(end_ns.saturating_sub(now_ns()));
        if left.is_zero() {
            return;
        }
        sleep(left.min(step));
    }
}

/// How often a thread that waits for several samples looks how many are there.
const STEP_MIN: Duration = Duration::from_micros(10);
const STEP_MAX: Duration = Duration::from_millis(1);

impl Drop for Reading {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic has been reported on standard error.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// How long a wait of at most 10 ms takes if there is enough after `enough_after`, by a clock that only a sleep
    /// moves.
    fn waited(enough_after: Duration) -> Duration {
        let now_ns = Cell::new(7);
        let sleep = |length: Duration| now_ns.set(now_ns.get() + nanos(length));
        let is_enough = || now_ns.get() >= nanos(enough_after).saturating_add(7);
        wait_at_most(Duration::from_millis(10), is_enough, sleep, || now_ns.get());
        Duration::from_nanos(now_ns.get() - 7)
    }

    #[test]
    fn a_wait_for_several_samples_ends_when_they_are_there() {
        assert_eq!(waited(Duration::ZERO), Duration::ZERO);
        assert_eq!(waited(Duration::from_micros(3500)), Duration::from_millis(4));
        assert_eq!(waited(Duration::MAX / 2), Duration::from_millis(10));
    }
}
