//! Written messages parse as the same values, and match the drawings in both byte orders.

use proptest::collection::vec;
use proptest::prelude::*;
use weir_wire::{
    Data, DataFrag, DataHeader, Emit, Endianness, Guid, Header, Locator, Message, Parameter, ParameterId,
    ParameterList, ParameterListWriter, Payload, Submessage, Timestamp, push,
};

use crate::reference_writer::{ORDERS, ReferenceWriter};
use crate::values::{Parameters, Part, any_part, header, written};

/// The bytes that the crate writes for a submessage. Inline QoS uses the same code as the expected
/// bytes.
fn emitted(part: &Part) -> Vec<u8> {
    fn whole(part: &impl Emit) -> Vec<u8> {
        // Longer than needed, to check that the rest is untouched.
        let mut out = vec![0xee; part.wire_len() + 8];
        part.emit(&mut out);
        assert_eq!(out.split_off(part.wire_len()), [0xee; 8], "more than wire_len() was written");
        let mut pushed = vec![0xdd];
        push(&mut pushed, part);
        assert_eq!(pushed[1..], out);
        out
    }
    match part {
        Part::AckNack(it) => whole(it),
        Part::Gap(it) => whole(it),
        Part::Heartbeat(it) => whole(it),
        Part::HeartbeatFrag(it) => whole(it),
        Part::InfoDestination(it) => whole(it),
        Part::InfoSource(it) => whole(it),
        Part::InfoTimestamp(it) => whole(it),
        Part::NackFrag(it) => whole(it),
        Part::DataFrag(it) => whole(&it.parse_result()),
        Part::Data(it) => {
            let mut inline_qos = Vec::new();
            if let Some(parameters) = &it.parameters {
                let mut list = ParameterListWriter::new(&mut inline_qos);
                parameters.0.iter().for_each(|(id, value)| list.raw(ParameterId(*id), value));
                list.finish();
            }
            let mut out = whole(&DataHeader {
                reader: it.reader,
                writer: it.writer,
                sequence_number: it.sequence_number,
                inline_qos_len: inline_qos.len() as u32,
                payload_len: it.payload.len() as u32,
                is_key: it.is_key,
            });
            assert_eq!(out.len(), DataHeader::LEN);
            out.extend(inline_qos);
            out.extend(&it.payload);
            out
        }
        Part::InfoReply(..) | Part::Pad(_) | Part::Unknown(..) => unreachable!("never written"),
    }
}

fn assert_parameters(read: Option<ParameterList<'_>>, written: Option<&Parameters>, endianness: Endianness) {
    assert_eq!(read.is_some(), written.is_some());
    let (Some(read), Some(written)) = (read, written) else { return };
    let read: Vec<_> = read.into_iter().map(Result::unwrap).collect();
    assert_eq!(read.len(), written.0.len());
    for (read, (id, value)) in read.iter().zip(&written.0) {
        assert_eq!(*read, Parameter { id: ParameterId(*id), value, endianness });
    }
}

