//! The results folder of a plan: a copy of the plan, and a folder for each study.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use rustix::fs::FlockOperation;
use weir_results::{Environment, RESULTS_FILE_NAME, Run};

use crate::command::setup;
use crate::exit::Failure;
use crate::output;
use crate::plans::{PLAN_NAME, PlanFile, Study, StudyArgs};

/// The results folder of a plan. No other process uses it meanwhile.
#[derive(Debug)]
pub(super) struct PlanFolder {
    pub(super) path: PathBuf,
    /// The locked folder; the system unlocks it when the process ends, however that happens.
    _lock: File,
}

impl PlanFolder {
    /// Creates the folder, or opens that of an interrupted run of the same plan.
    pub(super) fn open(
        path: Option<&Path>,
        plan: &PlanFile,
        environment: &Environment,
    ) -> Result<Self, Failure> {
        let path = path.map_or_else(|| setup::named_by_time(environment), Path::to_owned);
        check(&path, plan)?;
        output::folder(&path)?;
        let lock = File::open(&path).and_then(|file| {
            rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            Ok(file)
        });
        let lock = lock.with_context(|| format!("{} is in use: is another run in it?", path.display()));
        let lock = lock.map_err(Failure::environment)?;
        // Another run may have begun in it before it was locked.
        check(&path, plan)?;
        output::file(&path.join(PLAN_NAME), &plan.text)?;
        Ok(Self { path, _lock: lock })
    }
}

/// Rejects a folder that holds something else than results of this plan.
pub(super) fn check(path: &Path, plan: &PlanFile) -> Result<(), Failure> {
    let copy = path.join(PLAN_NAME);
    if copy.exists() {
        let text = fs::read_to_string(&copy);
        let text = text.with_context(|| format!("cannot read {}", copy.display()));
        let earlier = PlanFile::parse_stored(&copy, &text.map_err(Failure::environment)?)?;
        return plan.check_same(&earlier, path);
    }
    let is_used = fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
    if is_used {
        return Err(Failure::usage(anyhow!(
            "{} holds something else than results of a plan: choose another folder with --output",
            path.display()
        )));
    }
    Ok(())
}

/// The results of a study so far; `None`: it has not begun.
pub(super) fn earlier(
    folder: &Path,
    study: &Study,
    environment: &Environment,
) -> Result<Option<Run>, Failure> {
    let path = folder.join(&study.name);
    // Without a first line, it was killed while the file was created.
    let has_begun = fs::read(path.join(RESULTS_FILE_NAME)).is_ok_and(|bytes| bytes.contains(&b'\n'));
    if !has_begun {
        return Ok(None);
    }
    let run = Run::load(&path).map_err(Failure::environment)?;
    // Those of other hosts are known when they are connected.
    let has_hosts = matches!(&study.args, StudyArgs::Bench(args) if args.host.hosts.hosts.is_some());
    if !has_hosts {
        setup::check_same_host(&path, &run.environment, environment)?;
    }
    Ok(Some(run))
}

/// Removes a results file that was killed while it was created.
pub(super) fn clear(path: &Path) -> Result<(), Failure> {
    remove(&path.join(RESULTS_FILE_NAME))
}

/// Removes a file, if there is one.
pub(super) fn remove(file: &Path) -> Result<(), Failure> {
    if file.exists() {
        let removed = fs::remove_file(file);
        removed.with_context(|| format!("cannot remove {}", file.display())).map_err(Failure::environment)?;
    }
    Ok(())
}
