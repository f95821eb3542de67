//! Globally unique identifiers (RTPS 2.5 §8.2.4, §9.3.1).

use core::fmt;

/// Identifies a participant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GuidPrefix(pub [u8; 12]);

impl GuidPrefix {
    /// No participant.
    pub const UNKNOWN: Self = Self([0; 12]);
}

impl fmt::Display for GuidPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Identifies an entity within a participant: three bytes of key and one of kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityId(pub [u8; 4]);

impl EntityId {
    /// No entity, or all.
    pub const UNKNOWN: Self = Self([0; 4]);
    /// The participant itself.
    pub const PARTICIPANT: Self = Self([0, 0, 1, 0xc1]);
    /// Writer of participant announcements.
    pub const SPDP_WRITER: Self = Self([0, 1, 0, 0xc2]);
    /// Reader of participant announcements.
    pub const SPDP_READER: Self = Self([0, 1, 0, 0xc7]);
    /// Writer of announcements of writers.
    pub const SEDP_PUBLICATIONS_WRITER: Self = Self([0, 0, 3, 0xc2]);
    /// Reader of announcements of writers.
    pub const SEDP_PUBLICATIONS_READER: Self = Self([0, 0, 3, 0xc7]);
    /// Writer of announcements of readers.
    pub const SEDP_SUBSCRIPTIONS_WRITER: Self = Self([0, 0, 4, 0xc2]);
    /// Reader of announcements of readers.
    pub const SEDP_SUBSCRIPTIONS_READER: Self = Self([0, 0, 4, 0xc7]);
    /// Writer of liveliness assertions.
    pub const PARTICIPANT_MESSAGE_WRITER: Self = Self([0, 2, 0, 0xc2]);
    /// Reader of liveliness assertions.
    pub const PARTICIPANT_MESSAGE_READER: Self = Self([0, 2, 0, 0xc7]);

    /// Makes the id of a user-defined writer. Only the low 24 bits of `key` are used.
    pub const fn user_writer(key: u32, is_keyed: bool) -> Self {
        Self::user(key, if is_keyed { 0x02 } else { 0x03 })
    }

    /// Makes the id of a user-defined reader. Only the low 24 bits of `key` are used.
    pub const fn user_reader(key: u32, is_keyed: bool) -> Self {
        Self::user(key, if is_keyed { 0x07 } else { 0x04 })
    }

    /// Returns whether the kind is that of a writer (RTPS 2.5 §9.3.1.2).
    #[inline]
    pub const fn is_writer(self) -> bool {
        matches!(self.kind(), 0x02 | 0x03)
    }

    /// Returns whether the kind is that of a reader.
    #[inline]
    pub const fn is_reader(self) -> bool {
        matches!(self.kind(), 0x04 | 0x07)
    }

    /// Returns whether the kind is that of an endpoint of a topic with a key.
    #[inline]
    pub const fn is_keyed(self) -> bool {
        matches!(self.kind(), 0x02 | 0x07)
    }

    /// Returns whether it is a built-in entity.
    #[inline]
    pub const fn is_builtin(self) -> bool {
        self.0[3] & 0xc0 == 0xc0
    }

    #[inline]
    const fn kind(self) -> u8 {
        self.0[3] & 0x3f
    }

    const fn user(key: u32, kind: u8) -> Self {
        let [_, a, b, c] = key.to_be_bytes();
        Self([a, b, c, kind])
    }
}

impl fmt::Display for EntityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", u32::from_be_bytes(self.0))
    }
}

/// Identifies an entity globally.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guid {
    /// The participant.
    pub prefix: GuidPrefix,
    /// The entity within the participant.
    pub entity: EntityId,
}

impl Guid {
    /// No entity.
    pub const UNKNOWN: Self = Self::new(GuidPrefix::UNKNOWN, EntityId::UNKNOWN);

    /// Combines a participant and an entity.
    #[inline]
    pub const fn new(prefix: GuidPrefix, entity: EntityId) -> Self {
        Self { prefix, entity }
    }

    /// Converts from the 16 bytes of the wire form.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l, entity @ ..] = bytes;
        Self { prefix: GuidPrefix([a, b, c, d, e, f, g, h, i, j, k, l]), entity: EntityId(entity) }
    }

    /// Converts to the 16 bytes of the wire form.
    pub fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..12].copy_from_slice(&self.prefix.0);
        bytes[12..].copy_from_slice(&self.entity.0);
        bytes
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.prefix, self.entity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_follow_the_table_of_the_specification() {
        assert!(EntityId::user_writer(1, true).is_writer() && EntityId::user_writer(1, true).is_keyed());
        assert!(EntityId::user_reader(1, false).is_reader() && !EntityId::user_reader(1, false).is_keyed());
        assert!(EntityId::SPDP_WRITER.is_builtin() && EntityId::SPDP_WRITER.is_writer());
        assert!(!EntityId::user_reader(0xff_ffff, true).is_builtin());
        assert_eq!(EntityId::user_writer(0x01_02_03, false).0, [1, 2, 3, 3]);
    }

    #[test]
    fn a_guid_is_sixteen_bytes() {
        let bytes = core::array::from_fn(|n| n as u8);
        assert_eq!(Guid::from_bytes(bytes).to_bytes(), bytes);
        assert_eq!(Guid::from_bytes(bytes).to_string(), "000102030405060708090a0b.0c0d0e0f");
    }
}
