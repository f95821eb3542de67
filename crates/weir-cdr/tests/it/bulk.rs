//! Values whose last sequence is not encoded, and bytes that are not copied when decoded.

use weir_cdr::{
    Bytes, CdrError, CdrValue, DdsType, Encoding, Pieces, SharedMemory, encode_payload_around,
    encode_payload_in, frame_bulk, from_payload, from_shared_payload_into, payload_len_in,
};

use crate::types::Point;

/// Position of the bulk in the tests' memory.
const BULK_AT: usize = 100;

#[derive(Debug, Default, PartialEq, DdsType)]
#[dds(extensibility = "appendable")]
struct Image {
    #[dds(key, max_len = 16)]
    camera: String,
    height: u16,
    #[dds(max_len = 9)]
    pixels: Bytes,
}

#[derive(Debug, Default, PartialEq, DdsType)]
#[dds(extensibility = "final")]
struct Cloud {
    mark: u8,
    points: Vec<f64>,
}

#[derive(Debug, Default, PartialEq, DdsType)]
#[dds(extensibility = "appendable")]
struct Nested {
    mark: u8,
    image: Image,
}

#[derive(Debug, Default, PartialEq, DdsType)]
#[dds(extensibility = "final")]
struct NoBulk {
    maybe: Option<Vec<u8>>,
}

/// Checks that `front` with a bulk in place gives the bytes of `whole`.
fn is_framed_as_encoded<T: DdsType>(front: &T, whole: &T, bulk: &[u8], count: usize) {
    for encoding in [Encoding::Xcdr1, Encoding::Xcdr2] {
        let mut expected = vec![0; payload_len_in(whole, encoding)];
        encode_payload_in(whole, encoding, &mut expected).expect("it can be encoded");
        let mut out = vec![0xee; BULK_AT + bulk.len() + 3];
        out[BULK_AT..BULK_AT + bulk.len()].copy_from_slice(bulk);
        let payload = frame_bulk(front, encoding, &mut out, BULK_AT, count);
        let payload = payload.expect("it can be encoded");
        assert_eq!(&out[payload], expected, "{encoding:?}, {count} elements");
    }
}

#[test]
fn a_bulk_in_place_makes_the_payload_that_encoding_makes() {
    for count in 0..10 {
        let bytes: Vec<u8> = (1..=count as u8).collect();
        let image = |pixels| Image { camera: "left".to_owned(), height: 7, pixels };
        let whole = image(Bytes::copy_from_slice(&bytes));
        is_framed_as_encoded(&image(Bytes::from_static(b"ignored")), &whole, &bytes, count);
        let (front, whole) =
            (Nested { mark: 3, image: image(Bytes::new()) }, Nested { mark: 3, image: whole });
        is_framed_as_encoded(&front, &whole, &bytes, count);
        let points: Vec<f64> = bytes.iter().map(|byte| f64::from(*byte) / 3.0).collect();
        let bulk: Vec<u8> = points.iter().flat_map(|point| point.to_le_bytes()).collect();
        is_framed_as_encoded(
            &Cloud { mark: 1, points: Vec::new() },
            &Cloud { mark: 1, points },
            &bulk,
            count,
        );
    }
}

/// Checks that the surroundings of the bytes at the end of `value`, with those, are what encoding
/// gives.
fn is_encoded_around<T: DdsType>(value: &T) {
    let bytes = value.bulk_bytes().expect("it ends in bytes");
    for encoding in [Encoding::Xcdr1, Encoding::Xcdr2] {
        let mut expected = vec![0; payload_len_in(value, encoding)];
        encode_payload_in(value, encoding, &mut expected).expect("it can be encoded");
        let mut out = vec![0xee; expected.len()];
        let at = encode_payload_around(value, bytes.len(), encoding, &mut out).expect("it can be encoded");
        let room = &mut out[at..][..bytes.len()];
        assert!(room.iter().all(|byte| *byte == 0xee));
        room.copy_from_slice(bytes);
        assert_eq!(out, expected, "{encoding:?}, {} bytes", bytes.len());
        let short = encode_payload_around(value, bytes.len() + 4, encoding, &mut out);
        assert_eq!(short, Err(CdrError::BufferTooSmall));
    }
}

#[test]
fn what_surrounds_bytes_is_encoded_without_them() {
    for count in 0..8 {
        let bytes: Vec<u8> = (1..=count as u8).collect();
        let image = Image { camera: "left".to_owned(), height: 7, pixels: Bytes::copy_from_slice(&bytes) };
        let nested = Nested { mark: 3, image };
        is_encoded_around(&Trailing { mark: 9, bytes });
        if count < 6 {
            is_encoded_around(&nested);
            is_encoded_around(&nested.image);
        }
    }
    let long = Trailing { mark: 1, bytes: vec![1; 13] };
    let refused = encode_payload_around(&long, 13, Encoding::Xcdr1, &mut [0; 64]);
    assert_eq!(refused, Err(CdrError::BoundExceeded { max: 12 }));
}

