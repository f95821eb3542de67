//! Runs, compared with the same members one by one.

use proptest::prelude::*;
use weir_cdr::{
    CdrError, CdrReader, CdrValue, CdrWriter, DdsType, ENCAPSULATION_LEN, Encoding, Endianness,
    encode_payload_in, from_payload_into, payload_len_in,
};

/// Every form, including that of key hashes.
const FORMS: [(Endianness, Encoding); 6] = [
    (Endianness::Little, Encoding::Xcdr1),
    (Endianness::Big, Encoding::Xcdr1),
    (Endianness::Little, Encoding::Xcdr2),
    (Endianness::Big, Encoding::Xcdr2),
    (Endianness::Little, Encoding::PlainXcdr2),
    (Endianness::Big, Encoding::PlainXcdr2),
];

/// A value by its members: each on its own, at the position where the previous one ended.
trait ByMembers: DdsType {
    fn encode_each(&self, writer: &mut CdrWriter<'_>) -> Result<(), CdrError>;
    fn decode_each(reader: &mut CdrReader<'_>) -> Result<Self, CdrError>;
}

/// A value from an endless sequence of numbers.
trait Random: Sized {
    fn random(numbers: &mut Numbers) -> Self;
}

/// SplitMix64.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

macro_rules! random_numbers {
    ($($number:ty),*) => {$(
        impl Random for $number {
            fn random(numbers: &mut Numbers) -> Self {
                numbers.next() as Self
            }
        }
    )*};
}

random_numbers!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64);

impl Random for bool {
    fn random(numbers: &mut Numbers) -> Self {
        numbers.next() % 2 == 1
    }
}

impl<T: Random, const N: usize> Random for [T; N] {
    fn random(numbers: &mut Numbers) -> Self {
        std::array::from_fn(|_| T::random(numbers))
    }
}

impl<T: Random> Random for Vec<T> {
    fn random(numbers: &mut Numbers) -> Self {
        (0..numbers.next() % 4).map(|_| T::random(numbers)).collect()
    }
}

impl Random for String {
    fn random(numbers: &mut Numbers) -> Self {
        (0..numbers.next() % 6).map(|_| char::from(b'a' + (numbers.next() % 26) as u8)).collect()
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, DdsType)]
enum Color {
    #[default]
    Red,
    Green = 5,
    Blue = -1,
}

impl Random for Color {
    fn random(numbers: &mut Numbers) -> Self {
        [Self::Red, Self::Green, Self::Blue][(numbers.next() % 3) as usize]
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, DdsType)]
#[dds(bit_bound = 9)]
enum Small {
    #[default]
    One = 1,
    Two,
}

impl Random for Small {
    fn random(numbers: &mut Numbers) -> Self {
        if bool::random(numbers) { Self::One } else { Self::Two }
    }
}

/// A union all of whose values have the same size.
#[derive(Clone, Copy, Debug, PartialEq, DdsType)]
#[dds(extensibility = "final", discriminator = "u8")]
enum Either {
    #[dds(case = 1)]
    Number(u32),
    #[dds(case = 2)]
    Float(f32),
}

impl Default for Either {
    fn default() -> Self {
        Self::Number(0)
    }
}

impl Random for Either {
    fn random(numbers: &mut Numbers) -> Self {
        if bool::random(numbers) { Self::Number(u32::random(numbers)) } else { Self::Float(1.5) }
    }
}

/// Types with both codecs: the derived one, and one that handles each member on its own.
macro_rules! types {
    ($($extensibility:literal $name:ident { $($member:ident: $ty:ty),* })*) => {$(
        #[derive(Clone, Debug, Default, DdsType)]
        #[dds(extensibility = $extensibility)]
        struct $name { $($member: $ty),* }

        impl Random for $name {
            fn random(numbers: &mut Numbers) -> Self {
                Self { $($member: Random::random(numbers)),* }
            }
        }

        impl ByMembers for $name {
            fn encode_each(&self, writer: &mut CdrWriter<'_>) -> Result<(), CdrError> {
                let is_delimited = $extensibility == "appendable" && writer.encoding().delimits_appendables();
                let open = if is_delimited { Some(writer.open_appendable()?) } else { None };
                $(CdrValue::encode(&self.$member, writer)?;)*
                open.map_or(Ok(()), |open| writer.close_delimited(open))
            }

            fn decode_each(reader: &mut CdrReader<'_>) -> Result<Self, CdrError> {
                let is_delimited = $extensibility == "appendable" && reader.encoding().delimits_appendables();
                let open = if is_delimited { Some(reader.open_appendable()?) } else { None };
                let mut value = Self::default();
                $(if !is_delimited || reader.remaining() > 0 {
                    value.$member = CdrValue::decode(reader)?;
                })*
                open.map(|open| reader.close_delimited(open));
                Ok(value)
            }
        }
    )*};
}

types! {
    "final" Inner { x: i16, y: u32, mark: u8 }
    "final" Rising { a: u8, b: u16, c: u32, d: u64 }
    "appendable" Open { x: u8, y: i64, flag: bool }
    "final" Around { a: u32, b: Open, c: u16, d: u32 }
    "final" Text { id: u16, text: String, tail: u8 }
    "final" Tail { a: [u8; 4], b: i32, c: u32, d: Vec<u8> }
    "appendable" OpenTail { a: u8, b: Vec<u8> }
    "final" DeepTail { a: u16, b: u16, c: OpenTail }
    "final" R00 { a: [Open; 2], b: [u16; 2], c: Small, d: u8, e: Rising, f: u64, g: i16 }
    "final" R01 { a: f64, b: i16, c: [u8; 3], d: u64, e: i16, f: u16, g: u16, h: f64 }
    "final" R02 { a: f64, b: [bool; 3], c: i8, d: f64 }
    "appendable" R03 { a: String, b: i64, c: i16, d: Vec<Color>, e: Small, f: f32, g: i32, h: [u64; 0] }
    "final" R04 { a: u64, b: i32, c: i64 }
    "final" R05 { a: Vec<u64>, b: Text, c: i32 }
    "final" R06 { a: i8, b: String, c: [u16; 2], d: u32, e: [i32; 5], f: u64, g: [Inner; 2], h: i64, i: f64 }
    "final" R07 { a: u32, b: i16 }
    "final" R08 { a: i64, b: u32, c: Text, d: f32, e: u64, f: Vec<Inner>, g: Rising, h: u16, i: bool }
    "final" R09 { a: Inner, b: u8, c: f32, d: f64, e: u16, f: [u8; 3], g: bool, h: [Open; 2], i: u64 }
    "final" R10 { a: i8, b: String, c: i32, d: i8, e: u16, f: i32, g: i8, h: Vec<u64> }
    "appendable" R11 { a: Vec<u64>, b: i8, c: i64, d: String, e: u32, f: i8 }
    "appendable" R12 { a: u16, b: i16, c: Vec<u8>, d: f32, e: Either, f: bool }
    "final" R13 { a: u16, b: i16, c: f32, d: i16, e: i16, f: Text }
    "appendable" R14 { a: i64, b: u8, c: Either, d: u32, e: f64 }
    "final" R15 { a: Vec<Color>, b: [Inner; 2], c: i8, d: i16, e: i64, f: [u8; 3], g: bool, h: bool, i: bool }
    "appendable" R16 { a: Either, b: u16, c: bool, d: u64, e: i8, f: [f64; 2], g: Color, h: i64 }
    "final" R17 { a: f64, b: Vec<Inner>, c: Inner, d: u16 }
    "final" R18 { a: u16, b: i16, c: Rising }
    "appendable" R19 { a: i16, b: [Inner; 2], c: u64, d: Color, e: [Inner; 2] }
    "final" R20 { a: Vec<u8>, b: u16, c: u8, d: Either, e: u8, f: Inner, g: i64, h: i8 }
    "final" R21 { a: [i32; 5], b: Small, c: Color, d: u32, e: i8, f: f32, g: i8 }
    "appendable" R22 { a: [i32; 5], b: i64, c: i16, d: [u64; 0], e: Rising }
    "final" R23 { a: u64, b: i8, c: [[u8; 3]; 2], d: bool }
    "final" Long { m0: i8, m1: u16, m2: bool, m3: bool, m4: i32, m5: u16, m6: u32, m7: u16, m8: i64, m9: i16, m10: i8, m11: u64, m12: i64, m13: u16, m14: bool, m15: i16, m16: u16, m17: u64, m18: f32, m19: u64 }
}

/// The identity of a value, as bytes: NaNs with the same bits are equal.
fn identity<T: ByMembers>(value: &T) -> Vec<u8> {
    let (endianness, encoding) = FORMS[0];
    let mut bytes = vec![0; value.end_offset(0, encoding)];
    value.encode_each(&mut CdrWriter::new(&mut bytes, endianness, encoding)).expect("there is room");
    bytes
}

/// Encodes after `start` bytes, into so much room. Returns the written bytes with padding, or the
/// error.
fn encoded(
    start: usize,
    room: usize,
    (endianness, encoding): (Endianness, Encoding),
    encode: impl FnOnce(&mut CdrWriter<'_>) -> Result<(), CdrError>,
) -> Result<Vec<u8>, CdrError> {
    let mut bytes = vec![0xee; room];
    let mut writer = CdrWriter::new(&mut bytes, endianness, encoding);
    writer.write_bytes(&vec![0; start])?;
    encode(&mut writer)?;
    Ok(writer.written().to_vec())
}

/// Reads `bytes` with all functions, which must agree: in the value or the error, and in the end
/// position.
fn reads_the_same<T: ByMembers + Random>(
    bytes: &[u8],
    start: usize,
    (endianness, encoding): (Endianness, Encoding),
    used: &mut T,
) -> Result<(), TestCaseError> {
    let mut readers = [0; 3].map(|_| CdrReader::new(bytes, endianness, encoding));
    for reader in &mut readers {
        reader.take_bytes(start)?;
    }
    let [each, whole, over] = &mut readers;
    let expected = T::decode_each(each).map(|value| (identity(&value), each.position()));
    let decoded = T::decode(whole).map(|value| (identity(&value), whole.position()));
    prop_assert_eq!(&decoded, &expected, "{:?} {:?} at {}", endianness, encoding, start);
    let over = used.decode_into(over).map(|()| (identity(used), over.position()));
    prop_assert_eq!(&over, &expected, "{:?} {:?} at {}", endianness, encoding, start);
    Ok(())
}

/// Payloads have separate code paths. They must contain the members, and nothing of the previous
/// content.
fn is_whole_as_payload<T: ByMembers + Random>(value: &T, used: &mut T) -> Result<(), TestCaseError> {
    for encoding in [Encoding::Xcdr1, Encoding::Xcdr2] {
        let len = payload_len_in(value, encoding);
        let mut expected = vec![0; len];
        let body = &mut expected[ENCAPSULATION_LEN..];
        let mut writer = CdrWriter::new(body, Endianness::Little, encoding);
        value.encode_each(&mut writer)?;
        let padding = len - ENCAPSULATION_LEN - writer.position();
        prop_assert!(padding < 4);
        let mut payload = vec![0xee; len + 5];
        prop_assert_eq!(encode_payload_in(value, encoding, &mut payload), Ok(len));
        prop_assert_eq!(&payload[ENCAPSULATION_LEN..len], &expected[ENCAPSULATION_LEN..]);
        prop_assert_eq!(&payload[len..], &[0xee; 5]);
        prop_assert_eq!(usize::from(payload[3]), padding);
        for room in 0..len {
            let short = encode_payload_in(value, encoding, &mut vec![0; room]);
            prop_assert_eq!(short, Err(CdrError::BufferTooSmall));
        }
        for len in ENCAPSULATION_LEN..=len {
            let mut reader = CdrReader::new(&payload[ENCAPSULATION_LEN..len], Endianness::Little, encoding);
            let each = T::decode_each(&mut reader).map(|value| identity(&value));
            let read = from_payload_into(&payload[..len], used).map(|()| identity(used));
            prop_assert_eq!(read, each, "{:?} cut to {}", encoding, len);
        }
    }
    Ok(())
}

fn differs_nowhere<T: ByMembers + Random>(seed: u64) -> Result<(), TestCaseError> {
    let mut numbers = Numbers(seed);
    let value = T::random(&mut numbers);
    is_whole_as_payload(&value, &mut T::random(&mut numbers))?;
    for form in FORMS {
        for start in 0..9 {
            let end = value.end_offset(start, form.1);
            let bytes = encoded(start, end, form, |writer| value.encode(writer))?;
            prop_assert_eq!(&bytes, &encoded(start, end, form, |writer| value.encode_each(writer))?);
            prop_assert_eq!(bytes.len(), end);
            for room in start..end {
                let short = encoded(start, room, form, |writer| value.encode(writer));
                prop_assert_eq!(short, encoded(start, room, form, |writer| value.encode_each(writer)));
            }
            let mut damaged = bytes.clone();
            if let Some(byte) = damaged.get_mut(start + numbers.next() as usize % (end - start)) {
                *byte = numbers.next() as u8;
            }
            let mut used = T::random(&mut numbers);
            for len in start..=end {
                reads_the_same(&bytes[..len], start, form, &mut used)?;
                reads_the_same(&damaged[..len], start, form, &mut used)?;
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]

    #[test]
    fn runs_are_what_their_members_are(seed in any::<u64>()) {
        differs_nowhere::<Inner>(seed)?;
        differs_nowhere::<Rising>(seed)?;
        differs_nowhere::<Open>(seed)?;
        differs_nowhere::<Around>(seed)?;
        differs_nowhere::<Text>(seed)?;
        differs_nowhere::<Long>(seed)?;
        differs_nowhere::<Tail>(seed)?;
        differs_nowhere::<OpenTail>(seed)?;
        differs_nowhere::<DeepTail>(seed)?;
        differs_nowhere::<R00>(seed)?;
        differs_nowhere::<R01>(seed)?;
        differs_nowhere::<R02>(seed)?;
        differs_nowhere::<R03>(seed)?;
        differs_nowhere::<R04>(seed)?;
        differs_nowhere::<R05>(seed)?;
        differs_nowhere::<R06>(seed)?;
        differs_nowhere::<R07>(seed)?;
        differs_nowhere::<R08>(seed)?;
        differs_nowhere::<R09>(seed)?;
        differs_nowhere::<R10>(seed)?;
        differs_nowhere::<R11>(seed)?;
        differs_nowhere::<R12>(seed)?;
        differs_nowhere::<R13>(seed)?;
        differs_nowhere::<R14>(seed)?;
        differs_nowhere::<R15>(seed)?;
        differs_nowhere::<R16>(seed)?;
        differs_nowhere::<R17>(seed)?;
        differs_nowhere::<R18>(seed)?;
        differs_nowhere::<R19>(seed)?;
        differs_nowhere::<R20>(seed)?;
        differs_nowhere::<R21>(seed)?;
        differs_nowhere::<R22>(seed)?;
        differs_nowhere::<R23>(seed)?;
    }
}
