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

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;

use crate::exit::Failure;
use crate::{output, signals};

pub(crate) use completions::completions;
pub(crate) use help::page;
pub(crate) use run::run;

/// Opens the file of an option to append to it.
fn append(option: &str, path: &Path) -> Result<File, Failure> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.with_context(|| format!("{option} {}", path.display())).map_err(Failure::environment)
}

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
