//! The options of `weir pub` and `weir sub`: one case, each end started by hand.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use weir_results::{Reliability, WaitStrategy, parse_duration, parse_size};

use super::values::{SOCKET_BUFFER, parse_reliability, parse_socket_buffer, parse_wait};
use crate::exit::{exit_codes, exit_codes_without_loss};

/// Publish or ping: one end of a case, with `weir sub` as the other
#[derive(Debug, clap::Args)]
#[command(after_help = PUB_NOTES)]
pub(crate) struct PubArgs {
    /// Measure latency by ping-pong, with `weir sub --echo` at the other end
    #[arg(long, conflicts_with_all = ["batch", "publishers", "subscribers", "entity_id"], help_heading = "Workload")]
    pub(crate) ping: bool,

    #[command(flatten)]
    pub(crate) hand: HandArgs,

    /// Set the index of this publisher among several, from 0
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Workload")]
    pub(crate) entity_id: u32,

    /// Publish or ping this long
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "10s", help_heading = "Method")]
    pub(crate) duration: Duration,

    /// Ping this long before measuring
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "300ms", help_heading = "Method")]
    pub(crate) warmup: Duration,
}

/// Subscribe or echo: the other end of `weir pub`
#[derive(Debug, clap::Args)]
#[command(after_help = SUB_NOTES)]
pub(crate) struct SubArgs {
    /// Echo pings until interrupted, for `weir pub --ping` at the other end
    #[arg(long, conflicts_with_all = ["batch", "publishers", "subscribers"], help_heading = "Workload")]
    pub(crate) echo: bool,

    #[command(flatten)]
    pub(crate) hand: HandArgs,

    /// Stop after this time [default: when all publishers are done]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Method")]
    pub(crate) duration: Option<Duration>,
}

/// The options of both ends.
#[derive(Debug, clap::Args)]
pub(crate) struct HandArgs {
    #[command(flatten, next_help_heading = "Workload")]
    pub(crate) workload: HandWorkload,
    #[command(flatten, next_help_heading = "QoS")]
    pub(crate) qos: HandQos,
    #[command(flatten, next_help_heading = "Method")]
    pub(crate) method: HandMethod,
    #[command(flatten, next_help_heading = "Host")]
    pub(crate) host: HandHost,
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) output: HandOutput,
}

#[derive(Debug, clap::Args)]
pub(crate) struct HandWorkload {
    /// Use this engine, of those that `weir bench --help` lists
    #[arg(long, value_name = "NAME", default_value = "weir")]
    pub(crate) engine: String,

    /// Send samples of this size, 28 to 1G bytes; k, M, G: powers of 1024
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "1024")]
    pub(crate) size: u64,

    /// Write N instances in turn; 0: unkeyed topic
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) instances: u32,

    /// Batch samples up to this size in bytes; 0: off
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "0")]
    pub(crate) batch: u64,

    /// Expect N publishers
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) publishers: u32,

    /// Expect N subscribers
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) subscribers: u32,
}

#[derive(Debug, clap::Args)]
pub(crate) struct HandQos {
    /// Use best-effort or reliable delivery
    #[arg(long, value_name = "KIND", value_parser = parse_reliability, default_value = "reliable")]
    pub(crate) reliability: Reliability,

    /// Send samples by multicast, if the engine supports it
    #[arg(long)]
    pub(crate) multicast: bool,

    /// Use zero-copy loans, if the engine supports them
    #[arg(long)]
    pub(crate) loans: bool,

    /// Read QoS from this OMG DDS-XML file, with Weir; other options go before it
    #[arg(long, value_name = "FILE", requires = "qos_profile")]
    pub(crate) qos_file: Option<String>,

    /// Use this profile of --qos-file
    #[arg(long, value_name = "LIBRARY::PROFILE", requires = "qos_file")]
    pub(crate) qos_profile: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct HandMethod {
    /// Make this end block, spin, or spin:USEC and then block
    #[arg(long, value_name = "HOW", value_parser = parse_wait, default_value = "block")]
    pub(crate) wait: WaitStrategy,

    /// Wait this long for the other end
    #[arg(long, alias = "patience", value_name = "TIME", value_parser = parse_duration, default_value = "60s")]
    pub(crate) connect_timeout: Duration,

    /// Fill every sample with a pattern, or check it on arrival
    #[arg(long)]
    pub(crate) verify: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct HandHost {
    /// Use this network interface
    #[arg(long, value_name = "NAME", default_value = "lo")]
    pub(crate) interface: String,

    /// Use this DDS domain, 0 to 232
    #[arg(long, value_name = "ID", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=232))]
    pub(crate) domain: u32,

    /// Set the address of the other end, for the udp engines
    #[arg(long, value_name = "IPV4")]
    pub(crate) peer: Option<Ipv4Addr>,

    /// Set the publisher's UDP port, for the udp engines; the subscriber has the next
    #[arg(long, default_value_t = 47400, value_parser = clap::value_parser!(u16).range(1..=65534))]
    pub(crate) port: u16,

    /// Pin this end to a CPU [default: not pinned]
    #[arg(long, value_name = "CPU")]
    pub(crate) cpu: Option<usize>,

    /// Request this socket buffer in bytes; Linux doubles it
    #[arg(long, value_name = "BYTES", value_parser = parse_socket_buffer, default_value_t = SOCKET_BUFFER)]
    pub(crate) socket_buffer: usize,
}

#[derive(Debug, clap::Args)]
pub(crate) struct HandOutput {
    /// Write the results.jsonl of this end to this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,

    /// Sample host telemetry this often; 0s disables it
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "100ms")]
    pub(crate) telemetry_period: Duration,
}

const PUB_NOTES: &str = concat!(
    "Give both ends the same engine, size, reliability, instances and domain. The udp engines are \
     best effort. The publisher waits for its subscribers, sends as fast as they take the samples, and ends the stream with a marker.

Examples:
  weir pub --interface eth0 --size 1k                # weir sub --interface eth0 --size 1k
  weir pub --interface eth0 --ping                   # weir sub --interface eth0 --echo
  weir pub --interface eth0 --size 32 --batch 8192   # weir sub --interface eth0 --size 32
  weir pub --engine udp --peer 10.0.0.2 --interface eth0

",
    exit_codes_without_loss!()
);

const SUB_NOTES: &str = concat!(
    "Give both ends the same engine, size, reliability, instances and domain. Prints a line each second, and \
     a summary when every publisher is done.

Examples:
  weir sub --interface eth0 --size 1k                # weir pub --interface eth0 --size 1k
  weir sub --interface eth0 --echo                   # weir pub --interface eth0 --ping
  weir sub --interface eth0 --publishers 2           # two ends: weir pub --entity-id 0, 1
  weir sub --engine udp --peer 10.0.0.1 --interface eth0

",
    exit_codes!()
);
