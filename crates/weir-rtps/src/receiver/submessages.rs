//! The walk over the submessages of a message: each is read in the light of those before it (RTPS 2.5, 8.3.4).
//!
//! Shared by user data and metatraffic.

use weir_wire::{
    Data, EntityId, Guid, GuidPrefix, InfoDestination, InfoSource, ParseError, Submessage, Submessages,
    Timestamp, UnreadSubmessage,
};

/// What takes in the submessages for this participant.
pub(crate) trait Sink {
    /// Takes in a sample.
    fn data(&mut self, writer: &Guid, data: &Data<'_>, timestamp: Option<Timestamp>);

    /// Takes in any other submessage of this sender, or a sample in a rare form.
    fn other(&mut self, source: GuidPrefix, submessage: &Submessage<'_>, timestamp: Option<Timestamp>);

    /// Notes who sent the submessages that follow.
    #[inline]
    fn source(&mut self, _info: &InfoSource) {}

    /// Notes for whom the submessages that follow are.
    #[inline]
    fn destination(&mut self, _info: &InfoDestination) {}
}

/// What a submessage changes for those that follow in its message.
enum Change {
    Nothing,
    /// When the samples were written.
    Timestamp(Option<Timestamp>),
    /// Who sent them. The timestamp was another sender's.
    Source(GuidPrefix),
    /// Whether they are for this participant.
    Destination {
        is_us: bool,
    },
}

/// Passes submessages to `sink` up to the first one that is malformed (RTPS 2.5, 8.3.4.1). `own`: this participant;
/// `source`, `timestamp`: what is known before the first one.
///
/// Always inlined, so that nothing of a sample is passed through memory.
#[inline(always)]
pub(crate) fn walk(
    mut submessages: Submessages<'_>,
    own: GuidPrefix,
    source: GuidPrefix,
    mut timestamp: Option<Timestamp>,
    sink: &mut impl Sink,
) -> Result<(), ParseError> {
    // The last one of the sender's writers is put together once: reading what was just written in pieces stalls.
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

/// What is known before a submessage.
struct Known {
    own: GuidPrefix,
    source: GuidPrefix,
    timestamp: Option<Timestamp>,
    is_for_us: bool,
}

/// Takes in a submessage other than DATA. Returns what it changes for those that follow.
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
