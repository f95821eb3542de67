//! A run as one JSON document, as the results format defines it.

use weir_results::Run;

/// The run as one JSON document, indented, with a line break at its end. Read it back with
/// [`Run::load`].
///
/// # Panics
/// Never: a run holds nothing that JSON can't express.
#[must_use]
pub fn json(run: &Run) -> String {
    let mut text =
        serde_json::to_string_pretty(run).expect("a run has text keys only and can be written as JSON");
    text.push('\n');
    text
}
