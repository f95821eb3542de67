//! Turns the options of `weir udp` into a list of measurements.

use std::time::Duration;

use weir_baseline::{Point, PointTest};
use weir_bench::outside::OutsideTool;
use weir_bench::path::PathSpec;
use weir_results::Direction::{Forward, Reverse};
use weir_results::{Case, Run, Spread, Test, UdpMode, WaitStrategy};

use crate::args::{Direction, UdpArgs, UdpRate};

/// The measurements in their order.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
}

/// One measurement.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) point: Point,
    /// Number of the repeat, from 1.
    pub(super) repeat: u32,
    /// The rate in percent of the maximum.
    pub(super) percent: Option<f64>,
    /// The outside tool that runs it; `None` = this program.
    pub(super) outside: Option<OutsideTool>,
}

impl Plan {
    /// Plans every point once per repeat, so that changes of the machine's speed affect all points. `room`: each end
    /// has a CPU of its own. `outside`: tools to interleave with.
    pub(super) fn new(args: &UdpArgs, room: bool, outside: &[OutsideTool]) -> Result<Self, String> {
        if args.method.outside_checks
            && (args.workload.direction != Direction::Forward || args.workload.flows != [1])
        {
            return Err(
                "--outside-checks compares one forward flow: leave out --direction and --flows".to_owned()
            );
        }
        let rates = rates(&args.workload.rate);
        let mut steps = Vec::new();
        for repeat in 1..=args.method.repeat {
            for &size in &args.workload.sizes {
                let size_bytes = usize::try_from(size)
                    .map_err(|_| format!("--sizes {size}: a datagram has at most 65507 bytes"))?;
                if args.workload.tests.contains(&Test::Latency) && args.sockets.multicast.is_none() {
                    let point =
                        Point { test: PointTest::RoundTrip, ..blank(args, size_bytes, UdpMode::Send) };
                    let point = Point { forward: true, reverse: false, flows: 1, gro: false, ..point };
                    let step = Step { point, repeat, percent: None, outside: None };
                    steps.extend(interleaved(vec![step], outside));
                }
                if args.workload.tests.contains(&Test::Throughput) {
                    let of_mode = |mode: &UdpMode| streams(args, size_bytes, *mode, &rates, repeat, room);
                    steps.extend(interleaved(args.workload.mode.iter().flat_map(of_mode).collect(), outside));
                }
            }
        }
        if steps.is_empty() {
            return Err(
                "nothing to measure: round trips have no multicast; use --tests throughput".to_owned()
            );
        }
        Ok(Self { steps })
    }

    /// Rejects invalid measurements before the first one starts.
    pub(super) fn check(&self, is_ipv6: bool) -> Result<(), String> {
        self.steps.iter().try_for_each(|step| step.point.check(is_ipv6))
    }
}

impl Step {
    /// Who measures.
    pub(super) fn engine(&self) -> &'static str {
        self.outside.map_or(self.point.mode.engine(), OutsideTool::name)
    }

    pub(super) fn test(&self) -> Test {
        match self.point.test {
            PointTest::RoundTrip => Test::Latency,
            PointTest::Stream => Test::Throughput,
        }
    }

    /// What is measured, without its repeat.
    pub(super) fn name(&self) -> String {
        let point = &self.point;
        let mut text = format!("{} {} B, ", self.engine(), point.size_bytes);
        text += match (point.test, point.forward, point.reverse) {
            (PointTest::RoundTrip, ..) => "round trips",
            (PointTest::Stream, true, true) => "streams both ways",
            (PointTest::Stream, _, true) => "stream from the server",
            (PointTest::Stream, ..) => "stream",
        };
        if point.flows > 1 {
            text += &format!(", {} flows", point.flows);
        }
        match (self.percent, point.datagrams_per_s) {
            (Some(percent), _) => text + &format!(", {percent} % of the maximum"),
            (None, Some(rate)) => text + &format!(", {rate:.1} datagrams/s"),
            (None, None) => text,
        }
    }

    /// Whether these cases hold all that it measures.
    pub(super) fn is_finished(&self, cases: &[Case]) -> bool {
        let directions = [(self.point.forward, Forward), (self.point.reverse, Reverse)];
        let mut needed = directions.into_iter().filter(|(is_sent, _)| *is_sent);
        needed.all(|(_, direction)| cases.iter().any(|case| self.is_of(case, direction)))
    }

    fn is_of(&self, case: &Case, direction: weir_results::Direction) -> bool {
        let Some(udp) = &case.figures.udp else { return false };
        // A rate is computed and printed, so it may differ in its last digit.
        let is_near = |one: f64, other: f64| (one - other).abs() <= one.abs() * 1e-9;
        let has_rate = match (self.percent, self.point.datagrams_per_s, case.conditions.rate_samples_per_s) {
            (Some(_), ..) | (None, None, None) => true,
            (None, Some(rate), Some(of_case)) => is_near(rate, of_case),
            _ => false,
        };
        case.point.engine == self.engine()
            && case.point.test == self.test()
            && case.point.size_bytes == self.point.size_bytes as u64
            && case.conditions.repeat == self.repeat
            && case.conditions.load_percent == self.percent
            && (udp.flows, udp.direction) == (self.point.flows, direction)
            && has_rate
    }

    /// Computes a rate given in percent from the median of the maxima measured earlier in this run.
    pub(super) fn resolve(&self, point: &mut Point, run: &Run) -> Result<(), String> {
        let Some(percent) = self.percent else { return Ok(()) };
        let is_maximum = |case: &&Case| {
            case.point.engine == point.mode.engine()
                && case.point.size_bytes == point.size_bytes as u64
                && case.conditions.rate_samples_per_s.is_none()
                && case
                    .figures
                    .udp
                    .as_ref()
                    .is_some_and(|udp| udp.mode == point.mode && udp.flows == point.flows)
        };
        let rates = run.cases.iter().filter(is_maximum).filter_map(|case| case.figures.throughput);
        let maximum = Spread::of(rates.map(|throughput| throughput.samples_per_s));
        let maximum = maximum.map(|spread| spread.median).filter(|maximum| *maximum > 0.0);
        let maximum = maximum.ok_or("the maximum that --rate refers to was not measured")?;
        point.datagrams_per_s = Some(maximum * percent / 100.0);
        Ok(())
    }
}

