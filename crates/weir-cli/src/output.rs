//! Where text goes: stdout is data, stderr is talk.

use std::io::{self, ErrorKind, Write};

use anyhow::Context;

use crate::exit::Failure;

/// Writes data to stdout, with a line end after the last line. A reader that has gone (`weir report
/// DIR | head`) is no error.
pub(crate) fn data(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    match write!(stdout, "{text}{end}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::environment(anyhow::Error::new(error).context("cannot write to standard output")))
        }
        _ => Ok(()),
    }
}

/// Writes a line of talk to stderr; nobody is told when even that fails.
pub(crate) fn talk(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Writes a file.
pub(crate) fn file(path: &std::path::Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text)
        .with_context(|| format!("cannot write {}: choose another folder with --output", path.display()))
        .map_err(Failure::environment)
}
