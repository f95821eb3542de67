//! What a subscriber does with a sample, on whichever thread receives it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use weir_dds::{DataReader, DataReaderListener, DataWriter, DdsError, InstanceHandle, SampleSeq};
use weir_measure::{Numbers, SEGMENTS_MAX, clock, nanos, stream_loss};
use weir_results::{DropCounters, EngineCounts, LossAttribution, SequenceCounts};

use super::event::End;
use super::message::{Description, Farewell, Kind};
use super::settings::SubscriberSettings;
use weir_bench::payload::{HEADER_BYTES, ReceivedSample};
use weir_bench::test_data::Owned;

/// What a subscriber found.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    /// Size of the samples, header included; 0 without any.
    pub data_len: usize,
    /// Samples received, lost, repeated and out of order.
    pub counts: SequenceCounts,
    /// From the first sample to the final marker.
    pub received_in: Duration,
    /// Datagrams that found the socket's buffer full.
    pub kernel_drops: u64,
    /// Where the lost samples went.
    pub loss: LossAttribution,
    /// What the publisher said of its run.
    pub description: Option<Description>,
    /// The writers that this process has served so far, for [`SubscriberSettings::served_before`] of the next run.
    pub served: Vec<InstanceHandle>,
    /// How it ended.
    pub end: End,
}

/// Attempts to write a reliable echo, of half a second each, on the thread that also notices the end of the test.
const ECHO_TRIES_ALONE: u32 = 10;

/// Bytes of samples that are taken at a time.
const TAKE_BYTES: usize = 256 << 10;

/// What was received, shared by the receiving and the reporting thread.
pub(super) struct Receiver<T> {
    limits: Limits,
    echo: DataWriter<T>,
    tally: Mutex<Tally>,
    samples: Mutex<SampleSeq<T>>,
    /// Notified at the first sign of a publisher, at the first sample, and when a publisher is done.
    pub(super) news: Condvar,
    /// The same for a thread that polls.
    has_news: AtomicBool,
    /// Attempts to write an echo that finds no room.
    echo_tries: u32,
    /// The test has ended: no echo is awaited any more.
    is_over: AtomicBool,
}

/// The counts so far.
#[derive(Debug, Default)]
pub(super) struct Tally {
    streams: Vec<Stream>,
    /// Writers that an earlier run served.
    served_before: Vec<InstanceHandle>,
    /// Only some instances are received, so missing samples are no losses.
    is_filtered: bool,
    /// The one that the last sample was of.
    recent: usize,
    /// Size of the samples, header included.
    pub(super) data_len: usize,
    /// What the publisher says of the run.
    pub(super) description: Option<Description>,
    /// Data samples.
    pub(super) samples: u64,
    /// When the first data sample arrived.
    pub(super) first_ns: Option<u64>,
    /// When the last data sample arrived.
    last_ns: u64,
    /// When the last publisher's final marker arrived.
    finished_ns: Option<u64>,
}

/// One publisher's samples.
#[derive(Debug)]
struct Stream {
    entity_id: i32,
    /// The one writer that is served: another publisher with the same number is the next run.
    writer: InstanceHandle,
    numbers: Numbers,
    /// When it was last received from.
    heard_ns: u64,
    is_finished: bool,
    /// What its publisher said at the end.
    farewell: Option<Farewell>,
}

impl Tally {
    /// Nothing was counted yet, and nothing of these writers will be.
    pub(super) fn without(served_before: &[InstanceHandle]) -> Self {
        Self { served_before: served_before.to_vec(), ..Self::default() }
    }

    /// Counts one sample as [`Tally::accept`] does, if it is like most: one of the publisher that the last one was of,
    /// which is not echoed. `false`: it was not counted.
    #[inline]
    fn accept_like_the_last(
        &mut self,
        sample: &ReceivedSample<'_>,
        writer: InstanceHandle,
        now_ns: u64,
    ) -> bool {
        let Some(stream) = self.streams.get_mut(self.recent) else { return false };
        let is_like = Kind::of(&sample.header) == Kind::Data
            && stream.entity_id == sample.header.entity_id
            && stream.writer == writer
            && self.data_len == sample.payload.len() + HEADER_BYTES
            && self.last_ns == now_ns;
        if is_like {
            stream.record(sample.header.seq_num);
            self.samples += 1;
        }
        is_like
    }

