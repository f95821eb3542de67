//! Members by name: from a path such as `a.b[2]` to the place of the value in a payload.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use weir_cdr::description::{ElementDescription, OpenOptional, Primitive, StructDescription};
use weir_cdr::{CdrError, CdrReader, CdrValue, Encoding, Extensibility, Layout, TypeDescription};

use crate::error::{FilterError, Result};
use crate::expression::{FieldName, FieldStep};

/// The value of a member.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value<'a> {
    /// An integer, a boolean, or the number of an enumerator.
    Integer(i128),
    Float(f64),
    /// The bytes of a string, without NUL.
    Text(&'a [u8]),
    /// The same of a string that is not UTF-8. It is read as ISO 8859-1, as by applications.
    Latin1(&'a [u8]),
}

impl<'a> Value<'a> {
    fn text(bytes: &'a [u8]) -> Self {
        if core::str::from_utf8(bytes).is_ok() { Self::Text(bytes) } else { Self::latin_1(bytes) }
    }

    #[cold]
    fn latin_1(bytes: &'a [u8]) -> Self {
        Self::Latin1(bytes)
    }

    /// The characters of a string; none of others.
    pub(crate) fn characters(self) -> impl Iterator<Item = char> {
        let (text, latin_1) = match self {
            Self::Text(text) => (core::str::from_utf8(text).unwrap_or_default(), &[][..]),
            Self::Latin1(text) => ("", text),
            Self::Integer(_) | Self::Float(_) => ("", &[][..]),
        };
        text.chars().chain(latin_1.iter().copied().map(char::from))
    }
}

/// What a member can be compared with.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Boolean,
    /// `is_byte`: it may also be compared with a character.
    Integer {
        is_byte: bool,
    },
    Float32,
    Float64,
    Text,
    Enumeration(&'static [(&'static str, i64)]),
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Boolean => "a boolean",
            Self::Integer { .. } => "an integer",
            Self::Float32 | Self::Float64 => "a floating-point number",
            Self::Text => "a string",
            Self::Enumeration(_) => "an enumeration",
        }
    }
}

/// A member of a type: how to find its value in a payload of each encoding.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) kind: Kind,
    xcdr1: Box<[Op]>,
    xcdr2: Box<[Op]>,
    load: Load,
    /// The value in payloads of older versions of an appendable type, which end before it.
    default: Value<'static>,
}

