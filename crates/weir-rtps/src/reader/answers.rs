//! ACKNACKs: what the reader acknowledges and requests (RTPS 2.5, 8.3.8.1).

use weir_wire::{AckNack, Guid, InfoDestination, SequenceNumber, SequenceNumberSet, push};

use super::ReaderCore;
use super::delivery::Delivery;
use super::writer_proxy::Answer;
use crate::config::REORDER_SHARED_SAMPLES;
use crate::outbox::{Destinations, Outbox};
use crate::time::Time;

impl ReaderCore {
    #[inline(never)]
    pub(super) fn answer_writers(&mut self, now: Time, out: &mut Outbox) {
        (self.is_answer_due, self.is_request_due) = (false, false);
        // An answer may set a timer.
        self.timers_set = self.timers_set.wrapping_add(1);
        self.listed = self.writers.listed();
        if self.listed > REORDER_SHARED_SAMPLES {
            self.writers.list.iter_mut().for_each(|proxy| proxy.changes.shrink());
        }
        let Self { config, fragments, more, .. } = self;
        let Delivery { cache, counters, .. } = &mut self.delivery;
        for proxy in self.writers.list.iter_mut().filter(|proxy| proxy.is_reliable) {
            fragments.request(now, config, proxy, &mut cache.chunks, counters, out);
            let answer = proxy.answer(now, cache.room(), &fragments.partial, &mut self.listed, more);
            self.is_answer_due |= proxy.requests.deferred_to.is_some();
            let Some(Answer { state, count, is_final }) = answer else { continue };
            counters.nacks_sent += u64::from(!state.is_empty() || !more.is_empty());
            let (reader, writer) = (config.guid.entity, proxy.guid.entity);
            let acknack = AckNack { reader, writer, state, count, is_final };
            out.message(&proxy.destinations, |message| {
                push(message, &config.header());
                push(message, &InfoDestination { prefix: proxy.guid.prefix });
                push(message, &acknack);
                for state in more.iter() {
                    push(message, &AckNack { state: *state, ..acknack });
                }
            });
        }
    }

    /// Sends a writer an ACKNACK that requests nothing, to any address: it shows that the reader is there.
    pub fn acknowledge_at(&mut self, writer: Guid, to: &Destinations, out: &mut Outbox) {
        let Some(proxy) = self.writers.get_mut(writer).filter(|proxy| proxy.is_reliable) else { return };
        let acknack = AckNack {
            reader: self.config.guid.entity,
            writer: writer.entity,
            state: SequenceNumberSet::new(proxy.changes.expected.min(SequenceNumber::MAX)),
            count: proxy.counts.next_acknack(),
            is_final: true,
        };
        out.message(to, |message| {
            push(message, &self.config.header());
            push(message, &InfoDestination { prefix: writer.prefix });
            push(message, &acknack);
        });
    }
}
