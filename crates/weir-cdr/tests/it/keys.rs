//! Which bytes form the key, and its hash.

use proptest::prelude::*;
use weir_cdr::{
    CdrError, CdrReader, CdrWriter, DdsType, Encoding, Endianness, from_key_payload, key_hash, key_hash_md5,
    key_payload, payload_reader_of, to_payload_in, undelimited_key_payload,
};

use crate::types::{Point, Shape, any_shape, encode, shape};

/// Key members around others.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(extensibility = "final")]
struct Sensor {
    comment: String,
    #[dds(key)]
    building: u8,
    values: Vec<f64>,
    #[dds(key)]
    serial: u64,
    #[dds(key)]
    place: Place,
    last: u32,
}

/// Has a key member: only that one belongs to the key of a sensor.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(extensibility = "appendable")]
struct Place {
    name: String,
    #[dds(key)]
    room: u16,
    // No key members: all of it belongs to the key.
    #[dds(key)]
    at: Point,
    height: f32,
}

/// The key has at most 16 bytes, and only because padding is counted exactly.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(extensibility = "final")]
struct SixteenAtMost {
    #[dds(key, max_len = 5)]
    name: String,
    #[dds(key)]
    number: u32,
}

fn sensor() -> Sensor {
    Sensor {
        comment: "hot".to_owned(),
        building: 7,
        values: vec![1.0, 2.0],
        serial: 0x0102_0304_0506_0708,
        place: Place { name: "attic".to_owned(), room: 0x0a0b, at: Point { x: 3, mark: 4 }, height: 1.5 },
        last: 5,
    }
}

#[rustfmt::skip]
const SENSOR_KEY_BE: [u8; 25] = [
    7, 0, 0, 0, 0, 0, 0, 0,
    1, 2, 3, 4, 5, 6, 7, 8,
    0x0a, 0x0b, 0, 0, 0, 0, 0, 3,
    4,
];

fn key_be<T: DdsType>(value: &T) -> Result<Vec<u8>, CdrError> {
    let mut key = vec![0xee; value.key_size(Encoding::Xcdr1)];
    let mut writer = CdrWriter::new(&mut key, Endianness::Big, Encoding::Xcdr1);
    value.encode_key(&mut writer)?;
    assert_eq!(writer.position(), key.len());
    Ok(key)
}

/// The key copied from a serialized sample.
fn copied_key<T: DdsType>(value: &T, endianness: Endianness) -> Result<Vec<u8>, CdrError> {
    let sample = encode(value, endianness, Encoding::Xcdr1)?;
    let mut key = vec![0xee; value.key_size(Encoding::Xcdr1)];
    let mut writer = CdrWriter::new(&mut key, Endianness::Big, Encoding::Xcdr1);
    T::copy_key(&mut CdrReader::new(&sample, endianness, Encoding::Xcdr1), &mut writer)?;
    assert_eq!(writer.position(), key.len());
    Ok(key)
}

#[test]
fn only_key_members_are_in_the_key_with_alignment_of_their_own() {
    assert_eq!(key_be(&sensor()).unwrap(), SENSOR_KEY_BE);
    assert_eq!(Sensor::MAX_KEY_SIZE, Some(SENSOR_KEY_BE.len()));
}

#[test]
fn the_key_is_found_in_samples_of_both_byte_orders() {
    assert_eq!(copied_key(&sensor(), Endianness::Little).unwrap(), SENSOR_KEY_BE);
    assert_eq!(copied_key(&sensor(), Endianness::Big).unwrap(), SENSOR_KEY_BE);
}

#[test]
fn a_decoded_key_has_only_the_key_members() {
    let key =
        Sensor::decode_key(&mut CdrReader::new(&SENSOR_KEY_BE, Endianness::Big, Encoding::Xcdr1)).unwrap();
    let place = Place { room: 0x0a0b, at: Point { x: 3, mark: 4 }, ..Place::default() };
    assert_eq!(key, Sensor { building: 7, serial: 0x0102_0304_0506_0708, place, ..Sensor::default() });
}

