//! A writer and its readers connected by function calls, which may lose datagrams and allocate
//! nothing.

use core::time::Duration;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use weir_rtps::outbox::Outbox;
use weir_rtps::qos::{History, Reliability};
use weir_rtps::reader::{ReaderConfig, ReaderCore, WriterProxyConfig};
use weir_rtps::receiver::unlocked::{Cores, UnlockedReceiver};
use weir_rtps::time::Time;
use weir_rtps::writer::{ReaderProxyConfig, Stamp, WriteRefused, WriterConfig, WriterCore};
use weir_wire::{EntityId, Guid, GuidPrefix, Timestamp, VendorId};

/// The parameters of an exchange.
pub(crate) struct Setup {
    pub(crate) writer: WriterConfig,
    pub(crate) reader: ReaderConfig,
    pub(crate) readers: usize,
    /// 0: the topic has no key.
    pub(crate) instances: u64,
    /// Bytes of a payload.
    pub(crate) len: usize,
    /// One in this many datagrams to a reader is lost.
    pub(crate) loses_every: Option<u64>,
}

pub(crate) struct Line {
    now: Time,
    setup: Setup,
    pub(crate) writer: WriterCore,
    pub(crate) readers: Vec<ReaderCore>,
    /// That of the writer, then those of the readers.
    receivers: Vec<UnlockedReceiver>,
    out: Outbox,
    /// Responses since `out` was filled.
    answers: Outbox,
    datagram: Vec<u8>,
    sent: u64,
    written: u64,
    taken: u64,
}

fn key_of(payload: &[u8], _is_key: bool) -> Option<[u8; 16]> {
    let mut key = [0; 16];
    key[..8].copy_from_slice(payload.get(4..12)?);
    Some(key)
}

fn address(host: usize) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, host as u8 + 1), 7411)
}

impl Line {
    pub(crate) fn new(change: impl FnOnce(&mut Setup)) -> Self {
        let guid = |host: u8, entity| Guid::new(GuidPrefix([host + 1; 12]), entity);
        let mut setup = Setup {
            writer: WriterConfig::new(guid(0, EntityId::user_writer(1, true)), Reliability::Reliable),
            reader: ReaderConfig::new(guid(1, EntityId::user_reader(1, true)), Reliability::Reliable),
            readers: 1,
            instances: 0,
            len: 100,
            loses_every: None,
        };
        (setup.writer.history, setup.reader.history) = (History::KeepAll, History::KeepAll);
        change(&mut setup);
        let now = Time(1_000_000_000);
        let is_keyed = setup.instances > 0;
        setup.writer.guid.entity = EntityId::user_writer(1, is_keyed);
        setup.reader.key_of = is_keyed.then_some(key_of);
        let mut writer = WriterCore::new(setup.writer.clone());
        let mut readers = Vec::new();
        for index in 0..setup.readers {
            let mut config = setup.reader.clone();
            config.guid = guid(index as u8 + 1, EntityId::user_reader(1, is_keyed));
            writer.match_reader(
                now,
                ReaderProxyConfig {
                    guid: config.guid,
                    reliable: true,
                    wants_history: false,
                    destinations: Arc::from([address(index + 1)]),
                    vendor: VendorId::WEIR,
                    receive_buffer: Some(1 << 20),
                    segment_max: 8_000,
                    path: None,
                    group: None,
                },
            );
            let mut reader = ReaderCore::new(config);
            let (guid, destinations) = (setup.writer.guid, Arc::from([address(0)]));
            let proxy = WriterProxyConfig { guid, reliable: true, destinations, vendor: VendorId::WEIR };
            reader.match_writer(now, proxy);
            readers.push(reader);
        }
        Self {
            now,
            writer,
            receivers: (0..=readers.len()).map(|_| UnlockedReceiver::default()).collect(),
            readers,
            setup,
            out: Outbox::new(),
            answers: Outbox::new(),
            datagram: Vec::with_capacity(1 << 16),
            sent: 0,
            written: 0,
            taken: 0,
        }
    }

