//! The multicast groups that a participant's readers listen to, with one socket per group while a
//! reader needs it.

use std::net::SocketAddrV4;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use weir_udp::{SocketOptions, UdpSocket};

use super::memberships::{Memberships, Place};
use crate::error::{DdsError, Result};

/// Most groups of a participant. Every group is one more socket to poll.
pub(crate) const GROUPS_MAX: usize = 15;

/// The groups' sockets, as the receiving thread uses them.
pub(crate) type Sockets = Arc<[Arc<UdpSocket>]>;

/// The groups, and how many readers listen to each.
pub(crate) struct Groups {
    receive_buffer: usize,
    members: Mutex<Members>,
    sockets: RwLock<Sockets>,
    version: AtomicU64,
}

struct Members {
    /// The interfaces on which groups are joined.
    places: Vec<Place>,
    list: Vec<Member>,
}

struct Member {
    group: SocketAddrV4,
    socket: Arc<UdpSocket>,
    joined: Memberships,
    readers: usize,
}

impl Groups {
    /// Starts without groups. `receive_buffer` is the buffer size to request for each socket, in
    /// bytes.
    pub(crate) fn new(places: Vec<Place>, receive_buffer: usize) -> Self {
        Self {
            receive_buffer,
            members: Mutex::new(Members { places, list: Vec::new() }),
            sockets: RwLock::new(Arc::from([])),
            version: AtomicU64::new(0),
        }
    }

    /// Adds a reader to a group, and joins the group if it is the first. The caller has to kick the
    /// receiving thread.
    pub(crate) fn join(&self, group: SocketAddrV4) -> Result<()> {
        let mut members = self.members.lock();
        let Members { places, list } = &mut *members;
        if let Some(member) = list.iter_mut().find(|member| member.group == group) {
            member.readers += 1;
            return Ok(());
        }
        if list.len() >= GROUPS_MAX {
            let text = format!(
                "the participant listens to {GROUPS_MAX} multicast groups, which is the limit: share groups"
            );
            return Err(DdsError::OutOfResources(text));
        }
        let (socket, joined) = self.open(group, places)?;
        list.push(Member { group, socket: Arc::new(socket), joined, readers: 1 });
        self.publish(list);
        Ok(())
    }

    /// Undoes one [`Groups::join`].
    pub(crate) fn leave(&self, group: SocketAddrV4) {
        let list = &mut self.members.lock().list;
        let Some(index) = list.iter().position(|member| member.group == group) else { return };
        list[index].readers -= 1;
        if list[index].readers == 0 {
            list.remove(index);
            self.publish(list);
        }
    }

    /// Joins all groups on these interfaces, and leaves them on all others. Returns `false` if one
    /// could be joined on none.
    pub(super) fn move_to(&self, places: Vec<Place>) -> bool {
        let mut members = self.members.lock();
        let Members { places: known, list } = &mut *members;
        *known = places;
        let mut is_complete = true;
        for Member { group, socket, joined, .. } in list {
            is_complete &= joined.renew(socket, *group.ip(), known).is_ok() || !joined.is_empty();
        }
        is_complete
    }

    /// Returns the sockets of all groups.
    pub(crate) fn sockets(&self) -> Sockets {
        Arc::clone(&self.sockets.read())
    }

    /// Returns a number that is incremented whenever the sockets change.
    #[inline]
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    fn publish(&self, members: &[Member]) {
        *self.sockets.write() = members.iter().map(|member| Arc::clone(&member.socket)).collect();
        self.version.fetch_add(1, Ordering::Release);
    }

    fn open(&self, group: SocketAddrV4, places: &[Place]) -> Result<(UdpSocket, Memberships)> {
        let options = SocketOptions {
            reuse_address: true,
            recv_buffer: Some(self.receive_buffer),
            gro: true,
            // A socket bound to the group receives nothing else sent to the port.
            ..SocketOptions::new(group)
        };
        let what = || format!("cannot listen to the multicast group {group}");
        let socket = UdpSocket::bind(&options).map_err(|error| DdsError::network(what(), error))?;
        let mut joined = Memberships::default();
        match joined.renew(&socket, *group.ip(), places) {
            Err(error) if joined.is_empty() => Err(DdsError::network(what(), error)),
            _ => Ok((socket, joined)),
        }
    }
}
