//! The commands of the workspace, each with a thin `main` of its own: [`weir`], and [`perftest()`] for those who have RTI
//! Perftest's options in their scripts.
//!
//! This file is the table of contents of `weir`: `args` is what was typed, `command` is what to do about it, `seeds` are published
//! figures and ours beside them,
//! `progress` shows how far a run is, `signals` is how it is stopped, `output` is where text goes (stdout is data, stderr is talk),
//! and `exit` documents the exit codes.

mod args;
mod command;
mod exit;
mod output;
mod perftest;
mod progress;
mod seeds;
mod signals;

pub use perftest::main as perftest;

use std::process::ExitCode;

use clap::Parser;
use weir_bench::engine::{self, Peer};

use args::{Args, Command};

/// Runs the command `weir` with the arguments of this process and with these engines beside our own.
///
/// The processes of a case are this program again: `weir bench` starts itself as `weir agent`.
#[must_use]
pub fn weir(peers: &'static [Peer]) -> ExitCode {
    engine::register(peers);
    let done = match Args::parse().command {
        Command::Bench(args) => command::bench::run(&args),
        Command::Udp(args) => command::udp::run(&args),
        Command::Pub(args) => command::by_hand::publish(&args),
        Command::Sub(args) => command::by_hand::subscribe(&args),
        Command::Doctor(args) => command::doctor::run(&args),
        Command::Goals(args) => command::goals::run(&args),
        Command::Report(args) => command::report::run(&args),
        Command::Completions(args) => command::completions::run(&args),
        Command::Agent(args) => command::agent::run(&args),
        Command::Seeds(args) => command::seeds::run(&args),
        Command::SeedsEnd(args) => command::seeds::end(&args),
    };
    match done {
        Ok(exit) => exit.into(),
        Err(failure) => {
            output::talk(&format!("weir: {failure}"));
            failure.exit.into()
        }
    }
}
