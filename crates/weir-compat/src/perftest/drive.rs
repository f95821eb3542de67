//! A publisher's run, for any carrier.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use weir_bench::endpoint::EndpointError;
use weir_bench::payload::SampleHeader;
use weir_measure::{clock, nanos, pause};
use weir_results::LatencyKind;

use super::echoes::{Echoes, Published};
use super::event::{Echo, End, Event};
use super::message::{self, Kind};
use super::pacing::CHECK;
use super::settings::PublisherSettings;

/// A publisher's run, and what it shares with the thread that started it.
pub(super) struct Run<'a> {
    settings: &'a PublisherSettings,
    interrupted: &'a AtomicBool,
    pub(super) on_event: &'a mut dyn FnMut(Event),
    echoes: Echoes,
    /// The numbers of the subscribers; not empty.
    subscribers: Vec<u32>,
    /// Whether a missing echo was reported.
    has_warned: bool,
    /// Where the content of the next sample begins.
    content_at: usize,
}

/// After this time without the echo of a reliable ping, that is reported.
const ECHO_EXPECTED: Duration = Duration::from_secs(5);

/// What carries samples and echoes.
pub(super) trait Carrier {
    /// Waits until the subscribers are there.
    fn wait_for_subscribers(&mut self, run: &mut Run<'_>) -> Result<End, EndpointError>;

    /// The numbers of the subscribers, once they are there: a ping names the one that is to echo it.
    fn subscribers(&self) -> Vec<u32>;

    /// Sends initialization pings, and prepares for samples.
    fn initialize(&mut self, run: &mut Run<'_>) -> Result<End, EndpointError>;
    /// Sends final markers until the subscribers confirm. `end` is how the samples ended.
    fn finish(&mut self, run: &mut Run<'_>, sent: u64, end: End) -> Result<End, EndpointError>;
    /// The key of a sample.
    fn key(&self, _sequence: u64) -> [u8; 4] {
        [0; 4]
    }

    /// The payload of the next sample.
    fn payload_mut(&mut self) -> &mut [u8];

    /// Writes the sample with this header; `Some` when the run is over.
    fn write(&mut self, header: &SampleHeader) -> Result<Option<End>, EndpointError>;

    /// Sends the samples of an unfinished batch.
    fn flush(&mut self) -> Result<(), EndpointError> {
        Ok(())
    }

    /// Waits for the echo of ping `sequence` from the subscriber at a place in [`Self::subscribers`]; returns when it
    /// arrived.
    fn wait_for_echo(
        &mut self,
        place: usize,
        sequence: u64,
        sent_ns: u64,
    ) -> Result<Option<u64>, EndpointError>;

    /// Whether a ping without an echo is lost.
    fn may_lose(&self) -> bool;

    /// Does what the engine has to do, if it has no threads.
    fn attend(&self) {}

    /// Why the run has to end, if it has. May receive.
    fn trouble(&mut self) -> Option<End>;
}

impl<'a> Run<'a> {
    pub(super) fn new(
        settings: &'a PublisherSettings,
        interrupted: &'a AtomicBool,
        on_event: &'a mut dyn FnMut(Event),
        echoes: mpsc::Receiver<Echo>,
    ) -> Self {
        let echoes = Echoes::new(echoes, settings.node.intervals);
        Self {
            settings,
            interrupted,
            on_event,
            echoes,
            subscribers: vec![0],
            has_warned: false,
            content_at: 0,
        }
    }

    /// Runs from the first subscriber to the last confirmation.
    pub(super) fn publish(mut self, carrier: &mut impl Carrier) -> Result<Published, EndpointError> {
        let (mut sent, mut sent_in) = (0, Duration::ZERO);
        let mut end = carrier.wait_for_subscribers(&mut self)?;
        if end == End::Complete {
            let subscribers = carrier.subscribers();
            if !subscribers.is_empty() {
                self.subscribers = subscribers;
            }
            end = carrier.initialize(&mut self)?;
        }
        if end == End::Complete {
            self.stage("Sending data ...");
            (self.on_event)(Event::Begun);
            let start_ns = clock::now_ns();
            (sent, end) =
                if self.settings.latency_test { self.ping(carrier)? } else { self.stream(carrier)? };
            sent_in = Duration::from_nanos(clock::now_ns() - start_ns);
            end = carrier.finish(&mut self, sent, end)?;
        }
        self.echoes.note_arrived(self.on_event);
        let latency = self.echoes.recorder.summary(LatencyKind::HalfRtt);
        Ok(Published { sent, sent_in, latency, end })
    }

    pub(super) fn stage(&mut self, text: impl Into<String>) {
        (self.on_event)(Event::Stage(text.into()));
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Whether the user has ended the run; looks after the engine.
    fn is_over(&self, carrier: &impl Carrier) -> bool {
        carrier.attend();
        self.is_stopped()
    }

    /// Writes as fast as possible, or at a rate. Returns the number of samples, too.
    fn stream(&mut self, carrier: &mut impl Carrier) -> Result<(u64, End), EndpointError> {
        let settings = self.settings;
        let per_batch = settings.samples_per_batch();
        let stride = settings.latency_count.max(1).saturating_mul(per_batch);
        // Samples between two clock reads.
        let per_read = (65_536 / settings.data_len as u64).clamp(1, 64);
        let start_ns = clock::now_ns();
        let end_ns = settings.end_ns(start_ns);
        let mut next_check_ns = start_ns;
        let is_slow = settings.rate.is_some() || settings.sleep.is_some();
        let (mut pings, mut next_ping) = (0_u64, if settings.pid == 0 { 0 } else { u64::MAX });
        let mut sequence = 0;
        while sequence < settings.num_iter {
            if let Some(rate) = settings.rate {
                rate.wait(start_ns, sequence, || self.is_over(carrier));
            }
            self.fill(carrier);
            let key = carrier.key(sequence);
            let header = if sequence == next_ping {
                let (_, subscriber) = self.addressee(pings);
                let header = message::header(Kind::Ping(subscriber), settings.pid, sequence, key);
                pings += 1;
                // Rotates through the places of a batch, so that no single one is measured.
                next_ping = pings.saturating_mul(stride).saturating_add(pings % per_batch);
                self.echoes.note_arrived(self.on_event);
                message::stamped(header, clock::now_ns())
            } else {
                message::header(Kind::Data, settings.pid, sequence, key)
            };
            if let Some(end) = carrier.write(&header)? {
                return Ok((sequence, end));
            }
            sequence += 1;
            if let Some(end) = self.pause(carrier) {
                return Ok((sequence, end));
            }
            if sequence % per_read == 0 || is_slow {
                if self.is_over(carrier) {
                    return Ok((sequence, End::Interrupted));
                }
                let now_ns = clock::now_ns();
                if now_ns >= end_ns {
                    self.stage("Finishing test due to timer...");
                    break;
                }
                if now_ns >= next_check_ns {
                    next_check_ns = now_ns + nanos(CHECK);
                    if let Some(end) = carrier.trouble() {
                        return Ok((sequence, end));
                    }
                }
            }
        }
        carrier.flush()?;
        Ok((sequence, End::Complete))
    }

    /// Sends one ping at a time, and waits for each. Returns the number of pings, too.
    fn ping(&mut self, carrier: &mut impl Carrier) -> Result<(u64, End), EndpointError> {
        let settings = self.settings;
        let start_ns = clock::now_ns();
        let end_ns = settings.end_ns(start_ns);
        for sequence in 0..settings.num_iter {
            if let Some(rate) = settings.rate {
                rate.wait(start_ns, sequence, || self.is_over(carrier));
            }
            let (place, subscriber) = self.addressee(sequence);
            let key = carrier.key(sequence);
            let header = message::header(Kind::Ping(subscriber), settings.pid, sequence, key);
            self.fill(carrier);
            let sent_ns = clock::now_ns();
            if let Some(end) = carrier.write(&message::stamped(header, sent_ns))? {
                return Ok((sequence, end));
            }
            let now_ns = loop {
                if let Some(now_ns) = carrier.wait_for_echo(place, sequence, sent_ns)? {
                    self.echoes.note(Echo { rtt_ns: now_ns - sent_ns }, self.on_event);
                    break now_ns;
                }
                if let Some(end) = carrier.trouble() {
                    return Ok((sequence + 1, end));
                }
                let now_ns = clock::now_ns();
                if carrier.may_lose() {
                    self.echoes.recorder.record_lost();
                    break now_ns;
                }
                if now_ns >= end_ns {
                    break now_ns;
                }
                self.note_silence(subscriber, sent_ns, now_ns);
            };
            if let Some(end) = self.pause(carrier) {
                return Ok((sequence + 1, end));
            }
            if self.is_stopped() {
                return Ok((sequence + 1, End::Interrupted));
            }
            if now_ns >= end_ns {
                self.stage("Finishing test due to timer...");
                return Ok((sequence + 1, End::Complete));
            }
        }
        Ok((settings.num_iter, End::Complete))
    }

    /// The subscriber that ping `number` is for: its place among them, and its own number.
    fn addressee(&self, number: u64) -> (usize, u32) {
        let place = (number % self.subscribers.len() as u64) as usize;
        (place, self.subscribers[place])
    }

    /// Warns once that a subscriber does not echo.
    fn note_silence(&mut self, subscriber: u32, sent_ns: u64, now_ns: u64) {
        let waited_ns = now_ns.saturating_sub(sent_ns);
        if waited_ns >= nanos(ECHO_EXPECTED) && !std::mem::replace(&mut self.has_warned, true) {
            let seconds = waited_ns / 1_000_000_000;
            (self.on_event)(Event::Warning(format!(
                "subscriber {subscriber} has not echoed a ping for {seconds} s: it or the network is stalled"
            )));
        }
    }

    /// The pause after a sample, if there is one; `Some` when the run is over meanwhile.
    #[inline]
    fn pause(&self, carrier: &mut impl Carrier) -> Option<End> {
        pause(self.settings.sleep?, || carrier.trouble())
    }

    /// Fills the payload with the next part of the content, if there is one.
    #[inline]
    fn fill(&mut self, carrier: &mut impl Carrier) {
        let content = self.settings.content.as_deref().filter(|content| !content.is_empty());
        let Some(content) = content else { return };
        let mut payload = carrier.payload_mut();
        while !payload.is_empty() {
            let part = &content[self.content_at..];
            let count = part.len().min(payload.len());
            payload[..count].copy_from_slice(&part[..count]);
            payload = &mut payload[count..];
            self.content_at = (self.content_at + count) % content.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perftest::settings::tests::publisher;

    /// Records the subscribers that pings are for, and echoes those of the first `echoes` samples.
    #[derive(Default)]
    struct Recorded {
        payload: Vec<u8>,
        echoes: u64,
        pings: Vec<u32>,
        places: Vec<usize>,
        /// Waits for an echo in vain.
        vain: u32,
    }

    impl Carrier for Recorded {
        fn wait_for_subscribers(&mut self, _: &mut Run<'_>) -> Result<End, EndpointError> {
            Ok(End::Complete)
        }

        fn subscribers(&self) -> Vec<u32> {
            vec![1, 7]
        }

        fn initialize(&mut self, _: &mut Run<'_>) -> Result<End, EndpointError> {
            Ok(End::Complete)
        }

        fn finish(&mut self, _: &mut Run<'_>, _: u64, end: End) -> Result<End, EndpointError> {
            Ok(end)
        }

        fn payload_mut(&mut self) -> &mut [u8] {
            &mut self.payload
        }

        fn write(&mut self, header: &SampleHeader) -> Result<Option<End>, EndpointError> {
            if let Kind::Ping(subscriber) = Kind::of(header) {
                self.pings.push(subscriber);
            }
            Ok(None)
        }

        fn wait_for_echo(
            &mut self,
            place: usize,
            sequence: u64,
            sent_ns: u64,
        ) -> Result<Option<u64>, EndpointError> {
            if sequence < self.echoes {
                self.places.push(place);
                return Ok(Some(sent_ns));
            }
            self.vain += 1;
            Ok(None)
        }

        fn may_lose(&self) -> bool {
            false
        }

        /// A wait without end fails the test.
        fn trouble(&mut self) -> Option<End> {
            (self.vain > 3).then_some(End::PeerGone)
        }
    }

    fn published(settings: &PublisherSettings, carrier: &mut Recorded) -> Published {
        let (interrupted, (_, echoes)) = (AtomicBool::new(false), mpsc::channel());
        Run::new(settings, &interrupted, &mut |_| (), echoes).publish(carrier).unwrap()
    }

    #[test]
    fn pings_go_round_the_subscribers_by_their_own_numbers() {
        let stream = PublisherSettings { num_iter: 4, latency_count: 1, ..publisher(32) };
        let mut carrier = Recorded::default();
        assert_eq!(published(&stream, &mut carrier).sent, 4);
        assert_eq!(carrier.pings, [1, 7, 1, 7]);
        let ping_pong = PublisherSettings { latency_test: true, ..stream };
        let mut carrier = Recorded { echoes: 4, ..Recorded::default() };
        assert_eq!(published(&ping_pong, &mut carrier).end, End::Complete);
        assert_eq!((carrier.pings, carrier.places), (vec![1, 7, 1, 7], vec![0, 1, 0, 1]));
    }

    #[test]
    fn a_ping_pong_ends_by_time_although_an_echo_is_missing() {
        let settings =
            PublisherSettings { latency_test: true, execution_time: Some(Duration::ZERO), ..publisher(32) };
        let mut carrier = Recorded::default();
        let published = published(&settings, &mut carrier);
        assert_eq!((published.end, published.sent, carrier.vain), (End::Complete, 1, 1));
    }

    #[test]
    fn a_missing_echo_is_reported_once() {
        let (settings, interrupted, (_, echoes)) = (publisher(32), AtomicBool::new(false), mpsc::channel());
        let mut warnings = Vec::new();
        let mut on_event = |event| warnings.extend([event].into_iter().filter(is_warning));
        let mut run = Run::new(&settings, &interrupted, &mut on_event, echoes);
        let patience_ns = nanos(ECHO_EXPECTED);
        for now_ns in [1, patience_ns, patience_ns + 1, 2 * patience_ns] {
            run.note_silence(7, 1, now_ns);
        }
        assert_eq!(warnings.len(), 1);
        assert!(matches!(&warnings[0], Event::Warning(text) if text.contains("subscriber 7")));
    }

    fn is_warning(event: &Event) -> bool {
        matches!(event, Event::Warning(_))
    }
}
