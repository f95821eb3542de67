//! `weir targets`: performance targets, each met, missed or inconclusive.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use weir_bench::coordinator::RunOptions;
use weir_bench::domain::DomainReport;
use weir_bench::goals::{self, GoalsOptions, Series};
use weir_bench::path::VirtualLink;
use weir_bench::{AgentCommand, engine, footprint};
use weir_report::{AtRest, GoalRow, LargeDomain};
use weir_results::{Case, Environment, ResultsWriter, Run};

use super::{bench, setup};
use crate::args::{ProgressForm, TargetsArgs};
use crate::exit::{Exit, Failure};
use crate::progress::Progress;
use crate::{output, runs, signals, workloads};

pub(crate) fn run(args: &TargetsArgs) -> Result<Exit, Failure> {
    let (run, at_rest, domains, exit) = if args.from.is_empty() {
        let (run, exit) = measure(args)?;
        (run, at_rest(args.domain), Vec::new(), exit)
    } else {
        // Programs at rest are in no results file, and nothing is measured here.
        let (run, domains) = load(&args.from)?;
        (run, Vec::new(), domains, Exit::Success)
    };
    let mut rows = weir_report::goals(&run, &at_rest, &domains);
    if !args.only.is_empty() {
        rows.retain(GoalRow::is_measured);
    }
    output::page(&weir_report::goals_table(&rows, &run))?;
    output::talk_block(&weir_report::case_warnings(&run));
    Ok(exit)
}

/// Reads what `weir domain --format json` has printed; `None`: the file is no such thing.
fn domain(path: &Path) -> Option<LargeDomain> {
    if !path.is_file() {
        return None;
    }
    let report: DomainReport = serde_json::from_str(&fs::read_to_string(path).ok()?).ok()?;
    Some(LargeDomain {
        participants: report.participants,
        endpoints: report.endpoints,
        matched_ms: report.matched_ms,
        joined_ms: report.joined_ms,
        bytes_per_remote_endpoint: report.bytes_per_remote_endpoint,
        rest_cpu_percent: report.rest_cpu_percent,
    })
}

/// Joins the cases of several runs, and reads measurements of domains.
fn load(paths: &[PathBuf]) -> Result<(Run, Vec<LargeDomain>), Failure> {
    let (mut all, mut domains): (Option<Run>, _) = (None, Vec::new());
    for path in paths {
        if let Some(domain) = domain(path) {
            domains.push(domain);
            continue;
        }
        let run = runs::read(path)?;
        match &mut all {
            Some(all) => join(all, run),
            None => all = Some(run),
        }
    }
    Ok((all.unwrap_or_else(|| Run::new(Environment::default())), domains))
}

/// Adds a run. Its repeats are renumbered where both have a series, so that pairs stay within a run.
fn join(all: &mut Run, more: Run) {
    let series = |case: &Case| case.conditions.settings.get("series").cloned();
    let mut last: BTreeMap<Option<String>, u32> = BTreeMap::new();
    for case in &all.cases {
        let repeats = last.entry(series(case)).or_default();
        *repeats = case.conditions.repeat.max(*repeats);
    }
    for mut case in more.cases {
        case.conditions.repeat += last.get(&series(&case)).copied().unwrap_or(0);
        all.cases.push(case);
    }
}

