//! Runs as commands name them: by a folder or file, or by a name of the history.

use std::cell::OnceCell;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use weir_history::{History, RunName, run_id};
use weir_results::{RESULTS_FILE_NAME, Redactor, ResultsError, Run, Salvaged};

use crate::args::{RedactArgs, ResultsFolder};
use crate::exit::Failure;
use crate::output;
use crate::plans::{PLAN_NAME, PlanFile};

/// Finds runs.
pub(crate) struct Finder<'a> {
    folder: &'a Path,
    history: OnceCell<History>,
}

/// A run and its name in a report.
pub(crate) struct FoundRun {
    pub(crate) name: String,
    pub(crate) run: Run,
    /// Distinguishes it from others of the same name, as `weir history` does.
    pub(crate) id: String,
}

impl<'a> Finder<'a> {
    pub(crate) fn new(folder: &'a ResultsFolder) -> Self {
        Self { folder: &folder.results, history: OnceCell::new() }
    }

    /// Returns the path of a run; one that does not start with `@` is the path itself.
    pub(crate) fn path(&self, run: &Path) -> Result<PathBuf, Failure> {
        let Some(text) = run.to_str().filter(|text| RunName::is_one(text)) else {
            return Ok(run.to_owned());
        };
        let name: RunName = text.parse().map_err(Failure::usage)?;
        if self.history.get().is_none() {
            let history = History::open(self.folder).map_err(Failure::usage)?;
            _ = self.history.set(history);
        }
        let Some(history) = self.history.get() else { return Ok(run.to_owned()) };
        let entry = history.find(&name).map_err(Failure::usage)?;
        let file = history.folder().join(entry.path);
        let is_usual = file.file_name().is_some_and(|name| name == RESULTS_FILE_NAME);
        Ok(file.parent().filter(|_| is_usual).map_or_else(|| file.clone(), Path::to_owned))
    }

    /// Reads runs. The folder of a plan stands for the runs of its studies.
    pub(crate) fn load<'p>(
        &self,
        paths: impl IntoIterator<Item = &'p PathBuf>,
    ) -> Result<Vec<FoundRun>, Failure> {
        let mut found = Vec::new();
        for path in paths {
            let path = self.path(path)?;
            let studies = studies_in(&path)?;
            for path in if studies.is_empty() { vec![path] } else { studies } {
                let (run, header) = read_with_header(&path)?;
                let name = name_of(&path);
                found.push(FoundRun { id: run_id(&header, &name), name, run });
            }
        }
        Ok(found)
    }
}

/// Reads a run as far as it goes, and reports what is left out of it. A path without a run is an error of usage.
pub(crate) fn read(path: &Path) -> Result<Run, Failure> {
    read_with_header(path).map(|(run, _)| run)
}

/// The same, with the first line of the file.
fn read_with_header(path: &Path) -> Result<(Run, String), Failure> {
    let file = if path.is_dir() { path.join(RESULTS_FILE_NAME) } else { path.to_owned() };
    let (run, header) = match Run::salvage(&file) {
        Ok(salvaged) => {
            let gaps = gaps(&salvaged);
            gaps.iter().for_each(|gap| output::talk(&format!("warning: {}: {gap}", file.display())));
            (salvaged.run, salvaged.header)
        }
        // The output of `--format json` has no line for a header.
        Err(ResultsError::Parse { .. }) => {
            let run = Run::load(&file).map_err(Failure::environment)?;
            let header = header_of(&run);
            (run, header)
        }
        Err(error) if is_missing(&error) => return Err(Failure::usage(error)),
        Err(error) => return Err(Failure::environment(error)),
    };
    if run.cases.is_empty() {
        output::talk(&format!("weir: {}: no case was measured", file.display()));
    }
    Ok((run, header))
}

/// The first line of a run's results file.
fn header_of(run: &Run) -> String {
    let without_cases = Run { cases: Vec::new(), ..run.clone() };
    without_cases.to_lines().trim_end().to_owned()
}

/// Whether there is no such file.
fn is_missing(error: &ResultsError) -> bool {
    matches!(error, ResultsError::Read { source, .. } if source.kind() == io::ErrorKind::NotFound)
}

