//! A writer and a reader, the datagrams between them, and what can happen to either.

use core::net::{Ipv4Addr, SocketAddrV4};
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;

use weir_rtps::outbox::{Destinations, Outbox};
use weir_rtps::qos::{Durability, History, Reliability};
use weir_rtps::reader::{ReaderConfig, ReaderCore, WriterProxyConfig};
use weir_rtps::receiver::unlocked::{Cores, UnlockedReceiver};
use weir_rtps::time::Time;
use weir_rtps::writer::{Change, ChangeKind, ReaderProxyConfig, WriterConfig, WriterCore};
use weir_wire::{EntityId, Guid, GuidPrefix, Message, Submessage, Timestamp, VendorId};

use super::record::Record;
use crate::live::forge;
use crate::profile;

const WRITER: Guid = Guid { prefix: GuidPrefix([1; 12]), entity: EntityId::user_writer(1, false) };
const READER: Guid = Guid { prefix: GuidPrefix([2; 12]), entity: EntityId::user_reader(1, false) };

/// The policies of both ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policies {
    pub(super) writer: (Reliability, Durability),
    pub(super) reader: (Reliability, Durability),
    pub(super) history: History,
    /// Both are on one host, and do without messages if nothing was written.
    pub(super) are_near: bool,
}

impl Policies {
    /// Whether lost samples are repaired.
    pub(super) fn are_reliable(&self) -> bool {
        self.writer.0 == Reliability::Reliable && self.reader.0 == Reliability::Reliable
    }

    /// Whether samples from before the match are meant for the reader.
    pub(super) fn are_durable(&self) -> bool {
        self.writer.1 == Durability::TransientLocal && self.reader.1 == Durability::TransientLocal
    }
}

/// What can happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Write,
    /// The next datagram arrives at the reader, or is lost on the way there.
    ToReader,
    LoseToReader,
    /// The same in the other direction.
    ToWriter,
    LoseToWriter,
    /// The reader's lease for the writer ends, or a goodbye arrives.
    ReaderForgets,
    WriterForgets,
    /// The reader discovers the writer.
    ReaderMatches,
    WriterMatches,
    /// Time passes up to the next time-out of the reader. The other side may be late.
    ReaderTimeout,
    WriterTimeout,
}

use Action::{
    LoseToReader, LoseToWriter, ReaderForgets, ReaderMatches, ReaderTimeout, ToReader, ToWriter, Write,
    WriterForgets, WriterMatches, WriterTimeout,
};

/// A violated promise.
pub(super) type Outcome = Result<(), String>;

/// Both ends and the network between them.
pub(super) struct Pair {
    pub(super) policies: Policies,
    now: Time,
    writer: WriterCore,
    reader: ReaderCore,
    receivers: [UnlockedReceiver; 2],
    to_reader: VecDeque<Vec<u8>>,
    to_writer: VecDeque<Vec<u8>>,
    /// Whether the reader has matched the writer.
    pub(super) is_writer_known: bool,
    pub(super) is_reader_known: bool,
    pub(super) record: Record,
    out: Outbox,
}

impl Pair {
    /// A writer and a reader that do not know each other.
    pub(super) fn new(policies: Policies) -> Self {
        let Policies { writer, reader, history, .. } = policies;
        let limits = profile::endpoint(0, 0);
        let writer =
            WriterConfig { history, limits, durability: writer.1, ..WriterConfig::new(WRITER, writer.0) };
        let reader = ReaderConfig {
            history: History::KeepAll,
            limits,
            wants_history: reader.1 != Durability::Volatile,
            ..ReaderConfig::new(READER, reader.0)
        };
        Self {
            policies,
            now: Time(1_000_000_000),
            writer: WriterCore::new(writer),
            reader: ReaderCore::new(reader),
            receivers: [UnlockedReceiver::default(), UnlockedReceiver::default()],
            to_reader: VecDeque::new(),
            to_writer: VecDeque::new(),
            is_writer_known: false,
            is_reader_known: false,
            record: Record::default(),
            out: Outbox::new(),
        }
    }

    /// What can happen now. `writes_max`: samples in total.
    pub(super) fn actions(&self, writes_max: u64) -> Vec<Action> {
        let possible = [
            (Write, self.record.written < writes_max),
            (ToReader, !self.to_reader.is_empty()),
            (LoseToReader, !self.to_reader.is_empty()),
            (ToWriter, !self.to_writer.is_empty()),
            (LoseToWriter, !self.to_writer.is_empty()),
            (ReaderForgets, self.is_writer_known),
            (WriterForgets, self.is_reader_known),
            (ReaderMatches, !self.is_writer_known),
            (WriterMatches, !self.is_reader_known),
            (ReaderTimeout, self.reader.next_timeout().is_some()),
            (WriterTimeout, self.writer.next_timeout().is_some()),
        ];
        possible.into_iter().filter(|(_, is_possible)| *is_possible).map(|(action, _)| action).collect()
    }

