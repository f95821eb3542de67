//! From the reports of the ends to a case of the results.

use std::collections::BTreeMap;
use std::time::Duration;

use weir_measure::{
    SEGMENTS_MAX, check_rate, enter_buffers, mbps, round_trip_loss, rounded, seconds, stream_loss,
};
use weir_results::{
    Case, CaseSeries, ClockRelation, Discovery, DropCounters, EngineCounts, Environment, LatencyBreakdown,
    LossAttribution, LossBreakdown, NotMeasured, ProcessFigures, Reliability, ScheduleLag, SequenceCounts,
    Telemetry, ThroughputCounts, ThroughputSummary, Warning,
};
use weir_telemetry::host_warnings;

use crate::breakdown::account;
use crate::case::{CaseSpec, Ends};
use crate::control::{AgentReport, Joined, Outcome};
use crate::endpoint::Engine;
use crate::engine;
use crate::hosts::Hosts;
use crate::latency::PingerOutcome;
use crate::path::LinkOutcome;
use crate::rate::Rate;
use crate::throughput::{PublisherOutcome, SubscriberOutcome};

/// What makes a run a failed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// Samples were lost although reliable, or damaged.
    DataLost,
    /// The host, a peer or an engine did not work.
    Trouble,
}

impl Fault {
    /// Returns the fault of a finished case.
    pub(crate) fn of(case: &Case) -> Option<Self> {
        let has = |is_so: fn(&Warning) -> bool| case.evidence.warnings.iter().any(is_so);
        if has(|it| {
            matches!(it, Warning::LostSamples { permitted: false, .. } | Warning::CorruptSamples { .. })
        }) {
            return Some(Self::DataLost);
        }
        let has_failed = matches!(case.evidence.not_measured, Some(NotMeasured::Failed { .. }));
        (has_failed || has(|it| *it == Warning::NothingReceived)).then_some(Self::Trouble)
    }
}

/// A case without figures yet: its settings, and the doubts known in advance.
pub(crate) fn blank(case: &CaseSpec, environment: &Environment) -> Case {
    let mut result = Case::new(case.engine.as_str(), case.test, case.reliability, case.size_bytes as u64);
    result.point.keyed = case.is_keyed();
    result.point.instances = u64::from(case.instances);
    result.point.batch_bytes = u64::from(case.batch_bytes);
    (result.point.publishers, result.point.subscribers) = (case.ends.publishers, case.ends.subscribers);
    (result.point.multicast, result.point.loans) = (case.multicast, case.loans);
    result.conditions.apart = engine::find(&case.engine).is_some_and(Engine::is_apart);
    result.conditions.wait = case.wait;
    result.conditions.path.clone_from(&case.method.path);
    result.conditions.kept_awake = case.method.keep_awake;
    result.conditions.rate_samples_per_s = case.method.samples_per_s;
    result.conditions.load_percent = match case.method.rate {
        Some(Rate::OfMaximum(hundredths)) => Some(f64::from(hundredths) / 100.0),
        _ => None,
    };
    result.conditions.keep_last = case.method.keep_last;
    result.conditions.beside = case.method.beside.name();
    if let Some(workload) = &case.workload {
        result.conditions.workload_name = Some(workload.name.clone());
        result.conditions.workload_digest = Some(workload.digest.clone());
        result.conditions.workload_n = workload.n;
    }
    result.conditions.repeat = case.repeat;
    result.conditions.settings = settings(case);
    result.evidence.warnings = doubts(case, environment);
    result
}

/// Says in `result` that nothing was measured because the engine cannot do it.
pub(crate) fn not_supported(result: &mut Case, reason: String) {
    result.evidence.not_measured = Some(NotMeasured::NotSupported { reason });
}

/// Says in `result` that nothing was measured although it should have been.
pub(crate) fn failed(result: &mut Case, reason: String) -> Option<Fault> {
    result.evidence.not_measured = Some(NotMeasured::Failed { reason });
    Some(Fault::Trouble)
}

