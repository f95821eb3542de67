//! The command-line programs: [`weir`], [`perftest()`], which has RTI Perftest's options, and [`udptest()`] and
//! [`udpserver()`], which have hpcbench's.
//!
//! - `args`: the command line of `weir`; `command`: its commands
//! - `plans`: the files of `weir run`
//! - `published`: published reference tables and the same measured here
//! - `runs`: runs by path or name
//! - `perftest`, `udptest`, `udpserver`: the commands of those names
//! - `manual`: man pages and the Markdown reference, generated from the command lines
//! - `progress`, `signals`, `output`: progress bar, Ctrl-C, and where text goes (stdout: data, stderr: the rest)
//! - `exit`: the exit codes; `text`: wrapped text

mod args;
mod command;
mod exit;
mod links_report;
mod manual;
mod output;
mod perftest;
mod plans;
mod progress;
mod published;
mod runs;
mod signals;
mod text;
mod udpserver;
mod udptest;
mod workloads;

pub use perftest::main as perftest;
pub use udpserver::main as udpserver;
pub use udptest::main as udptest;

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
        Command::Run(args) => command::run::run(&args),
        Command::Udp(args) => command::udp::run(&args),
        Command::Pub(args) => command::by_hand::publish(&args),
        Command::Sub(args) => command::by_hand::subscribe(&args),
        Command::Domain(args) => command::domain::run(&args),
        Command::DomainPart(args) => command::domain::part(&args),
        Command::Lab(args) => command::lab::run(&args),
        Command::Doctor(args) => command::doctor::run(&args),
        Command::Budget(args) => command::budget::run(&args),
        Command::Targets(args) => command::targets::run(&args),
        Command::Report(args) => command::report::run(&args),
        Command::Compare(args) => command::compare::run(&args),
        Command::History(args) => command::history::run(&args),
        Command::Export(args) => command::export::run(&args),
        Command::Redact(args) => command::redact::run(&args),
        Command::Serve(args) => command::serve::run(&args),
        Command::Completions(args) => command::completions::run(&args),
        Command::Man(args) => command::manual::man(&args),
        Command::Reference(args) => command::manual::reference(&args),
        Command::Agent(args) => command::agent::run(&args),
        Command::Host => command::host::run(),
        Command::Published(args) => command::published::run(&args),
        Command::PublishedEnd(args) => command::published::end(&args),
    };
    match done {
        Ok(exit) => exit.into(),
        Err(failure) => {
            output::talk(&format!("weir: {failure}"));
            failure.exit.into()
        }
    }
}
