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
        Self { version, header: octets(header), writer, reader: Arc::clone(reader) }
    }

    /// Whether messages of `writer` that begin with `header` go this way.
    pub(super) fn is_of(&self, header: &Header, writer: Guid) -> bool {
        self.writer == writer && self.header == octets(header)
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

/// What a message with this header begins with.
fn octets(header: &Header) -> [u8; Header::LEN] {
    let mut octets = [0; Header::LEN];
    header.emit(&mut octets);
    octets
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
    const OTHER: Guid = Guid::new(GuidPrefix([3; 12]), EntityId::user_writer(1, false));
    const HEADER: Header = header(WRITER);

    const fn header(writer: Guid) -> Header {
        Header { version: ProtocolVersion::V2_5, vendor: VendorId::WEIR, prefix: writer.prefix }
    }

    /// A reliable reader of two writers.
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
            let destinations: Arc<[_]> =
                Arc::from([std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 7411)]);
            for guid in [WRITER, OTHER] {
                let destinations = Arc::clone(&destinations);
                let vendor = VendorId::WEIR;
                core.match_writer(Time(1), WriterProxyConfig { guid, reliable: true, destinations, vendor });
            }
            let endpoint = Arc::new(ReaderEndpoint::new(READER, core));
            let mut table = Table::default();
            table.readers.insert(READER, Arc::clone(&endpoint));
            for guid in [WRITER, OTHER] {
                table.readers_of.insert(guid, vec![Arc::clone(&endpoint)]);
            }
            Self { endpoint, table, touched: Touched::default(), outbox: Outbox::new() }
        }

        fn receive_only(&mut self, now: Time, route: Option<&Route>, datagram: &[u8]) -> Option<Time> {
            let incoming = Incoming { table: &self.table, route, prefix: PREFIX, now };
            dispatch::receive_lone(incoming, datagram, None, &mut self.touched, &mut self.outbox)
        }

        /// What a datagram leads to: everything that can be seen of it.
        fn receive(&mut self, now: Time, route: Option<&Route>, datagram: &[u8]) -> String {
            let next = self.receive_only(now, route, datagram);
            let Self { endpoint, touched, outbox, .. } = self;
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

    /// A sample as most are.
    fn plain(header: Header, number: i64) -> Vec<u8> {
        let mut out = Vec::new();
        push(&mut out, &header);
        push(&mut out, &InfoTimestamp { timestamp: Some(Timestamp { seconds: 7, fraction: 0 }) });
        let payload = [0, 1, 0, 0, 0, 0, 0, 0];
        let data = DataHeader {
            reader: EntityId::UNKNOWN,
            writer: WRITER.entity,
            sequence_number: SequenceNumber(number),
            inline_qos_len: 0,
            payload_len: payload.len() as u32,
            is_key: false,
        };
        push(&mut out, &data);
        out.extend(payload);
        out
    }

    /// How many routes are made by samples with these headers.
    fn routes_made(headers: impl Iterator<Item = Header>) -> u32 {
        let mut end = End::new();
        let (mut route, mut made) = (None, 0);
        for (number, header) in (1..).zip(headers) {
            end.receive_only(Time(number as u64 * 10_000), route.as_ref(), &plain(header, number));
            if end.touched.has_candidate()
                && let Some(next) = end.touched.next_route(route.as_ref(), 0)
            {
                (route, made) = (Some(next), made + 1);
            }
            end.touched.on_route = None;
            end.touched.readers.clear();
        }
        made
    }

    #[test]
    fn a_route_is_made_by_two_samples_in_a_row() {
        assert_eq!(routes_made([HEADER, header(OTHER)].into_iter().cycle().take(30)), 0);
        assert_eq!(routes_made([HEADER; 30].into_iter()), 1);
        // Where there is one, writers that take turns do not take it from each other.
        let turns = [header(OTHER), HEADER].into_iter().cycle().take(30);
        assert_eq!(routes_made([HEADER; 2].into_iter().chain(turns)), 1);
        // What somebody else put before the same writer's number does not stay.
        let forged = Header { vendor: VendorId::RTI, ..HEADER };
        assert_eq!(routes_made([forged; 2].into_iter().chain([HEADER; 30])), 2);
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
