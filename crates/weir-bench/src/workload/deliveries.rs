//! What the readers of a process received.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use weir_measure::clock;
use weir_results::{LatencyHistogram, LatencyKind, LatencyRecorder, Reliability};

use super::layout::PlacedReader;
use super::timetable::Timetable;
use crate::payload::SampleHeader;

/// What the readers of one process received of a kind of topics, in the measured part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivered {
    /// Samples that they should have received.
    pub expected: u64,
    /// Samples that they received, without duplicates.
    pub received: u64,
    /// Samples that one received again.
    pub duplicates: u64,
    /// The ages of the received samples.
    pub ages: Option<LatencyHistogram>,
}

/// The readers of a process.
pub(crate) struct Deliveries {
    readers: Vec<Arc<ReaderLog>>,
    /// The ages of each kind of topics.
    ages: Arc<[Mutex<LatencyRecorder>]>,
    arrivals: Arc<AtomicU64>,
}

/// What one reader received.
pub(crate) struct ReaderLog {
    placed: PlacedReader,
    reliability: Reliability,
    /// By writer; empty until the workload starts.
    streams: Mutex<Vec<Stream>>,
    ages: Arc<[Mutex<LatencyRecorder>]>,
    arrivals: Arc<AtomicU64>,
}

/// What one reader received of one writer.
struct Stream {
    timetable: Timetable,
    /// A bit for each sample of the measured part.
    has: Vec<u64>,
    received: u64,
    duplicates: u64,
}

impl Deliveries {
    /// No readers yet, and so many kinds of topics.
    pub(crate) fn new(groups: usize) -> Self {
        let ages = (0..groups).map(|_| Mutex::new(LatencyRecorder::new())).collect();
        Self { readers: Vec::new(), ages, arrivals: Arc::default() }
    }

    /// Adds a reader.
    pub(crate) fn add(&mut self, placed: PlacedReader, reliability: Reliability) -> Arc<ReaderLog> {
        let log = Arc::new(ReaderLog {
            placed,
            reliability,
            streams: Mutex::default(),
            ages: Arc::clone(&self.ages),
            arrivals: Arc::clone(&self.arrivals),
        });
        self.readers.push(Arc::clone(&log));
        log
    }

    /// Begins to record. Samples that arrived before are not of this workload's schedule.
    pub(crate) fn begin(&self, timetable: impl Fn(usize) -> Timetable) {
        for reader in &self.readers {
            let numbers =
                reader.placed.first_writer..reader.placed.first_writer + reader.placed.writers as usize;
            let streams = numbers.map(|number| Stream::new(timetable(number))).collect();
            *reader.streams.lock() = streams;
        }
    }

    /// Samples that have arrived, of any kind.
    pub(crate) fn arrivals(&self) -> u64 {
        self.arrivals.load(Ordering::Relaxed)
    }

    /// Samples that have not arrived: those of reliable topics, and the others. Writer `i` sent `0..sent[i]`.
    pub(crate) fn missing(&self, sent: &[u64]) -> (u64, u64) {
        let mut missing = (0, 0);
        for reader in &self.readers {
            let totals = reader.totals(sent);
            let count = totals.expected - totals.received;
            let sum =
                if reader.reliability == Reliability::Reliable { &mut missing.0 } else { &mut missing.1 };
            *sum += count;
        }
        missing
    }

    /// What was received of each kind of topics.
    pub(crate) fn finish(&self, sent: &[u64]) -> Vec<Delivered> {
        let ages = |recorder: &Mutex<LatencyRecorder>| Delivered {
            ages: recorder.lock().histogram(LatencyKind::OneWay),
            ..Delivered::default()
        };
        let mut groups: Vec<Delivered> = self.ages.iter().map(ages).collect();
        for reader in &self.readers {
            let Some(group) = groups.get_mut(reader.placed.group) else { continue };
            let totals = reader.totals(sent);
            group.expected += totals.expected;
            group.received += totals.received;
            group.duplicates += totals.duplicates;
        }
        groups
    }
}

impl ReaderLog {
    /// Records a sample that arrives now.
    pub(crate) fn arrived(&self, header: &SampleHeader) {
        self.arrived_at(header, clock::now_ns());
    }

    fn arrived_at(&self, header: &SampleHeader, now_ns: u64) {
        self.arrivals.fetch_add(1, Ordering::Relaxed);
        let number = usize::try_from(header.entity_id).ok();
        let place = number.and_then(|number| number.checked_sub(self.placed.first_writer));
        let due_ns = {
            let mut streams = self.streams.lock();
            let Some(stream) = place.and_then(|place| streams.get_mut(place)) else { return };
            stream.take(u64::from(header.seq_num))
        };
        if let (Some(due_ns), Some(ages)) = (due_ns, self.ages.get(self.placed.group)) {
            ages.lock().record(now_ns.saturating_sub(due_ns));
        }
    }

    /// What it should have received of all writers, and what it received.
    fn totals(&self, sent: &[u64]) -> Delivered {
        let mut totals = Delivered::default();
        for (stream, number) in self.streams.lock().iter().zip(self.placed.first_writer..) {
            let sent = sent.get(number).copied().unwrap_or(0);
            let measured = sent.saturating_sub(stream.timetable.measured_from());
            // A sample that arrived although its write was reported as failed does not make up for a lost one.
            totals.expected += measured + stream.received_after(measured);
            totals.received += stream.received;
            totals.duplicates += stream.duplicates;
        }
        totals
    }
}

