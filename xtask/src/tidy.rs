//! The rules that no compiler checks, each a function with its own tests.
//!
//! - [`arrows`]: allowed dependencies between crates.
//! - [`code`]: file length, leftovers, what tests may not do.
//! - [`files`]: no files that do not belong in the repository.
//! - [`manifests`]: lints and the minimum Rust version.
//! - [`markdown`]: links, titles, the list of crates.
//! - [`prose`]: words, and the width of comments.
//! - [`wire`]: every submessage has its drawing.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;
use std::process::Command;

use crate::ci::{NotPassed, Outcome};
use crate::environment::Environment;
use crate::process;
use crate::steps;

mod arrows;
mod code;
mod files;
mod manifests;
mod markdown;
mod prose;
mod wire;

/// A file of the repository.
#[derive(Debug, Clone)]
pub(crate) struct File {
    /// Path from the root of the repository, with slashes.
    pub(crate) path: String,
    /// Content; `None` if it is not UTF-8.
    pub(crate) text: Option<String>,
    /// Size in bytes.
    pub(crate) size: usize,
}

/// A violation of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Complaint {
    path: String,
    line: usize,
    what: String,
}

impl File {
    /// Returns the text; empty for a binary file.
    pub(crate) fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// Returns what follows the last dot of the name; empty without one.
    pub(crate) fn extension(&self) -> &str {
        Path::new(&self.path).extension().and_then(OsStr::to_str).unwrap_or_default()
    }

    /// Makes a complaint about a line of this file, or about all of it with line 0.
    pub(crate) fn complain(&self, line: usize, what: impl Into<String>) -> Complaint {
        Complaint { path: self.path.clone(), line, what: what.into() }
    }

    #[cfg(test)]
    fn new(path: &str, text: &str) -> Self {
        Self { path: path.into(), text: Some(text.into()), size: text.len() }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.what),
            line => write!(f, "{}:{line}: {}", self.path, self.what),
        }
    }
}

/// Applies every rule to the repository.
pub(crate) fn step(environment: &Environment) -> Outcome {
    let (files, metadata) = (read(environment)?, arrows::metadata(environment)?);
    let mut complaints = Vec::new();
    complaints.extend(arrows::check(&metadata));
    complaints.extend(markdown::check(&files, &metadata.members));
    complaints.extend(manifests::check(&files));
    complaints.extend(prose::check(&files));
    complaints.extend(wire::check(&files));
    for file in &files {
        complaints.extend(files::check(file));
        complaints.extend(code::check(file));
    }
    if complaints.is_empty() {
        return Ok(format!("{} files", files.len()));
    }
    let lines: Vec<String> = complaints.iter().map(ToString::to_string).collect();
    Err(NotPassed::Failed(lines.join("\n")))
}

/// Reads all files that are committed or would be: Git excludes ignored ones.
fn read(environment: &Environment) -> Result<Vec<File>, String> {
    let mut git = Command::new("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"]).current_dir(&environment.root);
    let listed = process::run(&mut git, steps::PROBE_LIMIT)?;
    let mut paths: Vec<&str> = listed.stdout.split_terminator('\0').collect();
    paths.sort_unstable();
    paths.dedup();
    // A listed file may have been deleted, which is not an error.
    let files = paths.iter().filter_map(|path| {
        let bytes = std::fs::read(environment.root.join(path)).ok()?;
        Some(File { path: (*path).into(), size: bytes.len(), text: String::from_utf8(bytes).ok() })
    });
    Ok(files.collect())
}
