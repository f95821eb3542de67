//! When samples pass from one stage of their way to the next, for whoever wants to know where latency comes from.
//!
//! Kept only where [`ParticipantSettings::stage_times`](crate::ParticipantSettings::stage_times) asks for it: every send and
//! every receive call then takes two looks at the clock more. All times are nanoseconds of the host's monotonic clock
//! (`CLOCK_MONOTONIC`), but for the kernel's stamps.

use weir_udp::RecvBatch;

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

/// When a batch came.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Came {
    pub(crate) stamped_ns: Option<u64>,
    pub(crate) returned_ns: u64,
}

impl Came {
    /// Just now, where times are kept.
    #[inline]
    pub(crate) fn now(is_kept: bool, batch: &RecvBatch) -> Option<Self> {
        #[cold]
        fn look(batch: &RecvBatch) -> Came {
            Came { stamped_ns: batch.stamped_ns(), returned_ns: clock::now().0 }
        }
        is_kept.then(|| look(batch))
    }
}
