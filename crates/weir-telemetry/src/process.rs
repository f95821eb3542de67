//! What this process used so far.

use std::fs;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use procfs::process::Process;
use weir_results::ProcessFigures;

/// Processor time, context switches and peak memory of this process since it started, over all its
/// threads, ended ones too. For a stretch of time, subtract with [`ProcessFigures::since`], and call
/// [`reset_peak_memory`] before it.
///
/// `getrusage(2)` rather than /proc: that knows context switches of living threads only, and time in
/// steps of 10 ms. All zeros should the call fail, which it can't for one's own process. The peak of memory
/// is `VmHWM` of /proc, since `getrusage` begins with the peak of the program that started this one.
#[must_use]
pub fn process_figures() -> ProcessFigures {
    let usage = process_usage();
    ProcessFigures { max_rss_kib: peak_memory_kib().unwrap_or(usage.max_rss_kib), ..usage }
}

/// The same by one system call: the peak of memory is then that of the whole life, and what started this
/// program is in it.
pub(crate) fn process_usage() -> ProcessFigures {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return ProcessFigures::default() };
    ProcessFigures {
        cpu_user_s: seconds(usage.user_time()),
        cpu_system_s: seconds(usage.system_time()),
        context_switches_voluntary: count(usage.voluntary_context_switches()),
        context_switches_involuntary: count(usage.involuntary_context_switches()),
        max_rss_kib: count(usage.max_rss()),
        ..ProcessFigures::default()
    }
}

/// Processor time of the calling thread since it started, in user mode and in the kernel. Zero should
/// the call fail, which it can't for one's own thread.
#[must_use]
pub fn thread_times() -> (Duration, Duration) {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_THREAD) else { return (Duration::ZERO, Duration::ZERO) };
    (duration(usage.user_time()), duration(usage.system_time()))
}

/// Forgets the peak of this process's memory: it begins anew with what is in use now. Where the kernel
/// does not let us, the peak stays that of the process's whole life.
pub fn reset_peak_memory() {
    // 5: reset the peak resident set size, proc_pid_clear_refs(5).
    let _ = fs::write("/proc/self/clear_refs", "5");
}

fn peak_memory_kib() -> Option<u64> {
    Process::myself().and_then(|process| process.status()).ok()?.vmhwm
}

fn duration(time: TimeVal) -> Duration {
    Duration::from_secs(count(time.tv_sec())) + Duration::from_micros(count(time.tv_usec()))
}

fn seconds(time: TimeVal) -> f64 {
    Duration::new(count(time.tv_sec()), 0).as_secs_f64() + time.tv_usec() as f64 / 1e6
}

fn count(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_of_memory_is_forgotten_on_request() {
        let block = std::hint::black_box(vec![1_u8; 64 << 20]);
        let with_block = process_figures().max_rss_kib;
        drop(block);
        // The kernel's counters are a little behind; half a block is far beyond that.
        let half_block = 32 << 10;
        assert!(process_figures().max_rss_kib + half_block >= with_block);
        reset_peak_memory();
        assert!(process_figures().max_rss_kib + half_block < with_block);
    }

    #[test]
    fn a_busy_process_has_used_time_and_memory() {
        let before = process_figures();
        let mut sum = 0_u64;
        // Work until the kernel has accounted for some of it.
        while process_figures().since(&before).cpu_user_s + process_figures().since(&before).cpu_system_s
            <= 0.0
        {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(before.max_rss_kib > 0);
    }
}
