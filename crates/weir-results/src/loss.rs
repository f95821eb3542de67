//! Attribution of lost samples: sequence numbers decide how many, counters of both hosts decide
//! where.
//!
//! There are three steps from the counters to the attribution, each a pure function:
//!
//! 1. [`DropCounters`]: the counters of one end's host during the run (`weir_telemetry::LossWatch`
//!    reads them); [`DropCounters::together`] combines several ends of a kind.
//! 2. [`LossEvidence::new`]: the counters of both sides, as samples: the kernel counts buffers, and
//!    a buffer may hold many datagrams (segmentation offload) or a part of one sample (fragments).
//! 3. [`attribute`]: attributes each lost sample to exactly one place.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Drops and refusals on one end's host during the run. `None`: could not be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DropCounters {
    /// The boot id of the kernel. Ends with the same one share all counters per host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// The network namespace. Ends in the same one share its counters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<u64>,
    /// Drops at the end's own sockets: buffer full or bad checksum (`SO_MEMINFO`, `/proc/net/udp`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket: Option<u64>,
    /// Drops of the queueing discipline of the sending device(s).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<u64>,
    /// Packets that the device(s) dropped instead of sending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_sent: Option<u64>,
    /// Packets that the device(s) dropped after receiving: missed ones, and those that exceeded a
    /// backlog.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_received: Option<u64>,
    /// Packets that exceeded a processor's backlog (`softnet_stat`), of the whole host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backlog: Option<u64>,
    /// Buffers sent by the namespace's UDP sockets (`OutDatagrams`): fewer than the datagrams if
    /// the kernel splits them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<u64>,
    /// Buffers delivered to the namespace's UDP sockets (`InDatagrams`): fewer than the datagrams
    /// if the kernel coalesces some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivered: Option<u64>,
    /// `RcvbufErrors` of the namespace: drops at any of its sockets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive_buffer_errors: Option<u64>,
    /// `SndbufErrors` of the namespace: sends without a free buffer, or whose packet the queue
    /// dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_buffer_errors: Option<u64>,
    /// `NoPorts` of the namespace: datagrams to ports without a socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_ports: Option<u64>,
    /// IP packets discarded, or in fragments that could not be reassembled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_discards: Option<u64>,
}

impl DropCounters {
    /// Combines the counters of several ends of a kind.
    ///
    /// Their own sockets add up; counters shared by ends of one namespace (or host) are used once.
    /// A counter that one of them lacks is `None`.
    #[must_use]
    pub fn together(ends: &[Self]) -> Self {
        let Some(first) = ends.first() else { return Self::default() };
        let is_one_host = ends.iter().all(|end| end.boot_id.is_some() && end.boot_id == first.boot_id);
        let is_one_namespace = is_one_host && ends.iter().all(|end| end.namespace == first.namespace);
        let all = |of: fn(&Self) -> Option<u64>, is_shared: bool| {
            let values: Vec<u64> = ends.iter().map(of).collect::<Option<_>>()?;
            if is_shared {
                values.into_iter().max()
            } else {
                Some(values.into_iter().fold(0, u64::saturating_add))
            }
        };
        Self {
            boot_id: first.boot_id.clone().filter(|_| is_one_host),
            namespace: first.namespace.filter(|_| is_one_namespace),
            socket: all(|end| end.socket, false),
            queue: all(|end| end.queue, is_one_namespace),
            device_sent: all(|end| end.device_sent, is_one_namespace),
            device_received: all(|end| end.device_received, is_one_namespace),
            backlog: all(|end| end.backlog, is_one_host),
            sent: all(|end| end.sent, is_one_namespace),
            delivered: all(|end| end.delivered, is_one_namespace),
            receive_buffer_errors: all(|end| end.receive_buffer_errors, is_one_namespace),
            send_buffer_errors: all(|end| end.send_buffer_errors, is_one_namespace),
            no_ports: all(|end| end.no_ports, is_one_namespace),
            ip_discards: all(|end| end.ip_discards, is_one_namespace),
        }
    }
}

