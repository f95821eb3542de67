//! The purpose of a sample, and the description in an initialization ping.

use serde::{Deserialize, Serialize};
use weir_results::DropCounters;

use weir_bench::payload::{FINAL, HEADER_BYTES, NO_ECHO, SampleHeader};

/// Size of an initialization ping, header included: RTI Perftest's payload of 1234 bytes.
pub(super) const INITIALIZE_BYTES: usize = HEADER_BYTES + 1234;

/// Bytes of a description, without padding.
pub(super) const DESCRIPTION_BYTES: usize = 12;

/// The purpose of a sample, in the field `latency_ping`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A sample without echo.
    Data,
    /// A sample for this subscriber to echo.
    Ping(u32),
    /// The end of a publisher's samples, or a subscriber that is done.
    Final,
    /// Precedes the first sample, and describes the run.
    Initialize,
    /// A subscriber that waits to be served.
    Here,
    /// A subscriber that has received from all publishers that it will serve. The payload lists
    /// those that are done.
    Serving,
    /// Of a later version.
    Unknown,
}

const INITIALIZE: i32 = -3;
const HERE: i32 = -4;
const SERVING: i32 = -5;

impl Kind {
    /// The kind of a received sample.
    #[inline]
    pub(super) fn of(header: &SampleHeader) -> Self {
        match header.latency_ping {
            NO_ECHO => Self::Data,
            FINAL => Self::Final,
            INITIALIZE => Self::Initialize,
            HERE => Self::Here,
            SERVING => Self::Serving,
            ping @ 0.. => Self::Ping(ping.cast_unsigned()),
            _ => Self::Unknown,
        }
    }

    /// Its code in the header.
    #[inline]
    pub(super) fn code(self) -> i32 {
        match self {
            Self::Data | Self::Unknown => NO_ECHO,
            Self::Ping(subscriber) => subscriber.cast_signed(),
            Self::Final => FINAL,
            Self::Initialize => INITIALIZE,
            Self::Here => HERE,
            Self::Serving => SERVING,
        }
    }
}

/// A header of this kind. `sequence` is cut to 32 bits.
#[inline]
pub(super) fn header(kind: Kind, entity_id: u32, sequence: u64, key: [u8; 4]) -> SampleHeader {
    SampleHeader { key, latency_ping: kind.code(), ..SampleHeader::data(sequence, 0).by(entity_id) }
}

/// The same for a ping that is sent at `sent_ns`: nanoseconds, the high half in `timestamp_sec`.
#[inline]
pub(super) fn stamped(header: SampleHeader, sent_ns: u64) -> SampleHeader {
    let (timestamp_sec, timestamp_usec) = (((sent_ns >> 32) as u32).cast_signed(), sent_ns as u32);
    SampleHeader { timestamp_sec, timestamp_usec, ..header }
}

/// When a ping was sent, by its publisher's clock.
#[inline]
pub(super) fn sent_ns(header: &SampleHeader) -> u64 {
    u64::from(header.timestamp_sec.cast_unsigned()) << 32 | u64::from(header.timestamp_usec)
}

/// Writes numbers of publishers into the payload of an announcement.
pub(super) fn write_numbers(numbers: impl Iterator<Item = i32>, payload: &mut Vec<u8>) {
    payload.clear();
    numbers.for_each(|number| payload.extend_from_slice(&number.to_le_bytes()));
}

/// Reads them.
pub(super) fn read_numbers(payload: &[u8]) -> impl Iterator<Item = i32> {
    payload.as_chunks::<4>().0.iter().map(|word| i32::from_le_bytes(*word))
}

/// A publisher's description of its run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// Size of the samples, header included.
    pub data_len: u32,
    /// Bytes of a batch; 0: none.
    pub batch_bytes: u32,
    /// Whether every sample is a ping that the publisher waits for.
    pub is_latency_test: bool,
    /// Whether the publisher will run again with samples of another size.
    pub more_follows: bool,
}

impl Description {
    /// Writes it into the payload of an initialization ping or a final marker.
    pub(super) fn write(&self, payload: &mut Vec<u8>) {
        let flags = u32::from(self.is_latency_test) | u32::from(self.more_follows) << 1;
        payload.clear();
        payload.extend([self.data_len, self.batch_bytes, flags].into_iter().flat_map(u32::to_le_bytes));
        payload.resize(INITIALIZE_BYTES - HEADER_BYTES, 0);
    }

