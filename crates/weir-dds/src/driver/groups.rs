//! The multicast groups that a participant's readers listen to, with one socket per group while a
//! reader needs it.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use weir_udp::{SocketOptions, UdpError, UdpSocket};

use crate::error::{DdsError, Result};

/// Most groups of a participant. Every group is one more socket to poll.
pub(crate) const GROUPS_MAX: usize = 15;

/// The groups' sockets, as the receiving thread uses them.
pub(crate) type Sockets = Arc<[Arc<UdpSocket>]>;

/// The groups, and how many readers listen to each.
pub(crate) struct Groups {
    /// Local addresses of the interfaces on which groups are joined.
    interfaces: Vec<Ipv4Addr>,
    receive_buffer: usize,
    members: Mutex<Vec<Member>>,
    sockets: RwLock<Sockets>,
    version: AtomicU64,
}

struct Member {
    group: SocketAddrV4,
    socket: Arc<UdpSocket>,
    readers: usize,
}

impl Groups {
    /// Starts without groups. `receive_buffer` is the buffer size to request for each socket, in
    /// bytes.
    pub(crate) fn new(interfaces: Vec<Ipv4Addr>, receive_buffer: usize) -> Self {
        Self {
            interfaces,
            receive_buffer,
            members: Mutex::default(),
            sockets: RwLock::new(Arc::from([])),
            version: AtomicU64::new(0),
        }
    }

    /// Adds a reader to a group, and joins the group if it is the first. The caller has to kick the
    /// receiving thread.
    pub(crate) fn join(&self, group: SocketAddrV4) -> Result<()> {
        let mut members = self.members.lock();
        if let Some(member) = members.iter_mut().find(|member| member.group == group) {
            member.readers += 1;
            return Ok(());
        }
        if members.len() >= GROUPS_MAX {
            let text = format!(
                "the participant listens to {GROUPS_MAX} multicast groups, which is the limit: share groups"
            );
            return Err(DdsError::OutOfResources(text));
        }
        let socket = Arc::new(self.open(group)?);
        members.push(Member { group, socket, readers: 1 });
        self.publish(&members);
        Ok(())
    }

    /// Undoes one [`Groups::join`].
    pub(crate) fn leave(&self, group: SocketAddrV4) {
        let mut members = self.members.lock();
        let Some(index) = members.iter().position(|member| member.group == group) else { return };
        members[index].readers -= 1;
        if members[index].readers == 0 {
            members.remove(index);
            self.publish(&members);
        }
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

    fn open(&self, group: SocketAddrV4) -> Result<UdpSocket> {
        let options = SocketOptions {
            reuse_address: true,
            recv_buffer: Some(self.receive_buffer),
            gro: true,
            // A socket bound to the group receives nothing else sent to the port.
            ..SocketOptions::new(group)
        };
        let what = || format!("cannot listen to the multicast group {group}");
        let socket = UdpSocket::bind(&options).map_err(|error| DdsError::network(what(), error))?;
        join_on_any(&socket, *group.ip(), self.interfaces.iter().copied())
            .map_err(|error| DdsError::network(what(), error))?;
        Ok(socket)
    }
}

/// Joins a group on every interface. One without multicast does no harm if another one supports it.
pub(super) fn join_on_any(
    socket: &UdpSocket,
    group: Ipv4Addr,
    interfaces: impl Iterator<Item = Ipv4Addr>,
) -> std::result::Result<(), UdpError> {
    let (joined, failed): (Vec<_>, Vec<_>) = interfaces
        .map(|interface| socket.join_multicast(group, interface))
        .partition(std::result::Result::is_ok);
    if joined.is_empty() { failed.into_iter().last().unwrap_or(Ok(())) } else { Ok(()) }
}
