//! The side that asks: one file for each kind of test.

mod connection;
mod files;
mod generator;
mod round_trip;
mod stream;

use std::io;
use std::sync::atomic::AtomicBool;

use crate::settings::{Mode, Settings};
use weir_measure::MeasureError;

/// Takes text for the console, line by line: without a line end, but perhaps with some inside.
pub type Console<'a> = dyn FnMut(&str) -> io::Result<()> + 'a;

/// Runs a test to its end, or until `halt` is set. What was measured before an error is in the report
/// and on the console.
///
/// # Errors
/// [`MeasureError`] says what to do about it.
pub fn run(settings: &Settings, halt: &AtomicBool, console: &mut Console<'_>) -> Result<(), MeasureError> {
    settings.check()?;
    match settings.mode {
        Mode::Generator => generator::run(settings, halt, console),
        Mode::RoundTrip { message_bytes } => round_trip::run(settings, message_bytes, halt, console),
        _ => stream::run(settings, halt, console),
    }
}
