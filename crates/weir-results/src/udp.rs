//! Figures that only UDP tests have: how datagrams were sent, their order and their times.

use serde::{Deserialize, Serialize};

use crate::names::names;

/// The conditions of a UDP test, and its figures beyond those of [`crate::Case`].
///
/// A test of both directions is two cases.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UdpFigures {
    /// How datagrams are passed to the kernel.
    pub mode: UdpMode,
    /// Number of streams, each with a socket and a thread at either end.
    pub flows: u32,
    /// The sending end, as seen from the one that was configured.
    pub direction: Direction,
    /// Whether the other direction was loaded at the same time.
    pub duplex: bool,
    /// Whether the senders' sockets are connected.
    pub connected: bool,
    /// Whether the receiver enables coalescing (`UDP_GRO`).
    pub gro: bool,
    /// 4 or 6.
    pub ip_version: u8,
    /// The differentiated services code point of the datagrams, 0 to 63; `None`: not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dscp: Option<u8>,
    /// The destination multicast group, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multicast: Option<String>,
    /// Target rate in 10^6 bits of payload per second; `None`: full speed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_mbps: Option<f64>,
    /// Sent rate in 10^6 bits of payload per second, by the sender's clock; 0 for round trips.
    pub offered_mbps: f64,
    /// Interarrival jitter of RFC 3550 (6.4.1) in microseconds, averaged over the flows; `None`
    /// without a schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_us: Option<f64>,
    /// 99.9th percentile of the one-way delay, microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_way_p99_9_us: Option<f64>,
    /// How many numbers the latest of the reordered datagrams was behind the newest one received
    /// before it.
    pub reorder_extent_max: u64,
    /// The mean of that over the reordered datagrams; 0 without any.
    pub reorder_extent_mean: f64,
    /// The longest run of missing numbers when the next one arrived.
    pub longest_gap: u64,
    /// Arrivals too old (65 536 numbers) to be classified as late or duplicate.
    pub late: u64,
    /// Datagrams of a wrong size.
    pub corrupt: u64,
    /// Datagrams from other senders.
    #[serde(alias = "strangers")]
    pub foreign_datagrams: u64,
    /// Sends that the kernel refused to split, so that their datagrams were sent one by one.
    pub gso_fallbacks: u64,
    /// Percent of the time that the sending threads ran, averaged over the flows; `None` with a
    /// schedule, for which they mostly wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender_busy_percent: Option<f64>,
    /// Datagrams per receiving system call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datagrams_per_receive: Option<f64>,
    /// The relation of the two ends' clocks; `None` without one-way times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clocks: Option<ClockRelation>,
}

impl UdpFigures {
    /// Returns whether both are measurements under the same conditions.
    #[must_use]
    pub fn same_conditions(&self, other: &Self) -> bool {
        self.mode == other.mode
            && self.flows == other.flows
            && self.direction == other.direction
            && self.duplex == other.duplex
            && self.connected == other.connected
            && self.gro == other.gro
            && self.ip_version == other.ip_version
            && self.dscp == other.dscp
            && self.multicast == other.multicast
    }
}

/// The relation of the receiving end's clock to the sending one's.
///
/// One-way delays are corrected by the offset; the true ones differ by at most `error_us`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClockRelation {
    /// Both ends read the same clock: no correction is needed.
    pub shared: bool,
    /// The receiver's clock minus the sender's before the measurement, in microseconds.
    pub offset_us: f64,
    /// Maximum error of the offset during the measurement, in microseconds: half of the shortest
    /// exchange that it was computed from, plus the drift.
    pub error_us: f64,
    /// Change of the offset during the measurement, in microseconds.
    pub drift_us: f64,
}

/// How datagrams are passed to the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UdpMode {
    /// One system call each.
    #[default]
    Send,
    /// Many per system call (`sendmmsg`), each passing through the network stack separately.
    Sendmmsg,
    /// Many per pass through the network stack (`UDP_SEGMENT`).
    Gso,
}

impl UdpMode {
    /// The engine name of cases with this mode: as for the baselines.
    #[must_use]
    pub const fn engine(self) -> &'static str {
        match self {
            Self::Send => "udp",
            Self::Sendmmsg => "udp-mmsg",
            Self::Gso => "udp-gso",
        }
    }
}

names!(
    UdpMode { Send = "send", Sendmmsg = "sendmmsg", Gso = "gso" },
    expected "a mode: send, sendmmsg or gso"
);

/// The sending end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// The client sends: the end that was configured.
    #[default]
    Forward,
    /// The server sends.
    Reverse,
}

names!(Direction { Forward = "forward", Reverse = "reverse" });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_read_back_as_what_they_name() {
        for mode in [UdpMode::Send, UdpMode::Sendmmsg, UdpMode::Gso] {
            assert_eq!(mode.name().parse(), Ok(mode));
            assert_eq!(serde_json::to_value(mode).unwrap(), mode.name());
        }
        assert!("fast".parse::<UdpMode>().unwrap_err().to_string().contains("send, sendmmsg or gso"));
        assert_eq!(serde_json::to_value(Direction::Reverse).unwrap(), Direction::Reverse.name());
    }

    #[test]
    fn figures_do_not_make_another_point() {
        let figures = UdpFigures { flows: 2, ..UdpFigures::default() };
        assert!(figures.same_conditions(&UdpFigures { late: 3, offered_mbps: 1.0, ..figures.clone() }));
        assert!(!figures.same_conditions(&UdpFigures { direction: Direction::Reverse, ..figures.clone() }));
        assert!(!figures.same_conditions(&UdpFigures { flows: 1, ..figures.clone() }));
    }
}
