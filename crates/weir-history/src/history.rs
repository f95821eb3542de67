//! A folder's history, brought up to date.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use thiserror::Error;

use crate::filter::Filter;
use crate::index::Index;
use crate::name::{NameError, RunName};
use crate::point::PointHistory;
use crate::run::{RunEntry, RunState};
use crate::scan;

/// The runs of a folder, as they were when it was opened.
pub struct History {
    folder: PathBuf,
    index: Index,
    state: IndexState,
    is_incomplete: bool,
    /// Held while the index is open, so that no other process uses it.
    _lock: Option<File>,
}

/// A folder whose runs cannot be listed.
#[derive(Debug, Error)]
pub enum HistoryError {
    /// There is no such folder.
    #[error("{} is not a folder of results: measure with `weir bench`, or name the folder", folder.display())]
    NoFolder {
        /// The folder.
        folder: PathBuf,
    },
    /// SQLite failed, even in memory.
    #[error("the index of {} cannot be read: {source}", folder.display())]
    Index {
        /// The folder.
        folder: PathBuf,
        /// The reason.
        source: rusqlite::Error,
    },
}

/// What became of the SQLite file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexState {
    /// It was used.
    Kept,
    /// There was none, or it was damaged or of another version: it was built again.
    Built,
    /// Another process uses it, or it cannot be written: all files were read.
    InMemory,
}

/// The name of the index in its folder. It can be deleted at any time.
const INDEX: &str = ".weir-index.sqlite";
const LOCK: &str = ".weir-index.lock";

impl History {
    /// Reads a results folder: the results files in it, and in the folders in it.
    ///
    /// # Errors
    /// If there is no such folder.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, HistoryError> {
        let folder = folder.as_ref().to_owned();
        if !folder.is_dir() {
            return Err(HistoryError::NoFolder { folder });
        }
        let lock = lock(&folder);
        let (files, is_incomplete) = scan::files(&folder);
        let kept = lock.as_ref().and_then(|_| {
            let mut index = Index::open(&folder.join(INDEX))?;
            index.update(&folder, &files).is_ok().then_some((index, IndexState::Kept))
        });
        let stored = kept.or_else(|| {
            lock.as_ref()?;
            let mut index = created(&folder)?;
            index.update(&folder, &files).is_ok().then_some((index, IndexState::Built))
        });
        let (index, state) = match stored {
            Some(stored) => stored,
            None => {
                let build = || {
                    let mut index = Index::in_memory()?;
                    index.update(&folder, &files)?;
                    Ok(index)
                };
                let index =
                    build().map_err(|source| HistoryError::Index { folder: folder.clone(), source })?;
                (index, IndexState::InMemory)
            }
        };
        Ok(Self { folder, index, state, is_incomplete, _lock: lock })
    }

    /// Returns the folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns what became of the SQLite file.
    #[must_use]
    pub const fn state(&self) -> IndexState {
        self.state
    }

    /// Returns whether files were left out because there are too many.
    #[must_use]
    pub const fn is_incomplete(&self) -> bool {
        self.is_incomplete
    }

    /// Returns the runs that a filter takes, in order of time.
    ///
    /// # Errors
    /// If the index is damaged meanwhile.
    pub fn runs(&self, filter: &Filter) -> Result<Vec<RunEntry>, HistoryError> {
        self.index.runs(filter).map_err(|source| self.failed(source))
    }

    /// Returns the points that a filter takes, each with its runs in order of time.
    ///
    /// # Errors
    /// If the index is damaged meanwhile.
    pub fn points(&self, filter: &Filter) -> Result<Vec<PointHistory>, HistoryError> {
        self.index.points(filter).map_err(|source| self.failed(source))
    }

    /// Returns the run of a name.
    ///
    /// # Errors
    /// If no run has it, or several have.
    pub fn find(&self, name: &RunName) -> Result<RunEntry, NameError> {
        let runs = self.runs(&Filter::default())?;
        let readable: Vec<RunEntry> =
            runs.into_iter().filter(|run| !matches!(run.state, RunState::Unreadable(_))).collect();
        name.find(&readable, &self.folder)
    }

    fn failed(&self, source: rusqlite::Error) -> HistoryError {
        HistoryError::Index { folder: self.folder.clone(), source }
    }
}

/// Takes the index for this process; `None`: another process has it, or the folder cannot be written.
fn lock(folder: &Path) -> Option<File> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(folder.join(LOCK)).ok()?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(file)
}

/// Replaces the index by an empty one. Only for the holder of the lock.
fn created(folder: &Path) -> Option<Index> {
    let path = folder.join(INDEX);
    for suffix in ["", "-journal", "-wal", "-shm"] {
        let file = folder.join(format!("{INDEX}{suffix}"));
        if file.symlink_metadata().is_ok() {
            fs::remove_file(&file).ok()?;
        }
    }
    Index::create(&path).ok()
}
