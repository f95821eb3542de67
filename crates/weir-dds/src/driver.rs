//! Where the protocol meets the operating system: sockets, threads, and which thread does what.
//!
//! | file | content |
//! |---|---|
//! | `shared` | everything that the threads and handles of a participant share |
//! | `start` | starts and stops a participant |
//! | `interfaces`, `sockets` | the network interfaces that it uses, and its sockets |
//! | `endpoints`, `routes` | its writers and readers, and how datagrams find them |
//! | **sending** | |
//! | `lane` | a writer's two locks: what is written is handed out, sent, and followed by a timer |
//! | `direct` | a single-sample datagram is sent under the lock that it was written under |
//! | `outlet`, `sender` | the one place where user data leaves; an outbox becomes system calls |
//! | `publishing`, `publishing_thread` | the threads of writers that publish asynchronously |
//! | **receiving** | |
//! | `channel`, `receive`, `receive_thread` | a thread that blocks in any wait call also receives |
//! | `groups` | the multicast groups that readers listen to |
//! | `received_blocks` | memory in which large samples stay where they were received |
//! | `receive_counters` | what is counted about received datagrams |
//! | **the rest** | |
//! | `discovery`, `matching` | what discovery finds becomes matches, statuses and calls of listeners |
//! | `assertions`, `liveliness` | what discovery must know of writers that the application asserts |
//! | `events`, `listeners`, `listener_thread` | calls of listeners for statuses |
//! | `timers`, `timer_thread` | metatraffic and timers |

mod assertions;
pub(crate) mod channel;
mod direct;
mod discovery;
pub(crate) mod endpoints;
pub(crate) mod events;
mod groups;
mod interfaces;
pub(crate) mod lane;
mod listener_thread;
pub(crate) mod listeners;
mod liveliness;
mod matching;
mod outlet;
pub(crate) mod publishing;
mod publishing_thread;
mod receive;
pub(crate) mod receive_counters;
mod receive_thread;
mod received_blocks;
mod routes;
pub(crate) mod sender;
pub(crate) mod shared;
mod sockets;
pub(crate) mod start;
mod timer_thread;
mod timers;