/// Enters how the processors were kept out of idle states.
pub(crate) fn enter_awake(result: &mut Case, how: &str) {
    result.conditions.settings.insert("keep_awake".to_owned(), how.to_owned());
}

/// Enters what the link between the ends did.
pub(crate) fn enter_link(result: &mut Case, link: LinkOutcome) {
    result.conditions.settings.insert("path_lost_packets".to_owned(), link.lost_packets.to_string());
    let overrun = link.figures.as_ref().map_or(0, |figures| figures.overrun_packets);
    if overrun > 0 {
        result.evidence.warnings.push(Warning::LinkOverrun { packets: overrun });
    }
    result.figures.link = link.figures;
}

/// Enters what is otherwise for ends on several hosts.
pub(crate) fn enter_hosts(result: &mut Case, hosts: &Hosts, ends: Ends, clocks: Option<ClockRelation>) {
    result
        .conditions
        .settings
        .insert("hosts".to_owned(), hosts.describe(ends).trim_end().replace('\n', " | "));
    if !hosts.have_one_clock() {
        // Its times are of several clocks.
        result.figures.discovery = None;
    }
    let Some(clocks) = clocks.filter(|_| result.figures.latency_us.is_some()) else { return };
    enter_clocks(result, clocks);
}

/// Enters how the clocks of a one-way latency relate. An error larger than the latency leaves no figure.
fn enter_clocks(result: &mut Case, clocks: ClockRelation) {
    result.figures.clocks = Some(clocks);
    if clocks.shared {
        return;
    }
    let median_us = result.figures.latency_us.map_or(0.0, |latency| latency.p50);
    let exceeds_latency = clocks.error_us > median_us;
    let error_us = round_up(clocks.error_us);
    result.evidence.warnings.push(Warning::ClockError { error_us, exceeds_latency });
    if exceeds_latency {
        (result.figures.latency_us, result.figures.histogram, result.figures.ages) = (None, None, None);
        if let Some(series) = &mut result.figures.series {
            [&mut series.p50_us, &mut series.p99_us, &mut series.max_us].into_iter().for_each(Vec::clear);
        }
    }
}

/// Rounds up to 1, 2 or 5 times a power of ten, so that cases of a run have the same warning.
fn round_up(value: f64) -> f64 {
    let power = 10_f64.powf(value.max(1e-3).log10().floor());
    [1.0, 2.0, 5.0].into_iter().map(|step| step * power).find(|step| *step >= value).unwrap_or(10.0 * power)
}

/// Enters what all ends found.
pub(crate) fn enter(
    result: &mut Case,
    case: &CaseSpec,
    publishers: &[AgentReport],
    subscribers: &[AgentReport],
) -> Option<Fault> {
    result.figures.publisher = Some(together(publishers));
    result.figures.subscriber = Some(together(subscribers));
    result.evidence.publisher_telemetry = publishers.first().and_then(|end| end.watched.telemetry.clone());
    result.figures.paths = publishers.first().map_or_else(Vec::new, |end| end.watched.paths.clone());
    result.evidence.subscriber_telemetry = subscribers.first().and_then(|end| end.watched.telemetry.clone());
    result.evidence.loss_attribution = explain_loss(publishers, subscribers);
    let mut ends = publishers.iter().chain(subscribers);
    if let Some(reason) = ends.find_map(|end| end.watched.system_calls_uncounted.as_ref()) {
        result.conditions.settings.insert("system_calls".to_owned(), format!("not counted: {reason}"));
    }
    // All ends of a kind ask for the same; the tightest grant is the one to know.
    let [publisher, subscriber] = [publishers, subscribers].map(|reports| {
        reports
            .iter()
            .map(|report| report.buffers)
            .min_by_key(|buffers| (buffers.receive_granted, buffers.send_granted))
    });
    enter_buffers(result, publisher.unwrap_or_default(), subscriber.unwrap_or_default());
    result.figures.discovery = discovery(case, publishers.iter().chain(subscribers));
    if let Some(link) = &mut result.figures.link {
        link.enter_payload(samples_received(publishers, subscribers) * case.size_bytes as u64);
    }
    if let [AgentReport { outcome: Outcome::Pinger(pinger), .. }] = publishers {
        result.figures.breakdown = breakdown(publishers, subscribers);
        return enter_latency(result, case, pinger);
    }
    let sent = publishers.iter().map(|report| match &report.outcome {
        Outcome::Publisher(sent) => Some(sent),
        _ => None,
    });
    let received = subscribers.iter().map(|report| match &report.outcome {
        Outcome::Subscriber(received) => Some(received),
        _ => None,
    });
    // Every end reads the counter of the whole host: the largest says most.
    let errors = subscribers.iter().filter_map(|report| report.watched.drops.receive_buffer_errors);
    let host_receive_errors = errors.max();
    match (sent.collect::<Option<Vec<_>>>(), received.collect::<Option<Vec<_>>>()) {
        (Some(sent), Some(received)) => {
            let fault = enter_throughput(result, case, &sent, &received, host_receive_errors);
            enter_schedule(result, &sent, &received);
            fault
        }
        _ => failed(result, "the ends measured different things".to_owned()),
    }
}

