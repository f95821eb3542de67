//! hpcbench's UDP tests: `udptest` and `udpserver`.
//!
//! A control connection over TCP carries what is to be done and what was counted; the data goes from UDP socket to UDP
//! socket. Options, defaults, columns and file names are hpcbench's; `docs/reference/udptest.md`
//! lists where this differs.
//!
//! - `settings`: a test and its limits; `units`: numbers with `k` and `M`
//! - `stream`, `round_trip`, `generator`: the tests of a client; `connection`: its session; `server`: the other end
//! - `control`: messages; `datagram`: the data and its marks
//! - `flow`: one direction of a stream; `trial`: the counts of both ends, and the figures
//! - `report`, `system_log`, `plot`, `files`: the files
//!
//! Deliberately not here: printing, arguments, signals.

mod connection;
mod control;
mod datagram;
mod files;
mod flow;
mod generator;
mod plot;
mod report;
mod round_trip;
mod server;
mod settings;
mod stream;
mod system_log;
mod trial;
mod units;

use std::sync::atomic::AtomicBool;

use weir_measure::MeasureError;

pub use control::{Request, Response};
pub use plot::PlotData;
pub use server::Udptest;
pub use settings::{Console, DATAGRAM_BYTES_MAX, Mode, ServiceType, Settings};
pub use units::{parse_bytes, parse_rate};

/// Runs a test completely, or until `halt` is set. The report and the console keep what was
/// measured before an error.
pub fn run(settings: &Settings, halt: &AtomicBool, console: &mut Console<'_>) -> Result<(), MeasureError> {
    settings.check()?;
    match settings.mode {
        Mode::Generator => generator::run(settings, halt, console),
        Mode::RoundTrip { message_bytes } => round_trip::run(settings, message_bytes, halt, console),
        _ => stream::run(settings, halt, console),
    }
}
