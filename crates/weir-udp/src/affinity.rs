//! Pins threads to CPUs, and sets the precision of their timers.

use std::io;
use std::num::NonZeroU64;

use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity, set_current_timer_slack};

use crate::sys;
use crate::threads;

/// Restricts the calling thread to `cpu`; threads that it starts later inherit this.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] if the CPU does not exist or this process may not use it.
pub fn pin_current_thread(cpu: usize) -> io::Result<()> {
    restrict_current_thread(&[cpu])
}

/// Restricts the calling thread to `cpus`, as [`pin_current_thread`] does to one.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] if one of them does not exist or this process may not use it, or if there is none.
pub fn restrict_current_thread(cpus: &[usize]) -> io::Result<()> {
    restrict(None, cpus)
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

/// Restricts a thread of this process, or the calling one.
pub(crate) fn restrict(thread: Option<Pid>, cpus: &[usize]) -> io::Result<()> {
    let refused = |text: String| io::Error::new(io::ErrorKind::InvalidInput, text);
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu >= CpuSet::MAX_CPU {
            let highest = CpuSet::MAX_CPU - 1;
            return Err(refused(format!("CPU {cpu} does not exist: the highest possible is {highest}")));
        }
        set.set(cpu);
    }
    sched_setaffinity(thread, &set)?;
    // The kernel leaves out what the process may not use, as long as anything remains.
    let allowed = sched_getaffinity(thread)?;
    match cpus.iter().find(|cpu| !allowed.is_set(**cpu)) {
        Some(cpu) => Err(refused(format!("CPU {cpu} does not exist, or is not allowed here"))),
        None => Ok(()),
    }
}
