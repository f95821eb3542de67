//! The subscriber: announces itself, receives, echoes, counts, and ends with its publishers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weir_dds::{DataReader, DataWriter};
use weir_results::{Carried, DropCounters, LossAttribution, LossEvidence, SequenceCounts, attribute};
use weir_telemetry::LossWatch;

use super::message::{self, Kind};
use super::node::{Batch, LATENCY, Node, THROUGHPUT, failed};
use super::receiver::{Receiver, ReceiverListener, Tally};
use super::settings::{NodeSettings, Receive, SubscriberSettings};
use super::{End, Event};
use crate::clock;
use crate::endpoint::EndpointError;
use crate::engine::test_data::{KeyedTestData, Owned, TestData};

/// What came within a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    /// Size of the samples, header included.
    pub data_len: usize,
    /// Samples so far.
    pub samples: u64,
    /// Samples in this interval.
    pub new_samples: u64,
    /// How long the interval was.
    pub length: Duration,
    /// Samples missing so far.
    pub lost: u64,
}

/// What a subscriber found.
#[derive(Clone, Debug, PartialEq)]
pub struct Received {
    /// Size of the samples, header included; 0 when none came.
    pub data_len: usize,
    /// Samples received, lost, repeated and out of order.
    pub counts: SequenceCounts,
    /// From the first sample to the final marker.
    pub received_in: Duration,
    /// Datagrams that found the socket's buffer full.
    pub kernel_drops: u64,
    /// Where the lost samples went.
    pub loss: LossAttribution,
    /// How it ended.
    pub end: End,
}

/// How often a waiting subscriber announces itself, and rows of intervals come.
const SECOND: Duration = Duration::from_secs(1);

/// How long a subscriber that is done waits until its publishers know.
const FAREWELL: Duration = Duration::from_secs(2);

/// Serves one run of every publisher.
///
/// # Errors
/// Of the engine.
pub fn subscribe(
    settings: &SubscriberSettings,
    interrupted: &AtomicBool,
    on_event: &mut dyn FnMut(Event),
) -> Result<Received, EndpointError> {
    if settings.node.keyed {
        run::<KeyedTestData>(settings, interrupted, on_event)
    } else {
        run::<TestData>(settings, interrupted, on_event)
    }
}

struct Ends<T> {
    reader: DataReader<T>,
    receiver: Arc<Receiver<T>>,
    announcement: DataWriter<T>,
    sid: u32,
}

fn run<T: Owned>(
    settings: &SubscriberSettings,
    interrupted: &AtomicBool,
    on_event: &mut dyn FnMut(Event),
) -> Result<Received, EndpointError> {
    let node = Node::open(&settings.node)?;
    let echo = node.writer::<T>(LATENCY, Batch::default())?;
    let receiver = Arc::new(Receiver::new(settings.sid, settings.num_publishers, echo));
    let listener =
        (settings.node.receive == Receive::Listener).then(|| ReceiverListener(Arc::clone(&receiver)));
    let announcement = node.announcement_writer()?;
    let reader = node.reader(THROUGHPUT, listener)?;
    node.place_threads()?;
    let ends = Ends { reader, receiver, announcement, sid: settings.sid };
    let stop = AtomicBool::new(false);
    let loss_watch = LossWatch::start(None);
    let end = std::thread::scope(|scope| {
        if let Receive::Thread { delay, count } = settings.node.receive {
            let (ends, stop) = (&ends, &stop);
            scope.spawn(move || read(&ends.reader, &ends.receiver, delay, count, stop));
        }
        let end = watch(&ends, settings, interrupted, on_event);
        stop.store(true, Ordering::Relaxed);
        end
    })?;
    let tally = ends.receiver.tally();
    Ok(Received {
        data_len: tally.data_len,
        counts: tally.counts(),
        received_in: tally.received_in(),
        kernel_drops: node.participant.receive_drops().into(),
        loss: explain_loss(&tally, loss_watch.counters()),
        end,
    })
}

/// Datagrams of one buffer of the kernel at most: `UDP_MAX_SEGMENTS`.
const SEGMENTS_MAX: u64 = 128;

/// Where the lost samples went. What the publishers' hosts dropped came with the final markers; without them a part stays
/// unplaced.
fn explain_loss(tally: &Tally, receiver: DropCounters) -> LossAttribution {
    let farewells = tally.farewells().unwrap_or_default();
    let refused = farewells.iter().map(|farewell| farewell.refused).sum();
    let drops: Vec<DropCounters> = farewells.into_iter().map(|farewell| farewell.drops).collect();
    let sender = DropCounters::together(&drops);
    let per_batch =
        tally.description.map_or(1, |description| description.batch_bytes / description.data_len.max(1));
    let max = SEGMENTS_MAX * u64::from(per_batch.max(1));
    let carried = Carried::measured(tally.sent(), &sender, tally.samples, &receiver, max);
    let evidence = LossEvidence::new(tally.counts().lost, refused, &sender, &receiver, carried);
    LossAttribution { sender, receiver, ..attribute(&evidence) }
}