#[test]
fn nothing_behind_the_last_key_member_is_looked_at() {
    let mut payload = Vec::new();
    weir_cdr::to_payload(&shape(), &mut payload).unwrap();
    let mut key = [0; 16];
    let mut writer = CdrWriter::new(&mut key, Endianness::Big, Encoding::Xcdr1);
    let mut reader = payload_reader_of::<Shape>(&payload[..4 + 9]).unwrap();
    Shape::copy_key(&mut reader, &mut writer).unwrap();
    assert_eq!(writer.written(), [0, 0, 0, 5, b'B', b'L', b'U', b'E', 0]);
}

#[test]
fn a_type_without_a_key_has_an_empty_one() {
    let point = Point { x: 1, mark: 2 };
    assert_eq!(key_be(&point).unwrap(), []);
    assert_eq!(copied_key(&point, Endianness::Big).unwrap(), []);
    let mut nothing = CdrReader::new(&[], Endianness::Big, Encoding::Xcdr1);
    assert_eq!(Point::decode_key(&mut nothing), Ok(Point::default()));
    assert_eq!(key_hash::<Point>(&[], Encoding::Xcdr1), [0; 16]);
}

#[test]
fn keys_too_long_for_their_bound_are_refused_in_payloads_too() {
    // A string of 6 where 5 are allowed would make the key longer than 16 bytes.
    let sample = [0, 0, 0, 7, b'a', b'b', b'c', b'd', b'e', b'f', 0, 0, 0, 0, 0, 1];
    let mut key = [0; 32];
    let result = SixteenAtMost::copy_key(
        &mut CdrReader::new(&sample, Endianness::Big, Encoding::Xcdr1),
        &mut CdrWriter::new(&mut key, Endianness::Big, Encoding::Xcdr1),
    );
    assert_eq!(result, Err(CdrError::BoundExceeded { max: 5 }));
}

#[test]
fn the_largest_possible_key_decides_the_kind_of_hash() {
    // The type decides: the key of this shape has only 9 bytes, but could have 133. The digest is
    // from `md5sum`.
    let blue = key_be(&shape()).unwrap();
    assert_eq!(key_hash::<Shape>(&blue, Encoding::Xcdr1), BLUE_MD5);
    assert_eq!(key_hash_md5(&blue), BLUE_MD5);

    assert_eq!(SixteenAtMost::MAX_KEY_SIZE, Some(16));
    let raw = key_be(&SixteenAtMost { name: "ab".to_owned(), number: 1 }).unwrap();
    assert_eq!(
        key_hash::<SixteenAtMost>(&raw, Encoding::Xcdr1),
        [0, 0, 0, 3, b'a', b'b', 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]
    );
}

const BLUE_MD5: [u8; 16] =
    [0xca, 0xc2, 0x17, 0xc3, 0x18, 0x36, 0x3f, 0x8e, 0xf1, 0x16, 0x0e, 0xee, 0xde, 0xf9, 0xe8, 0x86];

proptest! {
    #[test]
    fn keys_are_the_same_by_every_way(shape in any_shape()) {
        let key = key_be(&shape)?;
        prop_assert_eq!(&copied_key(&shape, Endianness::Little)?, &key);
        prop_assert_eq!(&copied_key(&shape, Endianness::Big)?, &key);
        prop_assert!(key.len() <= Shape::MAX_KEY_SIZE.unwrap_or(usize::MAX));
        let decoded = Shape::decode_key(&mut CdrReader::new(&key, Endianness::Big, Encoding::Xcdr1))?;
        prop_assert_eq!(decoded, Shape { color: shape.color, ..Shape::default() });
    }
}

/// Between 16 and 20 bytes, depending on the alignment of eight-byte primitives.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(extensibility = "appendable")]
struct DependsOnEncoding {
    #[dds(key)]
    a: u32,
    value: f32,
    #[dds(key)]
    b: u64,
    #[dds(key)]
    c: Part,
}

