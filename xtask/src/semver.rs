//! Whether the API of the library still has everything that it had at the baseline, by cargo-semver-checks.
//!
//! The baseline is a commit, in [`BASELINE`]. It moves with a release, and never to make this pass: a change that
//! breaks programs needs a note on migration in the changelog, and a new version.

use std::time::Duration;

use crate::ci::{NotPassed, Outcome};
use crate::environment::Environment;
use crate::process;

/// Compares the public API of the library with that of the baseline.
pub(crate) fn check(environment: &Environment) -> Outcome {
    let version = ["semver-checks", "--version"];
    if process::run(&mut environment.cargo(&version), VERSION_LIMIT).is_err() {
        let advice = "missing cargo-semver-checks: cargo install cargo-semver-checks --locked";
        return Err(NotPassed::Skipped(advice.to_owned()));
    }
    let path = environment.root.join(BASELINE);
    let baseline = std::fs::read_to_string(&path).map_err(|error| format!("{BASELINE}: {error}"))?;
    let mut cargo =
        environment.cargo(&["semver-checks", "--package", "weir-dds", "--baseline-rev", baseline.trim()]);
    let finished = process::run(&mut cargo, CHECK_LIMIT)?;
    let summary =
        finished.text.lines().rev().find(|line| line.contains("Summary")).unwrap_or_default().trim();
    Ok(format!("since {}: {summary}", baseline.trim()))
}

/// A file with the commit of the baseline.
const BASELINE: &str = "crates/weir-dds/api-baseline.txt";
const VERSION_LIMIT: Duration = Duration::from_secs(60);
/// It documents two versions of the library, with what they depend on.
const CHECK_LIMIT: Duration = Duration::from_secs(3600);
