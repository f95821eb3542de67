//! Inline QoS for readers that expect it.

use weir_wire::{ParameterId, Payload};

use super::*;
use crate::qos::{Ownership, Qos};
use crate::writer::inline_qos_of;

/// Returns the parameters of each sample sent now, and its payload or that of its fragment.
fn samples(writer: &mut WriterCore, now: Time) -> Vec<(Vec<ParameterId>, Vec<u8>)> {
    let mut out = Outbox::new();
    writer.poll_transmit(now, &mut out);
    let mut samples = Vec::new();
    out.for_each_datagram(|_, datagram| {
        for submessage in Message::parse(datagram).unwrap().submessages() {
            let (list, payload) = match submessage.unwrap() {
                Submessage::Data(data) => match data.payload {
                    Payload::Data(bytes) | Payload::Key(bytes) => (data.inline_qos, bytes),
                    Payload::None => (data.inline_qos, &[][..]),
                },
                Submessage::DataFrag(frag) => (frag.inline_qos, frag.payload),
                _ => continue,
            };
            let ids = list.iter().flat_map(|list| list.iter()).map(|parameter| parameter.unwrap().id);
            samples.push((ids.collect(), payload.to_vec()));
        }
    });
    samples
}

fn expecting(config: WriterConfig) -> WriterCore {
    let mut writer = WriterCore::new(config);
    writer.match_reader(Time(0), reader(READER, true));
    let qos = Qos { ownership: Ownership::Exclusive, ownership_strength: 3, ..Qos::for_writer() };
    writer.set_inline_qos(Some(inline_qos_of("Square", &qos)));
    writer
}

const POLICIES: [ParameterId; 5] = [
    ParameterId::TOPIC_NAME,
    ParameterId::RELIABILITY,
    ParameterId::DURABILITY,
    ParameterId::OWNERSHIP,
    ParameterId::OWNERSHIP_STRENGTH,
];

#[test]
fn samples_and_repairs_have_the_policies_of_the_writer_until_no_reader_expects_them() {
    let mut writer = expecting(config(Reliability::Reliable));
    write(&mut writer, Time(0), b"\0\x01\0\0abcd").unwrap();
    let expected = vec![(POLICIES.to_vec(), b"\0\x01\0\0abcd".to_vec())];
    assert_eq!(samples(&mut writer, Time(1)), expected);
    acknack(&mut writer, 1, 1, &[1]);
    assert_eq!(samples(&mut writer, Time(2)), expected, "the repair");
    writer.set_inline_qos(None);
    write(&mut writer, Time(3), b"\0\x01\0\0efgh").unwrap();
    assert_eq!(samples(&mut writer, Time(3)), [(Vec::new(), b"\0\x01\0\0efgh".to_vec())]);
}

#[test]
fn the_end_of_an_instance_has_the_policies_and_its_status() {
    let mut writer = expecting(config(Reliability::Reliable));
    let change = Change { kind: ChangeKind::Disposed, key: Some([7; 16]), payload: b"\0\x01\0\0key." };
    writer.write_change(Time(0), Some(STAMP.timestamp), change).unwrap();
    let ids = [&POLICIES[..], &[ParameterId::KEY_HASH, ParameterId::STATUS_INFO]].concat();
    assert_eq!(samples(&mut writer, Time(1)), [(ids, b"\0\x01\0\0key.".to_vec())]);
}

#[test]
fn of_a_large_sample_the_first_fragment_has_the_policies() {
    let mut writer = expecting(config(Reliability::Reliable));
    let payload: Vec<u8> = (0..200_000_u32).map(|n| n as u8).collect();
    write(&mut writer, Time(0), &payload).unwrap();
    let fragments: Vec<_> = (1..9).flat_map(|now| samples(&mut writer, Time(now))).collect();
    assert_eq!(fragments[0].0, POLICIES);
    assert!(fragments[1..].iter().all(|(ids, _)| ids.is_empty()));
    let sent: Vec<u8> = fragments.into_iter().flat_map(|(_, payload)| payload).collect();
    assert_eq!(sent, payload[..sent.len()]);
}

#[test]
fn samples_of_one_message_and_of_one_send_have_them_each() {
    let batch = BatchPolicy { max_bytes: 1_000, max_samples: 10, max_delay: Duration::from_secs(1) };
    let mut writer = expecting(WriterConfig { batch: Some(batch), ..config(Reliability::Reliable) });
    for text in [b"\0\x01\0\0one.", b"\0\x01\0\0two."] {
        write(&mut writer, Time(0), text).unwrap();
    }
    writer.flush(Time(0), &mut Outbox::new());
    acknack(&mut writer, 1, 1, &[1, 2]);
    let repaired = samples(&mut writer, Time(1));
    assert!(repaired.len() >= 2 && repaired.iter().all(|(ids, _)| *ids == POLICIES), "{repaired:?}");
}
