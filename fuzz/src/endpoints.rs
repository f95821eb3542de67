//! A reliable writer and a reliable reader with a hostile network between them.

use core::net::{Ipv4Addr, SocketAddrV4};
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;

use weir_rtps::outbox::{Destinations, Outbox};
use weir_rtps::qos::{History, Reliability};
use weir_rtps::reader::{ReaderConfig, ReaderCore, WriterProxyConfig};
use weir_rtps::receiver::unlocked::{Cores, UnlockedReceiver};
use weir_rtps::time::Time;
use weir_rtps::writer::{Change, ChangeKind, ReaderProxyConfig, WriterConfig, WriterCore};
use weir_wire::{EntityId, Guid, GuidPrefix, SequenceNumber, VendorId};

use crate::input::{Input, with_piece};
use crate::participant::collect;

/// Runs a list of operations: samples, raw datagrams, sent datagrams (unchanged, changed, or
/// dropped), time.
///
/// # Panics
///
/// If the reader delivers samples of one writer out of order or twice, memory exceeds its limit,
/// something is sent that cannot be parsed, or a timer is always due.
pub fn run(data: &[u8]) {
    let mut world = World::new();
    let mut input = Input(data);
    while let Some(operation) = input.byte()
        && world.apply(operation, &mut input).is_some()
    {
        world.settle();
    }
}

/// Returns seeds for the corpus: name and bytes.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let mut talk = Vec::new();
    for _ in 0..4 {
        talk.extend(with_piece(WRITE, b"sample"));
    }
    let lossy =
        [&talk[..], &[DROPPED, INTACT, INTACT, INTACT, TIME, 5, INTACT, INTACT, TIME, 50, INTACT]].concat();
    let changed =
        [&talk[..], &[CHANGED, 40, 0, 1, CHANGED, 60, 0, 0x80, INTACT, DUPLICATED, INTACT, TIME, 9]].concat();
    let mut world = World::new();
    world.writer.write_change(world.now, None, SAMPLE).expect("room for one");
    world.settle();
    let raw = world.on_the_way.iter().flat_map(|datagram| with_piece(RAW, datagram)).collect();
    vec![("lossy", lossy), ("changed", changed), ("raw", raw)]
}

const RAW: u8 = 0;
const INTACT: u8 = 1;
const CHANGED: u8 = 2;
const DROPPED: u8 = 3;
const DUPLICATED: u8 = 4;
const TIME: u8 = 5;
const WRITE: u8 = 6;
/// The last one takes samples.
const OPERATIONS: u8 = 8;

const SAMPLE: Change<'static> =
    Change { kind: ChangeKind::Alive, key: None, payload: &[0, 1, 0, 0, 1, 2, 3, 4] };

struct World {
    now: Time,
    writer: WriterCore,
    reader: ReaderCore,
    /// That of the writer's participant, and that of the reader's.
    receivers: [UnlockedReceiver; 2],
    answers: Outbox,
    /// Datagrams of both, in the order of sending; each is given to both.
    on_the_way: VecDeque<Vec<u8>>,
    last_taken: SequenceNumber,
}

impl World {
    fn new() -> Self {
        let now = Time::ZERO;
        let (writer_guid, reader_guid) = guids();
        let destinations: Destinations = Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7411)]);
        let vendor = VendorId::WEIR;
        let mut config = WriterConfig::new(writer_guid, Reliability::Reliable);
        config.history = History::KeepAll;
        let mut writer = WriterCore::new(config);
        let mut config = ReaderConfig::new(reader_guid, Reliability::Reliable);
        config.history = History::KeepAll;
        config.max_bytes = MAX_BYTES;
        let mut reader = ReaderCore::new(config);
        writer.match_reader(
            now,
            ReaderProxyConfig {
                guid: reader_guid,
                reliable: true,
                wants_history: false,
                destinations: destinations.clone(),
                group: None,
                vendor,
                receive_buffer: Some(200_000),
                segment_max: u16::MAX,
                path: None,
            },
        );
        reader
            .match_writer(now, WriterProxyConfig { guid: writer_guid, reliable: true, destinations, vendor });
        Self {
            now,
            writer,
            reader,
            receivers: Default::default(),
            answers: Outbox::new(),
            on_the_way: VecDeque::new(),
            last_taken: SequenceNumber::ZERO,
        }
    }

    fn apply(&mut self, operation: u8, input: &mut Input<'_>) -> Option<()> {
        match operation % OPERATIONS {
            RAW => self.deliver(input.piece()?),
            INTACT => {
                let datagram = self.on_the_way.pop_front().unwrap_or_default();
                self.deliver(&datagram);
            }
            CHANGED => {
                let (at, change) = (usize::from(input.word()?), input.byte()?);
                let mut datagram = self.on_the_way.pop_front().unwrap_or_else(|| vec![0]);
                let len = datagram.len();
                datagram[at % len] ^= change;
                self.deliver(&datagram);
            }
            DROPPED => drop(self.on_the_way.pop_front()),
            DUPLICATED => {
                let datagram = self.on_the_way.front().cloned().unwrap_or_default();
                self.deliver(&datagram);
            }
            TIME => self.now = self.now + Duration::from_millis(u64::from(input.byte()?)),
            WRITE => {
                // A full window refuses, which is not a fault.
                let payload = input.piece()?;
                let _ = self.writer.write_change(self.now, None, Change { payload, ..SAMPLE });
            }
            _ => self.take(),
        }
        Some(())
    }

    fn take(&mut self) {
        let last = &mut self.last_taken;
        while self.reader.take_next(|sample| {
            assert!(sample.sequence_number > *last, "{:?} after {last:?}", sample.sequence_number);
            *last = sample.sequence_number;
        }) {}
    }

    /// Gives a datagram to both participants.
    fn deliver(&mut self, datagram: &[u8]) {
        let Self { now, writer, reader, receivers: [writers, readers], answers, .. } = self;
        let (writer_guid, reader_guid) = guids();
        let cores = Cores { prefix: writer_guid.prefix, writers: &mut [writer], readers: &mut [] };
        writers.receive(*now, cores, [datagram], answers);
        let cores = Cores { prefix: reader_guid.prefix, writers: &mut [], readers: &mut [reader] };
        readers.receive(*now, cores, [datagram], answers);
    }

    /// Lets both run due timers, and checks their output.
    fn settle(&mut self) {
        let Self { now, writer, reader, answers, on_the_way, .. } = self;
        collect(answers, on_the_way);
        answers.clear();
        let mut calls = 0;
        while writer.next_timeout().is_some_and(|at| at <= *now)
            || reader.next_timeout().is_some_and(|at| at <= *now)
        {
            writer.handle_timeout(*now);
            reader.handle_timeout(*now);
            poll(*now, writer, reader, on_the_way);
            calls += 1;
            assert!(calls < 1000, "a timer that is always due");
        }
        poll(*now, writer, reader, on_the_way);
        assert!(reader.memory() <= 2 * MAX_BYTES, "{} bytes", reader.memory());
    }
}

fn poll(now: Time, writer: &mut WriterCore, reader: &mut ReaderCore, sent: &mut VecDeque<Vec<u8>>) {
    let mut out = Outbox::new();
    writer.poll_transmit(now, &mut out);
    reader.poll_transmit(now, &mut out);
    collect(&out, sent);
}

fn guids() -> (Guid, Guid) {
    let writer = Guid::new(GuidPrefix([1; 12]), EntityId::user_writer(1, false));
    (writer, Guid::new(GuidPrefix([2; 12]), EntityId::user_reader(2, false)))
}

/// Maximum size of samples in the reader.
const MAX_BYTES: usize = 256 * 1024;
