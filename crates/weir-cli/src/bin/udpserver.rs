//! The `udpserver` command: the other end of `udptest`.

use std::io::{self, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{ArgAction, Parser};
use weir_compat::hpcbench::Udptest;
use weir_measure::{Secret, Server, ServerSettings};

/// Answers udptest's tests until it is ended.
///
/// Whoever can reach the port can have this host receive, and send back, as much UDP as there is room
/// for: listen where only those can reach it who may (--bind), or demand a secret (--secret-file). Data goes to the address that a control
/// connection comes from, never anywhere else.
#[derive(Debug, Parser)]
#[command(
    name = "udpserver",
    version,
    disable_help_flag = true,
    args_override_self = true,
    max_term_width = 100,
    after_help = EXAMPLES
)]
struct Args {
    /// The TCP port of the control connection; 0 lets the system choose
    #[arg(short, value_name = "PORT", default_value_t = 5678)]
    port: u16,
    /// Say what happens
    #[arg(short)]
    verbose: bool,
    /// The address to listen on [default: all, of IPv4 and IPv6]
    #[arg(long, value_name = "ADDRESS")]
    bind: Option<IpAddr>,
    /// How many sessions at a time
    #[arg(long, value_name = "N", default_value_t = 8)]
    max_sessions: usize,
    /// How many seconds a trial may be asked to last
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    max_time: u64,
    /// A file with the secret that clients have to know; it is never sent
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    /// Print this help
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
}

const EXAMPLES: &str = "\
Examples:
  udpserver                        listen on port 5678 of all addresses
  udpserver -p 0                   on a port of the system's choice, which is printed
  udpserver -v --bind 10.0.0.4     on one address, and say what happens

Exit codes: 2 usage, 3 the address or port can't be had";

fn main() -> ExitCode {
    let args = Args::parse();
    let secret = match args.secret_file.as_deref().map(Secret::read).transpose() {
        Ok(secret) => secret,
        Err(error) => {
            let _ = writeln!(io::stderr().lock(), "udpserver: {error}");
            return ExitCode::from(2);
        }
    };
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
            let _ = writeln!(io::stderr().lock(), "udpserver: {error}");
            return ExitCode::from(3);
        }
    };
    // Nobody may be reading: serving goes on.
    let say = |text: &str| {
        let mut stdout = io::stdout().lock();
        let _ = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
    };
    say(&format!("TCP socket listening on port [{}]", server.port()));
    server.run(move |event| {
        if args.verbose {
            say(event);
        }
    })
}
