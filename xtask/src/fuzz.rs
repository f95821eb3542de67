//! Builds the fuzz targets on the stable toolchain and runs each for a few seconds.
//!
//! `cargo fuzz` is not needed: LLVM's coverage pass is enabled through stable compiler flags. They
//! apply only to the fuzz build, with an explicit target, so that build scripts and procedural
//! macros are not affected. There is no address sanitizer (that needs nightly); the crates under
//! test are safe code, so the targets are panics, overflows, hangs and growth.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::ci::Outcome;
use crate::environment::Environment;
use crate::process;
use crate::steps;

/// Cargo arguments for the workspace of the fuzz targets.
pub(crate) fn manifest<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    steps::with_manifest("fuzz/Cargo.toml", arguments)
}

/// Runs the committed corpus as a normal test of the instrumented build, then every target for [`SECONDS`].
pub(crate) fn step(environment: &Environment) -> Outcome {
    let host = host_triple(environment)?;
    let cargo = |arguments: &[&str]| {
        let mut cargo = environment.cargo(arguments);
        cargo.env("RUSTFLAGS", FLAGS);
        cargo
    };
    let chosen = ["--release", "--locked", "--target", &host];
    steps::tests(cargo, &manifest(&[&["test", "--lib"], &chosen[..]].concat()))?;
    let build = manifest(&[&["build", "--bins"], &chosen[..]].concat());
    process::run(&mut cargo(&build), steps::BUILD_LIMIT)?;
    let folder = environment.target_folder_of("fuzz").join(&host).join("release");
    let targets = target_names(&environment.root);
    process::in_parallel(&targets, |target| fuzz(environment, &folder, target))?;
    Ok(format!("{} targets", targets.len()))
}

/// Runs one target. Its findings go to a scratch folder, so the committed corpus grows only
/// deliberately.
fn fuzz(environment: &Environment, folder: &Path, target: &str) -> Result<(), String> {
    let scratch = folder.join("corpus").join(target);
    std::fs::create_dir_all(&scratch)
        .map_err(|error| format!("{} cannot be made: {error}\n", scratch.display()))?;
    let mut command = Command::new(folder.join(target));
    command
        .arg(format!("-max_total_time={SECONDS}"))
        .args(["-timeout=20", "-rss_limit_mb=512", "-print_final_stats=1"])
        .arg(format!("-artifact_prefix={}/", folder.display()))
        .arg(&scratch)
        .arg(environment.root.join("fuzz/corpus").join(target));
    process::run(&mut command, TARGET_LIMIT).map(drop)
}

/// Returns the names of the targets, which are the files in `fuzz/fuzz_targets`.
fn target_names(root: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(root.join("fuzz/fuzz_targets")).into_iter().flatten().flatten();
    let files = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    let mut names: Vec<String> =
        files.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect();
    names.sort_unstable();
    names
}

fn host_triple(environment: &Environment) -> Result<String, String> {
    let mut rustc = Command::new("rustc");
    let said = process::run(rustc.arg("-vV").current_dir(&environment.root), steps::PROBE_LIMIT)?.stdout;
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc does not report its host\n".to_owned())
}

/// Names a libFuzzer that does not exist, for commands that link nothing: building the real one takes long.
pub(crate) const UNLINKED_LIBFUZZER: (&str, &str) = ("CUSTOM_LIBFUZZER_PATH", "/not-linked/libfuzzer.a");

/// Per target.
const SECONDS: u64 = 10;
/// Time limit for one target including reading its corpus, which is not part of [`SECONDS`].
const TARGET_LIMIT: Duration = Duration::from_secs(300);

/// LLVM's coverage instrumentation for libFuzzer, and every check of a debug build.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Cdebug-assertions=on -Coverflow-checks=on -Ccodegen-units=1";
