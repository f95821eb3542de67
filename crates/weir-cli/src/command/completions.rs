//! `weir completions`: completion scripts.

use anyhow::anyhow;
use clap::CommandFactory;

use crate::args::{Args, CompletionsArgs, Program};
use crate::exit::{Exit, Failure};
use crate::{output, perftest, udpserver, udptest};

pub(crate) fn run(args: &CompletionsArgs) -> Result<Exit, Failure> {
    let mut command = match args.command {
        Program::Weir => Args::command(),
        Program::Udptest => udptest::command(),
        Program::Udpserver => udpserver::command(),
        Program::Perftest => {
            let shell = args.shell;
            let script = perftest::completions(shell).ok_or_else(|| {
                Failure::usage(anyhow!("perftest has no completions for {shell}: choose bash, zsh or fish"))
            })?;
            return output::data(&script).map(|()| Exit::Success);
        }
    };
    let mut script = Vec::new();
    let name = command.get_name().to_owned();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    output::data(&String::from_utf8_lossy(&script)).map(|()| Exit::Success)
}
