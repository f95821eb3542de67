//! The trait of structs that can be the type of a topic.

use crate::{CdrReader, CdrValue, CdrWriter, Encoding, Extensibility, Result};

/// A struct that can be the type of a topic.
///
/// Implemented by `#[derive(DdsType)]`, with these attributes:
///
/// | where | attribute | meaning |
/// |---|---|---|
/// | struct | `#[dds(extensibility = "final")]` or `"appendable"` | required, see below |
/// | struct | `#[dds(name = "ShapeType")]` | the type name announced to peers; default: the struct's name |
/// | struct | `#[dds(crate = "path::to::cdr")]` | the path of this crate, if not through `weir-dds` or `weir-cdr` |
/// | field | `#[dds(key)]` | part of the key |
/// | field | `#[dds(max_len = 128)]` | bound on a `String`, `Vec`, `Bytes` or `BTreeMap` |
/// | field | `#[dds(id = 7)]` | member id; default: one more than that of the previous field |
///
/// There is no default extensibility because vendors disagree on it, and a mismatch fails silently.
/// If a key field is a struct with key fields, only those belong to the key; if it is another struct or a collection,
/// the same holds for its fields or elements. The bound of a `String` is in bytes, without the NUL. Member ids matter
/// for `Option`s in XCDR1, and for key hashes in XCDR2.
///
/// A field may be an `Option`, unless it is a key. It is recognised by its name.
///
/// The macro also accepts enums, as types of fields (they implement [`CdrValue`] only). An enum
/// without fields is an enumeration with the values that Rust gives its variants; samples with
/// other values cannot be decoded. An enum with fields is a union:
///
/// | where | attribute | meaning |
/// |---|---|---|
/// | enumeration | `#[dds(bit_bound = 16)]` | number of bits of its values; default: 32 |
/// | union | `#[dds(extensibility = "final")]` or `"appendable"` | required |
/// | union | `#[dds(discriminator = "u8")]` | integer type of the discriminator; default: `i32` |
/// | variant of a union | `#[dds(case = 1, case = 2)]` | discriminators of this variant; the first is written |
/// | variant of a union | `#[dds(default)]` | all other discriminators; the smallest from 0 on is written |
/// | enumeration, union | `#[dds(crate = "path::to::cdr")]` | as for structs |
///
/// A variant of a union has one unnamed field (optionally with `max_len`) or none:
///
/// ```
/// #[derive(Debug, Default, PartialEq, weir_cdr::DdsType)]
/// #[dds(extensibility = "final")]
/// enum Reading {
///     #[dds(case = 1)]
///     Celsius(f32),
///     #[dds(case = 2)]
///     Text(#[dds(max_len = 32)] String),
///     #[default]
///     #[dds(default)]
///     None,
/// }
///
/// #[derive(Debug, Default, PartialEq, weir_cdr::DdsType)]
/// #[dds(extensibility = "appendable")]
/// struct Sensor {
///     #[dds(key)]
///     id: u32,
///     reading: Reading,
///     comment: Option<String>,
/// }
///
/// let sensor = Sensor { id: 3, reading: Reading::Celsius(21.5), comment: None };
/// let mut payload = Vec::new();
/// weir_cdr::to_payload(&sensor, &mut payload)?;
/// assert_eq!(weir_cdr::from_payload::<Sensor>(&payload)?, sensor);
/// # Ok::<(), weir_cdr::CdrError>(())
/// ```
///
/// A key is its members in the encoding of the given writer or reader. In [`Encoding::Xcdr1`] and [`Encoding::Xcdr2`],
/// the forms of payloads, they are in declaration order, and in XCDR2 the keys of appendable types are delimited. In
/// [`Encoding::PlainXcdr2`], the form of key hashes, they are in the order of their ids, and not delimited.
///
/// Types without an extensibility do not compile. Neither do types that contain sequences of
/// themselves: nested data could exhaust the stack.
///
/// ```compile_fail
/// #[derive(Default, weir_cdr::DdsType)]
/// struct Undecided {
///     x: i32,
/// }
/// ```
///
/// ```compile_fail
/// #[derive(Default, weir_cdr::DdsType)]
/// #[dds(extensibility = "final")]
/// struct Tree {
///     children: Vec<Tree>,
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the type of a topic",
    note = "add #[derive(Default, DdsType)] and #[dds(extensibility = \"final\")] or \"appendable\""
)]
pub trait DdsType: CdrValue + Default + Send + 'static {
    /// The type name announced to peers.
    const TYPE_NAME: &'static str;

    /// How the type may change between two programs that exchange it.
    const EXTENSIBILITY: Extensibility;

    /// Whether the type has key members. If so, its topics have instances.
    const HAS_KEY: bool;

    /// The maximum size of the serialized key in bytes, `None` if unbounded.
    ///
    /// Decides between the two kinds of key hash (RTPS 2.5, 9.6.4.8).
    const MAX_KEY_SIZE: Option<usize> = if Self::HAS_KEY { Self::KEY_LAYOUT.max_size() } else { Some(0) };

    /// The same for keys in [`Encoding::PlainXcdr2`].
    const MAX_KEY_SIZE_XCDR2: Option<usize> =
        if Self::HAS_KEY { Self::KEY_LAYOUT.max_size_in(Encoding::PlainXcdr2) } else { Some(0) };

    /// Returns the serialized size in bytes, without encapsulation header and trailing padding.
    #[inline]
    fn serialized_size(&self, encoding: Encoding) -> usize {
        self.end_offset(0, encoding)
    }

    /// Writes the key members; nothing if there are none.
    ///
    /// # Errors
    /// As [`CdrValue::encode`].
    #[inline]
    fn encode_key(&self, writer: &mut CdrWriter<'_>) -> Result {
        if Self::HAS_KEY { self.encode_as_key(writer) } else { Ok(()) }
    }

    /// Returns the size of what [`encode_key`](Self::encode_key) writes, in bytes.
    #[inline]
    fn key_size(&self, encoding: Encoding) -> usize {
        if Self::HAS_KEY { self.end_offset_as_key(0, encoding) } else { 0 }
    }

    /// Writes the key members of the serialized sample in `payload`, without decoding the sample.
    ///
    /// Writes in the writer's byte order. Reads nothing after the last key member.
    ///
    /// # Errors
    /// If the data, as far as they are read, are not a sample of this type;
    /// [`CdrError::BufferTooSmall`](crate::CdrError::BufferTooSmall).
    #[inline]
    fn copy_key(payload: &mut CdrReader<'_>, key: &mut CdrWriter<'_>) -> Result {
        if Self::HAS_KEY { Self::copy_as_key(payload, key) } else { Ok(()) }
    }

    /// Reads what [`encode_key`](Self::encode_key) writes: a sample with only the key members set.
    ///
    /// # Errors
    /// If the data are not a key of this type.
    #[inline]
    fn decode_key(reader: &mut CdrReader<'_>) -> Result<Self> {
        let mut value = Self::default();
        if Self::HAS_KEY {
            value.decode_as_key(reader)?;
        }
        Ok(value)
    }
}
