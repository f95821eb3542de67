//! `perftest`: RTI Perftest's options, procedure and output on our engine.
//!
//! `options` is the table of all options, `command_line` finds them as RTI Perftest does, `settings` makes a run of
//! them, `banner` and `printer` show it, `telemetry` what the host did
//! meanwhile, and `help` explains. The procedure itself is in `weir_compat::perftest`.

mod banner;
mod command_line;
mod help;
mod options;
mod printer;
mod run;
mod settings;
mod telemetry;

use std::process::ExitCode;

use crate::{output, signals};

pub(crate) use run::run;

/// The command `perftest`, with the arguments of this process.
#[must_use]
pub fn main() -> ExitCode {
    let done = signals::watch().and_then(|interrupted| run(std::env::args().skip(1), &interrupted));
    match done {
        Ok(exit) => exit.into(),
        Err(failure) => {
            output::talk(&format!("perftest: {failure}"));
            failure.exit.into()
        }
    }
}
