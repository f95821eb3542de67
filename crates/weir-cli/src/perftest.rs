//! `perftest`: RTI Perftest's options, procedure and output on our engine.
//!
//! - `options`: the table of all options; `command_line`: parses them as RTI Perftest does
//! - `settings`: from options to a run; `run`: runs it
//! - `banner`, `printer`, `telemetry`: the configuration, the results, and what the host did meanwhile
//! - `help`, `completions`: `-help`, the manual page, and completion scripts, made from the table
//!
//! The procedure itself is in `weir_compat::perftest`.

mod banner;
mod command_line;
mod completions;
mod help;
mod options;
mod printer;
mod run;
mod settings;
mod telemetry;

use std::process::ExitCode;

use crate::{output, signals};

pub(crate) use completions::completions;
pub(crate) use help::page;
pub(crate) use run::run;

/// Checks a command line.
#[cfg(test)]
pub(crate) fn check(words: &[String]) -> Result<(), String> {
    let typed = command_line::Typed::parse(words.iter().cloned())?;
    settings::role(&typed).map(drop)
}

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
