//! The options of `weir udp`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{ArgAction, Subcommand, ValueEnum};
use weir_baseline::BASELINE_PORT;
use weir_bench::case::CaseSpec;
use weir_bench::path::PathSpec;
use weir_results::{Test, UdpMode, WaitStrategy, parse_duration, parse_size};

use super::Format;
use super::bench::{Cpus, parse_cpus, parse_socket_buffer, parse_wait};

/// Measure what UDP itself carries: rate, losses, order, delay, round trips.
///
/// One end is this command, the other a `weir udp server` on the host that --to names, or a process that is started for it
/// on this one. Streams send as fast as they can, or by a fixed schedule (--rate), which also measures delays one way under
/// that load; round trips are one datagram at a time. Sizes, modes, flows and rates that are lists are gone through.
/// Finished measurements are kept in a results file at once.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct UdpArgs {
    #[command(subcommand)]
    pub(crate) command: Option<UdpCommand>,

    /// The host that runs `weir udp server`, by name or address [default: a server on this host, just for the run]
    #[arg(long, value_name = "HOST")]
    pub(crate) to: Option<String>,

    /// The port that it listens on
    #[arg(long, default_value_t = BASELINE_PORT, requires = "to")]
    pub(crate) port: u16,

    #[command(flatten)]
    pub(crate) secret: SecretArgs,

    /// Over IPv4
    #[arg(short = '4', long = "ipv4", conflicts_with = "ipv6")]
    pub(crate) ipv4: bool,

    /// Over IPv6
    #[arg(short = '6', long = "ipv6")]
    pub(crate) ipv6: bool,

    /// Which tests: latency (round trips), throughput (streams)
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "latency,throughput")]
    pub(crate) tests: Vec<Test>,

    /// Bytes of UDP payload in a datagram, from 20 on; k is 1024
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_size, default_value = "32,1024,1460,8192")]
    pub(crate) sizes: Vec<u64>,

    /// How datagrams are given to the kernel: send (one call each), sendmmsg (many by one call), gso (many by one way
    /// through the network stack)
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "send,gso")]
    pub(crate) mode: Vec<UdpMode>,

    /// Streams at a time, each with sockets and threads of its own
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1")]
    pub(crate) flows: Vec<u32>,

    /// Send by a fixed schedule: bits of payload per second (10M, 1G), datagrams per second (1000/s, 50k/s), N% of the
    /// measured maximum, or max for none
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "max")]
    pub(crate) rate: Vec<UdpRate>,

    /// Who sends streams: forward (this end), reverse (the server), both
    #[arg(long, value_name = "WHO", value_enum, default_value_t = Way::Forward)]
    pub(crate) direction: Way,

    /// Let receivers take datagrams in one piece (UDP_GRO), or not [default: with the mode gso only]
    #[arg(long, value_name = "ON", value_parser = parse_switch)]
    pub(crate) gro: Option<bool>,

    /// Name the destination with each send in place of connecting the sockets
    #[arg(long)]
    pub(crate) unconnected: bool,

    /// How receivers wait: block, spin, or spin:USEC to spin that long and then block [default: block; spin:50 for one
    /// stream as fast as it goes where each end has a processor, or its sender would measure how long waking takes]
    #[arg(long, value_name = "HOW", value_parser = parse_wait)]
    pub(crate) wait: Option<WaitStrategy>,

    /// Processors of this end and of the server's, or none [default: two different ones with both ends on this host and
    /// one flow, else none]
    #[arg(long, value_name = "THIS,SERVER", value_parser = parse_cpus)]
    pub(crate) cpus: Option<Cpus>,

    /// Differentiated services code point of the datagrams, 0 to 63
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=63))]
    pub(crate) dscp: Option<u8>,

    /// Send streams to this multicast group, which the server joins (--allow-multicast there)
    #[arg(long, value_name = "GROUP")]
    pub(crate) multicast: Option<IpAddr>,

    /// How many routers multicast passes, plus one
    #[arg(long, value_name = "N", default_value_t = 1, requires = "multicast")]
    pub(crate) ttl: u8,

    /// How long each measurement takes
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "2s")]
    pub(crate) duration: Duration,

    /// How long it runs before
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "300ms")]
    pub(crate) warmup: Duration,

    /// How often everything is measured
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) repeat: u32,

    /// Socket buffers to ask for at both ends, each way; Linux counts double
    #[arg(
        long,
        value_name = "BYTES",
        value_parser = parse_socket_buffer,
        default_value_t = CaseSpec::SOCKET_BUFFER_BYTES
    )]
    pub(crate) socket_buffer: usize,

    /// How often both ends look at what their hosts do (processors, interrupts, devices, memory...), for `weir report
    /// --telemetry`; 0s = never
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "100ms")]
    pub(crate) telemetry_period: Duration,

    #[arg(
        long,
        value_name = "PATH",
        conflicts_with = "to",
        help = "Measure across a cable made for the run (needs root): veth[,mtu=9000][,rate=1G][,queue=256k][,burst=9100][,loss=10%][,gso=off]"
    )]
    pub(crate) path: Option<PathSpec>,

    /// Run iperf3 (streams) and sockperf (round trips) in turns with our own, where installed, alike in sizes, processors,
    /// buffers and waiting, and compare: with both ends on this host, over IPv4, one flow forward. --repeat 20 and more
    /// settles small differences
    #[arg(long, conflicts_with_all = ["to", "path", "ipv6", "multicast", "unconnected", "dscp"])]
    pub(crate) outside_checks: bool,

    /// Hold the processors of this host out of idle while measuring
    #[arg(long)]
    pub(crate) keep_awake: bool,

    /// What to print on stdout
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,

    /// Folder for results.jsonl; made if it is not there [default: weir-results/ and the time]
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,

    /// Say on stderr how each measurement ends
    #[arg(short, long, action = ArgAction::SetTrue)]
    pub(crate) verbose: bool,
}

