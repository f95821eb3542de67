//! `weir pub` and `weir sub`: the ends of a case, each started by hand.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weir_bench::by_hand::{self, HandEvent, HandOptions, Interval, Published, Received, Watched};
use weir_bench::case::{CaseSpec, Ends, Method, Place};
use weir_bench::control::Role;
use weir_bench::endpoint::{EndpointError, Engine, ReliabilitySupport};
use weir_bench::engine::{QOS_FILE, QOS_PROFILE};
use weir_bench::{host, plan};
use weir_results::{
    Case, Environment, NotMeasured, Reliability, ResultsWriter, Run, Test, ThroughputCounts,
    ThroughputSummary, format_rate,
};

use super::setup;
use crate::args::{HandArgs, HandQos, PubArgs, SubArgs};
use crate::exit::{Exit, Failure};
use crate::{output, signals};

/// Publishes or pings.
pub(crate) fn publish(args: &PubArgs) -> Result<Exit, Failure> {
    if args.duration.is_zero() {
        return Err(Failure::usage(anyhow::anyhow!("--duration must be more than zero")));
    }
    let test = if args.ping { Test::Latency } else { Test::Throughput };
    let hand = &args.hand;
    let (case, engine) = check(
        hand,
        CaseSpec {
            duration: args.duration,
            warmup: if args.ping { args.warmup } else { Duration::ZERO },
            ..case(hand, test)?.with(|case| {
                case.ends.entity_id = args.entity_id;
                case.ends.publishers = hand.workload.publishers.max(args.entity_id.saturating_add(1));
                case.place.port = Some(hand.host.port);
            })
        },
    )?;
    let (mut kept, interrupted) = begin(hand, &case)?;
    let options = options(hand, &case, hand.host.port + 1, &interrupted);
    let size_bytes = case.size_bytes;
    let mut on_event = |event| show(event, size_bytes, "sent");
    if args.ping {
        let pinged =
            by_hand::ping(engine, &options, &mut on_event).map_err(|error| failed(error, &interrupted))?;
        let mut result = blank(&case);
        result.figures.latency_us = Some(pinged.outcome.summary);
        result.figures.duration_s = Some(seconds(pinged.outcome.measured_in));
        let run = Run { cases: vec![result.clone()], ..Run::new(Environment::default()) };
        output::page(&weir_report::tables(&run, &weir_report::ReportOptions::default()))?;
        kept.keep(result, Role::Publisher, pinged.watched)?;
        return Ok(ended(Exit::Success, &interrupted));
    }
    let published =
        by_hand::publish(engine, &options, &mut on_event).map_err(|error| failed(error, &interrupted))?;
    output::data(&published_line(&published, size_bytes))?;
    if let Some(line) = dropped_line(&published) {
        output::talk(&line);
    }
    let mut result = not_measured(&case, "only the subscriber knows the throughput (weir sub --output)");
    result.figures.duration_s = Some(seconds(published.sent_in));
    kept.keep(result, Role::Publisher, published.watched)?;
    if !published.flushed {
        return Err(Failure::environment(anyhow::anyhow!(
            "not all samples were acknowledged in time: check that every subscriber still runs"
        )));
    }
    Ok(ended(Exit::Success, &interrupted))
}

/// Subscribes or echoes.
pub(crate) fn subscribe(args: &SubArgs) -> Result<Exit, Failure> {
    let test = if args.echo { Test::Latency } else { Test::Throughput };
    let hand = &args.hand;
    let (case, engine) = check(
        hand,
        CaseSpec {
            duration: args.duration.unwrap_or(Duration::ZERO),
            ..case(hand, test)?.with(|case| case.place.port = Some(hand.host.port + 1))
        },
    )?;
    let (mut kept, interrupted) = begin(hand, &case)?;
    let options = options(hand, &case, hand.host.port, &interrupted);
    let mut on_event = |event| show(event, case.size_bytes, "received");
    if args.echo {
        let echoed =
            by_hand::echo(engine, &options, &mut on_event).map_err(|error| failed(error, &interrupted))?;
        output::data(&format!("echoed {} pings", echoed.pings))?;
        let result = not_measured(&case, "only the publisher knows the latency (weir pub --ping --output)");
        kept.keep(result, Role::Subscriber, echoed.watched)?;
        return Ok(Exit::Success);
    }
    let received =
        by_hand::subscribe(engine, &options, &mut on_event).map_err(|error| failed(error, &interrupted))?;
    output::data(&received_line(&received, case.size_bytes))?;
    if received.loss.lost > 0 {
        output::talk(&format!("weir: {}", received.loss));
    }
    let result = blank(&case).with(|it| {
        it.figures.throughput = Some(received_summary(&received, case.size_bytes));
        it.figures.duration_s = Some(seconds(received.received_in));
        it.evidence.loss_attribution = Some(received.loss.clone());
    });
    kept.keep(result, Role::Subscriber, received.watched.clone())?;
    let has_lost = case.reliability == Reliability::Reliable && received.counts.lost > 0;
    let exit = if has_lost || received.corrupt > 0 { Exit::DataLost } else { Exit::Success };
    Ok(ended(exit, &interrupted))
}

