use core::net::{Ipv4Addr, SocketAddrV4};

use weir_netsim::Rng;
use weir_wire::{DataHeader, Heartbeat, InfoDestination, InfoSource, InfoTimestamp, SequenceNumber, push};

use super::unlocked::{Cores, Slot, Table, Unlocked, UnlockedReceiver};
use super::*;
use crate::qos::{History, Reliability};
use crate::reader::{ReaderConfig, WriterProxyConfig};

const PREFIX: GuidPrefix = GuidPrefix([2; 12]);
const READER: EntityId = EntityId::user_reader(1, false);
const WRITER: Guid = Guid::new(GuidPrefix([1; 12]), EntityId::user_writer(1, false));
const OTHER: Guid = Guid::new(GuidPrefix([3; 12]), EntityId::user_writer(1, false));
const HEADER: Header = header(WRITER);

const fn header(writer: Guid) -> Header {
    Header { version: ProtocolVersion::V2_5, vendor: VendorId::WEIR, prefix: writer.prefix }
}

/// A reliable reader of two writers.
struct End {
    core: ReaderCore,
    table: Table,
    batch: Batch<Slot, Slot>,
    outbox: Outbox,
}

impl End {
    fn new() -> Self {
        Self::with_history(true)
    }

    fn with_history(wants_history: bool) -> Self {
        let config = ReaderConfig {
            history: History::KeepAll,
            wants_history,
            ..ReaderConfig::new(Guid::new(PREFIX, READER), Reliability::Reliable)
        };
        let mut core = ReaderCore::new(config);
        let destinations: Arc<[_]> = Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7411)]);
        for guid in [WRITER, OTHER] {
            let destinations = Arc::clone(&destinations);
            let vendor = VendorId::WEIR;
            core.match_writer(Time(1), WriterProxyConfig { guid, reliable: true, destinations, vendor });
        }
        let mut end = Self { core, table: Table::default(), batch: Batch::default(), outbox: Outbox::new() };
        let Self { core, table, .. } = &mut end;
        table.update(&Cores { prefix: PREFIX, writers: &mut [], readers: &mut [core] });
        end
    }

    fn receive_only(
        &mut self,
        now: Time,
        prediction: Option<&Prediction<Slot>>,
        datagram: &[u8],
    ) -> Option<Time> {
        let Self { core, table, batch, outbox } = self;
        let (readers, writers) = (&mut [core], &mut []);
        let endpoints = Unlocked::new(table, Cores { prefix: PREFIX, writers, readers });
        let incoming = Incoming { endpoints: &endpoints, prediction, prefix: PREFIX, now };
        receive_single(incoming, datagram, None, batch, outbox)
    }

    /// All visible effects of a datagram.
    fn receive(&mut self, now: Time, prediction: Option<&Prediction<Slot>>, datagram: &[u8]) -> String {
        let next = self.receive_only(now, prediction, datagram);
        let Self { core, batch, outbox, .. } = self;
        let news = batch.take_predicted().or_else(|| batch.readers().first().map(|it| it.news));
        batch.clear_readers();
        let mut samples = Vec::new();
        while core.take_next(|raw| samples.push(format!("{raw:?}"))) {}
        let timeout = core.next_timeout();
        let sent = (outbox.items.len(), outbox.scratch.clone());
        outbox.clear();
        let (counters, receiver) = (core.counters(), batch.counters);
        format!("{samples:?} {counters:?} {receiver:?} {next:?} {timeout:?} {news:?} {sent:?}")
    }
}

/// A datagram with a sample, and other submessages at random.
fn datagram(random: &mut Rng, number: &mut i64) -> Vec<u8> {
    let mut out = Vec::new();
    push(&mut out, &HEADER);
    if random.chance(0.1) {
        push(&mut out, &InfoDestination { prefix: PREFIX });
    }
    for _ in 0..=random.below(2) {
        *number += i64::from(random.chance(0.94));
        let sequence_number = SequenceNumber(*number + i64::from(random.chance(0.04)));
        let fraction = random.next_u64() as u32;
        let timestamp = random.chance(0.94).then_some(Timestamp { seconds: 7, fraction });
        push(&mut out, &InfoTimestamp { timestamp });
        let payload = [0, 1, 0, 0, random.below(256) as u8, 0, 0, 0];
        let reader = if random.chance(0.5) { READER } else { EntityId::UNKNOWN };
        push(&mut out, &data(reader, sequence_number, &payload));
        out.extend(payload);
    }
    if random.chance(0.2) {
        let (first, last) = (SequenceNumber((*number - 4).max(1)), SequenceNumber(*number));
        let (reader, writer, count) = (READER, WRITER.entity, *number as u32);
        let is_final = random.chance(0.5);
        push(&mut out, &Heartbeat { reader, writer, first, last, count, is_final, is_liveliness: false });
    }
    // Some are damaged.
    let len = out.len() as u64;
    match random.below(256) {
        0..50 => out[random.below(len) as usize] = random.below(256) as u8,
        50..70 => out.truncate(random.below(len) as usize),
        _ => {}
    }
    out
}

