//! A simulated UDP network: seeded, deterministic, without its own clock.
//!
//! Tests use the [`Network`] in virtual time. weir-bench's link emulator uses one [`LinkState`] per
//! direction, and gives it the packets of a real network device and the real time.
//!
//! The network handles bytes and IPv4 socket addresses, and knows nothing of RTPS. Time is a
//! [`Duration`](core::time::Duration) since the start of the simulation, given by the caller, so a
//! test runs as fast as the machine can compute it. The same seed and the same calls give the same
//! packets at the same times, on every machine.
//!
//! - [`network`]: sockets and multicast groups, sending and delivering, counters.
//! - [`link`]: one direction between two hosts: delay, jitter, rate, queue, MTU, duplication,
//!   reordering.
//! - `rate`: a link's rate over time. [`traffic`]: what a link carried, lost and queued.
//! - [`pair`]: both directions between two hosts as text, such as `lte,loss=1%`; [`preset`]: names
//!   of typical pairs; [`values`]: rates, sizes, times and shares as text.
//! - [`loss`]: which datagrams a link loses: random, in bursts, every nth, or selected by a
//!   closure.
//! - [`partition`]: which hosts cannot reach each other.
//! - [`socket`]: receive buffers that fill up like those of Linux.
//! - [`recording`]: all events, as text lines or as a pcap file ([`pcap`]).
//! - [`rng`]: the random generator, whose values never change.
//!
//! Deliberately absent: segmentation offload (on a real loopback interface a lost GSO send loses
//! every segment), IP fragmentation (a datagram over the MTU is refused), routing, bit errors
//! (UDP's checksum turns them into loss).
//!
//! ```
//! use core::time::Duration;
//! use std::net::SocketAddrV4;
//! use weir_netsim::{Link, Loss, Network};
//!
//! let a: SocketAddrV4 = "10.0.0.1:7410".parse().unwrap();
//! let b: SocketAddrV4 = "10.0.0.2:7410".parse().unwrap();
//! let mut network =
//!     Network::builder(1).link(Link::new().delay(Duration::from_millis(5)).loss(Loss::every_nth(2))).build();
//! network.bind(a);
//! network.bind(b);
//! network.send(Duration::ZERO, a, b, b"first").unwrap();
//! network.send(Duration::ZERO, a, b, b"second").unwrap();
//! let at = network.next_arrival().unwrap();
//! assert_eq!(at, Duration::from_millis(5));
//! assert_eq!(&*network.deliver(at).unwrap().bytes, b"first");
//! assert_eq!(network.next_arrival(), None);
//! assert_eq!(network.counters().lost, 1);
//! ```

pub mod ecn;
pub mod link;
pub mod loss;
pub mod network;
pub mod pair;
pub mod partition;
pub mod pcap;
pub mod preset;
mod rate;
pub mod recording;
pub mod rng;
pub mod socket;
mod steps;
pub mod traffic;
pub mod values;

pub use ecn::{Ecn, Marking};
pub use link::{Link, LinkState, Verdict};
pub use loss::{Datagram, Loss};
pub use network::{Builder, Counters, Delivery, Network, TooBig};
pub use pair::{Direction, LinkPair};
pub use partition::Partition;
pub use recording::{Event, Record, Recording, Side};
pub use rng::Rng;
pub use traffic::{Bin, Count, Queue, Series, Traffic};
