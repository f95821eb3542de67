//! Instructions per sample, counted by callgrind and compared with the committed numbers.
//!
//! A count does not depend on other load, so a check can fail on five percent more. `WEIR_BLESS=1
//! cargo xtask instructions` updates the numbers.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::ci::{NotPassed, Outcome};
use crate::environment::{Environment, Tool};
use crate::process;
use crate::steps;

/// Counts every case twice, and compares.
pub(crate) fn step(environment: &Environment) -> Outcome {
    environment.require(&VALGRIND).map_err(NotPassed::Skipped)?;
    let path = environment.root.join(BASELINE);
    let counts = count_all(environment)?;
    if std::env::var_os("WEIR_BLESS").is_some() {
        std::fs::write(&path, baseline(&compiler(environment), &counts))
            .map_err(|error| format!("{} cannot be written: {error}\n", path.display()))?;
        return Ok(format!("written to {BASELINE}"));
    }
    let text = std::fs::read_to_string(&path)
        .map_err(|error| format!("{} cannot be read: {error}\n", path.display()))?;
    note_compiler(&text, &compiler(environment), judge(&parse_baseline(&text), &counts))
}

/// A case and its instructions per sample.
type Count = (String, f64);

fn count_all(environment: &Environment) -> Result<Vec<Count>, String> {
    let program = build(environment)?;
    let listed = process::run(&mut Command::new(&program), steps::PROGRAM_LIMIT)?;
    let cases: Vec<_> = cases(&listed.stdout).collect();
    process::in_parallel(&cases, |(case, function)| {
        Ok(((*case).to_owned(), count_twice(&program, case, function)?))
    })
}

/// Parses the program's list of cases, each with the function inside of which it is counted.
fn cases(listed: &str) -> impl Iterator<Item = (&str, &str)> {
    listed.lines().filter_map(|line| line.split_once(' '))
}

/// Builds the optimised program with the cases.
fn build(environment: &Environment) -> Result<PathBuf, String> {
    let arguments = ["build", "--release", "--locked", "--package", "weir-dds", "--bench", "instructions"];
    let mut cargo = environment.cargo(&[&arguments[..], &["--message-format", "json"]].concat());
    // Otherwise rustix looks for the kernel's vDSO, which valgrind hides: a crash.
    let built = process::run(cargo.env("RUSTFLAGS", "--cfg rustix_use_libc"), steps::BUILD_LIMIT)?;
    process::executable(&built.stdout, "instructions")
}

fn count_twice(program: &Path, case: &str, function: &str) -> Result<f64, String> {
    let (first, second) = (count(program, case, function)?, count(program, case, function)?);
    if change(first, second).abs() > REPEATABLE {
        return Err(format!(
            "{case} took {first:.1} instructions per sample, then {second:.1}: a case must give the same count every \
             time\n"
        ));
    }
    Ok(first)
}

fn count(program: &Path, case: &str, function: &str) -> Result<f64, String> {
    let mut valgrind = Command::new("valgrind");
    // Environment variables move the stack.
    valgrind
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(format!("--toggle-collect={function}"))
        .arg(program)
        .arg(case);
    let finished = process::run(&mut valgrind, steps::PROGRAM_LIMIT)?;
    let samples = finished.stdout.trim().parse::<u32>().ok();
    match samples.zip(collected(&finished.text)) {
        Some((samples @ 1.., instructions @ 1..)) => Ok(instructions as f64 / f64::from(samples)),
        _ => Err(finished.text),
    }
}

/// Parses the number after `Collected :` in callgrind's output.
fn collected(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.contains("Collected :"))?;
    line.rsplit(' ').next()?.parse().ok()
}

/// Returns the compiler's version, e.g. `rustc 1.88.0 (6b00bc388 2025-06-23)`.
fn compiler(environment: &Environment) -> String {
    let mut rustc = Command::new("rustc");
    let said = process::run(rustc.arg("--version").current_dir(&environment.root), steps::PROBE_LIMIT);
    said.map(|said| said.stdout.trim().to_owned()).unwrap_or_default()
}

/// Adds to a failure that the compiler changed: another one generates other instructions.
fn note_compiler(baseline: &str, compiler: &str, outcome: Outcome) -> Outcome {
    let before = baseline.lines().find_map(|line| line.strip_prefix(COMPILER_HEAD)).unwrap_or("unknown");
    outcome.map_err(|why| match why {
        NotPassed::Failed(text) if before != compiler => {
            NotPassed::Failed(format!("{text}the compiler was {before}, and is {compiler}\n"))
        }
        why => why,
    })
}

fn baseline(compiler: &str, counts: &[Count]) -> String {
    let lines = counts.iter().map(|(case, count)| format!("{case:<24}{count:>10.2}\n"));
    format!("{BASELINE_HEAD}{COMPILER_HEAD}{compiler}\n{}", lines.collect::<String>())
}

fn parse_baseline(text: &str) -> Vec<Count> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| {
            let (case, count) = line.split_once(' ')?;
            Some((case.to_owned(), count.trim().parse().ok()?))
        })
        .collect()
}