/// Samples per kernel buffer, which is what the kernel's counters count.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SamplesPerBuffer {
    /// Average.
    pub mean: f64,
    /// Maximum.
    pub max: f64,
}

impl SamplesPerBuffer {
    /// One datagram and one sample each: counters count samples.
    pub const ONE: Self = Self { mean: 1.0, max: 1.0 };

    /// Computes the average from `samples` in `buffers`, with the maximum `max`; one each if
    /// `buffers` is 0.
    ///
    /// The average may be below 1: samples in fragments.
    #[must_use]
    pub fn measured(samples: u64, buffers: u64, max: u64) -> Self {
        if buffers == 0 || samples == 0 {
            return Self { mean: 1.0, max: max.max(1) as f64 };
        }
        let mean = samples as f64 / buffers as f64;
        Self { mean, max: mean.max(max.max(1) as f64) }
    }
}

/// Drops at one place, with the number of samples each stands for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drops {
    /// The kernel's count.
    pub counted: u64,
    /// Samples per counted drop.
    pub samples: SamplesPerBuffer,
}

impl Drops {
    /// Drops of one sample each.
    #[must_use]
    pub const fn exact(counted: u64) -> Self {
        Self { counted, samples: SamplesPerBuffer::ONE }
    }

    /// Returns the most likely number of samples, and the maximum.
    fn range(&self) -> (u64, u64) {
        // Float casts saturate, as intended.
        let times = |factor: f64| (self.counted as f64 * factor).round() as u64;
        let likely = times(self.samples.mean);
        (likely, times(self.samples.max).max(likely))
    }
}

/// What the programs at both ends counted themselves. An engine that does not count something has 0 of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EngineCounts {
    /// Samples that the sender's engine did not send, because the path carries less than was written, or because they
    /// left its history first. Once for each reader that was not sent one.
    pub left_out: u64,
    /// Samples that the sender's own socket refused (`EAGAIN`, `ENOBUFS`, a firewall's `EPERM`).
    pub refused: u64,
    /// Samples that arrived and that a reader's full cache rejected.
    pub rejected: u64,
}

impl EngineCounts {
    /// Adds those of another end.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            left_out: self.left_out.saturating_add(other.left_out),
            refused: self.refused.saturating_add(other.refused),
            rejected: self.rejected.saturating_add(other.rejected),
        }
    }
}

/// The evidence about a loss, in samples: the input of [`attribute`]. `None`: could not be read.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LossEvidence {
    /// Lost samples, by their sequence numbers.
    pub lost: u64,
    /// Samples that the sender's engine left out, see [`EngineCounts::left_out`].
    pub left_out: u64,
    /// Samples that the sender's own socket refused.
    pub refused: Option<u64>,
    /// Samples that a reader's full cache rejected.
    pub rejected: u64,
    /// Drops at the receiving sockets.
    pub receiver_socket: Option<Drops>,
    /// Drops in the sender's queue and device.
    pub sender_queue: Option<Drops>,
    /// Drops in the receiving host before its sockets.
    pub receiver_host: Option<Drops>,
}

/// Samples per buffer on both sides, to convert counters to samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Carried {
    /// Samples per buffer on the sending side: the samples of one send.
    pub sent: SamplesPerBuffer,
    /// Samples per buffer at the receiving socket: one datagram, unless it receives trains
    /// (`UDP_GRO`).
    pub received: SamplesPerBuffer,
}

impl Carried {
    /// One sample in a datagram, one datagram in a send.
    pub const ONE: Self = Self { sent: SamplesPerBuffer::ONE, received: SamplesPerBuffer::ONE };

