//! The limit of the process's address space.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

pub(crate) const MIB: usize = 1024 * 1024;

static ALONE: Mutex<()> = Mutex::new(());

/// Keeps other tests out until dropped: the limit applies to the process, and a test must be able
/// to start threads.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Limits the address space of the process until it is dropped.
pub(crate) struct Limit {
    before: Rlimit,
}

impl Limit {
    /// Allows `bytes` more than the process uses now.
    pub(crate) fn more_than_now(bytes: usize) -> Self {
        let before = getrlimit(Resource::As);
        let current = Some((address_space() + bytes) as u64);
        setrlimit(Resource::As, Rlimit { current, ..before }).unwrap();
        Self { before }
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        setrlimit(Resource::As, self.before).unwrap();
    }
}

/// Returns the size of the address space in use, in bytes.
fn address_space() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    size.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}
