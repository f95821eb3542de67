//! `udpserver`: the other end of `udptest`.

use std::io::{self, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{ArgAction, CommandFactory, Parser};
use weir_compat::hpcbench::Udptest;
use weir_measure::{Secret, Server, ServerSettings};

/// Serve the tests of udptest until interrupted
#[derive(Debug, Parser)]
#[command(
    name = "udpserver",
    version,
    disable_help_flag = true,
    args_override_self = true,
    max_term_width = 100,
    after_help = NOTES
)]
struct Args {
    /// Listen on this TCP port; 0: any free one
    #[arg(short, value_name = "PORT", default_value_t = 5678)]
    port: u16,

    /// Report sessions on stdout
    #[arg(short)]
    verbose: bool,

    /// Listen on this address [default: all, IPv4 and IPv6]
    #[arg(long, value_name = "ADDRESS")]
    bind: Option<IpAddr>,

    /// Serve at most N sessions at once
    #[arg(long, value_name = "N", default_value_t = 8)]
    max_sessions: usize,

    /// Refuse trials that take longer, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    max_time: u64,

    /// Read the secret shared by both ends from a file; it is never sent
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,

    /// Print help
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
}

const NOTES: &str = "\
Anyone who can reach the port can make this host receive UDP, and send it back, at full rate. Restrict access \
with --bind or --secret-file. Data is only sent to the address of the control connection.

Examples:
  udpserver                        # port 5678 of all addresses
  udpserver -p 0                   # prints the port that it got
  udpserver -v --bind 10.0.0.4

Exit codes: 2 usage, 3 address or port unavailable";

/// Printed by a server with neither an address nor a secret.
const OPEN: &str = "everyone who reaches this port can make this host send and receive UDP: \
                    restrict that with --secret-file FILE or --bind ADDRESS";

/// The command line.
pub(crate) fn command() -> clap::Command {
    Args::command()
}

/// The command `udpserver`, with the arguments of this process.
#[must_use]
pub fn main() -> ExitCode {
    let args = Args::parse();
    let complain = |error: &dyn std::fmt::Display| {
        let _ = writeln!(io::stderr().lock(), "udpserver: {error}");
    };
    let secret = match args.secret_file.as_deref().map(Secret::read).transpose() {
        Ok(secret) => secret,
        Err(error) => {
            complain(&error);
            return ExitCode::from(2);
        }
    };
    // As hpcbench's, it serves all hosts unless an option restricts it.
    let is_open = secret.is_none() && args.bind.is_none();
    let settings = ServerSettings {
        secret,
        bind: args.bind,
        port: args.port,
        sessions_max: args.max_sessions.max(1),
        trial_max: Duration::from_secs(args.max_time),
        ..ServerSettings::new::<Udptest>()
    };
    let server = match Server::<Udptest>::bind(settings) {
        Ok(server) => server,
        Err(error) => {
            complain(&error);
            return ExitCode::from(3);
        }
    };
    // A closed stdout does not end the server.
    let say = |text: &str| {
        let mut stdout = io::stdout().lock();
        let _ = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
    };
    say(&format!("TCP socket listening on port [{}]", server.port()));
    if is_open {
        complain(&OPEN);
    }
    server.run(move |event| {
        if args.verbose {
            say(event);
        }
    })
}
