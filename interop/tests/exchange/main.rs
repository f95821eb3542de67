//! Live exchanges with other engines over the loopback interface, in both directions, with every sample checked.
//!
//! | file | content |
//! |---|---|
//! | `announcements` | endpoints whose announcements come in fragments, with Cyclone DDS |
//! | `batches` | Weir's batches, with Cyclone DDS |
//! | `captured` | exchanges with losses, captured and judged by Wireshark |
//! | `cyclonedds` | the exchanges with Cyclone DDS; in the folder of this name its program |
//! | `durability` | what readers get that come late, with Cyclone DDS |
//! | `fastdds` | the same with Fast DDS |
//! | `liveliness` | which writers are alive, with Cyclone DDS |
//! | `multicast` | several readers of one group, with Cyclone DDS |
//! | `namespace` | a network namespace of its own for a test |
//! | `peer` | a program of another engine, running, and how it is built |
//! | `restart` | either side killed or gone, and back as somebody else |
//! | `types` | the types, and what their samples look like |
//! | `weir` | Weir's side |
//! | `weir_process` | Weir's side as a process, to be killed |
//! | `xcdr2` | exchanges with Cyclone DDS in XCDR2 |
#![expect(clippy::print_stdout, reason = "figures, for whoever runs a test with --nocapture")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod announcements;
mod batches;
mod captured;
mod cyclonedds;
mod durability;
mod fastdds;
mod liveliness;
mod multicast;
mod namespace;
mod peer;
mod restart;
mod types;
mod weir;
mod weir_process;
mod xcdr2;
