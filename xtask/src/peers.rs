//! The engines of others: what they need is installed, `weir` is built with them, and each has a short session.

use std::time::Duration;

use crate::ci::Outcome;
use crate::environment::{Environment, Tool};
use crate::process;
use crate::steps;

/// Builds `weir`, optimised, with the engines that are built in a few minutes, and tries them: the step of `ci`.
pub(crate) fn step(environment: &Environment) -> Outcome {
    build_and_try(environment, FEATURES, steps::LIMIT)
}

/// Builds `weir`, optimised, with all engines that this machine can have, and tries them.
pub(crate) fn all(environment: &Environment) -> Outcome {
    build_and_try(environment, &format!("{FEATURES},{SLOW_FEATURES}"), SLOW_LIMIT)
}

fn build_and_try(environment: &Environment, features: &str, limit: Duration) -> Outcome {
    let tools: Vec<Tool> = [&steps::CYCLONEDDS[..], &steps::FASTDDS, &ZEROMQ].concat();
    if let Err(reason) = environment.require(&tools) {
        return Outcome::Skipped(reason);
    }
    let chosen = ["--features", features, "--package", "weir-cli", "--locked"];
    let lints = ["clippy", "--quiet", "--all-targets", "--package", "weir-peers", "--package", "weir-bench"];
    let lints = [&lints[..], &chosen, &["--", "--deny", "warnings"]].concat();
    if let Outcome::Failed(text) = process::check(&mut environment.cargo(&lints), limit) {
        return Outcome::Failed(text);
    }
    let test = [&["test", "--release", "--test", "it"][..], &chosen, &["peers::"]].concat();
    match steps::counted_within(&mut environment.cargo(&test), limit) {
        Outcome::Passed(tests) => {
            Outcome::Passed(format!("{tests}; release/weir has the engines {features}"))
        }
        outcome => outcome,
    }
}

/// Those of weir-cli, one for each engine.
const FEATURES: &str = "peers,rust-peers";

/// Those that would double the time of `ci`: int2dds alone takes minutes to compile and link.
const SLOW_FEATURES: &str = "slow-peers";

/// Longest that building with those may take, on two processors that others use, too.
const SLOW_LIMIT: Duration = Duration::from_secs(3600);

const ZEROMQ: [Tool; 2] = [
    Tool { program: "/usr/include/zmq.h", package: "libzmq3-dev" },
    Tool { program: "pkg-config", package: "pkg-config" },
];
