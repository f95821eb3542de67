//! The project's own tasks: `cargo xtask ci` runs every check, `cargo xtask STEP` one of them.
//!
//! - [`ci`]: runs steps and prints the closing line.
//! - [`steps`]: what each step runs, cheapest first.
//! - [`fuzz`], [`instructions`], [`bench_smoke`] and [`peers`]: larger steps.
//! - [`docs`]: the generated pages and pictures of the documentation.
//! - [`pictures`]: screenshots for the guide.
//! - [`aarch64`]: the tests of the libraries on another processor, by QEMU.
//! - [`semver`]: the API of the library beside that of the last release.
//! - [`tidy`]: the rules that no compiler checks.
//! - [`environment`]: which tools are available, and installing them on Debian.
//! - [`process`]: runs a program with its output kept and its time limited; [`watchdog`]: the
//!   limits.
//!
//! It uses no crate of the workspace, so that it also runs when those do not compile.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool prints")]

use std::process::ExitCode;

mod aarch64;
mod bench_smoke;
mod ci;
mod docs;
mod environment;
mod fuzz;
mod instructions;
mod peers;
mod pictures;
mod process;
mod semver;
mod steps;
mod tidy;
mod watchdog;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let wanted: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match wanted.as_slice() {
        ["ci"] => ci::run(steps::ALL),
        // On its own it also builds the engines that take too long for ci.
        ["peers"] => ci::run_one("peers", peers::all),
        ["rust-engines"] => ci::run_one("rust-engines", peers::rust_engines),
        ["sim", options @ ..] => match sim_seeds(options) {
            Ok(seeds) => ci::run_one("sim", |environment| steps::sim(environment, seeds)),
            Err(reason) => refuse(&reason),
        },
        // In ci it takes a minute.
        ["soak", options @ ..] => match soak_minutes(options) {
            Ok(minutes) => ci::run_one("soak", |environment| steps::long_soak(environment, minutes)),
            Err(reason) => refuse(&reason),
        },
        ["aarch64"] => ci::run_one("aarch64", aarch64::test),
        ["semver"] => ci::run_one("semver", semver::check),
        ["seeds"] => ci::run_one("seeds", steps::seeds),
        // By itself it writes what ci only compares.
        ["docs"] => ci::run_one("docs", docs::write),
        ["docs", "--measure"] => ci::run_one("docs", |environment| docs::measure(environment, None, &[])),
        ["docs", "--measure", weir, only @ ..] => {
            ci::run_one("docs", |environment| docs::measure(environment, Some(weir.as_ref()), only))
        }
        ["pictures"] => ci::run_one("pictures", |environment| pictures::take(environment, None)),
        ["pictures", weir] => {
            ci::run_one("pictures", |environment| pictures::take(environment, Some(weir.as_ref())))
        }
        ["help" | "--help" | "-h"] => {
            print!("{}", usage());
            ExitCode::SUCCESS
        }
        names if !names.is_empty() => match ci::select(names) {
            Ok(steps) => ci::run(&steps),
            Err(unknown) => refuse(&format!("unknown step {unknown:?}")),
        },
        _ => refuse("no step given"),
    }
}

/// Returns the number of configurations of the simulated swarm: the value of `--seeds`.
fn sim_seeds(options: &[&str]) -> Result<u32, String> {
    let ["--seeds", count] = options else {
        return Err("sim takes --seeds N".to_owned());
    };
    match count.parse() {
        Ok(seeds @ 1..) => Ok(seeds),
        _ => Err(format!("--seeds must be a number from 1 up, not {count:?}")),
    }
}

/// Returns the length of the soak, the only argument.
fn soak_minutes(options: &[&str]) -> Result<u32, String> {
    match options {
        [] => Ok(SOAK_MINUTES),
        [minutes] => minutes.parse().map_err(|_| format!("soak takes a number of minutes, not {minutes:?}")),
        _ => Err("soak takes a number of minutes".to_owned()),
    }
}

/// Length of a soak on demand, in minutes.
const SOAK_MINUTES: u32 = 30;

fn refuse(reason: &str) -> ExitCode {
    eprint!("xtask: {reason}\n\n{}", usage());
    ExitCode::from(2)
}

fn usage() -> String {
    let mut text = String::from(
        "Usage: cargo xtask ci | STEP... | sim --seeds N | soak [MINUTES] | docs [--measure [WEIR [RESULTS...]]] | \
         pictures [WEIR]\n\n  ci           every step below, in this order\n",
    );
    for step in steps::ALL {
        text += &format!("  {:<12} {}\n", step.name, step.about);
    }
    text +=
        "\n  sim          the simulated swarm with N random configurations, and its search; not part of ci\n";
    text += "  soak         alone: shows its progress, for 30 minutes unless given another number\n";
    text += "  docs         alone: writes the generated pages; with --measure, measures their results first, as root\n";
    text += "  rust-engines exchanges with dust_dds and RustDDS; not part of ci\n";
    text +=
        "  pictures     screenshots for the guide, by Chromium, of the given build of weir; not part of ci\n";
    text += "  seeds        RTI's published scripts between network namespaces, every loop of them; not part of ci\n";
    text += "  aarch64      the tests of the libraries on AArch64, by QEMU, and a build of weir; not part of ci\n";
    text += "  semver       the API of weir-dds, compared with its baseline by cargo-semver-checks; not part of ci\n";
    text + "\nWith CI=true a skipped instructions, tshark, interop, netns or capture step is a failure.\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_swarm_has_at_least_one_seed() {
        assert_eq!(sim_seeds(&["--seeds", "500"]), Ok(500));
        for wrong in [&[][..], &["--seeds"], &["--seeds", "0"], &["--seeds", "many"], &["500"]] {
            assert!(sim_seeds(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_soak_takes_half_an_hour_unless_told_otherwise() {
        assert_eq!((soak_minutes(&[]), soak_minutes(&["5"])), (Ok(30), Ok(5)));
        for wrong in [&["long"][..], &["-1"], &["1", "2"]] {
            assert!(soak_minutes(wrong).is_err(), "{wrong:?}");
        }
    }
}