    /// Computes the ratios from the kernel's own counts of buffers.
    ///
    /// `sent` samples left by the buffers that the sender's namespace counted, `received` ones
    /// arrived in those of the receiver's. `max`: the maximum number of samples per buffer; 1:
    /// neither side combines datagrams or samples, and counters count samples.
    #[must_use]
    pub fn measured(
        sent: u64,
        sender: &DropCounters,
        received: u64,
        receiver: &DropCounters,
        max: u64,
    ) -> Self {
        let measured = |samples: u64, buffers: Option<u64>| {
            let Some(buffers) = buffers else { return SamplesPerBuffer::measured(0, 0, max) };
            let found = SamplesPerBuffer::measured(samples, buffers, max);
            // Other traffic of the namespace makes it slightly less than one.
            if (0.8..1.1).contains(&found.mean) { SamplesPerBuffer::ONE } else { found }
        };
        Self { sent: measured(sent, sender.sent), received: measured(received, receiver.delivered) }
    }
}

impl LossEvidence {
    /// Converts the counters of both sides to evidence about `lost` samples.
    ///
    /// `engine`: what the ends counted themselves. If sockets have no counter of their own, that of
    /// the whole namespace is used; likewise the queue and `SndbufErrors`. On one host, a packet
    /// that exceeded the receiver's backlog is counted once, although the sender's virtual device
    /// counts it again.
    #[must_use]
    pub fn new(
        lost: u64,
        engine: EngineCounts,
        sender: &DropCounters,
        receiver: &DropCounters,
        carried: Carried,
    ) -> Self {
        let drops = |counted: u64, samples| Drops { counted, samples };
        let is_one_host = sender.boot_id.is_some() && sender.boot_id == receiver.boot_id;
        // A device includes the packets that exceeded a backlog in its own count; the backlog's
        // counter covers the whole host.
        let before_socket = receiver.device_received.or(receiver.backlog);
        let counted_there = before_socket.filter(|_| is_one_host).unwrap_or(0);
        let device = sender.device_sent.map(|count| count.saturating_sub(counted_there));
        let queue = match (sender.queue, device) {
            (Some(queue), device) => Some(queue.saturating_add(device.unwrap_or(0))),
            (None, device) => sender
                .send_buffer_errors
                .map(|errors| errors.saturating_sub(engine.refused).saturating_add(device.unwrap_or(0))),
        };
        // An engine may not report refusals; the kernel counted them, together with the queue's
        // drops.
        let unsaid = sender.queue.zip(sender.send_buffer_errors);
        let unsaid =
            unsaid.map_or(0, |(queue, errors)| drops(errors.saturating_sub(queue), carried.sent).range().0);
        let before_socket = before_socket.map(|count| {
            count
                .saturating_add(receiver.no_ports.unwrap_or(0))
                .saturating_add(receiver.ip_discards.unwrap_or(0))
        });
        Self {
            lost,
            left_out: engine.left_out,
            refused: Some(engine.refused.max(unsaid)),
            rejected: engine.rejected,
            receiver_socket: receiver
                .socket
                .or(receiver.receive_buffer_errors)
                .map(|count| drops(count, carried.received)),
            sender_queue: queue.map(|count| drops(count, carried.sent)),
            receiver_host: before_socket.map(|count| drops(count, carried.received)),
        }
    }
}

/// The places of lost samples: each of them has exactly one, so the places add up to `lost`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LossAttribution {
    /// Lost samples by their sequence numbers, including those of the warm-up.
    pub lost: u64,
    /// Left out by the sender's engine: the path carries less than was written, or later samples
    /// replaced them first.
    pub sender_left_out: u64,
    /// Refused by the sender's socket (`EAGAIN`, `ENOBUFS`).
    pub sender_refused: u64,
    /// Dropped in the sender's queue (qdisc) or device.
    pub sender_queue: u64,
    /// Dropped at the receiver's socket: its buffer was full.
    pub receiver_socket: u64,
    /// Dropped in the receiving host before the socket: backlog, device, IP.
    pub receiver_host: u64,
    /// Rejected by a reader, whose cache was full.
    pub receiver_rejected: u64,
    /// Lost between the hosts: all counters of both were read, and none of them explains these.
    pub path: u64,
    /// Not attributable: a counter that might explain them could not be read, or counts buffers of
    /// several samples and may stand for more of them.
    pub unplaced: u64,
    /// Assumed samples per drop counted by the kernel, if not one: then the shares of those places
    /// are estimates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples_per_drop: Option<f64>,
    /// The counters of the sending side.
    pub sender: DropCounters,
    /// The counters of the receiving side.
    pub receiver: DropCounters,
}

