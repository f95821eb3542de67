//! Additional figures of a case: resource use of the two processes, and causes of lost samples.

use serde::{Deserialize, Serialize};

/// Resource use of a process during a case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessFigures {
    /// Processor time in user mode, seconds, over all threads.
    pub cpu_user_s: f64,
    /// Processor time in the kernel, seconds, over all threads.
    pub cpu_system_s: f64,
    /// Voluntary context switches (a thread waited).
    pub context_switches_voluntary: u64,
    /// Involuntary context switches (a thread was preempted).
    pub context_switches_involuntary: u64,
    /// Peak resident memory of the process in that time, in KiB.
    pub max_rss_kib: u64,
    /// System calls; `None` if not counted (counting slows each of them down) or not countable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_calls: Option<u64>,
    /// Of these, calls that send on a socket (`sendto`, `sendmsg`, `sendmmsg`); `None` if not
    /// counted separately.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_calls: Option<u64>,
    /// Of these, calls that receive from one (`recvfrom`, `recvmsg`, `recvmmsg`), including those
    /// that found nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_calls: Option<u64>,
    /// Instructions in user space, as counted by the processor; `None` if not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<u64>,
    /// Bytes of samples that the engine copied in its own code; `None` if not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copied: Option<CopiedBytes>,
    /// Samples sent or received in the same time, including warm-up; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
}

/// Bytes of samples that an engine copied, by what for. Short copies may be left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopiedBytes {
    /// To encode a value before it is sent.
    pub encode: u64,
    /// To keep, after it was sent, what may be requested again.
    pub keep: u64,
    /// To put together what was received, or to move it out of the memory that receives.
    pub assemble: u64,
    /// To decode a value into the application's memory.
    pub decode: u64,
}

impl CopiedBytes {
    fn with(self, other: Self, of: fn(u64, u64) -> u64) -> Self {
        Self {
            encode: of(self.encode, other.encode),
            keep: of(self.keep, other.keep),
            assemble: of(self.assemble, other.assemble),
            decode: of(self.decode, other.decode),
        }
    }
}

impl ProcessFigures {
    /// Returns the difference to `earlier`. The peak of memory stays the peak so far.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let counted = |later: Option<u64>, before: Option<u64>| {
            later.zip(before).map(|(later, before)| later.saturating_sub(before))
        };
        Self {
            cpu_user_s: (self.cpu_user_s - earlier.cpu_user_s).max(0.0),
            cpu_system_s: (self.cpu_system_s - earlier.cpu_system_s).max(0.0),
            context_switches_voluntary: self
                .context_switches_voluntary
                .saturating_sub(earlier.context_switches_voluntary),
            context_switches_involuntary: self
                .context_switches_involuntary
                .saturating_sub(earlier.context_switches_involuntary),
            max_rss_kib: self.max_rss_kib,
            system_calls: counted(self.system_calls, earlier.system_calls),
            send_calls: counted(self.send_calls, earlier.send_calls),
            receive_calls: counted(self.receive_calls, earlier.receive_calls),
            instructions: counted(self.instructions, earlier.instructions),
            copied: self
                .copied
                .zip(earlier.copied)
                .map(|(later, before)| later.with(before, u64::saturating_sub)),
            samples: self.samples,
        }
    }

    /// Combines the figures of several processes: times and counts add up, of memory the largest
    /// peak counts.
    ///
    /// A count that one of them lacks is `None`.
    #[must_use]
    pub fn together(figures: &[Self]) -> Self {
        let sum = |of: fn(&Self) -> Option<u64>| figures.iter().map(of).sum();
        Self {
            cpu_user_s: figures.iter().map(|one| one.cpu_user_s).sum(),
            cpu_system_s: figures.iter().map(|one| one.cpu_system_s).sum(),
            context_switches_voluntary: figures.iter().map(|one| one.context_switches_voluntary).sum(),
            context_switches_involuntary: figures.iter().map(|one| one.context_switches_involuntary).sum(),
            max_rss_kib: figures.iter().map(|one| one.max_rss_kib).max().unwrap_or(0),
            system_calls: sum(|one| one.system_calls),
            send_calls: sum(|one| one.send_calls),
            receive_calls: sum(|one| one.receive_calls),
            instructions: sum(|one| one.instructions),
            copied: figures
                .iter()
                .map(|one| one.copied)
                .reduce(|all, one| all.zip(one).map(|(all, one)| all.with(one, u64::saturating_add)))
                .flatten(),
            samples: sum(|one| one.samples),
        }
    }
}