/// The rates, preceded by the maximum if one is given in percent.
fn rates(asked: &[UdpRate]) -> Vec<UdpRate> {
    let has_share = asked.iter().any(|rate| matches!(rate, UdpRate::Percent(_)));
    let mut rates: Vec<UdpRate> = asked.to_vec();
    if has_share {
        rates.retain(|rate| *rate != UdpRate::Max);
        rates.insert(0, UdpRate::Max);
    }
    rates
}

/// Adds the outside tools after `steps` in odd repeats and before them in even ones. Scheduled rates have no outside
/// check.
fn interleaved(steps: Vec<Step>, outside: &[OutsideTool]) -> Vec<Step> {
    let Some(first) = steps.iter().find(|step| step.point.datagrams_per_s.is_none()) else { return steps };
    let test = match first.point.test {
        PointTest::RoundTrip => Test::Latency,
        PointTest::Stream => Test::Throughput,
    };
    let tools = outside.iter().filter(|tool| tool.test() == test);
    let beside: Vec<Step> = tools.map(|tool| Step { outside: Some(*tool), ..first.clone() }).collect();
    if first.repeat.is_multiple_of(2) { [beside, steps].concat() } else { [steps, beside].concat() }
}

fn streams(
    args: &UdpArgs,
    size_bytes: usize,
    mode: UdpMode,
    rates: &[UdpRate],
    repeat: u32,
    room: bool,
) -> Vec<Step> {
    let mut steps = Vec::new();
    for &flows in &args.workload.flows {
        for &rate in rates {
            let mut point = Point { flows, ..blank(args, size_bytes, mode) };
            let mut percent = None;
            match rate {
                UdpRate::Max => point.wait = args.method.wait.unwrap_or(stream_wait(&point, room)),
                UdpRate::Bits(bits) => point.datagrams_per_s = Some(bits / (size_bytes.max(1) as f64 * 8.0)),
                UdpRate::Datagrams(datagrams) => point.datagrams_per_s = Some(datagrams),
                UdpRate::Percent(share) => {
                    percent = Some(share);
                    // A placeholder until the maximum is known.
                    point.datagrams_per_s = Some(1.0);
                }
            }
            steps.push(Step { point, repeat, percent, outside: None });
        }
    }
    steps
}

/// The default wait strategy for a stream at full rate. On one host a faster receiver that blocks costs the sender a
/// wake-up per datagram, so it spins first, unless its thread would compete for a CPU.
fn stream_wait(point: &Point, room: bool) -> WaitStrategy {
    if room && point.flows == 1 && !(point.forward && point.reverse) {
        WaitStrategy::SpinThenBlock { spin_us: SPIN_US }
    } else {
        WaitStrategy::Block
    }
}

/// Spin time before blocking: longer than the slowest sender takes per datagram.
const SPIN_US: u32 = 50;