/// All of it belongs to the key.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(extensibility = "appendable")]
struct Part {
    c: u32,
}

#[test]
fn keys_in_xcdr2_are_delimited_in_payloads_and_plain_in_hashes() {
    let value = DependsOnEncoding { a: 1, value: 0.5, b: 2, c: Part { c: 3 } };
    let hash_of = |encoding: Encoding| {
        let form = encoding.of_key_hash();
        let mut key = vec![0xee; value.key_size(form)];
        value.encode_key(&mut CdrWriter::new(&mut key, Endianness::Big, form)).unwrap();
        (key_hash::<DependsOnEncoding>(&key, encoding), key)
    };
    let plain = [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 3];
    assert_eq!(DependsOnEncoding::MAX_KEY_SIZE_XCDR2, Some(16));
    assert_eq!(hash_of(Encoding::Xcdr2), (plain, plain.to_vec()));
    let aligned = [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 3];
    assert_eq!(DependsOnEncoding::MAX_KEY_SIZE, Some(20));
    assert_eq!(hash_of(Encoding::Xcdr1), (key_hash_md5(&aligned), aligned.to_vec()));

    let payload = key_payload(&value, Encoding::Xcdr2).unwrap();
    #[rustfmt::skip]
    assert_eq!(payload, [
        0, 9, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0,
    ]);
    let key = DependsOnEncoding::decode_key(&mut payload_reader_of::<DependsOnEncoding>(&payload).unwrap())
        .unwrap();
    assert_eq!(key, DependsOnEncoding { value: 0.0, ..value.clone() });

    assert_eq!(from_key_payload::<DependsOnEncoding>(&payload), Ok(key.clone()));
    // As Cyclone DDS 0.10 sends it.
    let undelimited = [0, 9, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0];
    assert_eq!(from_key_payload::<DependsOnEncoding>(&undelimited), Ok(key));
    assert_eq!(undelimited_key_payload::<DependsOnEncoding>(&payload).unwrap(), undelimited);

    let mut sample = Vec::new();
    to_payload_in(&value, Encoding::Xcdr2, &mut sample).unwrap();
    let mut copied = [0; 16];
    let mut writer = CdrWriter::new(&mut copied, Endianness::Big, Encoding::PlainXcdr2);
    DependsOnEncoding::copy_key(&mut payload_reader_of::<DependsOnEncoding>(&sample).unwrap(), &mut writer)
        .unwrap();
    assert_eq!(copied, plain);
    let mut delimited = [0; 24];
    let mut writer = CdrWriter::new(&mut delimited, Endianness::Little, Encoding::Xcdr2);
    DependsOnEncoding::copy_key(&mut payload_reader_of::<DependsOnEncoding>(&sample).unwrap(), &mut writer)
        .unwrap();
    assert_eq!(delimited, payload[4..]);
}

#[derive(Debug, Default, Clone, PartialEq, DdsType)]
#[dds(extensibility = "appendable")]
struct TwoNumbers {
    #[dds(key)]
    first: i32,
    #[dds(key)]
    second: i32,
    value: f64,
}

#[test]
fn short_keys_are_read_in_every_form() {
    for (first, second) in [(0, 0), (1, 0), (4, 0), (8, 0), (8, 4), (12, 12)] {
        let value = TwoNumbers { first, second, value: 0.5 };
        let key = Ok(TwoNumbers { value: 0.0, ..value.clone() });
        let delimited = key_payload(&value, Encoding::Xcdr2).unwrap();
        let undelimited = undelimited_key_payload::<TwoNumbers>(&delimited).unwrap();
        assert_eq!((delimited.len(), undelimited.len()), (16, 12));
        // Longer than a key hash, for Fast DDS.
        let plain = key_payload(&value, Encoding::Xcdr1).unwrap();
        assert_eq!((plain.len(), &plain[12..]), (20, &[0; 8][..]));
        for payload in [delimited, undelimited, plain] {
            assert_eq!(from_key_payload::<TwoNumbers>(&payload), key, "{payload:?}");
        }
    }
}

