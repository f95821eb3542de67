//! Iterates over the submessages of a message, each interpreted by those before it (RTPS 2.5,
//! 8.3.4).
//!
//! Shared by user data and metatraffic.

use weir_wire::{
    Data, EntityId, Guid, GuidPrefix, InfoDestination, InfoSource, ParseError, Submessage, Submessages,
    Timestamp, UnreadSubmessage,
};

/// Processes the submessages for this participant.
pub(crate) trait Sink {
    /// Processes a sample.
    fn data(&mut self, writer: &Guid, data: &Data<'_>, timestamp: Option<Timestamp>);

    /// Processes any other submessage of this sender, or a sample in a rare form.
    fn other(&mut self, source: GuidPrefix, submessage: &Submessage<'_>, timestamp: Option<Timestamp>);

    /// Notes the source of the submessages that follow.
    #[inline]
    fn source(&mut self, _info: &InfoSource) {}

    /// Notes the destination of the submessages that follow.
    #[inline]
    fn destination(&mut self, _info: &InfoDestination) {}
}

/// The effect of a submessage on those that follow in its message.
enum Change {
    Nothing,
    /// The source timestamp.
    Timestamp(Option<Timestamp>),
    /// The source. The timestamp was another sender's.
    Source(GuidPrefix),
    /// Whether they are for this participant.
    Destination {
        is_us: bool,
    },
}

/// Passes submessages to `sink` up to the first malformed one (RTPS 2.5, 8.3.4.1). `own`: this
/// participant; `source`, `timestamp`: the state before the first one.
///
/// Always inlined, so that nothing of a sample passes through memory.
#[inline(always)]
pub(crate) fn walk(
    mut submessages: Submessages<'_>,
    own: GuidPrefix,
    source: GuidPrefix,
    mut timestamp: Option<Timestamp>,
    sink: &mut impl Sink,
) -> Result<(), ParseError> {
    // The GUID of the sender's last writer is assembled once: assembling it for each submessage
    // would cause a store-forwarding stall.
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
        let known = Known { own, source: writer.prefix, timestamp, is_for_us };
        match other_submessage(submessage, known, sink)? {
            Change::Nothing => {}
            Change::Timestamp(at) => timestamp = at,
            Change::Source(source) => (writer.prefix, timestamp) = (source, None),
            Change::Destination { is_us } => is_for_us = is_us,
        }
    }
}

/// The state before a submessage.
struct Known {
    own: GuidPrefix,
    source: GuidPrefix,
    timestamp: Option<Timestamp>,
    is_for_us: bool,
}

/// Processes a submessage other than DATA. Returns its effect on those that follow.
#[inline(never)]
fn other_submessage(
    submessage: UnreadSubmessage<'_>,
    Known { own, source, timestamp, is_for_us }: Known,
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