/// The latency breakdown, if both ends recorded timestamps.
fn breakdown(publishers: &[AgentReport], subscribers: &[AgentReport]) -> Option<LatencyBreakdown> {
    account(publishers.first()?.trace.as_ref()?, subscribers.first()?.trace.as_ref()?)
}

/// Samples that all subscribers received, warm-up included.
fn samples_received(publishers: &[AgentReport], subscribers: &[AgentReport]) -> u64 {
    let received = |report: &AgentReport| match &report.outcome {
        Outcome::Subscriber(received) => received.arrivals,
        // Its echoes have arrived, so the pings have.
        Outcome::Pinger(pinger) => pinger.sent.saturating_sub(pinger.summary.lost),
        Outcome::Publisher(_) | Outcome::Ponger { .. } | Outcome::Process(_) => 0,
    };
    publishers.iter().chain(subscribers).map(received).sum()
}

/// How long all ends took to find each other, if all of them had to.
pub(crate) fn discovery<'a>(
    case: &CaseSpec,
    ends: impl Iterator<Item = &'a AgentReport>,
) -> Option<Discovery> {
    let joined: Vec<Joined> = ends.map(|end| end.joined).collect::<Option<_>>()?;
    let matched_ns = joined.iter().map(|end| end.matched_ns).max()?;
    let since_ms = |opened_ns: u64| rounded(matched_ns.saturating_sub(opened_ns) as f64 / 1e6);
    Some(Discovery {
        from_first_ms: since_ms(joined.iter().map(|end| end.opened_ns).min()?),
        from_last_ms: since_ms(joined.iter().map(|end| end.opened_ns).max()?),
        late_ms: rounded(case.method.late.as_secs_f64() * 1e3),
    })
}

/// What the processes of one kind used.
fn together(reports: &[AgentReport]) -> ProcessFigures {
    ProcessFigures::together(&reports.iter().map(|report| report.watched.process).collect::<Vec<_>>())
}

