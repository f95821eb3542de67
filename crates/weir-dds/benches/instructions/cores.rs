//! Writer and reader cores: from a value to datagrams ready to be sent, and from datagrams to a
//! value.

use core::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;

use weir_cdr::{DdsType, Encoding};
use weir_rtps::multicast::GroupRoute;
use weir_rtps::outbox::Outbox;
use weir_rtps::qos::{Durability, History, Reliability};
use weir_rtps::time::Time;
use weir_rtps::writer::{
    BatchPolicy, Coalescing, DirectDatagram, DirectPayload, ReaderProxyConfig, Stamp, WriterConfig,
    WriterCore,
};
use weir_wire::{
    AckNack, EntityId, Guid, GuidPrefix, SequenceNumber, SequenceNumberSet, Timestamp, VendorId,
};

use crate::codec::{TestData, TestDataKeyed};
use crate::measured;
use crate::policies::Policy;
use crate::sink::Sink;

/// Spacing of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// One sample per millisecond.
    Alone,
    /// As fast as possible: coalesced, one message per sample.
    Burst,
    /// As fast as possible: batched, many samples per message.
    Batch,
}

pub(crate) const WRITER: Guid = Guid::new(GuidPrefix([1; 12]), EntityId::user_writer(1, true));
pub(crate) const READER: Guid = Guid::new(GuidPrefix([2; 12]), EntityId::user_reader(1, true));
const STAMP: Stamp = Stamp { timestamp: Timestamp { seconds: 1, fraction: 0 }, key: None };

const WARM_UP: u32 = 4_096;
const SAMPLES: u32 = 16_384;
/// Samples between two acknowledgements.
const ROUND: u32 = 64;
const INSTANCES: u32 = 100_000;
const GROUP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 255, 0, 1), 7401);
const SEND_TIME: Duration = Duration::from_nanos(400);

/// Reliable writer: encode into the history, commit, poll, and process an acknowledgement per
/// round.
pub(crate) fn write(size_bytes: usize, pace: Pace, policy: Policy) -> u32 {
    let mut source = Source::with(pace, History::KeepAll, policy);
    let mut sample = TestData::of(size_bytes);
    let mut run = |count: u32| {
        for number in 0..count {
            sample.seq_num = number;
            source.write(&sample, None);
            source.outbox.clear();
            if (number + 1) % ROUND == 0 {
                source.acknowledge();
            }
        }
    };
    run(WARM_UP);
    measured(|| run(SAMPLES));
    SAMPLES
}

/// Reliable writer, coalesced, and readers of a multicast group, each of which acknowledges once per round.
pub(crate) fn fan_out(readers: u8) -> u32 {
    let mut source = Source::new(Pace::Burst, History::KeepAll);
    source.core.unmatch_reader(Time(1), READER);
    let guid = |number: u8| Guid::new(GuidPrefix([2 + number; 12]), READER.entity);
    for number in 0..readers {
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7411 + 2 * u16::from(number));
        let group = Some(GroupRoute { group: GROUP, interface: Ipv4Addr::LOCALHOST });
        let reader = ReaderProxyConfig { group, ..proxy(guid(number), address, true) };
        source.core.match_reader(Time(1), reader);
        source.outbox.clear();
    }
    assert_eq!(source.core.destinations().len(), 1, "each datagram is one send");
    let mut sample = TestData::of(32);
    let mut run = |count: u32| {
        for number in 0..count {
            sample.seq_num = number;
            source.write(&sample, None);
            source.outbox.clear();
            if (number + 1) % ROUND == 0 {
                source.count += 1;
                source.flush();
                (0..readers).for_each(|reader| source.acknowledge_by(guid(reader)));
            }
        }
    };
    run(WARM_UP);
    measured(|| run(SAMPLES));
    SAMPLES
}

/// Reliable reader of one writer that sends, beside a thousand that are silent.
pub(crate) fn receive_beside_silent_writers() -> u32 {
    let mut source = Source::new(Pace::Alone, History::KeepAll);
    let mut sink = Sink::new(History::KeepAll, Reliability::Reliable);
    sink.match_silent_writers(1000);
    let mut sample = TestData::of(32);
    let mut value = TestData::default();
    let mut datagrams = Vec::new();
    for number in 0..WARM_UP + SAMPLES {
        sample.seq_num = number;
        source.write(&sample, None);
        source.collect(&mut datagrams);
        if (number + 1) % ROUND == 0 {
            source.acknowledge();
            source.outbox.clear();
        }
    }
    let mut taken = 0;
    let mut run = |datagrams: &[Vec<u8>]| {
        for datagram in datagrams {
            sink.receive(std::slice::from_ref(datagram));
            taken += sink.take(&mut value);
        }
    };
    let (first, rest) = datagrams.split_at(WARM_UP as usize);
    run(first);
    measured(|| run(rest));
    assert_eq!(taken, WARM_UP + SAMPLES);
    SAMPLES
}

