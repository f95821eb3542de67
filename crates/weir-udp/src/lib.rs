//! UDP sockets for Linux: batching, offload, multicast, waiting, pinning; and a TUN device.
//!
//! The engine and the raw UDP baselines use the same sockets, so the difference between the two is
//! the cost of the protocol. This is also the crate for unsafe code; every block says why it is
//! sound.
//!
//! Where to look:
//! - [`UdpSocket`], [`SocketOptions`]: open, bind, connect, buffer sizes, one datagram at a time;
//! - [`Outgoing`], [`SendScratch`], [`SendScratchTo`], [`SendOutcome`]: many datagrams per call
//!   (`sendmmsg`) or per pass through the network stack (`UDP_SEGMENT`, "GSO");
//! - [`RecvBatch`], [`Received`]: many datagrams per call (`recvmmsg`), coalesced or not
//!   (`UDP_GRO`);
//! - [`poll`], [`Waker`], [`receive_within`]: wait for several sockets, for another thread, or spin
//!   on one socket;
//! - [`interfaces()`]: the host's IPv4 addresses; [`NetworkWatch`]: notices their changes;
//!   [`UdpSocket::receive_only_at`]: restricts a socket to some of them;
//! - [`CombinedFd`]: one descriptor for several others;
//! - [`affinity`]: CPU and timer precision of a thread; [`threads`]: CPU and priority of other
//!   threads of the process.
//!
//! Sockets are IPv4 or IPv6. [`Outgoing::to`], [`Received::from`] and [`interfaces()`], which only
//! the engine uses, are IPv4 only.
//!
//! [`Tun`] is a network device of which the program is the far end, for weir-bench's link emulator.
//!
//! [`wide_copy()`] has nothing to do with networks: it is here because it needs unsafe code.
//!
//! Deliberately absent: RTPS (this crate handles bytes and addresses only), an async runtime, other
//! operating systems, retries, pacing, threads.

pub mod affinity;
mod combined;
mod control_message;
mod error;
mod filter;
mod interfaces;
mod multicast;
mod path;
mod recv;
mod refusals;
mod send;
mod socket;
mod sys;
pub mod threads;
mod timer;
mod transient;
mod tun;
mod wait;
mod watch;
mod wide_copy;

pub use combined::CombinedFd;
pub use error::UdpError;
pub use interfaces::{Interface, interfaces};
pub use multicast::MulticastInterface;
pub use path::{is_own_address, path_mtu_to};
pub use recv::{RECV_BUFFER_BYTES, Received, RecvBatch, Stamp};
pub use refusals::Refusal;
pub use send::{
    MAX_BATCH, MAX_GSO_BYTES, MAX_GSO_SEGMENTS, Outgoing, SendOutcome, SendScratch, SendScratchTo,
};
pub use socket::{Fragments, SocketOptions, UdpSocket, Wait};
pub use timer::Timer;
pub use transient::{is_path_lost, is_queue_full, is_report, is_too_long, is_transient};
pub use tun::Tun;
pub use wait::{MAX_POLL_SOCKETS, Ready, Waker, poll, receive_within};
pub use watch::NetworkWatch;
pub use wide_copy::{CopyFn, wide_copy};
