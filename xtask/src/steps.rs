//! The steps, cheapest first.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::ci::{NotPassed, Outcome, Step};
use crate::environment::{Environment, Tool, missing};
use crate::{bench_smoke, docs, fuzz, instructions, peers, process, tidy};

/// Every step, in the order in which `ci` starts them.
pub(crate) const ALL: &[Step] = &[
    step("fmt", "formatting of all code, without changing it", fmt),
    step("tidy", "the project's own rules", tidy::step),
    step("clippy", "lints of all targets, fuzz targets and peers/ without engines included", clippy),
    step("no_std", "the protocol crates without the standard library", no_std),
    step("embedded", "an exchange of a host of smoltcp with the engine, over a TAP device (root)", embedded),
    step("doc", "documentation, private items included, without warnings", doc),
    // Its programs share nothing with those of the tests, half of whose time is waiting.
    beside_others("fuzz", "every fuzz target, ten seconds each", fuzz::step),
    step("test", "all tests that need nothing but Cargo", test),
    step("docs", "generated pages against the committed results (alone: writes them)", docs::check),
    step(
        "harness",
        "unit tests of the crate for exchanges with other implementations, which need none",
        harness,
    ),
    // Built beside steps that mostly wait.
    beside_others(
        "peers",
        "lints and tests of peers/ with other engines, installing what they need; a session of each (alone: of all)",
        peers::step,
    ),
    required(
        "instructions",
        "instructions per sample against the committed numbers (valgrind); WEIR_BLESS=1 updates them",
        instructions::step,
    ),
    step("e2e", "a short `weir bench` on the loopback interface, with its output checked", bench_smoke::step),
    beside_others(
        "soak",
        "a minute of simulated faults, with memory flat and nothing lost (alone: N minutes)",
        soak,
    ),
    required("tshark", "our packets checked by Wireshark's dissector (tshark)", tshark),
    required("interop", "exchanges with Cyclone DDS (cyclonedds-dev, cyclonedds-tools)", interop),
    step("fastdds", "exchanges with Fast DDS 2 (libfastrtps-dev)", fastdds),
    required("netns", "network namespaces with packet loss (root, iproute2, nftables, ethtool)", netns),
    required(
        "capture",
        "exchanges with packet loss, checked by Wireshark's dissector (the last three together)",
        capture,
    ),
];

const fn step(name: &'static str, about: &'static str, run: fn(&Environment) -> Outcome) -> Step {
    Step { name, about, is_beside_others: false, is_required_in_ci: false, run }
}

const fn beside_others(name: &'static str, about: &'static str, run: fn(&Environment) -> Outcome) -> Step {
    Step { is_beside_others: true, ..step(name, about, run) }
}

const fn required(name: &'static str, about: &'static str, run: fn(&Environment) -> Outcome) -> Step {
    Step { is_required_in_ci: true, ..step(name, about, run) }
}

fn fmt(environment: &Environment) -> Outcome {
    let others = [fuzz::manifest(&FMT), peers::manifest(&FMT), with_manifest(NO_STD, &FMT)];
    checks(environment, &[&[FMT.to_vec(), with_manifest(EMBEDDED, &FMT)][..], &others].concat())
}

fn clippy(environment: &Environment) -> Outcome {
    let arguments =
        ["clippy", "--quiet", "--workspace", "--all-targets", "--locked", "--", "--deny", "warnings"];
    let others = [fuzz::manifest(&arguments), peers::manifest(&arguments), with_manifest(NO_STD, &arguments)];
    checks(environment, &[&[arguments.to_vec(), with_manifest(EMBEDDED, &arguments)][..], &others].concat())
}

/// Builds a crate that does not compile if a dependency links the standard library, and runs its test, which does, with
/// the protocol crates as they are without it.
fn no_std(environment: &Environment) -> Outcome {
    checks(environment, &[with_manifest(NO_STD, &["build", "--quiet", "--locked"])])?;
    tests(|arguments| environment.cargo(arguments), &with_manifest(NO_STD, &["test", "--lib", "--locked"]))
}

