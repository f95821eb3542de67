//! The encapsulation header and the padding behind a sample.

use weir_cdr::{
    CdrError, Encoding, Endianness, encode_payload, from_payload, from_payload_into, payload_len,
    payload_reader, to_payload,
};

use crate::types::{Point, Shape, shape};

#[test]
fn a_payload_is_padded_and_says_by_how_much() {
    let mut payload = vec![0xcc];
    to_payload(&Point { x: 1, mark: 9 }, &mut payload).unwrap();
    assert_eq!(payload, [0xcc, 0, 1, 0, 3, 1, 0, 0, 0, 9, 0, 0, 0], "appended to what was there");
    assert_eq!(payload_len(&Point::default()), 12);
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
    let reader = payload_reader(&big).unwrap();
    assert_eq!((reader.endianness(), reader.encoding()), (Endianness::Big, Encoding::Xcdr1));
}

#[test]
fn other_encapsulations_are_refused_by_name() {
    let refuse = |header: &[u8]| payload_reader(header).map(drop).unwrap_err();
    assert_eq!(refuse(&[0, 7, 0, 0, 1, 2, 3, 4]), CdrError::UnsupportedEncapsulation(0x0007));
    assert_eq!(refuse(&[0, 3, 0, 0]), CdrError::UnsupportedEncapsulation(0x0003));
    assert_eq!(refuse(&[0x80, 1, 0, 0]), CdrError::UnsupportedEncapsulation(0x8001));
    assert_eq!(refuse(&[0, 1, 0]), CdrError::UnexpectedEnd);
    assert_eq!(
        CdrError::UnsupportedEncapsulation(7).to_string(),
        "the encapsulation 0x0007 is not supported, only plain CDR (0x0000, 0x0001) is",
    );
}

#[test]
fn encoding_in_place_needs_room_for_the_padding() {
    let shape = shape();
    let mut out = [0xff; 64];
    assert_eq!(encode_payload(&shape, &mut out), Ok(payload_len(&shape)));
    for len in 0..payload_len(&shape) {
        assert_eq!(encode_payload(&shape, &mut out[..len]), Err(CdrError::BufferTooSmall));
    }
}

#[test]
fn a_value_that_cannot_be_encoded_leaves_the_output_as_it_was() {
    let mut out = vec![1, 2, 3];
    let invalid = Shape { color: "a\0".to_owned(), ..Shape::default() };
    assert_eq!(to_payload(&invalid, &mut out), Err(CdrError::InvalidString));
    assert_eq!(out, [1, 2, 3]);
}