/// Fails on more instructions than allowed, and if the lists of cases differ.
fn judge(baseline: &[Count], counts: &[Count]) -> Outcome {
    let find = |list: &[Count], wanted: &str| list.iter().find(|(case, _)| case == wanted).map(|it| it.1);
    let mut faults = String::new();
    let mut fewer = Vec::new();
    let mut largest: f64 = 0.0;
    for (case, count) in counts {
        let Some(before) = find(baseline, case) else {
            faults += &format!("{case}: not among the committed numbers\n");
            continue;
        };
        let change = change(before, *count);
        largest = largest.max(change);
        if change > ALLOWED {
            faults += &format!("{case}: {before:.1} instructions per sample before, {count:.1} now: ");
            faults += &format!("{:+.1} %, allowed are {:.0} %\n", change * 100.0, ALLOWED * 100.0);
        } else if change < -ALLOWED {
            fewer.push(format!("{case} {:.0} %", change * 100.0));
        }
    }
    for (case, _) in baseline.iter().filter(|(case, _)| find(counts, case).is_none()) {
        faults += &format!("{case}: among the committed numbers, but not a case\n");
    }
    if !faults.is_empty() {
        faults += "to accept the change: WEIR_BLESS=1 cargo xtask instructions\n";
        return Err(NotPassed::Failed(faults));
    }
    let mut text = format!("{} cases, at most {:+.1} %", counts.len(), largest * 100.0);
    if !fewer.is_empty() {
        text += &format!("; fewer than committed, update with WEIR_BLESS=1: {}", fewer.join(", "));
    }
    Ok(text)
}

fn change(before: f64, now: f64) -> f64 {
    now / before - 1.0
}

const VALGRIND: [Tool; 1] = [Tool { program: "valgrind", package: "valgrind" }];
const BASELINE: &str = "crates/weir-dds/benches/instructions/baseline.txt";
const BASELINE_HEAD: &str = "\
# Instructions per sample, counted by callgrind. `cargo xtask instructions` compares with them and fails on 5 % more;
# `WEIR_BLESS=1 cargo xtask instructions` writes them anew.
";
const COMPILER_HEAD: &str = "# compiler: ";
/// Maximum increase, as a share.
const ALLOWED: f64 = 0.05;
/// Maximum difference between two counts of the same program.
const REPEATABLE: f64 = 0.001;

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(list: &[(&str, f64)]) -> Vec<Count> {
        list.iter().map(|(case, count)| ((*case).to_owned(), *count)).collect()
    }

    #[test]
    fn five_percent_more_are_allowed_and_no_more() {
        let before = counts(&[("encode", 100.0), ("write", 1000.0)]);
        let passed = judge(&before, &counts(&[("encode", 104.9), ("write", 1000.0)]));
        assert_eq!(passed, Ok("2 cases, at most +4.9 %".into()));
        let failed = judge(&before, &counts(&[("encode", 100.0), ("write", 1051.0)]));
        let Err(NotPassed::Failed(text)) = failed else { panic!("{failed:?}") };
        assert!(
            text.starts_with("write: 1000.0 instructions per sample before, 1051.0 now: +5.1 %"),
            "{text}"
        );
    }

    #[test]
    fn many_fewer_instructions_are_told() {
        let passed = judge(&counts(&[("encode", 100.0)]), &counts(&[("encode", 80.0)]));
        let text = passed.unwrap();
        assert!(text.contains("encode -20 %"), "{text}");
    }

    #[test]
    fn new_and_missing_cases_are_failures() {
        let (one, two) = (counts(&[("a", 1.0)]), counts(&[("a", 1.0), ("b", 1.0)]));
        assert!(
            matches!(judge(&one, &two), Err(NotPassed::Failed(text)) if text.starts_with("b: not among"))
        );
        assert!(matches!(judge(&two, &one), Err(NotPassed::Failed(text)) if text.starts_with("b: among")));
    }

    #[test]
    fn a_baseline_that_was_written_is_read_again() {
        let list = counts(&[("encode-32", 270.0), ("key-receive-100000", 1316.52)]);
        assert_eq!(parse_baseline(&baseline("rustc 1", &list)), list);
    }

    #[test]
    fn a_failure_tells_of_another_compiler() {
        let text = baseline("rustc 1", &[]);
        let slow = || Err(NotPassed::Failed("slow\n".into()));
        let noted = |compiler| note_compiler(&text, compiler, slow());
        assert_eq!(noted("rustc 1"), slow());
        assert!(
            matches!(noted("rustc 2"), Err(NotPassed::Failed(text)) if text.contains("was rustc 1, and is rustc 2"))
        );
        let passed = Ok(String::new());
        assert_eq!(note_compiler(&text, "rustc 2", passed.clone()), passed);
    }

    #[test]
    fn each_case_is_listed_with_the_function_that_it_is_counted_in() {
        let listed = "encode-32 instructions::measured*\nengine-receive-32 *Driver*::receive_batch*\n";
        let expected =
            [("encode-32", "instructions::measured*"), ("engine-receive-32", "*Driver*::receive_batch*")];
        assert_eq!(cases(listed).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_callgrind_says_is_understood() {
        assert_eq!(collected("==1== Events    : Ir\n==1== Collected : 5400030\n"), Some(5_400_030));
        assert_eq!(collected("==1== Process terminating"), None);
    }
}