/// Attributes each lost sample to one place.
///
/// Sequence numbers decide how many were lost. Counters only decide where, and each is limited by
/// what is still unexplained, since a counter may include what was not lost (duplicates, other
/// traffic). The most reliable source goes first: what the engines left out and rejected and the
/// sender saw refused, then the receiver's own socket, then the sender's queue, then drops in the
/// receiving host. What no counter explains was lost on the path, if every counter could be read.
/// It is unplaced if a counter is missing, and as far as a counter of buffers may stand for more
/// samples.
///
/// The `sender` and `receiver` of the result are empty: the caller sets what it wants to keep.
#[must_use]
pub fn attribute(evidence: &LossEvidence) -> LossAttribution {
    let mut left = evidence.lost;
    let mut claim = |count: u64| {
        let share = count.min(left);
        left -= share;
        share
    };
    let sender_left_out = claim(evidence.left_out);
    let receiver_rejected = claim(evidence.rejected);
    let sender_refused = claim(evidence.refused.unwrap_or(0));
    let mut open: u64 = 0;
    let mut samples_per_drop: Option<f64> = None;
    let mut claim_drops = |drops: Option<Drops>| {
        let Some(drops) = drops else { return 0 };
        let (likely, most) = drops.range();
        let share = claim(likely);
        open = open.saturating_add(most - likely);
        if share > 0 && drops.samples != SamplesPerBuffer::ONE {
            samples_per_drop.get_or_insert((drops.samples.mean * 1e3).round() / 1e3);
        }
        share
    };
    let receiver_socket = claim_drops(evidence.receiver_socket);
    let sender_queue = claim_drops(evidence.sender_queue);
    let receiver_host = claim_drops(evidence.receiver_host);
    let has_all = evidence.refused.is_some()
        && evidence.receiver_socket.is_some()
        && evidence.sender_queue.is_some()
        && evidence.receiver_host.is_some();
    let unplaced = if has_all { open.min(left) } else { left };
    LossAttribution {
        lost: evidence.lost,
        sender_left_out,
        sender_refused,
        sender_queue,
        receiver_socket,
        receiver_host,
        receiver_rejected,
        path: left - unplaced,
        unplaced,
        samples_per_drop,
        ..LossAttribution::default()
    }
}

impl LossAttribution {
    /// Returns the places with their names, in the order of the path; their counts add up to
    /// `lost`.
    #[must_use]
    pub const fn places(&self) -> [(&'static str, u64); 8] {
        [
            ("left out by the writer", self.sender_left_out),
            ("refused by the sender's socket", self.sender_refused),
            ("dropped in the sender's queue", self.sender_queue),
            ("lost on the path", self.path),
            ("dropped in the receiving host before its socket", self.receiver_host),
            ("dropped at the receiver's full socket buffer", self.receiver_socket),
            ("rejected by the reader's full cache", self.receiver_rejected),
            ("unplaced", self.unplaced),
        ]
    }

    /// Returns the places as text, the largest first; empty without losses.
    ///
    /// `100 dropped at the receiver's full socket buffer, 20 lost on the path`.
    #[must_use]
    pub fn explanation(&self) -> String {
        let mut places = self.places();
        places.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let places = places.into_iter().filter(|(_, count)| *count > 0);
        let mut text = places.map(|(name, count)| format!("{count} {name}")).collect::<Vec<_>>().join(", ");
        if let Some(samples) = self.samples_per_drop {
            text += &format!(
                " (estimated: the kernel counts buffers, and one stands for {samples} samples on average)"
            );
        }
        text
    }
}

/// `120 lost: 100 dropped at the receiver's full socket buffer, 20 lost on the path`.
impl fmt::Display for LossAttribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.lost == 0 {
            return f.write_str("0 lost");
        }
        write!(f, "{} lost: {}", self.lost, self.explanation())
    }
}

#[cfg(test)]
mod tests;