/// The same with one sample per millisecond, through the single-sample path.
pub(crate) fn write_single(size_bytes: usize) -> u32 {
    let mut source = Source::with(Pace::Alone, History::KeepAll, Policy::None);
    let mut sample = TestData::of(size_bytes);
    let mut run = |count: u32| {
        let mut single = 0;
        for number in 0..count {
            sample.seq_num = number;
            single += u32::from(source.write_single(&sample));
            source.outbox.clear();
            if (number + 1) % ROUND == 0 {
                source.acknowledge();
            }
        }
        single
    };
    run(WARM_UP);
    let single = measured(|| run(SAMPLES));
    assert!(single > SAMPLES / 10 * 9, "{single} of {SAMPLES} samples took the single-sample path");
    SAMPLES
}

/// Reliable reader: parse the datagrams in place, insert, acknowledge, decode into a value.
pub(crate) fn receive(size_bytes: usize, pace: Pace) -> u32 {
    receive_with(size_bytes, pace, Policy::None, Sink::take)
}

/// The same with a policy, and another way to take the samples.
pub(crate) fn receive_with(
    size_bytes: usize,
    pace: Pace,
    policy: Policy,
    take: impl Fn(&mut Sink, &mut TestData) -> u32,
) -> u32 {
    let mut source = Source::new(pace, History::KeepAll);
    let mut sink = Sink::with(History::KeepAll, Reliability::Reliable, policy);
    let mut sample = TestData::of(size_bytes);
    let mut value = TestData::default();
    let mut datagrams = Vec::new();
    let mut taken = 0;
    for round in 0..(WARM_UP + SAMPLES) / ROUND {
        datagrams.clear();
        for number in 0..ROUND {
            sample.seq_num = number;
            source.write(&sample, None);
            source.collect(&mut datagrams);
        }
        source.flush();
        source.collect(&mut datagrams);
        source.acknowledge();
        source.collect(&mut datagrams);
        let mut take_all = || {
            let at_once = if pace == Pace::Alone { 1 } else { datagrams.len() };
            let received = datagrams.chunks(at_once).map(|batch| {
                sink.receive(batch);
                take(&mut sink, &mut value)
            });
            received.sum::<u32>()
        };
        if round < WARM_UP / ROUND {
            take_all();
        } else {
            taken += measured(take_all);
        }
    }
    assert_eq!(taken, SAMPLES);
    taken
}

/// Keeps the last sample of each of 100 000 instances, in a pseudo-random order that is the same
/// every time.
pub(crate) fn write_instances() -> u32 {
    let mut source = Source::new(Pace::Burst, History::KeepLast(1));
    let mut sample = TestDataKeyed { bin_data: vec![7; 4], ..TestDataKeyed::default() };
    let mut write = |source: &mut Source, id: u32| {
        sample.key = id.to_be_bytes();
        source.write(&sample, Some(key_hash(id)));
        source.outbox.clear();
    };
    (0..INSTANCES).for_each(|id| write(&mut source, id));
    let mut state = 1;
    measured(|| (0..SAMPLES).for_each(|_| write(&mut source, random(&mut state) % INSTANCES)));
    SAMPLES
}

/// The same for the reader: each sample is taken before the next one arrives.
pub(crate) fn receive_instances() -> u32 {
    receive_instances_with(INSTANCES, Policy::None, Sink::take)
}

/// The same with so many instances, a policy, and another way to take the samples.
pub(crate) fn receive_instances_with(
    instances: u32,
    policy: Policy,
    take: impl Fn(&mut Sink, &mut TestDataKeyed) -> u32,
) -> u32 {
    let mut source = Source::new(Pace::Alone, History::KeepLast(1));
    let mut sink = Sink::with(History::KeepLast(1), Reliability::BestEffort, policy);
    let mut sample = TestDataKeyed { bin_data: vec![7; 4], ..TestDataKeyed::default() };
    let mut datagrams = Vec::new();
    let mut prepare = |id: u32, datagrams: &mut Vec<Vec<u8>>| {
        sample.key = id.to_be_bytes();
        source.write(&sample, Some(key_hash(id)));
        source.collect(datagrams);
    };
    let mut state = 1;
    let random_ids = (0..SAMPLES).map(|_| random(&mut state) % instances);
    (0..instances).chain(random_ids).for_each(|id| prepare(id, &mut datagrams));
    let mut value = TestDataKeyed::default();
    let mut receive = |datagrams: &[Vec<u8>]| {
        for datagram in datagrams {
            sink.receive(std::slice::from_ref(datagram));
            take(&mut sink, &mut value);
        }
    };
    let (known, again) = datagrams.split_at(instances as usize);
    assert_eq!(again.len(), SAMPLES as usize);
    receive(known);
    measured(|| receive(again));
    SAMPLES
}

