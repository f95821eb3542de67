//! A writer's core, and what its single-sample datagrams are sent by.
//!
//! Samples that leave together, or with something else, pass through an outbox and are sent outside the lock of the
//! core, under another one that keeps them in order. For a sample by itself that is most of what a write costs. Few other
//! threads want the core while it is sent (an acknowledgement that is awaited forbids it, the timers' thread does not
//! wait for long), so it is sent under the lock of the core alone. A long bulk at its end is sent from the application's
//! memory, and copied after that.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use weir_rtps::outbox::Destinations;
use weir_rtps::time::Time;
use weir_rtps::writer::{DirectDatagram, DirectPayload, Stamp, WriterCore};

use super::outlet::Outlet;
use super::sender::{Connection, SendCounters};
use crate::clock;
use crate::stage_times::SendTimes;

/// The state that the lock of a writer's core guards.
pub(crate) struct WriterState {
    core: WriterCore,
    /// The connection to the only one of these destinations.
    connection: Option<(Destinations, Connection)>,
    /// What was sent directly.
    pub(super) counters: SendCounters,
    /// Of the last direct send; `None`: stage timing is disabled.
    pub(super) times: Option<SendTimes>,
}

impl WriterState {
    pub(super) fn new(core: WriterCore) -> Self {
        Self { core, connection: None, counters: SendCounters::default(), times: None }
    }

    /// Sends by a connection to the only one of these destinations from now on; it is not used once the writer's
    /// destinations have changed.
    pub(super) fn connect(&mut self, connection: Option<(Destinations, Connection)>) {
        self.connection = connection;
    }

    /// Writes and sends a sample by itself, see [`WriterCore::write_direct`]. No other thread may be sending what the
    /// core has handed out before. `false`, and nothing has happened: write it the general way.
    ///
    /// # Errors
    /// That of `fill`; nothing has happened then.
    #[inline(always)]
    pub(crate) fn write_direct<E>(
        &mut self,
        outlet: &Outlet,
        now: Time,
        stamp: Stamp,
        payload: DirectPayload<'_>,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<bool, E> {
        let Self { core, connection, counters, times } = self;
        let Some((to, connection)) = connection else { return Ok(false) };
        if !Arc::ptr_eq(to, core.destinations()) {
            return Ok(false);
        }
        let send = |datagram: DirectDatagram<'_>| {
            let is_taken = match times {
                None => outlet.send_direct(connection, datagram),
                Some(times) => send_timed(outlet, connection, datagram, times),
            };
            // What the kernel does not take counts as lost: reliability deals with it.
            counters.samples += 1;
            counters.system_calls += 1;
            counters.datagrams += u64::from(is_taken);
            counters.refused += u64::from(!is_taken);
        };
        if !core.write_direct(now, stamp, payload, fill, send)? {
            return Ok(false);
        }
        if core.judges_pace() {
            let sent_at = clock::now();
            core.note_sent(sent_at);
            core.note_send_time(sent_at.since(now));
        }
        Ok(true)
    }
}

#[cold]
fn send_timed(
    outlet: &Outlet,
    connection: &Connection,
    datagram: DirectDatagram<'_>,
    times: &mut SendTimes,
) -> bool {
    let called_ns = clock::now().0;
    let is_taken = outlet.send_direct(connection, datagram);
    *times = SendTimes { called_ns, returned_ns: clock::now().0 };
    is_taken
}

impl Deref for WriterState {
    type Target = WriterCore;

    #[inline]
    fn deref(&self) -> &WriterCore {
        &self.core
    }
}

impl DerefMut for WriterState {
    #[inline]
    fn deref_mut(&mut self) -> &mut WriterCore {
        &mut self.core
    }
}
