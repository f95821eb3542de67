//! Interruption by signals.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::exit::Failure;

/// Returns the flag that SIGINT and SIGTERM set. A second signal ends this process at once; its agents follow.
pub(crate) fn watch() -> Result<Arc<AtomicBool>, Failure> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        let registered =
            signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&interrupted))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&interrupted)));
        registered.map_err(|error| Failure::environment(anyhow::Error::new(error)))?;
    }
    Ok(interrupted)
}
