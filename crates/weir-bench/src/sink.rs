//! Counts a subscriber's samples, follows their sequence numbers, and checks them on request.

use std::sync::Arc;

use weir_measure::{Numbers, Schedule, clock, nanos};
use weir_results::{
    AgeRecorder, AgeSeries, Arrival, CaseSeries, LatencyHistogram, LatencySummary, LiveSlot, SequenceCounts,
    SeriesRecorder,
};

use crate::arrivals::Arrivals;
use crate::case::CaseSpec;
use crate::payload::{self, FINAL, HEADER_BYTES, SampleHeader};

/// Counts the samples of all publishers, each by its own sequence numbers.
///
/// What arrives before [`SampleSink::start_counting`] is warm-up.
#[derive(Debug)]
pub struct SampleSink {
    /// By publisher.
    streams: Vec<Stream>,
    /// Arrivals since the sink was made, of any kind but final markers.
    arrivals: u64,
    size_bytes: usize,
    instances: u32,
    verify: bool,
    corrupt: u64,
    /// Where samples follow a schedule.
    arrivals_by_schedule: Option<Box<Arrivals>>,
    /// Where samples carry the time of writing.
    ages: Option<Box<Ages>>,
    /// The time of an engine that makes its own.
    own_now_ns: Option<u64>,
    /// The measured part second by second; `None` before it begins.
    series: Option<Box<SeriesRecorder>>,
    duration_ns: u64,
    /// Where live figures are left, and how often.
    live: Option<(Arc<LiveSlot>, u64)>,
}

/// The ages of samples from when they were written.
#[derive(Debug)]
struct Ages {
    recorder: AgeRecorder,
    /// The beginning of the first step.
    start_ns: u64,
}

/// The samples of one publisher.
#[derive(Debug)]
struct Stream {
    numbers: Numbers,
    /// Whether the first number is known.
    has_begun: bool,
    /// How many the publisher sent, once its final marker has arrived.
    sent: Option<u64>,
}

impl SampleSink {
    /// A sink for the samples of `case`, numbered from 0 by each publisher.
    #[must_use]
    pub fn new(case: &CaseSpec) -> Self {
        Self {
            streams: (0..case.ends.publishers).map(|_| Stream::new(true)).collect(),
            arrivals: 0,
            size_bytes: case.size_bytes,
            instances: case.instances,
            verify: case.verify,
            corrupt: 0,
            arrivals_by_schedule: None,
            ages: case.method.is_stamped.then(|| Box::new(Ages::new())),
            own_now_ns: None,
            series: None,
            duration_ns: nanos(case.duration),
            live: None,
        }
    }

    /// The same, which leaves live figures there as often as the case says.
    #[must_use]
    pub fn leaving(self, case: &CaseSpec, live: Option<Arc<LiveSlot>>) -> Self {
        Self { live: live.zip(case.method.live_period.map(nanos)), ..self }
    }

    /// The same, for samples that follow a schedule: their latencies are measured.
    #[must_use]
    pub fn following(self, schedule: Option<Schedule>) -> Self {
        Self { arrivals_by_schedule: schedule.map(|schedule| Box::new(Arrivals::new(schedule))), ..self }
    }

    /// The schedule that samples follow.
    #[must_use]
    pub fn schedule(&self) -> Option<Schedule> {
        self.arrivals_by_schedule.as_ref().map(|arrivals| *arrivals.schedule())
    }

    /// Sets the arrival time of the following samples, for engines with their own clock.
    pub fn set_now_ns(&mut self, now_ns: u64) {
        self.own_now_ns = Some(now_ns);
    }

    /// The latencies of all samples since the warm-up; `None` without a schedule.
    #[must_use]
    pub fn one_way(&self) -> Option<LatencySummary> {
        let lost = self.counts().lost;
        self.arrivals_by_schedule.as_ref().map(|arrivals| arrivals.summary(lost))
    }

    /// The distribution of these latencies; `None` without a schedule.
    #[must_use]
    pub fn histogram(&self) -> Option<LatencyHistogram> {
        self.arrivals_by_schedule.as_ref().and_then(|arrivals| arrivals.histogram())
    }

    /// The ages of samples over time: of those since the warm-up where they follow a schedule, of all where they carry
    /// the time of writing; `None` for others.
    #[must_use]
    pub fn ages(&self) -> Option<AgeSeries> {
        let of_schedule = self.arrivals_by_schedule.as_ref().map(|arrivals| arrivals.ages());
        of_schedule.or_else(|| self.ages.as_ref().map(|ages| ages.recorder.series()))
    }

