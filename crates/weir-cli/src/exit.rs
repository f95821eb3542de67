//! The exit codes.
//!
//! | code | meaning |
//! |------|---------|
//! | 0    | success |
//! | 1    | reliable data was lost, or data was corrupted; a problem of `weir doctor`; a worse figure; a missed limit |
//! | 2    | usage: an invalid option or value; nothing was run |
//! | 3    | environment: no peer, a process that died, no permission, an unwritable folder; nothing was measured |
//! | 130  | interrupted (Ctrl-C) |
//!
//! When several apply, the order of precedence is 130, 1, 3.

use std::fmt;
use std::process::ExitCode;

/// The paragraph on exit codes in a help text.
macro_rules! exit_codes {
    () => {
        "Exit codes: 0 success, 1 data lost or corrupted, 2 usage, 3 environment or peer, 130 interrupted"
    };
}
pub(crate) use exit_codes;

/// The same for a command that does not judge losses.
macro_rules! exit_codes_without_loss {
    () => {
        "Exit codes: 0 success, 2 usage, 3 environment or peer, 130 interrupted"
    };
}
pub(crate) use exit_codes_without_loss;

/// The same for a command that judges requirements.
macro_rules! exit_codes_with_requirements {
    () => {
        "Exit codes: 0 success, 1 requirement missed or data lost, 2 usage, 3 environment or not measured, 130 interrupted"
    };
}
pub(crate) use exit_codes_with_requirements;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Success.
    Success,
    /// Reliable data was lost, or data was corrupted.
    DataLost,
    /// `weir doctor` found a problem, `weir compare` a figure that is worse, `weir run` a requirement that is missed.
    Found,
    /// An option or value is invalid.
    Usage,
    /// The host or a peer failed.
    Environment,
    /// Ctrl-C.
    Interrupted,
}

impl Exit {
    /// Returns which of two takes precedence.
    pub(crate) fn and(self, other: Self) -> Self {
        let order =
            [Self::Interrupted, Self::DataLost, Self::Found, Self::Usage, Self::Environment, Self::Success];
        order.into_iter().find(|exit| [self, other].contains(exit)).unwrap_or(self)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Success => 0,
            Exit::DataLost | Exit::Found => 1,
            Exit::Usage => 2,
            Exit::Environment => 3,
            Exit::Interrupted => 130,
        })
    }
}

/// Why a command failed: one sentence for the user, and the exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) error: anyhow::Error,
}

impl Failure {
    /// An option or value is invalid.
    pub(crate) fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self { exit: Exit::Usage, error: error.into() }
    }

    /// The host or a peer failed.
    pub(crate) fn environment(error: impl Into<anyhow::Error>) -> Self {
        Self { exit: Exit::Environment, error: error.into() }
    }
}

impl fmt::Display for Failure {
    /// The error and its causes. A cause that the text already quotes is left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.error.to_string();
        for cause in self.error.chain().skip(1).map(ToString::to_string) {
            if !text.contains(&cause) {
                text.push_str(": ");
                text.push_str(&cause);
            }
        }
        f.write_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn an_interruption_takes_precedence_and_a_finding_over_trouble() {
        assert_eq!(Exit::Found.and(Exit::Interrupted), Exit::Interrupted);
        assert_eq!(Exit::Environment.and(Exit::Found), Exit::Found);
        assert_eq!(Exit::Success.and(Exit::Environment), Exit::Environment);
    }

    #[test]
    fn a_cause_that_is_already_quoted_is_not_repeated() {
        let of = |error: anyhow::Error| Failure::environment(error).to_string();
        assert_eq!(of(anyhow!("no room left").context("cannot write x")), "cannot write x: no room left");
        let quoted = anyhow!("no room left").context("cannot write x: no room left; choose another folder");
        assert_eq!(of(quoted), "cannot write x: no room left; choose another folder");
    }
}