fn data(reader: EntityId, sequence_number: SequenceNumber, payload: &[u8]) -> DataHeader {
    DataHeader {
        reader,
        writer: WRITER.entity,
        sequence_number,
        inline_qos_len: 0,
        payload_len: payload.len() as u32,
        is_key: false,
    }
}

/// What follows is from the other writer's participant.
fn relayed() -> InfoSource {
    InfoSource { version: ProtocolVersion::V2_5, vendor: VendorId::WEIR, prefix: OTHER.prefix }
}

/// A sample in the usual form, behind what `before` adds.
fn message(header: Header, number: i64, before: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    push(&mut out, &header);
    before(&mut out);
    push(&mut out, &InfoTimestamp { timestamp: Some(Timestamp { seconds: 7, fraction: 0 }) });
    let payload = [0, 1, 0, 0, 0, 0, 0, 0];
    push(&mut out, &data(EntityId::UNKNOWN, SequenceNumber(number), &payload));
    out.extend(payload);
    out
}

/// How many predictions are made by samples with these headers.
fn predictions_made(headers: impl Iterator<Item = Header>) -> u32 {
    let mut end = End::new();
    let (mut prediction, mut made) = (None, 0);
    for (number, header) in (1..).zip(headers) {
        let datagram = message(header, number, |_| {});
        end.receive_only(Time(number as u64 * 10_000), prediction.as_ref(), &datagram);
        if end.batch.may_change_prediction()
            && let Some(next) = end.batch.next_prediction(prediction.as_ref(), 0)
        {
            (prediction, made) = (Some(next), made + 1);
        }
        end.batch.take_predicted();
        end.batch.clear_readers();
    }
    made
}

#[test]
fn a_prediction_is_made_by_two_samples_in_a_row() {
    assert_eq!(predictions_made([HEADER, header(OTHER)].into_iter().cycle().take(30)), 0);
    assert_eq!(predictions_made([HEADER; 30].into_iter()), 1);
    // Writers that alternate do not replace a prediction.
    let turns = [header(OTHER), HEADER].into_iter().cycle().take(30);
    assert_eq!(predictions_made([HEADER; 2].into_iter().chain(turns)), 1);
    // A prediction from a forged header is replaced.
    let forged = Header { vendor: VendorId::RTI, ..HEADER };
    assert_eq!(predictions_made([forged; 2].into_iter().chain([HEADER; 30])), 2);
}

#[test]
fn what_is_predicted_ends_as_what_is_looked_up() {
    let mut random = Rng::new(3);
    let (mut general, mut quick) = (End::new(), End::new());
    let slot = *quick.table.readers_of(&WRITER).unwrap().first().unwrap();
    let prediction = Prediction::new(0, &HEADER, WRITER, &slot);
    let (mut number, mut predicted) = (0, 0);
    for round in 1..20_000 {
        let datagram = datagram(&mut random, &mut number);
        let now = Time(round * 10_000);
        let as_predicted = Predicted::new::<Unlocked<'_, '_, '_>>(&prediction, &datagram);
        predicted += u32::from(as_predicted.is_some());
        let (one, other) =
            (general.receive(now, None, &datagram), quick.receive(now, Some(&prediction), &datagram));
        assert_eq!(one, other, "{datagram:?}");
    }
    assert!((10_000..19_000).contains(&predicted), "{predicted}");
    let counters = quick.core.counters();
    assert!(counters.samples_received > 10_000 && counters.samples_duplicate > 100, "{counters:?}");
}

#[test]
fn submessages_are_for_whom_the_last_destination_names_and_by_whom_the_last_source_names() {
    let mut end = End::new();
    let mut receive = |number, before: fn(&mut Vec<u8>)| {
        end.receive_only(Time(2), None, &message(HEADER, number, before));
        let mut writers = Vec::new();
        while end.core.take_next(|raw| writers.push(raw.writer)) {}
        writers
    };
    assert_eq!(receive(1, |_| {}), [WRITER]);
    let others = |out: &mut Vec<u8>| push(out, &InfoDestination { prefix: GuidPrefix([9; 12]) });
    assert_eq!(receive(2, others), []);
    let ours = |out: &mut Vec<u8>| push(out, &InfoDestination { prefix: PREFIX });
    assert_eq!(receive(2, ours), [WRITER]);
    let everybodys = |out: &mut Vec<u8>| push(out, &InfoDestination { prefix: GuidPrefix::UNKNOWN });
    assert_eq!(receive(3, everybodys), [WRITER]);
    assert_eq!(receive(1, |out| push(out, &relayed())), [OTHER]);
}

