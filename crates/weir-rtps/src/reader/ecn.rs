//! Reports to writers how many of their participant's datagrams arrived marked (ECN).

use weir_wire::{Ecn, Guid, push};

use super::ReaderCore;
use super::config::ReaderConfig;
use super::writer_proxy::WriterProxy;
use crate::outbox::Outbox;

impl ReaderCore {
    /// Handles the question of a writer how many of its participant's datagrams arrive marked. Its answers contain
    /// that from now on.
    pub fn handle_ecn(&mut self, writer: Guid) {
        let Some(proxy) = self.writers.get_mut(writer).filter(|proxy| proxy.is_reliable) else { return };
        proxy.reports_ecn = true;
        self.config.ecn.want(writer.prefix);
    }
}

/// Adds the counts to the last message, which is to this writer. Out of line: few writers ask.
#[cold]
pub(super) fn report(config: &ReaderConfig, proxy: &WriterProxy, out: &mut Outbox) {
    let Some(counts) = config.ecn.of(proxy.guid.prefix) else { return };
    let (reader, writer) = (config.guid.entity, proxy.guid.entity);
    out.extend_last(|message| push(message, &Ecn { reader, writer, counts: Some(counts) }));
}