/// Checks that `value`, written in pieces of any length, gives the same bytes as encoding it at
/// once.
fn is_pieced_as_encoded<T: DdsType>(value: &T) {
    for encoding in [Encoding::Xcdr1, Encoding::Xcdr2] {
        let mut expected = vec![0; payload_len_in(value, encoding)];
        encode_payload_in(value, encoding, &mut expected).expect("it can be encoded");
        let pieces = Pieces::new(value, encoding).expect("it can be encoded").expect("it has a bulk");
        assert_eq!(pieces.len(), expected.len());
        for len in 1..=expected.len() {
            let mut out = vec![0xee; expected.len()];
            out.chunks_mut(len).enumerate().for_each(|(index, piece)| {
                pieces.write(index * len, piece).expect("it has a bulk");
            });
            assert_eq!(out, expected, "{encoding:?}, pieces of {len}");
        }
        let mut behind = [0xee; 4];
        pieces.write(expected.len(), &mut behind).expect("it has a bulk");
        assert_eq!(behind, [0; 4]);
    }
}

#[test]
fn a_payload_in_pieces_of_any_length_is_the_payload_that_encoding_makes() {
    for count in 0..10 {
        let bytes: Vec<u8> = (1..=count as u8).collect();
        let image = Image { camera: "left".to_owned(), height: 7, pixels: Bytes::copy_from_slice(&bytes) };
        is_pieced_as_encoded(&image);
        is_pieced_as_encoded(&Nested { mark: 3, image });
        let points: Vec<f64> = bytes.iter().map(|byte| f64::from(*byte) / 3.0).collect();
        is_pieced_as_encoded(&Cloud { mark: 1, points });
        let flags = bytes.iter().map(|byte| byte % 3 == 1).collect();
        is_pieced_as_encoded(&Flags { depths: vec![0x0102_0304; count], flags });
        is_pieced_as_encoded(&Trailing { mark: 9, bytes });
    }
}

#[test]
fn what_cannot_be_pieced_is_said_before_anything_is_written() {
    let image = Image { pixels: Bytes::from_static(b"0123456789"), ..Image::default() };
    assert_eq!(Pieces::new(&image, Encoding::Xcdr1).err(), Some(CdrError::BoundExceeded { max: 9 }));
    assert!(Pieces::new(&NoBulk::default(), Encoding::Xcdr1).expect("no error").is_none());
    assert!(Pieces::new(&BulkAsKey::default(), Encoding::Xcdr1).expect("no error").is_none());
    let long_front = Flags { depths: vec![1; 300], flags: vec![true; 9] };
    assert!(Pieces::new(&long_front, Encoding::Xcdr2).expect("no error").is_none());
}

#[derive(Debug, Default, PartialEq, DdsType)]
#[dds(extensibility = "final")]
struct Flags {
    depths: Vec<u32>,
    flags: Vec<bool>,
}

#[derive(Debug, Default, PartialEq, DdsType)]
#[dds(extensibility = "appendable")]
struct Trailing {
    mark: u16,
    #[dds(max_len = 12)]
    bytes: Vec<u8>,
}

#[test]
fn what_does_not_fit_is_refused() {
    let frame = |out: &mut [u8], at, count| frame_bulk(&Image::default(), Encoding::Xcdr1, out, at, count);
    let mut out = [0; 64];
    assert!(frame(&mut out, 40, 9).is_ok());
    assert_eq!(frame(&mut out, 40, 10), Err(CdrError::BoundExceeded { max: 9 }));
    assert_eq!(frame(&mut out, 8, 4), Err(CdrError::BufferTooSmall), "in front");
    assert_eq!(frame(&mut out, 60, 5), Err(CdrError::BufferTooSmall), "behind");
    assert_eq!(frame(&mut out, 65, 0), Err(CdrError::BufferTooSmall));
    let huge = frame_bulk(&Cloud::default(), Encoding::Xcdr1, &mut out, 40, usize::MAX);
    assert_eq!(huge, Err(CdrError::LengthOverflow));
    assert_eq!(BulkAsKey::BULK_ELEMENT, None);
    assert_eq!((NoBulk::BULK_ELEMENT, Point::BULK_ELEMENT, Cloud::BULK_ELEMENT), (None, None, Some(8)));
    assert_eq!(frame_bulk(&NoBulk::default(), Encoding::Xcdr1, &mut out, 40, 0), Err(CdrError::NoBulk));
}

#[derive(Debug, Default, PartialEq, DdsType)]
#[dds(extensibility = "final")]
struct BulkAsKey {
    #[dds(key)]
    name: Vec<u8>,
}

#[test]
fn bytes_of_shared_memory_stay_where_they_are() {
    let whole = Image { camera: "left".to_owned(), height: 7, pixels: Bytes::from_static(&[1, 2, 3]) };
    for encoding in [Encoding::Xcdr1, Encoding::Xcdr2] {
        let mut payload = vec![0; payload_len_in(&whole, encoding)];
        encode_payload_in(&whole, encoding, &mut payload).unwrap();
        assert_eq!(from_payload::<Image>(&payload).as_ref(), Ok(&whole));

        let memory = Bytes::from(payload);
        let mut image = Image::default();
        from_shared_payload_into(&memory, &memory, &mut image).unwrap();
        assert_eq!(image, whole);
        assert!(memory.as_ptr_range().contains(&image.pixels.as_ptr()), "not a copy");
        drop(memory);
        assert_eq!(image, whole, "the memory lives as long as its parts");
        assert_eq!(Bytes::from_static(b"abc").share(b"other"), b"other"[..], "a copy");
    }
}
