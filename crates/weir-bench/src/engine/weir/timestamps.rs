//! When samples pass from stage to stage, as the engine records it; nothing in ends that are not timed.

use weir_dds::{DataReader, DataWriter, SendTimes};
use weir_measure::clock;

use crate::breakdown::{ReceiveStops, SendStops};

/// The time; 0 in an end that is not timed.
#[inline]
pub(super) fn now_ns<const IS_TIMED: bool>() -> u64 {
    if IS_TIMED { clock::now_ns() } else { 0 }
}

/// What the writer just sent.
#[inline]
pub(super) fn sent<T, const IS_TIMED: bool>(writer: &DataWriter<T>, written_ns: u64) -> SendStops {
    let times = if IS_TIMED { writer.last_send_times().unwrap_or_default() } else { SendTimes::default() };
    SendStops { written_ns, called_ns: times.called_ns, returned_ns: times.returned_ns }
}

/// What was just taken from the reader.
#[inline]
pub(super) fn received<T, const IS_TIMED: bool>(reader: &DataReader<T>, taken_ns: u64) -> ReceiveStops {
    let times = if IS_TIMED { reader.last_receive_times() } else { None };
    let Some(times) = times else { return ReceiveStops::default() };
    ReceiveStops {
        stamped_ns: times.stamped_ns.unwrap_or(0),
        returned_ns: times.returned_ns,
        sorted_ns: times.sorted_ns,
        taken_ns,
    }
}