/// Skips itself where the machine has no network namespaces.
fn embedded(environment: &Environment) -> Outcome {
    let arguments = with_manifest(EMBEDDED, &["test", "--locked"]);
    tests(|arguments| environment.cargo(arguments), &arguments)
}

fn doc(environment: &Environment) -> Outcome {
    let arguments = ["doc", "--quiet", "--workspace", "--no-deps", "--document-private-items", "--locked"];
    checks(environment, &[arguments.to_vec(), peers::manifest(&arguments)])
}

/// Tests in network namespaces, and those with an sshd or Slurm inside, skip themselves only if the machine does not
/// support them.
fn test(environment: &Environment) -> Outcome {
    let arguments = [&TESTS[..], &["--no-fail-fast", "--", TEST_THREADS]].concat();
    let has_namespaces = namespaces(environment).is_ok();
    let has_sshd = has_namespaces && has_sshd(environment);
    let mut required = Vec::new();
    required.extend(has_namespaces.then_some("WEIR_REQUIRE_NETNS"));
    required.extend(has_sshd.then_some("WEIR_REQUIRE_SSHD"));
    tests(requiring(environment, &required), &arguments)
}

/// Returns whether there is an sshd. Only CI installs one: on other machines, its package would start a server.
fn has_sshd(environment: &Environment) -> bool {
    if environment.is_ci { environment.require(&SSHD).is_ok() } else { missing(&SSHD).is_empty() }
}

fn harness(environment: &Environment) -> Outcome {
    let build = ["test", "--no-run", "--workspace", "--lib", "--locked", "--message-format", "json"];
    let built = process::run(&mut environment.cargo(&build), BUILD_LIMIT)?;
    let program = process::executable(&built.stdout, "weir_interop")?;
    let finished = process::run_tests(&mut Command::new(program), TEST_LIMIT)?;
    Ok(format!("{} tests", passed_tests(&finished.text)))
}

/// Runs the simulated swarm with this many random configurations, and the search of `lives`, as deep
/// as `WEIR_SIM_DEPTH` says. A failure names its seed, or its path, which reproduces it.
pub(crate) fn sim(environment: &Environment, seeds: u32) -> Outcome {
    let arguments = ["test", "--release", "--locked", "--package", "weir-rtps", "--test", "sim"];
    let arguments = [&arguments[..], &["--", "swarm", "lives"]].concat();
    let cargo = |arguments: &[&str]| {
        let mut cargo = environment.cargo(arguments);
        cargo.env("WEIR_SIM_SEEDS", seeds.to_string());
        cargo
    };
    // One test runs all configurations.
    tests_within(cargo, &arguments, TEST_LIMIT.max(SEED_LIMIT.saturating_mul(seeds)))
}

/// Runs participants on a simulated network for a minute, with faults of all kinds.
fn soak(environment: &Environment) -> Outcome {
    let mut cargo = soak_for(1, environment);
    process::run(cargo.arg("--no-run"), BUILD_LIMIT)?;
    let finished = process::run_tests(soak_for(1, environment).args(["--", "--nocapture"]), TEST_LIMIT)?;
    let summary = finished.stdout.lines().rfind(|line| line.contains(" rounds, "));
    Ok(summary.unwrap_or_default().trim().to_owned())
}

/// The same for this time. Shows its progress.
pub(crate) fn long_soak(environment: &Environment, minutes: u32) -> Outcome {
    let status = soak_for(minutes, environment).args(["--", "--nocapture"]).status();
    let is_passed = status.is_ok_and(|status| status.success());
    if is_passed { Ok(format!("{minutes} minutes")) } else { Err(NotPassed::Failed("see above".to_owned())) }
}

/// The `cargo test` of the soak, without options of the test binary. It is built with overflow checks.
fn soak_for(minutes: u32, environment: &Environment) -> Command {
    let mut cargo = environment.cargo(&["test", "--locked", "--workspace", "--test", "soak"]);
    cargo.env("WEIR_SOAK_MINUTES", minutes.to_string());
    cargo
}

