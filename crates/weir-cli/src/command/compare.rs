//! `weir compare`: two runs, case by case.

use anyhow::anyhow;
use weir_report::{Change, RunComparison, RunComparisonOptions};
use weir_results::Run;

use crate::args::{CompareArgs, ComparisonFormat, Runs};
use crate::exit::{Exit, Failure};
use crate::output;

pub(crate) fn run(args: &CompareArgs) -> Result<Exit, Failure> {
    let load = |Runs(paths): &Runs| paths.iter().map(Run::load).collect::<Result<Vec<_>, _>>();
    let old = load(&args.old).map_err(Failure::environment)?;
    let new = load(&args.new).map_err(Failure::environment)?;
    let options = RunComparisonOptions { tolerance: args.tolerance, is_paired: args.paired };
    let comparison = RunComparison::new(&old, &new, options);
    if comparison.figures.is_empty() {
        let lists =
            [("only in the old run", &comparison.missing), ("only in the new run", &comparison.added)];
        let lists = lists.iter().filter(|(_, cases)| !cases.is_empty());
        let lists: Vec<String> = lists.map(|(what, cases)| format!("{what}: {}", cases.join("; "))).collect();
        return Err(Failure::usage(anyhow!(
            "the runs have no case in common that was measured in both: measure both with the same options\n{}",
            lists.join("\n")
        )));
    }
    match args.format {
        ComparisonFormat::Table => output::data(&comparison.text(options))?,
        ComparisonFormat::Json => {
            let document = serde_json::to_string_pretty(&comparison).map_err(Failure::environment)?;
            output::data(&format!("{document}\n"))?;
        }
    }
    Ok(if comparison.count(Change::Worse) > 0 { Exit::Found } else { Exit::Success })
}
