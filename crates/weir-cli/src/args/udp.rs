//! The options of `weir udp` and `weir udp server`, grouped as in their help.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use weir_baseline::BASELINE_PORT;
use weir_bench::path::PathSpec;
use weir_results::{Test, UdpMode, WaitStrategy, parse_duration, parse_size};

use super::values::{
    Cpus, Direction, Format, SOCKET_BUFFER, UdpRate, parse_cpus, parse_socket_buffer, parse_switch,
    parse_wait,
};
use crate::exit::exit_codes_without_loss;

/// Measure raw UDP: throughput, loss, reordering, delay and round trips
#[derive(Debug, clap::Args)]
#[command(after_help = NOTES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct UdpArgs {
    #[command(subcommand)]
    pub(crate) command: Option<UdpCommand>,

    #[command(flatten, next_help_heading = "Connection")]
    pub(crate) connection: Connection,
    #[command(flatten, next_help_heading = "Workload")]
    pub(crate) workload: UdpWorkload,
    #[command(flatten, next_help_heading = "Sockets")]
    pub(crate) sockets: Sockets,
    #[command(flatten, next_help_heading = "Method")]
    pub(crate) method: UdpMethod,
    #[command(flatten, next_help_heading = "Host")]
    pub(crate) host: UdpHost,
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) output: UdpOutput,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Connection {
    /// Connect to `weir udp server` on this host [default: started here for the run]
    #[arg(long, value_name = "HOST")]
    pub(crate) to: Option<String>,

    /// Connect to this TCP port
    #[arg(long, default_value_t = BASELINE_PORT, requires = "to")]
    pub(crate) port: u16,

    #[command(flatten)]
    pub(crate) secret: SecretArgs,

    /// Use IPv4
    #[arg(short = '4', long = "ipv4", conflicts_with = "ipv6")]
    pub(crate) ipv4: bool,

    /// Use IPv6
    #[arg(short = '6', long = "ipv6")]
    pub(crate) ipv6: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct UdpWorkload {
    /// Run these tests: latency (round trips), throughput (streams)
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "latency,throughput")]
    pub(crate) tests: Vec<Test>,

    /// Send datagrams of these payload sizes, 20 to 65507 bytes
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_size, default_value = "32,1024,1460,8192")]
    pub(crate) sizes: Vec<u64>,

    /// Send streams by these calls: send, sendmmsg, gso
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "send,gso")]
    pub(crate) mode: Vec<UdpMode>,

    /// Run this many streams at once, each with its own sockets and threads
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1")]
    pub(crate) flows: Vec<u32>,

    /// Send at these rates: bit/s (10M), datagrams/s (50k/s), N% of max, max
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "max")]
    pub(crate) rate: Vec<UdpRate>,

    /// Send streams forward (from here), reverse (from the server) or both
    #[arg(long, value_name = "WHO", value_enum, hide_possible_values = true, default_value_t = Direction::Forward)]
    pub(crate) direction: Direction,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Sockets {
    /// Receive with UDP_GRO: on or off [default: on with the mode gso]
    #[arg(long, value_name = "SWITCH", value_parser = parse_switch)]
    pub(crate) gro: Option<bool>,

    /// Leave the sockets unconnected and pass the address to each send
    #[arg(long)]
    pub(crate) unconnected: bool,

    /// Mark the datagrams with this DSCP, 0 to 63
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=63))]
    pub(crate) dscp: Option<u8>,

    /// Send streams to a multicast group; needs the server's consent
    #[arg(long, value_name = "GROUP")]
    pub(crate) multicast: Option<IpAddr>,

    /// Let multicast pass this many hops
    #[arg(long, value_name = "N", default_value_t = 1, requires = "multicast")]
    pub(crate) ttl: u8,

    /// Request this socket buffer in bytes; Linux doubles it
    #[arg(long, value_name = "BYTES", value_parser = parse_socket_buffer, default_value_t = SOCKET_BUFFER)]
    pub(crate) socket_buffer: usize,
}

