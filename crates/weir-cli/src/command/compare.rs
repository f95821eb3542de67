//! `weir compare`: two runs, case by case, or a run beside a published table.

mod published;

use std::collections::BTreeSet;
use std::iter;

use anyhow::anyhow;
use weir_report::{RunComparison, RunComparisonOptions, SelfComparison};
use weir_results::{Environment, Run};

use crate::args::{CompareArgs, ComparisonFormat};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::runs::{self, Finder, FoundRun};

pub(crate) fn run(args: &CompareArgs) -> Result<Exit, Failure> {
    let finder = Finder::new(&args.results);
    let table = match args.old.0.as_slice() {
        [path] => path.to_str().and_then(|text| text.strip_prefix(published::PREFIX)),
        _ => None,
    };
    let mut old = if table.is_some() { Vec::new() } else { finder.load(&args.old.0)? };
    let mut new = finder.load(args.new.iter().flat_map(|runs| &runs.0))?;
    if let Some(mut redactor) = runs::redactor(&args.redact) {
        runs::redact(&mut redactor, old.iter_mut().chain(&mut new))?;
    }
    let runs = |found: Vec<FoundRun>| found.into_iter().map(|it| it.run).collect::<Vec<Run>>();
    let (mut old, mut new) = (runs(old), runs(new));
    if args.across_paths {
        [&mut old, &mut new].into_iter().try_for_each(|side| forget_path(side))?;
    }
    if let Some(name) = table {
        if args.with_itself {
            return Err(Failure::usage(anyhow!("--with-itself: a published table has no repeats")));
        }
        return published::compare(name, &new, args);
    }
    if args.with_itself {
        return with_itself(&old, args);
    }
    let options = RunComparisonOptions { tolerance: args.tolerance, is_paired: args.paired };
    let comparison = RunComparison::new(&old, &new, options);
    if comparison.figures.is_empty() && comparison.failed.is_empty() {
        let lists =
            [("only in the old run", &comparison.missing), ("only in the new run", &comparison.added)];
        let lists = lists.iter().filter(|(_, cases)| !cases.is_empty());
        let lists: Vec<String> = lists.map(|(what, cases)| format!("{what}: {}", cases.join("; "))).collect();
        return Err(Failure::usage(anyhow!(
            "the runs have no case in common that was measured in both: measure both with the same options\n{}",
            lists.join("\n")
        )));
    }
    if let Some(difference) = places_differ(&old, &new) {
        output::talk(&format!("warning: {difference}"));
    }
    match args.format {
        ComparisonFormat::Table => output::page(&comparison.text(options))?,
        ComparisonFormat::Json => {
            let document = serde_json::to_string_pretty(&comparison).map_err(Failure::environment)?;
            output::data(&format!("{document}\n"))?;
        }
    }
    Ok(if comparison.is_worse() { Exit::Found } else { Exit::Success })
}

/// Removes the only path of a side from its cases.
fn forget_path(runs: &mut [Run]) -> Result<(), Failure> {
    let cases = runs.iter_mut().flat_map(|run| &mut run.cases);
    let paths: BTreeSet<Option<String>> = cases.map(|case| case.conditions.path.take()).collect();
    if paths.len() <= 1 {
        return Ok(());
    }
    let paths: Vec<String> =
        paths.into_iter().map(|path| path.unwrap_or_else(|| "none".to_owned())).collect();
    Err(Failure::usage(anyhow!(
        "--across-paths takes runs with one path each, and one side has several: {}",
        paths.join("; ")
    )))
}

/// Says that two sides were measured on different hosts, kernels or processors, whose difference is in every figure.
fn places_differ(old: &[Run], new: &[Run]) -> Option<String> {
    let places = |runs: &[Run]| {
        let environments = runs.iter().flat_map(|run| iter::once(&run.environment).chain(&run.peer));
        environments.map(place).collect::<BTreeSet<String>>()
    };
    let (old, new) = (places(old), places(new));
    let list = |places: BTreeSet<String>| places.into_iter().collect::<Vec<_>>().join("; ");
    (old != new).then(|| {
        format!(
            "the runs were measured in different places, and figures differ by that, too: {} (old), {} (new); \
             measure both on one host",
            list(old),
            list(new)
        )
    })
}

fn place(environment: &Environment) -> String {
    let or_unknown = |name: &Option<String>| name.clone().unwrap_or_else(|| "unknown".to_owned());
    let Environment { hostname, kernel, cpu_model, .. } = environment;
    format!("host {}, kernel {kernel}, processor {}", or_unknown(hostname), or_unknown(cpu_model))
}

/// Compares a run with itself.
fn with_itself(runs: &[Run], args: &CompareArgs) -> Result<Exit, Failure> {
    let [run] = runs else {
        return Err(Failure::usage(anyhow!("--with-itself takes one run, with many repeats")));
    };
    let found = SelfComparison::new(run, args.slow_down, args.tolerance).ok_or_else(|| {
        let least = 2 * SelfComparison::PAIRS_MIN;
        Failure::usage(anyhow!("--with-itself takes at least {least} repeats: measure with --repeat 160"))
    })?;
    output::page(&found.text()).map(|()| Exit::Success)
}