/// Loss attribution; `None` when the ends measured different things.
fn explain_loss(publishers: &[AgentReport], subscribers: &[AgentReport]) -> Option<LossAttribution> {
    let drops = |ends: &[AgentReport]| {
        DropCounters::together(&ends.iter().map(|end| end.watched.drops.clone()).collect::<Vec<_>>())
    };
    if let [AgentReport { outcome: Outcome::Pinger(pinger), .. }] = publishers {
        let ends: Vec<DropCounters> =
            publishers.iter().chain(subscribers).map(|end| end.watched.drops.clone()).collect();
        return Some(round_trip_loss(pinger.summary.lost, &ends));
    }
    let (mut lost, mut sent, mut received, mut max) = (0, 0, 0, 1);
    let mut engine = EngineCounts::default();
    for end in publishers {
        let Outcome::Publisher(outcome) = &end.outcome else { return None };
        engine = engine.plus(outcome.engine);
        sent += outcome.sent;
        let counts = outcome.datagrams.zip(outcome.sends).filter(|(datagrams, _)| *datagrams > 0);
        if let Some((datagrams, sends)) = counts {
            let samples = outcome.offered.div_ceil(datagrams);
            max = max.max(if sends < datagrams { SEGMENTS_MAX * samples } else { samples });
        }
    }
    for end in subscribers {
        let Outcome::Subscriber(outcome) = &end.outcome else { return None };
        lost += outcome.counts.lost + outcome.lost_in_warmup;
        received += outcome.arrivals;
        engine.rejected += outcome.rejected;
    }
    let (sender, receiver) = (drops(publishers), drops(subscribers));
    Some(stream_loss((lost, engine), (sent, sender), (received, receiver), max))
}

fn enter_latency(result: &mut Case, case: &CaseSpec, pinger: &PingerOutcome) -> Option<Fault> {
    result.figures.latency_us = Some(pinger.summary);
    result.figures.histogram.clone_from(&pinger.histogram);
    result.figures.series = Some(with_processors(result, pinger.series.clone(), case));
    result.figures.duration_s = Some(seconds(pinger.measured_in));
    if pinger.summary.count == 0 {
        result.evidence.warnings.push(Warning::NothingReceived);
        return Some(Fault::Trouble);
    }
    None
}

fn enter_throughput(
    result: &mut Case,
    case: &CaseSpec,
    sent: &[&PublisherOutcome],
    received: &[&SubscriberOutcome],
    host_receive_errors: Option<u64>,
) -> Option<Fault> {
    let mut counts = SequenceCounts::default();
    received.iter().for_each(|one| counts.merge(&one.counts));
    result.figures.throughput = Some(summary(case.size_bytes as u64, sent, received, counts));
    if let Some(first) = received.first() {
        result.figures.ages.clone_from(&first.ages);
        result.figures.series = Some(with_processors(result, first.series.clone(), case));
    }
    result.figures.duration_s = received.iter().map(|one| seconds(one.received_in)).reduce(f64::max);
    let lost = counts.lost;
    result.evidence.loss = Some(LossBreakdown::explain(
        lost,
        sent.iter().map(|one| one.engine.refused + one.engine.left_out).sum(),
        received.iter().filter_map(|one| one.kernel_drops).sum(),
        host_receive_errors,
    ));
    let lost_anywhere = lost + received.iter().map(|one| one.lost_in_warmup).sum::<u64>();
    let corrupt = received.iter().map(|one| one.corrupt).sum();
    let mut fault = None;
    let may_lose = case.reliability != Reliability::Reliable || case.method.keep_last.is_some();
    if !may_lose && lost_anywhere > 0 {
        result.evidence.warnings.push(Warning::LostSamples { lost: lost_anywhere, permitted: false });
        fault = Some(Fault::DataLost);
    }
    if corrupt > 0 {
        result.evidence.warnings.push(Warning::CorruptSamples { corrupt });
        fault = Some(Fault::DataLost);
    }
    fault
}

/// Adds the processor time of both ends. Their telemetry begins with the warm-up.
fn with_processors(result: &Case, series: CaseSeries, case: &CaseSpec) -> CaseSeries {
    let from_ms = case.warmup.as_secs_f64() * 1e3;
    let of = |telemetry: &Option<Telemetry>| {
        let steps = series.received.len();
        telemetry.as_ref().map(|it| it.processor_percent(from_ms, series.step_ms, steps)).unwrap_or_default()
    };
    CaseSeries {
        publisher_cpu_percent: of(&result.evidence.publisher_telemetry),
        subscriber_cpu_percent: of(&result.evidence.subscriber_telemetry),
        ..series
    }
}

