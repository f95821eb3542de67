//! The state behind a writer's core lock, and the fast path for single-sample datagrams.
//!
//! The general path passes samples through an outbox and sends them without the core's lock, under
//! a second lock that keeps them in order. For a single sample, this detour would be most of the
//! cost of a write. The fast path therefore sends under the core's lock alone. Few other threads
//! need the core during the send: the fast path is off while a HEARTBEAT is unanswered, and the timer
//! thread does not wait for long.
//!
//! A long bulk at the end of the sample is sent from the application's memory. It is copied into
//! the history after that.

use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use weir_rtps::outbox::Destinations;
use weir_rtps::time::Time;
use weir_rtps::writer::{DirectDatagram, DirectPayload, Stamp, WriterCore};

use super::outlet::Outlet;
use super::sender::{Connection, SendCounters};
use crate::clock;
use crate::stage_times::SendTimes;

/// The state guarded by the lock of a writer's core.
pub(crate) struct WriterState {
    core: WriterCore,
    /// The only destination, and the socket connected to it. Without the destination, the socket
    /// has lost its path.
    connection: Option<(Destinations, Connection)>,
    /// Counts direct sends.
    pub(super) counters: SendCounters,
    /// When the last direct send took place. `None`: stage timing is disabled.
    pub(super) times: Option<SendTimes>,
}

impl WriterState {
    pub(super) fn new(core: WriterCore) -> Self {
        Self { core, connection: None, counters: SendCounters::default(), times: None }
    }

    /// Sets the socket connected to the only destination. It is unused once the core's destinations
    /// change.
    pub(super) fn connect(&mut self, connection: Option<(Destinations, Connection)>) {
        self.connection = connection;
    }

    /// Returns whether the connected socket has lost its path.
    pub(super) fn has_lost_path(&self) -> bool {
        self.connection.as_ref().is_some_and(|(to, _)| to.is_empty())
    }

    /// Writes and sends a single-sample datagram, see [`WriterCore::write_direct`].
    ///
    /// No other thread may be sending what the core handed out before. Returns `false` if nothing
    /// happened; the caller then uses the general path.
    ///
    /// # Errors
    /// Those of `fill`; nothing has happened then.
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
            let sent = match times {
                None => outlet.send_direct(connection, datagram),
                Some(times) => send_timed(outlet, connection, datagram, times),
            };
            // A datagram that the kernel refuses counts as lost; reliability recovers it.
            counters.samples += 1;
            counters.system_calls += 1;
            match sent {
                Ok(_) => counters.datagrams += 1,
                Err(error) => note_refused(outlet, &error, counters, to),
            }
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
) -> io::Result<usize> {
    let called_ns = clock::now().0;
    let sent = outlet.send_direct(connection, datagram);
    *times = SendTimes { called_ns, returned_ns: clock::now().0 };
    sent
}

/// Counts a datagram that the kernel has refused. If the connected socket has lost its path, takes
/// it out of use: it is connected to no destination of the core any more.
#[cold]
fn note_refused(outlet: &Outlet, error: &io::Error, counters: &mut SendCounters, to: &mut Destinations) {
    counters.refused += 1;
    if weir_udp::is_path_lost(error) {
        *to = Destinations::default();
        outlet.note_lost_path();
    }
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

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4};

    use rustix::io::Errno;
    use weir_udp::{SocketOptions, UdpSocket};

    use super::*;
    use crate::driver::timers::Timers;
    use crate::settings::SEND_BUFFER_BYTES;

    #[test]
    fn a_connected_socket_is_left_when_its_path_is_lost_and_not_when_a_datagram_is() {
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let socket = UdpSocket::bind(&SocketOptions::new(address)).unwrap();
        let outlet = Outlet::new(Arc::new(socket), Timers::new().unwrap(), SEND_BUFFER_BYTES);
        let mut counters = SendCounters::default();
        let mut to = Destinations::from([address]);
        note_refused(&outlet, &Errno::NOBUFS.into(), &mut counters, &mut to);
        assert!(!to.is_empty() && !outlet.take_lost_path());
        note_refused(&outlet, &Errno::INVAL.into(), &mut counters, &mut to);
        assert!(to.is_empty() && outlet.take_lost_path());
        assert_eq!(counters.refused, 2);
    }
}