    /// Lets something happen.
    pub(super) fn step(&mut self, action: Action) -> Outcome {
        match action {
            Write => self.write(),
            ToReader => self.deliver_to_reader()?,
            LoseToReader => _ = self.to_reader.pop_front(),
            ToWriter => self.deliver_to_writer()?,
            LoseToWriter => _ = self.to_writer.pop_front(),
            ReaderForgets => {
                self.reader.unmatch_writer(self.now, WRITER);
                self.is_writer_known = false;
            }
            WriterForgets => {
                self.writer.unmatch_reader(self.now, READER);
                self.is_reader_known = false;
            }
            ReaderMatches => self.match_writer(),
            WriterMatches => self.match_reader(),
            ReaderTimeout => {
                self.now = self.reader.next_timeout().map_or(self.now, |at| at.max(self.now));
                self.reader.handle_timeout(self.now);
            }
            WriterTimeout => {
                self.now = self.writer.next_timeout().map_or(self.now, |at| at.max(self.now));
                self.writer.handle_timeout(self.now);
            }
        }
        self.transmit();
        self.take()
    }

    fn write(&mut self) {
        self.record.written += 1;
        let payload = forge::sample(0, self.record.written, 16);
        let timestamp = Some(Timestamp { seconds: 1, fraction: 0 });
        let change = Change { kind: ChangeKind::Alive, key: None, payload: &payload };
        self.writer.write_change(self.now, timestamp, change).expect("there is room for few samples");
    }

    fn match_writer(&mut self) {
        let writer = WriterProxyConfig {
            guid: WRITER,
            reliable: self.policies.writer.0 == Reliability::Reliable,
            destinations: address(),
            vendor: VendorId::WEIR,
        };
        self.reader.match_writer(self.now, writer);
        if self.policies.are_near {
            // Whatever has arrived before: the participant may have forgotten it.
            self.reader.await_heartbeat(WRITER);
        }
        self.is_writer_known = true;
        self.record.begin_epoch(self.reader.counters().samples_lost);
    }

    fn match_reader(&mut self) {
        let reader = ReaderProxyConfig {
            guid: READER,
            reliable: self.policies.reader.0 == Reliability::Reliable,
            wants_history: self.policies.reader.1 != Durability::Volatile,
            destinations: address(),
            group: None,
            vendor: VendorId::WEIR,
            receive_buffer: None,
            segment_max: u16::MAX,
            path: None,
        };
        self.writer.match_reader(self.now, reader);
        if self.policies.are_near {
            self.writer.spare_heartbeat(READER);
        }
        self.is_reader_known = true;
        self.record.written_at_match = self.record.written;
    }

    fn deliver_to_reader(&mut self) -> Outcome {
        let Some(datagram) = self.to_reader.pop_front() else { return Ok(()) };
        let cores = Cores { prefix: READER.prefix, writers: &mut [], readers: &mut [&mut self.reader] };
        self.out.clear();
        self.receivers[1].receive(self.now, cores, [&datagram[..]], &mut self.out);
        self.reader.poll_transmit(self.now, &mut self.out);
        let before = self.to_writer.len();
        self.out.for_each_datagram(|_, bytes| self.to_writer.push_back(bytes.to_vec()));
        self.check_answers("reader", self.to_writer.len() - before)
    }

    fn deliver_to_writer(&mut self) -> Outcome {
        let Some(datagram) = self.to_writer.pop_front() else { return Ok(()) };
        let before = self.writer.counters();
        let cores = Cores { prefix: WRITER.prefix, writers: &mut [&mut self.writer], readers: &mut [] };
        self.out.clear();
        self.receivers[0].receive(self.now, cores, [&datagram[..]], &mut self.out);
        self.writer.poll_transmit(self.now, &mut self.out);
        let (queued, mut has_answered) = (self.to_reader.len(), false);
        self.out.for_each_datagram(|_, bytes| {
            has_answered |= contains(bytes, |it| matches!(it, Submessage::Data(_) | Submessage::Gap(_)));
            self.to_reader.push_back(bytes.to_vec());
        });
        let after = self.writer.counters();
        let is_accepted = after.acknacks_received > before.acknacks_received
            && after.repairs_held_back == before.repairs_held_back;
        if is_accepted && is_request(&datagram) && !has_answered {
            return Err("a request was answered with neither DATA nor GAP".to_owned());
        }
        self.check_answers("writer", self.to_reader.len() - queued)
    }

