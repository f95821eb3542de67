//! The trait of structs that can be the type of a topic.

use crate::{CdrError, CdrReader, CdrValue, CdrWriter, Encoding, Extensibility};

/// A struct that can be the type of a topic.
///
/// Implemented by `#[derive(DdsType)]`, with these attributes:
///
/// | where | attribute | meaning |
/// |---|---|---|
/// | struct | `#[dds(extensibility = "final")]` or `"appendable"` | required: vendors disagree on the default, and a mismatch is a silent failure |
/// | struct | `#[dds(name = "ShapeType")]` | the type name announced to peers; the struct's name if absent |
/// | struct | `#[dds(crate = "path::to::cdr")]` | where this crate is found; `weir-dds` and `weir-cdr` are found without it |
/// | field | `#[dds(key)]` | the field belongs to the key; of a struct that has key fields itself, only those |
/// | field | `#[dds(max_len = 128)]` | a bound on a `String` (in octets, without the NUL), `Vec`, `Bytes` or `BTreeMap` |
/// | field | `#[dds(id = 7)]` | the member id, else one more than that of the field before; counts for `Option`s in XCDR1 |
///
/// A field may be an `Option`, unless it is a key. It is recognised by its name.
///
/// The macro accepts enums too, as types of fields (they get [`CdrValue`] only). An enum without fields is an
/// enumeration with the values that Rust gives its variants; of other values, no sample can be decoded. An enum with
/// fields is a union:
///
/// | where | attribute | meaning |
/// |---|---|---|
/// | enumeration | `#[dds(bit_bound = 16)]` | how many bits its values have, 32 if absent |
/// | union | `#[dds(extensibility = "final")]` or `"appendable"` | required |
/// | union | `#[dds(discriminator = "u8")]` | the integer type that tells the variants apart, `i32` if absent, as for an enumeration |
/// | variant of a union | `#[dds(case = 1, case = 2)]` | the discriminators that mean this variant; the first is written |
/// | variant of a union | `#[dds(default)]` | all others mean this variant; the smallest of them, from 0 on, is written |
/// | enumeration, union | `#[dds(crate = "path::to::cdr")]` | as for structs |
///
/// A variant of a union has one unnamed field (with `max_len` if need be) or none:
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
/// A key is its members in declaration order, in the encoding of the writer or reader that it is given: in
/// [`Encoding::Xcdr2`], the form of payloads, the keys of appendable types are delimited; in [`Encoding::PlainXcdr2`],
/// the form of key hashes, they are not.
///
/// Types without an extensibility, and types that contain sequences of themselves (data could nest them without limit,
/// and exhaust the stack), do not compile:
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

    /// Whether the type has key members, and its topics therefore instances.
    const HAS_KEY: bool;

    /// The largest possible size in bytes of the serialized key, `None` if unbounded. Decides between the two kinds of
    /// key hash (RTPS 2.5 §9.6.4.8).
    const MAX_KEY_SIZE: Option<usize> = if Self::HAS_KEY { Self::KEY_LAYOUT.max_size() } else { Some(0) };

    /// The same for keys in [`Encoding::PlainXcdr2`].
    const MAX_KEY_SIZE_XCDR2: Option<usize> =
        if Self::HAS_KEY { Self::KEY_LAYOUT.max_size_in(Encoding::PlainXcdr2) } else { Some(0) };

    /// The serialized size in bytes, without the encapsulation header and without padding behind the value.
    #[inline]
    fn serialized_size(&self, encoding: Encoding) -> usize {
        self.end_offset(0, encoding)
    }

    /// Writes the key members in declaration order; nothing if there are none.
    ///
    /// # Errors
    /// As [`CdrValue::encode`].
    #[inline]
    fn encode_key(&self, writer: &mut CdrWriter<'_>) -> Result<(), CdrError> {
        if Self::HAS_KEY { self.encode_as_key(writer) } else { Ok(()) }
    }

    /// The size in bytes of what [`encode_key`](Self::encode_key) writes.
    #[inline]
    fn key_size(&self, encoding: Encoding) -> usize {
        if Self::HAS_KEY { self.end_offset_as_key(0, encoding) } else { 0 }
    }

    /// Writes the key members of the serialized sample in `payload`, in the writer's byte order, without building the
    /// sample. What follows the last key member is not looked at.
    ///
    /// # Errors
    /// When the data are not a sample of this type, as far as they are looked at; [`CdrError::BufferTooSmall`].
    #[inline]
    fn copy_key(payload: &mut CdrReader<'_>, key: &mut CdrWriter<'_>) -> Result<(), CdrError> {
        if Self::HAS_KEY { Self::copy_as_key(payload, key) } else { Ok(()) }
    }

    /// Reads what [`encode_key`](Self::encode_key) writes: a sample with only the key members set.
    ///
    /// # Errors
    /// When the data are not a key of this type.
    #[inline]
    fn decode_key(reader: &mut CdrReader<'_>) -> Result<Self, CdrError> {
        let mut value = Self::default();
        if Self::HAS_KEY {
            value.decode_as_key(reader)?;
        }
        Ok(value)
    }
}
