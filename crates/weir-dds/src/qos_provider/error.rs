//! Mistakes in a file of profiles.

/// A mistake in a file of QoS profiles, or a profile that does not exist.
///
/// The text has the form `FILE:LINE:COLUMN: CAUSE`.
///
/// ```
/// use weir_dds::QosProvider;
///
/// let error = QosProvider::from_text("robot.xml", "<dds>").unwrap_err();
/// assert!(error.to_string().starts_with("robot.xml:"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct QosProfileError {
    text: String,
    line: Option<u32>,
}

impl QosProfileError {
    pub(super) fn at(file: &str, position: roxmltree::TextPos, cause: impl std::fmt::Display) -> Self {
        let roxmltree::TextPos { row, col } = position;
        Self { text: format!("{file}:{row}:{col}: {cause}"), line: Some(row) }
    }

    pub(super) fn of_file(text: String) -> Self {
        Self { text, line: None }
    }

    /// Returns the line of the mistake, counted from 1; `None` if it is not in a line.
    ///
    /// ```
    /// use weir_dds::QosProvider;
    ///
    /// let error = QosProvider::from_text("robot.xml", "<dds>").unwrap_err();
    /// println!("line {:?}: {error}", error.line());
    /// ```
    pub fn line(&self) -> Option<u32> {
        self.line
    }
}
