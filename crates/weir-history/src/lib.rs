//! All runs of a results folder: which there are, how their cases changed, and their names.
//!
//! The results files are the truth. What is read of them is kept in an SQLite file beside them, so that only new and
//! changed files are read. That index can be deleted at any time: an index that is missing, damaged or of another
//! version is built again. It is never needed: where it cannot be written, or another process uses it, an index in
//! memory takes its place.
//!
//! - `history`: a folder's history, brought up to date; `index`: the SQLite file; `scan`: the files of a folder
//! - `run`: what is known of a run; `point`: what its cases measured; `filter`: choosing among them
//! - `name`: names of runs, such as `@latest`

mod filter;
mod history;
mod index;
mod name;
mod point;
mod run;
mod scan;

pub use filter::Filter;
pub use history::{History, HistoryError, IndexState};
pub use name::{NameError, RunName};
pub use point::{PointHistory, PointKey, PointOfRun, conditions};
pub use run::{RunEntry, RunState, run_id};