/// Runs RTI's published scripts, with all of their loops, one second per run.
pub(crate) fn seeds(environment: &Environment) -> Outcome {
    environment.require(&NETNS).map_err(NotPassed::Skipped)?;
    let arguments = ["test", "--release", "--locked", "--package", "weir-cli", "--test", "it", "published_"];
    let arguments = [&arguments[..], &["--", "--test-threads=1"]].concat();
    let cargo = requiring(environment, &["WEIR_REQUIRE_NETNS", "WEIR_ALL_SCRIPTS"]);
    tests_within(cargo, &arguments, SCRIPTS_LIMIT)
}

fn tshark(environment: &Environment) -> Outcome {
    outside(environment, &["tshark"], &["WEIR_REQUIRE_TSHARK"], &TSHARK)
}

fn interop(environment: &Environment) -> Outcome {
    // All exchanges except those of the steps below.
    let test = [
        "exchange",
        "--",
        THREADS,
        "--skip",
        "fastdds::",
        "--skip",
        "captured::",
        "--skip",
        "rust_engines::",
    ];
    outside(environment, &test, &["WEIR_REQUIRE_CYCLONEDDS"], &CYCLONEDDS)
}

fn fastdds(environment: &Environment) -> Outcome {
    outside(environment, &["exchange", "fastdds::", "--", THREADS], &["WEIR_REQUIRE_FASTDDS"], &FASTDDS)
}

fn netns(environment: &Environment) -> Outcome {
    let exchanges = in_namespaces(environment, &["netns"], &["WEIR_REQUIRE_NETNS"], &NETNS)?;
    // Losses made at one place each, which the counters have to find.
    let found = outside(environment, &["loss"], &["WEIR_REQUIRE_NETNS"], &NETNS)?;
    Ok(format!("{exchanges}, {found} of losses"))
}

fn capture(environment: &Environment) -> Outcome {
    let variables = ["WEIR_REQUIRE_NETNS", "WEIR_REQUIRE_TSHARK", "WEIR_REQUIRE_CYCLONEDDS"];
    let tools = [&TSHARK[..], &CYCLONEDDS, &NETNS].concat();
    in_namespaces(environment, &["exchange", "captured::"], &variables, &tools)
}

/// [`outside`] for tests that make network namespaces.
fn in_namespaces(environment: &Environment, test: &[&str], variables: &[&str], tools: &[Tool]) -> Outcome {
    namespaces(environment).map_err(NotPassed::Skipped)?;
    outside(environment, test, variables, tools)
}

/// Returns why this process cannot create and configure network namespaces, if so.
fn namespaces(environment: &Environment) -> Result<(), String> {
    environment.require(&NETNS)?;
    let probe = process::run(Command::new("unshare").args(["--net", "true"]), PROBE_LIMIT);
    let refused = "network namespaces are refused here: run as root, with CAP_SYS_ADMIN";
    probe.map(drop).map_err(|_| refused.to_owned())
}

/// Runs the test binaries of this name, or those of their tests whose names contain the second word. They may not
/// skip themselves.
fn outside(environment: &Environment, test: &[&str], variables: &[&str], tools: &[Tool]) -> Outcome {
    environment.require(tools).map_err(NotPassed::Skipped)?;
    let arguments = ["test", "--workspace", "--locked", "--no-fail-fast", "--test"];
    tests(requiring(environment, variables), &[&arguments, test].concat())
}

const TSHARK: [Tool; 1] = [Tool { program: "tshark", package: "tshark" }];

pub(crate) const CYCLONEDDS: [Tool; 4] = [
    Tool { program: "/usr/include/dds/dds.h", package: "cyclonedds-dev" },
    Tool { program: "idlc", package: "cyclonedds-tools" },
    Tool { program: "ddsperf", package: "cyclonedds-tools" },
    Tool { program: "cc", package: "gcc" },
];

pub(crate) const FASTDDS: [Tool; 3] = [
    Tool { program: "/usr/include/fastdds/dds/domain/DomainParticipant.hpp", package: "libfastrtps-dev" },
    Tool { program: "/usr/include/fastcdr/Cdr.h", package: "libfastcdr-dev" },
    Tool { program: "g++", package: "g++" },
];

