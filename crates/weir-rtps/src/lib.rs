//! The RTPS protocol (OMG DDSI-RTPS 2.5) as deterministic state machines.
//!
//! No sockets, clocks, threads or randomness: datagrams and the time are arguments, what is to be sent is
//! collected in an [`Outbox`](outbox::Outbox). The same inputs give the same bytes. What a peer sends is never
//! an error of the caller's: bad input is counted and dropped, and everything that a peer can make grow has a
//! limit in [`config`].
//!
//! | module | content |
//! |---|---|
//! | [`participant`] | discovery: who is there, what matches, who has gone |
//! | [`writer`] | one writer: history, window, HEARTBEATs, repairs |
//! | [`reader`] | one reader: reordering, acknowledgements, the samples that wait |
//! | [`receiver`] | from datagrams of user data to writers and readers |
//! | [`multicast`] | when one datagram does for several readers |
//! | [`outbox`], [`block`] | what is to be sent, and the memory that it lies in |
//! | [`qos`], [`qos_match`] | policies, and which offers satisfy which requests |
//! | [`spdp`], [`sedp`] | the data of discovery |
//! | [`ports`] | which ports a participant uses |
//! | [`liveliness`] | leases of writers |
//! | [`time`], [`config`] | the caller's clock; every tunable |

pub mod block;
pub mod config;
pub mod discovery_data;
pub mod discovery_event;
mod history;
mod key_hasher;
pub mod liveliness;
pub mod multicast;
pub mod outbox;
pub mod participant;
mod participant_message;
pub mod ports;
pub mod qos;
pub mod qos_match;
mod qos_parameters;
pub mod reader;
pub mod receiver;
pub mod sedp;
pub mod spdp;
pub mod time;
mod window;
pub mod writer;
