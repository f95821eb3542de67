//! Values and their bytes, derived manually from the rules (DDS-XTypes 1.3, 7.4).

use weir_cdr::{CdrError, CdrValue, DdsType, Encoding, Endianness, Extensibility};

use crate::types::{Collections, Point, Primitives, Shape, decode, encode, shape};

const LITTLE_1: (Endianness, Encoding) = (Endianness::Little, Encoding::Xcdr1);
const BIG_1: (Endianness, Encoding) = (Endianness::Big, Encoding::Xcdr1);
const LITTLE_2: (Endianness, Encoding) = (Endianness::Little, Encoding::Xcdr2);
const BIG_2: (Endianness, Encoding) = (Endianness::Big, Encoding::Xcdr2);

fn check<T: CdrValue + PartialEq + std::fmt::Debug>(
    value: &T,
    (endianness, encoding): (Endianness, Encoding),
    bytes: &[u8],
) {
    assert_eq!(encode(value, endianness, encoding).as_deref(), Ok(bytes), "{endianness:?} {encoding:?}");
    assert_eq!(decode::<T>(bytes, endianness, encoding).as_ref(), Ok(value), "{endianness:?} {encoding:?}");
}

fn primitives() -> Primitives {
    Primitives {
        flag: true,
        double: 1.0,
        byte: 0x12,
        short: -2,
        tiny: -1,
        long: 0x0102_0304,
        unsigned_short: 0x0a0b,
        long_long: -2,
        float: -1.5,
        unsigned_long_long: 0x0102_0304_0506_0708,
        unsigned_long: 0xdead_beef,
    }
}

#[test]
fn primitives_are_aligned_to_their_size() {
    #[rustfmt::skip]
    check(&primitives(), LITTLE_1, &[
        1, 0, 0, 0, 0, 0, 0, 0,                                 // flag, padding to 8
        0, 0, 0, 0, 0, 0, 0xf0, 0x3f,                           // double
        0x12, 0, 0xfe, 0xff, 0xff, 0, 0, 0,                     // `byte`, short, tiny
        4, 3, 2, 1, 0x0b, 0x0a, 0, 0,                           // long, unsigned short
        0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,         // long long
        0, 0, 0xc0, 0xbf, 0, 0, 0, 0,                           // float, padding to 8
        8, 7, 6, 5, 4, 3, 2, 1,                                 // unsigned long long
        0xef, 0xbe, 0xad, 0xde,                                 // unsigned long
    ]);
    #[rustfmt::skip]
    check(&primitives(), BIG_1, &[
        1, 0, 0, 0, 0, 0, 0, 0,
        0x3f, 0xf0, 0, 0, 0, 0, 0, 0,
        0x12, 0, 0xff, 0xfe, 0xff, 0, 0, 0,
        1, 2, 3, 4, 0x0a, 0x0b, 0, 0,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe,
        0xbf, 0xc0, 0, 0, 0, 0, 0, 0,
        1, 2, 3, 4, 5, 6, 7, 8,
        0xde, 0xad, 0xbe, 0xef,
    ]);
}

#[test]
fn xcdr2_aligns_to_four_at_most() {
    #[rustfmt::skip]
    check(&primitives(), BIG_2, &[
        1, 0, 0, 0,                                             // flag, padding to 4
        0x3f, 0xf0, 0, 0, 0, 0, 0, 0,
        0x12, 0, 0xff, 0xfe, 0xff, 0, 0, 0,
        1, 2, 3, 4, 0x0a, 0x0b, 0, 0,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe,
        0xbf, 0xc0, 0, 0,                                       // no padding before the unsigned long long
        1, 2, 3, 4, 5, 6, 7, 8,
        0xde, 0xad, 0xbe, 0xef,
    ]);
}

