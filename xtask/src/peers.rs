//! The engines of others: what they need is installed, `weir` is built with them, and each has a short session.

use crate::ci::Outcome;
use crate::environment::{Environment, Tool};
use crate::process;
use crate::steps;

/// Builds `weir`, optimised, with all engines that this machine can have, and tries them.
pub(crate) fn step(environment: &Environment) -> Outcome {
    let tools: Vec<Tool> = [&steps::CYCLONEDDS[..], &steps::FASTDDS, &ZEROMQ].concat();
    if let Err(reason) = environment.require(&tools) {
        return Outcome::Skipped(reason);
    }
    let features = ["--features", FEATURES, "--package", "weir-cli", "--locked"];
    let lints = ["clippy", "--quiet", "--all-targets", "--package", "weir-peers", "--package", "weir-bench"];
    let lints = [&lints[..], &features, &["--", "--deny", "warnings"]].concat();
    if let Outcome::Failed(text) = process::check(&mut environment.cargo(&lints), steps::LIMIT) {
        return Outcome::Failed(text);
    }
    let test = [&["test", "--release", "--test", "it"][..], &features, &["peers::"]].concat();
    match steps::counted(&mut environment.cargo(&test)) {
        Outcome::Passed(tests) => {
            Outcome::Passed(format!("{tests}; release/weir has the engines {FEATURES}"))
        }
        outcome => outcome,
    }
}

/// Those of weir-cli, one for each engine.
const FEATURES: &str = "peers,rust-peers";

const ZEROMQ: [Tool; 2] = [
    Tool { program: "/usr/include/zmq.h", package: "libzmq3-dev" },
    Tool { program: "pkg-config", package: "pkg-config" },
];
