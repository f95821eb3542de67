//! A writer as a state machine: history, matched readers, window, HEARTBEATs and repairs (RTPS 2.5, 8.4.7, 8.4.9).
//!
//! A sample passes four steps, one file each. Every way to write is made of them:
//!
//! | step | file | what happens |
//! |---|---|---|
//! | admit | `admit` | chooses how the sample leaves, and checks window and resource limits |
//! | encode | `encode` | encodes the payload where it is sent from, and puts headers around it |
//! | commit | `commit` | gives the sample its sequence number |
//! | transmit | `transmit` | appends slices of the history to an outbox, to be sent without this core's lock |
//!
//! Samples are written by [`WriterCore::write`], changes without a value by [`WriterCore::write_change`], a sample in
//! memory that was lent by [`WriterCore::commit_loan`], and a large one piece by piece from
//! [`WriterCore::begin_pieces`] on. Two fast paths do the same with less: [`WriterCore::extend_batch`] adds a sample
//! to an open batch, [`WriterCore::write_direct`] writes and hands out a single-sample datagram in one step. Repairs
//! (`answers`) are the same slices again.

mod acknowledgements;
mod admit;
mod answers;
mod asynchronous;
mod burst;
mod coalescing;
mod commit;
mod compose;
mod direct;
mod encode;
mod fragments;
mod heartbeat;
mod instances;
mod large;
mod liveliness;
mod loan;
mod pieces;
mod reader_proxy;
mod readers;
mod refusal;
mod settings;
mod state;
mod tail_loss_probe;
mod timeouts;
mod transmit;

pub use direct::{DirectDatagram, DirectPayload};
pub use loan::LOAN_FRONT_BYTES;
pub use reader_proxy::ReaderProxyConfig;
pub use refusal::WriteRefused;
pub use settings::{BatchPolicy, Change, ChangeKind, Coalescing, Stamp, WriterConfig};
pub use state::{WriterCore, WriterCounters};

#[cfg(test)]
mod tests;
