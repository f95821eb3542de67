//! The one place where user data leaves a participant: samples and repairs of its writers, answers of its readers.
//!
//! Everything that paces sends belongs here: every send names its destinations and its bytes, whichever writer or
//! reader it is for, and whether it is a single datagram or an outbox.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use weir_rtps::outbox::Outbox;
use weir_rtps::writer::DirectDatagram;
use weir_udp::UdpSocket;

use super::sender::{Connection, Sender};
use super::timers::Timers;

/// What all senders of a participant share.
pub(crate) struct Outlet {
    socket: Arc<UdpSocket>,
    pub(crate) timers: Timers,
    /// Some writer may hold back samples of a burst.
    has_queued: AtomicBool,
}

impl Outlet {
    /// Sends by `socket` where no connected socket does.
    pub(crate) fn new(socket: Arc<UdpSocket>, timers: Timers) -> Self {
        Self { socket, timers, has_queued: AtomicBool::new(false) }
    }

    /// Sends everything in `outbox` and empties it. What the kernel does not take counts as lost: reliability deals with
    /// it.
    #[inline]
    pub(crate) fn send(&self, sender: &mut Sender, outbox: &mut Outbox) {
        sender.send(&self.socket, outbox);
    }

    /// Sends one datagram. Whether the kernel takes it.
    #[inline(always)]
    pub(crate) fn send_direct(&self, connection: &Connection, datagram: DirectDatagram<'_>) -> bool {
        connection.send(datagram)
    }

    /// Some writer holds back samples of a burst.
    #[inline]
    pub(crate) fn note_queued(&self) {
        if !self.has_queued.load(Ordering::Relaxed) {
            self.has_queued.store(true, Ordering::Relaxed);
        }
    }

    /// Whether some writer may hold back samples.
    #[inline]
    pub(crate) fn has_queued(&self) -> bool {
        self.has_queued.load(Ordering::Relaxed)
    }

    /// The same, and from now on none does.
    pub(crate) fn take_queued(&self) -> bool {
        self.has_queued.swap(false, Ordering::Relaxed)
    }
}
