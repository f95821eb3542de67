//! Enumerations, unions, maps and optional members: their bytes, and refused input.

use std::collections::BTreeMap;

use proptest::collection::btree_map;
use proptest::prelude::*;
use weir_cdr::{CdrError, CdrValue, DdsType, Encoding, Endianness};

use crate::types::{Point, any_point, any_text, decode, encode};

const LITTLE_1: (Endianness, Encoding) = (Endianness::Little, Encoding::Xcdr1);
const BIG_1: (Endianness, Encoding) = (Endianness::Big, Encoding::Xcdr1);
const LITTLE_2: (Endianness, Encoding) = (Endianness::Little, Encoding::Xcdr2);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, DdsType)]
pub(crate) enum Color {
    #[default]
    Red,
    Green = 5,
    Blue = -1,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, DdsType)]
#[dds(bit_bound = 9)]
pub(crate) enum Small {
    #[default]
    One = 1,
    Two,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(extensibility = "final")]
pub(crate) enum Reading {
    #[dds(case = 0, case = 4)]
    Celsius(f64),
    #[dds(case = -3)]
    Text(#[dds(max_len = 12)] String),
    #[default]
    #[dds(default)]
    Nothing,
}

#[derive(Clone, Debug, PartialEq, DdsType)]
#[dds(extensibility = "appendable", discriminator = "u8")]
pub(crate) enum Choice {
    #[dds(case = 1)]
    Number(u32),
    #[dds(case = 2)]
    Place(Point),
}

impl Default for Choice {
    fn default() -> Self {
        Self::Number(0)
    }
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(extensibility = "appendable")]
pub(crate) struct Kinds {
    pub(crate) small: Small,
    pub(crate) reading: Reading,
    pub(crate) choice: Choice,
    pub(crate) maybe: Option<i64>,
    #[dds(id = 20_000)]
    pub(crate) text: Option<String>,
    pub(crate) place: Option<Point>,
    pub(crate) numbers: BTreeMap<u32, u64>,
    pub(crate) places: BTreeMap<String, Point>,
    pub(crate) colors: Vec<Color>,
    #[dds(max_len = 3)]
    pub(crate) few: BTreeMap<Color, u8>,
}

fn any_color() -> impl Strategy<Value = Color> {
    prop_oneof![Just(Color::Red), Just(Color::Green), Just(Color::Blue)]
}

pub(crate) fn any_kinds() -> impl Strategy<Value = Kinds> {
    let reading = prop_oneof![
        any::<i32>().prop_map(|number| Reading::Celsius(f64::from(number))),
        "[a-z]{0,12}".prop_map(Reading::Text),
        Just(Reading::Nothing),
    ];
    let choice = prop_oneof![any::<u32>().prop_map(Choice::Number), any_point().prop_map(Choice::Place)];
    let small = prop_oneof![Just(Small::One), Just(Small::Two)];
    let options = (any::<Option<i64>>(), prop::option::of(any_text()), prop::option::of(any_point()));
    let maps = (
        btree_map(any::<u32>(), any::<u64>(), 0..4),
        btree_map(any_text(), any_point(), 0..3),
        btree_map(any_color(), any::<u8>(), 0..=3),
    );
    let colors = prop::collection::vec(any_color(), 0..4);
    (small, reading, choice, options, maps, colors).prop_map(
        |(small, reading, choice, (maybe, text, place), (numbers, places, few), colors)| Kinds {
            small,
            reading,
            choice,
            maybe,
            text,
            place,
            numbers,
            places,
            colors,
            few,
        },
    )
}

fn check<T: CdrValue + PartialEq + std::fmt::Debug>(
    value: &T,
    (endianness, encoding): (Endianness, Encoding),
    bytes: &[u8],
) {
    assert_eq!(encode(value, endianness, encoding).as_deref(), Ok(bytes), "{endianness:?} {encoding:?}");
    assert_eq!(decode::<T>(bytes, endianness, encoding).as_ref(), Ok(value), "{endianness:?} {encoding:?}");
}

fn refuse<T: CdrValue + std::fmt::Debug>(bytes: &[u8]) -> CdrError {
    decode::<T>(bytes, LITTLE_2.0, LITTLE_2.1).expect_err("the bytes are no value")
}

#[test]
fn enumerators_are_as_wide_as_their_bit_bound() {
    check(&Color::Green, BIG_1, &[0, 0, 0, 5]);
    check(&Color::Blue, LITTLE_2, &[0xff, 0xff, 0xff, 0xff]);
    check(&Small::Two, BIG_1, &[0, 2]);
    assert_eq!(refuse::<Color>(&[1, 0, 0, 0]), CdrError::UnknownDiscriminator(1));
    assert_eq!(refuse::<Small>(&[0xff, 0xff]), CdrError::UnknownDiscriminator(-1));
    // Not primitive: a sequence of them is delimited.
    check(&vec![Color::Red, Color::Green], LITTLE_2, &[12, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0]);
    check(&vec![Color::Green], LITTLE_1, &[1, 0, 0, 0, 5, 0, 0, 0]);
}

#[test]
fn a_union_is_its_discriminator_and_its_member() {
    let one = 1.0_f64.to_le_bytes();
    let celsius = |padding: &[u8]| [&[0, 0, 0, 0], padding, &one].concat();
    check(&Reading::Celsius(1.0), LITTLE_1, &celsius(&[0; 4]));
    check(&Reading::Celsius(1.0), LITTLE_2, &celsius(&[]));
    check(&Reading::Text("a".to_owned()), BIG_1, &[0xff, 0xff, 0xff, 0xfd, 0, 0, 0, 2, b'a', 0]);
    let other_case = [&[4, 0, 0, 0][..], &one].concat();
    assert_eq!(decode(&other_case, LITTLE_2.0, LITTLE_2.1), Ok(Reading::Celsius(1.0)));
    // The default is written with the smallest discriminator that no case has.
    check(&Reading::Nothing, LITTLE_2, &[1, 0, 0, 0]);
    assert_eq!(decode(&[99, 0, 0, 0], LITTLE_2.0, LITTLE_2.1), Ok(Reading::Nothing));
}

#[test]
fn an_appendable_union_is_delimited_and_may_lack_a_case() {
    check(&Choice::Number(7), LITTLE_1, &[1, 0, 0, 0, 7, 0, 0, 0]);
    check(&Choice::Number(7), LITTLE_2, &[8, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0]);
    #[rustfmt::skip]
    check(&Choice::Place(Point { x: 3, mark: 4 }), LITTLE_2, &[
        13, 0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0, 3, 0, 0, 0, 4,
    ]);
    assert_eq!(refuse::<Choice>(&[1, 0, 0, 0, 9]), CdrError::UnknownDiscriminator(9));
}

#[test]
fn bounds_of_union_members_and_maps_hold() {
    let long = Reading::Text("x".repeat(13));
    assert_eq!(encode(&long, LITTLE_2.0, LITTLE_2.1), Err(CdrError::BoundExceeded { max: 12 }));
    #[derive(Clone, Debug, Default, PartialEq, DdsType)]
    #[dds(extensibility = "final")]
    struct Few {
        #[dds(max_len = 1)]
        few: BTreeMap<u8, u8>,
    }
    let two = Few { few: BTreeMap::from([(1, 1), (2, 2)]) };
    assert_eq!(encode(&two, LITTLE_2.0, LITTLE_2.1), Err(CdrError::BoundExceeded { max: 1 }));
    assert_eq!(refuse::<Few>(&[2, 0, 0, 0, 1, 1, 2, 2]), CdrError::BoundExceeded { max: 1 });
    assert_eq!(Few::MAX_SIZE, Some(6));
}

#[test]
fn maps_are_delimited_unless_all_is_primitive() {
    let plain = BTreeMap::from([(1_u16, 2_u32)]);
    check(&plain, LITTLE_2, &[1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0]);
    let colors = BTreeMap::from([(1_u8, Color::Green)]);
    check(&colors, LITTLE_2, &[12, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0]);
    check(&colors, LITTLE_1, &[1, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0]);
    assert_eq!(refuse::<BTreeMap<u8, u8>>(&[2, 0, 0, 0, 1, 1, 1, 2]), CdrError::DuplicateKey);
    assert_eq!(refuse::<BTreeMap<u8, u8>>(&[0xff, 0xff, 0xff, 0xff, 1, 1]), CdrError::UnexpectedEnd);
}

/// The second member has an id too large for the short header.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(extensibility = "final")]
struct Options {
    first: u8,
    wide: Option<u64>,
    #[dds(id = 0x3f00)]
    narrow: Option<u16>,
    last: u8,
}

#[test]
fn optional_members_have_a_flag_in_xcdr2() {
    let some = Options { first: 1, wide: Some(2), narrow: Some(3), last: 4 };
    check(&some, LITTLE_2, &[1, 1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 3, 0, 4]);
    let none = Options { first: 1, last: 4, ..Options::default() };
    check(&none, LITTLE_2, &[1, 0, 0, 4]);
    assert_eq!(refuse::<Options>(&[1, 2, 0, 4]), CdrError::InvalidBool(2));
}

#[test]
fn optional_members_have_a_header_in_xcdr1() {
    let some = Options { first: 1, wide: Some(2), narrow: Some(3), last: 4 };
    #[rustfmt::skip]
    check(&some, LITTLE_1, &[
        1, 0, 0, 0, 1, 0, 8, 0, 2, 0, 0, 0, 0, 0, 0, 0,         // id 1, 8 bytes: aligned as from 0
        0x01, 0x3f, 8, 0, 0x00, 0x3f, 0, 0, 2, 0, 0, 0, 3, 0,   // the long form, 2 bytes
        4,
    ]);
    let none = Options { first: 1, last: 4, ..Options::default() };
    let bytes = [1, 0, 0, 0, 0, 1, 0, 0, 0x3f, 0x01, 0, 8, 0, 0, 0x3f, 0, 0, 0, 0, 0, 4];
    check(&none, BIG_1, &bytes);
    // The must-understand flag is not part of the id.
    let flagged = [1, 0, 0, 0, 0x40, 1, 0, 0, 0x7f, 0x01, 0, 8, 0x40, 0, 0x3f, 0, 0, 0, 0, 0, 4];
    assert_eq!(decode(&flagged, BIG_1.0, BIG_1.1), Ok(none));
    let other = [1, 0, 0, 0, 0, 2, 0, 0, 0, 9, 0, 0, 4];
    let unexpected = CdrError::UnexpectedMember { expected: 1, found: 2 };
    assert_eq!(decode::<Options>(&other, BIG_1.0, BIG_1.1), Err(unexpected));
}

#[test]
fn an_optional_value_of_64_kib_takes_the_long_header() {
    #[derive(Clone, Debug, Default, PartialEq, DdsType)]
    #[dds(extensibility = "final")]
    struct Large {
        bytes: Option<Vec<u8>>,
    }
    let large = Large { bytes: Some(vec![7; 65_536]) };
    let bytes = encode(&large, BIG_1.0, BIG_1.1).unwrap();
    assert_eq!(bytes[..20], [0x3f, 0x01, 0, 8, 0, 0, 0, 0, 0, 1, 0, 4, 0, 1, 0, 0, 7, 7, 7, 7]);
    assert_eq!(decode(&bytes, BIG_1.0, BIG_1.1), Ok(large));
}

/// Nothing without a bound.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(extensibility = "appendable")]
pub(crate) struct Limited {
    pub(crate) first: u8,
    pub(crate) choice: Choice,
    pub(crate) wide: Option<u64>,
    pub(crate) pair: [Small; 3],
    #[dds(max_len = 3)]
    pub(crate) few: BTreeMap<Color, u64>,
}

pub(crate) fn any_limited() -> impl Strategy<Value = Limited> {
    let few = btree_map(any_color(), any::<u64>(), 0..=3);
    (any_kinds(), any::<u8>(), few).prop_map(|(kinds, first, few)| Limited {
        first,
        choice: kinds.choice,
        wide: kinds.maybe.map(|wide| wide as u64),
        pair: [Small::One, kinds.small, Small::Two],
        few,
    })
}

#[test]
fn enumerations_and_unions_can_be_keys() {
    #[derive(Clone, Debug, Default, PartialEq, DdsType)]
    #[dds(extensibility = "final")]
    struct Keyed {
        value: u64,
        #[dds(key)]
        color: Color,
        #[dds(key)]
        choice: Choice,
    }
    let value = Keyed { value: 1, color: Color::Green, choice: Choice::Number(6) };
    let sample = encode(&value, LITTLE_2.0, LITTLE_2.1).unwrap();
    let mut key = [0xee; 12];
    let mut writer = weir_cdr::CdrWriter::new(&mut key, Endianness::Big, Encoding::PlainXcdr2);
    Keyed::copy_key(&mut weir_cdr::CdrReader::new(&sample, LITTLE_2.0, LITTLE_2.1), &mut writer).unwrap();
    assert_eq!(key, [0, 0, 0, 5, 1, 0, 0, 0, 0, 0, 0, 6]);
    assert_eq!(Keyed::MAX_KEY_SIZE, Some(13));
}
