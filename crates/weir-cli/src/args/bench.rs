//! The options of `weir bench`, grouped as in its help.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::ArgPredicate;
use weir_bench::beside::Beside;
use weir_bench::engine;
use weir_bench::path::PathSpec;
use weir_bench::rate::Rate;
use weir_results::{Reliability, Test, WaitStrategy, parse_duration, parse_size};

use super::hosts::{HostsArgs, hosts_help};
use super::values::{
    Cpus, Format, KeepAwakeChoice, Order, Profile, ProgressForm, SOCKET_BUFFER, parse_cpus,
    parse_reliability, parse_share, parse_socket_buffer, parse_wait,
};
use crate::exit::exit_codes;
use crate::text::list_item;

/// Measure latency and throughput of raw UDP and of the engines above it, on this host
#[derive(Debug, clap::Args)]
#[command(after_help = after_help())]
pub(crate) struct BenchArgs {
    #[command(flatten, next_help_heading = "Workload")]
    pub(crate) workload: Workload,
    #[command(flatten, next_help_heading = "QoS")]
    pub(crate) qos: Qos,
    #[command(flatten, next_help_heading = "Method")]
    pub(crate) method: Method,
    #[command(flatten, next_help_heading = "Host")]
    pub(crate) host: Host,
    #[command(flatten, next_help_heading = "Output")]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Workload {
    /// Measure these engines, or `all` (see Engines); with --breakdown or --workload: udp,weir
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "udp,udp-gso,weir",
        default_value_ifs([
            ("breakdown", ArgPredicate::from("true"), "udp,weir"),
            ("workload", ArgPredicate::IsPresent, "udp,weir"),
        ])
    )]
    pub(crate) engines: Vec<String>,

    /// Measure a workload, such as robot, or a TOML file; see Workload below
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = [
            "tests", "sizes", "rate", "beside", "instances", "batch", "publishers", "subscribers", "reliability",
            "multicast", "loans", "until_width", "order", "wait", "subscriber_delay", "verify", "breakdown",
            "outside_checks", "link", "hosts", "cpus", "seed", "telemetry_period",
        ]
    )]
    pub(crate) workload: Option<String>,

    /// Measure the workload with each of these values of its N
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = clap::value_parser!(u32).range(1..),
        requires = "workload"
    )]
    pub(crate) scale: Vec<u32>,

    /// Print a ready-made workload, to be copied and changed, and exit
    #[arg(long, value_name = "NAME")]
    pub(crate) show_workload: Option<String>,

    /// Run these tests: latency, throughput
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "latency,throughput",
        default_value_if("breakdown", "true", "latency")
    )]
    pub(crate) tests: Vec<Test>,

    /// Send samples of these sizes, 28 to 1G bytes; k, M, G: powers of 1024
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = parse_size,
        default_value = "32,1024,8192,63000"
    )]
    pub(crate) sizes: Vec<u64>,

    /// Send N samples/s or N% of the maximum, which is measured first, on a schedule [default: ping-pong]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) rate: Vec<Rate>,

    /// Share the --link with none, tcp or samples of SIZE; see Beside below [default: none]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) beside: Vec<Beside>,

    /// Write N instances in turn; 0: unkeyed topic
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) instances: u32,

    /// Batch up to these sizes in bytes (throughput); 0: off [default: 0,8192]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_size)]
    pub(crate) batch: Option<Vec<u64>>,

    /// Start N publisher processes (throughput)
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) publishers: u32,

    /// Start N subscriber processes (throughput); rates are means per subscriber
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) subscribers: u32,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Qos {
    /// Measure these reliability kinds
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = parse_reliability,
        default_value = "best-effort,reliable"
    )]
    pub(crate) reliability: Vec<Reliability>,

    /// Send samples by multicast, where the engine supports it
    #[arg(long)]
    pub(crate) multicast: bool,

    /// Measure zero-copy loans as well, where the engine supports them
    #[arg(long)]
    pub(crate) loans: bool,

    /// Measure Weir as users get it (full), or weir-small in place of weir (small)
    #[arg(long, value_enum, hide_possible_values = true, value_name = "PROFILE", default_value_t = Profile::Full)]
    pub(crate) profile: Profile,

    /// Read engine settings from a TOML file
    #[arg(long, value_name = "FILE")]
    pub(crate) settings: Option<PathBuf>,

    /// Print all engine settings, including those of --settings, and exit
    #[arg(long)]
    pub(crate) show_settings: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Method {
    /// Measure each case this long [default: 2s; 1s with more than four engines; 10s for a workload]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) duration: Option<Duration>,

    /// Run each case this long before measuring
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "300ms")]
    pub(crate) warmup: Duration,

    /// Repeat every case N times; 6 or more give 95 % intervals
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) repeat: u32,

    /// End the repeats of a size when all 95 % intervals are narrower than this, as 5%
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    pub(crate) until_width: Option<f64>,

    /// Run the cases interleaved, listed or shuffled; see Order below
    #[arg(long, value_enum, hide_possible_values = true, value_name = "ORDER")]
    pub(crate) order: Option<Order>,

    /// Shuffle with this seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    // The former name of `--order interleaved`.
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        hide = true,
        conflicts_with = "order"
    )]
    pub(crate) interleave: Option<bool>,

    /// Compare the other engines with this one
    #[arg(long, value_name = "ENGINE", default_value = "udp")]
    pub(crate) relative_to: String,

    /// Make receivers block, spin, or spin:USEC and then block
    #[arg(long, value_name = "HOW", value_parser = parse_wait, default_value = "block")]
    pub(crate) wait: WaitStrategy,

    /// Open the subscribers this long after the publishers
    #[arg(long, alias = "late", value_name = "TIME", value_parser = parse_duration, default_value = "0ms")]
    pub(crate) subscriber_delay: Duration,

    /// Fill every sample with a pattern and check it on arrival
    #[arg(long)]
    pub(crate) verify: bool,

    /// Show latency by stage (udp and weir only); see Breakdown below
    #[arg(long)]
    pub(crate) breakdown: bool,

    /// Run sockperf and iperf3 as well, where installed
    #[arg(long)]
    pub(crate) outside_checks: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Host {
    /// Use this network interface
    #[arg(long, value_name = "NAME", default_value = "lo")]
    pub(crate) interface: String,

    /// Measure across a virtual link (root), or several in turn; see Link below
    #[arg(long, alias = "path", value_name = "LINK", conflicts_with_all = ["interface", "outside_checks"])]
    pub(crate) link: Vec<PathSpec>,

    #[command(flatten)]
    pub(crate) hosts: HostsArgs,

    /// Use this DDS domain, 0 to 232
    #[arg(long, value_name = "ID", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=232))]
    pub(crate) domain: u32,

    /// Pin the ends to CPUs, or none [default: two; none with several ends]
    #[arg(long, value_name = "PUB,SUB", value_parser = parse_cpus)]
    pub(crate) cpus: Option<Cpus>,

    /// Request this socket buffer in bytes; Linux doubles it; by default Weir sends with its own 256 KiB
    #[arg(long, value_name = "BYTES", value_parser = parse_socket_buffer, default_value_t = SOCKET_BUFFER)]
    pub(crate) socket_buffer: usize,

    /// Keep the CPUs out of idle states: yes, no, both or auto; see Idle states below
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "WHEN",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = KeepAwakeChoice::Auto,
        default_missing_value = "yes"
    )]
    pub(crate) keep_awake: KeepAwakeChoice,

    /// Sample host telemetry this often; 0s and --resources disable it
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "100ms")]
    pub(crate) telemetry_period: Duration,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Output {
    /// Print the results as table, csv or json
    #[arg(long, value_enum, hide_possible_values = true, value_name = "FORMAT", default_value_t = Format::Table)]
    pub(crate) format: Format,

    /// Write results.jsonl to this folder [default: weir-results/TIME]
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,

    /// Show CPU time, memory, context switches, system calls (counting slows them) and copies of samples
    #[arg(long, alias = "costs")]
    pub(crate) resources: bool,

    /// Report the start and the result of each case on stderr
    #[arg(short, long)]
    pub(crate) verbose: bool,

    /// Show progress on a terminal as view, as plain lines, or none
    #[arg(long, value_enum, hide_possible_values = true, value_name = "FORM", default_value_t = ProgressForm::View)]
    pub(crate) progress: ProgressForm,
}

