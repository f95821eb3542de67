//! The straight way of a lone sample: from the value to the send call under one lock, that of the writer's core.
//!
//! Samples that leave together, or with something else, pass through an outbox and are sent outside of that lock, under
//! another one that keeps them in order. For a lone sample that is most of what a write costs. As hardly anybody else wants
//! the core while it is sent (an acknowledgement that is awaited forbids the straight way, the timers' thread does not wait for
//! long), it is sent where it lies. Many octets at its end are sent from where the application has them, and copied behind that.

use std::io::IoSlice;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use weir_rtps::outbox::Destinations;
use weir_rtps::time::Time;
use weir_rtps::writer::{LoneDatagram, LonePayload, WriterCore};
use weir_udp::UdpSocket;
use weir_wire::Timestamp;

use super::transport::SendCounters;
use crate::clock;
use crate::stage_times::SendTimes;

/// A writer's core, and what its lone samples are sent by.
pub(crate) struct WriterState {
    core: WriterCore,
    /// The socket that is connected to the only one of these destinations.
    way: Option<(Destinations, Arc<UdpSocket>)>,
    counters: SendCounters,
    /// Of the last call; `None` = nobody wants to know.
    times: Option<SendTimes>,
}

impl WriterState {
    pub(crate) fn new(core: WriterCore) -> Self {
        Self { core, way: None, counters: SendCounters::default(), times: None }
    }

    /// From now on, samples to `destinations` may be sent by `socket`, which is connected to all that they are. They may not
    /// any more when the destinations have changed.
    pub(crate) fn set_way(&mut self, way: Option<(Destinations, Arc<UdpSocket>)>) {
        self.way = way;
    }

    /// What was sent the straight way.
    pub(crate) fn straight_counters(&self) -> SendCounters {
        self.counters
    }

    /// When the last sample was sent the straight way, if somebody wants to know.
    pub(crate) fn straight_times(&self) -> Option<SendTimes> {
        self.times
    }

    /// Has it noted when samples are sent.
    pub(crate) fn keep_times(&mut self) {
        self.times = Some(SendTimes::default());
    }

    /// Writes and sends a sample that goes alone, see [`WriterCore::write_lone`]. Nobody may be sending what the core has
    /// handed out before. `false`: it is to be written the other way; nothing has happened.
    ///
    /// # Errors
    /// That of `fill`; nothing has happened.
    #[inline]
    pub(crate) fn write_straight<E>(
        &mut self,
        now: Time,
        stamp_and_key: (Timestamp, Option<[u8; 16]>),
        payload: LonePayload<'_>,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<bool, E> {
        let Self { core, way, counters, times } = self;
        let Some((to, socket)) = way else { return Ok(false) };
        if !Arc::ptr_eq(to, core.destinations()) {
            return Ok(false);
        }
        let send = |datagram: LoneDatagram<'_>| {
            let is_taken = match times {
                None => send(socket, datagram),
                Some(times) => send_timed(socket, datagram, times),
            };
            // What the kernel does not take counts as lost on the way: reliability deals with it.
            counters.samples += 1;
            counters.system_calls += 1;
            counters.datagrams += u64::from(is_taken);
            counters.refused += u64::from(!is_taken);
        };
        if !core.write_lone(now, stamp_and_key, payload, fill, send)? {
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

/// Whether the kernel takes it. Always inlined: passing the parts in memory shows.
#[inline(always)]
fn send(socket: &UdpSocket, LoneDatagram { front, octets, back }: LoneDatagram<'_>) -> bool {
    if octets.is_empty() { socket.send(front).is_ok() } else { send_parts(socket, [front, octets, back]) }
}

#[inline(never)]
fn send_parts(socket: &UdpSocket, parts: [&[u8]; 3]) -> bool {
    let count = if parts[2].is_empty() { 2 } else { 3 };
    socket.send_vectored(&parts.map(IoSlice::new)[..count]).is_ok()
}

#[cold]
fn send_timed(socket: &UdpSocket, datagram: LoneDatagram<'_>, times: &mut SendTimes) -> bool {
    let called_ns = clock::now().0;
    let is_taken = send(socket, datagram);
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
