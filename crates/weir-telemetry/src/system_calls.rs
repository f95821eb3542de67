//! Counts the system calls of this process, and its instructions in user space.

use std::fs;
use std::io;

use perf_event::events::{Hardware, Tracepoint};
use perf_event::{Builder, Counter};
use thiserror::Error;

/// Counts the system calls of the creating thread and of all threads started later, until it is
/// dropped.
///
/// Also counts the calls that send and receive on sockets separately, and the instructions in user
/// space.
///
/// The count is the kernel's own (`perf_event_open(2)` on the tracepoint `raw_syscalls:sys_enter`).
/// While it runs, every system call of the process takes the kernel's slower entry path: use it to
/// find costs, not to measure times.
#[derive(Debug)]
pub struct SystemCalls {
    counter: Counter,
    /// Calls that send; `None` if the kernel has no tracepoints per system call.
    sends: Option<Vec<Counter>>,
    /// Calls that receive.
    receives: Option<Vec<Counter>>,
    /// Instructions in user space; `None` if the processor does not count them.
    instructions: Option<Counter>,
}

/// Numbers of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemCallCounts {
    /// Of all kinds.
    pub all: u64,
    /// Calls that send on a socket (`sendto`, `sendmsg`, `sendmmsg`); `None` if the kernel has no
    /// tracepoints per system call.
    pub sends: Option<u64>,
    /// Calls that receive on a socket (`recvfrom`, `recvmsg`, `recvmmsg`), including those that
    /// found nothing.
    pub receives: Option<u64>,
    /// Instructions in user space; `None` if the processor does not count them, as on many virtual
    /// machines.
    pub instructions: Option<u64>,
}

/// The reason why system calls cannot be counted.
#[derive(Debug, Error)]
pub enum SystemCallsError {
    /// There is no tracepoint.
    #[error(
        "the kernel shows no tracepoint for system calls (mount -t tracefs tracefs /sys/kernel/tracing, as root): {0}"
    )]
    NoTracepoint(io::Error),
    /// Permission is missing.
    #[error("the kernel refuses the count (run as root, or sysctl -w kernel.perf_event_paranoid=-1): {0}")]
    Refused(io::Error),
}

impl SystemCalls {
    /// Starts counting. Call it before starting the threads that are to be counted.
    ///
    /// # Errors
    /// If the kernel has no such count, or this process may not use it; the text says what to do.
    pub fn start() -> Result<Self, SystemCallsError> {
        let counter = count("raw_syscalls/sys_enter")?;
        let of = |calls: [&str; 3]| {
            calls.iter().map(|call| count(&format!("syscalls/sys_enter_{call}")).ok()).collect()
        };
        let sends = of(["sendto", "sendmsg", "sendmmsg"]);
        let receives = of(["recvfrom", "recvmsg", "recvmmsg"]);
        let instructions = begin(Builder::new(Hardware::INSTRUCTIONS).inherit(true)).ok();
        Ok(Self { counter, sends, receives, instructions })
    }

    /// Returns the counts so far; `None` if the kernel no longer provides them.
    #[must_use]
    pub fn counts(&mut self) -> Option<SystemCallCounts> {
        let sum = |counters: &mut Option<Vec<Counter>>| {
            counters.as_mut()?.iter_mut().map(|counter| counter.read().ok()).sum()
        };
        let (sends, receives) = (sum(&mut self.sends), sum(&mut self.receives));
        let instructions = self.instructions.as_mut().and_then(|counter| counter.read().ok());
        // A counter that was never scheduled has no value.
        let instructions = instructions.filter(|count| *count > 0);
        Some(SystemCallCounts { all: self.counter.read().ok()?, sends, receives, instructions })
    }
}

/// Starts counting how often a tracepoint is hit.
fn count(tracepoint: &str) -> Result<Counter, SystemCallsError> {
    let id = FOLDERS
        .iter()
        .map(|folder| fs::read_to_string(format!("{folder}/events/{tracepoint}/id")))
        .reduce(Result::or)
        .unwrap_or_else(|| Err(io::ErrorKind::NotFound.into()))
        .and_then(|text| text.trim().parse().map_err(io::Error::other))
        .map_err(SystemCallsError::NoTracepoint)?;
    // System calls are entered in the kernel: without it there is nothing to count.
    begin(Builder::new(Tracepoint::with_id(id)).inherit(true).include_kernel())
        .map_err(SystemCallsError::Refused)
}

fn begin(builder: &Builder<'_>) -> io::Result<Counter> {
    let mut counter = builder.build()?;
    counter.enable()?;
    Ok(counter)
}

/// The tracepoint folders, on newer and older kernels.
const FOLDERS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::thread;

    use super::*;

    #[test]
    fn calls_of_later_threads_count_or_the_reason_says_what_to_do() {
        match SystemCalls::start() {
            Ok(mut calls) => {
                let looking = thread::spawn(|| (0..100).for_each(|_| drop(fs::metadata("/"))));
                looking.join().unwrap();
                assert!(calls.counts().unwrap().all >= 100);
            }
            Err(reason) => assert!(reason.to_string().contains("root"), "{reason}"),
        }
    }

    #[test]
    fn calls_that_send_and_receive_are_told_from_others() {
        let Ok(mut calls) = SystemCalls::start() else { return };
        let socket = || UdpSocket::bind("127.0.0.1:0").unwrap();
        let (one, other) = (socket(), socket());
        one.connect(other.local_addr().unwrap()).unwrap();
        let before = calls.counts().unwrap();
        for _ in 0..10 {
            one.send(&[1]).unwrap();
            other.recv(&mut [0]).unwrap();
        }
        other.set_nonblocking(true).unwrap();
        other.recv(&mut [0]).unwrap_err();
        let after = calls.counts().unwrap();
        let since =
            |of: fn(&SystemCallCounts) -> Option<u64>| of(&after).zip(of(&before)).map(|(a, b)| a - b);
        // Some kernels are built without these tracepoints.
        assert!([None, Some(10)].contains(&since(|counts| counts.sends)), "{before:?} {after:?}");
        assert!([None, Some(11)].contains(&since(|counts| counts.receives)), "{before:?} {after:?}");
        assert!(after.all - before.all >= 22);
        // Each iteration takes some instructions; not every processor counts them.
        assert!(since(|counts| counts.instructions).is_none_or(|count| count > 100), "{before:?} {after:?}");
    }
}