/// Asserts that the crate parses a submessage as the right value.
fn assert_reads(read: Submessage<'_>, part: &Part, endianness: Endianness) {
    match (read, part) {
        (Submessage::AckNack(read), Part::AckNack(it)) => assert_eq!(read, *it),
        (Submessage::Gap(read), Part::Gap(it)) => assert_eq!(read, *it),
        (Submessage::Heartbeat(read), Part::Heartbeat(it)) => assert_eq!(read, *it),
        (Submessage::HeartbeatFrag(read), Part::HeartbeatFrag(it)) => assert_eq!(read, *it),
        (Submessage::InfoDestination(read), Part::InfoDestination(it)) => assert_eq!(read, *it),
        (Submessage::InfoSource(read), Part::InfoSource(it)) => assert_eq!(read, *it),
        (Submessage::InfoTimestamp(read), Part::InfoTimestamp(it)) => assert_eq!(read, *it),
        (Submessage::NackFrag(read), Part::NackFrag(it)) => assert_eq!(read, *it),
        (Submessage::DataFrag(read), Part::DataFrag(it)) => {
            assert_parameters(read.inline_qos, it.parameters.as_ref(), endianness);
            assert_eq!(DataFrag { inline_qos: None, ..read }, it.parse_result());
        }
        (Submessage::Data(read), Part::Data(it)) => {
            assert_parameters(read.inline_qos, it.parameters.as_ref(), endianness);
            let payload = match (it.payload.as_slice(), it.is_key) {
                ([], _) => Payload::None,
                (bytes, false) => Payload::Data(bytes),
                (bytes, true) => Payload::Key(bytes),
            };
            let (reader, writer, sequence_number) = (it.reader, it.writer, it.sequence_number);
            let expected = Data { reader, writer, sequence_number, inline_qos: None, payload };
            assert_eq!(Data { inline_qos: None, ..read }, expected);
        }
        (Submessage::InfoReply(_), Part::InfoReply(..)) | (Submessage::Pad, Part::Pad(_)) => {}
        (Submessage::Unknown { id, len }, Part::Unknown(known, body)) => {
            assert_eq!((id, len), (*known, body.len()));
        }
        (read, part) => panic!("{part:?} was read as {read:?}"),
    }
}

fn assert_reads_all(message: &[u8], header: Header, parts: &[Part], endianness: Endianness) {
    let message = Message::parse(message).expect("the header is valid");
    assert_eq!(message.header, header);
    let read: Vec<_> = message.submessages().map(Result::unwrap).collect();
    assert_eq!(read.len(), parts.len(), "{message}");
    read.iter().zip(parts).for_each(|(read, part)| assert_reads(*read, part, endianness));
}

fn start(header: &Header) -> Vec<u8> {
    let mut message = Vec::new();
    push(&mut message, header);
    assert_eq!((message.len(), header.wire_len()), (Header::LEN, Header::LEN));
    message
}

