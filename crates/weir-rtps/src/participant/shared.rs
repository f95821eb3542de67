//! Names and policies that many remote endpoints have in common, stored once.
//!
//! In a domain of two hundred participants, each knows ten thousand endpoints of a few hundred topics, and most of them
//! have the same policies.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::remote_participant::{Common, RemoteEntry};
use super::reserve::{ARC_BYTES, Pool};
use crate::limits::Limits;
use crate::qos::Qos;

/// A name of a topic or a type.
pub(super) type Name = Arc<String>;

/// What endpoints share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// All names in use, of topics and types, in order.
    names: Vec<Name>,
    /// Reserved memory for more names.
    spare: Vec<Name>,
    /// The policies of the latest endpoints.
    policies: VecDeque<Arc<Qos>>,
    all_policies: Pool<Qos>,
    /// Reserved memory for what the endpoints of a participant have in common.
    commons: Vec<Arc<Common>>,
}

impl Shared {
    /// Reserves memory for the endpoints of a limits table.
    pub(super) fn new(table: Option<&Limits>) -> Self {
        let Some(limits) = table else { return Self::default() };
        let (names, policies, name_bytes) = Self::rooms(limits);
        let mut spare = Vec::with_capacity(names);
        spare.extend((0..names).map(|_| Arc::new(String::with_capacity(name_bytes))));
        let representations = limits.discovery().representations;
        let mut commons = Vec::with_capacity(names / 2);
        commons.extend((0..names / 2).map(|_| Arc::default()));
        let qos = || Qos { representation: Vec::with_capacity(representations), ..Qos::for_reader() };
        Self {
            names: Vec::with_capacity(names),
            spare,
            policies: VecDeque::with_capacity(POLICIES_MAX),
            all_policies: Pool::with_room(policies, qos),
            commons,
        }
    }

    /// Returns how many names and policies there may be, and how long a name is.
    fn rooms(limits: &Limits) -> (usize, usize, usize) {
        let endpoints = limits.participants.saturating_mul(limits.endpoints_per_participant);
        // One more endpoint is refused only once its names are known.
        let names = endpoints.saturating_add(1).saturating_mul(2);
        (names, endpoints.saturating_add(POLICIES_MAX + 1), limits.discovery().name_bytes)
    }

    /// Returns the memory that an endpoint takes, and that of all besides, in bytes.
    pub(super) fn bytes(limits: &Limits) -> (usize, usize) {
        let discovery = limits.discovery();
        let name = (ARC_BYTES + size_of::<String>() + size_of::<Name>()).saturating_add(discovery.name_bytes);
        let qos = ARC_BYTES + size_of::<Qos>() + discovery.representations * size_of::<i16>();
        let endpoint = name.saturating_mul(2) + ARC_BYTES + size_of::<Common>();
        let besides = endpoint + (POLICIES_MAX + 1) * qos + POLICIES_MAX * size_of::<Arc<Qos>>();
        (endpoint.saturating_add(qos), besides)
    }

    /// Returns a name.
    pub(super) fn name(&mut self, name: &str) -> Name {
        let at = match self.names.binary_search_by(|known| known.as_str().cmp(name)) {
            Ok(at) => return Arc::clone(&self.names[at]),
            Err(at) => at,
        };
        let at = if self.names.len() == self.names.capacity() { self.forget_unused(name) } else { at };
        let mut new = self.spare.pop().unwrap_or_default();
        if let Some(text) = Arc::get_mut(&mut new) {
            text.clear();
            text.push_str(name);
        }
        self.names.insert(at, Arc::clone(&new));
        new
    }

    /// Forgets names that only an event still had when their endpoints were gone. Called before the list grows. Returns
    /// where a new name belongs.
    fn forget_unused(&mut self, name: &str) -> usize {
        let room = self.spare.capacity();
        for unused in self.names.extract_if(.., |known| Arc::strong_count(known) == 1) {
            if self.spare.len() < room {
                self.spare.push(unused);
            }
        }
        self.names.partition_point(|known| known.as_str() < name)
    }

    /// Returns policies: those of another endpoint, if they are the same and it is one of the latest.
    pub(super) fn policies(&mut self, qos: &Qos) -> Arc<Qos> {
        if let Some(known) = self.policies.iter().find(|known| ***known == *qos) {
            return Arc::clone(known);
        }
        if self.policies.len() >= POLICIES_MAX {
            self.policies.pop_front();
        }
        let ((), qos) = self.all_policies.fill(Qos::for_reader, |free| free.become_copy_of(qos));
        self.policies.push_back(Arc::clone(&qos));
        qos
    }

    /// Stores what endpoints have in common.
    pub(super) fn common(&mut self, common: Common) -> Arc<Common> {
        let mut new = self.commons.pop().unwrap_or_default();
        if let Some(free) = Arc::get_mut(&mut new) {
            *free = common;
        }
        new
    }

    /// Takes back what an endpoint has in common with others, if no other has it.
    pub(super) fn release_common(&mut self, mut common: Arc<Common>) {
        if self.commons.len() < self.commons.capacity()
            && let Some(unused) = Arc::get_mut(&mut common)
        {
            *unused = Common::default();
            self.commons.push(common);
        }
    }

    /// Forgets what no other endpoint than this one has.
    pub(super) fn release(&mut self, entry: RemoteEntry) {
        let RemoteEntry { topic, type_name, common, .. } = entry;
        self.release_common(common);
        for name in [topic, type_name] {
            // This one and the one in the list; an endpoint whose topic and type have one name is visited twice. One
            // that an event has, too, is forgotten later.
            if Arc::strong_count(&name) != 2 {
                continue;
            }
            if let Ok(at) = self.names.binary_search(&name) {
                drop(name);
                let unused = self.names.remove(at);
                if self.spare.len() < self.spare.capacity() {
                    self.spare.push(unused);
                }
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
    fn a_name_that_an_event_has_longer_than_its_endpoint_is_forgotten_before_the_list_grows() {
        let mut shared = Shared::default();
        let kept = shared.name("kept");
        let _of_event = [shared.name("gone"), shared.name("gone, too")].map(drop);
        while shared.names.iter().any(|name| name.starts_with("gone")) {
            assert!(shared.names.len() < 100, "never forgotten");
            let number = shared.names.len();
            core::mem::forget(shared.name(&alloc::format!("{number}")));
        }
        assert!(Arc::ptr_eq(&kept, &shared.name("kept")));
        assert!(shared.names.is_sorted());
    }

    #[test]
    fn equal_policies_are_stored_once_and_few_are_remembered() {
        let mut shared = Shared::default();
        let of = |priority| Qos { transport_priority: priority, ..Qos::for_writer() };
        let first = shared.policies(&of(0));
        assert!(Arc::ptr_eq(&first, &shared.policies(&of(0))));
        for priority in 1..100 {
            shared.policies(&of(priority));
        }
        assert_eq!(shared.policies.len(), POLICIES_MAX);
        assert!(!Arc::ptr_eq(&first, &shared.policies(&of(0))));
    }
}
