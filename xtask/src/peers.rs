//! Other engines: installs what they need, builds the `weir` of `peers/` with them, and runs a short session of each.
//!
//! `peers/` has a target folder of its own: both workspaces build a `weir`, and in one folder each build would
//! replace the other program. What precedes the programs is built in one folder ([`Environment::cargo`]).

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::ci::{NotPassed, Outcome};
use crate::environment::{Environment, Tool};
use crate::process;
use crate::steps;

/// Cargo arguments for the workspace of the other engines.
pub(crate) fn manifest<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    steps::with_manifest("peers/Cargo.toml", arguments)
}

/// Builds and tries the engines that are built in a few minutes: the step of `ci`. An optimised build would double
/// its time.
pub(crate) fn step(environment: &Environment) -> Outcome {
    build_and_try(environment, FEATURES, &[], None)
}

/// Makes an optimised build of all engines that this machine can have, and tries it.
pub(crate) fn all(environment: &Environment) -> Outcome {
    let (features, cmake) = match environment.require(&AERON).and_then(|()| cmake(environment)) {
        Ok(cmake) => (format!("{FEATURES},{SLOW_FEATURES},aeron"), Some(cmake)),
        Err(reason) => {
            eprintln!("xtask: left out because of a missing requirement: aeron ({reason})");
            (format!("{FEATURES},{SLOW_FEATURES}"), None)
        }
    };
    let tests = build_and_try(environment, &features, &["--release"], cmake.as_deref())?;
    let program = environment.target_folder_of("peers").join("release/weir");
    Ok(format!("{tests}; {} has the engines {features}", program.display()))
}

/// Builds the engines in Rust as programs of the interoperability tests, and runs their tests. Not part of `ci`: a
/// fresh build takes minutes.
pub(crate) fn rust_engines(environment: &Environment) -> Outcome {
    let built =
        ["build", "--quiet", "--package", "weir-exchange-peers", "--features", "rust-peers", "--locked"];
    process::run(&mut environment.cargo(&manifest(&built)), steps::BUILD_LIMIT)?;
    let programs = environment.target_folder_of("peers").join("debug");
    let cargo = |arguments: &[&str]| {
        let mut cargo = environment.cargo(arguments);
        cargo.env("WEIR_RUST_PEERS", &programs).env("WEIR_REQUIRE_RUST_PEERS", "1");
        cargo
    };
    let tests = ["test", "--package", "weir-interop", "--locked", "--test", "exchange", "rust_engines::"];
    steps::tests(cargo, &[&tests[..], &["--", "--test-threads=1"]].concat())
}

fn build_and_try(
    environment: &Environment,
    features: &str,
    profile: &[&str],
    cmake: Option<&Path>,
) -> Outcome {
    let tools: Vec<Tool> = [&steps::CYCLONEDDS[..], &steps::FASTDDS, &ZEROMQ].concat();
    environment.require(&tools).map_err(NotPassed::Skipped)?;
    let cargo = |arguments: &[&str]| {
        let mut cargo = environment.cargo(arguments);
        // Read by the crate `cmake`.
        cargo.envs(cmake.map(|cmake| ("CMAKE", cmake)));
        cargo
    };
    // The library of the system in place of the one that the crate zmq-sys would compile for a minute.
    let zeromq =
        format!("target.{}-unknown-linux-gnu.zmq.rustc-link-lib = [\"zmq\"]", std::env::consts::ARCH);
    let chosen = ["--workspace", "--features", features, "--locked", "--config", &zeromq];
    let lints = manifest(
        &[&["clippy", "--quiet", "--all-targets"], &chosen[..], &["--", "--deny", "warnings"]].concat(),
    );
    process::run(&mut cargo(&lints), steps::BUILD_LIMIT)?;
    steps::tests(cargo, &manifest(&[&["test"], profile, &chosen[..]].concat()))
}

/// A cmake that builds Aeron: this machine's, or one from PyPI in a folder of its own, since that
/// of Debian 12 is too old.
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
            eprint!("{}{}", process::text(made), process::text(installed));
            let (major, minor) = CMAKE;
            return Err(format!(
                "Aeron needs cmake {major}.{minor}, which pip could not install: pip install cmake"
            ));
        }
    }
    Ok(own)
}

/// The oldest cmake that builds Aeron.
const CMAKE: (u32, u32) = (3, 30);

fn is_new_enough(cmake: &Path) -> bool {
    let said = process::run(Command::new(cmake).arg("--version"), steps::PROBE_LIMIT);
    said.is_ok_and(|said| cmake_version(&said.stdout).is_some_and(|version| version >= CMAKE))
}

/// Parses `cmake version 3.25.1`.
fn cmake_version(said: &str) -> Option<(u32, u32)> {
    let mut numbers = said.strip_prefix("cmake version ")?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Those that are built in a few minutes.
const FEATURES: &str = "peers,rust-peers";

/// Each takes four minutes and more on two processors, which would double the time of `ci`. Aeron builds fast,
/// but needs a cmake that Debian lacks, and clang to read its headers.
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
