//! The options of `weir bench`, each with its default.

use std::path::PathBuf;
use std::time::Duration;

use clap::ArgAction;
use weir_bench::case::{CaseSpec, CpuPair};
use weir_bench::engine;
use weir_bench::path::PathSpec;
use weir_bench::rate::Rate;
use weir_results::{Reliability, Test, WaitStrategy, parse_duration, parse_size};

use super::Format;

/// Measure this machine: the raw UDP floor and the engines above it, latency and throughput.
///
/// Every case runs in two processes, a publisher and a subscriber. Finished cases are kept in a
/// results file at once, so that a run that is stopped keeps what it had. One-way latency is half
/// of a round trip; throughput is what the subscriber received.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BenchArgs {
    #[arg(
        long, value_name = "LIST", value_delimiter = ',', default_values_t = default_engines(),
        default_value_if("breakdown", "true", "udp,weir"),
        long_help = engines_help(), help = "What to measure, separated by commas"
    )]
    pub(crate) engines: Vec<String>,

    /// Which tests: latency, throughput
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "latency,throughput",
        default_value_if("breakdown", "true", "latency")
    )]
    pub(crate) tests: Vec<Test>,

    /// Sizes of a sample in bytes up to 1G, its 28 bytes of header included; k, M and G are powers of 1024
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = parse_size,
        default_value = "32,1024,8192,63000"
    )]
    pub(crate) sizes: Vec<u64>,

    /// Delivery guarantees: best-effort, reliable (for engines that know them)
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = parse_reliability,
        default_value = "best-effort,reliable"
    )]
    pub(crate) reliability: Vec<Reliability>,

    /// Open loop in place of the ping-pong: send by a fixed schedule of N samples per second, or of N% of the measured
    /// maximum; latency counts from the time at which a sample should have been sent
    #[arg(long, value_name = "RATE", value_delimiter = ',')]
    pub(crate) rate: Vec<Rate>,

    /// Instances that samples go round; 0 = an unkeyed topic
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) instances: u32,

    /// Throughput: gather samples into messages of so many bytes; 0 = do not. Each value is measured where two
    /// samples fit, by engines that can [default: 0,8192]
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = parse_size)]
    pub(crate) batch: Option<Vec<u64>>,

    /// Throughput: publishers, each a process; every subscriber receives everything of each
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) publishers: u32,

    /// Throughput: subscribers, each a process; rates are then the mean of one subscriber
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) subscribers: u32,

    /// Let samples travel by multicast, where an engine can
    #[arg(long)]
    pub(crate) multicast: bool,

    /// Measure engines that have loans with them, too: samples are filled where they are sent from, and read where
    /// they arrive
    #[arg(long)]
    pub(crate) loans: bool,

    /// How receivers wait: block, spin, or spin:USEC to spin that long and then block; most engines of others can only block
    #[arg(long, value_name = "HOW", value_parser = parse_wait, default_value = "block")]
    pub(crate) wait: WaitStrategy,

    /// Open the subscribers so much later than the publishers; results tell how long the ends took to find each other
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "0ms")]
    pub(crate) late: Duration,

    /// Processors of publishers and subscribers, or none [default: two different ones, if there are two;
    /// none where there are more than two ends]
    #[arg(long, value_name = "PUB,SUB", value_parser = parse_cpus)]
    pub(crate) cpus: Option<Cpus>,

    /// How long each case is measured [default: 2s; 1s with more than four engines]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) duration: Option<Duration>,

    /// How long each case runs before it is measured
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "300ms")]
    pub(crate) warmup: Duration,

    /// How often everything is measured: tables show the median and the range, from 6 on with 95 % intervals and
    /// a verdict; a difference below 20 % needs 20
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) repeat: u32,

    /// Repeat point by point with the engines in turns (A B, B A, A B...), so that a machine that changes its pace
    /// decides no comparison; false: go round everything [default: with more than one engine]
    #[arg(
        long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true"
    )]
    pub(crate) interleave: Option<bool>,

    /// The engine that the others are compared with
    #[arg(long, value_name = "ENGINE", default_value = "udp")]
    pub(crate) relative_to: String,

    /// Show what both ends cost: processor time per million samples, context switches, peak memory, and system
    /// calls, which are counted for this (as root) and become slower by that
    #[arg(long)]
    pub(crate) costs: bool,

    #[arg(
        long,
        help = "Show where the time of the latency test goes, by stages: encode, send call, kernel, wake-up, parse, deliver",
        long_help = BREAKDOWN_HELP
    )]
    pub(crate) breakdown: bool,

    /// What to print on stdout
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,

    /// Folder for results.jsonl; made if it is not there [default: weir-results/ and the time]
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,

    /// DDS domain
    #[arg(long, value_name = "ID", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=232))]
    pub(crate) domain: u32,

    /// Network interface that carries the samples
    #[arg(long, value_name = "NAME", default_value = "lo")]
    pub(crate) interface: String,

    #[arg(
        long, value_name = "PATH", conflicts_with_all = ["interface", "outside_checks"],
        help = "Measure across a cable made for the run (needs root) instead of the host's own interface: \
                veth[,mtu=9000][,rate=1G][,queue=256k][,burst=9100][,loss=10%][,gso=off]",
        long_help = PATH_HELP
    )]
    pub(crate) path: Option<PathSpec>,

    /// Socket buffers to ask for at both ends, each way; Linux counts double and reports what it granted, so
    /// 106496 is its stock size
    #[arg(
        long,
        value_name = "BYTES",
        value_parser = parse_socket_buffer,
        default_value_t = CaseSpec::SOCKET_BUFFER_BYTES
    )]
    pub(crate) socket_buffer: usize,

    /// How often both ends look at what their hosts do (processors, interrupts, devices, memory...), for `weir report
    /// --telemetry`; 0s = never, and so with --costs
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "100ms")]
    pub(crate) telemetry_period: Duration,

    /// Hold the processors out of idle while measuring (threads that only run when nothing else does, and
    /// /dev/cpu_dma_latency where allowed): what a sleeping processor takes to wake up is left out
    #[arg(long)]
    pub(crate) keep_awake: bool,

    /// Fill every sample from its number and compare what arrives
    #[arg(long)]
    pub(crate) verify: bool,

    /// Run sockperf and iperf3 in between, where installed, beside our floor
    #[arg(long)]
    pub(crate) outside_checks: bool,

    /// TOML with other settings for engines; --show-settings prints what there is
    #[arg(long, value_name = "FILE")]
    pub(crate) settings: Option<PathBuf>,

    /// Print the settings of all engines, those of --settings included, and measure nothing
    #[arg(long)]
    pub(crate) show_settings: bool,

    /// Say on stderr when a case starts and how it ends
    #[arg(short, long, action = ArgAction::SetTrue)]
    pub(crate) verbose: bool,
}