/// Takes samples on a thread of its own.
fn read<T: Owned>(
    reader: &DataReader<T>,
    receiver: &Receiver<T>,
    delay: Duration,
    count: usize,
    stop: &AtomicBool,
) {
    while !stop.load(Ordering::Relaxed) {
        if reader.wait_for_data(Duration::from_millis(100)) {
            if !delay.is_zero() && reader.available() < count {
                std::thread::sleep(delay);
            }
            receiver.drain(reader);
        }
    }
}

/// Announces, reports, and notices the end.
fn watch<T: Owned>(
    ends: &Ends<T>,
    settings: &SubscriberSettings,
    interrupted: &AtomicBool,
    on_event: &mut dyn FnMut(Event),
) -> Result<End, EndpointError> {
    let publishers = settings.num_publishers;
    on_event(Event::Stage(format!("Waiting to discover {publishers} publishers ...")));
    let mut told = None;
    while ends.reader.wait_for_publications(publishers, SECOND).is_err() {
        if interrupted.load(Ordering::Relaxed) {
            return Ok(End::Interrupted);
        }
        let status = ends.reader.requested_incompatible_qos_status();
        if status.last_policy.is_some() && told != status.last_policy {
            told = status.last_policy;
            on_event(Event::Warning(mismatch("publisher", told)));
        }
        // Publishers that were heard already may be done before the others come.
        ends.announce_if_waiting(settings)?;
    }
    on_event(Event::Stage("Waiting for data ...".to_owned()));
    ends.announce_if_waiting(settings)?;
    let mut report = Report::default();
    let mut is_serving = false;
    let mut next_ns = clock::now_ns() + SECOND.as_nanos() as u64;
    let end = loop {
        let mut tally = ends.receiver.tally();
        if !tally.is_finished() {
            let left = Duration::from_nanos(next_ns.saturating_sub(clock::now_ns()));
            // Ctrl-C wakes nobody up.
            ends.receiver.news.wait_for(&mut tally, left.min(Duration::from_millis(100)));
        }
        let (is_finished, has_begun) = (tally.is_finished(), tally.has_begun);
        let has_all = tally.has_all(publishers as usize);
        drop(tally);
        if has_all && !is_serving {
            is_serving = true;
            ends.announce(Kind::Serving)?;
            report.begin(ends, on_event);
        }
        if is_finished {
            break End::Complete;
        }
        if interrupted.load(Ordering::Relaxed) {
            break End::Interrupted;
        }
        if clock::now_ns() >= next_ns {
            next_ns += SECOND.as_nanos() as u64;
            report.second(ends, &settings.node, on_event);
            ends.announce_if_waiting(settings)?;
            if has_begun && ends.reader.subscription_matched_status().current_count == 0 {
                break End::PeerGone;
            }
        }
    };
    ends.announce(Kind::Final)?;
    if end == End::Complete {
        // A publisher that has gone meanwhile needs to know nothing.
        let _ = ends.announcement.wait_for_acknowledgments(FAREWELL);
    }
    Ok(end)
}

impl<T: Owned> Ends<T> {
    fn announce_if_waiting(&self, settings: &SubscriberSettings) -> Result<(), EndpointError> {
        let is_waiting = !self.receiver.tally().has_all(settings.num_publishers as usize);
        if is_waiting { self.announce(Kind::Here) } else { Ok(()) }
    }

    fn announce(&self, said: Kind) -> Result<(), EndpointError> {
        let mut sample = T::default();
        sample.set_header(&message::header(said, self.sid, 0, self.sid.to_le_bytes()));
        self.announcement.write(&sample).map_err(failed)?;
        self.announcement.flush();
        Ok(())
    }
}

/// Rows of seconds.
#[derive(Debug, Default)]
struct Report {
    samples: u64,
    since_ns: Option<u64>,
}

impl Report {
    fn begin<T: Owned>(&self, ends: &Ends<T>, on_event: &mut dyn FnMut(Event)) {
        let description = ends.receiver.tally().description;
        if let Some(description) = description {
            on_event(Event::Described(description));
        }
    }

    fn second<T: Owned>(&mut self, ends: &Ends<T>, node: &NodeSettings, on_event: &mut dyn FnMut(Event)) {
        let tally = ends.receiver.tally();
        let Some(first_ns) = tally.first_ns.filter(|_| node.intervals) else { return };
        let now_ns = clock::now_ns();
        let interval = Interval {
            data_len: tally.data_len,
            samples: tally.samples,
            new_samples: tally.samples - self.samples,
            length: Duration::from_nanos(now_ns.saturating_sub(self.since_ns.unwrap_or(first_ns))),
            lost: tally.counts().lost,
        };
        self.samples = tally.samples;
        self.since_ns = Some(now_ns);
        drop(tally);
        on_event(Event::Interval(interval));
    }
}

/// Why the other end is not matched.
pub(super) fn mismatch(other: &str, policy: Option<weir_dds::PolicyId>) -> String {
    let policy = policy.map_or_else(|| "a policy".to_owned(), |policy| format!("{policy:?}"));
    format!(
        "a {other} was found whose QoS does not fit: {policy}; give both ends the same -bestEffort, -keyed and -domain"
    )
}