    /// A sink that joins late: it counts from the first sample of each publisher.
    #[must_use]
    pub fn joining(case: &CaseSpec) -> Self {
        let streams = (0..case.ends.publishers).map(|_| Stream::new(false)).collect();
        Self { streams, ..Self::new(case) }
    }

    /// Takes one sample. Wrong sizes and unknown publishers are always detected; key and payload
    /// are compared with `--verify` only.
    #[inline]
    pub fn accept(&mut self, header: &SampleHeader, payload: &[u8]) {
        let verify = self.verify;
        self.accept_if(header, payload.len(), || !verify || payload::matches(header.seq_num, payload));
    }

    /// Takes one sample whose content has been compared already, if it is to be.
    #[inline]
    pub fn accept_checked(&mut self, header: &SampleHeader, payload_bytes: usize, is_genuine: bool) {
        self.accept_if(header, payload_bytes, || is_genuine);
    }

    /// `is_genuine` is called for samples of the right size.
    #[inline]
    fn accept_if(&mut self, header: &SampleHeader, payload_bytes: usize, is_genuine: impl FnOnce() -> bool) {
        // A negative number becomes a huge one, which no publisher has.
        let Some(stream) = self.streams.get_mut(header.entity_id as usize) else {
            self.reject();
            return;
        };
        if header.latency_ping == FINAL {
            stream.sent = Some(stream.numbers.extend(header.seq_num));
            return;
        }
        self.arrivals += 1;
        if payload_bytes + HEADER_BYTES != self.size_bytes
            || (self.verify && !stream.has_key_of(header, self.instances))
            || !is_genuine()
        {
            self.corrupt += 1;
            return;
        }
        let sequence = stream.record(header.seq_num);
        if let (Some(arrivals), Some(sequence)) = (&mut self.arrivals_by_schedule, sequence) {
            arrivals.record(sequence, self.own_now_ns.unwrap_or_else(clock::now_ns));
        } else if let (Some(ages), Some(_)) = (&mut self.ages, sequence) {
            ages.record(header.written_ns(), self.own_now_ns.unwrap_or_else(clock::now_ns));
        }
    }

    /// Counts a sample that could not even be read.
    #[inline]
    pub fn reject(&mut self) {
        self.arrivals += 1;
        self.corrupt += 1;
    }

    /// Records what has arrived until now, if a second of the measured part has ended.
    #[inline]
    pub fn observe(&mut self, now_ns: u64) {
        let Self { series: Some(series), streams, .. } = self else { return };
        let counts = || {
            let counts = counts_of(streams);
            (counts.received, counts.lost)
        };
        if series.observe(now_ns, counts) {
            self.leave(now_ns);
        }
    }

    #[cold]
    fn leave(&self, now_ns: u64) {
        let (Some((live, _)), Some(series)) = (&self.live, &self.series) else { return };
        let counts = self.counts();
        let latencies = self.arrivals_by_schedule.as_ref().and_then(|arrivals| arrivals.series());
        live.put(series.live(now_ns, (counts.received, counts.lost), latencies));
    }

    /// Returns the measured part second by second, once.
    #[must_use]
    pub fn take_series(&mut self) -> CaseSeries {
        let counts = self.counts();
        let series = self.series.take().map(|series| series.finish(counts.received, counts.lost));
        let latencies = self.arrivals_by_schedule.as_mut().and_then(|arrivals| arrivals.take_series());
        match (series, latencies) {
            (Some(series), Some(CaseSeries { p50_us, p99_us, max_us, .. })) => {
                CaseSeries { p50_us, p99_us, max_us, ..series }
            }
            (series, _) => series.unwrap_or_default(),
        }
    }

    /// Ends the warm-up: everything beyond the highest number so far is counted from here on.
    pub fn start_counting(&mut self, now_ns: u64) {
        let series = SeriesRecorder::new(now_ns, self.duration_ns);
        self.series = Some(Box::new(match &self.live {
            Some((_, period_ns)) => series.watched(*period_ns),
            None => series,
        }));
        for stream in &mut self.streams {
            stream.numbers.start_counting();
        }
    }

    /// Ends the count: publisher `i` sent the numbers `0..sent[i]`.
    pub fn finish(&mut self, sent: &[u64]) {
        for (stream, sent) in self.streams.iter_mut().zip(sent) {
            if stream.has_begun {
                stream.numbers.finish(*sent);
            }
        }
    }

    /// The counts of all publishers since the warm-up.
    #[must_use]
    pub fn counts(&self) -> SequenceCounts {
        counts_of(&self.streams)
    }

