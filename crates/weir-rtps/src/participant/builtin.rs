//! The reliable builtin endpoints: those of SEDP, whose instances are the endpoints of
//! applications, keyed by GUID (RTPS 2.5, 8.5.4), and those of participant messages (8.4.13).

use alloc::vec::Vec;

use weir_wire::{Data, EntityId, Guid, GuidPrefix, Payload, SequenceNumber, Submessage, Timestamp, VendorId};

use super::config::ParticipantConfig;
use crate::config;
use crate::inline_qos;
use crate::limits::Limits;
use crate::outbox::{Destinations, Outbox};
use crate::participant_message;
use crate::qos::{Durability, History, LivelinessKind, Reliability};
use crate::reader::{RawSample, ReaderConfig, ReaderCore, ReaderSize, ReassemblyLimits, WriterProxyConfig};
use crate::receiver::submessages::{self, Addressee, Moment};
use crate::sedp::{self, EndpointData, EndpointKind};
use crate::spdp::{ParticipantData, builtin_endpoints};
use crate::time::Time;
use crate::writer::{
    Change, ChangeKind, ReaderProxyConfig, WriteRefused, WriterConfig, WriterCore, WriterSize,
};

/// Both topics of SEDP, and participant messages.
#[derive(Debug)]
pub(super) struct BuiltinEndpoints {
    vendor: VendorId,
    prefix: GuidPrefix,
    publications: Exchange,
    subscriptions: Exchange,
    messages: Exchange,
    payload: Vec<u8>,
    /// Memory for the key of an endpoint that is gone.
    key: Vec<u8>,
    /// New announcements wait until then for further ones.
    held_to: Time,
    /// They do so since the first of them.
    is_gathering: bool,
    /// The counts already returned by [`BuiltinEndpoints::take_refusals`].
    reported: Refusals,
}

/// What the builtin readers refused.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Refusals {
    /// Fragmented announcements that exceed [`config::ANNOUNCEMENT_MAX_BYTES`].
    pub(super) oversized: u64,
    /// Fragments without room, or that contradict earlier ones.
    pub(super) fragments: u64,
}

/// One topic: our writer, and our reader of all other participants' writers.
#[derive(Debug)]
struct Exchange {
    ids: ExchangeIds,
    durability: Durability,
    /// The last sample when our announcements were rewritten.
    renewed_at: SequenceNumber,
    writer: WriterCore,
    reader: ReaderCore,
}

/// The entity ids of a topic.
#[derive(Debug)]
struct ExchangeIds {
    writer: EntityId,
    reader: EntityId,
    announcer_bit: u32,
    detector_bit: u32,
}

impl BuiltinEndpoints {
    pub(super) fn new(config: &ParticipantConfig) -> Self {
        let publications = ExchangeIds {
            writer: EntityId::SEDP_PUBLICATIONS_WRITER,
            reader: EntityId::SEDP_PUBLICATIONS_READER,
            announcer_bit: builtin_endpoints::PUBLICATIONS_ANNOUNCER,
            detector_bit: builtin_endpoints::PUBLICATIONS_DETECTOR,
        };
        let subscriptions = ExchangeIds {
            writer: EntityId::SEDP_SUBSCRIPTIONS_WRITER,
            reader: EntityId::SEDP_SUBSCRIPTIONS_READER,
            announcer_bit: builtin_endpoints::SUBSCRIPTIONS_ANNOUNCER,
            detector_bit: builtin_endpoints::SUBSCRIPTIONS_DETECTOR,
        };
        let messages = ExchangeIds {
            writer: EntityId::PARTICIPANT_MESSAGE_WRITER,
            reader: EntityId::PARTICIPANT_MESSAGE_READER,
            announcer_bit: builtin_endpoints::PARTICIPANT_MESSAGE_WRITER,
            detector_bit: builtin_endpoints::PARTICIPANT_MESSAGE_READER,
        };
        let reserved = config.table.map_or(0, |limits| limits.builtin().sample_bytes);
        Self {
            vendor: config.vendor,
            prefix: config.guid_prefix,
            publications: Exchange::new(config, publications, Durability::TransientLocal),
            subscriptions: Exchange::new(config, subscriptions, Durability::TransientLocal),
            // Volatile: only current messages assert liveliness, and their number is unbounded.
            messages: Exchange::new(config, messages, Durability::Volatile),
            payload: Vec::with_capacity(reserved),
            key: Vec::with_capacity(config.table.map_or(0, |_| KEY_BYTES)),
            held_to: Time::ZERO,
            is_gathering: false,
            reported: Refusals::default(),
        }
    }

