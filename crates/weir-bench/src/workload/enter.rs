//! From the reports of the processes to a case of the results.

use std::collections::BTreeSet;

use weir_measure::rounded;
use weir_results::{
    AgeSummary, Case, Distribution, HistogramError, LatencyHistogram, ProcessFigures, Reliability,
    ScheduleLag, TopicGroupFigures, Warning, WorkloadFigures, WorkloadProcess,
};

use super::process::ProcessOutcome;
use super::timetable::Timetable;
use super::{Layout, TopicGroup, Workload};
use crate::case::CaseSpec;
use crate::control::{AgentReport, Outcome};
use crate::record::{Fault, discovery, failed};

/// Enters what the processes found.
pub(crate) fn enter(
    result: &mut Case,
    case: &CaseSpec,
    workload: &Workload,
    reports: &[AgentReport],
) -> Option<Fault> {
    let outcome = |report: &AgentReport| match &report.outcome {
        Outcome::Process(outcome) => Some(outcome.clone()),
        _ => None,
    };
    let outcomes: Option<Vec<ProcessOutcome>> = reports.iter().map(outcome).collect();
    let (Some(outcomes), Ok(layout)) = (outcomes, Layout::new(workload)) else {
        return failed(result, "the processes measured different things".to_owned());
    };
    let seconds = case.duration.as_secs_f64();
    let numbered = workload.topics.iter().enumerate();
    let groups: Result<Vec<_>, _> =
        numbered.map(|(number, topics)| group(case, (number, topics), &layout, &outcomes)).collect();
    let groups = match groups {
        Ok(groups) => groups,
        Err(error) => return failed(result, error.to_string()),
    };
    let percent =
        |figures: &ProcessFigures| rounded((figures.cpu_user_s + figures.cpu_system_s) / seconds * 100.0);
    let process = |(report, process): (&AgentReport, u32)| WorkloadProcess {
        nodes: layout.describe(workload, process),
        figures: report.watched.process,
        cpu_percent: percent(&report.watched.process),
    };
    let all: Vec<ProcessFigures> = reports.iter().map(|report| report.watched.process).collect();
    let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    if let Some(reason) = reports.iter().find_map(|report| report.watched.system_calls_uncounted.as_ref()) {
        result.conditions.settings.insert("system_calls".to_owned(), format!("not counted: {reason}"));
    }
    result.figures.duration_s = Some(seconds);
    let figures = WorkloadFigures {
        nodes: count(layout.nodes.len()),
        topics: workload.topics.iter().map(|topic| topic.count).sum(),
        writers: count(layout.writers.len()),
        readers: count(layout.readers.len()),
        cpu_percent: percent(&ProcessFigures::together(&all)),
        discovery: discovery(case, reports.iter()),
        groups,
        processes: reports.iter().zip(0..).map(process).collect(),
    };
    let fault = warn(result, &figures);
    result.figures.workload = Some(figures);
    fault
}

