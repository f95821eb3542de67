//! The walk over the submessages of a message, each interpreted in the context of those before it
//! (RTPS 2.5, 8.3.4). Shared by user data and metatraffic.

use alloc::sync::Arc;

use weir_wire::{
    AckNack, Data, Echo, Ecn, EntityId, Guid, GuidPrefix, InfoDestination, InfoSource, NackFrag, ParseError,
    Receipt, Submessage, Submessages, Timestamp, UnreadSubmessage,
};

use crate::block::Block;
use crate::reader::ReaderCore;
use crate::receiver::Arrival;
use crate::time::Time;
use crate::writer::WriterCore;

/// Handles the submessages for this participant.
pub(crate) trait Sink {
    /// Handles a sample.
    fn data(&mut self, writer: &Guid, data: &Data<'_>, timestamp: Option<Timestamp>);

    /// Handles any other submessage of this sender, or a sample in a rare form.
    fn other(&mut self, source: GuidPrefix, submessage: &Submessage<'_>, timestamp: Option<Timestamp>);

    /// Handles INFO_SRC: the sender of the submessages that follow.
    #[inline]
    fn source(&mut self, _info: &InfoSource) {}

    /// Handles INFO_DST: the receiver of the submessages that follow.
    #[inline]
    fn destination(&mut self, _info: &InfoDestination) {}
}

/// How a submessage changes the context of those behind it.
enum Change {
    Nothing,
    /// The source timestamp of samples.
    Timestamp(Option<Timestamp>),
    /// The sender. It invalidates the timestamp.
    Source(GuidPrefix),
    /// Whether they are for this participant.
    Destination {
        is_us: bool,
    },
}

/// Passes submessages to `sink` up to the first one that is malformed (RTPS 2.5, 8.3.4.1). `own`:
/// this participant. `source`, `timestamp`: the context of the first submessage.
///
/// Always inlined, like [`ReaderCore::handle_data`](crate::reader::ReaderCore::handle_data).
#[inline(always)]
pub(crate) fn walk(
    mut submessages: Submessages<'_>,
    own: GuidPrefix,
    source: GuidPrefix,
    mut timestamp: Option<Timestamp>,
    sink: &mut impl Sink,
) -> Result<(), ParseError> {
    // The GUID is updated rather than built per sample: reading it right after writing it in parts
    // would stall.
    let mut is_for_us = true;
    let mut writer = Guid::new(source, EntityId::UNKNOWN);
    loop {
        if let Some((written_at, data)) = submessages.next_stamped_data() {
            timestamp = Some(written_at);
            if writer.entity != data.writer {
                writer.entity = data.writer;
            }
            if is_for_us {
                sink.data(&writer, &data, Some(written_at));
            }
            continue;
        }
        let Some(submessage) = submessages.next_unread() else { return Ok(()) };
        let submessage = submessage?;
        if let Some(data) = submessage.data() {
            let data = data?;
            if writer.entity != data.writer {
                writer.entity = data.writer;
            }
            if is_for_us {
                sink.data(&writer, &data, timestamp);
            }
            continue;
        }
        let context = Context { own, source: writer.prefix, timestamp, is_for_us };
        match other_submessage(submessage, context, sink)? {
            Change::Nothing => {}
            Change::Timestamp(at) => timestamp = at,
            Change::Source(source) => (writer.prefix, timestamp) = (source, None),
            Change::Destination { is_us } => is_for_us = is_us,
        }
    }
}

/// The context of a submessage.
struct Context {
    own: GuidPrefix,
    source: GuidPrefix,
    timestamp: Option<Timestamp>,
    is_for_us: bool,
}

/// Handles a submessage other than DATA. Returns how it changes the context.
#[inline(never)]
fn other_submessage(
    submessage: UnreadSubmessage<'_>,
    Context { own, source, timestamp, is_for_us }: Context,
    sink: &mut impl Sink,
) -> Result<Change, ParseError> {
    let submessage = submessage.read()?;
    match &submessage {
        Submessage::InfoTimestamp(info) => return Ok(Change::Timestamp(info.timestamp)),
        Submessage::InfoSource(info) => {
            sink.source(info);
            return Ok(Change::Source(info.prefix));
        }
        Submessage::InfoDestination(info) => {
            sink.destination(info);
            return Ok(Change::Destination { is_us: [own, GuidPrefix::UNKNOWN].contains(&info.prefix) });
        }
        _ if is_for_us => sink.other(source, &submessage, timestamp),
        _ => {}
    }
    Ok(Change::Nothing)
}

/// The endpoints that a submessage is for.
pub(crate) enum Addressee {
    /// Readers matched with `writer`: only `reader`, unless that is unknown.
    Readers { writer: Guid, reader: EntityId },
    /// The writer that `reader` answers.
    Writer { writer: EntityId, reader: Guid },
}

/// The endpoints that a submessage is for, if it is for any. `source`: its sender.
#[inline]
pub(crate) fn addressee(source: GuidPrefix, submessage: &Submessage<'_>) -> Option<Addressee> {
    let (writer, reader) = match submessage {
        Submessage::Data(it) => (it.writer, it.reader),
        Submessage::DataFrag(it) => (it.writer, it.reader),
        Submessage::Heartbeat(it) => (it.writer, it.reader),
        Submessage::HeartbeatFrag(it) => (it.writer, it.reader),
        Submessage::Gap(it) => (it.writer, it.reader),
        Submessage::Ecn(it @ Ecn { counts: None, .. }) => (it.writer, it.reader),
        Submessage::Receipt(it @ Receipt { received: None, .. }) => (it.writer, it.reader),
        Submessage::Ecn(Ecn { reader, writer, .. }) | Submessage::Receipt(Receipt { reader, writer, .. }) => {
            return Some(Addressee::Writer { writer: *writer, reader: Guid::new(source, *reader) });
        }
        Submessage::AckNack(AckNack { writer, reader, .. })
        | Submessage::Echo(Echo { writer, reader, .. })
        | Submessage::NackFrag(NackFrag { writer, reader, .. }) => {
            return Some(Addressee::Writer { writer: *writer, reader: Guid::new(source, *reader) });
        }
        _ => return None,
    };
    Some(Addressee::Readers { writer: Guid::new(source, writer), reader })
}

/// When a submessage is handled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) now: Time,
    /// Known for the few submessages that measure a path in best effort.
    pub(crate) arrival: Option<Arrival>,
}

impl Moment {
    /// Nothing is known about the arrival.
    pub(crate) fn at(now: Time) -> Self {
        Self { now, arrival: None }
    }

