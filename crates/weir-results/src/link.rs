//! What an emulated link carried, lost and queued during a case.

use serde::{Deserialize, Serialize};

/// The traffic of an emulated link during a case, from the meeting of the ends to the end of the
/// last one, warm-up included.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkFigures {
    /// From the publishers to the subscribers.
    pub to_subscribers: LinkDirection,
    /// From the subscribers to the publishers.
    pub to_publishers: LinkDirection,
    /// Bytes of samples that the subscribers received, warm-up included; `None`: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_bytes: Option<u64>,
    /// Bytes offered towards the subscribers per byte of samples received; `None` without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_per_payload_byte: Option<f64>,
    /// How late the emulator delivered packets on average, microseconds.
    pub late_mean_us: f64,
    /// How late the emulator delivered a packet at most, microseconds.
    pub late_max_us: f64,
    /// Packets that the emulator could not take in time: the link was slower than it should be.
    pub overrun_packets: u64,
}

/// One direction of an emulated link. Bytes are those of IP packets.
///
/// `offered + duplicated = delivered + queue_full + lost + too_big`, in packets.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkDirection {
    /// Packets sent into the link.
    pub offered_packets: u64,
    /// Their bytes.
    pub offered_bytes: u64,
    /// Packets that the link let through, second copies included.
    pub delivered_packets: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Packets dropped because the queue was full.
    pub queue_full_packets: u64,
    /// Packets lost at random or in bursts.
    pub lost_packets: u64,
    /// Second copies made.
    pub duplicated_packets: u64,
    /// Packets held back, so that later ones may overtake them.
    pub held_back_packets: u64,
    /// Packets over the MTU.
    pub too_big_packets: u64,
    /// Packets marked as having met congestion (ECN), lost ones included.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub marked_packets: u64,
    /// The queue that an offered packet found, mean over the packets, bytes.
    pub queue_mean_bytes: f64,
    /// The longest queue that a packet found, bytes.
    pub queue_max_bytes: u64,
    /// The time that an offered packet had to wait in the queue, mean over the packets,
    /// milliseconds. For a packet that found the queue full: would have had to.
    pub queue_mean_ms: f64,
    /// The longest such time, milliseconds.
    pub queue_max_ms: f64,
    /// The traffic over time.
    #[serde(default, skip_serializing_if = "LinkSeries::is_empty")]
    pub series: LinkSeries,
}

/// The traffic of one direction in steps of equal width, from the meeting of the ends on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkSeries {
    /// Width of a step, milliseconds.
    pub step_ms: f64,
    /// Bytes sent into the link in each step.
    pub offered_bytes: Vec<u64>,
    /// Bytes that arrived in each step.
    pub delivered_bytes: Vec<u64>,
    /// Bytes in the queue at the end of each step.
    pub queue_bytes: Vec<u64>,
}

impl LinkFigures {
    /// Enters what the subscribers received, and what was offered for it.
    pub fn enter_payload(&mut self, payload_bytes: u64) {
        self.payload_bytes = Some(payload_bytes);
        let ratio = self.to_subscribers.offered_bytes as f64 / payload_bytes as f64;
        self.offered_per_payload_byte = (payload_bytes > 0).then(|| (ratio * 1e4).round() / 1e4);
    }
}

impl LinkSeries {
    /// Returns whether nothing was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.offered_bytes.is_empty()
    }
}

/// Returns whether a count is left out of the file.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub(crate) fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overhead_is_what_was_offered_per_byte_received() {
        let mut figures = LinkFigures::default();
        figures.to_subscribers.offered_bytes = 1_085_678;
        figures.enter_payload(1_000_000);
        assert_eq!(figures.offered_per_payload_byte, Some(1.0857));
        figures.enter_payload(0);
        assert_eq!((figures.payload_bytes, figures.offered_per_payload_byte), (Some(0), None));
    }
}