/// The figures of a kind of topics, with its number.
fn group(
    case: &CaseSpec,
    (number, topics): (usize, &TopicGroup),
    layout: &Layout,
    outcomes: &[ProcessOutcome],
) -> Result<TopicGroupFigures, HistogramError> {
    let is_its = |writer: usize| layout.writers.get(writer).is_some_and(|it| it.group == number);
    let written = outcomes.iter().flat_map(|it| &it.written).filter(|it| is_its(it.writer));
    let (mut due, mut in_time) = (0, 0);
    for it in written {
        let timetable = Timetable::new(topics, it.writer, 0, case.warmup, case.duration);
        due += timetable.count() - timetable.measured_from();
        in_time += it.in_time.saturating_sub(timetable.measured_from());
    }
    let delivered = || outcomes.iter().filter_map(|it| it.delivered.get(number));
    let (expected, received) =
        (delivered().map(|it| it.expected).sum(), delivered().map(|it| it.received).sum::<u64>());
    let histogram = LatencyHistogram::merged(delivered().filter_map(|it| it.ages.as_ref()))?;
    let lags = outcomes.iter().filter_map(|it| it.lags.get(number)?.as_ref());
    let lag = LatencyHistogram::merged(lags)?.map(|lags| lags.decode()).transpose()?;
    let per_second = |samples: u64| rounded(samples as f64 / case.duration.as_secs_f64());
    Ok(TopicGroupFigures {
        name: topics.name.clone(),
        topics: topics.count,
        writers: topics.count * topics.writers,
        readers: topics.count * topics.readers,
        size_bytes: topics.size_bytes as u64,
        reliability: topics.reliability,
        keep_last: topics.keep_last,
        instances: topics.instances,
        rate_hz: topics.rate_hz,
        burst: topics.burst,
        due_samples_per_s: per_second(due),
        sent_samples_per_s: per_second(in_time),
        expected,
        received,
        lost: expected.saturating_sub(received),
        duplicates: delivered().map(|it| it.duplicates).sum(),
        age_us: AgeSummary::merged(&histogram)?,
        histogram,
        schedule_lag_us: lag.as_ref().map(schedule_lag),
    })
}

fn schedule_lag(lags: &Distribution) -> ScheduleLag {
    let of = |share| rounded(lags.quantile_us(share));
    ScheduleLag { p50: of(0.5), p99: of(0.99), p99_9: Some(of(0.999)), max: of(1.0) }
}

