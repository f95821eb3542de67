//! What a UDP test knows beyond other cases: how the datagrams travelled, and what became of their order and
//! their times.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::run::ParseNameError;

/// The conditions of a UDP test, and its figures beyond those of [`crate::Case`]. A test of both directions
/// is two cases.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UdpFigures {
    /// How datagrams are given to the kernel.
    pub mode: UdpMode,
    /// Streams, each with a socket and a thread at either end.
    pub flows: u32,
    /// Who sent, seen from the end that was told what to measure.
    pub direction: Direction,
    /// Whether the other direction was loaded at the same time.
    pub duplex: bool,
    /// Whether the senders' sockets are connected.
    pub connected: bool,
    /// Whether the receiver takes datagrams in one piece (`UDP_GRO`).
    pub gro: bool,
    /// 4 or 6.
    pub ip_version: u8,
    /// The differentiated services code point of the datagrams, 0 to 63; `None` = not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dscp: Option<u8>,
    /// The multicast group that they were sent to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multicast: Option<String>,
    /// 10^6 bits of payload per second that were asked for; `None` = as fast as it goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_mbps: Option<f64>,
    /// 10^6 bits of payload per second that were sent, by the sender's clock; 0 for round trips.
    pub offered_mbps: f64,
    /// Interarrival jitter of RFC 3550 (6.4.1), microseconds, the mean over the flows; `None` without a schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_us: Option<f64>,
    /// 99.9th percentile of the one-way delay, microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_way_p99_9_us: Option<f64>,
    /// How far the latest of the reordered datagrams lay behind the newest number that was there before it.
    pub reorder_extent_max: u64,
    /// The mean of that over the reordered datagrams; 0 without any.
    pub reorder_extent_mean: f64,
    /// The most consecutive numbers that were missing when the next one arrived.
    pub longest_gap: u64,
    /// Arrivals too far behind (65 536 numbers) to tell whether they were late or duplicate.
    pub late: u64,
    /// Datagrams of a wrong size.
    pub corrupt: u64,
    /// Datagrams of somebody else.
    pub strangers: u64,
    /// Sends that the kernel would not cut, so that their datagrams were sent one by one.
    pub gso_fallbacks: u64,
    /// Percent of the time that the sending threads were on a processor, the mean over the flows; `None` with a schedule,
    /// which they mostly wait for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender_busy_percent: Option<f64>,
    /// Datagrams per receiving system call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datagrams_per_receive: Option<f64>,
    /// How the clocks of the two ends relate; `None` where no time of one way was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clocks: Option<ClockRelation>,
}

impl UdpFigures {
    /// Whether both are measurements under the same conditions.
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

/// How the clock of the receiving end relates to that of the sending one. One-way delays have been corrected by the
/// offset; the true ones differ by `error_us` at most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClockRelation {
    /// Both ends read the same clock: there is nothing to correct.
    pub shared: bool,
    /// What the receiver's clock showed more than the sender's, microseconds, before the measurement.
    pub offset_us: f64,
    /// How far the offset may be from the truth at any moment of the measurement, microseconds: half of the shortest
    /// exchange that it follows from, and the drift.
    pub error_us: f64,
    /// What the offset changed by during the measurement, microseconds.
    pub drift_us: f64,
}

/// How datagrams are given to the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UdpMode {
    /// One system call for each.
    #[default]
    Send,
    /// Many by one system call (`sendmmsg`), each by its own way through the network stack.
    Sendmmsg,
    /// Many by one way through the network stack (`UDP_SEGMENT`).
    Gso,
}

impl UdpMode {
    /// The name in options and in the results format.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Sendmmsg => "sendmmsg",
            Self::Gso => "gso",
        }
    }

    /// The engine that cases of this mode are results of: those of the floor have its name.
    #[must_use]
    pub const fn engine(self) -> &'static str {
        match self {
            Self::Send => "udp",
            Self::Sendmmsg => "udp-mmsg",
            Self::Gso => "udp-gso",
        }
    }
}

impl fmt::Display for UdpMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for UdpMode {
    type Err = ParseNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::Send, Self::Sendmmsg, Self::Gso]
            .into_iter()
            .find(|mode| mode.name() == text)
            .ok_or_else(|| ParseNameError::new(text, "a mode: send, sendmmsg or gso"))
    }
}

/// Who sends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// The end that was told what to measure, to the server.
    #[default]
    Forward,
    /// The server.
    Reverse,
}

impl Direction {
    /// The name in the results format.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Reverse => "reverse",
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

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
