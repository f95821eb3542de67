//! Prediction: most datagrams are like the one before, a sample of the same writer for the same reader.
//!
//! Whoever receives remembers where the last samples went. A datagram that begins with the same octets, and with a sample as
//! most have it (INFO_TS and DATA, little-endian, without inline QoS), is compared with that, instead of being parsed and
//! looked up submessage by submessage. Everything else goes the general way, through
//! [`dispatch`](super::dispatch), which leads to the same functions of the reader: only the way there is shorter. A route is
//! as old as the table that it was looked up in, and goes with it.

use std::sync::Arc;

use weir_wire::{Data, Emit, EntityId, Guid, Header, Submessages, Timestamp};

use super::endpoints::ReaderEndpoint;

/// Where the last samples went: the next ones are probably from the same writer, and then nothing has to be looked up.
pub(crate) struct Route {
    /// Of the table that this was looked up in.
    version: u64,
    /// What messages from there begin with.
    pub(super) header: [u8; Header::LEN],
    pub(super) writer: Guid,
    /// The only reader that is matched with the writer.
    pub(super) reader: Arc<ReaderEndpoint>,
}

impl Route {
    pub(super) fn new(version: u64, header: &Header, writer: Guid, reader: &Arc<ReaderEndpoint>) -> Self {
        let mut route = Self { version, header: [0; Header::LEN], writer, reader: Arc::clone(reader) };
        header.emit(&mut route.header);
        route
    }

    /// The reader.
    #[inline]
    pub(crate) fn reader(&self) -> &ReaderEndpoint {
        &self.reader
    }

    /// The version of the table that this was looked up in, which alone it goes with.
    #[inline]
    pub(crate) fn version(&self) -> u64 {
        self.version
    }
}

/// A datagram that begins with a sample as most do, from where the last ones came from.
pub(super) struct Predicted<'t, 'd> {
    pub(super) route: &'t Route,
    pub(super) timestamp: Timestamp,
    pub(super) data: Data<'d>,
    /// What follows.
    pub(super) behind: Submessages<'d>,
}

impl<'t, 'd> Predicted<'t, 'd> {
    /// `None` for all other datagrams.
    #[inline(always)]
    pub(super) fn new(route: &'t Route, datagram: &'d [u8]) -> Option<Self> {
        let (header, body) = datagram.split_first_chunk::<{ Header::LEN }>()?;
        if *header != route.header {
            return None;
        }
        let mut behind = Submessages::new(body);
        let (timestamp, data) = behind.next_stamped_data()?;
        let is_meant = data.reader == EntityId::UNKNOWN || data.reader == route.reader.entity;
        (is_meant && data.writer == route.writer.entity).then_some(Self { route, timestamp, data, behind })
    }
}

#[cfg(test)]
mod tests {
    use weir_rtps::outbox::Outbox;
    use weir_rtps::qos::{History, Reliability};
    use weir_rtps::reader::{ReaderConfig, ReaderCore, WriterProxyConfig};
    use weir_rtps::time::Time;
    use weir_wire::{
        DataHeader, GuidPrefix, Heartbeat, InfoDestination, InfoTimestamp, ProtocolVersion, SequenceNumber,
        VendorId, push,
    };

    use super::super::dispatch::{self, Incoming, Touched};
    use super::super::endpoints::Table;
    use super::*;

    const PREFIX: GuidPrefix = GuidPrefix([2; 12]);
    const READER: EntityId = EntityId::user_reader(1, false);
    const WRITER: Guid = Guid::new(GuidPrefix([1; 12]), EntityId::user_writer(1, false));
    const HEADER: Header =
        Header { version: ProtocolVersion::V2_5, vendor: VendorId::WEIR, prefix: WRITER.prefix };

    /// A reliable reader of one writer.
    struct End {
        endpoint: Arc<ReaderEndpoint>,
        table: Table,
        touched: Touched,
        outbox: Outbox,
    }

