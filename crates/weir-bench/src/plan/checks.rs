//! What a plan refuses.

use std::collections::BTreeSet;

use weir_results::{Interval, Test};

use super::{DEFAULT_BATCHES, ENDS_MAX, PlanError, PlanOptions, batch_bytes_min, shared};
use crate::case::CaseSpec;
use crate::endpoint::Engine;
use crate::payload::HEADER_BYTES;
use crate::rate::Rate;

pub(super) fn options(options: &PlanOptions) -> Result<(), PlanError> {
    list("--tests", &options.tests)?;
    if options.tests.contains(&Test::Workload) {
        let text = "--tests workload: name the workload with --workload instead";
        return Err(PlanError::Lacking(text.to_owned()));
    }
    list("--sizes", &options.sizes)?;
    list("--reliability", &options.reliabilities)?;
    if options.duration.is_zero() {
        return Err(PlanError::Zero("--duration"));
    }
    if options.repeats == 0 {
        return Err(PlanError::Zero("--repeat"));
    }
    if options.until_width.is_some() && (options.repeats as usize) < Interval::COUNT_MIN {
        let text =
            "--until-width needs the interval of at least 6 repeats: set --repeat to the most that you allow";
        return Err(PlanError::Lacking(text.to_owned()));
    }
    rates(options)?;
    breakdown(options)?;
    shared::check(options)?;
    for (option, count) in
        [("--publishers", options.ends.publishers), ("--subscribers", options.ends.subscribers)]
    {
        match count {
            0 => return Err(PlanError::Zero(option)),
            1 => {}
            2..=ENDS_MAX if has_throughput(options) => {}
            2..=ENDS_MAX => return Err(PlanError::ThroughputOnly(option)),
            _ => return Err(PlanError::TooMany(option)),
        }
    }
    Ok(())
}

fn breakdown(options: &PlanOptions) -> Result<(), PlanError> {
    if !options.method.breakdown {
        return Ok(());
    }
    let text = if options.tests.contains(&Test::Throughput) {
        "--breakdown follows one sample at a time, as the latency test does: leave throughput out of --tests"
    } else if !options.rates.is_empty() {
        "--breakdown follows one sample at a time, which --rate does not wait for: leave one of them out"
    } else if options.method.count_system_calls {
        "--resources counts system calls, which makes each of them slower and --breakdown wrong: leave one of them out"
    } else if !options.outside.is_empty() {
        "--outside-checks are programs that --breakdown cannot look into: leave one of them out"
    } else {
        return Ok(());
    };
    Err(PlanError::Lacking(text.to_owned()))
}

fn rates(options: &PlanOptions) -> Result<(), PlanError> {
    if options.rates.is_empty() {
        return Ok(());
    }
    list("--rate", &options.rates)?;
    if !options.tests.contains(&Test::Latency) {
        return Err(PlanError::LatencyOnly("--rate"));
    }
    if !options.outside.is_empty() {
        return Err(PlanError::Lacking("--outside-checks have no --rate: leave one of them out".to_owned()));
    }
    let is_share = options.rates.iter().any(|rate| matches!(rate, Rate::OfMaximum(_)));
    if is_share && options.batches.as_ref().is_some_and(|batches| !batches.contains(&0)) {
        let text = "a --rate in percent is of the maximum without batches: add 0 to --batch";
        return Err(PlanError::Lacking(text.to_owned()));
    }
    Ok(())
}

fn has_throughput(options: &PlanOptions) -> bool {
    options.tests.contains(&Test::Throughput)
}

/// The batches of throughput cases, 0 for those of latency.
pub(super) fn batches(options: &PlanOptions, sizes: &[usize]) -> Result<Vec<u32>, PlanError> {
    let Some(batches) = &options.batches else {
        return Ok(DEFAULT_BATCHES.iter().filter_map(|&bytes| u32::try_from(bytes).ok()).collect());
    };
    list("--batch", batches)?;
    if !has_throughput(options) {
        return Err(PlanError::ThroughputOnly("--batch"));
    }
    let smallest = sizes.iter().copied().min().unwrap_or(HEADER_BYTES);
    let check = |&bytes: &u64| match u32::try_from(bytes) {
        Ok(0) => Ok(0),
        Ok(small) if (small as usize) < batch_bytes_min(smallest) => {
            Err(PlanError::BatchTooSmall(small.into(), "--sizes"))
        }
        Ok(fitting) if fitting as usize <= CaseSpec::SIZE_BYTES_MAX => Ok(fitting),
        _ => Err(PlanError::BatchTooLarge(bytes)),
    };
    batches.iter().map(check).collect()
}

pub(super) fn sizes(sizes: &[u64], engines: &[&'static dyn Engine]) -> Result<Vec<usize>, PlanError> {
    let most = engines.iter().max_by_key(|engine| engine.capabilities().size_bytes_max);
    let (engine, max) =
        most.map_or(("nothing", 0), |engine| (engine.name(), engine.capabilities().size_bytes_max));
    let check = |&size: &u64| match usize::try_from(size) {
        Ok(bytes) if bytes < HEADER_BYTES => Err(PlanError::TooSmall(size, "--sizes")),
        Ok(bytes) if bytes <= max => Ok(bytes),
        _ => Err(PlanError::TooLarge { size, engine: engine.to_owned(), max }),
    };
    sizes.iter().map(check).collect()
}

pub(super) fn list<T: Ord + ToString>(option: &'static str, values: &[T]) -> Result<(), PlanError> {
    if values.is_empty() {
        return Err(PlanError::Empty(option));
    }
    let mut seen = BTreeSet::new();
    match values.iter().find(|value| !seen.insert(*value)) {
        Some(value) => Err(PlanError::Twice { option, value: value.to_string() }),
        None => Ok(()),
    }
}
