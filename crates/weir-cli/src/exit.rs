//! The exit codes, all of them.
//!
//! | code | meaning |
//! |------|---------|
//! | 0    | all well |
//! | 1    | data was lost or damaged where none may be; `weir doctor`: something would spoil a measurement |
//! | 2    | usage: an option or value makes no sense; nothing was run |
//! | 3    | environment: no peer, a process that died, no permission, a port in use, an unwritable folder |
//! | 130  | interrupted (Ctrl-C) |
//!
//! When several apply, the first of 130, 1, 3 does: lost data is a verdict on what was measured,
//! trouble only a hole in it.

use std::fmt;
use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All well.
    Success,
    /// Data was lost or damaged where none may be.
    DataLost,
    /// `weir doctor` found something.
    Found,
    /// An option or value makes no sense.
    Usage,
    /// The host or a peer did not play along.
    Environment,
    /// Ctrl-C.
    Interrupted,
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

/// Why a command could not do its work: one sentence for the user, and the code.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) error: anyhow::Error,
}

impl Failure {
    /// An option or value makes no sense.
    pub(crate) fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self { exit: Exit::Usage, error: error.into() }
    }

    /// The host or a peer does not play along.
    pub(crate) fn environment(error: impl Into<anyhow::Error>) -> Self {
        Self { exit: Exit::Environment, error: error.into() }
    }
}

impl fmt::Display for Failure {
    /// The error and its causes, each of them once: many errors quote their cause already.
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
    fn a_cause_that_is_quoted_already_is_not_said_again() {
        let of = |error: anyhow::Error| Failure::environment(error).to_string();
        assert_eq!(of(anyhow!("no room left").context("cannot write x")), "cannot write x: no room left");
        let quoted = anyhow!("no room left").context("cannot write x: no room left; choose another folder");
        assert_eq!(of(quoted), "cannot write x: no room left; choose another folder");
    }
}