const NETNS: [Tool; 5] = [
    Tool { program: "ip", package: "iproute2" },
    Tool { program: "tc", package: "iproute2" },
    Tool { program: "nft", package: "nftables" },
    Tool { program: "ethtool", package: "ethtool" },
    Tool { program: "unshare", package: "util-linux" },
];

const SSHD: [Tool; 2] = [
    Tool { program: "ssh", package: "openssh-client" },
    Tool { program: "/usr/sbin/sshd", package: "openssh-server" },
];

/// Runs these cargo commands, which link nothing, until one fails; warnings of rustdoc are failures.
fn checks(environment: &Environment, commands: &[Vec<&str>]) -> Outcome {
    let (name, libfuzzer) = fuzz::UNLINKED_LIBFUZZER;
    for arguments in commands {
        let mut cargo = environment.cargo(arguments);
        process::run(cargo.env("RUSTDOCFLAGS", "--deny warnings").env(name, libfuzzer), BUILD_LIMIT)?;
    }
    Ok(String::new())
}

/// Cargo arguments for another workspace: the subcommand, then its manifest, then the rest.
pub(crate) fn with_manifest<'a>(manifest: &'a str, arguments: &[&'a str]) -> Vec<&'a str> {
    let (subcommand, rest) = arguments.split_at(1);
    [subcommand, &["--manifest-path", manifest], rest].concat()
}

/// `cargo` with these variables set to `1`.
fn requiring(environment: &Environment, variables: &[&str]) -> impl Fn(&[&str]) -> Command {
    move |arguments| {
        let mut cargo = environment.cargo(arguments);
        cargo.envs(variables.iter().map(|name| (name, "1")));
        cargo
    }
}

/// Builds the `weir` of the tests, which `ci` has already built: a build of `weir` alone has other features of its
/// dependencies.
pub(crate) fn weir(environment: &Environment) -> Result<PathBuf, String> {
    process::run(&mut environment.cargo(&without_running(&TESTS)), BUILD_LIMIT)?;
    Ok(built_weir(environment))
}

/// Where a build without optimisation leaves `weir`.
pub(crate) fn built_weir(environment: &Environment) -> PathBuf {
    environment.target_folder().join("debug/weir")
}

/// Builds tests and runs them: `arguments` is a `cargo test`. The outcome has the number of tests.
///
/// Building is a separate command, so that the limit on tests does not include it.
pub(crate) fn tests(cargo: impl Fn(&[&str]) -> Command, arguments: &[&str]) -> Outcome {
    tests_within(cargo, arguments, TEST_LIMIT)
}

/// The same with another limit for a single test.
pub(crate) fn tests_within(
    cargo: impl Fn(&[&str]) -> Command,
    arguments: &[&str],
    test_limit: Duration,
) -> Outcome {
    process::run(&mut cargo(&without_running(arguments)), BUILD_LIMIT)?;
    let finished = process::run_tests(&mut cargo(arguments), test_limit)?;
    Ok(format!("{} tests{}", passed_tests(&finished.text), skipped_tests(&finished.text)))
}

/// Returns how many tests skipped themselves for each reason, as text.
fn skipped_tests(text: &str) -> String {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    let skipped = text.lines().filter_map(|line| line.strip_prefix("skipped ")?.split_once(": "));
    skipped.for_each(|(_, reason)| *reasons.entry(reason).or_default() += 1);
    reasons.iter().map(|(reason, count)| format!("; {count} skipped themselves: {reason}")).collect()
}

/// Returns the `cargo test` that builds what this one runs.
pub(crate) fn without_running<'a>(test: &[&'a str]) -> Vec<&'a str> {
    let (subcommand, rest) = test.split_at(1);
    [subcommand, &["--no-run"], rest].concat()
}

/// Returns the sum of the closing lines of the test binaries.
fn passed_tests(text: &str) -> usize {
    let counts = text
        .lines()
        .filter_map(|line| line.strip_prefix("test result: ok. ")?.split(' ').next()?.parse::<usize>().ok());
    counts.sum()
}