    /// Samples that did not arrive during the warm-up.
    #[must_use]
    pub fn lost_in_warmup(&self) -> u64 {
        self.streams.iter().map(|stream| stream.numbers.lost_in_warmup()).sum()
    }

    /// Samples of a wrong size or an unknown publisher, and with `--verify` of wrong content.
    #[must_use]
    pub fn corrupt(&self) -> u64 {
        self.corrupt
    }

    /// Everything that arrived since the sink was made, final markers apart.
    #[must_use]
    #[inline]
    pub fn arrivals(&self) -> u64 {
        self.arrivals
    }

    /// True when nothing is missing of the numbers `0..sent[i]` of publisher `i` since the warm-up.
    #[must_use]
    pub fn has_all(&self, sent: &[u64]) -> bool {
        let has_all = |(stream, sent): (&Stream, &u64)| !stream.has_begun || stream.numbers.has_all(*sent);
        self.streams.iter().zip(sent).all(has_all)
    }

    /// How many the publishers sent, once all final markers have arrived.
    #[must_use]
    pub fn finals(&self) -> Option<Vec<u64>> {
        self.streams.iter().map(|stream| stream.sent).collect()
    }
}

fn counts_of(streams: &[Stream]) -> SequenceCounts {
    let mut counts = SequenceCounts::default();
    streams.iter().for_each(|stream| counts.merge(&stream.numbers.counts()));
    counts
}

impl Ages {
    fn new() -> Self {
        Self { recorder: AgeRecorder::by_arrival(), start_ns: clock::now_ns() }
    }

    #[inline]
    fn record(&mut self, written_ns: u64, now_ns: u64) {
        if written_ns > 0 {
            self.recorder
                .record_arrival(now_ns.saturating_sub(self.start_ns), now_ns.saturating_sub(written_ns));
        }
    }
}

impl Stream {
    fn new(has_begun: bool) -> Self {
        Self { numbers: Numbers::starting_at(0), has_begun, sent: None }
    }

    /// Returns the number of a sample that arrived for the first time.
    #[inline]
    fn record(&mut self, seq_num: u32) -> Option<u64> {
        if !self.has_begun {
            self.begin(seq_num);
        }
        let sequence = self.numbers.extend(seq_num);
        (self.numbers.record(sequence) != Arrival::Duplicate).then_some(sequence)
    }

    #[cold]
    fn begin(&mut self, seq_num: u32) {
        self.numbers = Numbers::starting_at(seq_num.into());
        self.has_begun = true;
    }