    /// Asks the readers of a participant how far they have got. A reader that has lost us acknowledges nothing, and is
    /// sent everything again.
    pub(super) fn ask_for_position(&mut self, prefix: GuidPrefix) {
        for exchange in self.exchanges() {
            exchange.writer.prompt_reader(Guid::new(prefix, exchange.ids.reader));
        }
    }

    /// Starts or restarts the exchange with a participant. `is_here`: it is on this host.
    pub(super) fn match_participant(
        &mut self,
        now: Time,
        data: &ParticipantData,
        to: &Destinations,
        is_here: bool,
    ) {
        for exchange in self.exchanges() {
            exchange.unmatch(now, data.prefix);
            exchange.match_participant(now, data, to);
            if is_here && exchange.durability == Durability::Volatile {
                // Few participants ever send a message. From other hosts, what arrives allows answers.
                exchange.reader.await_heartbeat(Guid::new(data.prefix, exchange.ids.writer));
                exchange.writer.spare_heartbeat(Guid::new(data.prefix, exchange.ids.reader));
            }
        }
    }

    /// Reads the announcements of a participant from the beginning: one of them had found no place.
    pub(super) fn read_again(&mut self, now: Time, data: &ParticipantData, to: &Destinations) {
        for exchange in [&mut self.publications, &mut self.subscriptions] {
            exchange.match_writer(now, data, to);
        }
    }

    /// A participant was received from again: prompts those of its writers that have never
    /// responded.
    pub(super) fn prompt_participant(&mut self, now: Time, prefix: GuidPrefix) {
        for exchange in self.exchanges() {
            exchange.reader.prompt_writer(now, Guid::new(prefix, exchange.ids.writer));
        }
    }

    pub(super) fn unmatch_participant(&mut self, now: Time, prefix: GuidPrefix) {
        for exchange in self.exchanges() {
            exchange.unmatch(now, prefix);
        }
    }

    /// Announces one of our endpoints, or its changed policies.
    ///
    /// An announcement is one datagram of any length; the kernel fragments it if the path requires
    /// that. RTPS fragments would be paced by the slowest participant, so one that never responds
    /// would keep new endpoints from all others. What does not fit a datagram is refused.
    pub(super) fn announce(
        &mut self,
        now: Time,
        kind: EndpointKind,
        data: &EndpointData,
    ) -> Result<(), WriteRefused> {
        let mut payload = core::mem::take(&mut self.payload);
        payload.clear();
        sedp::encode(kind, data, self.vendor, &mut payload);
        let change = Change { kind: ChangeKind::Alive, key: Some(data.guid.to_bytes()), payload: &payload };
        let written = self.exchange(kind).writer.write_change(now, None, change);
        self.payload = payload;
        written.map(drop)
    }

    /// Makes room for the announcement of one more endpoint, of which one was `refused`: forgets one that is gone. That
    /// is kept until all participants know, but one that never answers cannot prevent others. Returns whether there may
    /// be room. `has_answered`: whether a participant ever did.
    pub(super) fn forget_end(
        &mut self,
        kind: EndpointKind,
        refused: WriteRefused,
        has_answered: impl Fn(GuidPrefix) -> bool,
    ) -> bool {
        let is_full = matches!(refused, WriteRefused::LimitReached | WriteRefused::TooManyInstances);
        is_full && self.exchange(kind).writer.forget_end(|reader| has_answered(reader.prefix))
    }

    /// Returns whether the announcements of a kind, of `endpoints` in total, should be rewritten.
    /// Once per so many announcements, even if a participant that acknowledges nothing keeps the
    /// memory in use.
    pub(super) fn should_renew(&mut self, kind: EndpointKind, endpoints: usize) -> bool {
        let exchange = self.exchange(kind);
        let bound = 4 * endpoints + config::ANNOUNCEMENTS_SPARE;
        let last = exchange.writer.last_sequence_number();
        let is_due = exchange.writer.span() > bound && last.0 - exchange.renewed_at.0 > bound as i64;
        if is_due {
            exchange.renewed_at = last;
        }
        is_due
    }

    /// Returns the memory of all endpoints as allocated, in bytes, if they have a limits table.
    pub(super) fn allocated(&self) -> usize {
        let exchanges = [&self.publications, &self.subscriptions, &self.messages];
        exchanges.map(|it| it.writer.allocated() + it.reader.allocated()).iter().sum()
    }

    /// Returns what they reserve within a limits table, in bytes.
    pub(super) fn bytes(limits: &Limits) -> usize {
        let limits = limits.builtin();
        let writer = WriterSize::new(&limits, true, Some(1));
        let reader = ReaderSize::new(&limits, false);
        writer.bytes().saturating_add(reader.bytes()).saturating_mul(EXCHANGES)
    }

