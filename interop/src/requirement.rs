//! What a test needs from the machine.
//!
//! A test starts with `if !Requirement::Tshark.is_met() { return; }`. If the requirement is not
//! met, the test reports so on standard error and passes. With the variable of
//! [`Requirement::variable`] set to 1 it fails instead, so that a run that is meant to include the
//! test cannot pass without it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A requirement that not every machine meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requirement {
    /// Cyclone DDS with its headers and tools, and a C compiler.
    CycloneDds,
    /// Fast DDS with its headers, and a C++ compiler.
    FastDds,
    /// The programs of `peers/weir-exchange-peers`, in the folder that the variable `WEIR_RUST_PEERS` names.
    RustEngines,
    /// The privilege to create network namespaces, and the tools to configure them.
    Netns,
    /// Wireshark's command line tool.
    Tshark,
}

impl Requirement {
    /// Returns whether a test that needs this can run; prints the reason on standard error if not.
    ///
    /// # Panics
    ///
    /// If it cannot, and the environment requires it.
    #[must_use]
    pub fn is_met(self) -> bool {
        let Some(missing) = self.missing() else { return true };
        let demanded = std::env::var(self.variable()).is_ok_and(|value| value == "1");
        assert!(!demanded, "{missing}, and {}=1", self.variable());
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        // Not captured by the test harness: a skipped test must not look like one that ran.
        let _ = writeln!(std::io::stderr(), "skipped {test}: {missing}");
        false
    }

    /// Returns the environment variable that, set to 1, turns a skip into a failure.
    #[must_use]
    pub fn variable(self) -> &'static str {
        match self {
            Self::CycloneDds => "WEIR_REQUIRE_CYCLONEDDS",
            Self::FastDds => "WEIR_REQUIRE_FASTDDS",
            Self::RustEngines => "WEIR_REQUIRE_RUST_PEERS",
            Self::Netns => "WEIR_REQUIRE_NETNS",
            Self::Tshark => "WEIR_REQUIRE_TSHARK",
        }
    }

    fn missing(self) -> Option<String> {
        if self == Self::RustEngines {
            let missing = rust_peer("rustdds").is_none_or(|program| !program.is_file());
            return missing.then(|| "`cargo xtask rust-engines` builds the programs".to_owned());
        }
        let programs: &[&str] = match self {
            Self::CycloneDds => &["idlc", "cc", "/usr/include/dds/dds.h"],
            Self::FastDds => &[
                "g++",
                "/usr/include/fastdds/dds/domain/DomainParticipant.hpp",
                "/usr/include/fastcdr/Cdr.h",
            ],
            Self::RustEngines => &[],
            Self::Netns => &["ip", "nft", "ethtool", "unshare"],
            Self::Tshark => &["tshark"],
        };
        if let Some(program) = programs.iter().find(|program| find(program).is_none()) {
            return Some(format!("{program} is not installed"));
        }
        (self == Self::Netns && !can_unshare()).then(|| "network namespaces need root".to_owned())
    }
}

/// Returns the path of a program of `peers/weir-exchange-peers`, if it was announced where these are.
#[must_use]
pub fn rust_peer(name: &str) -> Option<PathBuf> {
    std::env::var_os("WEIR_RUST_PEERS").map(|folder| PathBuf::from(folder).join(name))
}

/// Finds a program; a name with a slash is a path.
fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    let mut candidates = folders.map(|folder| folder.join(program));
    if Path::new(program).is_absolute() {
        Some(program.into()).filter(|path: &PathBuf| path.exists())
    } else {
        candidates.find(|path| path.is_file())
    }
}

fn can_unshare() -> bool {
    let mut command = Command::new("unshare");
    command.args(["--net", "true"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_by_name_and_files_by_path() {
        assert!(find("sh").is_some());
        assert!(find("/dev/null").is_some());
        assert_eq!(find("weir-has-no-such-program"), None);
        assert_eq!(find("/weir/has/no/such/file"), None);
    }

    #[test]
    fn each_requirement_has_a_variable_of_its_own() {
        let all =
            [Requirement::CycloneDds, Requirement::Netns, Requirement::Tshark].map(Requirement::variable);
        assert!(all[0] != all[1] && all[1] != all[2] && all[0] != all[2]);
    }
}
