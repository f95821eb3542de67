//! Runs on disk: `results.jsonl`, a header line and then one finished case per line.
//!
//! A line is written with one call as soon as its case is finished, so a killed run keeps its
//! finished cases. A truncated last line is ignored when the file is read.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::run::{Run, SCHEMA_VERSION};
use crate::{Case, Environment, HostRecord};

/// Name of the results file in its folder.
pub const RESULTS_FILE_NAME: &str = "results.jsonl";

/// Returns what helps against an error of a write.
fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            "make room there"
        }
        _ => "make it writable",
    }
}

/// A results file that cannot be written or read.
#[derive(Debug, Error)]
pub enum ResultsError {
    /// The folder or the file cannot be written.
    #[error("cannot {what} {}: {source}; choose another folder or {}", path.display(), remedy(source))]
    Write {
        /// `create the results folder` or `write`.
        what: &'static str,
        /// The folder or the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The folder already contains a run.
    #[error("{} already contains a run; choose another folder, or move the file away", path.display())]
    AlreadyExists {
        /// The file.
        path: PathBuf,
    },
    /// Another process writes the run.
    #[error("another process writes {}; wait for its end, or choose another folder", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be read.
    #[error("can't read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is damaged or not a results file.
    #[error("{}, line {line}: not a line of results: {source}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The parser's error.
        source: serde_json::Error,
    },
    /// The file has another version of the format.
    #[error("{}: results of schema {found}, but this version of Weir reads schema {SCHEMA_VERSION}; use the version that wrote it", path.display())]
    Schema {
        /// The file.
        path: PathBuf,
        /// The version in the file.
        found: u64,
    },
}

/// Writes the cases of a run to a folder as they finish.
#[derive(Debug)]
pub struct ResultsWriter {
    file: File,
    path: PathBuf,
}

impl ResultsWriter {
    /// Creates the folder and starts a run in it, so that an unwritable folder fails before the
    /// measurement. `peer` is the other end, if that is another machine or an existing process.
    ///
    /// # Errors
    /// If the folder or file cannot be created, or the folder already contains a run.
    pub fn create(
        dir: impl AsRef<Path>,
        environment: &Environment,
        peer: Option<&Environment>,
    ) -> Result<Self, ResultsError> {
        Self::create_for_hosts(dir, environment, peer, &[])
    }

    /// As [`ResultsWriter::create`], for a run whose ends are on these hosts.
    ///
    /// # Errors
    /// As [`ResultsWriter::create`].
    pub fn create_for_hosts(
        dir: impl AsRef<Path>,
        environment: &Environment,
        peer: Option<&Environment>,
        hosts: &[HostRecord],
    ) -> Result<Self, ResultsError> {
        let dir = dir.as_ref();
        fs::create_dir_all(dir).map_err(|source| ResultsError::Write {
            what: "create the results folder",
            path: dir.to_owned(),
            source,
        })?;
        let path = dir.join(RESULTS_FILE_NAME);
        let file = OpenOptions::new().append(true).create_new(true).open(&path).map_err(|source| {
            if source.kind() == io::ErrorKind::AlreadyExists {
                ResultsError::AlreadyExists { path: path.clone() }
            } else {
                ResultsError::Write { what: "write", path: path.clone(), source }
            }
        })?;
        let mut writer = Self::locked(file, path)?;
        let (environment, peer, hosts) = (environment.clone(), peer.cloned(), hosts.to_vec());
        writer.write_line(&Header { schema: SCHEMA_VERSION, environment, peer, hosts })?;
        Ok(writer)
    }

    /// Opens an interrupted run to continue it, and returns it with its cases. A truncated last line is removed; one
    /// that lacks only its end is completed.
    ///
    /// # Errors
    /// If the file cannot be read or written, or is not a results file.
    pub fn resume(dir: impl AsRef<Path>) -> Result<(Self, Run), ResultsError> {
        let path = dir.as_ref().join(RESULTS_FILE_NAME);
        let unreadable = |source| ResultsError::Read { path: path.clone(), source };
        let unwritable = |source| ResultsError::Write { what: "write", path: path.clone(), source };
        let mut options = OpenOptions::new();
        options.append(true).read(true);
        let file = match options.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(unreadable(error)),
            opened => opened.map_err(unwritable)?,
        };
        let writer = Self::locked(file, path.clone())?;
        let text = read(&path).map_err(unreadable)?;
        let (run, complete) = parse_lines(&text, &path)?;
        writer.file.set_len(complete as u64).map_err(unwritable)?;
        if !text[..complete].ends_with('\n') {
            (&writer.file).write_all(b"\n").map_err(unwritable)?;
        }
        Ok((writer, run))
    }

    /// Takes the file for this process, as long as it is open: two that write would mix their cases.
    fn locked(file: File, path: PathBuf) -> Result<Self, ResultsError> {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => Err(ResultsError::InUse { path }),
            // Not all file systems have locks.
            Ok(()) | Err(TryLockError::Error(_)) => Ok(Self { file, path }),
        }
    }

    /// Appends one finished case and passes it to the system before returning.
    ///
    /// # Errors
    /// If the file cannot be written, e.g. because the disk is full.
    pub fn append(&mut self, case: &Case) -> Result<(), ResultsError> {
        self.write_line(case)
    }

    /// Returns the path of the results file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn write_line(&mut self, value: &impl Serialize) -> Result<(), ResultsError> {
        let write = || -> io::Result<()> {
            let mut line = serde_json::to_vec(value)?;
            line.push(b'\n');
            (&self.file).write_all(&line)
        };
        write().map_err(|source| ResultsError::Write { what: "write", path: self.path.clone(), source })
    }
}