proptest! {
    #[test]
    fn every_submessage_is_written_as_drawn_and_read_again(header in header(), part in written()) {
        let mut message = start(&header);
        let mut expected = part.clone();
        if let Part::DataFrag(frag) = &mut expected {
            // DATA_FRAG is written without inline QoS.
            frag.parameters = None;
        }
        message.extend(emitted(&part));
        let mut writer = ReferenceWriter::new(Endianness::Little);
        writer.part(&expected);
        prop_assert_eq!(&message[Header::LEN..], writer.bytes);
        assert_reads_all(&message, header, &[expected], Endianness::Little);
    }

    #[test]
    fn whole_messages_are_read_in_both_byte_orders(header in header(), parts in vec(any_part(), 0..12)) {
        for endianness in ORDERS {
            let mut message = start(&header);
            let mut writer = ReferenceWriter::new(endianness);
            parts.iter().for_each(|part| writer.part(part));
            message.extend(writer.bytes);
            assert_reads_all(&message, header, &parts, endianness);
        }
    }

    #[test]
    fn byte_orders_may_change_within_a_message(
        header in header(), parts in vec((any_part(), any::<bool>()), 0..8),
    ) {
        let order = |is_little: bool| if is_little { Endianness::Little } else { Endianness::Big };
        let mut message = start(&header);
        for (part, is_little) in &parts {
            let mut writer = ReferenceWriter::new(order(*is_little));
            writer.part(part);
            message.extend(writer.bytes);
        }
        let read: Vec<_> = Message::parse(&message).unwrap().submessages().map(Result::unwrap).collect();
        prop_assert_eq!(read.len(), parts.len());
        for (read, (part, is_little)) in read.into_iter().zip(&parts) {
            assert_reads(read, part, order(*is_little));
        }
    }

    #[test]
    fn length_zero_reaches_to_the_end_of_the_message(
        header in header(), parts in vec(any_part(), 0..4),
        last in written().prop_filter("it may be empty", |part| !matches!(part, Part::InfoTimestamp(_))),
    ) {
        for endianness in ORDERS {
            let mut message = start(&header);
            let mut writer = ReferenceWriter::new(endianness);
            parts.iter().for_each(|part| writer.part(part));
            let at = writer.bytes.len();
            writer.part(&last);
            writer.bytes[at + 2..at + 4].fill(0);
            message.extend(writer.bytes);
            let parts: Vec<_> = parts.iter().cloned().chain([last.clone()]).collect();
            assert_reads_all(&message, header, &parts, endianness);
        }
    }

    #[test]
    fn parameters_are_read_in_both_byte_orders(
        words in any::<[u32; 4]>(), sixteen in any::<[u8; 16]>(), text in "[^\0]{0,20}",
        texts in vec("[^\0]{0,9}", 0..5), shorts in vec(any::<i16>(), 0..6), opaque in vec(any::<u8>(), 0..9),
    ) {
        for endianness in ORDERS {
            let parameter = |write: &dyn Fn(&mut ReferenceWriter)| {
                let mut writer = ReferenceWriter::new(endianness);
                write(&mut writer);
                writer.bytes
            };
            let read = |value| Parameter { id: ParameterId(0), value, endianness };
            let string = |writer: &mut ReferenceWriter, text: &str| {
                writer.u32(text.len() as u32 + 1);
                writer.bytes.extend(text.as_bytes());
                writer.bytes.push(0);
                writer.bytes.resize(writer.bytes.len().next_multiple_of(4), 0);
            };
            let bytes = parameter(&|writer| words.iter().for_each(|word| writer.u32(*word)));
            let value = read(&bytes);
            prop_assert_eq!(value.u32s::<4>(), Ok(words));
            prop_assert_eq!((value.u32(), value.i32()), (Ok(words[0]), Ok(words[0].cast_signed())));
            let number = i64::from(words[0].cast_signed()) << 32 | i64::from(words[1]);
            prop_assert_eq!(value.sequence_number().unwrap().0, number);
            let duration = value.duration().unwrap();
            prop_assert_eq!((duration.seconds, duration.fraction), (words[0].cast_signed(), words[1]));
            let (kind, duration) = value.kind_and_duration().unwrap();
            prop_assert_eq!(kind, words[0]);
            prop_assert_eq!((duration.seconds, duration.fraction), (words[1].cast_signed(), words[2]));

            let bytes = parameter(&|writer| {
                writer.u32(words[0]);
                writer.u32(words[1]);
                writer.bytes.extend(sixteen);
            });
            let locator = Locator { kind: words[0].cast_signed(), port: words[1], address: sixteen };
            prop_assert_eq!(read(&bytes).locator(), Ok(locator));
            prop_assert_eq!(read(&sixteen).guid(), Ok(Guid::from_bytes(sixteen)));
            prop_assert_eq!(read(&sixteen).bytes(), Ok(sixteen));

            let bytes = parameter(&|writer| string(writer, &text));
            prop_assert_eq!(read(&bytes).string(), Ok(text.as_str()));
            let bytes = parameter(&|writer| {
                writer.u32(texts.len() as u32);
                texts.iter().for_each(|text| string(writer, text));
            });
            prop_assert_eq!(read(&bytes).strings(texts.len()).unwrap(), texts.clone());
            let bytes = parameter(&|writer| {
                writer.u32(shorts.len() as u32);
                shorts.iter().for_each(|short| writer.u16(short.cast_unsigned()));
            });
            prop_assert_eq!(read(&bytes).i16s().unwrap().collect::<Vec<_>>(), shorts.clone());
            let bytes = parameter(&|writer| {
                writer.u32(opaque.len() as u32);
                writer.bytes.extend(&opaque);
            });
            prop_assert_eq!(read(&bytes).byte_sequence(), Ok(opaque.as_slice()));
        }
    }

    #[test]
    fn times_survive_to_the_nanosecond(
        nanos in 0..u64::from(u32::MAX) * 1_000_000_000, seconds in 0..i32::MAX as u64,
    ) {
        prop_assert_eq!(Timestamp::from_unix_nanos(nanos).to_unix_nanos(), nanos);
        let nanos = seconds * 1_000_000_000 + nanos % 1_000_000_000;
        prop_assert_eq!(weir_wire::Duration::from_nanos(nanos).to_nanos(), Some(nanos));
    }
}
