//! The samples of other engines' listeners, until the harness counts them.
//!
//! A listener runs on the engine's own thread, which must return to its socket soon: it copies the
//! few fields of a sample, and reads its content once if that is to be checked. The harness polls for samples, and is
//! never woken for them.

use parking_lot::Mutex;
use weir_measure::clock;
use weir_peer_api::Header;

use crate::case::CaseSpec;
use crate::payload;
use crate::sink::SampleSink;

/// Samples in transit from a listener to a [`SampleSink`].
#[derive(Debug)]
pub struct Inbox {
    arrived: Mutex<Arrived>,
    /// Content is checked.
    verifies: bool,
    /// Latency counts: samples follow a schedule, or carry the time of writing.
    keeps_times: bool,
}

/// Samples in the order in which they arrived.
#[derive(Debug, Default)]
struct Arrived {
    /// Each with the length of its payload: little memory, since it displaces the engine's own from
    /// the processor's cache.
    samples: Vec<(Header, u32)>,
    /// When each arrived, if that is kept.
    times_ns: Vec<u64>,
    /// Places of samples whose content is not what was written, if that is checked.
    damaged: Vec<usize>,
}

impl Inbox {
    /// An empty one for the samples of `case`.
    #[must_use]
    pub fn new(case: &CaseSpec) -> Self {
        Self {
            arrived: Mutex::default(),
            verifies: case.verify,
            keeps_times: case.method.samples_per_s.is_some() || case.method.is_stamped,
        }
    }

    /// Adds a sample that has just arrived.
    #[inline]
    pub fn push(&self, header: &Header, payload: &[u8]) {
        let arrived_ns = self.keeps_times.then(clock::now_ns);
        // A copy that is compared later would be two more passes over the memory.
        let is_damaged = self.verifies && !payload::matches(header.seq_num, payload);
        let mut arrived = self.arrived.lock();
        arrived.samples.push((*header, u32::try_from(payload.len()).unwrap_or(u32::MAX)));
        arrived.times_ns.extend(arrived_ns);
        if is_damaged {
            let place = arrived.samples.len() - 1;
            arrived.damaged.push(place);
        }
    }
}

/// Takes samples out of an [`Inbox`].
#[derive(Debug, Default)]
pub struct Collector {
    /// Swapped with the arrived samples.
    empty: Arrived,
}

impl Collector {
    /// One that has nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives everything in `inbox` to `sink`; false when there was nothing.
    pub fn collect(&mut self, inbox: &Inbox, sink: &mut SampleSink) -> bool {
        std::mem::swap(&mut *inbox.arrived.lock(), &mut self.empty);
        let Arrived { samples, times_ns, damaged } = &mut self.empty;
        let is_anything = !samples.is_empty();
        let mut times_ns = times_ns.drain(..);
        let mut damaged = damaged.drain(..).peekable();
        for (place, (header, length)) in samples.drain(..).enumerate() {
            if let Some(arrived_ns) = times_ns.next() {
                sink.set_now_ns(arrived_ns);
            }
            let is_damaged = damaged.next_if_eq(&place).is_some();
            sink.accept_checked(&header, length as usize, !is_damaged);
        }
        is_anything
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::tests::case;
    use crate::payload::{HEADER_BYTES, SampleHeader};
    use weir_results::Test;

    #[test]
    fn an_inbox_gives_what_it_got_and_checks_content_if_asked() {
        for verify in [false, true] {
            let case = CaseSpec { verify, ..case("weir", Test::Throughput) };
            let mut sink = SampleSink::new(&case);
            let inbox = Inbox::new(&case);
            let mut payload = vec![0; case.size_bytes - HEADER_BYTES];
            for sequence in 0..3 {
                let header = SampleHeader::data(sequence, 0);
                payload::fill(header.seq_num, &mut payload);
                inbox.push(&header, &payload);
            }
            inbox.push(&SampleHeader::data(3, 0), &[0; 99]);
            payload[0] ^= 1;
            inbox.push(&SampleHeader::data(2, 0), &payload);
            let mut collector = Collector::new();
            assert!(collector.collect(&inbox, &mut sink));
            let corrupt = if verify { 2 } else { 1 };
            assert_eq!(
                (sink.counts().received, sink.corrupt(), sink.arrivals()),
                (3, corrupt, 5),
                "{verify}"
            );
            assert!(!collector.collect(&inbox, &mut sink), "it is empty now");
        }
    }

    #[test]
    fn keys_are_checked_with_the_content() {
        let case = CaseSpec { verify: true, instances: 4, ..case("weir", Test::Throughput) };
        let (mut sink, inbox) = (SampleSink::new(&case), Inbox::new(&case));
        let mut payload = vec![0; case.size_bytes - HEADER_BYTES];
        payload::fill(6, &mut payload);
        let header = SampleHeader::data(6, 4);
        inbox.push(&header, &payload);
        inbox.push(&SampleHeader { key: [3, 0, 0, 0], ..header }, &payload);
        Collector::new().collect(&inbox, &mut sink);
        assert_eq!((sink.counts().received, sink.corrupt()), (1, 1));
    }
}