/// The value of `--cpus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cpus {
    /// Leave it to the kernel.
    None,
    /// These.
    Pair(CpuPair),
}

const EXAMPLES: &str = "\
Examples:
  weir bench                                      everything, about a minute
  weir bench --engines udp --tests latency --wait spin --outside-checks
  weir bench --sizes 32,64,1k,8k --duration 10s --repeat 3 --output results/lab
  weir bench --engines udp,weir --tests throughput --sizes 1k --repeat 20      20 pairs, A B, B A...
  weir bench --tests latency --keep-awake         without the time that idle processors take to wake up
  sudo weir bench --path veth,mtu=9000,rate=1G    across a cable made for the run
  sudo weir bench --tests throughput --reliability reliable --path veth,loss=10%
  weir bench --tests latency --sizes 1k --rate 10%,25%,50%,75%,90%      latency against load
  weir bench --tests latency --sizes 1k --rate 1000/s
  weir bench --breakdown --sizes 32,8k --wait spin      where the time of a sample goes
  weir bench --format json > run.json
  weir bench --tests throughput --sizes 32 --batch 0,4k,64k
  weir bench --tests throughput --sizes 1k --subscribers 4
  weir bench --engines all --repeat 3             the engines of others that are built in, too
  weir bench --cpus 0,0 --verify                  both ends on one processor, content checked";

const BREAKDOWN_HELP: &str = "\
Show where the time of the latency test goes, and measure nothing else; for udp and weir, which say when samples pass from stage to \
stage:
- encode: from the application's call until the send call (for udp: writing the header)
- send call: from there until the datagram is at the receiving side's network stack, by the kernel's stamp (SO_TIMESTAMPNS)
- kernel: from there until it lies in the receiver's socket: when the send call returns, or the receive call if that is earlier
- wake-up: from there until the receive call has returned in the receiving thread
- parse: from there until the sample lies in the reader's cache
- deliver: from there until the application has it; an acknowledgement that leaves before is in here
The looks at the clock are part of the latency. Of a sample that leaves by several send calls, the last one counts.
Example: weir bench --breakdown --sizes 32,8k --wait spin --output results/stages
         weir report results/stages --plot breakdown";

