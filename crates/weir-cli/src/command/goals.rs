//! `weir goals`: whether the engine is where it is to be.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use weir_bench::coordinator::{self, Event, RunOptions};
use weir_bench::goals::{self, GoalsOptions, Series};
use weir_bench::path::VethPath;
use weir_bench::{AgentCommand, at_rest, engine, host};
use weir_report::{AtRest, GoalRow};
use weir_results::{Case, Environment, ResultsWriter, Run};

use super::{bench, report};
use crate::args::{Cpus, GoalsArgs};
use crate::exit::{Exit, Failure};
use crate::progress::Progress;
use crate::{output, signals};

pub(crate) fn run(args: &GoalsArgs) -> Result<Exit, Failure> {
    let (run, at_rest, exit) = if args.from.is_empty() {
        let (run, exit) = measure(args)?;
        (run, at_rest(args.domain), exit)
    } else {
        // Programs at rest are in no results file, and nothing is measured here.
        (load(&args.from)?, Vec::new(), Exit::Success)
    };
    let mut rows = weir_report::goals(&run, &at_rest);
    if !args.only.is_empty() {
        rows.retain(GoalRow::is_measured);
    }
    output::data(&weir_report::goals_table(&rows))?;
    report::talk_block(&weir_report::warnings(&run));
    Ok(exit)
}

/// The cases of all these runs, as if they were one.
fn load(folders: &[PathBuf]) -> Result<Run, Failure> {
    let mut all: Option<Run> = None;
    for folder in folders {
        let run = Run::load(folder).map_err(Failure::environment)?;
        match &mut all {
            Some(all) => join(all, run),
            None => all = Some(run),
        }
    }
    Ok(all.unwrap_or_else(|| Run::new(Environment::default())))
}

/// Pairs are of one run: where both have a series, its repeats go on counting.
fn join(all: &mut Run, more: Run) {
    let series = |case: &Case| case.settings.get("series").cloned();
    let mut last: BTreeMap<Option<String>, u32> = BTreeMap::new();
    for case in &all.cases {
        let repeats = last.entry(series(case)).or_default();
        *repeats = case.repeat.max(*repeats);
    }
    for mut case in more.cases {
        case.repeat += last.get(&series(&case)).copied().unwrap_or(0);
        all.cases.push(case);
    }
}

fn measure(args: &GoalsArgs) -> Result<(Run, Exit), Failure> {
    let cpus = match args.cpus {
        Some(Cpus::None) => None,
        Some(Cpus::Pair(cpus)) => {
            host::check_cpus(cpus).map_err(Failure::usage)?;
            Some(cpus)
        }
        None => host::default_cpus().map_err(Failure::environment)?,
    };
    let options = GoalsOptions {
        is_quick: args.quick,
        repeats: args.repeat,
        cpus,
        domain: args.domain,
        run_id: std::process::id(),
        has_cables: true,
    };
    let mut all = goals::series(&options).map_err(Failure::usage)?;
    all.retain(|series| args.only.is_empty() || args.only.iter().any(|name| name == series.name));
    say_what_is_missing();
    let environment = Environment { command: std::env::args().collect(), ..host::environment("lo") };
    let mut writer = bench::create_writer(args.output.as_deref(), &environment, None)?;
    let interrupted = signals::watch()?;
    let agent = bench::this_program()?;
    report::talk_block(&weir_report::environment(&environment));
    let mut run = Run::new(environment);
    let mut exit = Exit::Success;
    for series in &all {
        let ended = measure_series(series, &agent, &interrupted, &mut writer, &mut run, args.verbose)?;
        // The gravest decides, and an interruption ends it.
        if exit == Exit::Success || ended == Exit::Interrupted {
            exit = ended;
        }
        if exit == Exit::Interrupted {
            break;
        }
    }
    output::talk(&format!("results: {}", writer.path().display()));
    Ok((run, exit))
}

fn measure_series(
    series: &Series,
    agent: &AgentCommand,
    interrupted: &AtomicBool,
    writer: &mut ResultsWriter,
    run: &mut Run,
    verbose: bool,
) -> Result<Exit, Failure> {
    let path = match series.path.map(VethPath::lay).transpose() {
        Ok(path) => path,
        Err(why) => {
            output::talk(&format!("weir: no series {}: {why}", series.name));
            return Ok(Exit::Success);
        }
    };
    output::talk(&format!("series {}: {} cases", series.name, series.plan.steps.len()));
    let environment = run.environment.clone();
    let options = RunOptions { agent, environment: &environment, path: path.as_ref(), interrupted };
    let progress = Progress::new(&series.plan, verbose);
    let mut written = Ok(());
    let outcome = coordinator::run(&series.plan, &options, &mut |event| match event {
        Event::CaseStarted { number, case } => progress.case_started(number, case),
        Event::Progress { elapsed } => progress.measuring(elapsed),
        Event::CaseFinished { number, case, .. } => {
            progress.case_finished(number, case);
            let mut case = case.clone();
            case.settings.insert("series".to_owned(), series.name.to_owned());
            if let Err(error) = writer.append(&case) {
                // Measuring on would only lose more.
                interrupted.store(true, Ordering::Release);
                written = Err(error);
            }
            run.cases.push(case);
        }
    });
    progress.finish();
    written.map_err(Failure::environment)?;
    Ok(bench::exit(outcome))
}

fn say_what_is_missing() {
    let missing: Vec<&str> = goals::WANTED.into_iter().filter(|name| engine::find(name).is_none()).collect();
    if !missing.is_empty() {
        output::talk(&format!(
            "weir: not built in, so that their rows cannot be told: {} (cargo xtask peers builds what there is)",
            missing.join(", ")
        ));
    }
}

/// The examples, if they are beside this program.
fn at_rest(domain: u32) -> Vec<AtRest> {
    let program = std::env::current_exe().ok();
    let folder = program.as_deref().and_then(Path::parent).map(|folder| folder.join("examples"));
    let of = |name: &str| {
        let file = folder.as_ref().map(|folder| folder.join(name)).filter(|file| file.is_file());
        let file = file.ok_or_else(|| {
            format!("{name} is not beside this program: cargo build --release -p weir-dds --examples")
        });
        AtRest {
            name: name.to_owned(),
            resident: Some(file.clone().and_then(|file| at_rest::resident_bytes(&file, domain))),
            stripped: Some(file.and_then(|file| at_rest::stripped_bytes(&file))),
        }
    };
    ["hello_publisher", "hello_subscriber"].into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use weir_results::{Reliability, Test};

    use super::*;

    #[test]
    fn pairs_of_two_runs_stay_apart_and_series_that_one_of_them_has_do_not_move() {
        let run = |cases: &[(&str, u32)]| {
            let case = |(series, repeat): &(&str, u32)| Case {
                repeat: *repeat,
                settings: [("series".to_owned(), (*series).to_owned())].into(),
                ..Case::new("weir", Test::Latency, Reliability::Reliable, 32)
            };
            Run { cases: cases.iter().map(case).collect(), ..Run::new(Environment::default()) }
        };
        let mut all = run(&[("spin", 1), ("spin", 2)]);
        join(&mut all, run(&[("spin", 1), ("load", 1)]));
        let repeats: Vec<u32> = all.cases.iter().map(|case| case.repeat).collect();
        assert_eq!(repeats, [1, 2, 3, 1]);
    }
}
