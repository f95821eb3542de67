//! Other messaging engines, measured beside Weir.
//!
//! Each engine implements [`weir_peer_api::Node`] and is a Cargo feature, off by default. [`PEERS`] lists the
//! engines of this build. All use UDP where they can, on the one interface that they are given. All wait by
//! blocking, except Aeron, which polls.
//!
//! - [`catalogue`]: the engines of this build
//! - `foreign`: engines behind a C interface, with all unsafe code of this crate; `cyclonedds` and `fastdds`:
//!   what is specific to each
//! - `aeron`, `dust_dds`, `int2dds`, `rustdds`, `zenoh`, `zeromq`: engines with an interface for Rust
//! - `worker`: the thread that receives for some of them

#[cfg(feature = "aeron")]
mod aeron;
pub mod catalogue;
#[cfg(feature = "cyclonedds")]
mod cyclonedds;
#[cfg(feature = "dust_dds")]
mod dust_dds;
#[cfg(feature = "fastdds")]
mod fastdds;
#[cfg(any(feature = "cyclonedds", feature = "fastdds"))]
mod foreign;
#[cfg(feature = "int2dds")]
mod int2dds;
#[cfg(feature = "rustdds")]
mod rustdds;
#[cfg(any(feature = "dust_dds", feature = "int2dds", feature = "rustdds"))]
mod test_data;
#[cfg(all(test, any(feature = "cyclonedds", feature = "fastdds", feature = "rustdds")))]
mod test_options;
#[cfg(any(feature = "aeron", feature = "dust_dds", feature = "zeromq"))]
mod worker;
#[cfg(feature = "zenoh")]
mod zenoh;
#[cfg(feature = "zeromq")]
mod zeromq;

pub use catalogue::PEERS;
