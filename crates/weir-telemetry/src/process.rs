//! What this process used so far.

use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use weir_results::ProcessFigures;

/// Processor time, context switches and peak memory of this process since it started, over all its
/// threads, ended ones too. For a stretch of time, subtract with [`ProcessFigures::since`].
///
/// `getrusage(2)` rather than /proc: that knows context switches of living threads only, and time in
/// steps of 10 ms. All zeros should the call fail, which it can't for one's own process.
#[must_use]
pub fn process_figures() -> ProcessFigures {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return ProcessFigures::default() };
    ProcessFigures {
        cpu_user_s: seconds(usage.user_time()),
        cpu_system_s: seconds(usage.system_time()),
        context_switches_voluntary: count(usage.voluntary_context_switches()),
        context_switches_involuntary: count(usage.involuntary_context_switches()),
        max_rss_kib: count(usage.max_rss()),
    }
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
