//! Resource use of this process.

use std::fs;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use procfs::process::Process;
use weir_results::ProcessFigures;

/// Returns processor time, context switches and peak memory of this process since it started.
///
/// Covers all its threads, ended ones too. For an interval, subtract with
/// [`ProcessFigures::since`], and call [`reset_peak_memory`] before it.
///
/// Uses `getrusage(2)` rather than /proc, which has context switches of live threads only, and time
/// in steps of 10 ms. All zeros if the call fails, which it cannot for the own process. The peak of
/// memory is `VmHWM` of /proc, because that of `getrusage` starts with the peak of the parent
/// program.
#[must_use]
pub fn process_figures() -> ProcessFigures {
    let usage = process_usage();
    ProcessFigures { max_rss_kib: peak_memory_kib().unwrap_or(usage.max_rss_kib), ..usage }
}

/// The same by one system call: the peak of memory then covers the whole lifetime, and includes the
/// parent program's.
pub(crate) fn process_usage() -> ProcessFigures {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return ProcessFigures::default() };
    ProcessFigures {
        cpu_user_s: duration(usage.user_time()).as_secs_f64(),
        cpu_system_s: duration(usage.system_time()).as_secs_f64(),
        context_switches_voluntary: count(usage.voluntary_context_switches()),
        context_switches_involuntary: count(usage.involuntary_context_switches()),
        max_rss_kib: count(usage.max_rss()),
        ..ProcessFigures::default()
    }
}

/// Returns the processor time of this process since it started, by one system call. Zero if the call fails, which it
/// cannot for the own process.
#[must_use]
pub fn process_time() -> Duration {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return Duration::ZERO };
    duration(usage.user_time()) + duration(usage.system_time())
}

/// Returns the processor time of the calling thread since it started, in user mode and in the
/// kernel. Zero if the call fails, which it cannot for the own thread.
#[must_use]
pub fn thread_times() -> (Duration, Duration) {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_THREAD) else { return (Duration::ZERO, Duration::ZERO) };
    (duration(usage.user_time()), duration(usage.system_time()))
}

/// Resets the peak of this process's memory to what is in use now. If the kernel refuses, the peak
/// stays that of the whole lifetime.
pub fn reset_peak_memory() {
    // 5: reset the peak resident set size, proc_pid_clear_refs(5).
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// Returns the resident memory of this process now, bytes; `None` if the kernel does not show it.
#[must_use]
pub fn resident_bytes() -> Option<u64> {
    parse_resident_kib(&fs::read_to_string("/proc/self/statm").ok()?).map(|kib| kib * 1024)
}

/// Parses the resident memory from `/proc/self/statm`, whose second number counts pages.
pub(crate) fn parse_resident_kib(text: &str) -> Option<u64> {
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * procfs::page_size() / 1024)
}

fn peak_memory_kib() -> Option<u64> {
    Process::myself().and_then(|process| process.status()).ok()?.vmhwm
}

fn duration(time: TimeVal) -> Duration {
    Duration::from_secs(count(time.tv_sec())) + Duration::from_micros(count(time.tv_usec()))
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
        // The kernel's counters lag a little; half a block is far more than that.
        let half_block = 32 << 10;
        assert!(process_figures().max_rss_kib + half_block >= with_block);
        reset_peak_memory();
        assert!(process_figures().max_rss_kib + half_block < with_block);
    }

    #[test]
    fn a_busy_process_has_used_time_and_memory() {
        let before = process_figures();
        let mut sum = 0_u64;
        // Works until the kernel has accounted for some of it.
        while process_figures().since(&before).cpu_user_s + process_figures().since(&before).cpu_system_s
            <= 0.0
        {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(before.max_rss_kib > 0);
    }
}
