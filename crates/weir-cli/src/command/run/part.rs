//! A study of a plan that is being run: what it measures, and what is finished of it.

use std::sync::atomic::AtomicBool;

use anyhow::anyhow;
use weir_bench::coordinator::RunOutcome;
use weir_results::{Case, Run};

use super::dry::Outline;
use crate::args::RunArgs;
use crate::command::bench::{self, Bench, Folder};
use crate::command::host::HostsCache;
use crate::command::udp::{self, UdpBench};
use crate::exit::{Exit, Failure};
use crate::plans::{Study, StudyArgs, Subject};

/// A study, and what is finished of it.
pub(super) struct Part<'a> {
    pub(super) study: &'a Study,
    pub(super) measurement: Measurement<'a>,
    /// `None`: it has not begun.
    pub(super) earlier: Option<Run>,
    /// Steps that are not finished.
    pub(super) left: usize,
}

impl Part<'_> {
    pub(super) fn finished(&self) -> &[Case] {
        self.earlier.as_ref().map_or(&[], |run| &run.cases)
    }

    /// How the measurement of the finished cases ended.
    pub(super) fn ended(&self) -> Exit {
        match self.measurement {
            Measurement::Bench(_) => bench::exit(RunOutcome::of(self.finished()), self.finished()),
            Measurement::Udp(_) => udp::exit(self.finished()),
        }
    }
}

/// What a study measures.
pub(super) enum Measurement<'a> {
    Bench(Bench<'a>),
    Udp(UdpBench<'a>),
}

impl<'a> Measurement<'a> {
    /// Plans the measurement, without anything being run or written.
    pub(super) fn new(study: &'a Study) -> Result<Self, Failure> {
        Ok(match &study.args {
            StudyArgs::Bench(args) => Self::Bench(Bench::new(args)?),
            StudyArgs::Udp(args) => Self::Udp(UdpBench::new(args)?),
        })
    }

    /// The same measurement as a run that has begun.
    pub(super) fn continuing(self, earlier: &Run) -> Result<Self, Failure> {
        match self {
            Self::Bench(bench) => bench.continuing(earlier).map(Self::Bench),
            Self::Udp(_) => Ok(self),
        }
    }

    /// What requirements may be about.
    pub(super) fn subjects(&self) -> Vec<Subject<'_>> {
        match self {
            Self::Bench(bench) => {
                let cases = bench.plans().iter().flat_map(|plan| &plan.steps).map(|step| &step.case);
                cases.map(Subject::of).collect()
            }
            Self::Udp(udp) => udp.subjects(),
        }
    }

    /// What is measured. Where nothing has begun, the idle states of this host are checked, which may add cases.
    pub(super) fn outline(&self, has_begun: bool) -> Result<Outline, Failure> {
        Ok(match self {
            Self::Bench(bench) if has_begun => Outline::of_plans(bench.plans(), false),
            Self::Bench(bench) => {
                let (plans, is_most) = bench.outlined()?;
                Outline::of_plans(&plans, is_most)
            }
            Self::Udp(udp) => Outline::new(udp.lines(), udp.duration()),
        })
    }

    /// How many steps are left after these cases.
    pub(super) fn left(&self, earlier: &[Case]) -> Result<usize, Failure> {
        match self {
            Self::Bench(bench) => Ok(bench.parts(earlier)?.iter().map(|(_, left)| left).sum()),
            Self::Udp(udp) => Ok(udp.left(earlier)),
        }
    }

    /// Measures what the folder does not hold yet. The second result: whether all results were written.
    pub(super) fn measure(
        self,
        folder: &Folder<'_>,
        hosts: &mut HostsCache,
        interrupted: &AtomicBool,
        is_first: bool,
    ) -> Result<(Exit, Result<(), Failure>), Failure> {
        match self {
            Self::Bench(bench) => {
                let hosts = match hosts.connect(bench.args(), interrupted) {
                    Err(failure) if failure.exit == Exit::Interrupted => return Ok((failure.exit, Ok(()))),
                    hosts => hosts?,
                };
                let measured = bench.measure(folder, hosts, interrupted, is_first)?;
                Ok((measured.exit, measured.written.map_err(Failure::environment)))
            }
            Self::Udp(udp) => match udp.measure(folder, interrupted, is_first) {
                Err(failure) if failure.exit == Exit::Interrupted => Ok((failure.exit, Ok(()))),
                exit => Ok((exit?, Ok(()))),
            },
        }
    }
}

/// Applies the options of the command line to a study.
pub(super) fn apply(args: &RunArgs, study: &mut Study) -> Result<(), Failure> {
    match &mut study.args {
        StudyArgs::Bench(bench) => {
            bench.output.verbose = args.verbose;
            bench.output.progress = args.progress;
            if args.hosts.hosts.is_some() {
                bench.host.hosts = args.hosts.clone();
            }
        }
        StudyArgs::Udp(udp) => {
            udp.output.verbose = args.verbose;
            if args.hosts.hosts.is_some() {
                return Err(Failure::usage(anyhow!(
                    "--hosts is for studies of `weir bench`: the study `{}` measures as `weir udp` does; its key `to` \
                     names the other host",
                    study.name
                )));
            }
        }
    }
    Ok(())
}
