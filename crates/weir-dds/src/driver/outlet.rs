//! The one exit of user data from a participant: samples and repairs of its writers, replies of its readers.
//!
//! Every send names its destinations and its bytes, for any writer or reader, as a single datagram or as an outbox.
//! Pacing happens before: a writer core hands out no more than its paths allow.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use weir_rtps::multicast::GroupRoute;
use weir_rtps::outbox::Outbox;
use weir_rtps::time::Time;
use weir_rtps::writer::DirectDatagram;
use weir_udp::UdpSocket;

use super::sender::{Connection, Sender};
use super::sockets::MetaSockets;
use super::timers::Timers;

/// What all senders of a participant share.
pub(crate) struct Outlet {
    socket: Arc<UdpSocket>,
    pub(crate) timers: Timers,
    /// The send buffer that connected sockets request, in bytes.
    pub(super) send_buffer: usize,
    /// Some writer may hold back samples of a burst.
    has_queued: AtomicBool,
    /// Some writer's connected socket has lost its path.
    has_lost_path: AtomicBool,
    /// The sockets of writers that are connected to multicast groups. Only they are tied to an interface.
    groups: Mutex<Vec<(GroupRoute, Weak<UdpSocket>)>>,
}

impl Outlet {
    /// Uses `socket` where no connected socket exists. Those request a send buffer of so many bytes.
    pub(crate) fn new(socket: Arc<UdpSocket>, timers: Timers, send_buffer: usize) -> Self {
        let groups = Mutex::default();
        Self {
            socket,
            timers,
            send_buffer,
            has_queued: AtomicBool::new(false),
            has_lost_path: AtomicBool::new(false),
            groups,
        }
    }

    /// Sends everything in `outbox` and empties it. A datagram that the kernel refuses counts as
    /// lost; reliability recovers it.
    #[inline]
    pub(crate) fn send(&self, sender: &mut Sender, outbox: &mut Outbox) {
        sender.send(self, outbox);
    }

    /// Sends the messages of endpoints that have just matched, without waiting for room in the socket: the caller holds
    /// the lock of discovery. `meta` counts what the kernel refuses.
    pub(super) fn send_now(&self, meta: &MetaSockets, outbox: &Outbox) {
        meta.send_from(&self.socket, outbox);
    }

    /// Has the timers thread wake at this time, if there is one.
    #[inline]
    pub(crate) fn arm(&self, at: Option<Time>) {
        if let Some(at) = at {
            self.timers.arm(at);
        }
    }

    /// Sends one datagram.
    ///
    /// # Errors
    /// The kernel has refused it.
    #[inline(always)]
    pub(crate) fn send_direct(
        &self,
        connection: &Connection,
        datagram: DirectDatagram<'_>,
    ) -> io::Result<usize> {
        connection.send(datagram)
    }

    /// Returns the socket to use where no connected socket exists.
    pub(super) fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Shares the sockets of a writer that are connected to groups with the threads that send for several writers.
    pub(super) fn share_groups(&self, sockets: impl Iterator<Item = (GroupRoute, Weak<UdpSocket>)>) {
        let mut groups = self.groups.lock();
        groups.retain(|(_, socket)| socket.strong_count() > 0);
        for (route, socket) in sockets {
            if !groups.iter().any(|(_, known)| known.ptr_eq(&socket)) {
                groups.push((route, socket));
            }
        }
    }

    /// Returns a socket for each route to a multicast group.
    pub(super) fn groups(&self) -> Vec<(GroupRoute, Arc<UdpSocket>)> {
        let mut sockets: Vec<(GroupRoute, Arc<UdpSocket>)> = Vec::new();
        for (route, socket) in self.groups.lock().iter() {
            if !sockets.iter().any(|(known, _)| known == route) {
                sockets.extend(socket.upgrade().map(|socket| (*route, socket)));
            }
        }
        sockets
    }

    /// Records that some writer's connected socket has lost its path. The timer thread opens it
    /// anew.
    pub(super) fn note_lost_path(&self) {
        self.has_lost_path.store(true, Ordering::Relaxed);
    }

    /// Returns whether some connected socket may have lost its path, and resets the flag.
    pub(super) fn take_lost_path(&self) -> bool {
        self.has_lost_path.swap(false, Ordering::Relaxed)
    }

    /// Records that some writer holds back samples of a burst.
    #[inline]
    pub(crate) fn note_queued(&self) {
        if !self.has_queued.load(Ordering::Relaxed) {
            self.has_queued.store(true, Ordering::Relaxed);
        }
    }

    /// Returns whether some writer may hold back samples.
    #[inline]
    pub(crate) fn has_queued(&self) -> bool {
        self.has_queued.load(Ordering::Relaxed)
    }

    /// Returns whether some writer may hold back samples, and resets the flag.
    pub(crate) fn take_queued(&self) -> bool {
        self.has_queued.swap(false, Ordering::AcqRel)
    }

    /// Sets the flag for a participant that has ended. A thread that resets it after that sees the end.
    pub(crate) fn note_end(&self) {
        self.has_queued.swap(true, Ordering::AcqRel);
    }
}