#[test]
fn a_timestamp_goes_with_its_source() {
    let mut datagram = message(HEADER, 1, |_| {});
    push(&mut datagram, &relayed());
    let payload = [0, 1, 0, 0, 0, 0, 0, 0];
    push(&mut datagram, &data(EntityId::UNKNOWN, SequenceNumber(1), &payload));
    datagram.extend(payload);
    let mut end = End::new();
    end.receive_only(Time(2), None, &datagram);
    let mut samples = Vec::new();
    while end.core.take_next(|raw| samples.push((raw.writer, raw.source_timestamp.is_some()))) {}
    assert_eq!(samples, [(WRITER, true), (OTHER, false)]);
}

#[test]
fn a_prediction_ends_with_its_match() {
    let mut core = End::new().core;
    let (mut receiver, mut outbox) = (UnlockedReceiver::default(), Outbox::new());
    for number in 1..=10 {
        if number == 6 {
            core.unmatch_writer(Time(2), WRITER);
        }
        let cores = Cores { prefix: PREFIX, writers: &mut [], readers: &mut [&mut core] };
        receiver.receive(Time(2), cores, [&message(HEADER, number, |_| {})[..]], &mut outbox);
        assert_eq!(receiver.has_prediction(), (2..6).contains(&number), "after sample {number}");
    }
    assert_eq!((core.counters().samples_received, core.counters().unknown_writers), (5, 0));
    assert_eq!((receiver.counters().datagrams, receiver.counters().ignored), (10, 5));
}

#[test]
fn readers_answer_once_to_a_batch() {
    let End { mut core, mut outbox, .. } = End::new();
    let mut receiver = UnlockedReceiver::default();
    let mut receive = |now, datagrams: &[Vec<u8>]| {
        outbox.clear();
        let cores = Cores { prefix: PREFIX, writers: &mut [], readers: &mut [&mut core] };
        receiver.receive(now, cores, datagrams.iter().map(Vec::as_slice), &mut outbox);
        (outbox.items.len(), core.counters().nacks_sent)
    };
    let heartbeat = message(HEADER, 1, |out| {
        let (reader, writer, first) = (READER, WRITER.entity, SequenceNumber(1));
        let (last, count, is_final, is_liveliness) = (first, 1, true, false);
        push(out, &Heartbeat { reader, writer, first, last, count, is_final, is_liveliness });
    });
    assert_eq!(receive(Time(2), &[heartbeat]).1, 0);
    // Every other sample is missing.
    let datagrams: Vec<_> = (1..20).step_by(2).map(|number| message(HEADER, number, |_| {})).collect();
    assert_eq!(receive(Time(3), &datagrams), (1, 1));
}

#[test]
fn several_readers_of_a_writer_and_readers_that_are_named_get_their_samples() {
    let mut cores = [1, 2].map(|number| {
        let mut config = ReaderConfig::new(
            Guid::new(PREFIX, EntityId::user_reader(number, false)),
            Reliability::BestEffort,
        );
        config.history = History::KeepAll;
        let mut core = ReaderCore::new(config);
        let (destinations, vendor) = (Arc::from([]), VendorId::WEIR);
        core.match_writer(Time(1), WriterProxyConfig { guid: WRITER, reliable: false, destinations, vendor });
        core
    });
    let (mut receiver, mut outbox) = (UnlockedReceiver::default(), Outbox::new());
    for (number, meant) in [EntityId::UNKNOWN, READER, READER, EntityId::UNKNOWN].into_iter().enumerate() {
        let mut datagram = Vec::new();
        push(&mut datagram, &HEADER);
        push(&mut datagram, &data(meant, SequenceNumber(number as i64 + 1), &[0, 1, 0, 0]));
        datagram.extend([0, 1, 0, 0]);
        let [one, other] = &mut cores;
        let cores = Cores { prefix: PREFIX, writers: &mut [], readers: &mut [one, other] };
        receiver.receive(Time(2), cores, [&datagram[..]], &mut outbox);
    }
    assert_eq!(cores.each_ref().map(ReaderCore::available), [4, 2]);
    assert!(!receiver.has_prediction());
}

#[test]
fn a_datagram_of_samples_of_unmatched_writers_visits_readers_a_few_times() {
    for is_one_writer in [false, true] {
        let mut end = End::with_history(false);
        let mut bytes = Vec::new();
        let unmatched = Header { vendor: VendorId::CYCLONE, prefix: GuidPrefix([9; 12]), ..HEADER };
        push(&mut bytes, &unmatched);
        for number in 0..2000 {
            let key = if is_one_writer { 1 } else { number };
            let header = DataHeader {
                reader: EntityId::UNKNOWN,
                writer: EntityId::user_writer(key, false),
                sequence_number: SequenceNumber(5000 - i64::from(number)),
                inline_qos_len: 0,
                payload_len: 0,
                is_key: false,
            };
            push(&mut bytes, &header);
        }
        for round in 1..=2 {
            end.receive_only(Time(10), None, &bytes);
            assert_eq!(end.core.counters().unknown_writers, 16 * round);
            assert!(end.batch.readers().is_empty());
        }
    }
}
