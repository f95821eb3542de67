//! A thread that takes samples, in place of a listener.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use weir_dds::{DataReader, DataReaderListener};

use super::settings::Receive;
use weir_bench::test_data::Owned;

/// Calls `take` for what arrives, until `stop`; when fewer than `count` samples are there, after `delay`.
pub(super) fn read<T: Owned>(
    reader: &DataReader<T>,
    delay: Duration,
    count: usize,
    stop: &AtomicBool,
    mut take: impl FnMut(),
) {
    while !stop.load(Ordering::Relaxed) {
        if reader.wait_for_data(LOOK_AROUND) {
            if !delay.is_zero() && reader.available() < count {
                std::thread::sleep(delay);
            }
            take();
        }
    }
}

/// How often a reading thread checks whether to end.
const LOOK_AROUND: Duration = Duration::from_millis(100);

/// The thread; dropping it ends the thread.
pub(super) struct Reading {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Reading {
    /// Starts a thread that does the listener's work; `None` without that setting.
    pub(super) fn start<T: Owned>(
        receive: Receive,
        reader: &DataReader<T>,
        listener: impl DataReaderListener<T> + 'static,
    ) -> Option<Self> {
        let Receive::Thread { delay, count } = receive else { return None };
        let (reader, stop) = (reader.clone(), Arc::new(AtomicBool::new(false)));
        let told = Arc::clone(&stop);
        let take = move || {
            let take = || listener.on_data_available(&reader);
            read(&reader, delay, count, &told, take);
        };
        Some(Self { stop, thread: Some(std::thread::spawn(take)) })
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