    /// Writes samples and lets all readers take them.
    pub(crate) fn exchange(&mut self, samples: u64) {
        let end = self.written + samples;
        while self.written < end {
            if !self.write() {
                self.pass();
            }
            self.send();
        }
        while !self.writer.is_acknowledged(self.writer.last_sequence_number()) {
            self.pass();
            self.send();
        }
        assert_eq!(self.taken, self.written * self.readers.len() as u64, "everything arrives");
        let mut counters = self.receivers.iter().map(UnlockedReceiver::counters);
        assert!(
            counters.all(|counters| counters.malformed + counters.ignored == 0),
            "everything has a meaning"
        );
    }

    fn write(&mut self) -> bool {
        let instance = self.written % self.setup.instances.max(1);
        let mut key = [0; 16];
        key[..8].copy_from_slice(&instance.to_le_bytes());
        self.now = self.now + Duration::from_nanos(if self.written.is_multiple_of(64) { 5_000 } else { 100 });
        let key = (self.setup.instances > 0).then_some(key);
        let fill = |payload: &mut [u8]| {
            payload[..4].copy_from_slice(&[0, 1, 0, 0]);
            payload[4..12].copy_from_slice(&instance.to_le_bytes());
            Ok::<(), WriteRefused>(())
        };
        if self.writer.extend_batch(self.setup.len, key, fill).unwrap().is_some() {
            self.written += 1;
            return true;
        }
        let stamp = Stamp { timestamp: Timestamp { seconds: 1, fraction: 0 }, key };
        match self.writer.write(self.now, stamp, self.setup.len, fill).unwrap() {
            Ok(_) => {
                self.written += 1;
                true
            }
            Err(WriteRefused::WindowFull) => false,
            Err(refused) => panic!("{refused}"),
        }
    }

    /// Advances to the next timeout.
    fn pass(&mut self) {
        let readers = self.readers.iter().filter_map(ReaderCore::next_timeout);
        let next = self.writer.next_timeout().into_iter().chain(readers).min();
        self.now = self.now.max(next.unwrap_or(self.now)).plus_nanos(1_000);
        let is_due = |at: Option<Time>| at.is_some_and(|at| at <= self.now);
        if is_due(self.writer.next_timeout()) {
            self.writer.handle_timeout(self.now);
        }
        for reader in self.readers.iter_mut().filter(|reader| is_due(reader.next_timeout())) {
            reader.handle_timeout(self.now);
        }
    }

    /// Delivers all output until there is no more.
    fn send(&mut self) {
        loop {
            let mut out = core::mem::take(&mut self.out);
            out.clear();
            core::mem::swap(&mut out, &mut self.answers);
            self.writer.poll_transmit(self.now, &mut out);
            self.readers.iter_mut().for_each(|reader| reader.poll_transmit(self.now, &mut out));
            let is_quiet = out.is_empty();
            self.carry(&out);
            self.take();
            self.out = out;
            if is_quiet {
                break;
            }
        }
    }

    fn carry(&mut self, out: &Outbox) {
        let mut datagram = core::mem::take(&mut self.datagram);
        for item in &out.items {
            let (head, tail) = out.parts(item);
            let len = head.len() + tail.len();
            let segment = if item.segment == 0 { len } else { usize::from(item.segment) };
            for start in (0..len).step_by(segment) {
                datagram.clear();
                let bytes = head.iter().chain(tail).skip(start).take(segment);
                datagram.extend(bytes);
                item.to.iter().for_each(|to| self.deliver(*to, &datagram));
            }
        }
        self.datagram = datagram;
    }

    fn deliver(&mut self, to: SocketAddrV4, datagram: &[u8]) {
        let host = usize::from(to.ip().octets()[3]) - 1;
        self.sent += 1;
        if host > 0 && self.setup.loses_every.is_some_and(|every| self.sent.is_multiple_of(every)) {
            return;
        }
        let prefix = GuidPrefix([host as u8 + 1; 12]);
        let (mut writer, mut reader) = match host.checked_sub(1) {
            None => (Some(&mut self.writer), None),
            Some(index) => (None, self.readers.get_mut(index)),
        };
        let (writers, readers) = (writer.as_mut_slice(), reader.as_mut_slice());
        let cores = Cores { prefix, writers, readers };
        self.receivers[host].receive(self.now, cores, [datagram], &mut self.answers);
    }

    fn take(&mut self) {
        for reader in &mut self.readers {
            while reader.take_next(|_| {}) {
                self.taken += 1;
            }
        }
    }
}
