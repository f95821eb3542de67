//! `weir run`: measures the studies of a plan.

mod dry;
mod folder;
mod part;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::anyhow;
use weir_report::{RequirementRow, RequirementVerdict, requirements_table};
use weir_results::{Environment, RESULTS_FILE_NAME, Run};

use super::bench::Folder;
use super::host::HostsCache;
use super::setup;
use crate::args::RunArgs;
use crate::exit::{Exit, Failure};
use crate::plans::{self, Group, PlanFile, Ready, Study};
use crate::text::list_item;
use crate::{output, signals};
use dry::Outline;
use folder::PlanFolder;
use part::{Measurement, Part};

pub(crate) fn run(args: &RunArgs) -> Result<Exit, Failure> {
    if args.list {
        return output::data(&list()).map(|()| Exit::Success);
    }
    if let Some(name) = &args.show {
        let unknown = || Failure::usage(anyhow!("no ready-made plan has the name {name}: see --list"));
        return output::data(&Ready::find(name).ok_or_else(unknown)?.text).map(|()| Exit::Success);
    }
    let name = args.plan.as_deref().unwrap_or_default();
    let mut plan = PlanFile::load(name, &plans::overrides(&args.set, args.brief)?)?;
    plan.studies.iter_mut().try_for_each(|study| part::apply(args, study))?;
    let measurements = measurements(&plan)?;
    let environment = setup::environment("lo", None);
    if args.dry_run {
        return dry_run(args.output.as_deref(), &plan, measurements, &environment);
    }
    let folder = PlanFolder::open(args.output.as_deref(), &plan, &environment)?;
    let parts = parts(Some(&folder.path), &plan, measurements, &environment)?;
    let interrupted = signals::watch()?;
    // Those of an earlier run say nothing about this one, however it ends.
    folder::remove(&folder.path.join(REQUIREMENTS_NAME))?;
    let mut run = PlanRun::new(&plan, &folder);
    for (number, part) in (1..).zip(parts) {
        run.study(number, part, &interrupted)?;
    }
    run.finish(name)
}

/// The ready-made plans, by group.
fn list() -> String {
    let all = Ready::all();
    let of_group = |group: Group| {
        let items = all.iter().filter(|ready| ready.group == group);
        let width = items.clone().map(|ready| ready.name.len()).max().unwrap_or(0);
        let lines: String = items.map(|ready| list_item(&ready.name, ready.about(), width)).collect();
        format!("{}:\n{lines}", group.heading())
    };
    Group::ALL.map(of_group).join("\n")
}

/// The measurements of a plan, without anything being run.
fn measurements(plan: &PlanFile) -> Result<Vec<Measurement<'_>>, Failure> {
    let mut measurements = Vec::new();
    for study in &plan.studies {
        let measurement = Measurement::new(study).map_err(|failure| plan.located(study, failure))?;
        plan.check_requirements(study, &measurement.subjects())?;
        measurements.push(measurement);
    }
    Ok(measurements)
}

/// What is finished of each study in the folder.
fn parts<'a>(
    folder: Option<&Path>,
    plan: &'a PlanFile,
    measurements: Vec<Measurement<'a>>,
    environment: &Environment,
) -> Result<Vec<Part<'a>>, Failure> {
    let part = |(study, measurement): (&'a Study, Measurement<'a>)| {
        let earlier = folder.map(|folder| folder::earlier(folder, study, environment)).transpose()?.flatten();
        let measurement = earlier.iter().try_fold(measurement, |it, run| it.continuing(run))?;
        let cases = earlier.as_ref().map_or(&[][..], |run| &run.cases);
        let left = measurement.left(cases)?;
        Ok(Part { study, measurement, earlier, left })
    };
    plan.studies.iter().zip(measurements).map(part).collect()
}

fn dry_run(
    folder: Option<&Path>,
    plan: &PlanFile,
    measurements: Vec<Measurement<'_>>,
    environment: &Environment,
) -> Result<Exit, Failure> {
    folder.map(|folder| folder::check(folder, plan)).transpose()?;
    let parts = parts(folder, plan, measurements, environment)?;
    let outline = |part: &Part<'_>| part.measurement.outline(part.earlier.is_some());
    let outlines: Vec<Outline> = parts.iter().map(outline).collect::<Result<_, _>>()?;
    let study = |(part, outline): (&Part<'_>, _)| dry::study(part.study, outline, part.finished().len());
    let text: Vec<String> = parts.iter().zip(&outlines).map(study).collect();
    output::data(&format!("{}\n{}", text.join("\n"), dry::total(&outlines))).map(|()| Exit::Success)
}

/// A plan that is being run.
struct PlanRun<'a> {
    plan: &'a PlanFile,
    folder: &'a PlanFolder,
    exit: Exit,
    verdicts: Vec<RequirementRow>,
    hosts: HostsCache,
    /// Why the remaining studies are left out.
    stopped: Option<&'static str>,
    has_measured: bool,
}

