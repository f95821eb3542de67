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

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, anyhow};

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

/// The arguments as text.
fn words(arguments: impl Iterator<Item = OsString>) -> Result<Vec<String>, Failure> {
    let wrong = |argument: OsString| {
        Failure::usage(anyhow!("{argument:?} is not UTF-8: write the argument as UTF-8"))
    };
    arguments.map(|argument| argument.into_string().map_err(wrong)).collect()
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
    let arguments = words(std::env::args_os().skip(1));
    let done = arguments.and_then(|arguments| {
        signals::watch().and_then(|interrupted| run(arguments.into_iter(), &interrupted))
    });
    match done {
        Ok(exit) => exit.into(),
        Err(failure) => {
            output::talk(&format!("perftest: {failure}"));
            failure.exit.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;
    use crate::exit::Exit;

    #[test]
    fn an_argument_that_is_no_text_is_named() {
        let arguments = |last: &[u8]| [OsString::from("-pub"), OsString::from_vec(last.to_vec())];
        assert_eq!(words(arguments(b"-keyed").into_iter()).unwrap(), ["-pub", "-keyed"]);
        let failure = words(arguments(b"-file\xff").into_iter()).unwrap_err();
        assert_eq!(failure.exit, Exit::Usage);
        assert!(failure.to_string().contains(r"-file\xFF"), "{failure}");
    }
}