/// Opens the results file and reports that this end waits for the other one.
fn begin(args: &HandArgs, case: &CaseSpec) -> Result<(Kept, Arc<AtomicBool>), Failure> {
    let kept = Kept::open(args, case)?;
    let interrupted = signals::watch()?;
    let (what, interface) = (described(case), &case.place.interface);
    output::talk(&format!("weir: {what} at {interface}, waiting for the other end"));
    Ok((kept, interrupted))
}

/// The case as both ends know it.
fn case(args: &HandArgs, test: Test) -> Result<CaseSpec, Failure> {
    // Telemetry is only written to the results file.
    let telemetry_period =
        args.output.output.as_ref().map(|_| args.output.telemetry_period).filter(|period| !period.is_zero());
    Ok(CaseSpec {
        reliability: args.qos.reliability,
        size_bytes: usize::try_from(args.workload.size).unwrap_or(usize::MAX),
        instances: args.workload.instances,
        batch_bytes: u32::try_from(args.workload.batch).unwrap_or(u32::MAX),
        ends: Ends {
            publishers: args.workload.publishers,
            subscribers: args.workload.subscribers,
            entity_id: 0,
        },
        multicast: args.qos.multicast,
        loans: args.qos.loans,
        wait: args.method.wait,
        verify: args.method.verify,
        place: Place {
            domain: args.host.domain,
            interface: args.host.interface.clone(),
            address: host::interface_address(&args.host.interface).map_err(Failure::usage)?,
            socket_buffer_bytes: args.host.socket_buffer,
            ..Place::loopback()
        },
        method: Method { telemetry_period, ..Method::default() },
        settings: profile(&args.qos),
        ..CaseSpec::new(&args.workload.engine, test)
    })
}

/// The engine, and the case with the reliability that the engine supports.
fn check(args: &HandArgs, mut case: CaseSpec) -> Result<(CaseSpec, &'static dyn Engine), Failure> {
    let knows_none = weir_bench::engine::find(&case.engine)
        .is_some_and(|engine| engine.capabilities().reliability == ReliabilitySupport::None);
    if knows_none {
        case.reliability = Reliability::BestEffort;
    }
    let engine = plan::check_case(&case).map_err(Failure::usage)?;
    if knows_none && args.host.peer.is_none() {
        let name = engine.name();
        return Err(Failure::usage(anyhow::anyhow!(
            "{name} has no discovery: give the address of the other end with --peer"
        )));
    }
    let is_known = |name: &String| engine.settings().iter().any(|setting| setting.name == name);
    if !case.settings.keys().all(is_known) {
        return Err(Failure::usage(anyhow::anyhow!(
            "--qos-file does not work with --engine {}: only Weir reads QoS profiles",
            engine.name()
        )));
    }
    Ok((case, engine))
}

/// The settings that name the QoS profile.
fn profile(qos: &HandQos) -> BTreeMap<String, String> {
    let settings = [(QOS_FILE, &qos.qos_file), (QOS_PROFILE, &qos.qos_profile)];
    settings.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?))).collect()
}

fn options<'a>(
    args: &HandArgs,
    case: &'a CaseSpec,
    peer_port: u16,
    interrupted: &'a AtomicBool,
) -> HandOptions<'a> {
    let at = |address: Ipv4Addr| SocketAddrV4::new(address, peer_port);
    HandOptions {
        case,
        peer: args.host.peer.map(at),
        cpu: args.host.cpu,
        patience: args.method.connect_timeout,
        interrupted,
    }
}

/// The results file, if any.
struct Kept(Option<ResultsWriter>);

impl Kept {
    /// Creates the file before the measurement.
    fn open(args: &HandArgs, case: &CaseSpec) -> Result<Self, Failure> {
        let Some(folder) = &args.output.output else { return Ok(Self(None)) };
        let environment = setup::environment(&case.place.interface, None);
        setup::create_writer(Some(folder), &environment, None).map(|writer| Self(Some(writer)))
    }

    fn keep(&mut self, mut case: Case, role: Role, watched: Watched) -> Result<(), Failure> {
        let Some(writer) = &mut self.0 else { return Ok(()) };
        let (Case { figures, evidence, .. }, process) = (&mut case, Some(watched.process));
        match role {
            Role::Publisher => {
                (figures.publisher, evidence.publisher_telemetry) = (process, watched.telemetry);
            }
            Role::Subscriber | Role::Process => {
                (figures.subscriber, evidence.subscriber_telemetry) = (process, watched.telemetry);
            }
        }
        writer.append(&case).map_err(Failure::environment)?;
        output::talk(&format!("results: {}", writer.path().display()));
        Ok(())
    }
}

/// The case without figures.
fn blank(case: &CaseSpec) -> Case {
    let size_bytes = case.size_bytes as u64;
    Case::new(case.engine.as_str(), case.test, case.reliability, size_bytes).with(|it| {
        it.point.keyed = case.is_keyed();
        it.point.instances = case.instances.into();
        it.point.batch_bytes = case.batch_bytes.into();
        it.point.publishers = case.ends.publishers;
        it.point.subscribers = case.ends.subscribers;
        it.conditions.wait = case.wait;
        it.point.multicast = case.multicast;
        it.point.loans = case.loans;
    })
}

