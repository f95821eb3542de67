//! The basics of every measurement.
//!
//! - `clock`: the monotonic clock in nanoseconds
//! - `schedule`: intended send times; `pacing`: waiting for them, and bursts between two clock reads
//! - `numbers`: lost, duplicate and reordered samples by sequence number, with the warm-up apart
//! - `window`: the measured part of a run, and its end
//! - `signal`: signals from the control connection to a running measurement
//! - `units`: rounding of figures; `evidence`: attribution of losses, and doubts
//! - `connection`: lines over TCP; `protocol`: how client and server introduce themselves;
//!   `secret`: proof of a shared secret; `address`: names, sockets and interfaces
//! - `server`: accepts clients, within bounds; `greetings`: those that have not introduced themselves;
//!   `error`: why a measurement failed
//!
//! Deliberately not here: UDP data (weir-baseline), engines and plans (weir-bench), printing.

mod address;
pub mod clock;
mod connection;
mod error;
mod evidence;
mod greetings;
mod numbers;
mod pacing;
mod protocol;
mod schedule;
mod secret;
mod server;
mod signal;
mod units;
mod window;

pub use address::{Family, interface_of, on_interface, resolve, with_port};
pub use clock::{nanos, now_ns, thread_cpu_ns};
pub use connection::{Connection, ControlError, LINE_BYTES_MAX, Message, shown};
pub use error::MeasureError;
pub use evidence::{SEGMENTS_MAX, check_rate, enter_buffers, round_trip_loss, stream_loss};
pub use numbers::{Numbers, extend};
pub use pacing::{Burst, Idle, pause, wait_until};
pub use protocol::{Answer, Protocol, Reached, ask, check_buffers, connect, unexpected};
pub use schedule::Schedule;
pub use secret::{Nonce, Secret};
pub use server::{Server, ServerSettings, Session, SessionError};
pub use signal::Signal;
pub use units::{mbps, ratio, rounded, seconds};
pub use window::{Drain, Window};