fn measure(args: &TargetsArgs) -> Result<(Run, Exit), Failure> {
    let cpus = setup::cpus(args.cpus)?;
    let options = GoalsOptions {
        is_quick: args.quick,
        repeats: args.repeat,
        cpus,
        domain: args.domain,
        run_id: std::process::id(),
        has_cables: true,
        robot: workloads::load("robot")?,
    };
    let mut all = goals::series(&options).map_err(Failure::usage)?;
    all.retain(|series| args.only.is_empty() || args.only.iter().any(|name| name == series.name));
    report_missing_engines();
    let environment = setup::environment("lo", None);
    let mut writer = setup::create_writer(args.output.as_deref(), &environment, None)?;
    let interrupted = signals::watch()?;
    let agent = setup::agent()?;
    output::talk_block(&weir_report::environment(&environment));
    let mut run = Run::new(environment);
    let mut exit = Exit::Success;
    for series in &all {
        let ended = measure_series(series, &agent, &interrupted, &mut writer, &mut run, args.verbose)?;
        // The first failure decides, unless the user interrupts.
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
    let path = match series.path.clone().map(VirtualLink::lay).transpose() {
        Ok(path) => path,
        Err(why) => {
            output::talk(&format!("weir: series {} is skipped: {why}", series.name));
            return Ok(Exit::Success);
        }
    };
    output::talk(&format!("series {}: {} cases", series.name, series.plan.steps.len()));
    let environment = run.environment.clone();
    let before = run.cases.len();
    let options = RunOptions {
        agent,
        environment: &environment,
        path: path.as_ref(),
        hosts: None,
        interrupted,
        earlier: &[],
    };
    let progress = Progress::new(&series.plan, ProgressForm::View, verbose);
    let (outcome, written) = setup::run_plan(&series.plan, &options, writer, &progress, &mut |_, case| {
        case.conditions.settings.insert("series".to_owned(), series.name.to_owned());
        run.cases.push(case.clone());
    });
    written.map_err(Failure::environment)?;
    Ok(bench::exit(outcome, &run.cases[before..]))
}

fn report_missing_engines() {
    let missing: Vec<&str> = goals::WANTED.into_iter().filter(|name| engine::find(name).is_none()).collect();
    if !missing.is_empty() {
        output::talk(&format!(
            "weir: not in this build, so their targets stay inconclusive: {} (cargo xtask peers builds them in)",
            missing.join(", ")
        ));
    }
}

/// Memory and size of the example programs beside this one.
fn at_rest(domain: u32) -> Vec<AtRest> {
    let program = std::env::current_exe().ok();
    let folder = program.as_deref().and_then(Path::parent);
    // A program with other engines has another target folder.
    let target = folder.and_then(Path::parent).map_or("target".into(), Path::to_string_lossy);
    let of = |name: &str| {
        let file = folder.map(|folder| folder.join("examples").join(name)).filter(|file| file.is_file());
        let file = file.ok_or_else(|| {
            format!(
                "{name} is not in `examples` beside this program: \
                 cargo build --release -p weir-dds --examples --target-dir {target}"
            )
        });
        AtRest {
            name: name.to_owned(),
            resident: file.clone().and_then(|file| footprint::resident_bytes(&file, domain)),
            stripped: file.and_then(|file| footprint::stripped_bytes(&file)),
        }
    };
    ["hello_publisher", "hello_subscriber"].into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use weir_results::{Reliability, Test};

    use super::*;

    #[test]
    fn what_weir_domain_prints_is_no_run_and_is_read_beside_runs() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("domain.json");
        let report = r#"{"participants":200,"endpoints":50,"processes":4,"matches_per_participant":1.0,
            "matched_ms":9000.0,"matched_cpu_ms":1.0,"datagrams":1,"bytes":1,"overran":0,"resident_bytes":1,
            "alone_bytes":1,"bytes_per_remote_endpoint":590.0,"rest_cpu_percent":null,"rest_datagrams_per_s":null,
            "joined_ms":400.0,"joined_discovered_ms":1.0,"joined_answered_ms":1.0,"joined_endpoints_ms":1.0,
            "joined_everywhere_ms":1.0,"joined_overran":0,"limits":[]}"#;
        fs::write(&file, report).unwrap();
        let (run, domains) = load(std::slice::from_ref(&file)).unwrap();
        assert!(run.cases.is_empty());
        let [domain] = &domains[..] else { panic!("{domains:?}") };
        assert_eq!((domain.participants, domain.endpoints), (200, 50));
        assert_eq!((domain.bytes_per_remote_endpoint, domain.rest_cpu_percent), (Some(590.0), None));
        fs::write(&file, "{}").unwrap();
        assert!(load(&[file]).is_err());
    }

    #[test]
    fn repeats_of_a_second_run_are_renumbered_only_in_shared_series() {
        let run = |cases: &[(&str, u32)]| {
            let case = |(series, repeat): &(&str, u32)| {
                Case::new("weir", Test::Latency, Reliability::Reliable, 32).with(|it| {
                    it.conditions.repeat = *repeat;
                    it.conditions.settings = [("series".to_owned(), (*series).to_owned())].into();
                })
            };
            Run { cases: cases.iter().map(case).collect(), ..Run::new(Environment::default()) }
        };
        let mut all = run(&[("spin", 1), ("spin", 2)]);
        join(&mut all, run(&[("spin", 1), ("load", 1)]));
        let repeats: Vec<u32> = all.cases.iter().map(|case| case.conditions.repeat).collect();
        assert_eq!(repeats, [1, 2, 3, 1]);
    }
}