    /// Whether the key is that of the sequence number.
    fn has_key_of(&self, header: &SampleHeader, instances: u32) -> bool {
        let sequence =
            if self.has_begun { self.numbers.extend(header.seq_num) } else { header.seq_num.into() };
        header.key == payload::key_of(sequence, instances)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::tests::case;
    use weir_results::Test;

    const PAYLOAD: [u8; 4] = [0; 4];

    fn header(seq_num: u32, key: [u8; 4]) -> SampleHeader {
        SampleHeader { key, ..SampleHeader::data(seq_num.into(), 0) }
    }

    fn sink(verify: bool, instances: u32) -> SampleSink {
        SampleSink::new(&CaseSpec { verify, instances, ..case("mock", Test::Throughput) })
    }

    #[test]
    fn numbers_go_on_beyond_32_bits() {
        let mut sink = sink(false, 0);
        sink.streams[0].numbers = Numbers::starting_at(u32::MAX.into());
        sink.start_counting(0);
        for seq_num in [u32::MAX, 0, 2, 1] {
            sink.accept(&header(seq_num, [0; 4]), &PAYLOAD);
        }
        sink.finish(&[u64::from(u32::MAX) + 6]);
        let counts = sink.counts();
        assert_eq!((counts.received, counts.reordered, counts.lost, counts.duplicates), (4, 1, 2, 0));
    }

    #[test]
    fn late_samples_of_the_warm_up_are_not_lost_and_in_no_count() {
        let mut sink = sink(false, 0);
        for seq_num in [0, 2] {
            sink.accept(&header(seq_num, [0; 4]), &PAYLOAD);
        }
        sink.start_counting(0);
        assert_eq!(sink.lost_in_warmup(), 1);
        for seq_num in [1, 3, 3] {
            sink.accept(&header(seq_num, [0; 4]), &PAYLOAD);
        }
        assert!(sink.has_all(&[4]) && !sink.has_all(&[5]));
        sink.finish(&[4]);
        let counts = sink.counts();
        assert_eq!((counts.received, counts.duplicates, counts.lost, sink.lost_in_warmup()), (1, 1, 0, 0));
        assert_eq!(sink.arrivals(), 5);
    }

    #[test]
    fn wrong_sizes_are_always_noticed_and_wrong_content_when_asked() {
        let mut trusting = sink(false, 0);
        trusting.accept(&header(0, [9; 4]), &[1, 2, 3, 4]);
        trusting.accept(&header(1, [0; 4]), &[0; 5]);
        assert_eq!(trusting.corrupt(), 1);
        let mut payload = PAYLOAD;
        payload::fill(6, &mut payload);
        let mut verifying = sink(true, 4);
        verifying.accept(&header(6, [2, 0, 0, 0]), &payload);
        assert_eq!(verifying.corrupt(), 0);
        verifying.accept(&header(6, [3, 0, 0, 0]), &payload);
        verifying.accept(&header(7, [3, 0, 0, 0]), &payload);
        verifying.reject();
        assert_eq!(verifying.corrupt(), 3);
    }

    #[test]
    fn live_figures_are_left_every_period() {
        let case = case("mock", Test::Throughput)
            .with(|case| case.method.live_period = Some(std::time::Duration::from_millis(500)));
        let slot = Arc::new(LiveSlot::default());
        let mut sink = SampleSink::new(&case).leaving(&case, Some(Arc::clone(&slot)));
        sink.accept(&header(0, [0; 4]), &PAYLOAD);
        sink.start_counting(1_000_000_000);
        for (seq_num, now_ns) in [(1, 1_100_000_000), (3, 1_500_000_000), (4, 1_600_000_000)] {
            sink.accept(&header(seq_num, [0; 4]), &PAYLOAD);
            sink.observe(now_ns);
        }
        let figures = slot.get().unwrap();
        let found = (figures.measured_ns, figures.received, figures.missing, figures.p50_us);
        assert_eq!(found, (500_000_000, 2, 1, None));
    }

    #[test]
    fn samples_that_carry_the_time_of_writing_have_ages() {
        let mut sink =
            SampleSink::new(&case("mock", Test::Throughput).with(|case| case.method.is_stamped = true));
        let start_ns = sink.ages.as_ref().unwrap().start_ns / 1_000 * 1_000;
        for (seq_num, age_ms) in [(0, 3), (1, 5), (1, 9)] {
            sink.set_now_ns(start_ns + age_ms * 1_000_000);
            sink.accept(&header(seq_num, [0; 4]).written_at(start_ns), &PAYLOAD);
        }
        // One without a time has no age, nor has a second copy.
        sink.accept(&header(2, [0; 4]), &PAYLOAD);
        let ages = sink.ages().unwrap();
        assert_eq!((ages.max_ms, ages.mean_ms, ages.from_write), (vec![Some(5.0)], vec![Some(4.0)], true));
    }

    #[test]
    fn publishers_are_followed_apart_and_unknown_ones_have_no_samples() {
        let mut sink = SampleSink::new(&case("mock", Test::Throughput).with(|case| case.ends.publishers = 2));
        for (publisher, seq_num) in [(0, 0), (1, 0), (1, 1), (0, 1), (1, 3), (2, 0)] {
            sink.accept(&header(seq_num, [0; 4]).by(publisher), &PAYLOAD);
        }
        assert!(!sink.has_all(&[2, 4]) && sink.corrupt() == 1);
        sink.finish(&[3, 4]);
        let counts = sink.counts();
        assert_eq!((counts.received, counts.lost), (5, 2));
    }

    #[test]
    fn a_sink_that_joins_later_begins_with_what_it_sees_and_ends_with_the_markers() {
        let mut sink = SampleSink::joining(&case("mock", Test::Throughput).with(|case| {
            (case.verify, case.ends.publishers) = (true, 2);
        }));
        let mut payload = PAYLOAD;
        for seq_num in [4_000_000_000, 4_000_000_002] {
            payload::fill(seq_num, &mut payload);
            sink.accept(&header(seq_num, [0; 4]).by(1), &payload);
        }
        assert_eq!((sink.counts().received, sink.counts().lost, sink.finals()), (2, 1, None));
        sink.accept(&SampleHeader::last(0), &payload);
        sink.accept(&SampleHeader::last(4_000_000_005).by(1), &payload);
        assert_eq!(sink.finals(), Some(vec![0, 4_000_000_005]));
        sink.finish(&sink.finals().unwrap());
        assert_eq!((sink.counts().lost, sink.corrupt()), (3, 0));
    }
}