const PATH_HELP: &str = "\
Measure across a cable made for the run instead of the host's own interface (needs root): a pair of network namespaces joined by \
virtual Ethernet, veth[,mtu=N][,rate=N][,queue=N][,burst=N][,loss=N%][,gso=on|off].
- mtu: largest IP packet in bytes, by default 1500
- rate: bits per second in each direction, e.g. 100M, 1G; by default what the processor can
- queue: bytes that wait before the link when it has a rate, by default a thousand packets; the port of a switch has some hundred k
- burst: bytes that pass at once after a pause, by default what the rate brings in 4 ms; less is nearer to a wire, for latencies
- loss: that share of the packets is lost at random in each direction, from the moment on when the ends have found each other
- gso: off lets the sender's kernel cut a send of many datagrams into packets, as a wire would see them; it is off with a loss, \
so that each datagram is lost by itself, and on otherwise
Everything is gone when the command ends, however it does.";

/// The engines of the main job, as far as this build has them.
fn default_engines() -> Vec<String> {
    ["udp", "udp-gso", "weir"]
        .into_iter()
        .filter(|name| engine::find(name).is_some())
        .map(str::to_owned)
        .collect()
}

fn engines_help() -> String {
    let mut help = String::from("What to measure, separated by commas:");
    for engine in engine::registry() {
        if let Some(about) = engine.about() {
            help.push_str(&format!("\n- {}: {about}", engine.name()));
        }
    }
    help.push_str("\n- all: all of these");
    let missing: Vec<&str> = engine::missing().map(|peer| peer.name).collect();
    if !missing.is_empty() {
        help.push_str(&format!("\nNot built in (cargo xtask peers): {}", missing.join(", ")));
    }
    help
}

pub(super) fn parse_reliability(text: &str) -> Result<Reliability, String> {
    match text.parse() {
        Ok(reliability @ (Reliability::BestEffort | Reliability::Reliable)) => Ok(reliability),
        _ => Err("it is best-effort or reliable".to_owned()),
    }
}

pub(super) fn parse_wait(text: &str) -> Result<WaitStrategy, String> {
    let spin_us = |text: &str| {
        let number = text.strip_prefix("spin:")?;
        number.strip_suffix("us").unwrap_or(number).parse().ok()
    };
    match text {
        "block" => Ok(WaitStrategy::Block),
        "spin" => Ok(WaitStrategy::Spin),
        _ => spin_us(text).map(|spin_us| WaitStrategy::SpinThenBlock { spin_us }).ok_or_else(|| {
            "it is block, spin, or spin:USEC to spin so many microseconds and then block, e.g. spin:50"
                .to_owned()
        }),
    }
}

/// The kernel counts in an `int`, and doubles.
pub(super) fn parse_socket_buffer(text: &str) -> Result<usize, String> {
    let bytes = parse_size(text).map_err(|error| error.to_string())?;
    let bytes = usize::try_from(bytes).ok().filter(|bytes| (1..1 << 30).contains(bytes));
    bytes.ok_or_else(|| "it is more than 0 and less than 1G".to_owned())
}

pub(super) fn parse_cpus(text: &str) -> Result<Cpus, String> {
    if text == "none" {
        return Ok(Cpus::None);
    }
    let parse = || {
        let (publisher, subscriber) = text.split_once(',')?;
        Some(CpuPair {
            publisher: publisher.trim().parse().ok()?,
            subscriber: subscriber.trim().parse().ok()?,
        })
    };
    parse().map(Cpus::Pair).ok_or_else(|| "it is two processor numbers, e.g. 1,0, or none".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_strategies_may_leave_the_unit_out() {
        let check = |text: &str, expected: Option<WaitStrategy>| {
            assert_eq!(parse_wait(text).ok(), expected, "{text}")
        };
        check("block", Some(WaitStrategy::Block));
        check("spin", Some(WaitStrategy::Spin));
        check("spin:50", Some(WaitStrategy::SpinThenBlock { spin_us: 50 }));
        check("spin:50us", Some(WaitStrategy::SpinThenBlock { spin_us: 50 }));
        check("spin:", None);
        check("spin:-1", None);
        check("nap", None);
    }

    #[test]
    fn socket_buffers_have_suffixes_and_bounds() {
        let check = |text: &str, expected: Option<usize>| {
            assert_eq!(parse_socket_buffer(text).ok(), expected, "{text}")
        };
        check("106496", Some(106_496));
        check("208k", Some(212_992));
        check("4M", Some(CaseSpec::SOCKET_BUFFER_BYTES));
        check("0", None);
        check("1G", None);
        check("big", None);
    }

    #[test]
    fn processors_come_in_pairs() {
        let pair = |publisher, subscriber| Some(Cpus::Pair(CpuPair { publisher, subscriber }));
        let check =
            |text: &str, expected: Option<Cpus>| assert_eq!(parse_cpus(text).ok(), expected, "{text}");
        check("1,0", pair(1, 0));
        check("0,0", pair(0, 0));
        check("none", Some(Cpus::None));
        check("1", None);
        check("1,2,3", None);
        check("a,b", None);
    }
}
