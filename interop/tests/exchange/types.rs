//! The types of the exchanges with other engines and their samples: the same as in the peers'
//! programs.

use weir_dds::DdsType;

/// A type whose samples are made from numbers, so that the receiver can check them.
pub(crate) trait Numbered: DdsType + PartialEq + std::fmt::Debug {
    /// Makes sample `number`, with a payload of `size` bytes if it has one, of one of `instances`
    /// instances if it has a key.
    fn make(number: u32, size: u32, instances: u32) -> Self;

    /// The number of a sample.
    fn number(&self) -> u32;
}

/// The type of the shapes demo, as in the OMG's interoperability tests.
#[derive(Debug, Default, Clone, PartialEq, DdsType)]
#[dds(extensibility = "appendable")]
pub(crate) struct ShapeType {
    /// The instance, see [`color`].
    #[dds(key, max_len = 128)]
    pub(crate) color: String,
    /// The number of the sample.
    pub(crate) x: i32,
    /// The number, negated.
    pub(crate) y: i32,
    /// Bytes of payload.
    pub(crate) shapesize: i32,
    /// The payload.
    pub(crate) additional_payload_size: Vec<u8>,
}

impl Numbered for ShapeType {
    fn make(number: u32, size: u32, instances: u32) -> Self {
        Self {
            color: color(number % instances),
            x: number.cast_signed(),
            y: -number.cast_signed(),
            shapesize: size.cast_signed(),
            additional_payload_size: bytes(number, size),
        }
    }

    fn number(&self) -> u32 {
        self.x.cast_unsigned()
    }
}

/// Returns the color of an instance. Every second one is so short that the serialized key fits a
/// key hash, which makes a difference to Fast DDS.
fn color(instance: u32) -> String {
    if instance.is_multiple_of(2) { format!("C-{instance}") } else { format!("THE-COLOR-{instance}") }
}

/// A part of [`Everything`].
#[derive(Debug, Default, Clone, PartialEq, DdsType)]
#[dds(extensibility = "final")]
pub(crate) struct Inner {
    /// Misaligns what follows.
    pub(crate) level: u8,
    /// Needs eight bytes of alignment.
    pub(crate) weight: f64,
    /// Sometimes empty.
    pub(crate) label: String,
}

impl Inner {
    fn make(number: u32, which: u32) -> Self {
        let label = if which == number % 7 { String::new() } else { format!("label {number}.{which}") };
        Self {
            level: number.wrapping_add(which).to_le_bytes()[0],
            weight: f64::from(number) * 1.5 - f64::from(which),
            label,
        }
    }
}

/// Members of every kind.
#[derive(Debug, Default, Clone, PartialEq, DdsType)]
#[dds(extensibility = "final")]
pub(crate) struct Everything {
    pub(crate) number: u32,
    pub(crate) flag: bool,
    pub(crate) bits: u8,
    pub(crate) tiny: i8,
    pub(crate) small: i16,
    pub(crate) unsigned_small: u16,
    pub(crate) medium: i32,
    pub(crate) unsigned_medium: u32,
    pub(crate) large: i64,
    pub(crate) unsigned_large: u64,
    pub(crate) single_precision: f32,
    pub(crate) double_precision: f64,
    pub(crate) name: String,
    #[dds(max_len = 16)]
    pub(crate) short_name: String,
    pub(crate) mac: [u8; 6],
    pub(crate) grid: [[i32; 2]; 3],
    pub(crate) nested: Inner,
    pub(crate) pair: [Inner; 2],
    #[dds(max_len = 8)]
    pub(crate) few: Vec<u8>,
    pub(crate) doubles: Vec<f64>,
    pub(crate) names: Vec<String>,
    pub(crate) nests: Vec<Inner>,
}

impl Numbered for Everything {
    fn make(number: u32, _: u32, _: u32) -> Self {
        let signed = number.cast_signed();
        let [low, high, ..] = number.to_le_bytes();
        let part = |which| Inner::make(number, which);
        #[expect(clippy::cast_precision_loss, reason = "the numbers are small")]
        let single_precision = number as f32 * 0.5;
        Self {
            number,
            flag: number % 2 == 1,
            bits: low,
            tiny: low.cast_signed(),
            small: i16::from_le_bytes([low, high]).wrapping_mul(-3),
            unsigned_small: u16::from_le_bytes([low, high]).wrapping_mul(7),
            medium: signed.wrapping_mul(-1001),
            unsigned_medium: number.wrapping_mul(2_654_435_761),
            large: 7 - 1_000_000_000_000 * i64::from(signed),
            unsigned_large: u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            single_precision,
            double_precision: f64::from(number) / 3.0,
            name: format!("name {number}"),
            short_name: format!("s{number}"),
            mac: std::array::from_fn(|index| bytes(number, 6)[index]),
            grid: [0, 10, 20].map(|row| [0, 1].map(|column| signed + row + column)),
            nested: part(0),
            pair: [part(1), part(2)],
            few: bytes(number, number % 9),
            doubles: (0..number % 5).map(|index| f64::from(number) * 0.25 + f64::from(index)).collect(),
            names: (0..number % 4).map(|index| format!("{number}.{index}")).collect(),
            nests: (0..number % 3).map(|index| part(3 + index)).collect(),
        }
    }

    fn number(&self) -> u32 {
        self.number
    }
}

/// Bytes without a key.
#[derive(Debug, Default, Clone, PartialEq, DdsType)]
#[dds(extensibility = "final")]
pub(crate) struct Blob {
    /// The number of the sample.
    pub(crate) number: u32,
    /// The payload.
    pub(crate) data: Vec<u8>,
}

impl Numbered for Blob {
    fn make(number: u32, size: u32, _: u32) -> Self {
        Self { number, data: bytes(number, size) }
    }

    fn number(&self) -> u32 {
        self.number
    }
}

fn bytes(number: u32, size: u32) -> Vec<u8> {
    (0..size).map(|index| number.wrapping_add(index).to_le_bytes()[0]).collect()
}
