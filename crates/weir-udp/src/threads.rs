//! The threads of this process by name: their CPU and priority.

use std::fs;
use std::io;

use rustix::thread::Pid;

use crate::affinity;
use crate::sys;

/// A thread of this process, as of when it was listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnThread {
    id: i32,
    /// Its name; the kernel keeps 15 bytes.
    pub name: String,
}

/// Returns all threads of this process, the main one first.
///
/// # Errors
/// If /proc is not mounted.
pub fn own_threads() -> io::Result<Vec<OwnThread>> {
    let mut threads = Vec::new();
    for entry in fs::read_dir("/proc/self/task")? {
        let entry = entry?;
        let id = entry.file_name().to_str().and_then(|name| name.parse().ok());
        // A thread may end during the iteration.
        let name = fs::read_to_string(entry.path().join("comm"));
        if let (Some(id), Ok(name)) = (id, name) {
            threads.push(OwnThread { id, name: name.trim_end().to_owned() });
        }
    }
    // Thread ids wrap around, so the first thread may have a higher one than later threads.
    threads.sort_by_key(|thread: &OwnThread| (!thread.is_main(), thread.id));
    Ok(threads)
}

impl OwnThread {
    /// Returns whether it is the main thread.
    #[must_use]
    pub fn is_main(&self) -> bool {
        u32::try_from(self.id) == Ok(std::process::id())
    }

    /// Restricts it to `cpu`.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if the CPU does not exist or this process may not use it.
    pub fn pin(&self, cpu: usize) -> io::Result<()> {
        self.restrict(&[cpu])
    }

    /// Restricts it to `cpus`.
    ///
    /// # Errors
    /// As for [`OwnThread::pin`], if that holds for one of them.
    pub fn restrict(&self, cpus: &[usize]) -> io::Result<()> {
        gone_is_fine(affinity::restrict(Pid::from_raw(self.id), cpus))
    }

    /// Gives it precedence over all threads of ordinary policies, and over those of a lower
    /// priority (`SCHED_FIFO`).
    ///
    /// # Errors
    /// [`io::ErrorKind::PermissionDenied`] without CAP_SYS_NICE or a sufficient RLIMIT_RTPRIO;
    /// [`io::ErrorKind::InvalidInput`] for a priority outside of 1 to 99.
    pub fn set_fifo_priority(&self, priority: i32) -> io::Result<()> {
        gone_is_fine(sys::set_scheduler(self.id, libc::SCHED_FIFO, priority))
    }
}

/// Ignores that a thread has ended.
fn gone_is_fine(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        done => done,
    }
}