/// Enters what makes the figures doubtful; returns what makes the run a failed one.
fn warn(result: &mut Case, figures: &WorkloadFigures) -> Option<Fault> {
    let sum = |of: fn(&TopicGroupFigures) -> f64| figures.groups.iter().map(of).sum::<f64>();
    let (due, sent) = (sum(|it| it.due_samples_per_s), sum(|it| it.sent_samples_per_s));
    let is_behind = |it: &TopicGroupFigures| !it.is_in_time();
    let behind: BTreeSet<&str> =
        figures.groups.iter().filter(|it| is_behind(it)).map(|it| it.name.as_str()).collect();
    if !behind.is_empty() {
        result
            .evidence
            .warnings
            .push(Warning::ScheduleLag { asked_samples_per_s: due, reached_samples_per_s: sent });
        let names = behind.into_iter().collect::<Vec<_>>().join(", ");
        result.conditions.settings.insert("behind_schedule".to_owned(), names);
    }
    if figures.sum(|it| it.received) == 0 {
        result.evidence.warnings.push(Warning::NothingReceived);
        return Some(Fault::Trouble);
    }
    // With KEEP_LAST, samples may be replaced before they are delivered.
    let keeps_all =
        |it: &TopicGroupFigures| it.reliability == Reliability::Reliable && it.keep_last.is_none();
    let lost = figures.sum(|it| if keeps_all(it) { it.lost } else { 0 });
    let permitted = figures.sum(|it| it.lost) - lost;
    if lost > 0 {
        result.evidence.warnings.push(Warning::LostSamples { lost, permitted: false });
    }
    // An engine that delivers less has less to do.
    if permitted > 0 && !figures.is_complete() {
        result.evidence.warnings.push(Warning::LostSamples { lost: permitted, permitted: true });
    }
    (lost > 0).then_some(Fault::DataLost)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use weir_results::{LatencyKind, LatencyRecorder, SocketBuffers, Test};

    use super::*;
    use crate::case::tests::case;
    use crate::watch::Watched;
    use crate::workload::deliveries::Delivered;
    use crate::workload::examples::PAIR;
    use crate::workload::process::Written;

    fn report(outcome: ProcessOutcome, cpu_user_s: f64) -> AgentReport {
        let process = ProcessFigures { cpu_user_s, ..ProcessFigures::default() };
        AgentReport {
            outcome: Outcome::Process(outcome),
            watched: Watched { process, ..Watched::default() },
            buffers: SocketBuffers::default(),
            joined: None,
            trace: None,
        }
    }

    fn entered(sent: u64, received: [u64; 2]) -> (Case, Option<Fault>) {
        let workload = Workload::parse("two", PAIR).unwrap();
        let case = case("mock", Test::Workload)
            .with(|it| (it.warmup, it.duration) = (Duration::from_secs(1), Duration::from_secs(2)));
        let written = |writer| Written { writer, sent, in_time: sent };
        let mut ages = LatencyRecorder::new();
        ages.record(50_000);
        let ages = ages.histogram(LatencyKind::OneWay);
        let delivered =
            |received| Delivered { expected: sent - 10, received, duplicates: 0, ages: ages.clone() };
        let writing = ProcessOutcome { written: vec![written(0), written(1)], ..ProcessOutcome::default() };
        let reading =
            ProcessOutcome { delivered: received.map(delivered).into(), ..ProcessOutcome::default() };
        let mut result = Case::new("mock", Test::Workload, Reliability::None, 0);
        let fault = enter(&mut result, &case, &workload, &[report(writing, 0.5), report(reading, 0.25)]);
        (result, fault)
    }

    fn codes(result: &Case) -> Vec<&str> {
        result.evidence.warnings.iter().map(Warning::code).collect()
    }

    #[test]
    fn figures_of_the_processes_add_up() {
        let (result, fault) = entered(30, [20, 20]);
        assert_eq!((fault, codes(&result), result.headline()), (None, vec![], Some(37.5)));
        let found = result.figures.workload.unwrap();
        assert_eq!((found.nodes, found.topics, found.writers, found.readers), (2, 2, 2, 2));
        assert!(
            (found.cpu_percent - 37.5).abs() < 1e-9 && (found.processes[0].cpu_percent - 25.0).abs() < 1e-9
        );
        assert_eq!(found.processes[1].nodes, "b 1");
        let group = &found.groups[0];
        assert_eq!((group.expected, group.received, group.lost), (20, 20, 0));
        assert!(
            (group.due_samples_per_s - 10.0).abs() < 1e-9 && (group.sent_samples_per_s - 10.0).abs() < 1e-9
        );
        assert!((group.age_us.unwrap().p99 - 50.0).abs() < 0.1, "{group:?}");
    }

    #[test]
    fn only_reliable_samples_that_are_all_kept_may_not_be_lost() {
        // Much that is lost is a warning anyway: an engine that delivers less has less to do.
        let (result, fault) = entered(30, [20, 15]);
        assert_eq!((fault, codes(&result), result.headline()), (None, vec!["lost-samples"], None));
        let (result, fault) = entered(30, [19, 20]);
        assert_eq!((fault, codes(&result)), (Some(Fault::DataLost), vec!["lost-samples"]));
        let (result, fault) = entered(30, [0, 0]);
        assert_eq!((fault, codes(&result)), (Some(Fault::Trouble), vec!["nothing-received"]));
    }

    #[test]
    fn losses_that_are_permitted_are_counted_apart_and_are_no_fault() {
        let warnings = |received| entered(30, received).0.evidence.warnings;
        assert_eq!(warnings([20, 15]), [Warning::LostSamples { lost: 5, permitted: true }]);
        assert_eq!(
            warnings([19, 15]),
            [
                Warning::LostSamples { lost: 1, permitted: false },
                Warning::LostSamples { lost: 5, permitted: true }
            ]
        );
        // A run that goes on reads the fault of a case from its results.
        for received in [[20, 15], [19, 15], [19, 20], [20, 20], [0, 0]] {
            let (result, fault) = entered(30, received);
            assert_eq!(Fault::of(&result), fault, "{received:?}");
        }
    }

    #[test]
    fn a_schedule_that_was_not_kept_is_a_warning_with_its_topics() {
        let (result, fault) = entered(25, [15, 15]);
        assert_eq!((fault, codes(&result), result.headline()), (None, vec!["schedule-lag"], None));
        assert_eq!(result.conditions.settings["behind_schedule"], "kept, latest");
    }
}