    /// Returns the memory of our announcements in bytes.
    pub(super) fn memory(&self) -> usize {
        [&self.publications, &self.subscriptions, &self.messages]
            .map(|exchange| exchange.writer.memory())
            .iter()
            .sum()
    }

    /// Returns the memory of remote announcements in bytes, including those only known to be
    /// missing.
    pub(super) fn waiting_memory(&self) -> usize {
        [&self.publications, &self.subscriptions, &self.messages]
            .map(|exchange| exchange.reader.memory())
            .iter()
            .sum()
    }

    /// Announces that one of our endpoints is gone.
    pub(super) fn dispose(&mut self, now: Time, kind: EndpointKind, guid: Guid) {
        let mut payload = core::mem::take(&mut self.payload);
        payload.clear();
        sedp::encode_key(guid, &mut payload);
        let change =
            Change { kind: ChangeKind::DisposedUnregistered, key: Some(guid.to_bytes()), payload: &payload };
        // The instance exists since it was announced, the payload is short, and the number of
        // samples is unlimited.
        let _never_refused = self.exchange(kind).writer.write_change(now, None, change);
        self.payload = payload;
    }

    /// Asserts all our writers of a kind.
    pub(super) fn assert_liveliness(&mut self, now: Time, kind: LivelinessKind) {
        let Some(key) = participant_message::key(self.prefix, kind) else { return };
        let payload = participant_message::encode(key);
        let change = Change { kind: ChangeKind::Alive, key: Some(key), payload: &payload };
        // There are two instances, and KEEP_LAST replaces undelivered samples.
        let _never_refused = self.messages.writer.write_change(now, None, change);
    }

    /// Takes one participant message: its sender and its content.
    pub(super) fn take_message(&mut self) -> Option<(GuidPrefix, Option<(GuidPrefix, LivelinessKind)>)> {
        let mut taken = None;
        self.messages.reader.take_next(|sample| {
            taken = Some((sample.writer.prefix, participant_message::decode(sample.payload)));
        });
        taken
    }

    /// Handles a submessage; `false` if it is for none of the builtin endpoints. Reassembly is
    /// limited, see [`config::ANNOUNCEMENT_MAX_BYTES`].
    pub(super) fn handle(
        &mut self,
        now: Time,
        source: GuidPrefix,
        submessage: &Submessage<'_>,
        timestamp: Option<Timestamp>,
    ) -> bool {
        match submessages::addressee(source, submessage) {
            Some(Addressee::Readers { writer, reader }) => {
                let mut key = core::mem::take(&mut self.key);
                key.clear();
                let exchange = self.receiving(writer.entity, reader);
                let is_known = exchange.is_some();
                if let Some(exchange) = exchange {
                    let submessage = &with_key(submessage, &mut key);
                    submessages::to_reader(
                        &mut exchange.reader,
                        Moment::at(now),
                        writer,
                        submessage,
                        timestamp,
                        None,
                    );
                }
                self.key = key;
                return is_known;
            }
            Some(Addressee::Writer { writer, reader }) => {
                let Some(exchange) = self.sending(writer, reader.entity) else { return false };
                submessages::to_writer(&mut exchange.writer, Moment::at(now), reader, submessage);
            }
            None => return false,
        }
        true
    }

    /// Returns what the readers refused since the last call.
    pub(super) fn take_refusals(&mut self) -> Refusals {
        let before = self.reported;
        self.reported = Refusals::default();
        for exchange in [&self.publications, &self.subscriptions, &self.messages] {
            let counters = exchange.reader.counters();
            self.reported.oversized += counters.samples_oversized;
            self.reported.fragments += counters.fragments_refused;
        }
        Refusals {
            oversized: self.reported.oversized - before.oversized,
            fragments: self.reported.fragments - before.fragments,
        }
    }

