//! Reports assertions to discovery, which watches the leases of local writers and announces them.
//! Not every write is reported.

use weir_rtps::participant::ParticipantCore;
use weir_rtps::time::Time;

use super::assertions::Report;
use super::endpoints::WriterEndpoint;
use super::routes::Table;
use super::shared::Driver;

impl Driver {
    /// Records that a writer has written or was asserted. No lock of the writer may be held.
    pub(crate) fn note_assertion(&self, writer: &WriterEndpoint, now: Time) {
        match writer.assertions.note(now) {
            Report::Not => {}
            Report::Now => {
                self.with_discovery(|core, now| writer.assertions.report(core, now, writer.entity));
            }
            Report::At(due_at) => self.outlet.timers.arm(due_at),
        }
    }

    /// Reports all assertions that discovery has to know of before leases expire.
    pub(crate) fn report_assertions(&self, core: &mut ParticipantCore, now: Time) {
        let table = self.routes.table();
        for writer in table.writers.values().filter(|writer| writer.assertions.is_watched()) {
            writer.assertions.report(core, now, writer.entity);
        }
    }

    /// Reports pending assertions to discovery if one is due. Returns when the next is due.
    pub(crate) fn assertions_timeout(&self, now: Time, table: &Table) -> Option<Time> {
        let due_at = || table.writers.values().filter_map(|writer| writer.assertions.due_at()).min();
        if due_at()? <= now {
            self.with_discovery(|core, now| self.report_assertions(core, now));
        }
        due_at()
    }
}
