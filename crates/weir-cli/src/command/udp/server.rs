//! `weir udp server`, and the server that `weir udp` starts on this host.

use std::env;
use std::io::{self, BufRead, BufReader};
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio, exit};
use std::thread;

use anyhow::{Context, anyhow};
use weir_baseline::WeirUdp;
use weir_measure::{Secret, Server, ServerSettings};

use super::super::setup;
use super::{enter, secret};
use crate::args::UdpServerArgs;
use crate::exit::{Exit, Failure};
use crate::output;

/// Serves until interrupted.
pub(super) fn run(args: &UdpServerArgs) -> Result<Exit, Failure> {
    if let Some(namespace) = &args.namespace {
        enter(namespace)?;
    }
    let secret = secret(&args.secret)?.or(inherited_secret()?);
    let is_for_this_host = args.bind.is_none() && secret.is_none();
    let settings = ServerSettings {
        bind: args.bind.or(is_for_this_host.then_some(Ipv4Addr::LOCALHOST.into())),
        port: args.port,
        sessions_max: args.max_sessions.max(1),
        trial_max: args.max_time,
        secret,
        allow_multicast: args.allow_multicast,
    };
    let server = Server::<WeirUdp>::bind(settings).map_err(Failure::environment)?;
    let address = server.address().map_err(Failure::environment)?;
    output::data(&format!("{LISTENING}{address}"))?;
    if is_for_this_host {
        output::talk(THIS_HOST_ONLY);
    }
    if args.until_eof {
        thread::spawn(|| {
            // Standard input ends with the process that started this one.
            let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
            exit(0);
        });
    }
    let is_verbose = args.verbose;
    server.run(move |event| {
        if is_verbose {
            output::talk(event);
        }
    })
}

/// Prefix of the first line of output.
const LISTENING: &str = "weir udp server listening on ";

/// Printed by a server with neither an address nor a secret.
const THIS_HOST_ONLY: &str = "without a secret it serves this host only: use --secret-file FILE to serve other hosts, \
                              or --bind ADDRESS (:: is all) to serve everyone there";

/// The environment variable with the secret of a server that this program starts.
const SECRET_VARIABLE: &str = "WEIR_UDP_SECRET";

fn inherited_secret() -> Result<Option<Secret>, Failure> {
    let Some(text) = env::var_os(SECRET_VARIABLE) else { return Ok(None) };
    Secret::new(text.as_encoded_bytes()).map(Some).map_err(Failure::usage)
}

/// A server process for one run; ends with this value and with this process.
pub(super) struct LocalServer {
    child: Child,
    port: u16,
    secret: Secret,
}

impl LocalServer {
    /// Starts a server on an address of this host or of a network namespace. A random secret reserves it for us.
    pub(super) fn start(address: &str, namespace: Option<PathBuf>, multicast: bool) -> Result<Self, Failure> {
        let text = Secret::random_text().map_err(Failure::environment)?;
        let mut command = Command::new(setup::program()?);
        command.args(["udp", "server", "--until-eof", "--port", "0", "--bind", address]);
        command.args(multicast.then_some("--allow-multicast"));
        if let Some(namespace) = namespace {
            command.arg("--namespace").arg(namespace);
        }
        command.env(SECRET_VARIABLE, &text).stdin(Stdio::piped()).stdout(Stdio::piped());
        // Ctrl-C in a terminal reaches this process only, which then ends the server.
        command.process_group(0);
        let mut child =
            command.spawn().context("cannot start the other end").map_err(Failure::environment)?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            // A server that cannot listen reports why on stderr and prints no line.
            let _ = BufReader::new(stdout).read_line(&mut line);
        }
        let port =
            line.trim().strip_prefix(LISTENING).and_then(|address| address.rsplit(':').next()?.parse().ok());
        let secret = Secret::new(text.as_bytes()).map_err(Failure::environment)?;
        let server = Self { child, port: port.unwrap_or(0), secret };
        if port.is_none() {
            return Err(Failure::environment(anyhow!("the server on this host did not start")));
        }
        Ok(server)
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn secret(&self) -> &Secret {
        &self.secret
    }
}

impl Drop for LocalServer {
    fn drop(&mut self) {
        // Both fail only when the process is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
