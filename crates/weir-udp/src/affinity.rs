//! Pins threads to CPUs, and sets the precision of their timers.

use std::io;
use std::num::NonZeroU64;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};

use crate::sys;
use crate::threads;

/// Restricts the calling thread to `cpu`; threads that it starts later inherit this.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] if the CPU does not exist or this process may not use it.
pub fn pin_current_thread(cpu: usize) -> io::Result<()> {
    Ok(sched_setaffinity(None, &only(cpu)?)?)
}

/// Restricts every thread of this process, and threads they start later, to `cpu`.
///
/// # Errors
/// As for [`pin_current_thread`]; or /proc is not mounted.
pub fn pin_process(cpu: usize) -> io::Result<()> {
    threads::own_threads()?.iter().try_for_each(|thread| thread.pin(cpu))
}

/// Returns the CPUs that the calling thread may use, in ascending order.
///
/// # Errors
/// The host has more CPUs than the set can hold (1024).
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect())
}

/// Lets the kernel delay the calling thread's timed waits by up to `slack_ns` to save wake-ups.
///
/// The default is 50 000 ns; 1 is the most precise, 0 restores the default.
///
/// # Errors
/// None known.
pub fn set_timer_slack_ns(slack_ns: u64) -> io::Result<()> {
    Ok(set_current_timer_slack(NonZeroU64::new(slack_ns))?)
}

/// Lets the calling thread run only on otherwise idle processors (`SCHED_IDLE`).
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