/// A writer with one matched reader, and its pending output.
struct Source {
    core: WriterCore,
    outbox: Outbox,
    now: Time,
    step: Duration,
    count: u32,
}

impl Source {
    fn new(pace: Pace, history: History) -> Self {
        Self::with(pace, history, Policy::None)
    }

    fn with(pace: Pace, history: History, policy: Policy) -> Self {
        let (coalescing, batch, step) = match pace {
            Pace::Alone => (Some(Coalescing::default()), None, Duration::from_millis(1)),
            Pace::Burst => (Some(Coalescing::default()), None, Duration::from_nanos(100)),
            Pace::Batch => {
                let max_delay = Duration::from_micros(100);
                let policy = BatchPolicy::new(8192, 1000, max_delay);
                (Some(Coalescing::default()), Some(policy), Duration::from_nanos(100))
            }
        };
        let (reliability, durability) = match history {
            History::KeepAll => (Reliability::Reliable, Durability::Volatile),
            History::KeepLast(_) => (Reliability::BestEffort, Durability::TransientLocal),
        };
        let config =
            WriterConfig { history, coalescing, batch, durability, ..WriterConfig::new(WRITER, reliability) };
        let mut core = WriterCore::new(policy.of_writer(config));
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7411);
        core.match_reader(Time(1), proxy(READER, address, reliability == Reliability::Reliable));
        Self { core, outbox: Outbox::new(), now: Time(1_000_000), step, count: 0 }
    }

    fn write<T: DdsType>(&mut self, sample: &T, key: Option<[u8; 16]>) {
        self.now = self.now + self.step;
        let len = weir_cdr::payload_len_in(sample, Encoding::Xcdr1);
        let fill = |room: &mut [u8]| weir_cdr::encode_payload_in(sample, Encoding::Xcdr1, room).map(drop);
        self.core.write(self.now, Stamp { key, ..STAMP }, len, fill).unwrap().unwrap();
        self.core.poll_transmit(self.now, &mut self.outbox);
    }

    /// Writes on the single-sample path, reporting the send as a driver does. Returns whether that
    /// was possible.
    fn write_single<T: DdsType>(&mut self, sample: &T) -> bool {
        let now = self.now + self.step;
        let len = weir_cdr::payload_len_in(sample, Encoding::Xcdr1);
        let fill = |room: &mut [u8]| weir_cdr::encode_payload_in(sample, Encoding::Xcdr1, room);
        let payload = DirectPayload { len, bulk: &[] };
        let send = |datagram: DirectDatagram<'_>| _ = std::hint::black_box(datagram);
        let is_lone = self.core.write_direct(now, STAMP, payload, fill, send).unwrap();
        if is_lone {
            self.now = now;
        } else {
            self.write(sample, None);
        }
        self.core.note_sent(now + SEND_TIME);
        self.core.note_send_time(SEND_TIME);
        is_lone
    }

    fn flush(&mut self) {
        self.core.flush(self.now, &mut self.outbox);
    }

    /// Acknowledges everything written so far.
    fn acknowledge(&mut self) {
        self.count += 1;
        self.flush();
        self.acknowledge_by(READER);
    }

    /// The same by one of several readers, with the next count.
    fn acknowledge_by(&mut self, reader: Guid) {
        let base = SequenceNumber(self.core.last_sequence_number().0 + 1);
        let acknack = AckNack {
            reader: reader.entity,
            writer: WRITER.entity,
            state: SequenceNumberSet::new(base),
            count: self.count,
            is_final: true,
        };
        self.core.handle_acknack(self.now, reader, &acknack);
        self.core.poll_answers(self.now, &mut self.outbox);
    }

    /// Moves the pending output to a list.
    fn collect(&mut self, datagrams: &mut Vec<Vec<u8>>) {
        self.outbox.for_each_datagram(|_, datagram| datagrams.push(datagram.to_vec()));
        self.outbox.clear();
    }
}

fn proxy(guid: Guid, address: SocketAddrV4, reliable: bool) -> ReaderProxyConfig {
    ReaderProxyConfig {
        guid,
        reliable,
        wants_history: false,
        destinations: Arc::from([address]),
        group: None,
        vendor: VendorId::WEIR,
        receive_buffer: Some(8 << 20),
        segment_max: u16::MAX,
        path: None,
    }
}

pub(crate) fn key_hash(id: u32) -> [u8; 16] {
    let mut hash = [0; 16];
    hash[..4].copy_from_slice(&id.to_be_bytes());
    hash
}

fn random(state: &mut u32) -> u32 {
    *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    *state >> 4
}