/// A step on the way from the start of a payload to a value.
#[derive(Debug, Clone, Copy)]
enum Op {
    /// Passes over bytes.
    Advance(usize),
    /// Passes over the length of an appendable struct.
    Open,
    /// Passes over a member.
    Skip(fn(&mut CdrReader<'_>) -> weir_cdr::Result),
    /// Enters the value of an optional member.
    Optional(OpenOptional),
    /// Passes over the elements of an array before this index.
    ArrayElement(&'static ElementDescription, u32),
    /// The same for a sequence.
    SequenceElement(&'static ElementDescription, u32),
}

#[derive(Debug, Clone, Copy)]
enum Load {
    Primitive(Primitive),
    Text,
}

impl Field {
    /// Finds a member of a type by its name.
    pub(crate) fn find(name: &FieldName, of: &TypeDescription) -> Result<Self> {
        let (mut xcdr1, mut xcdr2) = (Path::new(Encoding::Xcdr1), Path::new(Encoding::Xcdr2));
        let mut current = *of;
        for step in &name.steps {
            current = match (step, current) {
                (FieldStep::Name(member), TypeDescription::Struct { description }) => {
                    let index = description.members.iter().position(|known| known.name == member);
                    let index = index.ok_or_else(|| unknown_member(name, member, description))?;
                    xcdr1.enter_member(description, index);
                    xcdr2.enter_member(description, index);
                    description.members[index].of
                }
                (FieldStep::Index(index), TypeDescription::Array { element, len }) => {
                    if *index as usize >= len {
                        let cause = format!("{}: the array has {len} elements, counted from 0", name.text);
                        return Err(FilterError::new(name.place, cause));
                    }
                    xcdr1.enter_array(element, *index);
                    xcdr2.enter_array(element, *index);
                    element.of
                }
                (FieldStep::Index(index), TypeDescription::Sequence { element }) => {
                    xcdr1.push(Op::SequenceElement(element, *index));
                    xcdr2.push(Op::SequenceElement(element, *index));
                    element.of
                }
                (FieldStep::Name(member), other) => {
                    let cause = format!("{}: {} has no member {member}", name.text, other.name());
                    return Err(FilterError::new(name.place, cause));
                }
                (FieldStep::Index(_), other) => {
                    let cause = format!("{}: {} has no elements", name.text, other.name());
                    return Err(FilterError::new(name.place, cause));
                }
            };
        }
        let (kind, load, default) = value_of(&current).ok_or_else(|| no_value(name, &current))?;
        Ok(Self { kind, xcdr1: xcdr1.ops.into(), xcdr2: xcdr2.ops.into(), load, default })
    }

    /// Reads the value. `None`: an optional member without a value, or an element behind the end of a sequence.
    ///
    /// `reader`: at the start of the sample.
    #[inline]
    pub(crate) fn read<'a>(&self, mut reader: CdrReader<'a>) -> weir_cdr::Result<Option<Value<'a>>> {
        let ops = if reader.encoding() == Encoding::Xcdr1 { &self.xcdr1 } else { &self.xcdr2 };
        let mut is_open = false;
        for (index, op) in ops.iter().enumerate() {
            let result = match op {
                Op::Advance(len) => reader.take_bytes(*len).map(|_| true),
                Op::Open => {
                    is_open = true;
                    reader.open_appendable().map(|_| true)
                }
                Op::Skip(skip) => skip(&mut reader).map(|()| true),
                Op::Optional(open) => open(&mut reader).map(|value| match value {
                    Some(value) => {
                        reader = value;
                        true
                    }
                    None => false,
                }),
                Op::ArrayElement(element, index) => enter_array(&mut reader, element, *index).map(|()| true),
                Op::SequenceElement(element, index) => enter_sequence(&mut reader, element, *index),
            };
            match result {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(error) => return self.missing(error, is_open, &ops[index..]),
            }
        }
        match self.load.read(&mut reader) {
            Ok(value) => Ok(Some(value)),
            Err(error) => self.missing(error, is_open, &[]),
        }
    }

    /// The value of a member behind the end of the payload. Writers with an older version of an appendable type do not
    /// have it: then it has its default (DDS-XTypes 1.3, 7.2.2.4.4.4.7). By default, an optional member is absent, and
    /// a sequence empty: if one of them is among the steps that are `left`, there is no value.
    #[cold]
    fn missing<'a>(
        &self,
        error: CdrError,
        is_open: bool,
        left: &[Op],
    ) -> weir_cdr::Result<Option<Value<'a>>> {
        if !is_open || error != CdrError::UnexpectedEnd {
            return Err(error);
        }
        let is_absent = left.iter().any(|op| matches!(op, Op::Optional(_) | Op::SequenceElement(..)));
        Ok((!is_absent).then_some(self.default))
    }
}

impl Load {
    #[inline(always)]
    fn read<'a>(self, reader: &mut CdrReader<'a>) -> weir_cdr::Result<Value<'a>> {
        let primitive = match self {
            Self::Primitive(primitive) => primitive,
            Self::Text => {
                let len = reader.take_length(1)?;
                let bytes = reader.take_bytes(len)?;
                return Ok(Value::text(bytes.strip_suffix(&[0]).unwrap_or(bytes)));
            }
        };
        Ok(match primitive {
            Primitive::Bool | Primitive::U8 => Value::Integer(u8::decode(reader)?.into()),
            Primitive::I8 => Value::Integer(i8::decode(reader)?.into()),
            Primitive::U16 => Value::Integer(u16::decode(reader)?.into()),
            Primitive::I16 => Value::Integer(i16::decode(reader)?.into()),
            Primitive::U32 => Value::Integer(u32::decode(reader)?.into()),
            Primitive::I32 => Value::Integer(i32::decode(reader)?.into()),
            Primitive::U64 => Value::Integer(u64::decode(reader)?.into()),
            Primitive::I64 => Value::Integer(i64::decode(reader)?.into()),
            Primitive::F32 => Value::Float(f32::decode(reader)?.into()),
            Primitive::F64 => Value::Float(f64::decode(reader)?),
        })
    }
}

fn enter_array(reader: &mut CdrReader<'_>, element: &ElementDescription, index: u32) -> weir_cdr::Result {
    if element.is_delimited {
        let _ = reader.open_delimited()?;
    }
    (element.skip_many)(index as usize, reader)
}

