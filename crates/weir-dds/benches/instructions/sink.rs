//! A reader that receives as the engine does, without locks and sockets.

use core::net::{Ipv4Addr, SocketAddrV4};
use std::cell::{RefCell, RefMut};
use std::sync::Arc;
use std::time::Duration;

use weir_cdr::DdsType;
use weir_rtps::outbox::Outbox;
use weir_rtps::qos::{History, Reliability};
use weir_rtps::reader::{ReaderConfig, ReaderCore, WriterProxyConfig};
use weir_rtps::receiver::batch::Batch;
use weir_rtps::receiver::prediction::Prediction;
use weir_rtps::receiver::{Endpoints, Incoming, receive_many, receive_single};
use weir_rtps::time::Time;
use weir_rtps::writer::WriterCore;
use weir_wire::{EntityId, Guid, GuidPrefix, VendorId};

use crate::cores::{READER, WRITER, key_hash};
use crate::policies::Policy;

type Handle = Arc<RefCell<ReaderCore>>;

/// A reader with one matched writer, and its responses.
pub(crate) struct Sink {
    reader: Only,
    batch: Batch<Handle, Handle>,
    prediction: Option<Prediction<Handle>>,
    outbox: Outbox,
    now: Time,
}

impl Sink {
    pub(crate) fn new(history: History, reliability: Reliability) -> Self {
        Self::with(history, reliability, Policy::None)
    }

    pub(crate) fn with(history: History, reliability: Reliability, policy: Policy) -> Self {
        let mut core = ReaderCore::new(policy.of_reader(ReaderConfig {
            history,
            key_of: Some(|payload, _| Some(key_hash(u32::from_be_bytes(*payload.get(4..)?.first_chunk()?)))),
            key_payload_of: Some(|payload, _| payload.get(..8).map(Box::from)),
            max_bytes: usize::MAX,
            ..ReaderConfig::new(READER, reliability)
        }));
        let destinations = Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7410)]);
        let reliable = reliability == Reliability::Reliable;
        core.match_writer(
            Time(1),
            WriterProxyConfig { guid: WRITER, reliable, destinations, vendor: VendorId::WEIR },
        );
        core.set_writer_policies(WRITER, policy.announced());
        #[expect(clippy::arc_with_non_send_sync, reason = "references are counted as in the engine")]
        let reader = Only([Arc::new(RefCell::new(core))]);
        Self {
            reader,
            batch: Batch::default(),
            prediction: None,
            outbox: Outbox::new(),
            now: Time(1_000_000),
        }
    }

    /// Matches writers that send nothing.
    pub(crate) fn match_silent_writers(&mut self, count: u32) {
        let mut core = self.reader.0[0].borrow_mut();
        for number in 0..count {
            let mut prefix = [3; 12];
            prefix[..4].copy_from_slice(&number.to_be_bytes());
            let guid = Guid::new(GuidPrefix(prefix), WRITER.entity);
            let destinations = Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7413)]);
            let writer = WriterProxyConfig { guid, reliable: true, destinations, vendor: VendorId::WEIR };
            core.match_writer(Time(1), writer);
        }
        // Their first requests.
        core.poll_transmit(Time(1), &mut self.outbox);
        self.outbox.clear();
    }

    /// Processes datagrams as the engine's driver does after a receive call.
    pub(crate) fn receive(&mut self, datagrams: &[Vec<u8>]) {
        self.now = self.now + Duration::from_micros(1);
        let Self { reader, batch, prediction, outbox, now } = self;
        let (prefix, before) = (READER.prefix, prediction.as_ref());
        let incoming = Incoming { endpoints: &*reader, prediction: before, prefix, now: *now };
        if let [datagram] = datagrams {
            receive_single(incoming, datagram, None, batch, outbox);
        } else {
            receive_many(incoming, datagrams.iter().map(Vec::as_slice), None, batch, outbox);
        }
        if batch.may_change_prediction()
            && let Some(next) = batch.next_prediction(before, 0)
        {
            *prediction = Some(next);
        }
        if batch.take_predicted().is_none() {
            batch.clear_readers();
        }
        outbox.clear();
    }

    /// Takes everything that has arrived. Returns the number of samples.
    pub(crate) fn take<T: DdsType>(&mut self, value: &mut T) -> u32 {
        let [core] = &self.reader.0;
        let (mut core, mut taken) = (core.borrow_mut(), 0);
        while core.take_next(|raw| weir_cdr::from_payload_into(raw.payload, value).unwrap()) {
            taken += 1;
        }
        taken
    }
}

/// [`Sink::take`] if policies decide which samples are there, as the engine does it.
pub(crate) fn take_by_policies<T: DdsType>(sink: &mut Sink, value: &mut T) -> u32 {
    let [core] = &sink.reader.0;
    let (mut core, mut taken) = (core.borrow_mut(), 0);
    assert!(core.has_policies());
    loop {
        if core.has_access_order() {
            unreachable!("there is no PRESENTATION");
        }
        if core.has_expiring() {
            core.expire(sink.now);
        }
        if !core.take_next(|raw| weir_cdr::from_payload_into(raw.payload, value).unwrap()) {
            return taken;
        }
        taken += 1;
    }
}

/// The only endpoint.
struct Only([Handle; 1]);

impl Endpoints for Only {
    type Reader = Handle;
    /// Never used.
    type Writer = Handle;
    type Locked<'a> = RefMut<'a, ReaderCore>;

    fn readers_of(&self, writer: &Guid) -> Option<&[Handle]> {
        (*writer == WRITER).then_some(&self.0)
    }

    fn readers(&self) -> impl Iterator<Item = &Handle> {
        self.0.iter()
    }

    fn writer(&self, _entity: EntityId) -> Option<&Handle> {
        None
    }

    fn entity(_reader: &Handle) -> EntityId {
        READER.entity
    }

    fn lock<'a>(&'a self, reader: &'a Handle) -> RefMut<'a, ReaderCore> {
        reader.borrow_mut()
    }

    fn with_writer<T>(&self, _writer: &Handle, _f: impl FnOnce(&mut WriterCore) -> T) -> T {
        unreachable!("there is no writer")
    }
}
