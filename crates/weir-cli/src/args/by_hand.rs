//! The options of `weir pub` and `weir sub`: one case, to be typed at both ends.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use weir_bench::case::CaseSpec;
use weir_results::{Reliability, WaitStrategy, parse_duration, parse_size};

use super::bench::{parse_reliability, parse_socket_buffer, parse_wait};

/// Publish (or ping) by hand: one end of a case, mostly with `weir sub` on another host.
///
/// Nobody coordinates the two ends: what is measured has to be the same on both command lines. The publisher
/// waits for its subscribers, sends as fast as they take it, and ends with a final marker.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples, each with its other end:
  weir pub --interface eth0 --size 1k                   weir sub --interface eth0 --size 1k
  weir pub --interface eth0 --ping                      weir sub --interface eth0 --echo
  weir pub --interface eth0 --size 32 --batch 8192      weir sub --interface eth0 --size 32
  weir pub --interface eth0 --subscribers 2             weir sub --interface eth0     (twice)
  weir pub --interface eth0 --engine udp --peer 10.0.0.2
                                                        weir sub --interface eth0 --engine udp --peer 10.0.0.1")]
pub(crate) struct PubArgs {
    #[command(flatten)]
    pub(crate) hand: HandArgs,

    /// Measure latency: ping, with `weir sub --echo` at the other end
    #[arg(long, conflicts_with_all = ["batch", "publishers", "subscribers", "entity_id"])]
    pub(crate) ping: bool,

    /// How long to publish or ping
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "10s")]
    pub(crate) duration: Duration,

    /// How long to ping before it is measured; a stream shows its beginning by its intervals
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "300ms")]
    pub(crate) warmup: Duration,

    /// Which of several publishers this one is, from 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) entity_id: u32,
}

/// Subscribe (or echo) by hand: the other end of `weir pub`.
///
/// Prints what each second brought, and a summary when every publisher has said that it is done. Exits with
/// 1 when a reliable sample was lost.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples, each with its other end:
  weir sub --interface eth0 --size 1k                   weir pub --interface eth0 --size 1k
  weir sub --interface eth0 --echo                      weir pub --interface eth0 --ping
  weir sub --interface eth0 --publishers 2              weir pub --interface eth0 --entity-id 0
                                                        weir pub --interface eth0 --entity-id 1
  weir sub --interface eth0 --engine udp --peer 10.0.0.1
                                                        weir pub --interface eth0 --engine udp --peer 10.0.0.2")]
pub(crate) struct SubArgs {
    #[command(flatten)]
    pub(crate) hand: HandArgs,

    /// Echo pings until Ctrl-C, for `weir pub --ping` at the other end
    #[arg(long, conflicts_with_all = ["batch", "publishers", "subscribers"])]
    pub(crate) echo: bool,

    /// Stop after this time, whatever the publishers do [default: when they are done]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) duration: Option<Duration>,
}

/// What both ends have to know.
#[derive(Debug, clap::Args)]
pub(crate) struct HandArgs {
    /// What carries the samples, as in `weir bench --engines`
    #[arg(long, value_name = "NAME", default_value = "weir")]
    pub(crate) engine: String,

    /// Size of a sample in bytes, its 28 bytes of header included; k, M and G are powers of 1024
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "1024")]
    pub(crate) size: u64,

    /// Delivery guarantee: best-effort or reliable; the udp engines know none
    #[arg(long, value_name = "KIND", value_parser = parse_reliability, default_value = "reliable")]
    pub(crate) reliability: Reliability,

    /// Instances that samples go round; 0 = an unkeyed topic
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) instances: u32,

    /// Gather samples into messages of so many bytes; 0 = do not
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "0")]
    pub(crate) batch: u64,

    /// Publishers; each needs an --entity-id of its own
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) publishers: u32,

    /// Subscribers that a publisher waits for
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) subscribers: u32,

    /// Let samples travel by multicast, if the engine can
    #[arg(long)]
    pub(crate) multicast: bool,

    /// Fill samples where they are sent from, and read them where they arrive, if the engine can
    #[arg(long)]
    pub(crate) loans: bool,

    /// How this end waits: block, spin, or spin:USEC to spin that long and then block
    #[arg(long, value_name = "HOW", value_parser = parse_wait, default_value = "block")]
    pub(crate) wait: WaitStrategy,

    /// Processor that this end runs on [default: left to the kernel]
    #[arg(long, value_name = "CPU")]
    pub(crate) cpu: Option<usize>,

    /// DDS domain
    #[arg(long, value_name = "ID", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=232))]
    pub(crate) domain: u32,

    /// Network interface of this host that carries the samples
    #[arg(long, value_name = "NAME", default_value = "lo")]
    pub(crate) interface: String,

    /// Address of the other end, for engines without discovery (udp, udp-gso)
    #[arg(long, value_name = "IPV4")]
    pub(crate) peer: Option<Ipv4Addr>,

    /// UDP port of the publisher, for engines without discovery; the subscriber has the next one
    #[arg(long, default_value_t = 47400, value_parser = clap::value_parser!(u16).range(1..=65534))]
    pub(crate) port: u16,

    /// How long to wait for the other end
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "60s")]
    pub(crate) patience: Duration,

    /// Socket buffers to ask for at this end, each way; Linux counts double, so 106496 is its stock size
    #[arg(
        long,
        value_name = "BYTES",
        value_parser = parse_socket_buffer,
        default_value_t = CaseSpec::SOCKET_BUFFER_BYTES
    )]
    pub(crate) socket_buffer: usize,

    /// Fill every sample from its number, or compare what arrives
    #[arg(long)]
    pub(crate) verify: bool,

    /// Keep this end's results in results.jsonl of this folder, for `weir report`; made if it is not there
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,

    /// How often this end looks at what its host does meanwhile, into the results file; 0s = never
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "100ms")]
    pub(crate) telemetry_period: Duration,
}
