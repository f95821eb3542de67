//! The types that the tests use, and generators of their values.

use proptest::collection::vec;
use proptest::prelude::{Strategy, any};
use proptest::string::string_regex;
use weir_cdr::{CdrError, CdrReader, CdrValue, CdrWriter, DdsType, Encoding, Endianness};

/// The type of the OMG interoperability tests.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(extensibility = "appendable", name = "ShapeType")]
pub(crate) struct Shape {
    #[dds(key, max_len = 128)]
    pub(crate) color: String,
    pub(crate) x: i32,
    pub(crate) y: i32,
    pub(crate) shapesize: i32,
    pub(crate) additional_payload_size: Vec<u8>,
}

/// Every primitive type, in an order that needs padding.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(extensibility = "final")]
pub(crate) struct Primitives {
    pub(crate) flag: bool,
    pub(crate) double: f64,
    pub(crate) byte: u8,
    pub(crate) short: i16,
    pub(crate) tiny: i8,
    pub(crate) long: i32,
    pub(crate) unsigned_short: u16,
    pub(crate) long_long: i64,
    pub(crate) float: f32,
    pub(crate) unsigned_long_long: u64,
    pub(crate) unsigned_long: u32,
}

/// A point in the middle of other types. Its end is not aligned.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(extensibility = "appendable")]
pub(crate) struct Point {
    pub(crate) x: i32,
    pub(crate) mark: u8,
}

/// Collections in all combinations.
#[derive(Clone, Debug, Default, PartialEq, DdsType)]
#[dds(extensibility = "appendable")]
pub(crate) struct Collections {
    pub(crate) bytes: Vec<u8>,
    pub(crate) doubles: Vec<f64>,
    pub(crate) flags: Vec<bool>,
    pub(crate) shorts: [i16; 3],
    pub(crate) names: [String; 2],
    pub(crate) points: Vec<Point>,
    pub(crate) corners: [Point; 2],
    pub(crate) matrix: Vec<Vec<u64>>,
    pub(crate) texts: Vec<String>,
    #[dds(max_len = 4)]
    pub(crate) few: Vec<u16>,
    #[dds(max_len = 6)]
    pub(crate) short_text: String,
    pub(crate) primitives: Primitives,
    pub(crate) grid: [[u32; 2]; 2],
}

pub(crate) fn shape() -> Shape {
    Shape { color: "BLUE".to_owned(), x: 1, y: -2, shapesize: 30, additional_payload_size: vec![0xaa, 0xbb] }
}

pub(crate) fn any_text() -> impl Strategy<Value = String> {
    string_regex("[^\\x00]{0,12}").expect("the pattern is valid")
}

pub(crate) fn any_shape() -> impl Strategy<Value = Shape> {
    (any_text(), any::<[i32; 3]>(), any::<Vec<u8>>()).prop_map(|(color, [x, y, shapesize], bytes)| Shape {
        color,
        x,
        y,
        shapesize,
        additional_payload_size: bytes,
    })
}

pub(crate) fn any_primitives() -> impl Strategy<Value = Primitives> {
    let narrow = (any::<bool>(), any::<u8>(), any::<i8>(), any::<i16>(), any::<u16>());
    let wide = (any::<i32>(), any::<u32>(), any::<i64>(), any::<u64>(), any::<f32>(), any::<f64>());
    (narrow, wide).prop_map(|((flag, byte, tiny, short, unsigned_short), wide)| {
        let (long, unsigned_long, long_long, unsigned_long_long, float, double) = wide;
        Primitives {
            flag,
            double,
            byte,
            short,
            tiny,
            long,
            unsigned_short,
            long_long,
            float,
            unsigned_long_long,
            unsigned_long,
        }
    })
}

pub(crate) fn any_point() -> impl Strategy<Value = Point> {
    any::<(i32, u8)>().prop_map(|(x, mark)| Point { x, mark })
}

pub(crate) fn any_collections() -> impl Strategy<Value = Collections> {
    let numbers = (any::<Vec<u8>>(), vec(any::<f64>(), 0..5), any::<Vec<bool>>(), any::<[i16; 3]>());
    let structs = (vec(any_point(), 0..4), [any_point(), any_point()], any_primitives());
    let texts = ([any_text(), any_text()], vec(any_text(), 0..4));
    let bounded = (vec(any::<u16>(), 0..=4), string_regex("[a-z]{0,6}").expect("the pattern is valid"));
    let nested = (vec(vec(any::<u64>(), 0..4), 0..4), any::<[[u32; 2]; 2]>());
    (numbers, structs, texts, bounded, nested).prop_map(|(numbers, structs, texts, bounded, nested)| {
        Collections {
            bytes: numbers.0,
            doubles: numbers.1,
            flags: numbers.2,
            shorts: numbers.3,
            names: texts.0,
            points: structs.0,
            corners: structs.1,
            matrix: nested.0,
            texts: texts.1,
            few: bounded.0,
            short_text: bounded.1,
            primitives: structs.2,
            grid: nested.1,
        }
    })
}

pub(crate) const FORMS: [(Endianness, Encoding); 4] = [
    (Endianness::Little, Encoding::Xcdr1),
    (Endianness::Big, Encoding::Xcdr1),
    (Endianness::Little, Encoding::Xcdr2),
    (Endianness::Big, Encoding::Xcdr2),
];

/// Returns the bytes of a value, from offset 0.
pub(crate) fn encode<T: CdrValue>(
    value: &T,
    endianness: Endianness,
    encoding: Encoding,
) -> Result<Vec<u8>, CdrError> {
    // Not zeroed: padding must not depend on what was in the buffer.
    let mut bytes = vec![0xee; value.end_offset(0, encoding)];
    let mut writer = CdrWriter::new(&mut bytes, endianness, encoding);
    value.encode(&mut writer)?;
    assert_eq!(writer.position(), bytes.len(), "the size is not what was announced");
    Ok(bytes)
}

/// Decodes a value from bytes, all of which must be read.
pub(crate) fn decode<T: CdrValue>(
    bytes: &[u8],
    endianness: Endianness,
    encoding: Encoding,
) -> Result<T, CdrError> {
    let mut reader = CdrReader::new(bytes, endianness, encoding);
    let value = T::decode(&mut reader)?;
    assert_eq!(reader.remaining(), 0, "bytes are left over");
    Ok(value)
}
