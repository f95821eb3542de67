//! Other engines: installs what they need, builds `weir` with them, and runs a short session of
//! each.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::ci::Outcome;
use crate::environment::{Environment, Tool};
use crate::process;
use crate::steps;

/// Builds `weir`, optimised, with the engines that build in a few minutes, and tests them: the step
/// of `ci`.
pub(crate) fn step(environment: &Environment) -> Outcome {
    build_and_try(environment, FEATURES, None)
}

/// Builds `weir`, optimised, with all engines that this machine supports, and tests them.
pub(crate) fn all(environment: &Environment) -> Outcome {
    match environment.require(&AERON).and_then(|()| cmake(environment)) {
        Ok(cmake) => build_and_try(environment, &format!("{FEATURES},{SLOW_FEATURES},aeron"), Some(&cmake)),
        Err(reason) => {
            eprintln!("xtask: left out because of a missing requirement: aeron ({reason})");
            build_and_try(environment, &format!("{FEATURES},{SLOW_FEATURES}"), None)
        }
    }
}

fn build_and_try(environment: &Environment, features: &str, cmake: Option<&Path>) -> Outcome {
    let tools: Vec<Tool> = [&steps::CYCLONEDDS[..], &steps::FASTDDS, &ZEROMQ].concat();
    if let Err(reason) = environment.require(&tools) {
        return Outcome::Skipped(reason);
    }
    let cargo = |arguments: &[&str]| {
        let mut cargo = environment.cargo(arguments);
        // The variable that the crate `cmake` reads.
        cargo.envs(cmake.map(|cmake| ("CMAKE", cmake)));
        cargo
    };
    let chosen = ["--features", features, "--package", "weir-cli", "--locked"];
    let lints = ["clippy", "--quiet", "--all-targets", "--package", "weir-peers", "--package", "weir-bench"];
    let lints = [&lints[..], &chosen, &["--", "--deny", "warnings"]].concat();
    if let Outcome::Failed(text) = process::check(&mut cargo(&lints), steps::BUILD_LIMIT) {
        return Outcome::Failed(text);
    }
    let test = [&["test", "--release", "--test", "it"][..], &chosen, &["peers::"]].concat();
    match steps::tests(cargo, &test) {
        Outcome::Passed(tests) => {
            Outcome::Passed(format!("{tests}; release/weir has the engines {features}"))
        }
        outcome => outcome,
    }
}

/// Finds a cmake that builds Aeron: this machine's, or one from PyPI in a separate folder, since
/// Debian 12 has an older one.
fn cmake(environment: &Environment) -> Result<PathBuf, String> {
    let system = PathBuf::from("cmake");
    if is_new_enough(&system) {
        return Ok(system);
    }
    let folder = environment.target_folder().join("peers-tools");
    let own = folder.join("bin/cmake");
    if !is_new_enough(&own) {
        eprintln!("xtask: installing cmake with pip into {}", folder.display());
        let made =
            process::run(Command::new("python3").args(["-m", "venv"]).arg(&folder), steps::BUILD_LIMIT);
        let pip = folder.join("bin/pip");
        let installed =
            process::run(Command::new(pip).args(["install", "--quiet", "cmake"]), steps::BUILD_LIMIT);
        if !is_new_enough(&own) {
            eprint!("{}{}", made.text, installed.text);
            let (major, minor) = CMAKE;
            return Err(format!(
                "Aeron needs cmake {major}.{minor}, which pip could not install: pip install cmake"
            ));
        }
    }
    Ok(own)
}

/// The version that Aeron needs.
const CMAKE: (u32, u32) = (3, 30);

fn is_new_enough(cmake: &Path) -> bool {
    let said = process::run(Command::new(cmake).arg("--version"), steps::PROBE_LIMIT);
    said.is_success && cmake_version(&said.stdout).is_some_and(|version| version >= CMAKE)
}

/// Parses `cmake version 3.25.1`.
fn cmake_version(said: &str) -> Option<(u32, u32)> {
    let mut numbers = said.strip_prefix("cmake version ")?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Features of weir-cli, one for each engine.
const FEATURES: &str = "peers,rust-peers";

/// Engines that would double the time of `ci`, by four minutes and more each on two processors.
/// Aeron, which is C, builds quickly, but needs a newer cmake than Debian's, and clang to read its
/// headers.
const SLOW_FEATURES: &str = "slow-peers";

const ZEROMQ: [Tool; 2] = [
    Tool { program: "/usr/include/zmq.h", package: "libzmq3-dev" },
    Tool { program: "pkg-config", package: "pkg-config" },
];

const AERON: [Tool; 5] = [
    Tool { program: "clang", package: "clang" },
    Tool { program: "c++", package: "g++" },
    Tool { program: "/usr/include/uuid/uuid.h", package: "uuid-dev" },
    Tool { program: "/usr/include/bsd/string.h", package: "libbsd-dev" },
    Tool { program: "/usr/share/python-wheels", package: "python3-venv" },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_cmake_is_read() {
        assert_eq!(cmake_version("cmake version 3.25.1\n\nCMake suite maintained\n"), Some((3, 25)));
        assert!(cmake_version("cmake version 4.4.4\n") > Some(CMAKE));
        assert_eq!(cmake_version("command not found"), None);
    }
}
