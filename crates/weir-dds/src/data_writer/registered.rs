//! The registered instances of a writer, with their keys.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::instance_handle::InstanceHandle;

/// The key of an instance.
#[derive(Clone)]
pub(super) struct InstanceKey {
    /// Its hash on the wire, by which the core knows the instance.
    pub(super) hash: [u8; 16],
    /// The serialized key, in the writer's encoding.
    pub(super) payload: Box<[u8]>,
}

/// The registered instances of a writer.
#[derive(Default)]
pub(super) struct RegisteredInstances {
    keys: HashMap<InstanceHandle, InstanceKey, RandomState>,
    /// Instances by their hashes on the wire, if these are digests from which the handle does not follow.
    handles: HashMap<Digest, InstanceHandle, RandomState>,
    has_digests: bool,
}

/// A key hash that is an MD5 digest.
#[derive(Clone, Copy, Eq)]
struct Digest([u8; 16]);

impl RegisteredInstances {
    /// `has_digests`: instances are [looked up](RegisteredInstances::by_digest) by their hashes.
    pub(super) fn new(has_digests: bool) -> Self {
        Self { has_digests, ..Self::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(super) fn contains(&self, handle: InstanceHandle) -> bool {
        self.keys.contains_key(&handle)
    }

    /// Returns the key of an instance.
    pub(super) fn get(&self, handle: InstanceHandle) -> Option<&InstanceKey> {
        self.keys.get(&handle)
    }

    /// Returns the instance with a hash on the wire, in constant time: an application may ask whenever one of many
    /// instances misses its deadline.
    pub(super) fn by_digest(&self, hash: [u8; 16]) -> Option<InstanceHandle> {
        self.handles.get(&Digest(hash)).copied()
    }

    pub(super) fn insert(&mut self, handle: InstanceHandle, key: InstanceKey) {
        if self.has_digests {
            self.handles.insert(Digest(key.hash), handle);
        }
        self.keys.insert(handle, key);
    }

    /// Removes an instance. Returns whether it was there.
    pub(super) fn remove(&mut self, handle: InstanceHandle) -> bool {
        let removed = self.keys.remove(&handle);
        if let Some(key) = removed.as_ref().filter(|_| self.has_digests) {
            self.handles.remove(&Digest(key.hash));
        }
        removed.is_some()
    }

    /// Removes all instances.
    pub(super) fn take_all(&mut self) -> Vec<(InstanceHandle, InstanceKey)> {
        self.handles.clear();
        self.keys.drain().collect()
    }
}

impl PartialEq for Digest {
    fn eq(&self, other: &Self) -> bool {
        #[cfg(test)]
        tests::COMPARISONS.set(tests::COMPARISONS.get() + 1);
        self.0 == other.0
    }
}

impl std::hash::Hash for Digest {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        pub(super) static COMPARISONS: Cell<usize> = const { Cell::new(0) };
    }

    fn digest(number: u32) -> [u8; 16] {
        let mut hash = [0xd5; 16];
        hash[..4].copy_from_slice(&number.to_le_bytes());
        hash
    }

    fn handle(number: u32) -> InstanceHandle {
        let mut handle = [0; 16];
        handle[12..].copy_from_slice(&number.to_be_bytes());
        InstanceHandle(handle)
    }

    #[test]
    fn a_digest_is_found_among_many_instances_without_a_search() {
        const MANY: u32 = 10_000;
        let mut registered = RegisteredInstances::new(true);
        for number in 0..MANY {
            registered.insert(handle(number), InstanceKey { hash: digest(number), payload: [].into() });
        }
        COMPARISONS.set(0);
        for number in 0..MANY {
            assert_eq!(registered.by_digest(digest(number)), Some(handle(number)));
        }
        assert_eq!(registered.by_digest(digest(MANY)), None);
        // The table compares hashes of seven bits before.
        let found = COMPARISONS.get();
        assert!(found < 2 * MANY as usize, "{found} comparisons for {MANY} instances");
        assert!(registered.remove(handle(7)) && !registered.remove(handle(7)));
        assert_eq!((registered.by_digest(digest(7)), registered.len()), (None, MANY as usize - 1));
        assert_eq!(registered.take_all().len(), MANY as usize - 1);
        assert_eq!(registered.by_digest(digest(8)), None);
    }
}