    /// One datagram must not cause more than one for each sample, and two.
    fn check_answers(&self, whose: &str, answers: usize) -> Outcome {
        if answers as u64 <= self.record.written + 2 {
            Ok(())
        } else {
            Err(format!("the {whose} answered one datagram with {answers}"))
        }
    }

    fn transmit(&mut self) {
        for (is_writer, queue) in [(true, &mut self.to_reader), (false, &mut self.to_writer)] {
            self.out.clear();
            if is_writer {
                self.writer.poll_transmit(self.now, &mut self.out);
            } else {
                self.reader.poll_transmit(self.now, &mut self.out);
            }
            // What has no destination is not sent.
            self.out.for_each_datagram(|to, bytes| queue.extend((!to.is_empty()).then(|| bytes.to_vec())));
        }
    }

    fn take(&mut self) -> Outcome {
        let mut outcome = Ok(());
        let record = &mut self.record;
        while self.reader.take_next(|sample| {
            let number = sample.payload.get(8..16).and_then(|bytes| bytes.try_into().ok());
            let number = u64::from_le_bytes(number.expect("a sample is whole"));
            outcome = core::mem::replace(&mut outcome, Ok(())).and(record.take(number));
        }) {}
        outcome
    }

    /// Runs without losses until nothing is due any more, or for this time. Returns whether both
    /// ends are silent for good.
    pub(super) fn run_for(&mut self, period: Duration) -> Result<bool, String> {
        let end = self.now + period;
        for _ in 0..STEPS_MAX {
            if !self.to_reader.is_empty() || !self.to_writer.is_empty() {
                self.now = self.now + DELAY;
                // What is answered now arrives in the next turn.
                let arrivals = (self.to_reader.len(), self.to_writer.len());
                (0..arrivals.0).try_for_each(|_| self.step(ToReader))?;
                (0..arrivals.1).try_for_each(|_| self.step(ToWriter))?;
                continue;
            }
            let timeouts = (self.reader.next_timeout(), self.writer.next_timeout());
            let Some(next) = timeouts.0.into_iter().chain(timeouts.1).min() else { return Ok(true) };
            if next > end {
                self.now = end;
                return Ok(false);
            }
            self.now = self.now.max(next);
            if timeouts.0.is_some_and(|at| at <= self.now) {
                self.step(ReaderTimeout)?;
            }
            if timeouts.1.is_some_and(|at| at <= self.now) {
                self.step(WriterTimeout)?;
            }
        }
        Err(format!("no end after {STEPS_MAX} steps"))
    }

    /// Samples that the reader has reported lost.
    pub(super) fn lost(&self) -> u64 {
        self.reader.counters().samples_lost
    }

    /// All that decides what can follow, as text: times count from now, statistics are left out.
    pub(super) fn describe(&self) -> String {
        let Self { writer, reader, to_reader, to_writer, record, .. } = self;
        let lost = reader.counters().samples_lost;
        let known = (self.is_writer_known, self.is_reader_known);
        let text = format!("{writer:?} {reader:?} {to_reader:?} {to_writer:?} {record:?} {lost} {known:?}");
        relative_to(self.now, &without_statistics(text))
    }
}

fn is_request(datagram: &[u8]) -> bool {
    contains(datagram, |it| matches!(it, Submessage::AckNack(acknack) if !acknack.state.is_empty()))
}

fn contains(datagram: &[u8], is_it: impl Fn(&Submessage<'_>) -> bool) -> bool {
    let message = Message::parse(datagram).expect("what is sent is a message");
    message.submessages().any(|it| is_it(&it.expect("what is sent can be read")))
}

fn address() -> Destinations {
    Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7411)])
}

/// Removes the counters that only count.
fn without_statistics(mut text: String) -> String {
    for name in ["WriterCounters {", "ReaderCounters {"] {
        while let Some(start) = text.find(name) {
            let end = text[start..].find('}').map_or(text.len(), |len| start + len + 1);
            text.replace_range(start..end, "");
        }
    }
    text
}

/// Replaces times by their distance from now.
fn relative_to(now: Time, text: &str) -> String {
    let mut parts = text.split("Time(");
    let mut relative = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.find(')').unwrap_or(0);
        match part[..digits].parse::<u64>() {
            Ok(0) | Err(_) => relative.push_str(part),
            Ok(at) => {
                relative.push_str(&at.wrapping_sub(now.0).cast_signed().to_string());
                relative.push_str(&part[digits..]);
            }
        }
    }
    relative
}

/// From one end to the other.
const DELAY: Duration = Duration::from_micros(100);
const STEPS_MAX: u32 = 2_000;
