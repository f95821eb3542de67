//! Assertion of liveliness without a sample (RTPS 2.5, 8.3.8.6, 8.4.13).

use weir_wire::{Heartbeat, InfoDestination, push};

use super::compose;
use super::state::WriterCore;
use crate::outbox::Outbox;
use crate::time::Time;

impl WriterCore {
    /// Appends everything committed, then a HEARTBEAT with the liveliness flag for every matched
    /// reader.
    ///
    /// Best-effort readers receive it as well. It requests no response.
    pub fn assert_liveliness(&mut self, now: Time, out: &mut Outbox) {
        self.flush(now, out);
        let header = compose::header(&self.config);
        for proxy in &self.proxies {
            let first = proxy.announced_from(self.history.first());
            let sent = proxy.sent_end(self.unsent).prev();
            self.heartbeat.count = self.heartbeat.count.wrapping_add(1);
            self.counters.heartbeats_sent += 1;
            let heartbeat = Heartbeat {
                reader: proxy.guid.entity,
                writer: self.config.guid.entity,
                first,
                last: if proxy.is_introduced { sent.max(first.prev()) } else { first.prev() },
                count: self.heartbeat.count,
                is_final: true,
                is_liveliness: true,
            };
            out.message(&proxy.destinations, |message| {
                push(message, &header);
                push(message, &InfoDestination { prefix: proxy.guid.prefix });
                push(message, &heartbeat);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;
    use core::net::{Ipv4Addr, SocketAddrV4};

    use weir_wire::{EntityId, Guid, GuidPrefix, Message, SequenceNumber, Submessage, Timestamp, VendorId};

    use super::*;
    use crate::qos::Reliability;
    use crate::writer::{Change, ChangeKind, ReaderProxyConfig, WriterConfig};

    const WRITER: Guid = Guid::new(GuidPrefix([1; 12]), EntityId::user_writer(1, false));

    #[test]
    fn every_reader_gets_a_heartbeat_that_asks_for_nothing() {
        let mut writer = WriterCore::new(WriterConfig::new(WRITER, Reliability::Reliable));
        for (number, reliable) in [(2, true), (3, false)] {
            let guid = Guid::new(GuidPrefix([number; 12]), EntityId::user_reader(1, false));
            let destinations = Arc::from([SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7411 + u16::from(number))]);
            let (vendor, receive_buffer) = (VendorId::WEIR, None);
            let wants_history = true;
            writer.match_reader(
                Time(0),
                ReaderProxyConfig {
                    guid,
                    reliable,
                    wants_history,
                    destinations,
                    group: None,
                    vendor,
                    receive_buffer,
                    segment_max: u16::MAX,
                    path: None,
                },
            );
        }
        let change = Change { kind: ChangeKind::Alive, key: None, payload: &[0; 8] };
        writer.write_change(Time(1), Some(Timestamp::from_unix_nanos(0)), change).unwrap();
        let mut out = Outbox::new();
        writer.poll_transmit(Time(1), &mut out);
        out.clear();
        writer.assert_liveliness(Time(2), &mut out);
        let mut announced = Vec::new();
        out.for_each_datagram(|to, datagram| {
            for submessage in Message::parse(datagram).unwrap().submessages().map(Result::unwrap) {
                if let Submessage::Heartbeat(heartbeat) = submessage {
                    assert!(heartbeat.is_final && heartbeat.is_liveliness);
                    assert_eq!(heartbeat.last, SequenceNumber(1));
                    announced.push(to[0].port());
                }
            }
        });
        assert_eq!(announced, [7413, 7414]);
    }
}
