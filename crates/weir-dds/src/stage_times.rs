//! When samples pass from one stage of their way to the next, for whoever wants to know where latency comes from.
//!
//! Kept only where [`ParticipantSettings::stage_times`](crate::ParticipantSettings::stage_times) asks for it: every send and
//! every receive call then takes two looks at the clock more. All times are nanoseconds of the host's monotonic clock
//! (`CLOCK_MONOTONIC`), but for the kernel's stamps.

use weir_udp::RecvBatch;

use super::driver::dispatch::TouchedReader;
use crate::clock;

/// The last time that a writer gave something to the kernel.
///
/// Of a sample that leaves by several send calls it is the last of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SendTimes {
    /// Everything was ready for the send call, monotonic nanoseconds.
    pub called_ns: u64,
    /// It had returned, monotonic nanoseconds.
    pub returned_ns: u64,
}

/// The last time that something came for a reader and samples were there that it had not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiveTimes {
    /// When the (last) datagram came to this host's network stack, before it was put into the socket, by the kernel's
    /// stamp (`SO_TIMESTAMPNS`): nanoseconds of the **wall** clock (`CLOCK_REALTIME`). `None` when it has none.
    pub stamped_ns: Option<u64>,
    /// The receive call had returned, monotonic nanoseconds.
    pub returned_ns: u64,
    /// What had come was parsed and lay in the readers' caches, monotonic nanoseconds. Answers, such as
    /// acknowledgements, were not yet sent, and listeners not yet called.
    pub sorted_ns: u64,
}

/// Now, where times are kept.
#[inline]
pub(crate) fn look(is_kept: bool) -> Option<u64> {
    #[cold]
    fn now() -> u64 {
        clock::now().0
    }
    is_kept.then(now)
}

/// Notes for the readers of a batch that it came at `returned_ns`, and lies in their caches now.
#[cold]
pub(crate) fn note_received(readers: &[TouchedReader], batch: &RecvBatch, returned_ns: u64) {
    let times = ReceiveTimes { stamped_ns: batch.stamped_ns(), returned_ns, sorted_ns: clock::now().0 };
    for reader in readers.iter().filter(|reader| reader.has_unread) {
        *reader.endpoint.times.lock() = Some(times);
    }
}
