//! Events on the network, recorded for traces and captures.

use core::fmt;
use core::time::Duration;
use std::net::SocketAddrV4;
use std::sync::Arc;

use crate::pcap;

/// All events, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recording {
    records: Vec<Record>,
}

/// One event. `Display` prints one line in the style of tcpdump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Time since the start of the simulation.
    pub at: Duration,
    /// The sender of the datagram.
    pub from: SocketAddrV4,
    /// The destination: an address or a multicast group.
    pub to: SocketAddrV4,
    /// The receiving socket or host that this is about; for [`Event::Sent`] the same as `to`.
    pub receiver: SocketAddrV4,
    /// The UDP payload.
    pub bytes: Arc<[u8]>,
    /// What happened.
    pub event: Event,
}

/// The events of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// A socket's buffer was full on arrival.
    BufferFull,
    /// The two hosts are partitioned.
    Cut,
    /// The receiver read it.
    Delivered,
    /// The link made a second copy.
    Duplicated,
    /// The link held it back, so that later ones may overtake it.
    HeldBack,
    /// The link lost it.
    Lost,
    /// There is no socket with that address, or no member of the group on that host.
    NoSocket,
    /// The link's queue was full.
    QueueFull,
    /// It was sent; once per call of `send`, also to a group.
    Sent,
    /// It was over the MTU and refused to the sender.
    TooBig,
}

/// The end at which a capture is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// What was sent, lost or not, as seen by each sender's interface.
    Senders,
    /// What was delivered, as seen by each receiver's interface: without losses, with duplicates,
    /// in the order of reading.
    Receivers,
}

impl Recording {
    pub(crate) fn push(&mut self, record: Record) {
        self.records.push(record);
    }

    /// Returns all records, oldest first.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Returns a pcap file of what was seen at one side: raw IPv4 with nanosecond times, for
    /// Wireshark and similar tools.
    pub fn to_pcap(&self, side: Side) -> Vec<u8> {
        let wanted = match side {
            Side::Senders => Event::Sent,
            Side::Receivers => Event::Delivered,
        };
        let mut file = pcap::Writer::new();
        for record in self.records.iter().filter(|record| record.event == wanted) {
            file.udp(record.at, record.from, record.to, &record.bytes);
        }
        file.finish()
    }
}

impl fmt::Display for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.records.iter().try_for_each(|record| writeln!(f, "{record}"))
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, from, to, receiver, bytes, event } = self;
        write!(f, "{}.{:09} {from} > {to} len {} {event}", at.as_secs(), at.subsec_nanos(), bytes.len())?;
        if receiver != to {
            write!(f, " at {receiver}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BufferFull => "buffer full",
            Self::Cut => "cut off",
            Self::Delivered => "delivered",
            Self::Duplicated => "duplicated",
            Self::HeldBack => "held back",
            Self::Lost => "lost",
            Self::NoSocket => "no socket",
            Self::QueueFull => "queue full",
            Self::Sent => "sent",
            Self::TooBig => "too big",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(event: Event, receiver: &str) -> Record {
        Record {
            at: Duration::new(1, 5000),
            from: "10.0.0.1:7410".parse().unwrap(),
            to: "239.255.0.1:7400".parse().unwrap(),
            receiver: receiver.parse().unwrap(),
            bytes: Arc::from(&b"abc"[..]),
            event,
        }
    }

    #[test]
    fn a_record_reads_like_a_line_of_tcpdump() {
        let mut recording = Recording::default();
        recording.push(record(Event::Sent, "239.255.0.1:7400"));
        recording.push(record(Event::BufferFull, "10.0.0.2:7410"));
        assert_eq!(
            recording.to_string(),
            "1.000005000 10.0.0.1:7410 > 239.255.0.1:7400 len 3 sent\n\
             1.000005000 10.0.0.1:7410 > 239.255.0.1:7400 len 3 buffer full at 10.0.0.2:7410\n"
        );
    }

    #[test]
    fn each_side_has_its_own_capture() {
        let mut recording = Recording::default();
        recording.push(record(Event::Sent, "239.255.0.1:7400"));
        recording.push(record(Event::Delivered, "10.0.0.2:7410"));
        recording.push(record(Event::Delivered, "10.0.0.3:7410"));
        recording.push(record(Event::Lost, "10.0.0.4:7410"));
        let packet = 16 + 28 + 3;
        assert_eq!(recording.to_pcap(Side::Senders).len(), 24 + packet);
        assert_eq!(recording.to_pcap(Side::Receivers).len(), 24 + 2 * packet);
    }
}
