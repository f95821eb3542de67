//! Samples for which there is no room (SAMPLE_REJECTED, DDS 1.4 §2.2.4.1), and what happens when there is some again.

use weir_wire::SequenceNumber;

use super::ReaderCore;
use crate::key_hasher::Key;

/// Why a sample finds no room (SAMPLE_REJECTED, DDS 1.4 §2.2.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rejection {
    /// One instance more than `max_instances`.
    InstancesLimit,
    /// One sample more than `max_samples`.
    SamplesLimit,
    /// One sample more of its instance than `max_samples_per_instance`.
    SamplesPerInstanceLimit,
    /// More bytes than `max_bytes`.
    BytesLimit,
}

impl Rejection {
    /// Whether samples of other instances may find room all the same.
    pub(super) fn is_of_instance(self) -> bool {
        matches!(self, Self::InstancesLimit | Self::SamplesPerInstanceLimit)
    }
}

impl ReaderCore {
    /// A sample finds no room: a reliable writer is asked for it again when there is some.
    #[cold]
    pub(super) fn reject(
        &mut self,
        index: usize,
        sn: SequenceNumber,
        rejection: Rejection,
        key: Option<Key>,
    ) {
        let Some(proxy) = self.proxies.get_mut(index) else { return };
        let is_news = !proxy.is_refused;
        proxy.refuse(sn);
        proxy.refused_key = rejection.is_of_instance().then_some(key).flatten();
        self.counters.samples_rejected += u64::from(!proxy.is_reliable);
        self.counters.samples_refused += u64::from(proxy.is_reliable && is_news);
        self.last_rejection = Some((rejection, key));
        self.has_refused |= proxy.is_refused;
    }

    /// Why the last sample that was rejected or refused found no room, and the key hash of its instance.
    pub fn last_rejection(&self) -> Option<(Rejection, Option<[u8; 16]>)> {
        self.last_rejection.map(|(rejection, key)| (rejection, key.map(Key::octets)))
    }

    /// Moves the samples that were held back and are next now into the cache, as far as there is room.
    pub(super) fn deliver_held(&mut self, index: usize) {
        let Some(proxy) = self.proxies.get_mut(index) else { return };
        let cache = &mut self.cache;
        let mut refused_key = None;
        loop {
            let next = proxy.next_held(|held| {
                let rejection = cache.refusal(held.key(), held.len());
                if rejection.is_some_and(Rejection::is_of_instance) {
                    refused_key = held.key();
                }
                rejection.is_none()
            });
            let Some((sn, held)) = next else { break };
            self.counters.samples_received += 1;
            cache.push_held(proxy.guid, sn, held);
        }
        if proxy.is_refused {
            self.has_refused = true;
            if refused_key.is_some() {
                proxy.refused_key = refused_key;
            }
        }
    }

    #[inline]
    pub(super) fn room_was_made(&mut self) {
        if self.has_refused {
            self.ask_refused_again();
        }
    }

    #[cold]
    fn ask_refused_again(&mut self) {
        let has_room = !self.cache.is_nearly_full();
        for index in 0..self.proxies.len() {
            let proxy = &mut self.proxies[index];
            // Room for others is no room for a sample of an instance that is full.
            let is_full = |key| self.cache.refusal(Some(key), 0).is_some();
            let is_ready = proxy.is_refused && has_room && !proxy.refused_key.is_some_and(is_full);
            if is_ready {
                proxy.is_refused = false;
                proxy.refused_key = None;
                proxy.ask_again();
                self.deliver_held(index);
                self.is_answer_due = true;
            }
        }
        self.has_refused = self.proxies.iter().any(|proxy| proxy.is_refused);
    }
}
