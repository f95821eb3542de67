//! What is known of a run.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use weir_results::{RESULTS_FILE_NAME, ResultsError, Run, Salvaged};

/// A run of a results folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEntry {
    /// Eight hexadecimal digits of a hash of the file's first line and the run's name: stays when the folder moves.
    pub id: String,
    /// The results file, relative to the results folder.
    pub path: PathBuf,
    /// The name of the run's folder, or of the file if it has another name than the usual one.
    pub name: String,
    /// Start in UTC, as in RFC 3339.
    pub date: String,
    /// The host; empty if unknown.
    pub host: String,
    /// The host at the other end, if that is another one.
    pub peer: Option<String>,
    /// Version of Weir.
    pub weir_version: String,
    /// Cases that can be read.
    pub cases: u64,
    /// Those of them without figures.
    pub not_measured: u64,
    /// The engines, sorted, separated by spaces.
    pub engines: String,
    /// How far the file can be read.
    pub state: RunState,
}

/// How far a results file can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunState {
    /// Completely.
    Whole,
    /// The last line was cut short: the run is being written, or was killed.
    Cut,
    /// So many lines are damaged, and left out.
    Damaged(u64),
    /// Not at all.
    Unreadable(String),
}

impl RunEntry {
    /// Describes a file, `path` being relative to the results folder.
    pub(crate) fn new(path: &Path, found: &Result<Salvaged, ResultsError>) -> Self {
        let name = name_of(path);
        match found {
            Ok(salvaged) => Self::readable(path, name, salvaged),
            Err(error) => Self {
                id: run_id("", &name),
                path: path.to_owned(),
                name,
                date: String::new(),
                host: String::new(),
                peer: None,
                weir_version: String::new(),
                cases: 0,
                not_measured: 0,
                engines: String::new(),
                state: RunState::Unreadable(error.to_string()),
            },
        }
    }

    fn readable(path: &Path, name: String, salvaged: &Salvaged) -> Self {
        let Run { environment, peer, cases, .. } = &salvaged.run;
        let mut engines: Vec<&str> = cases.iter().map(|case| case.point.engine.as_str()).collect();
        engines.sort_unstable();
        engines.dedup();
        let state = match (salvaged.damaged_lines.len(), salvaged.is_cut) {
            (0, false) => RunState::Whole,
            (0, true) => RunState::Cut,
            (lines, _) => RunState::Damaged(lines as u64),
        };
        Self {
            id: run_id(&salvaged.header, &name),
            path: path.to_owned(),
            name,
            date: environment.date.clone(),
            host: environment.hostname.clone().unwrap_or_default(),
            peer: peer.as_ref().and_then(|peer| peer.hostname.clone()),
            weir_version: environment.weir_version.clone(),
            cases: cases.len() as u64,
            not_measured: cases.iter().filter(|case| case.headline().is_none()).count() as u64,
            engines: engines.join(" "),
            state,
        }
    }
}

fn name_of(path: &Path) -> String {
    let is_usual = path.file_name().is_some_and(|name| name == RESULTS_FILE_NAME);
    let folder = path.parent().filter(|it| is_usual && !it.as_os_str().is_empty());
    let name = folder.map_or_else(|| path.file_stem(), Path::file_name);
    name.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// The identifier of a run, by the first line of its file and its name.
#[must_use]
pub fn run_id(header: &str, name: &str) -> String {
    let hash = Sha256::new().chain_update(header).chain_update([0]).chain_update(name).finalize();
    hash[..4].iter().map(|byte| format!("{byte:02x}")).collect()
}
