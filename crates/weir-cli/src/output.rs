//! Output: data on stdout, messages on stderr.

use std::borrow::Cow;
use std::fs;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::fd::AsFd;
use std::path::Path;

use anyhow::Context;
use weir_results::{WholeFile, write_whole};

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

/// Writes a text with tables to stdout, fitted to the width of the terminal if it is one.
pub(crate) fn page(text: &str) -> Result<(), Failure> {
    match columns(io::stdout()) {
        Some(columns) => data(&weir_report::fitted(text, columns)),
        None => data(text),
    }
}

/// Writes lines to stderr, if there are any, fitted to the width of the terminal if it is one.
pub(crate) fn talk_block(text: &str) {
    let text = text.trim_end();
    if !text.is_empty() {
        talk(
            &columns(io::stderr()).map_or_else(|| text.to_owned(), |width| weir_report::fitted(text, width)),
        );
    }
}

/// The width of a terminal; `None`: it is no terminal, or does not know.
pub(crate) fn columns(stream: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    (size.ws_col > 0).then(|| usize::from(size.ws_col).max(COLUMNS_MIN))
}

/// A narrower terminal breaks lines.
const COLUMNS_MIN: usize = 40;

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
pub(crate) fn folder(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path)
        .with_context(|| format!("cannot create {}: choose another folder with --output", path.display()))
        .map_err(Failure::environment)
}

/// Writes a file.
pub(crate) fn file(path: &Path, text: &str) -> Result<(), Failure> {
    bytes(path, text.as_bytes())
}

/// Writes a file that is no text.
pub(crate) fn bytes(path: &Path, content: &[u8]) -> Result<(), Failure> {
    whole(path, |file| file.write_all(content))
}

/// Writes a file that must not exist.
pub(crate) fn new_file(path: &Path, text: &str) -> Result<(), Failure> {
    if path.symlink_metadata().is_ok() {
        return Err(unwritable(path, &ErrorKind::AlreadyExists.into()));
    }
    file(path, text)
}

/// Writes a whole file: beside its place, and there when it is complete. After an error, what was there is unchanged.
pub(crate) fn whole<T>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<WholeFile>) -> io::Result<T>,
) -> Result<T, Failure> {
    write_whole(path, write).map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::environment(anyhow::anyhow!(
        "cannot write {}: {error}; make room there, or choose another file or folder with --output",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_written_whole_is_left_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        let full = |file: &mut BufWriter<WholeFile>| {
            file.write_all(b"new")?;
            Err::<(), _>(ErrorKind::StorageFull.into())
        };
        let files = || fs::read_dir(folder.path()).unwrap().count();
        assert!(whole(&path, full).is_err());
        assert_eq!(files(), 0);
        file(&path, "old").unwrap();
        let text = whole(&path, full).unwrap_err().to_string();
        assert!(text.contains("another file or folder with --output"), "{text}");
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), files()), ("old", 1));
        assert!(new_file(&path, "new").is_err());
        file(&path, "new").unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), files()), ("new", 1));
    }

    #[test]
    fn a_device_is_written_and_a_link_stays_one() {
        assert!(file(Path::new("/dev/full"), "text").is_err());
        file(Path::new("/dev/null"), "text").unwrap();
        assert!(!Path::new("/dev/null").is_file());
        let folder = tempfile::tempdir().unwrap();
        let [file_path, link] = ["file", "link"].map(|name| folder.path().join(name));
        fs::write(&file_path, "old").unwrap();
        std::os::unix::fs::symlink(&file_path, &link).unwrap();
        file(&link, "new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&file_path).unwrap(), "new");
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(escaped("weir: größer\n\tso"), "weir: größer\n\tso");
        assert_eq!(escaped("host \u{1b}]0;x\u{7}"), "host \\u{1b}]0;x\\u{7}");
    }
}
