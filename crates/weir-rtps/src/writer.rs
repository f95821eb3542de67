//! A writer as a state machine: history, matched readers, window, HEARTBEATs and repairs (RTPS 2.5,
//! 8.4.7, 8.4.9).
//!
//! Every write consists of the same four steps, one file each:
//!
//! | step | file | what happens |
//! |---|---|---|
//! | admit | `admit` | chooses the form of the sample; checks the window, after encoding the resource limits |
//! | encode | `encode` | encodes the payload in the history, adds headers with the next sequence number |
//! | commit | `commit` | makes the sample part of the history; has [`WriterCore::write`], too |
//! | transmit | `transmit` | appends slices of the history to an outbox, to be sent without this core's lock |
//!
//! | write | for |
//! |---|---|
//! | [`WriterCore::write`] | a sample: the general path |
//! | [`WriterCore::write_direct`] | a single-sample datagram: the fast path, which also sends it |
//! | [`WriterCore::extend_batch`] | one more sample in the open batch: the other fast path |
//! | [`WriterCore::write_change`] | a dispose or unregister |
//! | [`WriterCore::commit_loan`] | a sample in loaned memory |
//! | [`WriterCore::begin_pieces`] | a large sample, filled piece by piece |
//!
//! | file | content |
//! |---|---|
//! | `state`, `settings` | the state of a writer; its settings, and the parameters of one write |
//! | `compose`, `direct` | the layout of datagrams; the fast path |
//! | `size` | the memory that a writer with a limits table reserves |
//! | `coalescing`, `burst` | holding samples back to send them together |
//! | `large`, `fragments`, `pieces`, `loan` | large samples, and loaned ones |
//! | `instances` | KEEP_LAST and RESOURCE_LIMITS |
//! | `readers`, `reader_proxy` | matched readers |
//! | `acknowledgements`, `answers` | ACKNACKs, and the repairs and GAPs that answer them |
//! | `repair_budget` | how much may be sent again to a host |
//! | `pacing`, `path_uses`, `apart` | how much leaves at a time, as the paths to the readers allow, and to whom |
//! | `ecn` | DSCP and ECN of what leaves |
//! | `expected_qos` | inline QoS for readers that expect it |
//! | `content_filter` | filters that readers ask for |
//! | `inactivity`, `liveliness` | readers that stop acknowledging; assertions without a sample |
//! | `refusal` | why a writer refuses samples |
//! | `service` | what late readers of TRANSIENT and PERSISTENT writers are sent |
//! | `timed` | samples that expire; deadlines of instances; writers that are suspended |
//! | `presented` | coherent sets; group sequence numbers |
//! | `heartbeat`, `tail_loss_probe`, `timeouts` | what is due at a time |
//! | `asynchronous` | writers whose samples another thread hands out |

mod acknowledgements;
mod admit;
mod answers;
mod apart;
mod asynchronous;
mod burst;
mod coalescing;
mod commit;
mod compose;
mod content_filter;
mod direct;
mod ecn;
mod encode;
mod expected_qos;
mod fragments;
mod go_back;
mod group_reach;
mod group_repairs;
mod heartbeat;
mod inactivity;
mod instances;
mod large;
mod late_joiners;
mod liveliness;
mod loan;
mod pacing;
mod path_uses;
mod pieces;
mod presented;
mod reader_proxy;
mod readers;
mod receipts;
mod receipts_apart;
mod refusal;
mod repair_budget;
mod repairs_allowed;
mod requested;
mod service;
mod settings;
mod size;
mod state;
mod tail_loss_probe;
mod timed;
mod timeouts;
mod transmit;
mod unfinished;
mod withheld;

pub use crate::change_kind::ChangeKind;
pub use crate::instance_deadlines::DeadlineMissedStatus;
pub use direct::{DirectDatagram, DirectPayload};
pub use expected_qos::inline_qos_of;
pub use inactivity::Silence;
pub use loan::LOAN_FRONT_BYTES;
pub use presented::WriterPresentation;
pub use reader_proxy::ReaderProxyConfig;
pub(crate) use reader_proxy::is_preemptive;
pub use refusal::WriteRefused;
pub use settings::{BatchPolicy, Change, Coalescing, Stamp, WriterConfig};
pub use size::WriterSize;
pub use state::{WriterCore, WriterCounters};

/// What the end of an instance takes beside its payload, in bytes: its inline QoS. See [`WriterCore::has_room_for`].
pub const END_LEN_MORE: usize = compose::INLINE_QOS_LEN;

#[cfg(test)]
mod tests;
