//! A writer that applies the filter of a reader, and that reader, across a link that loses datagrams.

use weir_cdr::{CdrValue, DdsType};
use weir_filter::{Expression, Filter};

use super::*;
use crate::content_filter::ContentFilterProperty;
use crate::reader::{ReaderConfig, ReaderCore, WriterProxyConfig};

#[derive(Default, DdsType)]
#[dds(extensibility = "final")]
struct Number {
    x: u32,
}

const EXPRESSION: &str = "x BETWEEN 10 AND 20 OR x > 90";

/// Both ends, and what the link does.
struct Link {
    writer: WriterCore,
    reader: ReaderCore,
    now: Time,
    random: u32,
    lost_percent: u32,
    /// Values that the reader was sent, again included.
    data_sent: usize,
}

impl Link {
    fn new(seed: u32, lost_percent: u32, writer_filters: bool) -> Self {
        let config = WriterConfig {
            durability: Durability::TransientLocal,
            description: Number::DESCRIPTION,
            ..config(Reliability::Reliable)
        };
        let expression = Expression::filter(EXPRESSION).unwrap();
        let filter = Filter::new::<&str>(&expression, &Number::DESCRIPTION, &[]).unwrap();
        let reader = ReaderConfig {
            history: History::KeepAll,
            content_filter: Some(Arc::new(filter)),
            ..ReaderConfig::new(READER, Reliability::Reliable)
        };
        let mut link = Self {
            writer: WriterCore::new(config),
            reader: ReaderCore::new(reader),
            now: Time(0),
            random: seed,
            lost_percent,
            data_sent: 0,
        };
        // Before the match: history.
        (0..30).for_each(|x| link.put(x));
        let destinations: crate::outbox::Destinations =
            Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1)]);
        let at = Arc::clone(&destinations);
        let proxy = WriterProxyConfig { guid: WRITER, reliable: true, destinations, vendor: VendorId::WEIR };
        link.reader.match_writer(link.now, proxy);
        let proxy = ReaderProxyConfig { wants_history: true, destinations: at, ..reader_proxy() };
        link.writer.match_reader(link.now, proxy);
        if writer_filters {
            let (name, topic) = ("f".to_owned(), "t".to_owned());
            let property = ContentFilterProperty::sql(name, topic, EXPRESSION.to_owned(), Vec::new());
            link.writer.set_content_filter(READER, Some(&property));
        }
        link
    }

    fn put(&mut self, x: u32) {
        let mut payload = Vec::new();
        weir_cdr::to_payload(&Number { x }, &mut payload).unwrap();
        write(&mut self.writer, self.now, &payload).unwrap();
    }

    fn is_lost(&mut self) -> bool {
        self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.random >> 16) % 100 < self.lost_percent
    }

    /// Exchanges everything that is due now, and moves on to the next timeout.
    fn step(&mut self) {
        let mut out = Outbox::new();
        self.writer.poll_transmit(self.now, &mut out);
        let mut datagrams = Vec::new();
        out.for_each_datagram(|_, datagram| datagrams.push(datagram.to_vec()));
        for datagram in datagrams {
            if self.is_lost() {
                continue;
            }
            for submessage in Message::parse(&datagram).unwrap().submessages() {
                match submessage.unwrap() {
                    Submessage::Data(data) => {
                        self.data_sent += 1;
                        self.reader.handle_data(self.now, &WRITER, &data, None, None);
                    }
                    Submessage::Heartbeat(it) => self.reader.handle_heartbeat(self.now, WRITER, &it),
                    Submessage::Gap(gap) => self.reader.handle_gap(self.now, WRITER, &gap),
                    _ => {}
                }
            }
        }
        let mut out = Outbox::new();
        self.reader.poll_transmit(self.now, &mut out);
        let mut datagrams = Vec::new();
        out.for_each_datagram(|_, datagram| datagrams.push(datagram.to_vec()));
        for datagram in datagrams {
            if self.is_lost() {
                continue;
            }
            for submessage in Message::parse(&datagram).unwrap().submessages() {
                if let Submessage::AckNack(acknack) = submessage.unwrap() {
                    self.writer.handle_acknack(self.now, READER, &acknack);
                }
            }
        }
        let next = self.writer.next_timeout().into_iter().chain(self.reader.next_timeout()).min();
        self.now = next.map_or(self.now, |next| next.max(self.now)) + Duration::from_micros(100);
        self.writer.handle_timeout(self.now);
        self.reader.handle_timeout(self.now);
    }
}

fn reader_proxy() -> ReaderProxyConfig {
    reader(READER, true)
}

#[test]
fn a_filtered_reader_gets_what_passes_once_and_in_order_whatever_is_lost() {
    let passes = |x: &u32| (10..=20).contains(x) || *x > 90;
    for (seed, lost_percent, writer_filters) in
        (1..=20).flat_map(|seed| [(seed, 0, true), (seed, 10, true), (seed, 40, true), (seed, 20, false)])
    {
        let mut link = Link::new(seed, lost_percent, writer_filters);
        let mut written: Vec<u32> = (0..30).collect();
        for round in 0..40 {
            for x in 0..(round * 7 + seed) % 11 {
                let x = (round * 31 + x * 13 + seed) % 100;
                link.put(x);
                written.push(x);
            }
            link.step();
        }
        let last = link.writer.last_sequence_number();
        let mut steps = 0;
        while !link.writer.is_acknowledged(last) {
            link.step();
            steps += 1;
            assert!(steps < 2000, "seed {seed}, {lost_percent} %: {:?}", link.reader.counters());
        }
        let mut taken: Vec<u32> = Vec::new();
        while link.reader.take_next(|sample| taken.push(sample.payload[4].into())) {}
        let expected: Vec<u32> = written.iter().copied().filter(passes).collect();
        assert_eq!(taken, expected, "seed {seed}, {lost_percent} %");
        let counters = link.reader.counters();
        assert_eq!(counters.samples_lost, 0, "seed {seed}, {lost_percent} %");
        if writer_filters {
            assert_eq!(counters.samples_content_filtered, 0);
        }
        if (lost_percent, writer_filters) == (0, true) {
            assert_eq!(link.data_sent, expected.len());
        }
    }
}
