//! The limit of the process's address space.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

pub(crate) const MIB: usize = 1024 * 1024;

static ALONE: Mutex<()> = Mutex::new(());

/// Limits what the process may have until it is dropped, and keeps other tests that do so out.
pub(crate) struct Limit {
    before: Rlimit,
    _alone: MutexGuard<'static, ()>,
}

impl Limit {
    /// The process may have `bytes` more than it has now.
    pub(crate) fn more_than_now(bytes: usize) -> Self {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let before = getrlimit(Resource::As);
        let current = Some((address_space() + bytes) as u64);
        setrlimit(Resource::As, Rlimit { current, ..before }).unwrap();
        Self { before, _alone }
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        setrlimit(Resource::As, self.before).unwrap();
    }
}

/// Bytes of the address space that are taken.
fn address_space() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    size.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}
