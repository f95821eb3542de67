//! `weir published run osrf-mininet`: Open Robotics' experiment, on emulated links.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::anyhow;
use weir_bench::AgentCommand;
use weir_bench::case::{CaseSpec, CpuPair, Method, Place};
use weir_bench::coordinator::{RunOptions, RunOutcome};
use weir_bench::path::{PathSpec, VirtualLink};
use weir_bench::plan::{self, Plan, PlanOptions};
use weir_bench::rate::Rate;
use weir_report::ReportOptions;
use weir_results::{Environment, Reliability, ResultsWriter, Run, Test};

use super::{bench, report, setup};
use crate::args::{Format, ProgressForm, PublishedRunArgs};
use crate::exit::{Exit, Failure};
use crate::progress::Progress;
use crate::published::mininet::{self, LossyLink};
use crate::published::mininet_report;
use crate::{output, signals};

/// Longest time before the measurement: what a writer keeps is then no longer from its start.
const WARMUP: Duration = Duration::from_millis(500);

pub(super) fn run(args: &PublishedRunArgs) -> Result<Exit, Failure> {
    let study = Study::new(args)?;
    let environment =
        setup::environment(VirtualLink::INTERFACE, study.links.first().map(|(_, spec, _)| spec));
    let mut writer = setup::create_writer(args.output.as_deref(), &environment, None)?;
    let interrupted = signals::watch()?;
    let agent = setup::agent()?;
    let mut run = Run::new(environment.clone());
    let measured = study.measure(&agent, &environment, &interrupted, &mut writer, &mut run);
    output::talk(&format!("results: {}", writer.path().display()));
    if let Some(folder) = args.output.as_deref() {
        keep(folder, &run)?;
    }
    match args.format {
        Format::Table => output::page(&mininet_report::page(&run).unwrap_or_default())?,
        format => report::print(&run, format, &ReportOptions::default())?,
    }
    measured.map(|outcome| bench::exit(outcome, &run.cases))
}

/// Writes the page and the plots beside the results.
fn keep(folder: &Path, run: &Run) -> Result<(), Failure> {
    let Some(page) = mininet_report::page(run) else { return Ok(()) };
    output::file(&folder.join(format!("{}.md", mininet::NAME)), &page)?;
    for plot in mininet_report::plots(run) {
        output::file(&folder.join(format!("{}-{}.svg", mininet::NAME, plot.name)), &plot.svg)?;
    }
    Ok(())
}

/// The links to measure, and what is the same on all of them.
struct Study {
    /// Each with the number of the run.
    links: Vec<(LossyLink, PathSpec, u32)>,
    sizes: Vec<u64>,
    duration: Duration,
    cpus: Option<CpuPair>,
    domain: u32,
}

impl Study {
    fn new(args: &PublishedRunArgs) -> Result<Self, Failure> {
        if args.link.to_string() != "lo" {
            return Err(Failure::usage(anyhow!(
                "{} has links of its own: choose with --bandwidths, --losses and --delays, without --link",
                mininet::NAME
            )));
        }
        let known = mininet::MESSAGES.map(|(_, size, _)| size);
        if let Some(unknown) = args.sizes.iter().find(|size| !known.contains(size)) {
            return Err(Failure::usage(anyhow!(
                "{} has no samples of {unknown} bytes: --sizes takes 1024 and 524288",
                mininet::NAME
            )));
        }
        let delays: Vec<Duration> =
            args.mininet.delays.iter().map(|&delay| Duration::from_millis(delay)).collect();
        let links = mininet::links(&args.mininet.bandwidths, &args.mininet.losses, &delays);
        let links = (1..=args.mininet.runs.unwrap_or(mininet::RUNS))
            .flat_map(|run| links.iter().filter_map(move |link| Some((*link, link.spec(run)?, run))));
        Ok(Self {
            links: links.collect(),
            sizes: if args.sizes.is_empty() { known.to_vec() } else { args.sizes.clone() },
            duration: Duration::from_secs(args.exec.unwrap_or(mininet::SECONDS)),
            cpus: setup::cpus(args.cpus)?,
            domain: args.domain,
        })
    }

    /// Measures link after link until all are done or `interrupted` is set.
    fn measure(
        &self,
        agent: &AgentCommand,
        environment: &Environment,
        interrupted: &AtomicBool,
        writer: &mut ResultsWriter,
        run: &mut Run,
    ) -> Result<RunOutcome, Failure> {
        let mut all = RunOutcome::default();
        for (number, (link, spec, of)) in (1..).zip(&self.links) {
            let LossyLink { mbps, loss_percent, .. } = link;
            let count = self.links.len();
            output::talk(&format!("[{number}/{count}] {mbps} Mbit/s, {loss_percent} % loss, run {of}"));
            let plan = self.plan(spec, *of)?;
            let path = setup::lay(Some(spec))?;
            let options = RunOptions {
                agent,
                environment,
                path: path.as_ref(),
                hosts: None,
                interrupted,
                earlier: &[],
            };
            let progress = Progress::new(&plan, ProgressForm::View, false);
            let (outcome, written) = setup::run_plan(&plan, &options, writer, &progress, &mut |_, case| {
                run.cases.push(case.clone());
            });
            written.map_err(Failure::environment)?;
            all = all.and(outcome);
            if interrupted.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(all)
    }

    /// The cases on one link.
    fn plan(&self, link: &PathSpec, run: u32) -> Result<Plan, Failure> {
        let options = PlanOptions {
            engines: vec!["weir".to_owned()],
            tests: vec![Test::Latency],
            sizes: self.sizes.clone(),
            reliabilities: vec![Reliability::Reliable],
            rates: vec![Rate::PerSecond(mininet::RATE_HZ)],
            method: Method {
                path: Some(link.to_string()),
                keep_last: Some(mininet::KEEP_LAST),
                ..Method::default()
            },
            place: Place {
                domain: self.domain,
                run_id: std::process::id(),
                cpus: self.cpus,
                socket_buffer_bytes: CaseSpec::SOCKET_BUFFER_BYTES,
                ..Place::loopback()
            },
            duration: self.duration,
            warmup: WARMUP,
            ..PlanOptions::default()
        };
        let mut plan = plan::plan(&options).map_err(Failure::usage)?;
        plan.steps.iter_mut().for_each(|step| step.case.repeat = run);
        Ok(plan)
    }
}
