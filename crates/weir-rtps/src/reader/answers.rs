//! ACKNACKs: what the reader acknowledges and requests (RTPS 2.5, 8.3.8.1).

use weir_wire::{AckNack, Guid, InfoDestination, SequenceNumber, SequenceNumberSet, push};

use super::ReaderCore;
use super::delivery::Delivery;
use super::ecn;
use super::receipts;
use super::writer_proxy::Answer;
use crate::config::{GAP_VISITS_MAX, REORDER_SHARED_SAMPLES};
use crate::outbox::{Destinations, Outbox};
use crate::time::Time;

impl ReaderCore {
    /// Appends the acknowledgements that are due to `out`.
    #[inline]
    pub fn poll_transmit(&mut self, now: Time, out: &mut Outbox) {
        if self.due.is_any() {
            self.answer_writers(now, out);
        }
        if self.delivery.cache.is_sparse() {
            self.compact();
        }
    }

    #[inline(never)]
    pub(super) fn answer_writers(&mut self, now: Time, out: &mut Outbox) {
        self.errands &= !Self::REQUEST;
        self.gap_visits = GAP_VISITS_MAX;
        if self.listed >= REORDER_SHARED_SAMPLES / 2 {
            self.listed = self.writers.listed();
        }
        if self.listed > REORDER_SHARED_SAMPLES {
            self.writers.list.iter_mut().for_each(|proxy| proxy.changes.shrink());
        }
        let due = self.due.take(self.writers.list.len());
        let Self { config, fragments, more, .. } = self;
        let Delivery { cache, counters, .. } = &mut self.delivery;
        let writers = self.writers.list.len() as u32;
        let writers_due = self.writers.list[due.clone()].iter_mut().zip(due);
        // An answer may set a timer.
        let mut timer: Option<Time> = None;
        for (proxy, index) in writers_due {
            if !proxy.is_reliable {
                receipts::answer(now, config, proxy, out);
                continue;
            }
            if proxy.may_request() || !fragments.assemblies.is_empty() {
                proxy.requests.patience_min = config.answer_time * writers;
            }
            let before = out.items.len();
            let nacks = counters.nacks_sent;
            fragments.request(now, config, proxy, &mut cache.chunks, counters, out);
            if counters.nacks_sent > nacks {
                proxy.requests.note_named(now);
            }
            let scope = (cache.room(), &fragments.partial[..]);
            let answer = proxy.answer(now, writers, scope, &mut self.listed, more);
            timer = timer.into_iter().chain(proxy.next_timeout()).min();
            // It was considered, even if nothing may be requested now.
            if let Some(requests) = proxy.requests.changed() {
                requests.is_repeat_due = false;
            }
            self.due.add_if(index, proxy.requests.deferred_to.is_some());
            self.has_given_up |= proxy.has_given_up();
            let Some(Answer { state, count, is_final }) = answer else {
                if proxy.reports_ecn && out.items.len() > before {
                    ecn::report(config, proxy, out);
                }
                continue;
            };
            counters.nacks_sent += u64::from(!state.is_empty() || !more.is_empty());
            let (reader, writer) = (config.guid.entity, proxy.guid.entity);
            let acknack = AckNack { reader, writer, state, count, is_final };
            out.message(&proxy.destinations, |message| {
                push(message, &config.header());
                push(message, &InfoDestination { prefix: proxy.guid.prefix });
                if let Some(echo) =
                    proxy.echo(now, reader).filter(|_| !state.is_empty() || proxy.requests.is_lossy(now))
                {
                    push(message, &echo);
                }
                push(message, &acknack);
                for state in more.iter() {
                    push(message, &AckNack { state: *state, ..acknack });
                }
            });
            if proxy.reports_ecn {
                ecn::report(config, proxy, out);
            }
        }
        self.timer_set(timer);
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