/// What both sides may know.
#[derive(Debug, clap::Args)]
pub(crate) struct SecretArgs {
    /// A file with the secret that both ends know; it is never sent
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,
}

/// What else there is.
#[derive(Debug, Subcommand)]
pub(crate) enum UdpCommand {
    Server(UdpServerArgs),
}

/// Be the other end of `weir udp`, until Ctrl-C.
///
/// Whoever can reach the port can have this host receive, and send back to it, as much UDP as there is room for: listen where
/// only those can reach it who may (--bind), or give both sides a secret. Data goes to the address that a control connection
/// comes from, never anywhere else.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir udp server                                  on port 5679 of all addresses
  weir udp server --bind 10.0.0.4 --secret-file secret
  weir udp server --port 0 --verbose               on a port of the system's choice, which is printed")]
pub(crate) struct UdpServerArgs {
    /// The address to listen on [default: all, of IPv4 and IPv6]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) bind: Option<IpAddr>,

    /// The TCP port of the control connection; 0 lets the system choose
    #[arg(long, default_value_t = BASELINE_PORT)]
    pub(crate) port: u16,

    #[command(flatten)]
    pub(crate) secret: SecretArgs,

    /// How many sessions at a time
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub(crate) max_sessions: usize,

    /// How long a measurement may be asked to last
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "1h")]
    pub(crate) max_time: Duration,

    /// Let clients have this host join multicast groups
    #[arg(long)]
    pub(crate) allow_multicast: bool,

    /// Say what happens
    #[arg(short, long)]
    pub(crate) verbose: bool,

    /// End with the end of standard input
    #[arg(long, hide = true)]
    pub(crate) until_eof: bool,

    /// Enter this network namespace first
    #[arg(long, hide = true, value_name = "FILE")]
    pub(crate) namespace: Option<PathBuf>,
}

/// The value of `--direction`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Way {
    /// This end
    Forward,
    /// The server
    Reverse,
    /// Both at the same time
    Both,
}

/// The value of `--rate`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum UdpRate {
    /// No schedule.
    Max,
    /// Bits of payload per second.
    Bits(f64),
    /// Datagrams per second.
    Datagrams(f64),
    /// Percent of the measured maximum.
    Percent(f64),
}

impl FromStr for UdpRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            let (digits, unit) = match text.char_indices().next_back() {
                Some((end, 'k' | 'K')) => (&text[..end], 1e3),
                Some((end, 'm' | 'M')) => (&text[..end], 1e6),
                Some((end, 'g' | 'G')) => (&text[..end], 1e9),
                _ => (text, 1.0),
            };
            let is_plain =
                !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            let number = digits.parse::<f64>().ok().filter(|_| is_plain)? * unit;
            (number > 0.0 && number <= 1e15).then_some(number)
        };
        let parsed = match text.strip_suffix('%') {
            _ if text == "max" => Some(Self::Max),
            Some(percent) => number(percent).filter(|percent| *percent <= 100.0).map(Self::Percent),
            None => match text.strip_suffix("/s") {
                Some(datagrams) => number(datagrams).map(Self::Datagrams),
                None => number(text).map(Self::Bits),
            },
        };
        parsed.ok_or_else(|| {
            "it is bits per second (10M, 1G), datagrams per second (1000/s), percent of the maximum (50%), or max"
                .to_owned()
        })
    }
}

fn parse_switch(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("it is on or off".to_owned()),
    }
}

const EXAMPLES: &str = "\
Examples:
  weir udp                                          this host with itself, about half a minute
  weir udp server                                   on one host...
  weir udp --to mk4                                 ...and this on another
  weir udp --to mk4 --tests throughput --sizes 1k --rate 10M,100M,500M
  weir udp --tests throughput --sizes 1460 --rate 10%,50%,90%      delays one way under load
  weir udp --tests throughput --mode send,sendmmsg,gso --sizes 32,1460 --flows 1,2
  weir udp --to mk4 --direction both --tests throughput
  weir udp --tests latency --wait spin --repeat 6
  weir udp --outside-checks --repeat 20 --duration 600ms     beside iperf3 and sockperf
  sudo weir udp --path veth,loss=1% -6
  weir udp --format json > run.json";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_bits_datagrams_or_shares() {
        let check = |text: &str, expected: Option<UdpRate>| {
            assert_eq!(text.parse::<UdpRate>().ok(), expected, "{text}");
        };
        check("max", Some(UdpRate::Max));
        check("10M", Some(UdpRate::Bits(1e7)));
        check("1.5g", Some(UdpRate::Bits(1.5e9)));
        check("64000", Some(UdpRate::Bits(64_000.0)));
        check("50k/s", Some(UdpRate::Datagrams(50_000.0)));
        check("12.5%", Some(UdpRate::Percent(12.5)));
        for text in ["", "0", "-1", "101%", "1e3", "fast", "/s", "%", "inf", "nan", "é", "1é"] {
            check(text, None);
        }
    }
}