/// The case without the figures that only the other end has.
fn not_measured(case: &CaseSpec, reason: &str) -> Case {
    let reason = reason.to_owned();
    blank(case).with(|it| it.evidence.not_measured = Some(NotMeasured::NotSupported { reason }))
}

/// The throughput at this end. The publisher's counts are unknown here, so offered = received + lost.
fn received_summary(received: &Received, size_bytes: usize) -> ThroughputSummary {
    let counts = received.counts;
    ThroughputSummary::new(
        size_bytes as u64,
        &ThroughputCounts {
            offered: counts.received + counts.lost,
            offered_in: received.received_in,
            received: counts,
            received_in: received.received_in,
            datagrams: None,
            sends: None,
        },
    )
}

/// A line on packets that this host dropped; `None` without any.
fn dropped_line(published: &Published) -> Option<String> {
    let drops = &published.watched.drops;
    let dropped = drops.queue.unwrap_or(0).max(drops.device_sent.unwrap_or(0));
    (dropped > 0).then(|| {
        format!("weir: this host dropped {dropped} packets when sending (queueing discipline or device, all traffic counted)")
    })
}

fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e6
}

fn described(case: &CaseSpec) -> String {
    let loans = if case.loans { " with loans" } else { "" };
    format!("{} {} {} {} B{loans}", case.engine, case.test, case.reliability, case.size_bytes)
}

/// Why an end failed. An end that was interrupted while it waited has not missed the other one.
fn failed(error: EndpointError, interrupted: &AtomicBool) -> Failure {
    match error {
        EndpointError::NoPeer(_) if interrupted.load(Ordering::Acquire) => Failure {
            exit: Exit::Interrupted,
            error: anyhow::anyhow!("interrupted before the other end was found"),
        },
        error => Failure::environment(error),
    }
}

/// The exit code: an interruption takes precedence.
fn ended(exit: Exit, interrupted: &AtomicBool) -> Exit {
    if interrupted.load(Ordering::Acquire) { Exit::Interrupted } else { exit }
}

fn show(event: HandEvent, size_bytes: usize, what: &str) {
    match event {
        HandEvent::Joined => output::talk("weir: ready"),
        HandEvent::Interval(interval) => {
            // A closed stdout does not end the run: the other end needs it.
            let _ = output::data(&interval_line(&interval, size_bytes, what));
        }
    }
}

fn interval_line(interval: &Interval, size_bytes: usize, what: &str) -> String {
    let (from, length) = (interval.from.as_secs_f64(), interval.length);
    let rate = rate(interval.samples, length, size_bytes);
    let missing = match interval.missing {
        0 => String::new(),
        missing => format!(", {missing:+} missing"),
    };
    format!(
        "{from:6.1}-{:.1} s  {what} {} samples, {rate}{missing}",
        from + length.as_secs_f64(),
        interval.samples
    )
}

fn published_line(published: &Published, size_bytes: usize) -> String {
    let rate = rate(published.sent, published.sent_in, size_bytes);
    let unless_none = |count: u64, what: &str| match count {
        0 => String::new(),
        count => format!(", {count} {what}"),
    };
    let refused = unless_none(published.engine.refused, "refused by the system");
    let left_out = unless_none(published.engine.left_out, "left out: the path carries less");
    let seconds = published.sent_in.as_secs_f64();
    format!("summary: sent {} samples in {seconds:.3} s, {rate}{refused}{left_out}", published.sent)
}

fn received_line(received: &Received, size_bytes: usize) -> String {
    let counts = &received.counts;
    let all = (counts.received + counts.lost).max(1);
    let mut line = format!(
        "summary: received {} samples in {:.3} s, {}; lost {} ({:.2} %), duplicates {}, reordered {}",
        counts.received,
        received.received_in.as_secs_f64(),
        rate(counts.received, received.received_in, size_bytes),
        counts.lost,
        counts.lost as f64 / all as f64 * 100.0,
        counts.duplicates,
        counts.reordered,
    );
    if received.corrupt > 0 {
        line.push_str(&format!(", damaged {}", received.corrupt));
    }
    if !received.is_complete {
        line.push_str("\nstopped before the publisher was done: losses at the end are not counted");
    }
    line
}

fn rate(samples: u64, time: Duration, size_bytes: usize) -> String {
    if time.is_zero() {
        return "no rate".to_owned();
    }
    let per_s = samples as f64 / time.as_secs_f64();
    format!("{} samples/s, {:.1} Mbit/s", format_rate(per_s), per_s * size_bytes as f64 * 8.0 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interruption_takes_precedence_over_a_loss() {
        let of = |exit, is_interrupted| ended(exit, &AtomicBool::new(is_interrupted));
        assert_eq!(
            (of(Exit::Success, true), of(Exit::DataLost, true)),
            (Exit::Interrupted, Exit::Interrupted)
        );
        assert_eq!((of(Exit::Success, false), of(Exit::DataLost, false)), (Exit::Success, Exit::DataLost));
    }
}
