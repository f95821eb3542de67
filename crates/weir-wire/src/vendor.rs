//! Protocol versions and vendors (RTPS 2.5 §8.3.3.1, §9.3.1.3).

use core::fmt;

/// A version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProtocolVersion {
    /// Versions with the same major number are compatible.
    pub major: u8,
    /// Increases with additions.
    pub minor: u8,
}

impl ProtocolVersion {
    /// The version that this crate writes.
    pub const V2_5: Self = Self { major: 2, minor: 5 };
}

/// The vendor of an implementation; by default unknown.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VendorId(pub [u8; 2]);

impl VendorId {
    /// Unknown.
    pub const UNKNOWN: Self = Self([0, 0]);
    /// RTI Connext.
    pub const RTI: Self = Self([0x01, 0x01]);
    /// OCI OpenDDS.
    pub const OPEN_DDS: Self = Self([0x01, 0x03]);
    /// TwinOaks CoreDX.
    pub const TWIN_OAKS: Self = Self([0x01, 0x06]);
    /// RTI Connext Micro.
    pub const RTI_MICRO: Self = Self([0x01, 0x0a]);
    /// eProsima Fast DDS.
    pub const EPROSIMA: Self = Self([0x01, 0x0f]);
    /// Eclipse Cyclone DDS.
    pub const CYCLONE: Self = Self([0x01, 0x10]);
    /// RustDDS.
    pub const RUST_DDS: Self = Self([0x01, 0x12]);
    /// S2E dust-dds.
    pub const DUST: Self = Self([0x01, 0x14]);
    /// Weir. Not assigned by the OMG; the implementations above accept unassigned ids.
    pub const WEIR: Self = Self([0x01, 0xf0]);
}

impl fmt::Display for VendorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match *self {
            Self::RTI => "RTI Connext",
            Self::OPEN_DDS => "OpenDDS",
            Self::TWIN_OAKS => "CoreDX",
            Self::RTI_MICRO => "RTI Connext Micro",
            Self::EPROSIMA => "Fast DDS",
            Self::CYCLONE => "Cyclone DDS",
            Self::RUST_DDS => "RustDDS",
            Self::DUST => "dust-dds",
            Self::WEIR => "Weir",
            Self([major, minor]) => return write!(f, "vendor {major:02x}.{minor:02x}"),
        };
        f.write_str(name)
    }
}
