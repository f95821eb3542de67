//! A thread that takes samples, in place of a listener.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use weir_dds::{DataReader, DataReaderListener};

use weir_bench::test_data::Owned;

/// How often a reading thread checks whether to end.
const LOOK_AROUND: Duration = Duration::from_millis(100);

/// The thread; dropping it ends the thread.
pub(super) struct Reading {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Reading {
    /// Starts a thread that does the listener's work; when fewer than `count` samples are there, after `delay`.
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
                    if !delay.is_zero() && reader.available() < count {
                        std::thread::sleep(delay);
                    }
                    listener.on_data_available(&reader);
                }
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic has been reported on standard error.
            let _ = thread.join();
        }
    }
}
