//! The RTPS protocol (OMG DDSI-RTPS 2.5) as deterministic state machines.
//!
//! There are no sockets, clocks, threads or randomness: datagrams and the time are arguments, and
//! output is collected in an [`Outbox`](outbox::Outbox). The same inputs give the same bytes. A
//! peer's bad input is never an error: it is counted and dropped. Everything that a peer can make
//! grow has a limit in [`config`].
//!
//! | module | content |
//! |---|---|
//! | [`participant`] | discovery, matching and leases |
//! | [`writer`] | one writer: history, window, HEARTBEATs, repairs |
//! | [`reader`] | one reader: reordering, acknowledgements, samples to be taken |
//! | [`receiver`] | from datagrams of user data to writers and readers |
//! | [`multicast`] | when to send one datagram to several readers |
//! | [`outbox`], [`block`], [`packing`] | pending output, its memory, and few datagrams for many messages |
//! | [`qos`], [`qos_match`] | policies, and which offers satisfy which requests |
//! | [`spdp`], [`sedp`], [`discovery_data`] | the data of discovery |
//! | [`discovery_event`] | what discovery reports to the driver |
//! | [`content_filter`] | the content filter of a reader as it is announced |
//! | [`ports`] | the ports of a participant |
//! | [`limits`], [`budget`] | the limits table of a participant with static memory, and what that takes |
//! | [`static_peers`] | peers whose endpoints are known beforehand |
//! | [`liveliness`] | leases of writers |
//! | [`group`] | coherent sets, and the order of the samples of several writers |
//! | [`path`], [`ecn`] | the rate of the path to a host, and the congestion marks of what arrives |
//! | [`driver`], [`station`] | a participant above any network stack |
//! | [`time`], [`config`] | the caller's clock; every tunable |

#![cfg_attr(not(any(feature = "std", test)), no_std)]
#![warn(clippy::alloc_instead_of_core, clippy::std_instead_of_alloc, clippy::std_instead_of_core)]

extern crate alloc;

mod address_lists;
pub mod block;
pub mod budget;
mod change_kind;
pub mod config;
pub mod content_filter;
mod count;
pub mod discovery_data;
pub mod discovery_event;
pub mod driver;
mod due;
pub mod ecn;
pub mod group;
mod guid_index;
mod history;
mod inline_qos;
mod instance_deadlines;
mod key_hasher;
pub mod limits;
pub mod liveliness;
mod lock;
mod math;
pub mod multicast;
mod on_demand;
pub mod outbox;
pub mod packing;
pub mod participant;
mod participant_message;
pub mod path;
pub mod ports;
pub mod qos;
pub mod qos_match;
mod qos_parameters;
pub mod reader;
pub mod receiver;
mod reservable_map;
pub mod sedp;
mod sorted_map;
pub mod spdp;
pub mod static_peers;
pub mod station;
pub mod time;
mod window;
pub mod writer;
