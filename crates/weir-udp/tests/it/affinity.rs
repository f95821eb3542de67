//! Pinning. Each test runs in its own thread and pins only that one.

use std::io;

use weir_udp::affinity::{allowed_cpus, pin_current_thread, set_timer_slack_ns};

#[test]
fn pinned_thread_has_one_cpu_and_passes_it_on() {
    let before = allowed_cpus().unwrap();
    assert!(!before.is_empty() && before.is_sorted());
    for cpu in before {
        pin_current_thread(cpu).unwrap();
        assert_eq!(allowed_cpus().unwrap(), [cpu]);
        assert_eq!(std::thread::spawn(allowed_cpus).join().unwrap().unwrap(), [cpu]);
    }
}

#[test]
fn absent_cpu_is_refused() {
    let before = allowed_cpus().unwrap();
    for cpu in [1023, 1024, usize::MAX] {
        if !before.contains(&cpu) {
            assert_eq!(pin_current_thread(cpu).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
    }
    assert_eq!(allowed_cpus().unwrap(), before);
}

#[test]
fn timer_slack_reaches_the_kernel() {
    let slack_ns = || std::fs::read_to_string("/proc/thread-self/timerslack_ns").unwrap_or_default();
    let default = slack_ns();
    set_timer_slack_ns(1).unwrap();
    // Old kernels do not have the file.
    if !default.is_empty() {
        assert_eq!(slack_ns().trim(), "1");
    }
    set_timer_slack_ns(0).unwrap();
    assert_eq!(slack_ns(), default);
}
