//! The thread that receives for an engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use weir_peer_api::PeerError;

/// A thread that ends when this is dropped.
pub(crate) struct Worker {
    is_over: Arc<AtomicBool>,
    /// `None` once joined.
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Starts a thread that runs until it reads that it is over.
    pub(crate) fn start(
        name: &str,
        run: impl FnOnce(&AtomicBool) + Send + 'static,
    ) -> Result<Self, PeerError> {
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || run(&ends));
        let thread = thread.map_err(|error| PeerError::Engine(error.to_string()))?;
        Ok(Self { is_over, thread: Some(thread) })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // After a panic of the engine on that thread, its samples have been reported as missing.
            let _ = thread.join();
        }
    }
}
