//! `weir agent`: one end of a case, started by `weir bench`.

use std::env;
use std::process;

use anyhow::Context;
use weir_bench::agent::{self, AgentOptions};
use weir_bench::control::TOKEN_VARIABLE;

use crate::args::AgentArgs;
use crate::exit::{Exit, Failure};

pub(crate) fn run(args: &AgentArgs) -> Result<Exit, Failure> {
    let token = env::var(TOKEN_VARIABLE)
        .with_context(|| format!("{TOKEN_VARIABLE} is not set: only `weir bench` starts agents"))
        .map_err(Failure::usage)?;
    let options =
        AgentOptions { role: args.role, index: args.index, control: args.control, token, on_orphaned: leave };
    agent::run(&options).map_err(Failure::environment)?;
    Ok(Exit::Success)
}

/// Ends this process, since its coordinator is gone.
fn leave() {
    process::exit(3);
}
