//! The tests of the libraries on AArch64, which other processors run by QEMU.
//!
//! QEMU runs the code of another processor, and passes system calls to this machine's kernel. It shows that the code
//! compiles and computes the same there. It does not show how fast it is, and hardly its memory ordering, as the
//! threads run on this machine's processor.

use std::path::Path;
use std::time::Duration;

use crate::ci::{NotPassed, Outcome};
use crate::environment::Environment;
use crate::process;

/// Builds and runs the unit tests of the crates that the engine consists of, and builds the program `weir`.
pub(crate) fn test(environment: &Environment) -> Outcome {
    let missing = |advice: &str| NotPassed::Skipped(format!("missing {advice}"));
    if !has_standard_library() {
        return Err(missing("the standard library: rustup target add aarch64-unknown-linux-gnu"));
    }
    let is_native = cfg!(target_arch = "aarch64");
    let runs = |program: &str| {
        let mut command = std::process::Command::new(program);
        process::run(command.arg("--version"), VERSION_LIMIT).is_ok()
    };
    let can_cross = is_native || runs(LINKER) && runs(RUNNER);
    if !can_cross {
        let packages = "gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user";
        return Err(missing(&format!("a cross compiler or QEMU: apt-get install {packages}")));
    }
    let cargo = |arguments: &[&str]| {
        let mut cargo = environment.cargo(arguments);
        if !is_native {
            cargo
                .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", LINKER)
                .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", format!("{RUNNER} -L {LIBRARIES}"))
                .env("CC_aarch64_unknown_linux_gnu", LINKER);
        }
        cargo
    };
    let packages = CRATES.iter().flat_map(|name| ["--package", name]);
    let tests: Vec<&str> =
        ["test", "--release", "--lib", "--target", TARGET].into_iter().chain(packages).collect();
    let finished = process::run_tests(&mut cargo(&tests), TEST_LIMIT)?;
    let build = ["build", "--release", "--target", TARGET, "--package", "weir-cli"];
    process::run(&mut cargo(&build), BUILD_LIMIT)?;
    let passed = passed_tests(&finished.stdout);
    if passed == 0 {
        return Err(String::from("no test ran").into());
    }
    Ok(format!("{passed} tests{}; built weir", if is_native { "" } else { " by QEMU" }))
}

/// Returns whether the compiler in use can link programs for the target.
fn has_standard_library() -> bool {
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = std::process::Command::new(compiler);
    command.args(["--print", "target-libdir", "--target", TARGET]);
    process::run(&mut command, VERSION_LIMIT).is_ok_and(|it| Path::new(it.stdout.trim()).is_dir())
}

/// Returns how many tests passed, of all test programs.
fn passed_tests(text: &str) -> usize {
    let of_program =
        |line: &str| line.strip_prefix("test result: ok. ")?.split(' ').next()?.parse::<usize>().ok();
    text.lines().filter_map(of_program).sum()
}

const TARGET: &str = "aarch64-unknown-linux-gnu";
const LINKER: &str = "aarch64-linux-gnu-gcc";
const RUNNER: &str = "qemu-aarch64";
/// Where Debian has the C library of the target.
const LIBRARIES: &str = "/usr/aarch64-linux-gnu";
/// What the engine consists of, but for `weir-dds`: QEMU 7.2 does not know the option SO_RXQ_OVFL of sockets.
const CRATES: [&str; 5] = ["weir-wire", "weir-cdr", "weir-filter", "weir-rtps", "weir-udp"];
const VERSION_LIMIT: Duration = Duration::from_secs(60);
/// Of one test.
const TEST_LIMIT: Duration = Duration::from_secs(300);
const BUILD_LIMIT: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passed_tests_add_up() {
        let text = "running 2 tests\ntest result: ok. 26 passed; 0 failed;\n\ntest result: ok. 18 passed; 0 failed;\n";
        assert_eq!((passed_tests(text), passed_tests("test a ... ok")), (44, 0));
    }
}
