//! The type of service of what a writer sends: DSCP as configured, ECN where the paths use it.

use weir_wire::{Ecn, EcnCounts, EntityId, Guid, push};

use super::compose;
use super::pacing::Pacing;
use super::state::WriterCore;
use crate::config;
use crate::ecn::ECT0;
use crate::outbox::{Destinations, Outbox};
use crate::time::Time;

impl WriterCore {
    /// Changes [`WriterConfig::dscp`](super::WriterConfig::dscp).
    pub fn set_dscp(&mut self, dscp: u8) {
        self.config.dscp = dscp & DSCP_MAX;
        self.update_indirect();
    }

    /// Returns the type of service of what is sent without ECN.
    pub fn type_of_service(&self) -> u8 {
        self.config.dscp << 2
    }

    /// Returns whether something may be added to what is sent: another type of service than none, inline QoS, or what
    /// is sent to readers that are [apart](super::apart).
    #[inline]
    pub(super) fn sets_type_of_service(&self) -> bool {
        self.pacing.is_paced || self.has_additions
    }

    /// Calls `append` to append messages, adds inline QoS if a reader expects it, sets the type of service of these,
    /// and asks readers for marks.
    #[inline(never)]
    pub(super) fn with_type_of_service(
        &mut self,
        now: Time,
        out: &mut Outbox,
        append: fn(&mut Self, Time, &mut Outbox),
    ) {
        let first = out.items.len();
        if self.inline_qos.is_some() {
            let mut plain = Outbox::new();
            self.append_for_all(now, &mut plain, append);
            self.add_inline_qos(&plain, out);
        } else {
            self.append_for_all(now, out, append);
        }
        let type_of_service = self.type_of_service();
        for item in out.items.iter_mut().skip(first) {
            let is_sample = item.slice.is_some();
            let is_ect = is_sample && self.pacing.sends_ect(now, &item.to, item.datagrams);
            item.type_of_service = type_of_service | if is_ect { ECT0 } else { 0 };
        }
        let is_paced = self.pacing.is_paced || self.taking.is_some();
        if out.items.len() > first && is_paced && now >= self.pacing.ecn_at {
            self.pacing.ecn_at = now + config::ECN_CHECK_EVERY;
            self.ask_for_marks(now, out);
        }
    }

    /// Calls `append`, and appends what readers that are [apart](super::apart) are sent of the same.
    fn append_for_all(&mut self, now: Time, out: &mut Outbox, append: fn(&mut Self, Time, &mut Outbox)) {
        append(self, now, out);
        if self.taking.is_some() && !self.is_beside_sender && self.feed_apart(now) {
            self.answer(now, out);
        }
    }

    /// Asks the readers at paths that may use ECN to report marks.
    fn ask_for_marks(&mut self, now: Time, out: &mut Outbox) {
        let to = &mut self.addresses;
        for path in self.pacing.paths() {
            to.clear();
            for proxy in self.proxies.iter().filter(|proxy| proxy.reports_marks()) {
                let is_there = proxy.path.as_ref().is_some_and(|known| known.is(path));
                let first = proxy.destinations.first().filter(|at| is_there && !to.contains(*at));
                to.extend(first);
            }
            if to.is_empty() || !path.lock().asks_for_marks(now, to) {
                continue;
            }
            let header = compose::header(&self.config);
            let question = Ecn { reader: EntityId::UNKNOWN, writer: self.config.guid.entity, counts: None };
            out.message(&self.lists.list(to), |message| {
                push(message, &header);
                push(message, &question);
            });
        }
    }

    /// Handles what a reader reports about the marks of what its participant has received from this one.
    pub fn handle_ecn(&mut self, now: Time, reader: Guid, counts: EcnCounts) {
        let Some(proxy) = self.reader_mut(&reader) else { return };
        if let (Some(path), [from]) = (&proxy.path, &proxy.destinations[..])
            && proxy.reports_marks()
        {
            path.lock().note_marks(now, *from, counts);
        }
    }
}

impl Pacing {
    /// Returns whether datagrams to these addresses are sent as ECT(0), and records them: all have to report marks.
    fn sends_ect(&self, now: Time, to: &Destinations, datagrams: u8) -> bool {
        let is_ect = |to| self.paths().any(|path| path.lock().is_ect(now, to));
        if to.is_empty() || !to.iter().all(|to| is_ect(*to)) {
            return false;
        }
        for to in to.iter() {
            // An address belongs to one host, and so to one path.
            self.paths().for_each(|path| path.lock().note_ect(*to, datagrams.into()));
        }
        true
    }
}

const DSCP_MAX: u8 = 63;