#[test]
fn a_delimited_key_with_a_string_in_iso_8859_1_is_recognised() {
    #[derive(Debug, Default, Clone, PartialEq, DdsType)]
    #[dds(extensibility = "appendable")]
    struct Named {
        #[dds(key)]
        name: String,
    }
    let key = Ok(Named { name: "G\u{dc}N".to_owned() });
    let delimited = [0, 9, 0, 0, 8, 0, 0, 0, 4, 0, 0, 0, 0x47, 0xdc, 0x4e, 0];
    assert_eq!(from_key_payload::<Named>(&delimited), key);
    let undelimited = [0, 9, 0, 0, 4, 0, 0, 0, 0x47, 0xdc, 0x4e, 0];
    assert_eq!(from_key_payload::<Named>(&undelimited), key);
}

#[test]
fn an_undelimited_key_that_looks_delimited_is_read_whole() {
    #[derive(Debug, Default, Clone, PartialEq, DdsType)]
    #[dds(extensibility = "appendable")]
    struct Data {
        #[dds(key)]
        data: Vec<u8>,
    }
    #[derive(Debug, Default, Clone, PartialEq, DdsType)]
    #[dds(extensibility = "final")]
    struct Outer {
        #[dds(key)]
        inner: Data,
    }
    // The first word is the length of the sequence, and would be that of a struct with an empty one.
    let data = [0, 0, 0, 0, 1, 2, 3, 4, 5];
    let key = Data { data: data.to_vec() };
    let delimited = key_payload(&key, Encoding::Xcdr2).unwrap();
    let undelimited = undelimited_key_payload::<Data>(&delimited).unwrap();
    assert_eq!(undelimited, [&[0, 9, 0, 3, 9, 0, 0, 0][..], &data, &[0; 3]].concat());
    assert_eq!(from_key_payload::<Data>(&undelimited), Ok(key.clone()));
    assert_eq!(from_key_payload::<Data>(&delimited), Ok(key.clone()));

    let outer = Outer { inner: key };
    let delimited = key_payload(&outer, Encoding::Xcdr2).unwrap();
    let undelimited = undelimited_key_payload::<Outer>(&delimited).unwrap();
    assert_eq!(from_key_payload::<Outer>(&undelimited), Ok(outer.clone()));
    assert_eq!(from_key_payload::<Outer>(&delimited), Ok(outer));
}

#[test]
fn a_delimited_key_with_more_than_this_version_of_the_type_has_is_read() {
    #[derive(Debug, Default, Clone, PartialEq, DdsType)]
    #[dds(extensibility = "appendable")]
    struct Outer {
        #[dds(key)]
        part: Part,
        #[dds(key)]
        number: u32,
    }
    // The part has another two members of eight bytes together.
    #[rustfmt::skip]
    let payload = [
        0, 9, 0, 0, 20, 0, 0, 0, 12, 0, 0, 0, 3, 0, 0, 0, 7, 7, 7, 7, 7, 7, 7, 7, 5, 0, 0, 0,
    ];
    assert_eq!(from_key_payload::<Outer>(&payload), Ok(Outer { part: Part { c: 3 }, number: 5 }));
}

/// The ids of its key members are not in the order of declaration.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(extensibility = "appendable")]
struct Reordered {
    value: f32,
    #[dds(key, id = 9)]
    late: u16,
    #[dds(key, id = 3)]
    nested: Nested,
    #[dds(id = 10)]
    text: String,
    #[dds(key, id = 1)]
    early: u32,
}

#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(extensibility = "final")]
struct Nested {
    #[dds(key, id = 2)]
    b: u8,
    note: String,
    #[dds(key, id = 1)]
    a: u16,
}

