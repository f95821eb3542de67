//! Repairs to readers of a multicast group.

use super::*;
use crate::multicast::GroupRoute;
use crate::outbox::Destinations;
use crate::writer::group_repairs::RepairWay;

const GROUP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 255, 1, 1), 7401);
const NOW: u64 = 20_000_000;

fn guid(number: u8) -> Guid {
    Guid::new(GuidPrefix([2 + number; 12]), READER.entity)
}

fn address(number: u8) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2 + number), 7411)
}

/// Acknowledges what is before `base`, and requests the samples in `missing`, of ten.
fn answer(writer: &mut WriterCore, now: u64, number: u8, count: u32, base: i64, missing: &[i64]) {
    let mut state = SequenceNumberSet::new(SequenceNumber(base));
    missing.iter().for_each(|sn| _ = state.insert(SequenceNumber(*sn)));
    let acknack = AckNack { reader: READER.entity, writer: WRITER.entity, state, count, is_final: true };
    writer.handle_acknack(Time(now), guid(number), &acknack);
}

/// A writer that has sent ten samples to readers of a group, which are introduced. `interface`: that of each reader.
fn writer(interfaces: &[u8]) -> WriterCore {
    let mut writer = WriterCore::new(config(Reliability::Reliable));
    for (number, interface) in interfaces.iter().enumerate() {
        let number = number as u8;
        let group = Some(GroupRoute { group: GROUP, interface: Ipv4Addr::new(10, 0, 0, *interface) });
        let destinations: Destinations = Arc::from([address(number)]);
        writer.match_reader(Time(0), ReaderProxyConfig { group, destinations, ..reader(guid(number), true) });
    }
    sent(&mut writer, Time(0));
    (0..interfaces.len()).for_each(|number| answer(&mut writer, NOW / 2, number as u8, 1, 1, &[]));
    for _ in 0..10 {
        write(&mut writer, Time(NOW), &[0; 8]).unwrap();
    }
    sent(&mut writer, Time(NOW));
    writer
}

/// Where each sample is sent again, in order.
fn repairs(writer: &mut WriterCore, now: u64) -> Vec<(SocketAddrV4, i64)> {
    let mut out = Outbox::new();
    writer.poll_transmit(Time(now), &mut out);
    let mut found = Vec::new();
    out.for_each_datagram(|to, datagram| {
        let message = Message::parse(datagram).unwrap();
        for submessage in message.submessages() {
            if let Submessage::Data(data) = submessage.unwrap() {
                found.push((to[0], data.sequence_number.0));
            }
        }
    });
    found
}

#[test]
fn what_several_readers_request_together_goes_to_their_group_once() {
    let mut writer = writer(&[1, 1, 1]);
    (0..3).for_each(|number| answer(&mut writer, NOW + 1, number, 2, 3, &[3]));
    assert_eq!(repairs(&mut writer, NOW + 1), [(GROUP, 3)]);
    assert_eq!(writer.counters().repairs_multicast, 1);
}

#[test]
fn a_reader_that_has_lost_the_repair_to_its_group_gets_it_alone() {
    let mut writer = writer(&[1, 1]);
    (0..2).for_each(|number| answer(&mut writer, NOW + 1, number, 2, 3, &[3]));
    assert_eq!(repairs(&mut writer, NOW + 1), [(GROUP, 3)]);
    // The first reader has received a HEARTBEAT behind it, and misses it.
    answer(&mut writer, NOW + 300_000, 0, 3, 3, &[3]);
    assert_eq!(repairs(&mut writer, NOW + 300_000), [(address(0), 3)]);
}

#[test]
fn a_group_that_does_not_deliver_is_not_used_again_for_the_same_reader() {
    let mut writer = writer(&[1, 1]);
    let mut both = |now, count| {
        (0..2).for_each(|number| answer(&mut writer, now, number, count, 3, &[3]));
        repairs(&mut writer, now)
    };
    assert_eq!(both(NOW + 1, 2), [(GROUP, 3)]);
    // For the second reader, which has been sent nothing itself.
    assert_eq!(both(NOW + 300_000, 3), [(address(0), 3), (GROUP, 3)]);
    assert_eq!(both(NOW + 100_000_000, 4), [(address(0), 3), (address(1), 3)]);
}

#[test]
fn readers_behind_different_interfaces_have_nothing_in_common() {
    let mut writer = writer(&[1, 9]);
    (0..2).for_each(|number| answer(&mut writer, NOW + 1, number, 2, 3, &[3]));
    assert_eq!(repairs(&mut writer, NOW + 1), [(address(0), 3), (address(1), 3)]);
}

#[test]
fn a_repair_that_finds_no_room_does_not_count_as_sent() {
    let mut writer = writer(&[1, 1]);
    let (way, sn) = (writer.repair_way(Time(NOW + 1), 0, SequenceNumber(3)), SequenceNumber(3));
    assert_eq!((way, writer.repair_way(Time(NOW + 1), 1, sn)), (RepairWay::Alone, RepairWay::Alone));
    writer.note_group_repair(Time(NOW + 1), 0, sn, &RepairWay::Alone);
    assert!(matches!(writer.repair_way(Time(NOW + 2), 1, sn), RepairWay::Group(_)));
}