fn blank(args: &UdpArgs, size_bytes: usize, mode: UdpMode) -> Point {
    Point {
        test: PointTest::Stream,
        size_bytes,
        mode,
        flows: 1,
        gro: args.sockets.gro.unwrap_or(mode == UdpMode::Gso),
        connected: !args.sockets.unconnected,
        wait: args.method.wait.unwrap_or(WaitStrategy::Block),
        server_cpu: None,
        dscp: args.sockets.dscp,
        multicast: args.sockets.multicast,
        multicast_ttl: args.sockets.ttl,
        forward: args.workload.direction != Direction::Reverse,
        reverse: args.workload.direction != Direction::Forward,
        datagrams_per_s: None,
        warmup: args.method.warmup,
        duration: args.method.duration,
        buffer_bytes: Some(args.sockets.socket_buffer),
        telemetry_period: Some(args.host.telemetry_period).filter(|period| !period.is_zero()),
        echo_wait: args.host.link.as_ref().map_or(Duration::ZERO, PathSpec::echo_wait),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use weir_results::{Reliability, ThroughputSummary, UdpFigures};

    use super::*;
    use crate::args::{Args, Command};

    fn plan(words: &str) -> Result<Plan, String> {
        let typed = ["weir", "udp"].into_iter().chain(words.split_whitespace());
        let Command::Udp(args) = Args::parse_from(typed).command else { panic!("{words}") };
        Plan::new(&args, true, if args.method.outside_checks { &OutsideTool::ALL } else { &[] })
    }

    #[test]
    fn round_trips_wait_for_answers_over_the_link() {
        let echo_wait = |words: &str| plan(words).unwrap().steps[0].point.echo_wait;
        assert_eq!(echo_wait("--tests latency"), Duration::ZERO);
        assert!(echo_wait("--tests latency --link satellite") > Duration::from_millis(600));
    }

    #[test]
    fn every_point_is_planned_once_per_repeat() {
        let steps = plan("--sizes 32,64 --mode send,gso --flows 1,2 --rate 1M,max --repeat 2").unwrap().steps;
        // Per size a round trip, and 2 modes x 2 flows x 2 rates.
        assert_eq!(steps.len(), 2 * 2 * (1 + 8));
        assert!(steps[..18].iter().all(|step| step.repeat == 1));
        assert_eq!(steps[0].point.test, PointTest::RoundTrip);
        assert_eq!(steps[1].point.datagrams_per_s, Some(3906.25));
        assert!(steps.iter().all(|step| step.point.check(false).is_ok()));
        assert!(steps.iter().all(|step| step.point.gro == (step.point.mode == UdpMode::Gso)));
    }

    #[test]
    fn percentages_follow_their_maximum() {
        let steps = plan("--tests throughput --sizes 100 --mode gso --rate 50%").unwrap().steps;
        assert_eq!(steps.len(), 2);
        let mut point = steps[1].point.clone();
        let mut run = Run::new(weir_results::Environment::default());
        assert!(steps[1].resolve(&mut point, &run).unwrap_err().contains("was not measured"));
        let mut case = Case::new("udp-gso", Test::Throughput, Reliability::None, 100);
        case.figures.throughput =
            Some(ThroughputSummary { samples_per_s: 5000.0, ..ThroughputSummary::default() });
        case.figures.udp = Some(UdpFigures { mode: UdpMode::Gso, flows: 1, ..UdpFigures::default() });
        run.cases.push(case);
        steps[1].resolve(&mut point, &run).unwrap();
        assert_eq!(point.datagrams_per_s, Some(2500.0));
    }

    #[test]
    fn outside_tools_alternate_before_and_after() {
        let steps = plan("--sizes 32 --outside-checks --repeat 2 --rate 50%").unwrap().steps;
        let who: Vec<&str> =
            steps.iter().map(|step| step.outside.map_or("weir", OutsideTool::name)).collect();
        let (odd, even) = who.split_at(7);
        assert_eq!(odd, ["weir", "sockperf", "weir", "weir", "weir", "weir", "iperf3"]);
        assert_eq!(even, ["sockperf", "weir", "iperf3", "weir", "weir", "weir", "weir"]);
        assert!(plan("--outside-checks --flows 2").unwrap_err().contains("one forward flow"));
    }

    #[test]
    fn receivers_of_full_rate_streams_spin_where_each_end_has_a_cpu() {
        let waits = |words: &str, room: bool| -> Vec<WaitStrategy> {
            let typed = ["weir", "udp", "--sizes", "32", "--mode", "send"].into_iter();
            let args = Args::parse_from(typed.chain(words.split_whitespace()));
            let Command::Udp(args) = args.command else { panic!("{words}") };
            let plan = Plan::new(&args, room, &[]).unwrap();
            plan.steps.iter().map(|step| step.point.wait).collect()
        };
        let (block, spin) = (WaitStrategy::Block, WaitStrategy::SpinThenBlock { spin_us: SPIN_US });
        assert_eq!(waits("--rate max,1M", true), [block, spin, block]);
        assert_eq!(waits("", false), [block, block]);
        assert_eq!(waits("--flows 2", true), [block, block]);
        assert_eq!(waits("--direction both", true), [block, block]);
        assert_eq!(waits("--wait spin", false), [WaitStrategy::Spin, WaitStrategy::Spin]);
    }

    #[test]
    fn directions_and_multicast_are_planned() {
        let both = plan("--tests throughput --direction both --sizes 32 --mode send").unwrap().steps;
        assert!(both[0].point.forward && both[0].point.reverse);
        assert!(plan("--tests latency --multicast 239.0.0.1").unwrap_err().contains("no multicast"));
        let refused = plan("--sizes 70000").unwrap().check(false).unwrap_err();
        assert!(refused.contains("65507"), "{refused}");
    }
}
