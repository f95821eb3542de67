//! What a type consists of, for code that finds members by name at run time, such as content filters.
//!
//! The description of a type is a constant, which no code for encoding and decoding refers to.

use crate::{CdrReader, Encoding, Extensibility, Layout, Result, payload};

/// What a type consists of.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum TypeDescription {
    /// A type whose members have no names or no fixed meaning: a union, a map, or a type with an implementation of
    /// [`CdrValue`](crate::CdrValue) that does not describe it.
    Opaque,
    /// A boolean or a number.
    Primitive {
        /// Which one.
        primitive: Primitive,
    },
    /// A string, bounded or not.
    String,
    /// An enumeration.
    Enumeration {
        /// The integer type on the wire.
        integer: Primitive,
        /// The names of the enumerators, with their values, in the order of declaration.
        enumerators: &'static [(&'static str, i64)],
    },
    /// A sequence, bounded or not.
    Sequence {
        /// Its elements.
        element: &'static ElementDescription,
    },
    /// An array.
    Array {
        /// Its elements.
        element: &'static ElementDescription,
        /// Number of elements.
        len: usize,
    },
    /// A struct.
    Struct {
        /// Its name and its members.
        description: &'static StructDescription,
    },
}

/// A primitive type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Primitive {
    /// `bool`.
    Bool,
    /// `u8`.
    U8,
    /// `i8`.
    I8,
    /// `u16`.
    U16,
    /// `i16`.
    I16,
    /// `u32`.
    U32,
    /// `i32`.
    I32,
    /// `u64`.
    U64,
    /// `i64`.
    I64,
    /// `f32`.
    F32,
    /// `f64`.
    F64,
}

/// The elements of a sequence or of an array.
#[derive(Clone, Copy, Debug)]
pub struct ElementDescription {
    /// The type of an element.
    pub of: TypeDescription,
    /// The layout of an element.
    pub layout: Layout,
    /// Whether XCDR2 delimits the collection.
    pub is_delimited: bool,
    /// Skips that many consecutive elements.
    pub skip_many: fn(usize, &mut CdrReader<'_>) -> Result,
}

/// A struct.
#[derive(Clone, Copy, Debug)]
pub struct StructDescription {
    /// The name of the type.
    pub name: &'static str,
    /// How it may change.
    pub extensibility: Extensibility,
    /// The members in the order of declaration.
    pub members: &'static [MemberDescription],
}

/// A member of a struct.
#[derive(Clone, Copy, Debug)]
pub struct MemberDescription {
    /// Its name.
    pub name: &'static str,
    /// Its type; of an optional member, that of the value.
    pub of: TypeDescription,
    /// Its layout.
    pub layout: Layout,
    /// Skips it.
    pub skip: fn(&mut CdrReader<'_>) -> Result,
    /// Reads what precedes the value of an optional member. `None`: it is not optional.
    pub open: Option<OpenOptional>,
}

/// Reads what precedes the value of an optional member. Returns a reader of the value, unless it is absent.
pub type OpenOptional = for<'a> fn(&mut CdrReader<'a>) -> Result<Option<CdrReader<'a>>>;

impl TypeDescription {
    /// The name of the type in messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Opaque => "a union, a map or an opaque type",
            Self::Primitive { primitive } => primitive.name(),
            Self::String => "a string",
            Self::Enumeration { .. } => "an enumeration",
            Self::Sequence { .. } => "a sequence",
            Self::Array { .. } => "an array",
            Self::Struct { .. } => "a struct",
        }
    }

    /// Returns a reader at the first byte after the encapsulation header, for a payload of this type.
    ///
    /// # Errors
    /// As [`payload_reader_of`](crate::payload_reader_of).
    #[inline]
    pub fn payload_reader<'a>(&self, payload: &'a [u8]) -> Result<CdrReader<'a>> {
        let is_appendable = match self {
            Self::Struct { description } => description.extensibility == Extensibility::Appendable,
            _ => false,
        };
        payload::payload_reader(payload, is_appendable)
    }
}

impl Primitive {
    /// The name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "a boolean",
            Self::U8 => "a u8",
            Self::I8 => "an i8",
            Self::U16 => "a u16",
            Self::I16 => "an i16",
            Self::U32 => "a u32",
            Self::I32 => "an i32",
            Self::U64 => "a u64",
            Self::I64 => "an i64",
            Self::F32 => "an f32",
            Self::F64 => "an f64",
        }
    }
}

