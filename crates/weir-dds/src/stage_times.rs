//! Stage timestamps, to break latency down.
//!
//! They record when a sample passes from one stage to the next.
//!
//! Recorded only if [`ParticipantSettings::stage_times`](crate::ParticipantSettings::stage_times)
//! is set. Every send and every receive call then takes two more clock reads. Times are nanoseconds
//! of `CLOCK_MONOTONIC`, except the kernel's timestamps.
//!
//! ```no_run
//! # use weir_dds::{DataWriter, DdsType};
//! # fn f<T: DdsType>(writer: &DataWriter<T>) {
//! if let Some(times) = writer.last_send_times() {
//!     println!("send call: {} ns", times.returned_ns - times.called_ns);
//! }
//! # }
//! ```

use weir_udp::RecvBatch;

use crate::clock;

/// Timestamps of a writer's last send call.
///
/// For a sample that needs several send calls, those of the last one.
///
/// ```no_run
/// # use weir_dds::{DataWriter, DdsType};
/// # fn f<T: DdsType>(writer: &DataWriter<T>, sample: &T) -> weir_dds::Result<()> {
/// writer.write(sample)?;
/// if let Some(times) = writer.last_send_times() {
///     println!("send call: {} ns", times.returned_ns - times.called_ns);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SendTimes {
    /// Monotonic time right before the send call, in nanoseconds.
    pub called_ns: u64,
    /// Monotonic time right after the send call, in nanoseconds.
    pub returned_ns: u64,
}

/// Timestamps of the last receive call after which a reader had unread samples.
///
/// ```no_run
/// # use weir_dds::{DataReader, DdsType};
/// # fn f<T: DdsType + std::fmt::Debug>(reader: &DataReader<T>) -> weir_dds::Result<()> {
/// if let Some(times) = reader.last_receive_times() {
///     println!("{times:?}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceiveTimes {
    /// Wall-clock time when the last datagram reached the network stack, in ns.
    ///
    /// Taken by the kernel (`SO_TIMESTAMPNS`, `CLOCK_REALTIME`) before the datagram is queued on
    /// the socket. `None` if the datagram has no timestamp.
    pub stamped_ns: Option<u64>,
    /// Monotonic time right after the receive call, in nanoseconds.
    pub returned_ns: u64,
    /// Monotonic time when the samples were in the readers' caches, in ns.
    ///
    /// Responses such as acknowledgements were not yet sent, and listeners not yet called.
    pub sorted_ns: u64,
}

/// Timestamps of a received batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Came {
    pub(crate) stamped_ns: Option<u64>,
    pub(crate) returned_ns: u64,
}

impl Came {
    /// Returns the timestamps of now, if they are recorded.
    #[inline]
    pub(crate) fn now(is_kept: bool, batch: &RecvBatch) -> Option<Self> {
        #[cold]
        fn look(batch: &RecvBatch) -> Came {
            Came { stamped_ns: batch.stamped_ns(), returned_ns: clock::now().0 }
        }
        is_kept.then(|| look(batch))
    }
}