/// Returns whether a process is writing a run to this file.
#[must_use]
pub fn is_being_written(path: impl AsRef<Path>) -> bool {
    let file = File::open(path);
    file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

impl Run {
    /// Reads a run: a `results.jsonl`, a folder with one, or a file with the output of `--format
    /// json`.
    ///
    /// # Errors
    /// If the file cannot be read, is not a results file, or has another schema version.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ResultsError> {
        let mut path = path.as_ref().to_owned();
        if path.is_dir() {
            path.push(RESULTS_FILE_NAME);
        }
        let text = read(&path).map_err(|source| ResultsError::Read { path: path.clone(), source })?;
        Self::parse(&text, &path)
    }

    /// Reads a run from text, in either form; `path` is for messages only.
    ///
    /// # Errors
    /// If the text is not results, or has another schema version.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ResultsError> {
        if let Ok(document) = serde_json::from_str::<serde_json::Value>(text)
            && document.get("cases").is_some()
        {
            check_schema(&document, path)?;
            return serde_json::from_value(document).map_err(|source| ResultsError::Parse {
                path: path.to_owned(),
                line: 1,
                source,
            });
        }
        parse_lines(text, path).map(|(run, _)| run)
    }
}

/// Reads a file of text. One that was cut within a character ends before it.
fn read(path: &Path) -> io::Result<String> {
    String::from_utf8(fs::read(path)?).or_else(|error| {
        let cause = error.utf8_error();
        let mut bytes = error.into_bytes();
        if cause.error_len().is_none() {
            bytes.truncate(cause.valid_up_to());
        }
        String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    })
}

impl Run {
    /// Returns the run as the text of a `results.jsonl`.
    ///
    /// # Panics
    /// Never: a run can always be expressed in JSON.
    #[must_use]
    pub fn to_lines(&self) -> String {
        let Self { schema, environment, peer, hosts, cases: _ } = self.clone();
        let header = Header { schema, environment, peer, hosts };
        let mut text = String::new();
        let mut push = |line: Result<String, serde_json::Error>| {
            text.push_str(&line.expect("a run has text keys only and can be written as JSON"));
            text.push('\n');
        };
        push(serde_json::to_string(&header));
        self.cases.iter().for_each(|case| push(serde_json::to_string(case)));
        text
    }
}

/// The first line of a results file.
#[derive(Serialize, Deserialize)]
pub(crate) struct Header {
    schema: u32,
    environment: Environment,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    peer: Option<Environment>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hosts: Vec<HostRecord>,
}

impl Header {
    /// Returns the run without cases.
    pub(crate) fn into_run(self) -> Run {
        let Self { schema: _, environment, peer, hosts } = self;
        Run { peer, hosts, ..Run::new(environment) }
    }
}

/// Returns the run, and how many bytes of the text it takes: all, or those before a truncated last line.
fn parse_lines(text: &str, path: &Path) -> Result<(Run, usize), ResultsError> {
    let parse_error =
        |index: usize, source| ResultsError::Parse { path: path.to_owned(), line: index + 1, source };
    let mut lines = text.split_inclusive('\n').enumerate();
    let first = lines.next().map_or("", |(_, line)| line);
    let header: serde_json::Value = serde_json::from_str(first).map_err(|source| parse_error(0, source))?;
    check_schema(&header, path)?;
    let header: Header = serde_json::from_value(header).map_err(|source| parse_error(0, source))?;
    let (mut run, mut complete) = (header.into_run(), first.len());
    for (index, line) in lines {
        if line.trim().is_empty() {
            complete += line.len();
            continue;
        }
        match serde_json::from_str(line) {
            Ok(case) => run.cases.push(case),
            // The run was killed while this line was being written.
            Err(_) if !line.ends_with('\n') => break,
            Err(source) => return Err(parse_error(index, source)),
        }
        complete += line.len();
    }
    Ok((run, complete))
}

/// Checks the version first, so that a newer file is reported as such and not as damaged.
pub(crate) fn check_schema(value: &serde_json::Value, path: &Path) -> Result<(), ResultsError> {
    match value.get("schema").and_then(serde_json::Value::as_u64) {
        Some(found) if found != u64::from(SCHEMA_VERSION) => {
            Err(ResultsError::Schema { path: path.to_owned(), found })
        }
        _ => Ok(()),
    }
}
