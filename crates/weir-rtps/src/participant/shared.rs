//! Names and policies that many remote endpoints have in common, stored once.
//!
//! In a domain of two hundred participants, each knows ten thousand endpoints of a few hundred topics, and most of them
//! have the same policies.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::sync::Arc;

use super::remote_participant::RemoteEntry;
use crate::qos::Qos;

/// What endpoints share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// All names in use, of topics and types.
    names: BTreeSet<Arc<str>>,
    /// The policies of the latest endpoints.
    policies: VecDeque<Arc<Qos>>,
}

impl Shared {
    /// Returns a name.
    pub(super) fn name(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.names.get(name) {
            return Arc::clone(known);
        }
        let name: Arc<str> = Arc::from(name);
        self.names.insert(Arc::clone(&name));
        name
    }

    /// Returns policies: those of another endpoint, if they are the same and it is one of the latest.
    pub(super) fn policies(&mut self, qos: Qos) -> Arc<Qos> {
        if let Some(known) = self.policies.iter().find(|known| ***known == qos) {
            return Arc::clone(known);
        }
        let qos = Arc::new(qos);
        if self.policies.len() >= POLICIES_MAX {
            self.policies.pop_front();
        }
        self.policies.push_back(Arc::clone(&qos));
        qos
    }

    /// Forgets the names of an endpoint that no other has.
    pub(super) fn release(&mut self, entry: RemoteEntry) {
        let RemoteEntry { topic, type_name, .. } = entry;
        for name in [topic, type_name] {
            // This one and the one in the set; an endpoint whose topic and type have one name is visited twice.
            if Arc::strong_count(&name) == 2 {
                self.names.remove(&name);
            }
        }
    }
}

/// Policies are compared with so many others.
const POLICIES_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_policies_are_stored_once_and_few_are_remembered() {
        let mut shared = Shared::default();
        let of = |priority| Qos { transport_priority: priority, ..Qos::for_writer() };
        let first = shared.policies(of(0));
        assert!(Arc::ptr_eq(&first, &shared.policies(of(0))));
        for priority in 1..100 {
            shared.policies(of(priority));
        }
        assert_eq!(shared.policies.len(), POLICIES_MAX);
        assert!(!Arc::ptr_eq(&first, &shared.policies(of(0))));
    }
}
