//! The encapsulation header and the padding after a sample.

use weir_cdr::{
    CdrError, DdsType, Encoding, Endianness, encode_payload_in, from_payload, from_payload_into,
    payload_len_in, payload_reader_of, to_payload, to_payload_in,
};

use crate::types::{Point, Shape, shape};

#[test]
fn a_payload_is_padded_and_says_by_how_much() {
    let mut payload = vec![0xcc];
    to_payload(&Point { x: 1, mark: 9 }, &mut payload).unwrap();
    assert_eq!(payload, [0xcc, 0, 1, 0, 3, 1, 0, 0, 0, 9, 0, 0, 0], "appended to what was there");
    assert_eq!(payload_len_in(&Point::default(), Encoding::Xcdr1), 12);
}

#[test]
fn payloads_of_both_byte_orders_are_read_whatever_the_options_say() {
    let little = [0, 1, 0, 0, 1, 0, 0, 0, 9];
    let big = [0, 0, 0xff, 0xff, 0, 0, 0, 1, 9, 0, 0, 0];
    assert_eq!(from_payload(&little), Ok(Point { x: 1, mark: 9 }));
    assert_eq!(from_payload(&big), Ok(Point { x: 1, mark: 9 }));
    let mut point = Point::default();
    assert_eq!(from_payload_into(&big, &mut point), Ok(()));
    assert_eq!(point, Point { x: 1, mark: 9 });
    let reader = payload_reader_of::<Point>(&big).unwrap();
    assert_eq!((reader.endianness(), reader.encoding()), (Endianness::Big, Encoding::Xcdr1));
}

#[test]
fn other_encapsulations_are_refused_by_name() {
    let refuse = |header: &[u8]| payload_reader_of::<Point>(header).map(drop).unwrap_err();
    assert_eq!(refuse(&[0, 10, 0, 0, 1, 2, 3, 4]), CdrError::UnsupportedEncapsulation(0x000a));
    assert_eq!(refuse(&[0, 3, 0, 0]), CdrError::UnsupportedEncapsulation(0x0003));
    assert_eq!(refuse(&[0x80, 1, 0, 0]), CdrError::UnsupportedEncapsulation(0x8001));
    assert_eq!(refuse(&[0, 1, 0]), CdrError::UnexpectedEnd);
    assert_eq!(
        CdrError::UnsupportedEncapsulation(2).to_string(),
        "unsupported encapsulation 0x0002: use CDR, CDR2 or D_CDR2 (0x0000, 0x0001, 0x0006 to 0x0009)",
    );
}

#[test]
fn encoding_in_place_needs_room_for_the_padding() {
    let shape = shape();
    let mut out = [0xff; 64];
    let encode = |out: &mut [u8]| encode_payload_in(&shape, Encoding::Xcdr1, out);
    let len = payload_len_in(&shape, Encoding::Xcdr1);
    assert_eq!(encode(&mut out), Ok(len));
    for len in 0..len {
        assert_eq!(encode(&mut out[..len]), Err(CdrError::BufferTooSmall));
    }
}

#[test]
fn a_value_that_cannot_be_encoded_leaves_the_output_as_it_was() {
    let mut out = vec![1, 2, 3];
    let invalid = Shape { color: "a\0".to_owned(), ..Shape::default() };
    assert_eq!(to_payload(&invalid, &mut out), Err(CdrError::InvalidString));
    assert_eq!(out, [1, 2, 3]);
}

#[test]
fn payloads_in_xcdr2_say_whether_the_type_is_delimited() {
    let point = Point { x: 1, mark: 9 };
    let mut payload = Vec::new();
    to_payload_in(&point, Encoding::Xcdr2, &mut payload).unwrap();
    assert_eq!(payload, [0, 9, 0, 3, 5, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0]);
    assert_eq!(payload.len(), payload_len_in(&point, Encoding::Xcdr2));
    assert_eq!(from_payload(&payload), Ok(point.clone()));
    assert_eq!(from_payload(&[0, 8, 0, 0, 0, 0, 0, 5, 0, 0, 0, 1, 9]), Ok(point));

    let fixed = Fixed { wide: 2, narrow: 3 };
    payload.clear();
    to_payload_in(&fixed, Encoding::Xcdr2, &mut payload).unwrap();
    assert_eq!(payload, [0, 7, 0, 2, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0]);
    assert_eq!(from_payload(&payload), Ok(fixed.clone()));
    let mut decoded = Fixed::default();
    assert_eq!(from_payload_into(&[0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 3], &mut decoded), Ok(()));
    assert_eq!(decoded, fixed);
}

#[test]
fn a_payload_of_another_extensibility_is_refused_and_not_misread() {
    let plain = [0, 7, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0];
    assert_eq!(from_payload::<Point>(&plain), Err(CdrError::ExtensibilityMismatch(7)));
    let delimited = [0, 9, 0, 0, 10, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0];
    assert_eq!(from_payload::<Fixed>(&delimited), Err(CdrError::ExtensibilityMismatch(9)));
    assert_eq!(from_payload_into(&delimited, &mut Fixed::default()), Err(CdrError::ExtensibilityMismatch(9)));
}

#[test]
fn reusing_a_value_takes_defaults_for_what_the_sender_does_not_have() {
    let mut used = Point { x: 7, mark: 7 };
    assert_eq!(from_payload_into(&[0, 9, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0], &mut used), Ok(()));
    assert_eq!(used, Point { x: 1, mark: 0 });
}

/// Aligned differently in the two encodings.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(extensibility = "final")]
struct Fixed {
    wide: u64,
    narrow: u16,
}