    /// Counts one sample received at `now_ns`; false when it is not of a publisher that is served.
    #[inline]
    pub(super) fn accept(
        &mut self,
        limits: Limits,
        sample: &ReceivedSample<'_>,
        writer: InstanceHandle,
        now_ns: u64,
    ) -> bool {
        let ReceivedSample { header, payload } = *sample;
        let Some(at) = self.find(limits.publishers, header.entity_id, writer) else { return false };
        self.recent = at;
        let stream = &mut self.streams[at];
        stream.heard_ns = now_ns;
        let kind = Kind::of(&header);
        if matches!(kind, Kind::Data | Kind::Ping(_)) {
            stream.record(header.seq_num);
            self.samples += 1;
            self.data_len = payload.len() + HEADER_BYTES;
            self.last_ns = now_ns;
            self.first_ns.get_or_insert(now_ns);
        }
        if kind == Kind::Initialize {
            self.description = self.description.or_else(|| Description::read(payload));
        }
        if kind == Kind::Final && !stream.is_finished {
            stream.is_finished = true;
            stream.farewell = Farewell::read(payload);
            stream.numbers.finish(stream.numbers.extend(header.seq_num));
            self.conclude(Description::read(payload));
            if self.has_all(limits.publishers) && self.done().count() == self.streams.len() {
                self.finished_ns = Some(now_ns);
            }
        }
        true
    }

    /// Takes the description of a final marker in place of an earlier one: a publisher may end before its last size.
    /// Another size follows only if all publishers that are done say so.
    fn conclude(&mut self, last: Option<Description>) {
        let ends_here =
            self.description.is_some_and(|earlier| !earlier.more_follows) && self.done().count() > 1;
        let last = last.map(|last| Description { more_follows: last.more_follows && !ends_here, ..last });
        self.description = last.or(self.description);
    }

    /// The place of the stream that a sample belongs to: that of its writer, or a new one if a
    /// publisher is still expected.
    #[inline]
    fn find(&mut self, publishers: usize, entity_id: i32, writer: InstanceHandle) -> Option<usize> {
        let streams = &mut self.streams;
        match streams.iter().position(|stream| stream.entity_id == entity_id) {
            Some(at) => (streams[at].writer == writer).then_some(at),
            None if streams.len() < publishers && !self.served_before.contains(&writer) => {
                streams.push(Stream {
                    entity_id,
                    writer,
                    numbers: Numbers::starting_at(0),
                    heard_ns: 0,
                    is_finished: false,
                    farewell: None,
                });
                Some(streams.len() - 1)
            }
            None => None,
        }
    }

    /// Publishers that were received from.
    pub(super) fn heard(&self) -> usize {
        self.streams.len()
    }

    /// Whether all publishers to be served were received from.
    pub(super) fn has_all(&self, publishers: usize) -> bool {
        self.streams.len() >= publishers
    }

    /// Whether all publishers are done.
    pub(super) fn is_finished(&self) -> bool {
        self.finished_ns.is_some()
    }

    /// The numbers of the publishers that are done.
    pub(super) fn done(&self) -> impl Iterator<Item = i32> {
        self.streams.iter().filter(|stream| stream.is_finished).map(|stream| stream.entity_id)
    }

    /// Whether a publisher is not done and not among these writers any more.
    pub(super) fn misses_one(&self, matched: &[InstanceHandle]) -> bool {
        self.streams.iter().any(|stream| !stream.is_finished && !matched.contains(&stream.writer))
    }

    /// Whether a publisher that is not done has been silent for longer than `limit`. What others send does not count.
    pub(super) fn has_silent(&self, now_ns: u64, limit: Duration) -> bool {
        let is_silent = |stream: &Stream| now_ns.saturating_sub(stream.heard_ns) > nanos(limit);
        self.streams.iter().any(|stream| !stream.is_finished && is_silent(stream))
    }

    /// The writers that are served, and those that earlier runs served.
    fn all_served(&self) -> Vec<InstanceHandle> {
        self.served_before.iter().copied().chain(self.streams.iter().map(|stream| stream.writer)).collect()
    }

    /// The counts of all publishers.
    pub(super) fn counts(&self) -> SequenceCounts {
        let mut counts = SequenceCounts::default();
        for stream in &self.streams {
            counts.merge(&stream.numbers.counts());
        }
        if self.is_filtered {
            // What did not pass the filter is missing, too.
            counts.lost = 0;
        }
        counts
    }

    /// From the first sample to the end, or to the last sample.
    fn received_in(&self) -> Duration {
        let end_ns = self.finished_ns.unwrap_or(self.last_ns);
        Duration::from_nanos(self.first_ns.map_or(0, |first_ns| end_ns.saturating_sub(first_ns)))
    }
}

