//! The cases of workloads: one for each workload, engine and repeat.

use weir_results::{Reliability, Test};

use super::{Action, Plan, PlanError, PlanOptions, Step};
use crate::case::{CaseSpec, Method, Place};
use crate::endpoint::{Engine, ReliabilitySupport};
use crate::workload::Workload;

/// Plans workloads.
pub(super) fn plan(
    options: &PlanOptions,
    workloads: &[Workload],
    engines: &[&'static dyn Engine],
) -> Result<Plan, PlanError> {
    if options.duration.is_zero() {
        return Err(PlanError::Zero("--duration"));
    }
    if options.repeats == 0 {
        return Err(PlanError::Zero("--repeat"));
    }
    for workload in workloads {
        let deliveries = workload.deliveries((options.warmup + options.duration).as_secs_f64());
        if deliveries > Workload::DELIVERIES_MAX {
            return Err(PlanError::Lacking(format!(
                "the workload {} would deliver {deliveries:.0} samples, more than {:.0}: use a shorter --duration",
                workload.name,
                Workload::DELIVERIES_MAX
            )));
        }
    }
    let mut steps = Vec::new();
    let rounds = (1..=options.repeats).flat_map(|repeat| workloads.iter().map(move |it| (repeat, it)));
    for (repeat, workload) in rounds {
        let from = steps.len();
        for engine in engines {
            steps.extend(options.awake.iter().map(|&awake| step(options, workload, *engine, repeat, awake)));
        }
        if options.interleave && repeat % 2 == 0 {
            steps[from..].reverse();
        }
    }
    Ok(Plan { steps, until_width: None })
}

/// Returns the workload with the reliability that an engine has, where it has only one.
fn as_carried(workload: &Workload, support: ReliabilitySupport) -> Workload {
    let mut carried = workload.clone();
    for topics in carried.topics.iter_mut().filter(|it| !support.supports(it.reliability)) {
        topics.reliability = match topics.reliability {
            Reliability::Reliable => Reliability::BestEffort,
            _ => Reliability::Reliable,
        };
    }
    carried
}

fn step(options: &PlanOptions, workload: &Workload, engine: &dyn Engine, repeat: u32, awake: bool) -> Step {
    let method = Method {
        keep_awake: awake,
        // Each process would sample its host, and its processor time would count.
        telemetry_period: None,
        count_system_calls: options.method.count_system_calls,
        ..Method::default()
    };
    let case = CaseSpec {
        reliability: Reliability::None,
        size_bytes: 0,
        repeat,
        duration: options.duration,
        warmup: options.warmup,
        place: Place { cpus: None, ..options.place.clone() },
        method,
        settings: options.settings.effective(engine),
        workload: Some(as_carried(workload, engine.capabilities().reliability)),
        ..CaseSpec::new(engine.name(), Test::Workload)
    };
    let max = engine.capabilities().workload_bytes_max;
    let action = if workload.size_bytes_max() > max {
        Action::NotSupported(format!("{} carries at most {max} bytes", case.engine))
    } else {
        Action::Measure
    };
    Step { case, action }
}