impl Stream {
    fn new(timetable: Timetable) -> Self {
        let bits = timetable.count() - timetable.measured_from();
        let has = vec![0; usize::try_from(bits.div_ceil(64)).unwrap_or(0)];
        Self { timetable, has, received: 0, duplicates: 0 }
    }

    /// Returns how many samples of the measured part it has received, from this place on.
    fn received_after(&self, place: u64) -> u64 {
        let first = usize::try_from(place / 64).unwrap_or(usize::MAX);
        let Some((word, rest)) = self.has.get(first..).and_then(<[u64]>::split_first) else { return 0 };
        let count = |word: &u64| u64::from(word.count_ones());
        count(&(word >> (place % 64))) + rest.iter().map(count).sum::<u64>()
    }

    /// Notes a sample; returns when it was due if it is of the measured part and new.
    fn take(&mut self, sample: u64) -> Option<u64> {
        let place = sample.checked_sub(self.timetable.measured_from())?;
        let word = self.has.get_mut(usize::try_from(place / 64).ok()?)?;
        let bit = 1 << (place % 64);
        if *word & bit != 0 {
            self.duplicates += 1;
            return None;
        }
        *word |= bit;
        self.received += 1;
        Some(self.timetable.due_ns(sample))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::workload::examples::FAN;
    use crate::workload::{Layout, Workload};

    #[test]
    fn losses_and_duplicates_of_the_measured_part_are_counted_by_writer() {
        let workload = Workload::parse("x", FAN).unwrap();
        let layout = Layout::new(&workload).unwrap();
        let second = Duration::from_secs(1);
        let timetable =
            |number| Timetable::new(&workload.topics[0], number, 5_000_000_000, second, second * 2);
        let mut deliveries = Deliveries::new(1);
        let log = deliveries.add(layout.readers[0], Reliability::Reliable);
        let arrive = |writer: u32, sample| {
            let due_ns = timetable(writer as usize).due_ns(sample);
            log.arrived_at(&SampleHeader::data(sample, 0).by(writer), due_ns + 70_000);
        };
        arrive(0, 15);
        deliveries.begin(timetable);
        // Ten samples of the warm-up do not count, nor do those of other writers and after the end.
        for (writer, sample) in [(0, 3), (0, 10), (0, 10), (0, 11), (1, 29), (2, 12), (0, 1_000_000)] {
            arrive(writer, sample);
        }
        assert_eq!((deliveries.arrivals(), deliveries.missing(&[13, 30])), (8, (1 + 19, 0)));
        let found = deliveries.finish(&[13, 30]).remove(0);
        assert_eq!((found.expected, found.received, found.duplicates), (23, 3, 1));
        let ages = found.ages.unwrap().decode().unwrap();
        assert_eq!((ages.count(), ages.quantile_us(1.0).round()), (3, 70.0));
    }

    #[test]
    fn a_writer_that_sent_less_than_arrived_has_lost_nothing() {
        let workload = Workload::parse("x", FAN).unwrap();
        let layout = Layout::new(&workload).unwrap();
        let timetable =
            |number| Timetable::new(&workload.topics[0], number, 0, Duration::ZERO, Duration::from_secs(1));
        let mut deliveries = Deliveries::new(1);
        let log = deliveries.add(layout.readers[0], Reliability::BestEffort);
        deliveries.begin(timetable);
        log.arrived(&SampleHeader::data(0, 0));
        assert_eq!(deliveries.missing(&[0, 2]), (0, 2));
    }

    #[test]
    fn a_sample_reported_as_not_written_does_not_hide_a_loss() {
        let workload = Workload::parse("x", FAN).unwrap();
        let layout = Layout::new(&workload).unwrap();
        let timetable =
            |number| Timetable::new(&workload.topics[0], number, 0, Duration::ZERO, Duration::from_secs(20));
        let mut deliveries = Deliveries::new(1);
        let log = deliveries.add(layout.readers[0], Reliability::Reliable);
        deliveries.begin(timetable);
        // Of the first writer 0..70 were reported as written: 3 were lost, and 2 more arrived.
        for sample in (3..70).chain([70, 150]) {
            log.arrived(&SampleHeader::data(sample, 0));
        }
        let found = deliveries.finish(&[70, 0]).remove(0);
        assert_eq!((found.expected, found.received), (72, 69));
        assert_eq!(deliveries.missing(&[70, 0]), (3, 0));
    }

    #[test]
    fn the_losses_of_all_readers_add_up() {
        let workload = Workload::parse("x", FAN).unwrap();
        let layout = Layout::new(&workload).unwrap();
        let timetable =
            |number| Timetable::new(&workload.topics[0], number, 0, Duration::ZERO, Duration::from_secs(2));
        let mut deliveries = Deliveries::new(1);
        let logs: Vec<_> =
            layout.readers.iter().map(|it| deliveries.add(*it, Reliability::BestEffort)).collect();
        deliveries.begin(timetable);
        // The reader `i` receives none of the last `i` samples of each writer, and the first ones twice.
        let sent = [20, 15];
        for (log, lost) in logs.iter().zip(0..) {
            for (writer, sent) in (0..).zip(sent) {
                for sample in (0..sent - lost).chain([0]) {
                    log.arrived(&SampleHeader::data(sample, 0).by(writer));
                }
            }
        }
        let found = deliveries.finish(&sent).remove(0);
        let readers = layout.readers.len() as u64;
        let lost = found.expected - found.received;
        assert_eq!((readers, lost), (3, 2 * (1 + 2)));
        assert_eq!(sent.iter().sum::<u64>() * readers, found.received + lost);
        assert_eq!(found.duplicates, 2 * readers);
    }
}