impl Tally {
    /// The result of a run. The publishers' drops arrived with their final markers; without them a
    /// part of the losses stays unplaced.
    pub(super) fn received(
        &self,
        end: End,
        (kernel_drops, rejected): (u64, u64),
        receiver: DropCounters,
    ) -> Received {
        let farewells: Option<Vec<Farewell>> =
            self.streams.iter().map(|stream| stream.farewell.clone()).collect();
        let farewells = farewells.unwrap_or_default();
        let engine = EngineCounts {
            left_out: farewells.iter().map(|farewell| farewell.left_out).sum(),
            refused: farewells.iter().map(|farewell| farewell.refused).sum(),
            rejected,
        };
        let drops: Vec<DropCounters> = farewells.into_iter().map(|farewell| farewell.drops).collect();
        let sender = DropCounters::together(&drops);
        let sent = self.streams.iter().map(|stream| stream.numbers.expected()).sum();
        let per_batch =
            self.description.map_or(1, |description| description.batch_bytes / description.data_len.max(1));
        let max = SEGMENTS_MAX * u64::from(per_batch.max(1));
        let counts = self.counts();
        Received {
            data_len: self.data_len,
            counts,
            received_in: self.received_in(),
            kernel_drops,
            loss: stream_loss((counts.lost, engine), (sent, sender), (self.samples, receiver), max),
            description: self.description,
            served: self.all_served(),
            end,
        }
    }
}

/// Which samples are a subscriber's.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// Its number.
    sid: u32,
    /// How many publishers it serves.
    publishers: usize,
}

impl Limits {
    pub(super) fn of(settings: &SubscriberSettings) -> Self {
        Self { sid: settings.sid, publishers: settings.num_publishers as usize }
    }

    /// Whether it echoes samples of this kind.
    pub(super) fn echo(self, kind: Kind) -> bool {
        kind == Kind::Initialize || kind == Kind::Ping(self.sid)
    }
}

impl Stream {
    #[inline]
    fn record(&mut self, seq_num: u32) {
        self.numbers.record(self.numbers.extend(seq_num));
    }
}

impl<T: Owned> Receiver<T> {
    pub(super) fn new(settings: &SubscriberSettings, echo: DataWriter<T>) -> Self {
        Self {
            limits: Limits::of(settings),
            echo,
            tally: Mutex::new(Tally {
                is_filtered: settings.node.only.is_some(),
                ..Tally::without(&settings.served_before)
            }),
            samples: Mutex::new(SampleSeq::new()),
            news: Condvar::new(),
            has_news: AtomicBool::new(false),
            // Without threads, the thread that writes echoes is the one that notices the end.
            echo_tries: match (settings.node.reliable, settings.node.is_small) {
                (false, _) => 1,
                (true, true) => ECHO_TRIES_ALONE,
                (true, false) => u32::MAX,
            },
            is_over: AtomicBool::new(false),
        }
    }

    /// Takes all samples.
    pub(super) fn drain(&self, reader: &DataReader<T>) {
        let mut samples = self.samples.lock();
        loop {
            let data_len = self.tally.lock().data_len;
            let max = (TAKE_BYTES / data_len.max(1)).clamp(1, 256);
            if reader.take_into(&mut samples, max) == 0 {
                return;
            }
            self.accept(&samples);
        }
    }

    /// Sends a sample back. A publisher waits for a reliable echo as long as its subscriber is there. One that is not
    /// reliable and finds no room is a lost ping, which the publisher counts.
    fn write_echo(&self, data: &T) {
        for _ in 0..self.echo_tries {
            let is_timeout = matches!(self.echo.write(data), Err(DdsError::Timeout { .. }));
            if !is_timeout || self.is_over.load(Ordering::Relaxed) {
                return;
            }
        }
    }

    /// Ends the attempts to write an echo, because the test is over.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    fn accept(&self, samples: &SampleSeq<T>) {
        let now_ns = clock::now_ns();
        let mut tally = self.tally.lock();
        let state = |tally: &Tally| (tally.heard(), tally.first_ns.is_some(), tally.done().count());
        let before = state(&tally);
        // A writer's end is not a sample.
        for sample in samples {
            let Some(data) = sample.data() else { continue };
            let received = ReceivedSample { header: data.header(), payload: data.payload() };
            let writer = sample.info.publication_handle;
            if tally.accept_like_the_last(&received, writer, now_ns) {
                continue;
            }
            let is_served = tally.accept(self.limits, &received, writer, now_ns);
            if is_served && self.limits.echo(Kind::of(&received.header)) {
                // This takes long on a slow link. The thread that reports and ends the test goes on meanwhile.
                MutexGuard::unlocked(&mut tally, || self.write_echo(data));
            }
        }
        if before != state(&tally) {
            self.has_news.store(true, Ordering::Relaxed);
            self.news.notify_all();
        }
    }

    /// Whether there was news since the last call.
    pub(super) fn take_news(&self) -> bool {
        self.has_news.load(Ordering::Relaxed) && self.has_news.swap(false, Ordering::Relaxed)
    }

    /// The counts so far.
    pub(super) fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock()
    }
}