    impl End {
        fn new() -> Self {
            let config = ReaderConfig {
                history: History::KeepAll,
                ..ReaderConfig::new(Guid::new(PREFIX, READER), Reliability::Reliable)
            };
            let mut core = ReaderCore::new(config);
            let destinations = Arc::from([std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 7411)]);
            core.match_writer(
                Time(1),
                WriterProxyConfig { guid: WRITER, reliable: true, destinations, vendor: VendorId::WEIR },
            );
            let endpoint = Arc::new(ReaderEndpoint::new(READER, core));
            let mut table = Table::default();
            table.readers.insert(READER, Arc::clone(&endpoint));
            table.readers_of.insert(WRITER, vec![Arc::clone(&endpoint)]);
            Self { endpoint, table, touched: Touched::default(), outbox: Outbox::new() }
        }

        /// What a datagram leads to: everything that can be seen of it.
        fn receive(&mut self, now: Time, route: Option<&Route>, datagram: &[u8]) -> String {
            let Self { endpoint, table, touched, outbox } = self;
            let incoming = Incoming { table, route, prefix: PREFIX, now };
            let next = dispatch::receive_lone(incoming, datagram, None, touched, outbox);
            let on_route = touched.on_route.take();
            let news = on_route.or_else(|| touched.readers.first().map(|reader| reader.news));
            touched.readers.clear();
            let mut core = endpoint.core.lock();
            let mut samples = Vec::new();
            while core.take_next(|raw| samples.push(format!("{raw:?}"))) {}
            let timeout = core.next_timeout();
            let sent = (outbox.items.len(), outbox.scratch.clone());
            outbox.clear();
            format!(
                "{samples:?} {:?} {:?} {next:?} {timeout:?} {:?} {sent:?}",
                core.counters(),
                touched.counters,
                news.map(|news| (news.has_unread, news.has_status_news)),
            )
        }
    }

    /// A sample with what may be around it.
    fn datagram(random: &mut fastrand::Rng, number: &mut i64) -> Vec<u8> {
        let mut out = Vec::new();
        push(&mut out, &HEADER);
        if random.u8(..) < 25 {
            push(&mut out, &InfoDestination { prefix: PREFIX });
        }
        for _ in 0..random.usize(1..3) {
            *number += i64::from(random.u8(..) < 240);
            let sequence_number = SequenceNumber(*number + i64::from(random.u8(..) < 10));
            let timestamp = (random.u8(..) < 240).then(|| Timestamp { seconds: 7, fraction: random.u32(..) });
            push(&mut out, &InfoTimestamp { timestamp });
            let payload = [0, 1, 0, 0, random.u8(..), 0, 0, 0];
            let reader = *random.choice([&READER, &EntityId::UNKNOWN]).unwrap();
            let header = DataHeader {
                reader,
                writer: WRITER.entity,
                sequence_number,
                inline_qos_len: 0,
                payload_len: payload.len() as u32,
                is_key: false,
            };
            push(&mut out, &header);
            out.extend(payload);
        }
        if random.u8(..) < 50 {
            let (first, last) = (SequenceNumber((*number - 4).max(1)), SequenceNumber(*number));
            let (reader, writer, count) = (READER, WRITER.entity, *number as u32);
            let is_final = random.bool();
            push(&mut out, &Heartbeat { reader, writer, first, last, count, is_final, is_liveliness: false });
        }
        // Some are broken on the way.
        match random.u8(..) {
            0..50 => {
                let at = random.usize(..out.len());
                out[at] = random.u8(..);
            }
            50..70 => out.truncate(random.usize(..out.len())),
            _ => {}
        }
        out
    }

    #[test]
    fn what_is_predicted_ends_as_what_is_looked_up() {
        let mut random = fastrand::Rng::with_seed(7);
        let (mut general, mut quick) = (End::new(), End::new());
        let route = Route::new(0, &HEADER, WRITER, &quick.endpoint);
        let (mut number, mut predicted) = (0, 0);
        for round in 1..20_000 {
            let datagram = datagram(&mut random, &mut number);
            let now = Time(round * 10_000);
            predicted += u32::from(Predicted::new(&route, &datagram).is_some());
            let (one, other) =
                (general.receive(now, None, &datagram), quick.receive(now, Some(&route), &datagram));
            assert_eq!(one, other, "{datagram:?}");
        }
        assert!((10_000..19_000).contains(&predicted), "{predicted}");
        let counters = quick.endpoint.core.lock().counters();
        assert!(counters.samples_received > 10_000 && counters.samples_duplicate > 100, "{counters:?}");
    }
}