    /// When the datagram reached the host, as far as is known.
    pub(crate) fn arrived(&self) -> Time {
        self.arrival.map_or(self.now, |it| it.at)
    }
}

/// Passes a submessage from `writer` to a reader.
#[inline]
pub(crate) fn to_reader(
    core: &mut ReaderCore,
    moment: Moment,
    writer: Guid,
    submessage: &Submessage<'_>,
    timestamp: Option<Timestamp>,
    block: Option<&Arc<Block>>,
) {
    let now = moment.now;
    match submessage {
        Submessage::Data(data) => core.handle_data(now, &writer, data, timestamp, block),
        Submessage::DataFrag(frag) => core.handle_data_frag(now, writer, frag, timestamp),
        Submessage::Heartbeat(heartbeat) => core.handle_heartbeat(now, writer, heartbeat),
        Submessage::HeartbeatFrag(heartbeat) => core.handle_heartbeat_frag(now, writer, heartbeat),
        Submessage::Gap(gap) => core.handle_gap(now, writer, gap),
        Submessage::Ecn(_) => core.handle_ecn(writer),
        Submessage::Receipt(Receipt { number, .. }) => core.handle_receipt(moment, writer, *number),
        _ => {}
    }
}

/// Passes a submessage from `reader` to a writer.
#[inline]
pub(crate) fn to_writer(core: &mut WriterCore, moment: Moment, reader: Guid, submessage: &Submessage<'_>) {
    let now = moment.now;
    match submessage {
        Submessage::AckNack(acknack) => core.handle_acknack(now, reader, acknack),
        Submessage::NackFrag(nack) => core.handle_nack_frag(now, reader, nack),
        Submessage::Echo(echo) => core.handle_echo(now, reader, echo),
        Submessage::Ecn(Ecn { counts: Some(counts), .. }) => core.handle_ecn(now, reader, *counts),
        Submessage::Receipt(Receipt { number, received: Some(received), .. }) => {
            core.handle_receipt(moment, reader, *number, *received);
        }
        _ => {}
    }
}