/// What only samples that follow a schedule have.
fn enter_schedule(result: &mut Case, sent: &[&PublisherOutcome], received: &[&SubscriberOutcome]) {
    let ([PublisherOutcome { lag: Some(lag), .. }], [SubscriberOutcome { one_way, histogram, .. }]) =
        (sent, received)
    else {
        return;
    };
    result.figures.latency_us = *one_way;
    result.figures.histogram.clone_from(histogram);
    result.figures.schedule_lag_us =
        Some(ScheduleLag { p50: lag.p50, p99: lag.p99, p99_9: None, max: lag.max });
    let target = result.conditions.rate_samples_per_s;
    if let Some(figures) = result.figures.throughput {
        check_rate(result, target, figures.offered_samples_per_s, KEPT);
    }
}

/// A schedule was kept when this share of it was sent in time.
const KEPT: f64 = 0.99;

/// Counts are sums over the subscribers, rates the mean of one subscriber, what is offered the sum
/// over the publishers. Each subscriber should receive everything, so that rates compare for any
/// number of ends.
fn summary(
    size_bytes: u64,
    sent: &[&PublisherOutcome],
    received: &[&SubscriberOutcome],
    counts: SequenceCounts,
) -> ThroughputSummary {
    let datagrams = sent.iter().map(|one| one.datagrams).sum();
    let sends = sent.iter().map(|one| one.sends).sum();
    let all_offered = sent.iter().map(|one| one.offered).sum();
    let of = |(offered, offered_in), (received, received_in)| {
        let counts = ThroughputCounts { offered, offered_in, received, received_in, datagrams, sends };
        ThroughputSummary::new(size_bytes, &counts)
    };
    let all_sent = (all_offered, Duration::ZERO);
    let rate = |one: &&SubscriberOutcome| of(all_sent, (one.counts, one.received_in)).samples_per_s;
    let offered = |one: &&PublisherOutcome| {
        of((one.offered, one.offered_in), (counts, Duration::ZERO)).offered_samples_per_s
    };
    let samples_per_s = rounded(received.iter().map(rate).sum::<f64>() / received.len().max(1) as f64);
    ThroughputSummary {
        offered_samples_per_s: rounded(sent.iter().map(offered).sum()),
        samples_per_s,
        mbps: mbps(samples_per_s, size_bytes),
        ..of(all_sent, (counts, Duration::ZERO))
    }
}

fn settings(case: &CaseSpec) -> BTreeMap<String, String> {
    let cpus = case
        .place
        .cpus
        .map_or_else(|| "none".to_owned(), |cpus| format!("{},{}", cpus.publisher, cpus.subscriber));
    let mut settings = BTreeMap::from([
        ("cpus".to_owned(), cpus),
        ("domain".to_owned(), case.place.domain.to_string()),
        ("duration".to_owned(), format!("{:?}", case.duration)),
        ("keep_awake".to_owned(), if case.method.keep_awake { "yes" } else { "no" }.to_owned()),
        ("interface".to_owned(), case.place.interface.clone()),
        (
            "system_calls".to_owned(),
            if case.method.count_system_calls { "counted" } else { "not counted" }.into(),
        ),
        ("verify".to_owned(), case.verify.to_string()),
        ("warmup".to_owned(), format!("{:?}", case.warmup)),
    ]);
    let version = engine::find(&case.engine).and_then(Engine::version);
    settings.extend(version.map(|version| ("engine_version".to_owned(), version)));
    settings.extend(engine_settings(case));
    settings
}

/// The engine's settings, as the results have them.
fn engine_settings(case: &CaseSpec) -> impl Iterator<Item = (String, String)> {
    let of_engine = case.settings.iter().filter(|(_, value)| !value.is_empty());
    of_engine.map(|(name, value)| (format!("{OF_ENGINE}{name}"), value.clone()))
}