/// Receives on the engine's thread.
pub(super) struct ReceiverListener<T>(pub(super) Arc<Receiver<T>>);

impl<T: Owned> DataReaderListener<T> for ReceiverListener<T> {
    fn on_data_available(&self, reader: &DataReader<T>) {
        self.0.drain(reader);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perftest::message::header;

    const LIMITS: Limits = Limits { sid: 1, publishers: 1 };

    fn guid(byte: u8) -> InstanceHandle {
        weir_dds::Guid::from_bytes([byte; 16]).into()
    }

    /// A sample of 100 bytes.
    fn sample(kind: Kind, pid: u32, sequence: u64) -> ReceivedSample<'static> {
        ReceivedSample { header: header(kind, pid, sequence, [0; 4]), payload: &[0; 72] }
    }

    /// Counts a sample; true when it must be echoed.
    fn accept(tally: &mut Tally, kind: Kind, sequence: u64, writer: u8) -> bool {
        tally.accept(LIMITS, &sample(kind, 0, sequence), guid(writer), 1000 + sequence) && LIMITS.echo(kind)
    }

    #[test]
    fn loss_counts_from_the_first_sample_and_to_the_last() {
        let mut tally = Tally::default();
        for sequence in [2, 3, 5, 4] {
            assert!(!accept(&mut tally, Kind::Data, sequence, 7));
        }
        assert!(!tally.is_finished());
        accept(&mut tally, Kind::Final, 10, 7);
        accept(&mut tally, Kind::Final, 10, 7);
        let counts = tally.counts();
        // 0 and 1 before, 6 to 9 after; 4 arrived out of order and is not lost.
        assert_eq!((counts.received, counts.lost, counts.reordered), (4, 6, 1));
        assert!(tally.is_finished());
        assert_eq!((tally.samples, tally.data_len), (4, 100));
        assert_eq!(tally.received_in(), Duration::from_nanos(8));
    }

    #[test]
    fn samples_like_the_last_are_counted_alike() {
        let sequences = [0, 1, 2, 5, 4, 4, 6, 9];
        let count = |is_quick: bool| {
            let mut tally = Tally::default();
            let mut quick = 0;
            for (at, sequence) in sequences.into_iter().enumerate() {
                let (sample, writer) = (sample(Kind::Data, 0, sequence), guid(7 + u8::from(at == 6)));
                if is_quick && tally.accept_like_the_last(&sample, writer, 1000) {
                    quick += 1;
                } else {
                    tally.accept(LIMITS, &sample, writer, 1000);
                }
            }
            (
                tally.counts(),
                tally.samples,
                tally.streams.iter().map(|one| one.numbers.expected()).sum::<u64>(),
                quick,
            )
        };
        let ((counts, samples, sent, _), quick) = (count(false), count(true));
        // All but the first one, and the one of another writer, which does not count.
        assert_eq!(quick, (counts, samples, sent, 6));
        let mut tally = Tally::default();
        accept(&mut tally, Kind::Data, 0, 7);
        for (kind, bytes, now_ns) in [
            (Kind::Ping(1), 100, 1000),
            (Kind::Final, 100, 1000),
            (Kind::Data, 50, 1000),
            (Kind::Data, 100, 7),
        ] {
            let sample = ReceivedSample { payload: &[0; 100][..bytes - HEADER_BYTES], ..sample(kind, 0, 1) };
            assert!(!tally.accept_like_the_last(&sample, guid(7), now_ns), "{kind:?}");
        }
    }

    #[test]
    fn only_its_own_pings_are_echoed() {
        let mut tally = Tally::default();
        assert!(accept(&mut tally, Kind::Initialize, 0, 7));
        assert!(!accept(&mut tally, Kind::Ping(0), 0, 7));
        assert!(accept(&mut tally, Kind::Ping(1), 1, 7));
        assert_eq!(tally.samples, 2);
    }

    #[test]
    fn the_next_run_of_the_same_publisher_is_not_counted() {
        let mut tally = Tally::default();
        accept(&mut tally, Kind::Data, 0, 7);
        assert!(!accept(&mut tally, Kind::Initialize, 0, 8));
        accept(&mut tally, Kind::Data, 0, 8);
        accept(&mut tally, Kind::Final, 1, 8);
        assert!(!tally.is_finished());
        accept(&mut tally, Kind::Final, 1, 7);
        assert!(tally.is_finished());
        assert_eq!(tally.counts().received, 1);
    }

