//! The `udptest` command: hpcbench's UDP tests against `udpserver`.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::{ArgAction, Parser};
use signal_hook::consts::{SIGINT, SIGTERM};
use weir_compat::hpcbench::{self, Mode, PlotData, ServiceType, Settings, parse_bytes, parse_rate};
use weir_measure::{Family, MeasureError, Secret};
use weir_report::{LineChart, line_chart};

/// Measures UDP between this host and one that runs udpserver: throughput, losses, round trip times.
///
/// Options, columns and files are those of hpcbench's udptest. Numbers may end in k or M: 1000 and
/// 1000000 for a rate (-T), 1024 and 1048576 everywhere else.
#[derive(Debug, Parser)]
#[command(
    name = "udptest",
    version,
    disable_help_flag = true,
    args_override_self = true,
    max_term_width = 100,
    after_help = EXAMPLES
)]
struct Args {
    /// The host that runs udpserver, or the target of the generator (-g)
    #[arg(short, value_name = "HOST")]
    host: String,
    /// The port that udpserver listens on, or the UDP port for the generator (-g)
    #[arg(short, value_name = "PORT", default_value_t = 5678)]
    port: u16,
    /// Measure round trip times, with messages of 64 bytes
    #[arg(short = 'a')]
    round_trip: bool,
    /// Measure round trip times, with messages of so many bytes
    #[arg(short = 'A', value_name = "BYTES", value_parser = parse_bytes)]
    round_trip_bytes: Option<u64>,
    /// Bytes of the client's UDP buffers [default: the system's]
    #[arg(short = 'b', value_name = "BYTES", value_parser = parse_bytes)]
    client_buffer: Option<u64>,
    /// Bytes of the server's UDP buffers [default: the client's]
    #[arg(short = 'B', value_name = "BYTES", value_parser = parse_bytes)]
    server_buffer: Option<u64>,
    /// Log what both hosts do meanwhile, to FILE.c_log and FILE.s_log (needs -o)
    #[arg(short = 'c')]
    system_log: bool,
    /// Bytes of each write, at most a datagram's [default: a datagram's]
    #[arg(short = 'd', value_name = "BYTES", value_parser = parse_bytes)]
    data: Option<u64>,
    /// Growing writes: 1, 2, 4... bytes, at last a whole datagram
    #[arg(short = 'e')]
    exponential: bool,
    /// Only send, to a host that runs no udpserver (needs -T)
    #[arg(short = 'g')]
    generator: bool,
    /// Both ways at once
    #[arg(short = 'i')]
    bidirectional: bool,
    /// Bytes of a datagram, 1 to 65000
    #[arg(short = 'l', value_name = "BYTES", default_value = "1460", value_parser = parse_bytes)]
    datagram: u64,
    /// Bytes that each trial sends at least; ignored with a rate (-T)
    #[arg(short = 'm', value_name = "BYTES", default_value = "1M", value_parser = parse_bytes)]
    message: u64,
    /// Write a report
    #[arg(short = 'o', value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write a gnuplot script to FILE.plot and a picture to FILE.svg (needs -o)
    #[arg(short = 'P')]
    plot: bool,
    /// Type of service: 1 low delay, 2 high throughput, 3 AF11, 4 AF13, 5 AF41, 6 AF43
    #[arg(short = 'q', value_name = "N", value_parser = service_type)]
    service_type: Option<ServiceType>,
    /// How many trials
    #[arg(short = 'r', value_name = "N", default_value_t = 10)]
    repeat: u32,
    /// Seconds that each trial lasts at least
    #[arg(short = 't', value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    time: Duration,
    /// Bits per second at most
    #[arg(short = 'T', value_name = "RATE", value_parser = parse_rate)]
    rate: Option<u64>,
    /// Show all counts of each trial
    #[arg(short = 'v')]
    verbose: bool,
    /// Over IPv4 [default: whichever the name has first]
    #[arg(long, conflicts_with = "ipv6")]
    ipv4: bool,
    /// Over IPv6
    #[arg(long)]
    ipv6: bool,
    /// A file with the secret that the server knows, too; it is never sent
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    /// Let the generator send to multicast and broadcast addresses
    #[arg(long)]
    allow_multicast: bool,
    /// Print this help
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
}

const EXAMPLES: &str = "\
Examples:
  udptest -h mk4 -r 6 -o output.txt           client to server, 6 trials, with a report
  udptest -ih mk4                             both ways at once
  udptest -eh mk4 -o output.txt -P            growing writes, with a script for gnuplot
  udptest -ah mk4                             round trip times
  udptest -v -h mk4 -t 10 -T 150M -r 1        150 Mbit/s for 10 seconds
  udptest -gh mk6 -p 3000 -t 10 -T 200M       the same to a host without udpserver
  udptest -ch mk4 -r 5 -o output              with a log of what both hosts do

Exit codes: 0 all well, 2 usage, 3 environment or peer, 130 interrupted";

fn main() -> ExitCode {
    let args = Args::parse();
    let halt = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The second one ends the process at once.
        let registered = signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&halt))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&halt)));
        if let Err(error) = registered {
            complain(&format!("cannot watch for signals: {error}"));
            return ExitCode::from(3);
        }
    }
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
    let round_trip = match (args.round_trip_bytes, args.round_trip) {
        (Some(message_bytes), _) => Some(Mode::RoundTrip { message_bytes }),
        (None, true) => Some(Mode::RoundTrip { message_bytes: 64 }),
        (None, false) => None,
    };
    let asked = [
        round_trip,
        args.exponential.then_some(Mode::Exponential),
        args.bidirectional.then_some(Mode::Bidirectional),
        args.generator.then_some(Mode::Generator),
    ];
    let mut modes = asked.into_iter().flatten();
    let mode = modes.next().unwrap_or(Mode::Unidirectional);
    if modes.next().is_some() {
        return Err(MeasureError::Usage(
            "-a or -A, -e, -g and -i are different tests: choose one".to_owned(),
        ));
    }
    let family = match (args.ipv4, args.ipv6) {
        (true, _) => Family::V4,
        (_, true) => Family::V6,
        _ => Family::Any,
    };
    // A secret that can't be read is a slip of whoever typed the command.
    let secret = args.secret_file.as_deref().map(Secret::read).transpose();
    let secret = secret.map_err(|error| MeasureError::Usage(error.to_string()))?;
    Ok(Settings {
        family,
        secret,
        draw: Some(draw),
        port: args.port,
        client_buffer_bytes: args.client_buffer,
        server_buffer_bytes: args.server_buffer,
        datagram_bytes: args.datagram,
        data_bytes: args.data,
        message_bytes: args.message,
        time: args.time,
        repeat: args.repeat,
        rate_bps: args.rate,
        service_type: args.service_type,
        output: args.output.clone(),
        system_log: args.system_log,
        plot: args.plot,
        verbose: args.verbose,
        many_receivers: args.allow_multicast,
        ..Settings::new(&args.host, mode)
    })
}

/// Draws what gnuplot would, without it.
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
    number.and_then(ServiceType::from_number).ok_or_else(|| "it is one of 1 to 6".to_owned())
}

/// Seconds, with a fraction if need be: at most a million.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.0..=1e6).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "it is a number of seconds, 0 to 1000000".to_owned())
}
