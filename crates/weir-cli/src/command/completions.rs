//! `weir completions`: the completion script of a shell.

use clap::CommandFactory;

use crate::args::{Args, CompletionsArgs};
use crate::exit::{Exit, Failure};
use crate::output;

pub(crate) fn run(args: &CompletionsArgs) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "weir", &mut script);
    output::data(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Success)
}