/// What is left out of a damaged file.
fn gaps(salvaged: &Salvaged) -> Vec<String> {
    let lines = &salvaged.damaged_lines;
    let named: Vec<String> = lines.iter().take(LINES_NAMED_MAX).map(ToString::to_string).collect();
    let more = lines.len().saturating_sub(LINES_NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let damaged = match lines.len() {
        0 => None,
        1 => Some(format!("line {} is damaged, and left out", named[0])),
        _ => Some(format!("lines {}{more} are damaged, and left out", named.join(", "))),
    };
    let cut = salvaged.is_cut.then(|| {
        "the last line is cut short, and left out: the run was killed, or is still being measured".to_owned()
    });
    damaged.into_iter().chain(cut).collect()
}

/// So many damaged lines are named.
const LINES_NAMED_MAX: usize = 10;

/// The folders of the measured studies, if this is the folder of a plan.
fn studies_in(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let plan = folder.join(PLAN_NAME);
    if folder.join(RESULTS_FILE_NAME).exists() || !plan.is_file() {
        return Ok(Vec::new());
    }
    let text = std::fs::read_to_string(&plan).with_context(|| format!("cannot read {}", plan.display()));
    let plan = PlanFile::parse_stored(&plan, &text.map_err(Failure::environment)?)?;
    let folders = plan.studies.iter().map(|study| folder.join(&study.name));
    Ok(folders.filter(|folder| folder.join(RESULTS_FILE_NAME).exists()).collect())
}

/// The redactor of a command, if names are to be replaced.
pub(crate) fn redactor(args: &RedactArgs) -> Option<Redactor> {
    (args.redact || !args.also.is_empty()).then(|| new_redactor(&args.also))
}

/// A redactor that knows the user of this process, and further words.
pub(crate) fn new_redactor(also: &[String]) -> Redactor {
    let user = std::env::var("USER").ok().filter(|user| !matches!(user.as_str(), "" | "root"));
    Redactor::new(also.iter().map(String::as_str).chain(user.as_deref()))
}

/// Replaces names in all runs, in the same way.
pub(crate) fn redact<'r>(
    redactor: &mut Redactor,
    runs: impl IntoIterator<Item = &'r mut FoundRun>,
) -> Result<(), Failure> {
    let runs: Vec<&mut FoundRun> = runs.into_iter().collect();
    for found in &runs {
        redactor.learn(&found.run).map_err(Failure::environment)?;
    }
    for (number, found) in (1..).zip(runs) {
        found.run = redactor.redact(&found.run).map_err(Failure::environment)?;
        found.name = redacted_name(&found.name, number);
        // Of what is left: that of the run itself would confirm guesses of its names.
        found.id = run_id(&header_of(&found.run), &found.name);
    }
    Ok(())
}

/// A name that is a time stays.
fn redacted_name(name: &str, number: usize) -> String {
    let is_time = name.contains('T') && name.chars().all(|it| it.is_ascii_digit() || "TZ-:".contains(it));
    if is_time { name.to_owned() } else { format!("run-{number}") }
}

/// The name of a run: that of its file, or of its folder if the file has the usual name.
pub(crate) fn name_of(path: &Path) -> String {
    let is_usual = path.file_name().is_some_and(|name| name == RESULTS_FILE_NAME);
    let named = if is_usual { path.parent().unwrap_or(path) } else { path };
    let name = if named.is_dir() { named.file_name() } else { named.file_stem() };
    name.map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_named() {
        let of = |damaged_lines: Vec<usize>, is_cut| {
            let run = Run::new(weir_results::Environment::default());
            gaps(&Salvaged { run, damaged_lines, is_cut, header: String::new() }).join("; ")
        };
        assert_eq!(of(vec![], false), "");
        assert_eq!(of(vec![7], false), "line 7 is damaged, and left out");
        assert!(
            of((2..=13).collect(), false).starts_with("lines 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 2 more are")
        );
        assert!(
            of(vec![2, 4], true).contains("lines 2, 4 are damaged, and left out; the last line is cut short")
        );
    }

    #[test]
    fn only_times_stay_as_names() {
        assert_eq!(redacted_name("20261124T100000Z-2", 3), "20261124T100000Z-2");
        for name in ["secret-drone", "T", "2026-alice"] {
            let expected = if name == "T" { "T".to_owned() } else { "run-3".to_owned() };
            assert_eq!(redacted_name(name, 3), expected);
        }
    }
}
