//! `weir run`: measures the studies of a plan.

mod dry;
mod folder;

use std::sync::atomic::AtomicBool;

use anyhow::anyhow;
use weir_bench::coordinator::RunOutcome;
use weir_bench::plan::Plan;
use weir_report::{RequirementRow, RequirementVerdict, requirements_table};
use weir_results::{Environment, Run};

use super::bench::{self, Bench, Folder};
use super::setup;
use crate::args::RunArgs;
use crate::exit::{Exit, Failure};
use crate::plans::{PlanFile, READY, Ready, Study};
use crate::text::list_item;
use crate::{output, signals};
use folder::PlanFolder;

pub(crate) fn run(args: &RunArgs) -> Result<Exit, Failure> {
    if args.list {
        let lines: String = READY.iter().map(|ready| list_item(ready.name, ready.about(), 15)).collect();
        return output::data(&lines).map(|()| Exit::Success);
    }
    if let Some(name) = &args.show {
        let unknown = || Failure::usage(anyhow!("no ready-made plan has the name {name}: see --list"));
        return output::data(Ready::find(name).ok_or_else(unknown)?.text).map(|()| Exit::Success);
    }
    let name = args.plan.as_deref().unwrap_or_default();
    let mut plan = PlanFile::load(name)?;
    for study in &mut plan.studies {
        study.args.output.verbose = args.verbose;
    }
    let benches = benches(&plan)?;
    let environment = setup::environment("lo", None);
    if args.dry_run {
        return dry_run(args, &plan, &benches, &environment);
    }
    let folder = PlanFolder::open(args.output.as_deref(), &plan, &environment)?;
    let interrupted = signals::watch()?;
    let mut progress = PlanRun::new(&plan, &folder, &environment);
    for (number, (study, bench)) in (1..).zip(plan.studies.iter().zip(benches)) {
        progress.study(number, study, bench, &interrupted)?;
    }
    progress.finish(name)
}

/// The measurements of a plan, without anything being run.
fn benches(plan: &PlanFile) -> Result<Vec<Bench<'_>>, Failure> {
    let mut benches = Vec::new();
    for study in &plan.studies {
        let bench = Bench::new(&study.args).map_err(|failure| plan.located(study, failure))?;
        plan.check_requirements(study, bench.plans())?;
        benches.push(bench);
    }
    Ok(benches)
}

fn dry_run(
    args: &RunArgs,
    plan: &PlanFile,
    benches: &[Bench<'_>],
    environment: &Environment,
) -> Result<Exit, Failure> {
    let folder = args.output.as_deref().filter(|folder| folder.exists());
    folder.map(|folder| folder::check(folder, plan)).transpose()?;
    let mut text = String::new();
    for (study, bench) in plan.studies.iter().zip(benches) {
        let earlier = folder.map(|folder| folder::earlier(folder, study, environment)).transpose()?.flatten();
        let cases = earlier.map(|run| run.cases).unwrap_or_default();
        bench.parts(&cases)?;
        text.push_str(&dry::study(study, bench.plans(), cases.len()));
        text.push('\n');
    }
    let plans: Vec<&[Plan]> = benches.iter().map(Bench::plans).collect();
    output::data(&format!("{text}{}", dry::total(&plans))).map(|()| Exit::Success)
}

/// A plan that is being run.
struct PlanRun<'a> {
    plan: &'a PlanFile,
    folder: &'a PlanFolder,
    environment: &'a Environment,
    exit: Exit,
    verdicts: Vec<RequirementRow>,
    /// Why the remaining studies are left out.
    stopped: Option<&'static str>,
    has_measured: bool,
}

impl<'a> PlanRun<'a> {
    fn new(plan: &'a PlanFile, folder: &'a PlanFolder, environment: &'a Environment) -> Self {
        let (exit, verdicts, has_measured) = (Exit::Success, Vec::new(), false);
        Self { plan, folder, environment, exit, verdicts, stopped: None, has_measured }
    }

