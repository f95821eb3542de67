//! `udptest`: the UDP tests of hpcbench against `udpserver`.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{ArgAction, CommandFactory, Parser};
use weir_compat::hpcbench::{self, Mode, PlotData, ServiceType, Settings, parse_bytes, parse_rate};
use weir_measure::{Family, MeasureError, Secret};
use weir_report::{LineChart, line_chart};

use crate::signals;

/// Measure UDP to a host that runs udpserver, with the options and files of hpcbench's udptest
#[derive(Debug, Parser)]
#[command(
    name = "udptest",
    version,
    disable_help_flag = true,
    args_override_self = true,
    max_term_width = 100,
    after_help = NOTES
)]
struct Args {
    /// Print help
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,

    #[command(flatten, next_help_heading = "Connection")]
    connection: Connection,
    #[command(flatten, next_help_heading = "Test")]
    test: Test,
    #[command(flatten, next_help_heading = "Workload")]
    workload: Workload,
    #[command(flatten, next_help_heading = "Output")]
    output: Output,
}

#[derive(Debug, clap::Args)]
struct Connection {
    /// Connect to udpserver on this host, or send to it with -g
    #[arg(short, value_name = "HOST")]
    host: String,

    /// Connect to this TCP port, or send to this UDP port with -g
    #[arg(short, value_name = "PORT", default_value_t = 5678)]
    port: u16,

    /// Use IPv4 [default: the first address of the host]
    #[arg(long, conflicts_with = "ipv6")]
    ipv4: bool,

    /// Use IPv6
    #[arg(long)]
    ipv6: bool,

    /// Read the secret shared by both ends from a file; it is never sent
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
}

// One test of these; a stream from client to server without any.
#[derive(Debug, clap::Args)]
struct Test {
    /// Measure round trips of 64 bytes
    #[arg(short = 'a')]
    round_trip: bool,

    /// Measure round trips of this size in bytes
    #[arg(short = 'A', value_name = "BYTES", value_parser = parse_bytes)]
    round_trip_bytes: Option<u64>,

    /// Measure writes of 1, 2, 4... bytes up to a whole datagram
    #[arg(short = 'e')]
    exponential: bool,

    /// Send to a host without udpserver (needs -T)
    #[arg(short = 'g')]
    generator: bool,

    /// Send in both directions at once
    #[arg(short = 'i')]
    bidirectional: bool,

    /// Allow multicast and broadcast targets for -g
    #[arg(long)]
    allow_multicast: bool,
}

#[derive(Debug, clap::Args)]
struct Workload {
    /// Send datagrams of this size, 1 to 65000 bytes
    #[arg(short = 'l', value_name = "BYTES", default_value = "1460", value_parser = parse_bytes)]
    datagram: u64,

    /// Write this many bytes at a time [default: a datagram]
    #[arg(short = 'd', value_name = "BYTES", value_parser = parse_bytes)]
    data: Option<u64>,

    /// Send at least this many bytes per trial; ignored with -T
    #[arg(short = 'm', value_name = "BYTES", default_value = "1M", value_parser = parse_bytes)]
    message: u64,

    /// Send for at least this many seconds per trial
    #[arg(short = 't', value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    time: Duration,

    /// Run N trials
    #[arg(short = 'r', value_name = "N", default_value_t = 10)]
    repeat: u32,

    /// Limit the rate to this many bit/s
    #[arg(short = 'T', value_name = "RATE", value_parser = parse_rate)]
    rate: Option<u64>,

    /// Set the UDP buffers of the client, in bytes [default: the system's]
    #[arg(short = 'b', value_name = "BYTES", value_parser = parse_bytes)]
    client_buffer: Option<u64>,

    /// Set the UDP buffers of the server, in bytes [default: the client's]
    #[arg(short = 'B', value_name = "BYTES", value_parser = parse_bytes)]
    server_buffer: Option<u64>,

    /// Set the service: 1 low delay, 2 throughput, 3 AF11, 4 AF13, 5 AF41, 6 AF43
    #[arg(short = 'q', value_name = "N", value_parser = service_type)]
    service_type: Option<ServiceType>,
}

#[derive(Debug, clap::Args)]
struct Output {
    /// Write a report to this file
    #[arg(short = 'o', value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write the system logs of both hosts to FILE.c_log and FILE.s_log
    #[arg(short = 'c')]
    system_log: bool,

    /// Write FILE.plot for gnuplot and FILE.svg
    #[arg(short = 'P')]
    plot: bool,