/// Everything below the options: the engines of this build, then what is the same in every build.
fn after_help() -> String {
    let mut text = String::from(NOTES);
    for engine in engine::registry() {
        if let Some(about) = engine.about() {
            text.push_str(&list_item(engine.name(), about, 18));
        }
    }
    let missing: Vec<&str> = engine::missing().map(|peer| peer.name).collect();
    if !missing.is_empty() {
        text.push_str(&list_item(
            "not in this build",
            &format!("{} (cargo xtask peers)", missing.join(", ")),
            18,
        ));
    }
    text + DETAILS
}

const NOTES: &str = "\
Publisher and subscriber are separate processes. Every finished case is appended to results.jsonl, so an \
interrupted run keeps its results. One-way latency is half of the round trip; with --rate it counts from \
the time at which the sample was due. Throughput is counted by the subscriber. PUBLISHER:SUBSCRIBER, such as \
weir:cyclonedds, measures writers of one DDS engine with readers of another.

Engines:
";

const DETAILS: &str = concat!(
    "
Order:
  interleaved  all repeats of a size in a row, the engines in turn: the default with several engines
  listed       all cases once, then again for the next repeat
  shuffled     as listed, with the cases of each repeat and test in a random order, see --seed

Link:
  A link joins two network namespaces for the run, and is removed however the run ends.
  With several --link, everything is measured on each of them, in one file of results.
  veth[,OPTION...], a virtual cable of the kernel:
    mtu=N           largest IP packet in bytes (default: 1500)
    rate=N          bits per second in each direction, such as 100M or 1G (default: unlimited)
    queue=N         bytes that wait in front of a link with a rate (default: 1000 packets)
    burst=N         bytes that pass at once after a pause (default: 4 ms of the rate)
    loss=N%         packets dropped at random in each direction, once the ends are connected
    gso=on|off      whether a segmented send crosses uncut (default: on, off with a loss)
  tun[,OPTION...], an emulated link whose traffic, drops and queue are in the results:
    mtu=N           largest IP packet in bytes (default: 1500)
    rate=N          bits per second; 50M:5M@10s changes it 10 s after the ends are connected
    rtt=TIME        round trip without jitter and queue; delay=TIME is one way
    jitter=TIME     delays each packet by up to this, without reordering
    queue=N         bytes that wait in front of a link with a rate (default: 256k)
    loss=N%         packets lost at random, once the ends are connected
    burst-loss=N%   packets lost in bursts; burst-length=N is their mean (default: 8)
    duplicate=N%    packets that arrive twice
    reorder=N%      packets held back for reorder-delay=TIME (default: 1ms)
    ecn=TIME|BYTES  marks packets that find such a queue (ECN; also bleach, all)
    reverse=on      exchanges the directions
    seed=N          decides all losses, jitter and duplicates (default: 1)
    down-OPTION and up-OPTION set one direction; down leads to the subscribers
  lan100, lan1g, lan10g, wifi, lte, wan or satellite[,OPTION...], tun with typical options
  For example veth,mtu=9000,rate=1G or lte,loss=1% or tun,rate=20M,rtt=60ms,up-rate=5M.

Workload:
  Nodes, each a participant, with topics at fixed rates, spread over a few processes that are the same for each engine.
  The processor time of each process is measured, and the ages of samples from when each was due to its arrival.
  robot      60 nodes, 300 topics from 10 Hz to 1 kHz, images of 1 MiB and point clouds of 4 MiB
  trading    bursts of 64 bytes to 8 readers, reliable
  telemetry  1000 slow keyed sources into one sink
  Of these, --scale sets the parameter N:
  readers       one writer, N readers
  topics        N topics between two nodes, with the same rate in all
  participants  N participants almost at rest
  keys          N instances of one topic
  `weir bench --show-workload robot > my.toml` writes a file to change.

Beside:
  Each case is measured beside each of these. They start with the case, with the same warm-up and duration:
  none  nothing
  tcp   a TCP connection with CUBIC (iperf3), to the subscribers, as fast as possible
  SIZE  samples of SIZE bytes by the same engine in two more processes, as fast as possible
  For example --beside none,1M --tests latency --rate 100 for the age of a small topic beside bulk.

",
    hosts_help!(),
    "
Idle states:
  A thread that waits sleeps, and its processor takes time to wake up: more, the longer it slept. So an engine that
  sleeps a little less than raw UDP can seem faster, which it cannot be. --keep-awake is one of
    auto  both, if a check of 150 ms finds before the run that idle states slow this host down, or a host of --hosts
          (the default; no with --rate, --breakdown or --wait spin, and without raw UDP to compare with)
    both  measure each latency case with idle states and without, in tables of their own
    yes   SCHED_IDLE spinners on every processor of each host with an end, and 0 in /dev/cpu_dma_latency (root)
    no    as the host is

Breakdown:
  encode     from the write call to the send call
  send call  to the kernel's receive timestamp (SO_TIMESTAMPNS)
  kernel     to the datagram in the receiving socket
  wake-up    to the return of the receive call in the receiving thread
  parse      to the sample in the reader's cache
  deliver    to the sample in the application, an earlier acknowledgement included

Examples:
  weir bench                                              # every default case, two minutes
  weir bench --tests throughput --sizes 1k --repeat 20    # 20 interleaved pairs with intervals
  sudo weir bench --link lte --tests throughput           # across an emulated cellular link
  weir bench --workload robot --engines all               # what a robot's traffic costs in each engine
  weir bench --hosts pub=local,sub=user@beta              # between this host and another one

",
    exit_codes!()
);
