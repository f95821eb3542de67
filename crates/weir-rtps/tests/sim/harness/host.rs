//! A datagram on its way into the cores, as every receiver of RTPS does it (RTPS 2.5 §8.3.4).

use weir_rtps::reader::ReaderCore;
use weir_rtps::time::Time;
use weir_rtps::writer::WriterCore;
use weir_wire::{EntityId, Guid, GuidPrefix, Message, Submessage};

/// The cores of one host.
pub(crate) struct Receiver<'a> {
    pub(crate) now: Time,
    pub(crate) prefix: GuidPrefix,
    pub(crate) writer: Option<(EntityId, &'a mut WriterCore)>,
    pub(crate) reader: Option<(EntityId, &'a mut ReaderCore)>,
}

/// Hands the submessages of a datagram to the cores that they are for. Bad input ends there.
pub(crate) fn dispatch(datagram: &[u8], host: &mut Receiver<'_>) {
    let Ok(message) = Message::parse(datagram) else { return };
    let mut source = message.header.prefix;
    let (mut is_for_us, mut timestamp) = (true, None);
    for submessage in message.submessages().map_while(Result::ok) {
        match submessage {
            Submessage::InfoDestination(info) => {
                is_for_us = info.prefix == host.prefix || info.prefix == GuidPrefix::UNKNOWN;
            }
            Submessage::InfoTimestamp(info) => timestamp = info.timestamp,
            Submessage::InfoSource(info) => source = info.prefix,
            _ if !is_for_us => {}
            Submessage::Data(data) => {
                if let Some(reader) = host.reader_for(data.reader) {
                    reader.0.handle_data(reader.1, Guid::new(source, data.writer), &data, timestamp);
                }
            }
            Submessage::DataFrag(frag) => {
                if let Some(reader) = host.reader_for(frag.reader) {
                    reader.0.handle_data_frag(reader.1, Guid::new(source, frag.writer), &frag, timestamp);
                }
            }
            Submessage::HeartbeatFrag(heartbeat) => {
                if let Some(reader) = host.reader_for(heartbeat.reader) {
                    reader.0.handle_heartbeat_frag(reader.1, Guid::new(source, heartbeat.writer), &heartbeat);
                }
            }
            Submessage::NackFrag(nack) => {
                let now = host.now;
                if let Some((entity, core)) = &mut host.writer
                    && *entity == nack.writer
                {
                    core.handle_nack_frag(now, Guid::new(source, nack.reader), &nack);
                }
            }
            Submessage::Heartbeat(heartbeat) => {
                if let Some(reader) = host.reader_for(heartbeat.reader) {
                    reader.0.handle_heartbeat(reader.1, Guid::new(source, heartbeat.writer), &heartbeat);
                }
            }
            Submessage::Gap(gap) => {
                if let Some(reader) = host.reader_for(gap.reader) {
                    reader.0.handle_gap(reader.1, Guid::new(source, gap.writer), &gap);
                }
            }
            Submessage::AckNack(acknack) => {
                let now = host.now;
                if let Some((entity, core)) = &mut host.writer
                    && *entity == acknack.writer
                {
                    core.handle_acknack(now, Guid::new(source, acknack.reader), &acknack);
                }
            }
            _ => {}
        }
    }
}

impl Receiver<'_> {
    fn reader_for(&mut self, entity: EntityId) -> Option<(&mut ReaderCore, Time)> {
        let (ours, core) = self.reader.as_mut()?;
        (entity == EntityId::UNKNOWN || entity == *ours).then_some((&mut **core, self.now))
    }
}