    /// Measures what a study has left, and judges its requirements.
    fn study(
        &mut self,
        number: usize,
        study: &Study,
        bench: Bench<'_>,
        interrupted: &AtomicBool,
    ) -> Result<(), Failure> {
        if let Some(reason) = self.stopped {
            self.without_figures(study, reason);
            return Ok(());
        }
        let earlier = folder::earlier(&self.folder.path, study, self.environment)?;
        let cases = earlier.as_ref().map_or(&[][..], |run| &run.cases);
        let left: usize = bench.parts(cases)?.iter().map(|(_, left)| left).sum();
        let state = match (cases.len(), left) {
            (finished, 0) => format!(": finished before, {}", dry::cases(finished)),
            (0, _) => String::new(),
            (finished, _) => format!(": goes on after {}", dry::cases(finished)),
        };
        output::talk(&format!("study {} ({number} of {}){state}", study.name, self.plan.studies.len()));
        let ended = if left == 0 {
            bench::exit(RunOutcome::of(cases))
        } else {
            let is_new = earlier.is_none();
            match self.measure(study, bench, is_new, interrupted) {
                Ok(exit) => exit,
                Err(failure) if failure.exit == Exit::Environment => {
                    output::talk(&format!("weir: study {}: {failure}", study.name));
                    self.without_figures(study, &failure.to_string());
                    self.end(Exit::Environment);
                    return Ok(());
                }
                Err(failure) => return Err(failure),
            }
        };
        if ended == Exit::Interrupted {
            self.stopped = Some("interrupted");
            self.without_figures(study, "interrupted");
        } else if self.stopped.is_none() {
            let run = Run::load(self.folder.path.join(&study.name)).map_err(Failure::environment)?;
            for required in &study.required {
                let rows = required.requirement.judge(&study.name, &run);
                let verdicts = rows.iter().map(|row| verdict_exit(row.verdict));
                let exit = verdicts.fold(Exit::Success, Exit::and);
                self.verdicts.extend(rows);
                self.end(exit);
            }
        }
        self.end(ended);
        Ok(())
    }

    fn measure(
        &mut self,
        study: &Study,
        bench: Bench<'_>,
        is_new: bool,
        interrupted: &AtomicBool,
    ) -> Result<Exit, Failure> {
        let path = self.folder.path.join(&study.name);
        if is_new {
            folder::clear(&self.folder.path, study)?;
        }
        let between = if self.has_measured { "\n" } else { "" };
        output::data(&format!("{between}## {}\n\n", study.name))?;
        let folder = if is_new { Folder::New(Some(&path)) } else { Folder::Continued(&path) };
        let is_first = !std::mem::replace(&mut self.has_measured, true);
        let measured = bench.measure(&folder, interrupted, is_first)?;
        if let Err(error) = measured.written {
            // The next study could not be written either.
            self.stopped = Some("the results could not be written");
            return Err(Failure::environment(error));
        }
        Ok(bench::exit(measured.outcome))
    }

    /// Notes how a study or a requirement ended.
    fn end(&mut self, exit: Exit) {
        self.exit = self.exit.and(exit);
        if exit != Exit::Success && self.plan.stops_on_failure && self.stopped.is_none() {
            self.stopped = Some("left out after a failure: on_failure is stop");
        }
    }

    fn without_figures(&mut self, study: &Study, reason: &str) {
        let rows = study.required.iter().map(|it| it.requirement.without_figure(&study.name, reason));
        self.verdicts.extend(rows);
    }

    /// Prints the verdicts.
    fn finish(self, name: &str) -> Result<Exit, Failure> {
        let folder = self.folder.path.display();
        if !self.verdicts.is_empty() {
            let between = if self.has_measured { "\n" } else { "" };
            output::data(&format!("{between}## Requirements\n\n{}", requirements_table(&self.verdicts)))?;
            let document = serde_json::to_string_pretty(&self.verdicts).map_err(Failure::environment)?;
            output::file(&self.folder.path.join("requirements.json"), &format!("{document}\n"))?;
        }
        if self.exit == Exit::Interrupted {
            output::talk(&format!("weir: interrupted: `weir run {name} --output {folder}` goes on"));
        }
        output::talk(&format!("results of the plan: {folder}"));
        Ok(self.exit)
    }
}

fn verdict_exit(verdict: RequirementVerdict) -> Exit {
    match verdict {
        RequirementVerdict::Met => Exit::Success,
        RequirementVerdict::Missed => Exit::Found,
        RequirementVerdict::NotMeasured => Exit::Environment,
    }
}
