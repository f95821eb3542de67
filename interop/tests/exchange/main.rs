//! Live exchanges with other engines over the loopback interface, in both directions, with every
//! sample checked.
//!
//! | file | content |
//! |---|---|
//! | `announcements` | endpoints with fragmented announcements, with Cyclone DDS |
//! | `batches` | Weir's batches, with Cyclone DDS |
//! | `captured` | lossy exchanges, captured and checked by Wireshark |
//! | `cyclonedds` | the exchanges with Cyclone DDS; its program is in the folder of this name |
//! | `durability` | what late-joining readers receive, with Cyclone DDS |
//! | `fastdds` | the same with Fast DDS |
//! | `liveliness` | which writers are alive, with Cyclone DDS |
//! | `multicast` | several readers of one group, with Cyclone DDS |
//! | `namespace` | a separate network namespace for a test |
//! | `peer` | building and running a program of another engine |
//! | `policies` | what each side requires of the other, and sees of it; the tests are in the folders of the engines |
//! | `restart` | either side killed or gone, and replaced |
//! | `rust_engines` | the exchanges with dust_dds and RustDDS, whose programs are in `peers/weir-exchange-peers` |
//! | `types` | the types and their samples |
//! | `weir` | Weir's side |
//! | `weir_process` | Weir's side as a process, to be killed |
//! | `xcdr2` | exchanges with Cyclone DDS in XCDR2 |
#![expect(clippy::print_stdout, reason = "figures, shown with --nocapture")]
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
mod policies;
mod restart;
mod rust_engines;
mod types;
mod weir;
mod weir_process;
mod xcdr2;
