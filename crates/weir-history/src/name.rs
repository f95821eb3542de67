//! Names of runs: `@latest`, `@latest~1`, `@2026-11-24T10:00`, `@3f2a91c0`, each with `:NAME`.

use std::path::Path;
use std::str::FromStr;

use thiserror::Error;

use crate::history::HistoryError;
use crate::run::RunEntry;

/// A name of a run of the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunName {
    text: String,
    which: Which,
    /// Only runs with this name, such as the studies of that name.
    of: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Which {
    /// The latest, or so many before it.
    Latest(usize),
    /// The start of a date without its separators, or of an identifier.
    Start(String),
}

/// A name that is not that of one run.
#[derive(Debug, Error)]
pub enum NameError {
    /// It is not a name.
    #[error(
        "`{0}` is not a name of a run: @latest, @latest~1, @2026-11-24T10:00 or @ID, each with :NAME if needed"
    )]
    NotAName(String),
    /// No run has it.
    #[error("no run in {folder} is {name}: `weir history {folder}` lists them")]
    Unknown {
        /// The name.
        name: String,
        /// The folder.
        folder: String,
    },
    /// Several runs have it.
    #[error("{name} names {count} runs: choose one by its id, {runs}")]
    Ambiguous {
        /// The name.
        name: String,
        /// How many.
        count: usize,
        /// The first of them.
        runs: String,
    },
    /// The history cannot be read.
    #[error(transparent)]
    History(#[from] HistoryError),
}

impl RunName {
    /// Returns whether a text is meant as a name and not as a path.
    #[must_use]
    pub fn is_one(text: &str) -> bool {
        text.starts_with('@')
    }

    pub(crate) fn find(&self, runs: &[RunEntry], folder: &Path) -> Result<RunEntry, NameError> {
        let of = self.of.as_deref();
        let runs: Vec<&RunEntry> = runs.iter().filter(|run| of.is_none_or(|name| run.name == name)).collect();
        let unknown = || NameError::Unknown { name: self.text.clone(), folder: folder.display().to_string() };
        match &self.which {
            Which::Latest(before) => {
                runs.iter().rev().nth(*before).map(|run| (*run).clone()).ok_or_else(unknown)
            }
            Which::Start(start) => {
                let dated: Vec<&RunEntry> =
                    runs.iter().copied().filter(|run| plain(&run.date).starts_with(start.as_str())).collect();
                let lower = start.to_ascii_lowercase();
                let has_id = |run: &&RunEntry| start.len() >= ID_MIN && run.id.starts_with(&lower);
                let found = if dated.is_empty() { runs.into_iter().filter(has_id).collect() } else { dated };
                match found.as_slice() {
                    [] => Err(unknown()),
                    [run] => Ok((*run).clone()),
                    several => Err(self.ambiguous(several)),
                }
            }
        }
    }

    fn ambiguous(&self, runs: &[&RunEntry]) -> NameError {
        let shown = runs.iter().take(SHOWN).map(|run| format!("@{} ({})", run.id, run.path.display()));
        let mut runs_text = shown.collect::<Vec<_>>().join(", ");
        if runs.len() > SHOWN {
            runs_text.push_str(", ...");
        }
        NameError::Ambiguous { name: self.text.clone(), count: runs.len(), runs: runs_text }
    }
}

impl FromStr for RunName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let not_a_name = || NameError::NotAName(text.to_owned());
        let name = text.strip_prefix('@').ok_or_else(not_a_name)?;
        // A date has colons of its own: a name does not start with a digit that follows one.
        let (which, of) = match name.rsplit_once(':') {
            Some((which, of)) if !of.is_empty() && !of.starts_with(|it: char| it.is_ascii_digit()) => {
                (which, Some(of.to_owned()))
            }
            Some((_, "")) => return Err(not_a_name()),
            _ => (name, None),
        };
        let which = match which.strip_prefix("latest") {
            Some("") => Which::Latest(0),
            Some(before) => {
                let before = before.strip_prefix('~').and_then(|it| it.parse().ok());
                Which::Latest(before.ok_or_else(not_a_name)?)
            }
            None => Which::Start(plain(which)),
        };
        match &which {
            Which::Start(start)
                if start.is_empty() || !start.bytes().all(|it| it.is_ascii_alphanumeric()) =>
            {
                Err(not_a_name())
            }
            _ => Ok(Self { text: text.to_owned(), which, of }),
        }
    }
}

/// The fewest digits of an identifier.
const ID_MIN: usize = 4;
/// Runs that an error names.
const SHOWN: usize = 5;

/// A date without its separators.
fn plain(date: &str) -> String {
    date.chars().filter(|it| !matches!(it, '-' | ':' | 'Z')).collect()
}
