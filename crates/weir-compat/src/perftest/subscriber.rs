//! The subscriber: announces itself, receives, echoes, counts, and ends with its publishers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weir_dds::{DataReader, DataWriter, InstanceHandle};
use weir_measure::clock;
use weir_telemetry::LossWatch;

use super::event::{End, Event};
use super::intervals::Intervals;
use super::message::{self, Kind};
use super::node::{Batch, LATENCY, Node, THROUGHPUT, failed};
use super::probe::Role;
use super::raw;
use super::receiver::{Received, Receiver, ReceiverListener};
use super::settings::SubscriberSettings;
use super::waiting::{NextSize, Waiting};
use weir_bench::endpoint::EndpointError;
use weir_bench::test_data::{KeyedTestData, Owned, TestData};

/// How often a waiting subscriber announces itself.
const SECOND: Duration = Duration::from_secs(1);

/// How long a subscriber that is done waits until its publishers know.
const FAREWELL: Duration = Duration::from_secs(2);

/// Serves one run of every publisher.
pub fn subscribe(
    settings: &SubscriberSettings,
    interrupted: &AtomicBool,
    on_event: &mut dyn FnMut(Event),
) -> Result<Received, EndpointError> {
    if settings.node.raw.is_some() {
        raw::subscribe(settings, interrupted, on_event)
    } else if settings.node.keyed {
        run::<KeyedTestData>(settings, interrupted, on_event)
    } else {
        run::<TestData>(settings, interrupted, on_event)
    }
}

struct Subscriber<'a, T> {
    settings: &'a SubscriberSettings,
    reader: DataReader<T>,
    receiver: Arc<Receiver<T>>,
    announcement: DataWriter<T>,
    /// The last announcement, the number of publishers done in it, and its time.
    last_said: Option<(Kind, usize, u64)>,
}

fn run<T: Owned>(
    settings: &SubscriberSettings,
    interrupted: &AtomicBool,
    on_event: &mut dyn FnMut(Event),
) -> Result<Received, EndpointError> {
    let node = Node::open(&settings.node)?;
    let echo = node.writer::<T>(LATENCY, Batch::default())?;
    let receiver = Arc::new(Receiver::new(settings, echo));
    let announcement = node.announcement_writer()?;
    let (reader, reading) = node.reader(THROUGHPUT, Some(ReceiverListener(Arc::clone(&receiver))))?;
    node.place_threads()?;
    let mut subscriber = Subscriber { settings, reader, receiver, announcement, last_said: None };
    let loss_watch = LossWatch::start(None);
    let end = subscriber.watch(&node, interrupted, on_event);
    subscriber.receiver.end();
    let end = end?;
    drop(reading);
    let kernel_drops = node.participant.receive_drops().into();
    let rejected = subscriber.reader.protocol_counters().samples_rejected;
    Ok(subscriber.receiver.tally().received(end, (kernel_drops, rejected), loss_watch.counters()))
}

