//! How many system calls this process makes, and what it executes beside them, as the kernel and the processor count it.

use std::fs;
use std::io;

use perf_event::events::{Hardware, Tracepoint};
use perf_event::{Builder, Counter};
use thiserror::Error;

/// Counts the system calls of the thread that made it and of all threads that are started later, until it
/// is dropped; those that send and those that receive on sockets apart, too, and the instructions in user space.
///
/// The count is the kernel's own (`perf_event_open(2)` on the tracepoint `raw_syscalls:sys_enter`). While
/// it runs, every system call of the process takes the kernel's longer way through its entry: it is for
/// finding costs, not for measuring times.
#[derive(Debug)]
pub struct SystemCalls {
    counter: Counter,
    /// Of the calls that send; `None` where the kernel does not tell calls apart.
    sends: Option<Vec<Counter>>,
    /// Of the calls that receive.
    receives: Option<Vec<Counter>>,
    /// Of the instructions in user space; `None` where the processor does not count them for us.
    instructions: Option<Counter>,
}

/// How many calls there were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemCallCounts {
    /// Of all kinds.
    pub all: u64,
    /// That send on a socket (`sendto`, `sendmsg`, `sendmmsg`); `None` where the kernel does not tell calls apart.
    pub sends: Option<u64>,
    /// That receive from one (`recvfrom`, `recvmsg`, `recvmmsg`), those that found nothing included.
    pub receives: Option<u64>,
    /// Instructions in user space; `None` where the processor does not count them, as on many virtual machines.
    pub instructions: Option<u64>,
}

/// Why system calls cannot be counted here.
#[derive(Debug, Error)]
pub enum SystemCallsError {
    /// No tracepoint.
    #[error(
        "the kernel shows no tracepoint for system calls (mount -t tracefs tracefs /sys/kernel/tracing, as root): {0}"
    )]
    NoTracepoint(io::Error),
    /// No permission.
    #[error("the kernel refuses the count (run as root, or sysctl -w kernel.perf_event_paranoid=-1): {0}")]
    Refused(io::Error),
}

impl SystemCalls {
    /// Begins to count. Call it before the threads are started that shall count as well.
    ///
    /// # Errors
    /// When the kernel has no such count or this process may not have it; the text says what to do.
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

    /// The counts so far; `None` when the kernel does not give them any more.
    #[must_use]
    pub fn counts(&mut self) -> Option<SystemCallCounts> {
        let sum = |counters: &mut Option<Vec<Counter>>| {
            counters.as_mut()?.iter_mut().map(|counter| counter.read().ok()).sum()
        };
        let (sends, receives) = (sum(&mut self.sends), sum(&mut self.receives));
        let instructions = self.instructions.as_mut().and_then(|counter| counter.read().ok());
        // A counter that never had its turn on the processor says nothing.
        let instructions = instructions.filter(|count| *count > 0);
        Some(SystemCallCounts { all: self.counter.read().ok()?, sends, receives, instructions })
    }
}

/// Begins to count how often a tracepoint is passed.
fn count(tracepoint: &str) -> Result<Counter, SystemCallsError> {
    let id = FOLDERS
        .iter()
        .map(|folder| fs::read_to_string(format!("{folder}/events/{tracepoint}/id")))
        .reduce(Result::or)
        .unwrap_or_else(|| Err(io::ErrorKind::NotFound.into()))
        .and_then(|text| text.trim().parse().map_err(io::Error::other))
        .map_err(SystemCallsError::NoTracepoint)?;
    // Entering a system call happens in the kernel: without it there is nothing to count.
    begin(Builder::new(Tracepoint::with_id(id)).inherit(true).include_kernel())
        .map_err(SystemCallsError::Refused)
}

fn begin(builder: &Builder<'_>) -> io::Result<Counter> {
    let mut counter = builder.build()?;
    counter.enable()?;
    Ok(counter)
}

/// Where the tracepoints are, on newer and older kernels.
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
        // Each of the loops' turns is some instructions; not every processor counts them for us.
        assert!(since(|counts| counts.instructions).is_none_or(|count| count > 100), "{before:?} {after:?}");
    }
}
