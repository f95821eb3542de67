//! Which instances the KEY_HASHes of writers in XCDR1 name.
//!
//! An instance is identified by its key in one form, and these hashes are of another. Where they are digests, an
//! instance that is named by its hash alone is found only if the reader remembers the hash.

use hashbrown::HashTable;

use super::config::{HashOfKey, ReaderConfig};
use crate::key_hasher::{Key, KeyHasher};

/// Instances by their KEY_HASH in XCDR1, for types where it is a digest of other bytes than the instance key.
#[derive(Debug)]
pub(super) struct Digests {
    /// `None`: the type is no such type.
    hash_of_key: Option<HashOfKey>,
    hasher: KeyHasher,
    /// Each digest with the index of the instance.
    table: HashTable<(Key, u32)>,
}

impl Digests {
    pub(super) fn new(config: &ReaderConfig, hasher: KeyHasher) -> Self {
        let hash_of_key = config.hash_of_key.filter(|_| config.limits.is_none());
        Self { hash_of_key, hasher, table: HashTable::new() }
    }

    /// Whether a digest names only the instances in this table.
    pub(super) fn are_needed(&self) -> bool {
        self.hash_of_key.is_some()
    }

    /// Remembers the digest of an instance with this key, or forgets it.
    pub(super) fn note(&mut self, index: u32, key_payload: &[u8], is_known: bool) {
        let Some(digest) = self.hash_of_key.and_then(|hash_of| hash_of(key_payload)) else { return };
        let (digest, hasher) = (Key::from(digest), self.hasher);
        if let Ok(place) = self.table.find_entry(hasher.hash(digest), |other| *other == (digest, index)) {
            place.remove();
        }
        if is_known {
            self.table
                .insert_unique(hasher.hash(digest), (digest, index), |(digest, _)| hasher.hash(*digest));
        }
    }

    /// The index of the instance with this digest.
    pub(super) fn find(&self, digest: [u8; 16]) -> Option<u32> {
        let digest = Key::from(digest);
        self.table.find(self.hasher.hash(digest), |(other, _)| *other == digest).map(|(_, index)| *index)
    }

    /// Memory in bytes.
    pub(super) fn memory(&self) -> usize {
        self.table.allocation_size()
    }
}