/// The discovery time of a case: until the last end knew all of its peers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Discovery {
    /// From the moment when the first end started to open its sockets and entities, in
    /// milliseconds.
    pub from_first_ms: f64,
    /// From the moment when the last end did, in milliseconds.
    pub from_last_ms: f64,
    /// Deliberate delay between the publishers and the subscribers, in milliseconds; 0: opened
    /// together.
    pub late_ms: f64,
}

/// How far a publisher was behind its schedule when it sent, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ScheduleLag {
    /// Median over the sends.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile; `None` if not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_9: Option<f64>,
    /// Maximum.
    pub max: f64,
}

/// Causes of lost samples.
///
/// Sequence numbers decide how many samples were lost. The kernel's counters count packets as it
/// handles them (an offloaded send of 64 datagrams may count once), so they explain but never
/// decide.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LossBreakdown {
    /// Samples that the sender's engine left out, or its own socket or queue refused.
    pub sender: u64,
    /// Samples dropped because the receiver's socket buffer was full.
    pub receiver_socket: u64,
    /// The rest: lost in the network.
    pub in_between: u64,
    /// Receive buffer errors of the whole receiving host in the same time; `None` if not read.
    pub kernel_drops: Option<u64>,
}

impl LossBreakdown {
    /// Attributes `lost` samples: first the sender's share, then the receiving socket's.
    ///
    /// Each is limited by what is left, since packet counters may exceed the samples lost.
    #[must_use]
    pub fn explain(lost: u64, sender: u64, receiver_socket: u64, kernel_drops: Option<u64>) -> Self {
        let sender = sender.min(lost);
        let receiver_socket = receiver_socket.min(lost - sender);
        Self { sender, receiver_socket, in_between: lost - sender - receiver_socket, kernel_drops }
    }
}

/// Socket buffers of a case, in bytes.
///
/// The granted sizes are as reported by the kernel: twice what it accepted, since it charges its
/// own overhead against them (`socket(7)`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SocketBuffers {
    /// Requested receive buffer; `None`: the system's default.
    pub receive_asked: Option<u64>,
    /// Granted receive buffer.
    pub receive_granted: Option<u64>,
    /// Requested send buffer; `None`: the system's default.
    pub send_asked: Option<u64>,
    /// Granted send buffer.
    pub send_granted: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_a_loss_add_up_to_it() {
        let check = |lost, sender, socket, expected: (u64, u64, u64)| {
            let loss = LossBreakdown::explain(lost, sender, socket, None);
            assert_eq!((loss.sender, loss.receiver_socket, loss.in_between), expected);
        };
        check(10, 0, 0, (0, 0, 10));
        check(10, 2, 3, (2, 3, 5));
        check(10, 2, 64, (2, 8, 0));
        check(10, 99, 99, (10, 0, 0));
        check(0, 5, 5, (0, 0, 0));
    }

    #[test]
    fn figures_subtract_but_the_peak_stays() {
        let earlier = ProcessFigures {
            cpu_user_s: 1.0,
            context_switches_voluntary: 5,
            max_rss_kib: 10,
            ..Default::default()
        };
        let later = ProcessFigures {
            cpu_user_s: 1.5,
            context_switches_voluntary: 9,
            max_rss_kib: 12,
            system_calls: Some(9),
            copied: Some(CopiedBytes { encode: 5, decode: 7, ..CopiedBytes::default() }),
            ..Default::default()
        };
        let used = later.since(&earlier);
        assert!((used.cpu_user_s - 0.5).abs() < 1e-12);
        assert_eq!(used.context_switches_voluntary, 4);
        assert_eq!((used.max_rss_kib, used.system_calls), (12, None));
        let both = ProcessFigures::together(&[earlier, later]);
        assert_eq!((both.context_switches_voluntary, both.max_rss_kib, both.system_calls), (14, 12, None));
        assert_eq!((used.copied, both.copied), (None, None));
        let twice = ProcessFigures::together(&[later, later]);
        assert_eq!(twice.system_calls, Some(18));
        assert_eq!(twice.since(&later).copied, later.copied);
    }
}
