//! Encapsulation ids: the first two bytes of a payload (RTPS 2.5 §10.2, DDS-XTypes 1.3 §7.6.3.1.2).
//!
//! They say how the rest is encoded, and are always big-endian. The values are those that
//! implementations use. Two bytes of options follow; the lowest two bits of these count the padding
//! bytes at the end.

/// Plain CDR (XCDR1), big-endian.
pub const CDR_BE: [u8; 2] = [0x00, 0x00];
/// Plain CDR (XCDR1), little-endian.
pub const CDR_LE: [u8; 2] = [0x00, 0x01];
/// Parameter list (XCDR1), big-endian.
pub const PL_CDR_BE: [u8; 2] = [0x00, 0x02];
/// Parameter list (XCDR1), little-endian.
pub const PL_CDR_LE: [u8; 2] = [0x00, 0x03];
/// Plain CDR (XCDR2), big-endian.
pub const CDR2_BE: [u8; 2] = [0x00, 0x06];
/// Plain CDR (XCDR2), little-endian.
pub const CDR2_LE: [u8; 2] = [0x00, 0x07];
/// Delimited CDR (XCDR2, appendable types), big-endian.
pub const D_CDR2_BE: [u8; 2] = [0x00, 0x08];
/// Delimited CDR (XCDR2, appendable types), little-endian.
pub const D_CDR2_LE: [u8; 2] = [0x00, 0x09];
/// Parameter list (XCDR2, mutable types), big-endian.
pub const PL_CDR2_BE: [u8; 2] = [0x00, 0x0a];
/// Parameter list (XCDR2, mutable types), little-endian.
pub const PL_CDR2_LE: [u8; 2] = [0x00, 0x0b];