impl<'a> PlanRun<'a> {
    fn new(plan: &'a PlanFile, folder: &'a PlanFolder) -> Self {
        let (exit, verdicts, has_measured) = (Exit::Success, Vec::new(), false);
        let hosts = HostsCache::default();
        Self { plan, folder, exit, verdicts, hosts, stopped: None, has_measured }
    }

    /// Measures what a study has left, and judges its requirements.
    fn study(&mut self, number: usize, part: Part<'_>, interrupted: &AtomicBool) -> Result<(), Failure> {
        let study = part.study;
        if let Some(reason) = self.stopped {
            self.without_figures(study, reason);
            return Ok(());
        }
        let state = match (part.finished().len(), part.left) {
            (finished, 0) => format!(": finished before, {}", dry::cases(finished)),
            (0, _) => String::new(),
            (finished, _) => format!(": goes on after {}", dry::cases(finished)),
        };
        output::talk(&format!("study {} ({number} of {}){state}", study.name, self.plan.studies.len()));
        let (is_new, had_measured) = (part.earlier.is_none(), self.has_measured);
        let ended = match part.left {
            0 => Ok(part.ended()),
            _ => self.measure(part, interrupted),
        };
        let judged = match ended {
            Ok(Exit::Interrupted) => {
                self.stopped = Some("interrupted");
                self.without_figures(study, "interrupted");
                Ok(Exit::Interrupted)
            }
            Ok(exit) => self.judge(study).map(|()| exit),
            Err(failure) => Err(failure),
        };
        match judged {
            Ok(exit) => self.end(exit),
            // Nothing was measured yet that would be lost.
            Err(failure)
                if failure.exit == Exit::Usage && !had_measured && !(is_new && self.has_begun(study)) =>
            {
                return Err(failure);
            }
            Err(failure) => {
                output::talk(&format!("weir: study {}: {failure}", study.name));
                self.without_figures(study, &failure.to_string());
                self.end(Exit::Environment);
            }
        }
        Ok(())
    }

    fn measure(&mut self, part: Part<'_>, interrupted: &AtomicBool) -> Result<Exit, Failure> {
        let name = &part.study.name;
        let path = self.folder.path.join(name);
        let folder = if part.earlier.is_some() {
            Folder::Continued(&path)
        } else {
            folder::clear(&path)?;
            Folder::New(Some(&path))
        };
        let is_first = !std::mem::replace(&mut self.has_measured, true);
        // What cannot be printed is in the results nevertheless.
        let printed = output::data(&format!("{}## {name}\n\n", if is_first { "" } else { "\n" }));
        let (exit, written) = part.measurement.measure(&folder, &mut self.hosts, interrupted, is_first)?;
        if let Err(failure) = written {
            // The next study could not be written either.
            self.stopped = Some("the results could not be written");
            return Err(failure);
        }
        printed.map(|()| exit)
    }

    /// Whether the folder of a study has results.
    fn has_begun(&self, study: &Study) -> bool {
        self.folder.path.join(&study.name).join(RESULTS_FILE_NAME).exists()
    }

    fn judge(&mut self, study: &Study) -> Result<(), Failure> {
        if study.required.is_empty() {
            return Ok(());
        }
        let run = Run::load(self.folder.path.join(&study.name)).map_err(Failure::environment)?;
        for required in &study.required {
            let rows = required.requirement.judge(&study.name, &run);
            rows.iter().for_each(|row| self.end(verdict_exit(row.verdict)));
            self.verdicts.extend(rows);
        }
        Ok(())
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
            output::page(&format!("{between}## Requirements\n\n{}", requirements_table(&self.verdicts)))?;
            let document = serde_json::to_string_pretty(&self.verdicts).map_err(Failure::environment)?;
            output::file(&self.folder.path.join(REQUIREMENTS_NAME), &format!("{document}\n"))?;
        }
        if self.exit == Exit::Interrupted {
            output::talk(&format!("weir: interrupted: `weir run {name} --output {folder}` goes on"));
        }
        output::talk(&format!("results of the plan: {folder}"));
        Ok(self.exit)
    }
}

/// The file of the verdicts.
const REQUIREMENTS_NAME: &str = "requirements.json";

fn verdict_exit(verdict: RequirementVerdict) -> Exit {
    match verdict {
        RequirementVerdict::Met => Exit::Success,
        RequirementVerdict::Missed => Exit::Found,
        RequirementVerdict::NotMeasured | RequirementVerdict::Inconclusive => Exit::Environment,
    }
}
