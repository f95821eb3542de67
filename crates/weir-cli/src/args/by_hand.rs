//! The options of `weir pub` and `weir sub`: one case, each end started by hand.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use weir_bench::case::CaseSpec;
use weir_results::{Reliability, WaitStrategy, parse_duration, parse_size};

use super::values::{parse_reliability, parse_socket_buffer, parse_wait};
use crate::exit::exit_codes;

/// Publish or ping: one end of a case, with `weir sub` as the other
#[derive(Debug, clap::Args)]
#[command(after_help = PUB_NOTES)]
pub(crate) struct PubArgs {
    /// Measure latency by ping-pong, with `weir sub --echo` at the other end
    #[arg(long, conflicts_with_all = ["batch", "publishers", "subscribers", "entity_id"], help_heading = "Workload")]
    pub(crate) ping: bool,

    #[command(flatten)]
    pub(crate) hand: HandArgs,

    /// Index of this publisher among several, from 0
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Workload")]
    pub(crate) entity_id: u32,

    /// Time to publish or ping
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "10s", help_heading = "Method")]
    pub(crate) duration: Duration,

    /// Time to ping before measuring
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

    /// Time after which to stop [default: when all publishers are done]
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
    /// Engine, as listed by `weir bench --help`
    #[arg(long, value_name = "NAME", default_value = "weir")]
    pub(crate) engine: String,

    /// Sample size in bytes, 28 to 1G; k, M, G: powers of 1024
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "1024")]
    pub(crate) size: u64,

    /// Instances to write in turn; 0: unkeyed topic
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) instances: u32,

    /// Batch size in bytes; 0: no batching
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "0")]
    pub(crate) batch: u64,

    /// Number of publishers
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) publishers: u32,

    /// Number of subscribers, which each publisher waits for
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) subscribers: u32,
}

#[derive(Debug, clap::Args)]
pub(crate) struct HandQos {
    /// Reliability kind: best-effort or reliable
    #[arg(long, value_name = "KIND", value_parser = parse_reliability, default_value = "reliable")]
    pub(crate) reliability: Reliability,

    /// Send samples by multicast, if the engine supports it
    #[arg(long)]
    pub(crate) multicast: bool,

    /// Use zero-copy loans, if the engine supports them
    #[arg(long)]
    pub(crate) loans: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct HandMethod {
    /// How this end waits: block, spin, or spin:USEC (spin, then block)
    #[arg(long, value_name = "HOW", value_parser = parse_wait, default_value = "block")]
    pub(crate) wait: WaitStrategy,

    /// Time to wait for the other end
    #[arg(long, alias = "patience", value_name = "TIME", value_parser = parse_duration, default_value = "60s")]
    pub(crate) connect_timeout: Duration,

    /// Fill every sample with a pattern, or check it on arrival
    #[arg(long)]
    pub(crate) verify: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct HandHost {
    /// Network interface that carries the samples
    #[arg(long, value_name = "NAME", default_value = "lo")]
    pub(crate) interface: String,

    /// DDS domain, 0 to 232
    #[arg(long, value_name = "ID", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=232))]
    pub(crate) domain: u32,

    /// Address of the other end, for the udp engines
    #[arg(long, value_name = "IPV4")]
    pub(crate) peer: Option<Ipv4Addr>,

    /// UDP port of the publisher, for the udp engines; the subscriber has the next
    #[arg(long, default_value_t = 47400, value_parser = clap::value_parser!(u16).range(1..=65534))]
    pub(crate) port: u16,

    /// CPU to pin this end to [default: placed by the kernel]
    #[arg(long, value_name = "CPU")]
    pub(crate) cpu: Option<usize>,

    /// Socket buffer request in bytes; Linux doubles it
    #[arg(
        long,
        value_name = "BYTES",
        value_parser = parse_socket_buffer,
        default_value_t = CaseSpec::SOCKET_BUFFER_BYTES
    )]
    pub(crate) socket_buffer: usize,
}

#[derive(Debug, clap::Args)]
pub(crate) struct HandOutput {
    /// Folder for the results.jsonl of this end, created if missing
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,

    /// Host telemetry interval; 0s disables it
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
    exit_codes!()
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