impl<T: Owned> Subscriber<'_, T> {
    /// Announces, reports, and notices the end.
    fn watch(
        &mut self,
        node: &Node,
        interrupted: &AtomicBool,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<End, EndpointError> {
        let publishers = self.settings.num_publishers;
        let mut waiting = Some(Waiting::start(node, Role::Subscriber, publishers)?);
        let mut next_size = NextSize::start(self.settings.is_next_size, clock::now_ns());
        if let Some(end) = self.discover(waiting.as_mut(), &mut next_size, interrupted, on_event)? {
            return Ok(end);
        }
        on_event(Event::Stage("Waiting for data ...".to_owned()));
        let mut intervals = Intervals::start(clock::now_ns());
        let end = loop {
            self.announce_if_new()?;
            let mut tally = self.receiver.tally();
            if !tally.is_finished() {
                // Ctrl-C does not wake this thread.
                let left = intervals.left(clock::now_ns()).min(Duration::from_millis(100));
                if self.settings.node.is_small {
                    drop(tally);
                    node.rest_until(left, || self.receiver.take_news());
                    tally = self.receiver.tally();
                } else {
                    self.receiver.news.wait_for(&mut tally, left);
                }
            }
            let (is_finished, has_all) = (tally.is_finished(), tally.has_all(publishers as usize));
            let has_begun = intervals.begin(tally.first_ns);
            drop(tally);
            if has_begun {
                on_event(Event::Begun);
            }
            // Waiting is no longer needed then, and would disturb the run.
            if has_all && waiting.take().is_some() {
                let description = self.receiver.tally().description;
                description.into_iter().for_each(|description| on_event(Event::Described(description)));
            }
            if is_finished {
                break End::Complete;
            }
            if interrupted.load(Ordering::Relaxed) {
                break End::Interrupted;
            }
            let now_ns = clock::now_ns();
            if intervals.is_due(now_ns) {
                let interval = intervals.next(&self.receiver.tally(), now_ns);
                let interval = interval.filter(|_| self.settings.node.intervals);
                interval.into_iter().for_each(|interval| on_event(Event::Interval(interval)));
                let matched = self.reader.matched_publications();
                if let Some(waiting) = &mut waiting {
                    // Only publishers that were received from count: of two matched ones with the same
                    // number, only one is served.
                    let heard = self.receiver.tally().heard() as u32;
                    let found = if heard > 0 { heard } else { matched.len() as u32 };
                    waiting.look(found, on_event);
                }
                let are_there = has_all || self.has_new(&matched);
                if self.receiver.tally().misses_one(&matched) || next_size.is_over(are_there, now_ns) {
                    break End::PeerGone;
                }
            }
        };
        // An interrupted subscriber just leaves: publishers that are not done notice that.
        if end == End::Complete {
            self.announce(Kind::Final)?;
            // A publisher that has left needs no answer.
            let _ = self.announcement.wait_for_acknowledgments(FAREWELL);
        }
        Ok(end)
    }

    /// Waits until enough publishers are matched; `Some` when the run is over before.
    fn discover(
        &mut self,
        mut waiting: Option<&mut Waiting>,
        next_size: &mut NextSize,
        interrupted: &AtomicBool,
        on_event: &mut dyn FnMut(Event),
    ) -> Result<Option<End>, EndpointError> {
        let publishers = self.settings.num_publishers;
        on_event(Event::Stage(format!("Waiting to discover {publishers} publishers ...")));
        while self.reader.wait_for_publications(publishers.into(), SECOND / 5).is_err() {
            if interrupted.load(Ordering::Relaxed) {
                return Ok(Some(End::Interrupted));
            }
            if next_size.is_over(false, clock::now_ns()) {
                return Ok(Some(End::PeerGone));
            }
            if let Some(waiting) = &mut waiting {
                let found = self.reader.subscription_matched_status().current_count;
                waiting.look(u32::try_from(found).unwrap_or(u32::MAX), on_event);
            }
            // Early publishers may be done before later ones start.
            self.announce_if_new()?;
        }
        Ok(None)
    }

    /// Whether there are as many publishers as it serves among these, without those that it has served already.
    fn has_new(&self, matched: &[InstanceHandle]) -> bool {
        let is_new = |writer: &&InstanceHandle| !self.settings.served_before.contains(writer);
        matched.iter().filter(is_new).count() >= self.settings.num_publishers as usize
    }

    /// Announces whether this end waits or serves, and which publishers are done, when that changed
    /// or was announced long ago.
    fn announce_if_new(&mut self) -> Result<(), EndpointError> {
        let now_ns = clock::now_ns();
        let (is_serving, done) = {
            let tally = self.receiver.tally();
            (tally.has_all(self.settings.num_publishers as usize), tally.done().count())
        };
        let said = if is_serving { Kind::Serving } else { Kind::Here };
        let is_known = self.last_said.is_some_and(|(kind, count, at_ns)| {
            (kind, count) == (said, done) && (is_serving || now_ns - at_ns < SECOND.as_nanos() as u64)
        });
        if is_known {
            return Ok(());
        }
        self.last_said = Some((said, done, now_ns));
        self.announce(said)
    }

    fn announce(&self, said: Kind) -> Result<(), EndpointError> {
        let (mut sample, sid) = (T::default(), self.settings.sid);
        sample.set_header(&message::header(said, sid, 0, sid.to_le_bytes()));
        message::write_numbers(self.receiver.tally().done(), sample.payload_mut());
        self.announcement.write(&sample).map_err(failed)?;
        self.announcement.flush();
        Ok(())
    }
}