#[test]
fn strings_count_their_nul_and_sequences_their_elements() {
    #[rustfmt::skip]
    check(&shape(), LITTLE_1, &[
        5, 0, 0, 0, b'B', b'L', b'U', b'E', 0, 0, 0, 0,
        1, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff, 30, 0, 0, 0,
        2, 0, 0, 0, 0xaa, 0xbb,
    ]);
    #[rustfmt::skip]
    check(&shape(), BIG_1, &[
        0, 0, 0, 5, b'B', b'L', b'U', b'E', 0, 0, 0, 0,
        0, 0, 0, 1, 0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 30,
        0, 0, 0, 2, 0xaa, 0xbb,
    ]);
}

#[test]
fn appendable_structs_are_delimited_in_xcdr2_only() {
    #[rustfmt::skip]
    check(&shape(), LITTLE_2, &[
        30, 0, 0, 0,
        5, 0, 0, 0, b'B', b'L', b'U', b'E', 0, 0, 0, 0,
        1, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff, 30, 0, 0, 0,
        2, 0, 0, 0, 0xaa, 0xbb,
    ]);
}

#[test]
fn elements_of_a_sequence_are_aligned_each() {
    let points = vec![Point { x: 1, mark: 9 }, Point { x: 2, mark: 8 }];
    check(&points, BIG_1, &[0, 0, 0, 2, 0, 0, 0, 1, 9, 0, 0, 0, 0, 0, 0, 2, 8]);
    // XCDR2: the sequence and each element are preceded by their length.
    #[rustfmt::skip]
    check(&points, BIG_2, &[
        0, 0, 0, 25, 0, 0, 0, 2,
        0, 0, 0, 5, 0, 0, 0, 1, 9, 0, 0, 0,
        0, 0, 0, 5, 0, 0, 0, 2, 8,
    ]);
    check(&[points[0].clone()], LITTLE_2, &[9, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 9]);
}

#[test]
fn arrays_of_several_dimensions_are_not_delimited_if_their_elements_are_primitive() {
    check(&[[1_u16, 2], [3, 4]], LITTLE_2, &[1, 0, 2, 0, 3, 0, 4, 0]);
    check(&vec![[1_u16, 2]], LITTLE_2, &[8, 0, 0, 0, 1, 0, 0, 0, 1, 0, 2, 0]);
}