#[test]
fn key_hashes_have_the_order_of_member_ids_and_payloads_that_of_declaration() {
    let nested = Nested { b: 0x0b, note: "note".to_owned(), a: 0x0a0a };
    let value = Reordered { value: 1.5, late: 0x0909, nested, text: "text".to_owned(), early: 0x0101_0101 };
    let by_id = [1, 1, 1, 1, 0x0a, 0x0a, 0x0b, 0, 9, 9];
    let encoded = |form: Encoding| {
        let mut key = vec![0xee; value.key_size(form)];
        value.encode_key(&mut CdrWriter::new(&mut key, Endianness::Big, form)).unwrap();
        key
    };
    assert_eq!(encoded(Encoding::PlainXcdr2), by_id);
    assert_eq!(Reordered::MAX_KEY_SIZE_XCDR2, Some(10));
    let declared = [9, 9, 0x0b, 0, 0x0a, 0x0a, 0, 0, 1, 1, 1, 1];
    assert_eq!(encoded(Encoding::Xcdr1), declared);
    assert_eq!(Reordered::MAX_KEY_SIZE, Some(12));
    for encoding in [Encoding::Xcdr1, Encoding::Xcdr2] {
        let mut payload = Vec::new();
        to_payload_in(&value, encoding, &mut payload).unwrap();
        let mut copied = [0; 64];
        let mut key = CdrWriter::new(&mut copied, Endianness::Big, Encoding::PlainXcdr2);
        Reordered::copy_key(&mut payload_reader_of::<Reordered>(&payload).unwrap(), &mut key).unwrap();
        assert_eq!(key.written(), by_id, "{encoding:?}");
        let key = from_key_payload::<Reordered>(&key_payload(&value, encoding).unwrap()).unwrap();
        assert_eq!((key.late, key.nested.b, key.nested.a, key.early), (0x0909, 0x0b, 0x0a0a, 0x0101_0101));
    }
}

/// A key member of this type means all its members, but of each only its own key. From the tests of Cyclone DDS.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(extensibility = "final")]
struct Keyless {
    #[dds(id = 3)]
    x: u8,
    #[dds(id = 2)]
    y: u8,
    #[dds(id = 1)]
    z: Innermost,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, DdsType)]
#[dds(extensibility = "final")]
struct Innermost {
    #[dds(key)]
    a: u8,
    b: u8,
    #[dds(key)]
    c: u64,
}

/// Checks the key of a value in this form (big-endian), encoded and copied from samples, and that it reads as
/// `only_key`.
fn check_key<T: DdsType + PartialEq + std::fmt::Debug>(
    value: &T,
    only_key: &T,
    form: Encoding,
    expected: &[u8],
) -> Result<(), CdrError> {
    let mut key = vec![0xee; value.key_size(form)];
    value.encode_key(&mut CdrWriter::new(&mut key, Endianness::Big, form))?;
    assert_eq!(key, expected);
    for encoding in [Encoding::Xcdr1, Encoding::Xcdr2] {
        let sample = encode(value, Endianness::Little, encoding)?;
        let mut copied = [0xee; 64];
        let mut writer = CdrWriter::new(&mut copied, Endianness::Big, form);
        T::copy_key(&mut CdrReader::new(&sample, Endianness::Little, encoding), &mut writer)?;
        assert_eq!(writer.written(), expected, "{encoding:?}");
    }
    assert_eq!(&T::decode_key(&mut CdrReader::new(&key, Endianness::Big, form))?, only_key);
    Ok(())
}

#[test]
fn of_a_struct_without_keys_each_member_contributes_its_own_key() {
    #[derive(Clone, Debug, Default, PartialEq, DdsType)]
    #[dds(extensibility = "final")]
    struct Outer {
        #[dds(key, id = 3)]
        d: Keyless,
        #[dds(id = 2)]
        e: u32,
        #[dds(key, id = 1)]
        f: u32,
    }
    let z = Innermost { a: 3, b: 4, c: 5 };
    let value = Outer { d: Keyless { x: 1, y: 2, z: z.clone() }, e: 10, f: 20 };
    let only_key = Outer { d: Keyless { x: 1, y: 2, z: Innermost { b: 0, ..z } }, e: 0, f: 20 };
    let declared = [1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 20];
    check_key(&value, &only_key, Encoding::Xcdr2, &declared).unwrap();
    let by_id = [0, 0, 0, 20, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 2, 1];
    check_key(&value, &only_key, Encoding::PlainXcdr2, &by_id).unwrap();
    assert_eq!(Outer::MAX_KEY_SIZE_XCDR2, Some(by_id.len()));
    let aligned = [1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 20];
    check_key(&value, &only_key, Encoding::Xcdr1, &aligned).unwrap();
    assert_eq!(Outer::MAX_KEY_SIZE, Some(aligned.len()));
    #[rustfmt::skip]
    assert_eq!(key_payload(&value, Encoding::Xcdr2).unwrap(), [
        0, 7, 0, 0, 1, 2, 3, 0, 5, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0,
    ]);
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, DdsType)]
#[dds(extensibility = "final")]
struct Item {
    #[dds(key)]
    a: u32,
    b: u32,
}