    /// Reads it; `None` when the payload is too short.
    pub(super) fn read(payload: &[u8]) -> Option<Self> {
        let words = payload.as_chunks::<4>().0.first_chunk::<3>()?;
        let [data_len, batch_bytes, flags] = words.map(u32::from_le_bytes);
        let (is_latency_test, more_follows) = (flags & 1 != 0, flags & 2 != 0);
        Some(Self { data_len, batch_bytes, is_latency_test, more_follows })
    }
}

/// What a publisher reports with its final marker: losses on its side.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Farewell {
    /// Samples that its system refused to send.
    pub(super) refused: u64,
    /// Samples that its engine left out, for each subscriber on average. An earlier version does not report them.
    #[serde(default)]
    pub(super) left_out: u64,
    /// Drops of its host meanwhile.
    pub(super) drops: DropCounters,
}

impl Farewell {
    /// More than any has.
    const BYTES_MAX: usize = 4096;

    /// Appends it to the description in a final marker.
    pub(super) fn append_to(&self, payload: &mut Vec<u8>) {
        // Plain numbers and names: writing cannot fail.
        payload.extend(serde_json::to_vec(self).unwrap_or_default());
    }

    /// Reads it; `None` when there is none, as from an earlier version.
    pub(super) fn read(payload: &[u8]) -> Option<Self> {
        let payload = payload.get(DESCRIPTION_BYTES..)?;
        serde_json::from_slice(payload.get(..payload.len().min(Self::BYTES_MAX))?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_survives_its_header() {
        let kinds = [Kind::Data, Kind::Ping(0), Kind::Ping(7), Kind::Final, Kind::Initialize, Kind::Here];
        for kind in kinds.into_iter().chain([Kind::Serving]) {
            assert_eq!(Kind::of(&header(kind, 3, 9, [0; 4])), kind);
        }
        assert_eq!(Kind::of(&SampleHeader { latency_ping: -77, ..SampleHeader::data(0, 0) }), Kind::Unknown);
    }

    #[test]
    fn a_time_stamp_has_nanoseconds_for_centuries() {
        for ns in [0, 1, u64::from(u32::MAX), 1 << 32, u64::MAX] {
            assert_eq!(sent_ns(&stamped(SampleHeader::data(0, 0), ns)), ns);
        }
    }

    #[test]
    fn a_farewell_is_read_back_and_anything_else_is_none() {
        let drops = DropCounters { queue: Some(7), ..DropCounters::default() };
        let farewell = Farewell { refused: 3, left_out: 5, drops };
        let mut payload = vec![9; DESCRIPTION_BYTES];
        farewell.append_to(&mut payload);
        assert_eq!(Farewell::read(&payload), Some(farewell));
        let earlier = br#"{"refused":3,"drops":{}}"#;
        payload.truncate(DESCRIPTION_BYTES);
        payload.extend(earlier);
        assert_eq!(Farewell::read(&payload).map(|it| (it.refused, it.left_out)), Some((3, 0)));
        assert_eq!(Farewell::read(&[]), None);
        assert_eq!(Farewell::read(&[0; 1234]), None);
        assert_eq!(Farewell::read(&vec![b' '; 1 << 20]), None);
    }

    #[test]
    fn numbers_of_publishers_are_read_back() {
        let mut payload = vec![1];
        write_numbers([0, 7, -1].into_iter(), &mut payload);
        assert_eq!(read_numbers(&payload).collect::<Vec<_>>(), [0, 7, -1]);
        assert_eq!(read_numbers(&payload[..7]).count(), 1);
    }

    #[test]
    fn a_description_is_read_back_and_a_short_one_refused() {
        let mut payload = vec![9; 3];
        for (is_latency_test, more_follows) in [(true, false), (false, true), (true, true)] {
            let described =
                Description { data_len: 63_000, batch_bytes: 8192, is_latency_test, more_follows };
            described.write(&mut payload);
            assert_eq!(payload.len(), 1234);
            assert_eq!(Description::read(&payload), Some(described));
        }
        assert_eq!(Description::read(&payload[..11]), None);
        assert_eq!(Description::read(&[]), None);
    }
}
