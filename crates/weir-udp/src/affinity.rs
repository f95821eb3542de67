//! Which CPU a thread runs on, and how exactly its timers fire.

use std::io;
use std::num::NonZeroU64;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};

use crate::sys;
use crate::threads;

/// Lets the calling thread run on `cpu` only; threads that it starts later inherit that.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] when there is no such CPU or this process may not use it.
pub fn pin_current_thread(cpu: usize) -> io::Result<()> {
    Ok(sched_setaffinity(None, &only(cpu)?)?)
}

/// Lets every thread of this process, and those that they start later, run on `cpu` only.
///
/// # Errors
/// As for [`pin_current_thread`]; or /proc is not mounted.
pub fn pin_process(cpu: usize) -> io::Result<()> {
    threads::own_threads()?.iter().try_for_each(|thread| thread.pin(cpu))
}

/// The CPUs that the calling thread may run on, in ascending order.
///
/// # Errors
/// The host has more CPUs than the set can name (1024).
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect())
}

/// Lets the kernel delay the calling thread's timed waits by up to `slack_ns` to save wake-ups. Its
/// default is 50 000 ns; 1 is as exact as it gets, 0 goes back to the default.
///
/// # Errors
/// None known.
pub fn set_timer_slack_ns(slack_ns: u64) -> io::Result<()> {
    Ok(set_current_timer_slack(NonZeroU64::new(slack_ns))?)
}

/// Lets the calling thread run only when nothing else wants its processor (`SCHED_IDLE`).
///
/// # Errors
/// None known: a thread may always lower its own priority.
pub fn set_idle_priority() -> io::Result<()> {
    sys::set_scheduler(0, libc::SCHED_IDLE, 0)
}

pub(crate) fn only(cpu: usize) -> io::Result<CpuSet> {
    if cpu >= CpuSet::MAX_CPU {
        let text = format!("CPU {cpu} does not exist: the highest possible is {}", CpuSet::MAX_CPU - 1);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(set)
}
