//! Output: data on stdout, messages on stderr.

use std::borrow::Cow;
use std::io::{self, ErrorKind, Write};

use anyhow::Context;

use crate::exit::Failure;

/// Writes data to stdout, ending in a newline. A closed pipe (`weir report DIR | head`) is not an error. Control
/// characters are escaped as in [`talk`], since tables contain names that a server sent.
pub(crate) fn data(text: &str) -> Result<(), Failure> {
    let text = escaped(text);
    let mut stdout = io::stdout().lock();
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    match write!(stdout, "{text}{end}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::environment(anyhow::Error::new(error).context("cannot write to standard output")))
        }
        _ => Ok(()),
    }
}

/// Writes a message to stderr and ignores errors. Control characters are escaped, since messages may quote a peer.
pub(crate) fn talk(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", escaped(line));
}

/// Escapes control characters other than newlines and tabs.
fn escaped(text: &str) -> Cow<'_, str> {
    let is_control = |character: char| character.is_control() && !matches!(character, '\n' | '\t');
    if !text.contains(is_control) {
        return text.into();
    }
    let mut written = String::with_capacity(text.len());
    for character in text.chars() {
        if is_control(character) {
            written.extend(character.escape_default());
        } else {
            written.push(character);
        }
    }
    written.into()
}

/// Creates a folder if there is none.
pub(crate) fn folder(path: &std::path::Path) -> Result<(), Failure> {
    std::fs::create_dir_all(path)
        .with_context(|| format!("cannot create {}: choose another folder with --output", path.display()))
        .map_err(Failure::environment)
}

/// Writes a file.
pub(crate) fn file(path: &std::path::Path, text: &str) -> Result<(), Failure> {
    bytes(path, text.as_bytes())
}

/// Writes a file that is no text.
pub(crate) fn bytes(path: &std::path::Path, content: &[u8]) -> Result<(), Failure> {
    std::fs::write(path, content)
        .with_context(|| format!("cannot write {}: choose another folder with --output", path.display()))
        .map_err(Failure::environment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(escaped("weir: größer\n\tso"), "weir: größer\n\tso");
        assert_eq!(escaped("host \u{1b}]0;x\u{7}"), "host \\u{1b}]0;x\\u{7}");
    }
}
