//! The samples of other engines' listeners, until the harness counts them.
//!
//! A listener runs on the engine's own thread, which must return to its socket soon: it copies the
//! few fields of a sample. The harness polls for samples, and is never woken for them.

use parking_lot::Mutex;
use weir_measure::clock;
use weir_peer_api::Header;

use crate::case::CaseSpec;
use crate::payload::HEADER_BYTES;
use crate::sink::SampleSink;

/// Samples in transit from a listener to a [`SampleSink`].
#[derive(Debug)]
pub struct Inbox {
    arrived: Mutex<Arrived>,
    /// Content is checked.
    keeps_payloads: bool,
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
    /// Their payloads one after another, if they are kept.
    payloads: Vec<u8>,
}

impl Inbox {
    /// An empty one for the samples of `case`.
    #[must_use]
    pub fn new(case: &CaseSpec) -> Self {
        Self {
            arrived: Mutex::default(),
            keeps_payloads: case.verify,
            keeps_times: case.method.samples_per_s.is_some() || case.method.is_stamped,
        }
    }

    /// Adds a sample that has just arrived.
    #[inline]
    pub fn push(&self, header: &Header, payload: &[u8]) {
        let arrived_ns = self.keeps_times.then(clock::now_ns);
        let mut arrived = self.arrived.lock();
        arrived.samples.push((*header, u32::try_from(payload.len()).unwrap_or(u32::MAX)));
        arrived.times_ns.extend(arrived_ns);
        if self.keeps_payloads {
            arrived.payloads.extend_from_slice(payload);
        }
    }
}

/// Takes samples out of an [`Inbox`].
#[derive(Debug)]
pub struct Collector {
    /// Swapped with the arrived samples.
    empty: Arrived,
    /// A payload for samples whose content is not checked.
    zeros: Vec<u8>,
}

impl Collector {
    /// A collector for the samples of `case`.
    #[must_use]
    pub fn new(case: &CaseSpec) -> Self {
        Self { empty: Arrived::default(), zeros: vec![0; case.size_bytes.saturating_sub(HEADER_BYTES)] }
    }

    /// Gives everything in `inbox` to `sink`; false when there was nothing.
    pub fn collect(&mut self, inbox: &Inbox, sink: &mut SampleSink) -> bool {
        std::mem::swap(&mut *inbox.arrived.lock(), &mut self.empty);
        let Arrived { samples, times_ns, payloads: kept } = &mut self.empty;
        let is_anything = !samples.is_empty();
        let mut rest = kept.as_slice();
        let mut times_ns = times_ns.drain(..);
        for (header, length) in samples.drain(..) {
            let length = length as usize;
            if let Some(arrived_ns) = times_ns.next() {
                sink.set_now_ns(arrived_ns);
            }
            let payload = match rest.split_at_checked(length).filter(|_| inbox.keeps_payloads) {
                Some((payload, others)) => {
                    rest = others;
                    payload
                }
                // An invalid length stays invalid.
                None => self.zeros.get(..length).unwrap_or_default(),
            };
            if payload.len() == length {
                sink.accept(&header, payload);
            } else {
                sink.reject();
            }
        }
        kept.clear();
        is_anything
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::tests::case;
    use crate::payload::{self, SampleHeader};
    use weir_results::Test;

    #[test]
    fn an_inbox_gives_what_it_got_with_and_without_content() {
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
            let mut collector = Collector::new(&case);
            assert!(collector.collect(&inbox, &mut sink));
            assert_eq!((sink.counts().received, sink.corrupt(), sink.arrivals()), (3, 1, 4), "{verify}");
            assert!(!collector.collect(&inbox, &mut sink), "it is empty now");
        }
    }
}