/// Returns whether there is such an element.
fn enter_sequence(
    reader: &mut CdrReader<'_>,
    element: &ElementDescription,
    index: u32,
) -> weir_cdr::Result<bool> {
    if element.is_delimited {
        let _ = reader.open_delimited()?;
    }
    let len = reader.take_length(element.layout.min_size_in(reader.encoding()))?;
    if index as usize >= len {
        return Ok(false);
    }
    (element.skip_many)(index as usize, reader)?;
    Ok(true)
}

/// The way to a value in one encoding.
struct Path {
    encoding: Encoding,
    ops: Vec<Op>,
    /// Where the way has led to, if that is the same in all payloads.
    position: Option<usize>,
}

impl Path {
    fn new(encoding: Encoding) -> Self {
        Self { encoding, ops: Vec::new(), position: Some(0) }
    }

    fn push(&mut self, op: Op) {
        self.ops.push(op);
        self.position = None;
    }

    /// Moves on to a known position.
    fn advance_to(&mut self, start: usize, end: usize) {
        match self.ops.last_mut() {
            Some(Op::Advance(len)) => *len += end - start,
            _ if end > start => self.ops.push(Op::Advance(end - start)),
            _ => {}
        }
        self.position = Some(end);
    }

    /// Moves past a value with this layout, if that is at a constant distance. Returns whether it is.
    fn pass(&mut self, layout: Layout) -> bool {
        let ends = self.position.and_then(|start| Some((start, layout.fixed_end(start, self.encoding)?)));
        if let Some((start, end)) = ends {
            self.advance_to(start, end);
        }
        ends.is_some()
    }

    fn enter_member(&mut self, of: &StructDescription, index: usize) {
        if of.extensibility == Extensibility::Appendable && self.encoding.delimits_appendables() {
            let position = self.position.map(|position| self.encoding.appendable_delimiter_end(position));
            self.push(Op::Open);
            self.position = position;
        }
        let (before, member) = (of.members.iter().take(index), &of.members[index]);
        for earlier in before {
            if !self.pass(earlier.layout) {
                self.push(Op::Skip(earlier.skip));
            }
        }
        if let Some(open) = member.open {
            self.push(Op::Optional(open));
            // In XCDR1 offsets are relative to the value.
            self.position = (self.encoding == Encoding::Xcdr1).then_some(0);
        }
    }

    fn enter_array(&mut self, element: &'static ElementDescription, index: u32) {
        let is_plain = !element.is_delimited || !self.encoding.delimits_collections();
        if !is_plain || !self.pass(element.layout.repeat(index as usize)) {
            self.push(Op::ArrayElement(element, index));
        }
    }
}

/// What a value of this type can be compared with, how to read it, and its default; `None`: it cannot be compared.
fn value_of(of: &TypeDescription) -> Option<(Kind, Load, Value<'static>)> {
    Some(match of {
        TypeDescription::Primitive { primitive } => {
            let load = Load::Primitive(*primitive);
            match primitive {
                Primitive::Bool => (Kind::Boolean, load, Value::Integer(0)),
                Primitive::F32 => (Kind::Float32, load, Value::Float(0.0)),
                Primitive::F64 => (Kind::Float64, load, Value::Float(0.0)),
                Primitive::U8 | Primitive::I8 => (Kind::Integer { is_byte: true }, load, Value::Integer(0)),
                _ => (Kind::Integer { is_byte: false }, load, Value::Integer(0)),
            }
        }
        TypeDescription::String => (Kind::Text, Load::Text, Value::Text(b"")),
        TypeDescription::Enumeration { integer, enumerators } => {
            let first = enumerators.first().map_or(0, |(_, value)| i128::from(*value));
            (Kind::Enumeration(enumerators), Load::Primitive(*integer), Value::Integer(first))
        }
        _ => return None,
    })
}

fn unknown_member(name: &FieldName, member: &str, of: &StructDescription) -> FilterError {
    let members: Vec<_> = of.members.iter().map(|member| member.name).collect();
    let members = members.join(", ");
    let cause = format!(
        "type {} has no member {member}: its members are {members}; write a text in single quotes",
        of.name
    );
    FilterError::new(name.place, cause)
}

fn no_value(name: &FieldName, of: &TypeDescription) -> FilterError {
    let advice = match of {
        TypeDescription::Struct { .. } => "name one of its members, as in a.b",
        TypeDescription::Sequence { .. } | TypeDescription::Array { .. } => "name an element, as in a[0]",
        _ => "use another member",
    };
    let cause = format!("{} is {} and cannot be compared: {advice}", name.text, of.name());
    FilterError::new(name.place, cause)
}