#[test]
fn of_a_collection_each_element_contributes_its_own_key() {
    #[derive(Clone, Debug, Default, PartialEq, DdsType)]
    #[dds(extensibility = "final")]
    struct Sequence {
        #[dds(key)]
        items: Vec<Item>,
    }
    #[derive(Clone, Debug, Default, PartialEq, DdsType)]
    #[dds(extensibility = "final")]
    struct Bounded {
        #[dds(key, max_len = 2)]
        items: Vec<Item>,
    }
    #[derive(Clone, Debug, Default, PartialEq, DdsType)]
    #[dds(extensibility = "final")]
    struct Array {
        #[dds(key)]
        items: [[Item; 1]; 2],
    }
    #[derive(Clone, Debug, Default, PartialEq, DdsType)]
    #[dds(extensibility = "final")]
    struct Map {
        #[dds(key)]
        items: std::collections::BTreeMap<u32, Item>,
    }
    let (items, keys) =
        ([Item { a: 5, b: 6 }, Item { a: 7, b: 8 }], [Item { a: 5, b: 0 }, Item { a: 7, b: 0 }]);
    let sequence = |items: &[Item]| Sequence { items: items.to_vec() };
    let bounded = |items: &[Item]| Bounded { items: items.to_vec() };
    let delimited = [0, 0, 0, 12, 0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0, 7];
    check_key(&sequence(&items), &sequence(&keys), Encoding::PlainXcdr2, &delimited).unwrap();
    check_key(&sequence(&items), &sequence(&keys), Encoding::Xcdr2, &delimited).unwrap();
    check_key(&sequence(&items), &sequence(&keys), Encoding::Xcdr1, &delimited[4..]).unwrap();
    check_key(&bounded(&items), &bounded(&keys), Encoding::PlainXcdr2, &delimited).unwrap();
    assert_eq!((Bounded::MAX_KEY_SIZE, Bounded::MAX_KEY_SIZE_XCDR2), (Some(12), Some(16)));
    let many = Bounded { items: vec![Item::default(); 3] };
    assert_eq!(key_payload(&many, Encoding::Xcdr1), Err(CdrError::BoundExceeded { max: 2 }));

    let array = |items: &[Item; 2]| Array { items: items.clone().map(|item| [item]) };
    let nested = [0, 0, 0, 16, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 4, 0, 0, 0, 7];
    check_key(&array(&items), &array(&keys), Encoding::PlainXcdr2, &nested).unwrap();
    check_key(&array(&items), &array(&keys), Encoding::Xcdr1, &[0, 0, 0, 5, 0, 0, 0, 7]).unwrap();
    assert_eq!((Array::MAX_KEY_SIZE, Array::MAX_KEY_SIZE_XCDR2), (Some(8), Some(20)));

    let map = |items: &[Item]| Map { items: (1..).zip(items.to_vec()).collect() };
    let entries = [0, 0, 0, 20, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0, 2, 0, 0, 0, 7];
    check_key(&map(&items), &map(&keys), Encoding::PlainXcdr2, &entries).unwrap();
    check_key(&map(&items), &map(&keys), Encoding::Xcdr1, &entries[4..]).unwrap();
}