    /// Takes one announcement and passes it to `f`; `false` if there is none.
    pub(super) fn take_next(&mut self, mut f: impl FnMut(EndpointKind, RawSample<'_>)) -> bool {
        self.publications.reader.take_next(|sample| f(EndpointKind::Writer, sample))
            || self.subscriptions.reader.take_next(|sample| f(EndpointKind::Reader, sample))
    }

    /// [`BuiltinEndpoints::release_room`] for the last participant, if the next one is another.
    pub(super) fn release_room_before(&mut self, last: &mut Option<GuidPrefix>, next: GuidPrefix) {
        if let Some(last) = last.replace(next).filter(|last| *last != next) {
            self.release_room(last);
        }
    }

    /// Returns what announcements of and to a participant took while they waited for each other: most are sent at once,
    /// when it is discovered.
    pub(super) fn release_room(&mut self, prefix: GuidPrefix) {
        for exchange in self.exchanges() {
            exchange.reader.release_room(Guid::new(prefix, exchange.ids.writer));
            exchange.writer.release_room(Guid::new(prefix, exchange.ids.reader));
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        for exchange in self.exchanges() {
            exchange.writer.handle_timeout(now);
            // It visits all writers; most time-outs are of others.
            if exchange.reader.next_timeout().is_some_and(|at| at <= now) {
                exchange.reader.handle_timeout(now);
            }
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        [&self.publications, &self.subscriptions, &self.messages]
            .into_iter()
            .flat_map(|exchange| [exchange.writer.next_timeout(), exchange.reader.next_timeout()])
            .flatten()
            .chain(self.has_new_announcements().then_some(self.held_to))
            .min()
    }

    /// Appends everything that is to be sent now.
    ///
    /// New endpoints are announced together with those that follow immediately: each announcement is a datagram to each
    /// participant, and one in return. Few participants are sent the first one at once.
    pub(super) fn poll_transmit(&mut self, now: Time, out: &mut Outbox) {
        let is_held = self.has_new_announcements() && self.hold(now);
        for exchange in self.exchanges() {
            let writer = &mut exchange.writer;
            let is_announcing = exchange.durability != Durability::Volatile && writer.has_unsent();
            if is_announcing && is_held {
                writer.poll_answers(now, out);
            } else {
                if is_announcing {
                    // By the HEARTBEAT that goes along.
                    writer.request_acknowledgement();
                }
                writer.poll_transmit(now, out);
            }
            exchange.reader.poll_transmit(now, out);
        }
    }

    /// Returns whether new announcements wait for further ones.
    fn hold(&mut self, now: Time) -> bool {
        if now < self.held_to {
            return true;
        }
        let peers = self.publications.writer.matched() as u32;
        self.is_gathering = !self.is_gathering && peers > FEW_PEERS;
        self.held_to = now + config::ANNOUNCEMENT_GAP * peers;
        self.is_gathering
    }

    /// Sends new announcements with the next transmission.
    pub(super) fn flush(&mut self) {
        (self.held_to, self.is_gathering) = (Time::ZERO, true);
    }

    fn has_new_announcements(&self) -> bool {
        self.publications.writer.has_unsent() || self.subscriptions.writer.has_unsent()
    }

    /// Asks a participant for an acknowledgement, wherever it usually receives.
    pub(super) fn ask(&mut self, prefix: GuidPrefix, to: &Destinations, out: &mut Outbox) {
        let exchange = &mut self.publications;
        exchange.writer.ask_reader(Guid::new(prefix, exchange.ids.reader), to, out);
    }

    /// Returns the HEARTBEATs sent by the writer that asks.
    pub(super) fn heartbeats_sent(&self) -> u64 {
        self.publications.writer.counters().heartbeats_sent
    }

    /// Shows a participant at this address that we are here.
    pub(super) fn answer(&mut self, prefix: GuidPrefix, to: &Destinations, out: &mut Outbox) {
        let exchange = &mut self.publications;
        exchange.reader.acknowledge_at(Guid::new(prefix, exchange.ids.writer), to, out);
    }

    /// Returns whether a participant has answered a HEARTBEAT of our announcements. `Some(false)`: it guesses.
    pub(super) fn take_answer(&mut self, prefix: GuidPrefix) -> Option<bool> {
        let exchanges = [&mut self.publications, &mut self.subscriptions].into_iter();
        exchanges.filter_map(|it| it.writer.take_answer(Guid::new(prefix, it.ids.reader))).min()
    }

    fn exchanges(&mut self) -> [&mut Exchange; 3] {
        [&mut self.publications, &mut self.subscriptions, &mut self.messages]
    }

    fn exchange(&mut self, kind: EndpointKind) -> &mut Exchange {
        match kind {
            EndpointKind::Writer => &mut self.publications,
            EndpointKind::Reader => &mut self.subscriptions,
        }
    }

    /// Returns the topic of a remote `writer`, if `reader` is our reader of it or unspecified.
    fn receiving(&mut self, writer: EntityId, reader: EntityId) -> Option<&mut Exchange> {
        self.exchanges().into_iter().find(|exchange| {
            exchange.ids.writer == writer && (reader == EntityId::UNKNOWN || exchange.ids.reader == reader)
        })
    }

    /// Returns the topic of our `writer` and a remote `reader`.
    fn sending(&mut self, writer: EntityId, reader: EntityId) -> Option<&mut Exchange> {
        self.exchanges()
            .into_iter()
            .find(|exchange| exchange.ids.writer == writer && exchange.ids.reader == reader)
    }
}

impl Exchange {
    fn new(config: &ParticipantConfig, ids: ExchangeIds, durability: Durability) -> Self {
        // No reader of a volatile writer is sent what was written before the match, so it shows no numbers either.
        let is_kept = durability != Durability::Volatile;
        let first = if is_kept { config.first_announcement } else { SequenceNumber::FIRST };
        let writer = WriterConfig {
            vendor: config.vendor,
            history: History::KeepLast(1),
            durability,
            answer_time: config::ANSWER_TIME,
            first,
            limits: config.table.map(|limits| limits.builtin()),
            ..WriterConfig::new(Guid::new(config.guid_prefix, ids.writer), Reliability::Reliable)
        };
        let reader = ReaderConfig {
            vendor: config.vendor,
            wants_history: is_kept,
            // Announcements are taken at once; only those that wait for an earlier one stay.
            history: History::KeepAll,
            max_bytes: READER_MAX_BYTES,
            answer_time: config::ANSWER_TIME,
            // A participant's announcements are forgotten with it, and needed again when it
            // returns.
            remembers_writers: false,
            reassembly: ReassemblyLimits {
                sample_max_bytes: config::ANNOUNCEMENT_MAX_BYTES,
                max_bytes: config::ANNOUNCEMENT_REASSEMBLY_MAX_BYTES,
            },
            limits: config.table.map(|limits| limits.builtin()),
            ..ReaderConfig::new(Guid::new(config.guid_prefix, ids.reader), Reliability::Reliable)
        };
        Self {
            writer: WriterCore::new(writer),
            reader: ReaderCore::new(reader),
            ids,
            durability,
            renewed_at: first.prev(),
        }
    }

    fn match_writer(&mut self, now: Time, data: &ParticipantData, to: &Destinations) {
        if data.builtin_endpoints & self.ids.announcer_bit != 0 {
            let guid = Guid::new(data.prefix, self.ids.writer);
            let writer =
                WriterProxyConfig { guid, reliable: true, destinations: to.clone(), vendor: data.vendor };
            self.reader.match_writer(now, writer);
        }
    }

    fn match_participant(&mut self, now: Time, data: &ParticipantData, to: &Destinations) {
        self.match_writer(now, data, to);
        if data.builtin_endpoints & self.ids.detector_bit != 0 {
            let reader = ReaderProxyConfig {
                guid: Guid::new(data.prefix, self.ids.reader),
                reliable: true,
                wants_history: self.durability != Durability::Volatile,
                destinations: to.clone(),
                group: None,
                vendor: data.vendor,
                receive_buffer: None,
                segment_max: u16::MAX,
                path: None,
            };
            self.writer.match_reader(now, reader);
        }
    }

    fn unmatch(&mut self, now: Time, prefix: GuidPrefix) {
        self.reader.unmatch_writer(now, Guid::new(prefix, self.ids.writer));
        self.writer.unmatch_reader(now, Guid::new(prefix, self.ids.reader));
    }
}

/// A disposal that names its endpoint by KEY_HASH alone, with the key as its payload, written to `key`
/// (RTPS 2.5, 9.6.4.8: the hash of a GUID is the GUID). Any other submessage is returned as it is.
fn with_key<'a>(submessage: &Submessage<'a>, key: &'a mut Vec<u8>) -> Submessage<'a> {
    match submessage {
        Submessage::Data(data) if data.payload == Payload::None && is_sedp(data.writer) => {
            let (_, key_hash) = inline_qos::decode(data.inline_qos.as_ref());
            let Some(key_hash) = key_hash else { return *submessage };
            sedp::encode_key(Guid::from_bytes(key_hash), key);
            Submessage::Data(Data { payload: Payload::Key(key), ..*data })
        }
        _ => *submessage,
    }
}

fn is_sedp(writer: EntityId) -> bool {
    [EntityId::SEDP_PUBLICATIONS_WRITER, EntityId::SEDP_SUBSCRIPTIONS_WRITER].contains(&writer)
}

/// The payload with the key of an endpoint.
const KEY_BYTES: usize = 32;
/// The topics of discovery.
const EXCHANGES: usize = 3;
/// So many participants are sent the first of several announcements at once.
const FEW_PEERS: u32 = 8;
/// Maximum size of announcements that wait for an earlier one, over all participants, in bytes.
const READER_MAX_BYTES: usize = 16 * 1024 * 1024;
