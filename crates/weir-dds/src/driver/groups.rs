//! The multicast groups that the readers of a participant listen to: a socket for each, there as long as a reader
//! wants it.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use weir_udp::{SocketOptions, UdpSocket};

use crate::error::{DdsError, Result};

/// Groups that a participant can listen to at a time: each is one more socket to look at.
pub(crate) const GROUPS_MAX: usize = 15;

/// The sockets of the groups, as a receiver sees them.
pub(crate) type Sockets = Arc<[Arc<UdpSocket>]>;

/// Who listens to which group.
pub(crate) struct Groups {
    /// Our addresses on the interfaces where groups are joined.
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
    /// No groups yet. `receive_buffer`: bytes to ask for for each socket.
    pub(crate) fn new(interfaces: Vec<Ipv4Addr>, receive_buffer: usize) -> Self {
        Self {
            interfaces,
            receive_buffer,
            members: Mutex::default(),
            sockets: RwLock::new(Arc::from([])),
            version: AtomicU64::new(0),
        }
    }

    /// Listens to a group on behalf of one more reader. Whoever receives is to be told by the caller.
    pub(crate) fn join(&self, group: SocketAddrV4) -> Result<()> {
        let mut members = self.members.lock();
        if let Some(member) = members.iter_mut().find(|member| member.group == group) {
            member.readers += 1;
            return Ok(());
        }
        if members.len() >= GROUPS_MAX {
            let text = format!(
                "the participant listens to {GROUPS_MAX} multicast groups already: share some of them"
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

    /// The sockets of all groups.
    pub(crate) fn sockets(&self) -> Sockets {
        Arc::clone(&self.sockets.read())
    }

    /// Goes up when the sockets change.
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
            // Bound to the group, it gets nothing else that comes to the port.
            ..SocketOptions::new(group)
        };
        let what = || format!("cannot listen to the multicast group {group}");
        let socket = UdpSocket::bind(&options).map_err(|error| DdsError::network(what(), error))?;
        let mut failure = None;
        let mut joined = 0;
        for &interface in &self.interfaces {
            match socket.join_multicast(*group.ip(), interface) {
                Ok(()) => joined += 1,
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            // An interface without multicast is no harm while another one has it.
            Some(error) if joined == 0 => Err(DdsError::network(what(), error)),
            _ => Ok(socket),
        }
    }
}
