//! The tools of this machine, and installing missing ones.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::process;

/// Facts about the machine that decide which steps can run.
#[derive(Debug)]
pub(crate) struct Environment {
    /// Root of the repository.
    pub(crate) root: PathBuf,
    /// `CI=true`: a required step that cannot run is a failure.
    pub(crate) is_ci: bool,
    /// Debian or a derivative, and running as root: missing packages can be installed.
    can_install: bool,
}

/// An external tool that a step needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tool {
    /// A program to look for in PATH, or a file if it starts with a slash.
    pub(crate) program: &'static str,
    /// The Debian package with it.
    pub(crate) package: &'static str,
}

impl Environment {
    /// Examines the machine.
    pub(crate) fn detect() -> Self {
        let os_release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
        Self {
            root: repository(),
            is_ci: std::env::var("CI").is_ok_and(|value| value == "true"),
            can_install: is_debian(&os_release) && is_root(),
        }
    }

    /// Returns `cargo` with the given arguments, run at the root of the repository.
    pub(crate) fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(arguments).current_dir(&self.root);
        // What `fuzz/` and `peers/` share with the main workspace is built once. (Cargo before 1.91 ignores this.)
        command.env("CARGO_BUILD_BUILD_DIR", self.target_folder());
        // Written only for builds that follow, of which CI has none.
        if self.is_ci {
            command.env("CARGO_INCREMENTAL", "0");
        }
        // Set by the cargo that runs xtask, and meant for this package only.
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
                command.env_remove(&*name);
            }
        }
        command
    }

    /// Target folder of the main workspace.
    pub(crate) fn target_folder(&self) -> PathBuf {
        self.target_folder_of("")
    }

    /// Target folder of the workspace in this folder, e.g. `fuzz`.
    pub(crate) fn target_folder_of(&self, workspace: &str) -> PathBuf {
        match std::env::var_os("CARGO_TARGET_DIR") {
            Some(folder) => self.root.join(folder),
            None => self.root.join(workspace).join("target"),
        }
    }

    /// Ensures that the tools are available, installing them if possible.
    ///
    /// # Errors
    ///
    /// Which tools are missing and how to install them, as the reason of a skip.
    pub(crate) fn require(&self, tools: &[Tool]) -> Result<(), String> {
        // Of steps side by side, one installs at a time, as apt-get demands.
        let _installing = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = missing(tools);
        if missing.is_empty() {
            return Ok(());
        }
        let packages: Vec<&str> = packages(&missing);
        let advice = format!("missing {}: apt-get install {}", programs(&missing), packages.join(" "));
        if !self.can_install {
            return Err(advice);
        }
        eprintln!("xtask: installing Debian packages with apt-get: {}", packages.join(" "));
        let update = apt(&["update"]);
        let install = apt(&[&["install", "--yes", "--no-install-recommends"], packages.as_slice()].concat());
        let still_missing = self::missing(tools);
        if still_missing.is_empty() {
            return Ok(());
        }
        eprint!("{update}{install}");
        Err(format!("apt-get could not install {}; its output is above", programs(&still_missing)))
    }
}

static INSTALLING: Mutex<()> = Mutex::new(());

/// Returns the tools in the list that this machine lacks.
pub(crate) fn missing(tools: &[Tool]) -> Vec<Tool> {
    tools.iter().copied().filter(|tool| !is_there(tool.program)).collect()
}

fn is_there(program: &str) -> bool {
    if program.starts_with('/') {
        return Path::new(program).exists();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Administrator programs are not in every user's PATH.
    let more = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(more).any(|folder| folder.join(program).is_file())
}

fn apt(arguments: &[&str]) -> String {
    let mut command = Command::new("apt-get");
    process::text(process::run(command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive"), APT_LIMIT))
}

fn programs(tools: &[Tool]) -> String {
    let names: Vec<&str> = tools.iter().map(|tool| tool.program).collect();
    names.join(", ")
}

fn packages(tools: &[Tool]) -> Vec<&'static str> {
    let mut names: Vec<&str> = tools.iter().map(|tool| tool.package).collect();
    names.dedup();
    names
}

fn is_debian(os_release: &str) -> bool {
    os_release.lines().any(|line| {
        let (key, value) = line.split_once('=').unwrap_or_default();
        matches!(key, "ID" | "ID_LIKE") && value.trim_matches('"').split(' ').any(|id| id == "debian")
    })
}

fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    effective_user(&status) == Some("0")
}

/// Returns the effective user id: second number of the line `Uid:`.
fn effective_user(status: &str) -> Option<&str> {
    status.lines().find_map(|line| line.strip_prefix("Uid:"))?.split_whitespace().nth(1)
}

/// Cargo provides the folder of this package; the repository is one level up.
fn repository() -> PathBuf {
    let manifest =
        std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from("xtask"), PathBuf::from);
    manifest.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// Downloads and unpacks; a mirror may be slow.
const APT_LIMIT: Duration = Duration::from_secs(1800);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debian_and_its_children_are_recognised() {
        assert!(is_debian("PRETTY_NAME=\"Debian GNU/Linux 12\"\nID=debian\n"));
        assert!(is_debian("ID=ubuntu\nID_LIKE=debian\n"));
        assert!(is_debian("ID=pop\nID_LIKE=\"ubuntu debian\"\n"));
        assert!(!is_debian("ID=fedora\nHOME_URL=\"debian\"\n"));
        assert!(!is_debian(""));
    }

    #[test]
    fn the_effective_user_is_the_second_number() {
        assert_eq!(effective_user("Name:\tx\nUid:\t1000\t0\t1000\t1000\n"), Some("0"));
        assert_eq!(effective_user("Name:\tx\n"), None);
    }

    #[test]
    fn missing_tools_are_named_with_their_packages() {
        let shell = Tool { program: "sh", package: "dash" };
        let file = Tool { program: "/weir/has/no/such.h", package: "libweir-dev" };
        let program = Tool { program: "weir-has-no-such-program", package: "libweir-dev" };
        assert_eq!(missing(&[shell, file, program]), [file, program]);
        let environment = Environment { root: PathBuf::new(), is_ci: false, can_install: false };
        assert_eq!(environment.require(&[shell]), Ok(()));
        assert_eq!(
            environment.require(&[shell, file, program]).unwrap_err(),
            "missing /weir/has/no/such.h, weir-has-no-such-program: apt-get install libweir-dev"
        );
    }
}