#[derive(Debug, clap::Args)]
pub(crate) struct UdpMethod {
    /// Measure each point this long
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "2s")]
    pub(crate) duration: Duration,

    /// Run each point this long before measuring
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "300ms")]
    pub(crate) warmup: Duration,

    /// Repeat every point N times; 6 or more give 95 % intervals
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) repeat: u32,

    /// Make receivers block, spin or spin:USEC [default: block; spin:50 at full rate]
    #[arg(long, value_name = "HOW", value_parser = parse_wait)]
    pub(crate) wait: Option<WaitStrategy>,

    /// Interleave with iperf3 and sockperf under equal conditions, and compare
    #[arg(long, conflicts_with_all = ["to", "link", "ipv6", "multicast", "unconnected", "dscp"])]
    pub(crate) outside_checks: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct UdpHost {
    /// Measure across a virtual link, such as veth or lte (root); see `weir bench --help`
    #[arg(long, alias = "path", value_name = "LINK", conflicts_with = "to")]
    pub(crate) link: Option<PathSpec>,

    /// Pin the ends to CPUs, or none [default: two for one flow on this host]
    #[arg(long, value_name = "THIS,SERVER", value_parser = parse_cpus)]
    pub(crate) cpus: Option<Cpus>,

    /// Keep the CPUs of this host out of idle states while measuring
    #[arg(long)]
    pub(crate) keep_awake: bool,

    /// Sample host telemetry this often at both ends; 0s disables it
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "100ms")]
    pub(crate) telemetry_period: Duration,
}

#[derive(Debug, clap::Args)]
pub(crate) struct UdpOutput {
    /// Print the results as table, csv or json
    #[arg(long, value_enum, hide_possible_values = true, value_name = "FORMAT", default_value_t = Format::Table)]
    pub(crate) format: Format,

    /// Write results.jsonl to this folder [default: weir-results/TIME]
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,

    /// Report the result of each measurement on stderr
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// The secret that both ends may share.
#[derive(Debug, clap::Args)]
pub(crate) struct SecretArgs {
    /// Read the secret shared by both ends from a file; it is never sent
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UdpCommand {
    Server(UdpServerArgs),
}

/// Serve `weir udp` until interrupted
#[derive(Debug, clap::Args)]
#[command(after_help = SERVER_NOTES)]
pub(crate) struct UdpServerArgs {
    /// Listen on this address [default: all with a secret, else 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) bind: Option<IpAddr>,

    /// Listen on this TCP port; 0: any free one
    #[arg(long, default_value_t = BASELINE_PORT)]
    pub(crate) port: u16,

    #[command(flatten)]
    pub(crate) secret: SecretArgs,

    /// Serve at most N sessions at once
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub(crate) max_sessions: usize,

    /// Refuse measurements that take longer
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "1h")]
    pub(crate) max_time: Duration,

    /// Let clients make this host join multicast groups
    #[arg(long)]
    pub(crate) allow_multicast: bool,

    /// Report sessions on stderr
    #[arg(short, long)]
    pub(crate) verbose: bool,

    /// End with the end of standard input
    #[arg(long, hide = true)]
    pub(crate) until_eof: bool,

    /// Enter this network namespace first
    #[arg(long, hide = true, value_name = "FILE")]
    pub(crate) namespace: Option<PathBuf>,
}

const NOTES: &str = concat!(
    "Every combination of the lists is measured, and appended to results.jsonl when it is done. Streams run \
     at full rate or on a schedule, which also yields one-way delays under that load. Round trips are one \
     datagram at a time. --outside-checks needs both ends on this host, IPv4 and one forward flow. \
     `weir bench --help` explains the options of a link.

Examples:
  weir udp                                                  # this host, about half a minute
  weir udp --to HOST --tests throughput --rate 10M,100M,max # HOST runs `weir udp server`
  weir udp --tests throughput --mode send,gso --flows 1,2
  sudo weir udp --link veth,loss=1% -6

",
    exit_codes_without_loss!()
);

const SERVER_NOTES: &str = "\
Clients make this host send and receive UDP at full rate. Other hosts therefore need the secret, unless --bind names \
an address that serves everyone. Data is only sent to the address of the control connection.

Examples:
  weir udp server --secret-file secret                      # port 5679 of all addresses
  weir udp server --bind 10.0.0.4                           # for everyone who reaches this address
  weir udp server --port 0 --verbose                        # this host only; prints the port that it got

Exit codes: 2 usage, 3 address or port unavailable";
