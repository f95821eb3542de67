//! UDP sockets done well on Linux: batching, offload, multicast, waiting, pinning.
//!
//! This is the floor that everything else stands on: the engine and the raw UDP tests use the same
//! sockets, so that the difference between the two is the cost of the protocol and nothing else. It
//! is also the one crate with unsafe code; every block says why it is sound.
//!
//! Where to look:
//! - [`UdpSocket`], [`SocketOptions`]: open, bind, connect, buffer sizes, one datagram at a time;
//! - [`Outgoing`], [`SendScratch`], [`SendScratchTo`], [`SendOutcome`]: many datagrams by one call (`sendmmsg`) or by
//!   one pass through the network stack (`UDP_SEGMENT`, "GSO");
//! - [`RecvBatch`], [`Received`]: many datagrams per call (`recvmmsg`), coalesced or not (`UDP_GRO`);
//! - [`poll`], [`Waker`], [`receive_within`]: wait for several sockets, for another thread, or spin on one socket;
//! - [`interfaces()`]: the host's IPv4 addresses; [`affinity`]: which CPU a thread runs on, and how
//!   exactly its timers fire; [`threads`]: the same for threads that others started, and their priorities.
//!
//! Sockets are of IPv4 or IPv6; what the engine alone needs ([`Outgoing::to`], [`Received::from`],
//! [`interfaces()`]) is of IPv4.
//!
//! [`wide_copy()`] is not about networks: it is here because it needs unsafe code, as all of the above.
//!
//! Deliberately not here: RTPS (this crate knows bytes and addresses only), an async runtime,
//! other operating systems, retries, pacing, a thread of its own.

pub mod affinity;
mod control_message;
mod error;
mod interfaces;
mod multicast;
mod path;
mod recv;
mod send;
mod socket;
mod sys;
pub mod threads;
mod transient;
mod wait;
mod wide_copy;

pub use error::UdpError;
pub use interfaces::{Interface, interfaces};
pub use multicast::MulticastInterface;
pub use path::path_mtu_to;
pub use recv::{RECV_BUFFER_BYTES, Received, RecvBatch};
pub use send::{
    MAX_BATCH, MAX_GSO_BYTES, MAX_GSO_SEGMENTS, Outgoing, SendOutcome, SendScratch, SendScratchTo,
};
pub use socket::{SocketOptions, UdpSocket, Wait};
pub use transient::{is_queue_full, is_transient};
pub use wait::{MAX_POLL_SOCKETS, Ready, Waker, poll, receive_within};
pub use wide_copy::{CopyFn, wide_copy};