    /// Print all counts of each trial
    #[arg(short = 'v')]
    verbose: bool,
}

const NOTES: &str = "\
Without -a, -A, -e, -g or -i, streams go from client to server. Numbers may end in k or M: powers of 1000 for \
rates, powers of 1024 elsewhere. -c and -P need -o.

Examples:
  udptest -h mk4 -r 6 -o output.txt          # client to server, 6 trials, with a report
  udptest -ah mk4                            # round trips
  udptest -v -h mk4 -t 10 -T 150M -r 1       # 150 Mbit/s for 10 seconds
  udptest -gh mk6 -p 3000 -t 10 -T 200M      # to a host without udpserver

Exit codes: 0 success, 2 usage, 3 environment or peer, 130 interrupted";

/// The command line.
pub(crate) fn command() -> clap::Command {
    Args::command()
}

/// The command `udptest`, with the arguments of this process.
#[must_use]
pub fn main() -> ExitCode {
    let args = Args::parse();
    let halt = match signals::watch() {
        Ok(halt) => halt,
        Err(failure) => {
            complain(&format!("cannot watch for signals: {failure}"));
            return failure.exit.into();
        }
    };
    let mut stdout = io::stdout().lock();
    let mut console = |text: &str| writeln!(stdout, "{text}").and_then(|()| stdout.flush());
    let done = settings(&args).and_then(|settings| hpcbench::run(&settings, &halt, &mut console));
    let Err(error) = done else { return ExitCode::SUCCESS };
    complain(&error.to_string());
    ExitCode::from(match error {
        MeasureError::Usage(_) => 2,
        MeasureError::Interrupted => 130,
        _ => 3,
    })
}

fn complain(text: &str) {
    let _ = writeln!(io::stderr().lock(), "udptest: {text}");
}

fn settings(args: &Args) -> Result<Settings, MeasureError> {
    let round_trip = match (args.test.round_trip_bytes, args.test.round_trip) {
        (Some(message_bytes), _) => Some(Mode::RoundTrip { message_bytes }),
        (None, true) => Some(Mode::RoundTrip { message_bytes: 64 }),
        (None, false) => None,
    };
    let asked = [
        round_trip,
        args.test.exponential.then_some(Mode::Exponential),
        args.test.bidirectional.then_some(Mode::Bidirectional),
        args.test.generator.then_some(Mode::Generator),
    ];
    let mut modes = asked.into_iter().flatten();
    let mode = modes.next().unwrap_or(Mode::Unidirectional);
    if modes.next().is_some() {
        return Err(MeasureError::Usage(
            "-a or -A, -e, -g and -i select different tests: choose one".to_owned(),
        ));
    }
    let family = match (args.connection.ipv4, args.connection.ipv6) {
        (true, _) => Family::V4,
        (_, true) => Family::V6,
        _ => Family::Any,
    };
    // An unreadable secret is a usage error.
    let secret = args.connection.secret_file.as_deref().map(Secret::read).transpose();
    let secret = secret.map_err(|error| MeasureError::Usage(error.to_string()))?;
    Ok(Settings {
        family,
        secret,
        draw: Some(draw),
        port: args.connection.port,
        client_buffer_bytes: args.workload.client_buffer,
        server_buffer_bytes: args.workload.server_buffer,
        datagram_bytes: args.workload.datagram,
        data_bytes: args.workload.data,
        message_bytes: args.workload.message,
        time: args.workload.time,
        repeat: args.workload.repeat,
        rate_bps: args.workload.rate,
        service_type: args.workload.service_type,
        output: args.output.output.clone(),
        system_log: args.output.system_log,
        plot: args.output.plot,
        verbose: args.output.verbose,
        many_receivers: args.test.allow_multicast,
        ..Settings::new(&args.connection.host, mode)
    })
}

/// Draws the chart of the gnuplot script as SVG.
fn draw(plot: &PlotData) -> String {
    line_chart(&LineChart {
        title: &plot.title,
        x_label: plot.x_label,
        y_label: plot.y_label,
        logarithmic: plot.logarithmic,
        lines: plot.lines.iter().map(|(name, points)| (*name, &points[..])).collect(),
    })
}

fn service_type(text: &str) -> Result<ServiceType, String> {
    let number = text.parse().ok();
    number.and_then(ServiceType::from_number).ok_or_else(|| "expected a number from 1 to 6".to_owned())
}

/// Seconds with an optional fraction, at most a million.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.0..=1e6).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "expected seconds, 0 to 1000000".to_owned())
}
