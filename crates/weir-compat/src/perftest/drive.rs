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
    /// Where the content of the next sample begins.
    content_at: usize,
}

/// What carries samples and echoes.
pub(super) trait Carrier {
    /// Waits until the subscribers are there.
    fn wait_for_subscribers(&mut self, run: &mut Run<'_>) -> Result<End, EndpointError>;
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

    /// Waits for the echo of ping `sequence`; returns when it arrived.
    fn wait_for_echo(
        &mut self,
        subscriber: u32,
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
        Self { settings, interrupted, on_event, echoes, content_at: 0 }
    }

    /// Runs from the first subscriber to the last confirmation.
    pub(super) fn publish(mut self, carrier: &mut impl Carrier) -> Result<Published, EndpointError> {
        let (mut sent, mut sent_in) = (0, Duration::ZERO);
        let mut end = carrier.wait_for_subscribers(&mut self)?;
        if end == End::Complete {
            end = carrier.initialize(&mut self)?;
        }
        if end == End::Complete {
            self.stage("Sending data ...");
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
                let subscriber = (pings % u64::from(settings.num_subscribers.max(1))) as u32;
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
            let subscriber = (sequence % u64::from(settings.num_subscribers.max(1))) as u32;
            let key = carrier.key(sequence);
            let header = message::header(Kind::Ping(subscriber), settings.pid, sequence, key);
            self.fill(carrier);
            let sent_ns = clock::now_ns();
            if let Some(end) = carrier.write(&message::stamped(header, sent_ns))? {
                return Ok((sequence, end));
            }
            let now_ns = loop {
                if let Some(now_ns) = carrier.wait_for_echo(subscriber, sequence, sent_ns)? {
                    self.echoes.note(Echo { rtt_ns: now_ns - sent_ns }, self.on_event);
                    break now_ns;
                }
                if let Some(end) = carrier.trouble() {
                    return Ok((sequence + 1, end));
                }
                if carrier.may_lose() {
                    self.echoes.recorder.record_lost();
                    break clock::now_ns();
                }
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
