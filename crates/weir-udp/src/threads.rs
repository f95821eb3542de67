//! The threads of this process by their names: which processor each runs on, and how urgently.

use std::fs;
use std::io;

use rustix::thread::{Pid, sched_setaffinity};

use crate::affinity::only;
use crate::sys;

/// The least and the greatest priority of `SCHED_FIFO`.
pub const FIFO_PRIORITIES: std::ops::RangeInclusive<i32> = 1..=99;

/// A thread of this process, as it was when it was listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnThread {
    id: i32,
    /// Its name, of which the kernel keeps 15 bytes.
    pub name: String,
}

/// All threads of this process, the main one first.
///
/// # Errors
/// When /proc is not mounted.
pub fn own_threads() -> io::Result<Vec<OwnThread>> {
    let mut threads = Vec::new();
    for entry in fs::read_dir("/proc/self/task")? {
        let entry = entry?;
        let id = entry.file_name().to_str().and_then(|name| name.parse().ok());
        // A thread may end while we walk through the list.
        let name = fs::read_to_string(entry.path().join("comm"));
        if let (Some(id), Ok(name)) = (id, name) {
            threads.push(OwnThread { id, name: name.trim_end().to_owned() });
        }
    }
    // Numbers begin anew at their highest, so the first thread may have a higher one than those that came later.
    threads.sort_by_key(|thread: &OwnThread| (!thread.is_main(), thread.id));
    Ok(threads)
}

impl OwnThread {
    /// Whether it is the process's first thread.
    #[must_use]
    pub fn is_main(&self) -> bool {
        u32::try_from(self.id) == Ok(std::process::id())
    }

    /// Lets it run on `cpu` only.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] when there is no such CPU or this process may not use it.
    pub fn pin(&self, cpu: usize) -> io::Result<()> {
        let set = only(cpu)?;
        gone_is_fine(sched_setaffinity(Pid::from_raw(self.id), &set).map_err(io::Error::from))
    }

    /// Lets it run before all threads of ordinary policies, and those of a lower priority (`SCHED_FIFO`).
    ///
    /// # Errors
    /// [`io::ErrorKind::PermissionDenied`] without CAP_SYS_NICE or a sufficient RLIMIT_RTPRIO;
    /// [`io::ErrorKind::InvalidInput`] for a priority outside of [`FIFO_PRIORITIES`].
    pub fn set_fifo_priority(&self, priority: i32) -> io::Result<()> {
        gone_is_fine(sys::set_scheduler(self.id, libc::SCHED_FIFO, priority))
    }
}

/// A thread that has ended needs nothing any more.
fn gone_is_fine(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        done => done,
    }
}