impl Layout {
    /// Returns the end of a value that starts at `start`, if it is the same for all values, whatever
    /// precedes it.
    pub const fn fixed_end(self, start: usize, encoding: Encoding) -> Option<usize> {
        match crate::Run::of(self).at(start, encoding) {
            Some(extent) => Some(encoding.align(start, extent.first_alignment) + extent.len),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CdrValue, DdsType};

    #[derive(Default, DdsType)]
    #[dds(extensibility = "final")]
    struct Inner {
        a: u8,
        b: f64,
    }

    #[derive(Clone, Copy, Default, DdsType)]
    #[dds(bit_bound = 8)]
    enum Colour {
        #[default]
        Red = 3,
        Green = -1,
    }

    #[derive(Default, DdsType)]
    #[dds(extensibility = "appendable", name = "demo::Outer")]
    struct Outer {
        #[dds(key, max_len = 8)]
        r#type: String,
        inner: Inner,
        colour: Colour,
        maybe: Option<i16>,
        many: Vec<Inner>,
        bytes: crate::Bytes,
        grid: [[u32; 2]; 3],
        map: alloc::collections::BTreeMap<u32, u32>,
    }

    #[test]
    fn a_struct_describes_its_members_in_order() {
        let TypeDescription::Struct { description } = Outer::DESCRIPTION else { panic!("no struct") };
        assert_eq!((description.name, description.extensibility), ("demo::Outer", Extensibility::Appendable));
        let names: Vec<_> =
            description.members.iter().map(|member| (member.name, member.of.name())).collect();
        let expected = [
            ("type", "a string"),
            ("inner", "a struct"),
            ("colour", "an enumeration"),
            ("maybe", "an i16"),
            ("many", "a sequence"),
            ("bytes", "a sequence"),
            ("grid", "an array"),
            ("map", "a union, a map or an opaque type"),
        ];
        assert_eq!(names, expected);
        let optional: Vec<_> = description.members.iter().map(|member| member.open.is_some()).collect();
        assert_eq!(optional, [false, false, false, true, false, false, false, false]);
        let TypeDescription::Enumeration { integer, enumerators } = description.members[2].of else {
            panic!("no enumeration")
        };
        assert_eq!((integer, enumerators), (Primitive::I8, &[("Red", 3), ("Green", -1)][..]));
        let _ = (Colour::Red, Colour::Green);
    }

    #[test]
    fn the_end_of_a_fixed_value_depends_on_its_start_and_the_encoding() {
        let end = |start, encoding| Inner::LAYOUT.fixed_end(start, encoding);
        assert_eq!(end(0, Encoding::Xcdr1), Some(16));
        assert_eq!(end(8, Encoding::Xcdr1), Some(24));
        assert_eq!(end(4, Encoding::Xcdr2), Some(16));
        assert_eq!(u16::LAYOUT.fixed_end(3, Encoding::Xcdr1), Some(6));
        assert_eq!(String::LAYOUT.fixed_end(0, Encoding::Xcdr1), None);
    }

    #[test]
    fn the_skip_functions_pass_over_each_member() {
        let value = Outer {
            r#type: "abc".to_owned(),
            inner: Inner { a: 1, b: 2.0 },
            colour: Colour::Green,
            maybe: Some(-7),
            many: vec![Inner { a: 3, b: 4.0 }, Inner::default()],
            bytes: crate::Bytes::from_static(b"xyz"),
            grid: [[1, 2], [3, 4], [5, 6]],
            map: [(1, 2)].into(),
        };
        let TypeDescription::Struct { description } = Outer::DESCRIPTION else { panic!("no struct") };
        for encoding in [Encoding::Xcdr1, Encoding::Xcdr2] {
            let mut payload = Vec::new();
            crate::to_payload_in(&value, encoding, &mut payload).unwrap();
            let mut reader = Outer::DESCRIPTION.payload_reader(&payload).unwrap();
            let open = reader.open_appendable().unwrap();
            let mut opened = None;
            for member in description.members {
                if let Some(open) = member.open {
                    let mut value = open(&mut reader.clone()).unwrap().unwrap();
                    opened = Some(i16::decode(&mut value).unwrap());
                }
                (member.skip)(&mut reader).unwrap();
            }
            assert_eq!(opened, Some(-7));
            if encoding == Encoding::Xcdr2 {
                assert_eq!(reader.remaining(), 0);
            }
            reader.close_delimited(open);
            assert!(reader.remaining() < 4, "{encoding:?}");
        }
    }
}