/// The workspace without the standard library.
const NO_STD: &str = "no_std/Cargo.toml";

/// The workspace with the protocol crates above smoltcp.
const EMBEDDED: &str = "embedded/Cargo.toml";

const FMT: [&str; 5] = ["fmt", "--all", "--check", "--", "--color=never"];

/// Tests of the commands wait half of their time, for processes to find each other or to notice that one has ended.
const TEST_THREADS: &str = "--test-threads=4";

/// Exchanges mostly wait, for leases to end and for the other side.
const THREADS: &str = "--test-threads=6";

/// What [`test()`] builds and runs, and what [`weir()`] is part of.
///
/// Steps build tests with the whole workspace, and choose among them by the names of binaries: a package on its own has
/// other features of its dependencies, which would be built again.
pub(crate) const TESTS: [&str; 5] = ["test", "--workspace", "--exclude", INTEROP_CRATE, "--locked"];
/// A crate of tests only, excluded from the plain test step.
const INTEROP_CRATE: &str = "weir-interop";

/// Time limit of a cargo command that only builds. It catches hangs: a fresh clone with all peers
/// builds within it on a slow and busy machine.
pub(crate) const BUILD_LIMIT: Duration = Duration::from_secs(3 * 3600);
/// Time limit of a single test. The slowest one computes for five minutes on a shared processor. Short enough that what
/// a hung test has printed is still seen if the whole of CI is limited to an hour.
const TEST_LIMIT: Duration = Duration::from_secs(1200);
/// Time limit of a program that takes a few seconds.
pub(crate) const PROGRAM_LIMIT: Duration = Duration::from_secs(600);
/// Time limit of the published scripts, which are one test.
const SCRIPTS_LIMIT: Duration = Duration::from_secs(2 * 3600);
/// Average time limit of one configuration of the simulation.
const SEED_LIMIT: Duration = Duration::from_secs(4);
/// Time limit of a program that shows its version or tries something.
pub(crate) const PROBE_LIMIT: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_counted_over_all_binaries() {
        let text = "running 2 tests\ntest result: ok. 2 passed; 0 failed; 0 ignored\n\ntest result: ok. 40 passed; 0 failed\n";
        assert_eq!(passed_tests(text), 42);
        assert_eq!(passed_tests("nothing"), 0);
    }

    #[test]
    fn tests_that_skip_themselves_are_counted_by_reason() {
        let text = "test a ... ok\nskipped b: no Slurm\nskipped c: no sshd: really\nskipped d: no Slurm\n\
                    test result: ok. 4 passed; 0 failed\n";
        let expected = "; 2 skipped themselves: no Slurm; 1 skipped themselves: no sshd: really";
        assert_eq!(skipped_tests(text), expected);
        assert_eq!(skipped_tests("test a ... ok\n"), "");
    }

    #[test]
    fn the_manifest_follows_the_subcommand() {
        assert_eq!(
            with_manifest("fuzz/Cargo.toml", &["fmt", "--check"]),
            ["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"]
        );
    }

    #[test]
    fn tests_are_built_by_a_command_of_their_own() {
        let test = ["test", "--package", "x", "peers::", "--", "--test-threads=1"];
        assert_eq!(
            without_running(&test),
            ["test", "--no-run", "--package", "x", "peers::", "--", "--test-threads=1"]
        );
    }

    #[test]
    fn tests_that_do_not_build_do_not_run() {
        let echo = |arguments: &[&str]| {
            let mut shell = Command::new("sh");
            shell.args(["-c", "echo $0 $@; test $1 != --no-run"]).args(arguments);
            shell
        };
        let outcome = tests(echo, &["test", "name"]);
        assert!(matches!(outcome, Err(NotPassed::Failed(text)) if text.ends_with("\ntest --no-run name\n")));
        let count = |_: &[&str]| {
            let mut echo = Command::new("echo");
            echo.arg("test result: ok. 3 passed");
            echo
        };
        assert_eq!(tests(count, &["test"]), Ok("3 tests".to_owned()));
    }
}