    #[test]
    fn what_a_publisher_that_was_served_before_still_says_is_no_run() {
        let mut tally = Tally::default();
        accept(&mut tally, Kind::Final, 9, 7);
        let mut next = Tally::without(&tally.all_served());
        accept(&mut next, Kind::Final, 9, 7);
        assert!(!next.is_finished() && next.heard() == 0);
        accept(&mut next, Kind::Final, 0, 8);
        assert!(next.is_finished());
        assert_eq!((next.counts().lost, next.all_served()), (0, vec![guid(7), guid(8)]));
    }

    #[test]
    fn a_publisher_that_vanishes_before_its_end_is_missed() {
        let mut tally = Tally::default();
        let limits = Limits { sid: 0, publishers: 2 };
        for pid in [0, 1] {
            tally.accept(limits, &sample(Kind::Data, pid, 0), guid(pid as u8), 1);
        }
        assert!(!tally.misses_one(&[guid(0), guid(1)]));
        assert!(tally.misses_one(&[guid(1), guid(9)]));
        tally.accept(limits, &sample(Kind::Final, 0, 1), guid(0), 2);
        assert_eq!(tally.done().collect::<Vec<_>>(), [0]);
        assert!(!tally.misses_one(&[guid(1)]) && !tally.is_finished());
    }

    #[test]
    fn a_publisher_is_silent_whatever_others_send() {
        let limit = Duration::from_nanos(10);
        let limits = Limits { sid: 0, publishers: 2 };
        let mut tally = Tally::default();
        assert!(!tally.has_silent(u64::MAX, limit));
        tally.accept(limits, &sample(Kind::Data, 0, 0), guid(0), 100);
        tally.accept(limits, &sample(Kind::Data, 1, 0), guid(1), 100);
        // The same publisher, started again: it is of the next run.
        assert!(!tally.accept(limits, &sample(Kind::Initialize, 0, 0), guid(7), 110));
        tally.accept(limits, &sample(Kind::Serving, 1, 0), guid(1), 110);
        assert!(!tally.has_silent(110, limit) && tally.has_silent(111, limit));
        // One that is done may be silent.
        tally.accept(limits, &sample(Kind::Final, 0, 1), guid(0), 111);
        assert!(!tally.has_silent(120, limit) && tally.has_silent(121, limit));
    }

    #[test]
    fn only_publishers_that_are_served_describe_the_run() {
        let mut tally = Tally::default();
        let mut payload = Vec::new();
        Description { data_len: 64, more_follows: true, ..Description::default() }.write(&mut payload);
        let last = ReceivedSample { payload: &payload, ..sample(Kind::Final, 0, 0) };
        accept(&mut tally, Kind::Data, 0, 7);
        assert!(!tally.accept(LIMITS, &last, guid(8), 1));
        assert_eq!(tally.description, None);
        assert!(tally.accept(LIMITS, &last, guid(7), 1));
        assert!(tally.description.unwrap().more_follows);
    }

    #[test]
    fn the_last_word_on_whether_another_size_follows_is_the_final_marker() {
        let say = |tally: &mut Tally, kind: Kind, pid: u32, more_follows: bool| {
            let mut payload = Vec::new();
            Description { data_len: 64, more_follows, ..Description::default() }.write(&mut payload);
            let said = ReceivedSample { payload: &payload, ..sample(kind, pid, 0) };
            assert!(tally.accept(Limits { sid: 0, publishers: 2 }, &said, guid(pid as u8), 1));
        };
        let follows = |first: bool, second: bool| {
            let mut tally = Tally::default();
            say(&mut tally, Kind::Initialize, 0, true);
            say(&mut tally, Kind::Initialize, 1, true);
            say(&mut tally, Kind::Final, 0, first);
            say(&mut tally, Kind::Final, 1, second);
            assert!(tally.is_finished());
            tally.description.unwrap().more_follows
        };
        assert_eq!([follows(false, false), follows(true, false), follows(false, true)], [false; 3]);
        assert!(follows(true, true));
    }

    #[test]
    fn a_run_without_samples_ends_with_zeros() {
        let mut tally = Tally::default();
        accept(&mut tally, Kind::Final, 0, 7);
        assert!(tally.is_finished());
        assert_eq!((tally.counts().lost, tally.received_in()), (0, Duration::ZERO));
    }
}
