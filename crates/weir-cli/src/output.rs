//! Where text goes: stdout is data, stderr is talk.

use std::borrow::Cow;
use std::io::{self, ErrorKind, Write};

use anyhow::Context;

use crate::exit::Failure;

/// Writes data to stdout, with a line end after the last line. A reader that has gone (`weir report
/// DIR | head`) is no error. As in [`talk`], no character reaches a terminal that it would obey: a server's name of its host is in tables.
pub(crate) fn data(text: &str) -> Result<(), Failure> {
    let text = harmless(text);
    let mut stdout = io::stdout().lock();
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    match write!(stdout, "{text}{end}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::environment(anyhow::Error::new(error).context("cannot write to standard output")))
        }
        _ => Ok(()),
    }
}

/// Writes a line of talk to stderr; nobody is told when even that fails. What a peer said may be in it, so that no character
/// reaches the terminal that it would obey.
pub(crate) fn talk(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", harmless(line));
}

/// The text with control characters but line ends and tabs written out.
fn harmless(text: &str) -> Cow<'_, str> {
    let is_steering = |character: char| character.is_control() && !matches!(character, '\n' | '\t');
    if !text.contains(is_steering) {
        return text.into();
    }
    let mut written = String::with_capacity(text.len());
    for character in text.chars() {
        if is_steering(character) {
            written.extend(character.escape_default());
        } else {
            written.push(character);
        }
    }
    written.into()
}

/// Writes a file.
pub(crate) fn file(path: &std::path::Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text)
        .with_context(|| format!("cannot write {}: choose another folder with --output", path.display()))
        .map_err(Failure::environment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_written_out() {
        assert_eq!(harmless("weir: größer\n\tso"), "weir: größer\n\tso");
        assert_eq!(harmless("host \u{1b}]0;x\u{7}"), "host \\u{1b}]0;x\\u{7}");
    }
}
