//! Parameter ids (RTPS 2.5 §9.6.4, DDS-XTypes 1.3 §7.6.3.2).

use core::fmt;

/// Identifies the meaning of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ParameterId(pub u16);

macro_rules! parameter_ids {
    ($($(#[$doc:meta])* $name:ident = $id:literal,)*) => {
        impl ParameterId {
            $($(#[$doc])* pub const $name: Self = Self($id);)*
        }

        impl fmt::Display for ParameterId {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match *self {
                    $(Self::$name => f.write_str(stringify!($name)),)*
                    Self(id) => write!(f, "parameter {id:#06x}"),
                }
            }
        }
    };
}

parameter_ids! {
    /// Padding.
    PAD = 0x0000,
    /// End of the list.
    SENTINEL = 0x0001,
    /// Time without an announcement after which a participant is removed: Duration.
    PARTICIPANT_LEASE_DURATION = 0x0002,
    /// Duration.
    TIME_BASED_FILTER = 0x0004,
    /// String.
    TOPIC_NAME = 0x0005,
    /// i32.
    OWNERSHIP_STRENGTH = 0x0006,
    /// String.
    TYPE_NAME = 0x0007,
    /// u32.
    DOMAIN_ID = 0x000f,
    /// Two bytes.
    PROTOCOL_VERSION = 0x0015,
    /// Two bytes.
    VENDORID = 0x0016,
    /// u32 kind (1 best effort, 2 reliable), Duration.
    RELIABILITY = 0x001a,
    /// u32 kind, Duration.
    LIVELINESS = 0x001b,
    /// u32 kind.
    DURABILITY = 0x001d,
    /// Duration, u32, 4 x i32.
    DURABILITY_SERVICE = 0x001e,
    /// u32 kind.
    OWNERSHIP = 0x001f,
    /// u32 scope, bool, bool.
    PRESENTATION = 0x0021,
    /// Duration.
    DEADLINE = 0x0023,
    /// u32 kind.
    DESTINATION_ORDER = 0x0025,
    /// Duration.
    LATENCY_BUDGET = 0x0027,
    /// Sequence of strings.
    PARTITION = 0x0029,
    /// Duration.
    LIFESPAN = 0x002b,
    /// Bytes.
    USER_DATA = 0x002c,
    /// Bytes.
    GROUP_DATA = 0x002d,
    /// Bytes.
    TOPIC_DATA = 0x002e,
    /// Locator.
    UNICAST_LOCATOR = 0x002f,
    /// Locator.
    MULTICAST_LOCATOR = 0x0030,
    /// Locator.
    DEFAULT_UNICAST_LOCATOR = 0x0031,
    /// Locator.
    METATRAFFIC_UNICAST_LOCATOR = 0x0032,
    /// Locator.
    METATRAFFIC_MULTICAST_LOCATOR = 0x0033,
    /// i32.
    PARTICIPANT_MANUAL_LIVELINESS_COUNT = 0x0034,
    /// Strings.
    CONTENT_FILTER_PROPERTY = 0x0035,
    /// u32 kind, i32 depth.
    HISTORY = 0x0040,
    /// 3 x i32.
    RESOURCE_LIMITS = 0x0041,
    /// Bool.
    EXPECTS_INLINE_QOS = 0x0043,
    /// u32.
    PARTICIPANT_BUILTIN_ENDPOINTS = 0x0044,
    /// Locator.
    DEFAULT_MULTICAST_LOCATOR = 0x0048,
    /// i32.
    TRANSPORT_PRIORITY = 0x0049,
    /// GUID.
    PARTICIPANT_GUID = 0x0050,
    /// GUID.
    GROUP_GUID = 0x0052,
    /// Entity id.
    GROUP_ENTITYID = 0x0053,
    /// Inline.
    CONTENT_FILTER_INFO = 0x0055,
    /// Sequence number.
    COHERENT_SET = 0x0056,
    /// GUID.
    DIRECTED_WRITE = 0x0057,
    /// u32 bits.
    BUILTIN_ENDPOINT_SET = 0x0058,
    /// Names and values.
    PROPERTY_LIST = 0x0059,
    /// GUID.
    ENDPOINT_GUID = 0x005a,
    /// u32.
    TYPE_MAX_SIZE_SERIALIZED = 0x0060,
    /// GUID, sequence number.
    ORIGINAL_WRITER_INFO = 0x0061,
    /// String.
    ENTITY_NAME = 0x0062,
    /// Sequence number.
    GROUP_COHERENT_SET = 0x0063,
    /// Sequence number.
    GROUP_SEQ_NUM = 0x0064,
    /// Set of GUIDs.
    WRITER_GROUP_INFO = 0x0065,
    /// 16 bytes.
    KEY_HASH = 0x0070,
    /// Four bytes, big-endian bits.
    STATUS_INFO = 0x0071,
    /// A type's description (XTypes 1.1).
    TYPE_OBJECT = 0x0072,
    /// Sequence of i16.
    DATA_REPRESENTATION = 0x0073,
    /// u16 kind, 5 x bool.
    TYPE_CONSISTENCY_ENFORCEMENT = 0x0074,
    /// A type's identity (XTypes 1.3).
    TYPE_INFORMATION = 0x0075,
    /// u32.
    BUILTIN_ENDPOINT_QOS = 0x0077,
    /// GUID, sequence number.
    RELATED_SAMPLE_IDENTITY = 0x0083,
    /// String; must be understood: another tag makes a separate domain with the same number.
    DOMAIN_TAG = 0x4014,
    /// Cyclone DDS only, and only valid from there: five u32, and a string with its version.
    ADLINK_PARTICIPANT_VERSION_INFO = 0x8007,
    /// Weir only: u32, the granted receive buffer of a reader's socket in bytes, as accounted by
    /// the kernel.
    WEIR_RECEIVE_BUFFER = 0x8f01,
}

impl ParameterId {
    /// Returns whether the meaning depends on the vendor.
    pub const fn is_vendor_specific(self) -> bool {
        self.0 & 0x8000 != 0
    }

    /// Returns whether a receiver that does not know the id must ignore the whole entity.
    pub const fn must_understand(self) -> bool {
        self.0 & 0x4000 != 0
    }
}