/// Whether `result` was measured with the engine's settings of this case.
pub(crate) fn has_settings_of(result: &Case, case: &CaseSpec) -> bool {
    let before = result.conditions.settings.iter().filter(|(name, _)| name.starts_with(OF_ENGINE));
    // In the order of their names, both.
    before.map(|(name, value)| (name.clone(), value.clone())).eq(engine_settings(case))
}

/// Begins the names of the engine's settings in results.
const OF_ENGINE: &str = "engine.";

fn doubts(case: &CaseSpec, environment: &Environment) -> Vec<Warning> {
    let mut warnings = host_warnings(environment);
    if case.place.cpus.is_some_and(|cpus| cpus.publisher == cpus.subscriber) {
        warnings.push(Warning::CoresShared);
    }
    let mtu = environment.interface.as_ref().and_then(|interface| interface.mtu);
    let needed = case.size_bytes as u64 + UDP_OVERHEAD_BYTES;
    // What fits no datagram is sent in several, and then not by IP.
    let is_one_datagram = needed <= u64::from(u16::MAX)
        && !engine::find(&case.engine).is_some_and(|engine| engine.fits_datagrams_to_packets());
    if let Some(mtu) = mtu.filter(|mtu| is_one_datagram && needed > u64::from(*mtu)) {
        warnings.push(Warning::MtuSmallerThan { mtu, needed });
    }
    if cfg!(debug_assertions) {
        warnings.push(Warning::DebugBuild);
    }
    warnings
}