#[test]
fn eight_byte_elements_are_padded_after_the_length_unless_there_are_none() {
    check(&vec![1_u64], LITTLE_1, &[1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    check(&vec![1_u64], LITTLE_2, &[1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    check(&Vec::<u64>::new(), LITTLE_1, &[0, 0, 0, 0]);
    check(
        &vec![vec![], vec![2_i64]],
        BIG_1,
        &[0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2],
    );
}

#[test]
fn sequences_of_strings_are_delimited_in_xcdr2() {
    let texts = vec!["a".to_owned(), String::new()];
    check(&texts, LITTLE_1, &[2, 0, 0, 0, 2, 0, 0, 0, b'a', 0, 0, 0, 1, 0, 0, 0, 0]);
    check(&texts, LITTLE_2, &[17, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, b'a', 0, 0, 0, 1, 0, 0, 0, 0]);
}

#[test]
fn a_newer_sender_may_have_more_members_and_an_older_one_fewer() {
    let more = [0, 0, 0, 8, 0, 0, 0, 1, 9, 7, 7, 7];
    assert_eq!(decode::<Point>(&more, BIG_2.0, BIG_2.1), Ok(Point { x: 1, mark: 9 }));
    let fewer = [0, 0, 0, 4, 0, 0, 0, 1];
    assert_eq!(decode::<Point>(&fewer, BIG_2.0, BIG_2.1), Ok(Point { x: 1, mark: 0 }));
    let cut = [0, 0, 0, 3, 0, 0, 0, 1];
    assert_eq!(decode::<Point>(&cut, BIG_2.0, BIG_2.1), Err(CdrError::UnexpectedEnd));
    // XCDR1 has no delimiter: the end of such a struct is unknown, so no member may be missing.
    assert_eq!(decode::<Point>(&[0, 0, 0, 1], BIG_1.0, BIG_1.1), Err(CdrError::UnexpectedEnd));
}

#[test]
fn invalid_values_are_refused() {
    let refuse = |bytes: &[u8]| decode::<String>(bytes, BIG_1.0, BIG_1.1).unwrap_err();
    assert_eq!(refuse(&[0, 0, 0, 2, b'a', b'b']), CdrError::InvalidString);
    assert_eq!(refuse(&[0, 0, 0, 0]), CdrError::InvalidString);
    assert_eq!(refuse(&[0, 0, 0, 3, b'a', 0, 0]), CdrError::InvalidString);
    assert_eq!(refuse(&[0, 0, 0, 3, b'a', 0]), CdrError::UnexpectedEnd);
    assert_eq!(decode::<bool>(&[2], BIG_1.0, BIG_1.1), Err(CdrError::InvalidBool(2)));
    assert_eq!(decode::<[bool; 2]>(&[1, 3], BIG_1.0, BIG_1.1), Err(CdrError::InvalidBool(3)));
    assert_eq!(decode::<Vec<bool>>(&[0, 0, 0, 3, 0, 3, 1], BIG_1.0, BIG_1.1), Err(CdrError::InvalidBool(3)));
    assert_eq!(encode(&"a\0b".to_owned(), BIG_1.0, BIG_1.1), Err(CdrError::InvalidString));
}

#[test]
fn strings_that_are_not_utf_8_are_read_as_iso_8859_1() {
    let read = |bytes: &[u8]| decode::<String>(bytes, BIG_1.0, BIG_1.1);
    assert_eq!(
        read(&[0, 0, 0, 7, b'G', 0xf6, b'r', 0xef, b'n', 0xff, 0]),
        Ok("G\u{f6}r\u{ef}n\u{ff}".to_owned())
    );
    assert_eq!(read(&[0, 0, 0, 3, 0xc3, 0xb6, 0]), Ok("\u{f6}".to_owned()), "UTF-8 stays UTF-8");
}

#[test]
fn bounds_hold_in_both_directions() {
    let too_long = Shape { color: "x".repeat(129), ..Shape::default() };
    assert_eq!(encode(&too_long, BIG_1.0, BIG_1.1), Err(CdrError::BoundExceeded { max: 128 }));
    let just_right = Shape { color: "x".repeat(128), ..Shape::default() };
    let mut bytes = encode(&just_right, BIG_1.0, BIG_1.1).unwrap();
    assert_eq!(decode::<Shape>(&bytes, BIG_1.0, BIG_1.1).unwrap(), just_right);
    bytes.splice(4..4, [b'x'; 4]);
    bytes[3] += 4;
    assert_eq!(decode::<Shape>(&bytes, BIG_1.0, BIG_1.1), Err(CdrError::BoundExceeded { max: 128 }));

    let too_many = Collections { few: vec![0; 5], ..Collections::default() };
    assert_eq!(encode(&too_many, BIG_1.0, BIG_1.1), Err(CdrError::BoundExceeded { max: 4 }));
}

#[test]
fn facts_about_types_are_known_at_compile_time() {
    assert_eq!(Shape::TYPE_NAME, "ShapeType");
    assert_eq!(Point::TYPE_NAME, "Point");
    assert_eq!(Shape::EXTENSIBILITY, Extensibility::Appendable);
    assert_eq!(Primitives::EXTENSIBILITY, Extensibility::Final);
    const { assert!(Shape::HAS_KEY && !Point::HAS_KEY) };
    assert_eq!(Primitives::FIXED_SIZE, Some(60));
    assert_eq!(Point::FIXED_SIZE, Some(5));
    assert_eq!(<[Point; 2]>::FIXED_SIZE, Some(13));
    assert_eq!(Shape::FIXED_SIZE, None);
    assert_eq!(Shape::MAX_SIZE, None);
    assert_eq!(f64::MAX_SIZE, Some(8));
    assert_eq!(Shape::MAX_KEY_SIZE, Some(4 + 129));
    assert_eq!(Point::MAX_KEY_SIZE, Some(0));
}
