//! Mistakes in a file of static endpoints.

/// A mistake in a file of static endpoints.
///
/// The text has the form `FILE:LINE: CAUSE`.
///
/// ```
/// use weir_dds::StaticDiscovery;
///
/// let error = StaticDiscovery::from_text("system.toml", "participants = 1").unwrap_err();
/// assert!(error.to_string().starts_with("system.toml:1: "));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct StaticDiscoveryError {
    text: String,
    line: Option<usize>,
}

impl StaticDiscoveryError {
    pub(super) fn at(file: &str, line: usize, cause: impl std::fmt::Display) -> Self {
        Self { text: format!("{file}:{line}: {cause}"), line: Some(line) }
    }

    pub(super) fn of_file(file: &str, cause: impl std::fmt::Display) -> Self {
        Self { text: format!("{file}: {cause}"), line: None }
    }

    /// Returns the text and the line.
    pub(crate) fn into_parts(self) -> (String, Option<usize>) {
        (self.text, self.line)
    }

    /// Returns the line of the mistake, counted from 1; `None` if it is not in a line.
    ///
    /// ```
    /// use weir_dds::StaticDiscovery;
    ///
    /// let error = StaticDiscovery::from_text("system.toml", "participants = 1").unwrap_err();
    /// assert_eq!(error.line(), Some(1));
    /// ```
    pub fn line(&self) -> Option<usize> {
        self.line
    }
}