/// The headers of IPv4 (without options) and UDP.
const UDP_OVERHEAD_BYTES: u64 = 28;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::tests::case;
    use crate::case::{CpuPair, Place};
    use crate::watch::Watched;
    use weir_results::{Interface, LatencySummary, SocketBuffers, Telemetry, Test};

    /// What the publisher's engine did not send.
    const LEFT_OUT: u64 = 4;

    /// Nothing was dropped but two datagrams at the socket.
    fn drops() -> DropCounters {
        DropCounters {
            boot_id: Some("one".into()),
            namespace: Some(1),
            socket: Some(2),
            queue: Some(0),
            device_sent: Some(0),
            device_received: Some(0),
            backlog: Some(0),
            sent: Some(1500),
            delivered: Some(1000),
            receive_buffer_errors: Some(7),
            send_buffer_errors: Some(0),
            no_ports: Some(0),
            ip_discards: Some(0),
        }
    }

    fn report(outcome: Outcome, buffers: SocketBuffers) -> AgentReport {
        let telemetry = Some(Telemetry::new(100));
        let watched = Watched { drops: drops(), telemetry, ..Watched::default() };
        AgentReport { outcome, watched, buffers, joined: None, trace: None }
    }

    fn streamed(case: &CaseSpec, lost: u64, lost_in_warmup: u64, corrupt: u64) -> (Case, Option<Fault>) {
        let sent = PublisherOutcome {
            sent: 1500,
            offered: 1000,
            offered_in: Duration::from_secs(1),
            datagrams: Some(1000),
            sends: Some(500),
            engine: EngineCounts { left_out: LEFT_OUT, ..EngineCounts::default() },
            flushed: true,
            lag: None,
        };
        let received = SubscriberOutcome {
            counts: SequenceCounts { received: 1000 - lost, lost, ..SequenceCounts::default() },
            received_in: Duration::from_secs(2),
            lost_in_warmup,
            arrivals: 1000,
            corrupt,
            rejected: 1,
            kernel_drops: Some(2),
            one_way: None,
            histogram: None,
            series: CaseSeries::default(),
            ages: None,
        };
        let mut result = blank(case, &Environment::default());
        let fault = enter(
            &mut result,
            case,
            &vec![report(Outcome::Publisher(sent), SocketBuffers::default()); case.ends.publishers as usize],
            &vec![
                report(Outcome::Subscriber(received), SocketBuffers::default());
                case.ends.subscribers as usize
            ],
        );
        (result, fault)
    }

    #[test]
    fn of_several_ends_rates_are_of_one_subscriber_and_counts_of_all() {
        let ends = Ends { publishers: 2, subscribers: 3, entity_id: 0 };
        let case = CaseSpec { ends, ..case("mock", Test::Throughput) };
        let (result, _) = streamed(&case, 10, 0, 0);
        let figures = result.figures.throughput.unwrap();
        assert_eq!((figures.samples_per_s, figures.offered_samples_per_s), (495.0, 2000.0));
        assert_eq!((figures.total_samples, figures.lost, figures.lost_percent), (2970, 30, 1.0));
        assert_eq!((figures.samples_per_datagram, figures.datagrams_per_send), (Some(1.0), Some(2.0)));
        assert_eq!((result.point.publishers, result.point.subscribers), (2, 3));
        assert_eq!(result.evidence.loss, Some(LossBreakdown::explain(30, 2 * LEFT_OUT, 6, Some(7))));
    }

    #[test]
    fn the_subscribers_rate_is_the_result_and_the_publishers_stands_beside_it() {
        let (result, fault) = streamed(&case("udp", Test::Throughput), 10, 0, 0);
        let figures = result.figures.throughput.unwrap();
        assert_eq!((figures.samples_per_s, figures.offered_samples_per_s), (495.0, 1000.0));
        assert_eq!(figures.datagrams_per_send, Some(2.0));
        assert_eq!(result.evidence.loss, Some(LossBreakdown::explain(10, LEFT_OUT, 2, Some(7))));
        assert_eq!(fault, None);
    }

    #[test]
    fn discovery_ends_with_the_last_match_and_has_no_figure_if_an_end_reports_none() {
        let late = Duration::from_millis(300);
        let case = case("mock", Test::Latency);
        let case = CaseSpec { method: crate::case::Method { late, ..case.method.clone() }, ..case };
        let end = |joined: Option<(u64, u64)>| AgentReport {
            joined: joined.map(|(opened_ns, matched_ns)| Joined { opened_ns, matched_ns }),
            ..report(Outcome::Ponger { echoed: 0 }, SocketBuffers::default())
        };
        let ends = [end(Some((5_000_000, 312_000_000))), end(Some((305_000_000, 309_000_000)))];
        let expected = Discovery { from_first_ms: 307.0, from_last_ms: 7.0, late_ms: 300.0 };
        assert_eq!(discovery(&case, ends.iter()), Some(expected));
        assert_eq!(discovery(&case, [&ends[0], &end(None)].into_iter()), None);
    }

    #[test]
    fn losses_of_the_whole_case_are_put_down_to_their_places() {
        let (result, _) = streamed(&case("udp", Test::Throughput), 10, 3, 0);
        let loss = result.evidence.loss_attribution.unwrap();
        assert_eq!((loss.lost, loss.sender_left_out, loss.receiver_rejected), (13, LEFT_OUT, 1));
        assert_eq!((loss.receiver_socket, loss.path, loss.unplaced), (2, 10 - LEFT_OUT, 0));
        assert_eq!(loss.samples_per_drop, None);
        assert_eq!(loss.receiver, drops());
        assert!(
            result.evidence.publisher_telemetry.is_some() && result.evidence.subscriber_telemetry.is_some()
        );
        let (result, _) = streamed(&case("udp", Test::Throughput), 0, 0, 0);
        assert_eq!(result.evidence.loss_attribution.unwrap().lost, 0);
    }

    #[test]
    fn a_lost_ping_may_have_been_lost_on_either_way() {
        let pinger = PingerOutcome {
            summary: LatencySummary { count: 9, lost: 3, ..Default::default() },
            histogram: None,
            series: CaseSeries::default(),
            sent: 12,
            measured_in: Duration::from_secs(1),
        };
        let pinger = report(Outcome::Pinger(pinger), SocketBuffers::default());
        let ponger = report(Outcome::Ponger { echoed: 9 }, SocketBuffers::default());
        let loss = explain_loss(std::slice::from_ref(&pinger), std::slice::from_ref(&ponger)).unwrap();
        assert_eq!((loss.lost, loss.receiver_socket), (3, 3));
        assert_eq!(loss.receiver.socket, Some(4));
        assert_eq!(explain_loss(&[ponger], &[pinger]), None);
    }

    #[test]
    fn a_reliable_case_may_lose_nothing_not_even_in_its_warm_up() {
        let reliable = CaseSpec { reliability: Reliability::Reliable, ..case("mock", Test::Throughput) };
        assert_eq!(streamed(&reliable, 0, 0, 0).1, None);
        let (result, fault) = streamed(&reliable, 2, 3, 0);
        assert_eq!(fault, Some(Fault::DataLost));
        assert!(result.evidence.warnings.contains(&Warning::LostSamples { lost: 5, permitted: false }));
        assert_eq!(streamed(&case("mock", Test::Throughput), 2, 3, 0).1, None);
    }

    #[test]
    fn a_writer_that_keeps_the_last_samples_may_lose_older_ones() {
        let reliable = CaseSpec { reliability: Reliability::Reliable, ..case("mock", Test::Throughput) };
        let (result, fault) = streamed(&reliable.with(|case| case.method.keep_last = Some(10)), 2, 3, 0);
        assert_eq!((fault, result.conditions.keep_last), (None, Some(10)));
        assert!(!result.evidence.warnings.contains(&Warning::LostSamples { lost: 5, permitted: false }));
    }

    #[test]
    fn a_one_way_latency_has_the_error_of_the_clocks_or_is_not_given() {
        let with_latency = |error_us| {
            let (mut result, _) = streamed(&case("udp", Test::Latency), 0, 0, 0);
            let summary = LatencySummary { count: 9, p50: 50.0, ..Default::default() };
            result.figures.latency_us = Some(summary);
            enter_clocks(&mut result, ClockRelation { error_us, ..ClockRelation::default() });
            let warning = result.evidence.warnings.last().unwrap().clone();
            (result.figures.latency_us.is_some(), result.figures.clocks.unwrap().error_us, warning)
        };
        let warning = |error_us, exceeds_latency| Warning::ClockError { error_us, exceeds_latency };
        assert_eq!(with_latency(12.0), (true, 12.0, warning(20.0, false)));
        assert_eq!(with_latency(70.0), (false, 70.0, warning(100.0, true)));
        assert_eq!([0.0, 1.0, 4.4, 5.1].map(round_up), [0.001, 1.0, 5.0, 10.0]);
    }

    #[test]
    fn damaged_samples_are_a_fault_whatever_the_reliability() {
        assert_eq!(streamed(&case("mock", Test::Throughput), 1, 0, 1).1, Some(Fault::DataLost));
    }

    #[test]
    fn doubts_are_known_before_the_measurement() {
        let cpus = Some(CpuPair { publisher: 1, subscriber: 1 });
        let place = Place { cpus, ..Place::loopback() };
        let case = CaseSpec { place, size_bytes: 8192, ..case("udp", Test::Latency) };
        let interface = Some(Interface { name: "eth0".into(), mtu: Some(1500), ..Interface::default() });
        let environment =
            Environment { interface, allowed_cpus: 4, logical_cpus: 4, ..Environment::default() };
        let warnings = blank(&case, &environment).evidence.warnings;
        assert!(warnings.contains(&Warning::CoresShared));
        let too_long = Warning::MtuSmallerThan { mtu: 1500, needed: 8220 };
        assert!(warnings.contains(&too_long));
        // It cuts samples itself.
        let case = CaseSpec { engine: "weir".into(), ..case };
        assert!(!blank(&case, &environment).evidence.warnings.contains(&too_long));
    }
}
