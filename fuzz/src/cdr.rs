//! Arbitrary bytes as samples of derived types: decoding, skipping, extracting the key and encoding
//! again must agree.

use weir_cdr::{
    CdrError, CdrReader, CdrWriter, DdsType, Encoding, Endianness, from_payload, from_payload_into,
    payload_reader_of, to_payload,
};

/// Decodes a payload; the first byte chooses the type and the encoding.
///
/// # Panics
///
/// If two ways of reading the same bytes disagree.
pub fn run(data: &[u8]) {
    let Some((choice, payload)) = data.split_first() else { return };
    match choice % 4 {
        0 => payload_of::<Primitives>(payload),
        1 => payload_of::<Nested>(payload),
        2 => body_of::<Primitives>(choice >> 2, payload),
        _ => body_of::<Nested>(choice >> 2, payload),
    }
}

/// Returns seeds for the corpus: name and bytes.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let primitives = Primitives {
        name: "weir".into(),
        bytes: vec![1, 2, 3],
        truth: true,
        big: -5,
        ..Primitives::default()
    };
    let part = Part { id: [7; 4], weight: 0.5, note: "n".into() };
    let nested = Nested {
        key: part.clone(),
        parts: vec![part, Part::default()],
        words: vec!["a".into(), String::new()],
        ..Nested::default()
    };
    vec![("primitives", with_choice(0, &primitives)), ("nested", with_choice(1, &nested))]
}

fn with_choice<T: DdsType>(choice: u8, value: &T) -> Vec<u8> {
    let mut data = vec![choice];
    to_payload(value, &mut data).expect("a seed can be encoded");
    data
}

/// Reads a payload with its header in every way.
fn payload_of<T: DdsType>(payload: &[u8]) {
    let Ok(value) = from_payload::<T>(payload) else { return };
    if has_grown(&value, payload) {
        return;
    }
    let bytes = encoded(&value);
    let mut reused = T::default();
    from_payload_into(payload, &mut reused).expect("what can be decoded can be decoded into a value");
    assert_eq!(encoded(&reused), bytes);
    from_payload_into(payload, &mut reused).expect("also over another value");
    assert_eq!(encoded(&reused), bytes);
    assert_eq!(encoded(&from_payload::<T>(&bytes).expect("own payloads can be decoded")), bytes);

    let key = key_of(&value);
    let mut reader = payload_reader_of::<T>(payload).expect("the header was read before");
    let mut copied = vec![0; payload.len() + 64];
    let mut writer = CdrWriter::new(&mut copied, Endianness::Big, Encoding::Xcdr1);
    let is_copied = T::copy_key(&mut reader, &mut writer).is_ok();
    // Key members that the sender of an appendable type lacks are defaults in the value, and make
    // no key.
    assert!(is_copied || reader.encoding() == Encoding::Xcdr2, "the key of a valid sample can be extracted");
    if !is_copied {
        return;
    }
    assert_eq!(writer.written(), key, "the key extracted from the bytes is that of the value");
    let again = T::decode_key(&mut CdrReader::new(&key, Endianness::Big, Encoding::Xcdr1))
        .expect("own keys can be decoded");
    assert_eq!(key_of(&again), key);
    assert!(T::MAX_KEY_SIZE.is_none_or(|max| key.len() <= max), "no key is larger than the largest one");
}

/// Reads a body in either byte order and encoding version.
fn body_of<T: DdsType>(choice: u8, body: &[u8]) {
    let endianness = if choice & 1 == 0 { Endianness::Little } else { Endianness::Big };
    let encoding = if choice & 2 == 0 { Encoding::Xcdr1 } else { Encoding::Xcdr2 };
    let reader = || CdrReader::new(body, endianness, encoding);
    let mut decoding = reader();
    let Ok(value) = T::decode(&mut decoding) else { return };
    if has_grown(&value, body) {
        return;
    }
    let mut out = vec![0; value.serialized_size(encoding)];
    let mut writer = CdrWriter::new(&mut out, endianness, encoding);
    value.encode(&mut writer).expect("a value fits its size");
    assert_eq!(writer.position(), writer.written().len());
    let len = writer.position();
    assert_eq!(len, out.len(), "the size of a value is exact");
    let again = T::decode(&mut CdrReader::new(&out, endianness, encoding)).expect("own bytes can be decoded");
    assert_eq!(encoded(&again), encoded(&value));
    let mut skipping = reader();
    T::skip(&mut skipping).expect("what can be decoded can be skipped");
    assert_eq!(skipping.position(), decoding.position(), "skipping reads as far as decoding");
}

/// Whether a text exceeds its bound now: read as ISO 8859-1, it has up to twice as many bytes in UTF-8, and a bound
/// counts bytes.
fn has_grown<T: DdsType>(value: &T, bytes: &[u8]) -> bool {
    let result = to_payload(value, &mut Vec::new());
    matches!(result, Err(CdrError::BoundExceeded { .. })) && !bytes.is_ascii()
}

fn encoded<T: DdsType>(value: &T) -> Vec<u8> {
    let mut payload = Vec::new();
    to_payload(value, &mut payload).expect("a decoded value can be encoded");
    payload
}

fn key_of<T: DdsType>(value: &T) -> Vec<u8> {
    let mut key = vec![0; value.key_size(Encoding::Xcdr1)];
    let mut writer = CdrWriter::new(&mut key, Endianness::Big, Encoding::Xcdr1);
    value.encode_key(&mut writer).expect("a key fits its size");
    key
}

/// Every primitive, in an order that needs padding.
#[derive(Debug, Default, Clone, DdsType)]
#[dds(extensibility = "final")]
struct Primitives {
    small: u8,
    #[dds(key)]
    big: i64,
    truth: bool,
    half: u16,
    single: f32,
    signed: i8,
    double: f64,
    short: i16,
    word: u32,
    #[dds(key)]
    long: i32,
    bytes: Vec<u8>,
    huge: u64,
    name: String,
    numbers: Vec<u64>,
    row: [i16; 3],
}

/// Nested structs, with nested keys.
#[derive(Debug, Default, Clone, DdsType)]
#[dds(extensibility = "appendable")]
struct Nested {
    before: u8,
    #[dds(key)]
    key: Part,
    parts: Vec<Part>,
    words: Vec<String>,
    #[dds(max_len = 5)]
    bounded: Vec<u32>,
    #[dds(key, max_len = 9)]
    label: String,
    pair: [Part; 2],
    rows: Vec<Vec<u16>>,
}

#[derive(Debug, Default, Clone, DdsType)]
#[dds(extensibility = "final")]
struct Part {
    #[dds(key)]
    id: [u8; 4],
    weight: f64,
    note: String,
}
