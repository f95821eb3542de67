//! Interruption by signals.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;
use signal_hook::low_level;

use crate::exit::Failure;
use crate::progress;

/// Returns the flag that SIGINT and SIGTERM set. A second signal ends this process at once; its agents follow. The
/// terminal of a view is restored before, and while the process is stopped by SIGTSTP.
pub(crate) fn watch() -> Result<Arc<AtomicBool>, Failure> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let failure = |error: std::io::Error| Failure::environment(anyhow::Error::new(error));
    let signals = Signals::new([SIGINT, SIGTERM, SIGTSTP]).map_err(failure)?;
    let flag = Arc::clone(&interrupted);
    let body = move || listen(signals, &flag);
    thread::Builder::new().name("signals".to_owned()).spawn(body).map_err(failure)?;
    Ok(interrupted)
}

fn listen(mut signals: Signals, interrupted: &AtomicBool) {
    let mut has_interrupted = false;
    for signal in signals.forever() {
        if signal == SIGTSTP {
            progress::suspend();
            // Returns when the process is continued.
            let _ = low_level::emulate_default_handler(SIGTSTP);
            progress::resume();
        } else if has_interrupted {
            progress::restore();
            low_level::exit(130);
        } else {
            has_interrupted = true;
            interrupted.store(true, Ordering::Release);
        }
    }
}
