//! Where the protocol meets the operating system: sockets, threads, and the division of work among
//! threads.
//!
//! | file | content |
//! |---|---|
//! | `shared` | the state shared by all threads and handles of a participant |
//! | `start` | starts and stops a participant |
//! | `interfaces`, `sockets` | the network interfaces in use, and the participant's sockets |
//! | `network`, `memberships` | follows changes of the interfaces; groups joined on each |
//! | `endpoints`, `routes` | local writers and readers, and the table that finds them for a datagram |
//! | **sending** | |
//! | `lane` | a writer's core and its sending state, each behind a lock; every general send |
//! | `direct` | the fast path: a single-sample datagram, sent under the core's lock alone |
//! | `outlet`, `sender` | the one exit of user data; turns an outbox into system calls |
//! | `paths` | the paths to other hosts, shared by all writers |
//! | `publishing`, `publishing_thread` | the threads of writers that publish asynchronously |
//! | **receiving** | |
//! | `channel`, `receive`, `receive_thread` | which thread receives, and what it does with a batch |
//! | `groups` | the multicast groups that readers listen to |
//! | `received_blocks` | buffers in which large samples stay where they were received |
//! | `receive_counters` | counters of received datagrams |
//! | **the rest** | |
//! | `discovery`, `matching` | turns discovery events into matches, statuses and listener calls |
//! | `assertions`, `liveliness` | reports assertions by the application to discovery |
//! | `events`, `listeners`, `listener_thread` | listener calls for statuses |
//! | `observers`, `watching` | wakes wait sets, tasks and descriptors |
//! | `timers`, `timer_thread` | metatraffic and timers |
//! | `polling` | a participant without threads: the application polls |
//! | `policies` | announces changed policies |
//! | `silence` | readers that do not answer |
//! | `failure` | what follows when a thread panics |

mod assertions;
pub(crate) mod channel;
mod direct;
mod discovery;
pub(crate) mod endpoints;
pub(crate) mod events;
pub(crate) mod failure;
pub(crate) mod farewells;
pub(crate) mod group_access;
mod groups;
mod interfaces;
pub(crate) mod lane;
mod listener_thread;
pub(crate) mod listener_turn;
pub(crate) mod listeners;
mod liveliness;
pub(crate) mod matching;
mod memberships;
mod network;
pub(crate) mod observers;
mod outlet;
mod parking;
pub(crate) mod paths;
pub(crate) mod policies;
pub(crate) mod polling;
pub(crate) mod publishing;
mod publishing_thread;
mod reader_calls;
mod receive;
pub(crate) mod receive_counters;
mod receive_thread;
mod received_blocks;
pub(crate) mod routes;
pub(crate) mod sender;
pub(crate) mod shared;
mod silence;
mod sockets;
pub(crate) mod start;
pub(crate) mod tasks;
mod timer_thread;
mod timers;
pub(crate) mod watching;
