//! The type that the tests filter.

use std::collections::BTreeMap;

use weir_cdr::{CdrValue, CdrWriter, DdsType, Encoding, Endianness};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, DdsType)]
#[dds(bit_bound = 8)]
pub(crate) enum Colour {
    #[default]
    Red = 1,
    Green = 2,
    Blue = -3,
}

#[derive(Debug, Clone, Default, PartialEq, DdsType)]
#[dds(extensibility = "final")]
pub(crate) struct Inner {
    pub(crate) a: i8,
    pub(crate) label: String,
    pub(crate) exact: f64,
}

#[derive(Debug, Clone, Default, PartialEq, DdsType)]
#[dds(extensibility = "appendable")]
pub(crate) struct Part {
    pub(crate) weight: f64,
    pub(crate) name: String,
}

/// All kinds of members, in both encodings behind members of variable length.
#[derive(Debug, Clone, Default, PartialEq, DdsType)]
#[dds(extensibility = "appendable", name = "demo::Sample")]
pub(crate) struct Sample {
    pub(crate) byte: u8,
    pub(crate) exact: f64,
    pub(crate) small: i16,
    pub(crate) grid: [[i16; 2]; 3],
    pub(crate) inner: Inner,
    pub(crate) flag: bool,
    pub(crate) colour: Colour,
    pub(crate) number: i32,
    pub(crate) maybe: Option<i64>,
    pub(crate) big: u64,
    pub(crate) ratio: f32,
    pub(crate) list: Vec<i32>,
    pub(crate) parts: Vec<Part>,
    pub(crate) pair: [Part; 2],
    pub(crate) map: BTreeMap<u32, u32>,
    pub(crate) name: String,
    pub(crate) last: Part,
}

/// The payload of a sample, in any encoding and byte order.
pub(crate) fn payload(sample: &Sample, encoding: Encoding, endianness: Endianness) -> Vec<u8> {
    let len = sample.serialized_size(encoding).next_multiple_of(4);
    let mut body = vec![0; len];
    sample.encode(&mut CdrWriter::new(&mut body, endianness, encoding)).unwrap();
    let identifier = match (encoding, endianness) {
        (Encoding::Xcdr1, Endianness::Big) => 0,
        (Encoding::Xcdr1, Endianness::Little) => 1,
        (_, Endianness::Big) => 8,
        (_, Endianness::Little) => 9,
    };
    [&[0, identifier, 0, 0], &body[..]].concat()
}

/// All forms of a sample.
pub(crate) fn payloads(sample: &Sample) -> Vec<Vec<u8>> {
    let encodings = [Encoding::Xcdr1, Encoding::Xcdr2];
    let forms = encodings.into_iter().flat_map(|it| [(it, Endianness::Little), (it, Endianness::Big)]);
    forms.map(|(encoding, endianness)| payload(sample, encoding, endianness)).collect()
}
