//! Files that take their place when they are complete.

use std::fs::{self, File};
use std::io::{self, BufWriter, IntoInnerError, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A file that is written beside its place, as `NAME.partial-PID`, and takes its place when it is complete.
///
/// Dropped before that, it is removed, and what was there is unchanged. If the process is killed, it stays beside.
/// A symbolic link stays one. Devices and pipes, which cannot be replaced, are written directly.
#[derive(Debug)]
pub struct WholeFile {
    file: File,
    place: PathBuf,
    /// `None`: it is in its place.
    beside: Option<PathBuf>,
}

impl WholeFile {
    /// Begins a file for this path.
    ///
    /// # Errors
    /// If no file can be created in its folder.
    pub fn create(path: &Path) -> io::Result<Self> {
        let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let is_replaced = place.metadata().map_or(true, |it| it.is_file());
        let beside = is_replaced.then(|| partial(&place));
        let file = File::create(beside.as_ref().unwrap_or(&place))?;
        Ok(Self { file, place, beside })
    }

    /// Appends all of some bytes and passes them to the system, or none of them.
    ///
    /// # Errors
    /// If they cannot be written, e.g. because the disk is full.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let before = self.file.metadata()?.len();
        self.file.write_all(bytes).inspect_err(|_| self.cut_to(before))
    }

    /// Removes what was written behind a length. The first error is the one to report, and a device has no length.
    fn cut_to(&mut self, len: u64) {
        if self.file.set_len(len).is_ok() {
            _ = self.file.seek(SeekFrom::Start(len));
        }
    }

    /// Puts the complete file in its place.
    ///
    /// # Errors
    /// If it cannot be stored or renamed. It stays beside its place then, and the error says where.
    pub fn finish(mut self) -> io::Result<()> {
        let Some(beside) = self.beside.take() else { return Ok(()) };
        let stored = self.file.sync_all().and_then(|()| fs::rename(&beside, &self.place));
        stored.map_err(|error| {
            io::Error::new(error.kind(), format!("{error}; what was written is in {}", beside.display()))
        })
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if let Some(beside) = &self.beside {
            _ = fs::remove_file(beside);
        }
    }
}

/// Writes a whole file. After an error, what was there is unchanged.
///
/// # Errors
/// The first error of the system or of `write`.
pub fn write_whole<T>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<WholeFile>) -> io::Result<T>,
) -> io::Result<T> {
    let mut file = BufWriter::new(WholeFile::create(path)?);
    let done = write(&mut file)?;
    // The error of a last write must not be lost.
    file.into_inner().map_err(IntoInnerError::into_error)?.finish()?;
    Ok(done)
}

/// The name of a file until it is complete.
fn partial(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".partial-{}", std::process::id()));
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_takes_its_place_when_it_is_complete_and_leaves_nothing_if_it_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.txt");
        fs::write(&path, "old").unwrap();
        let read = || fs::read_to_string(&path).unwrap();
        let mut file = WholeFile::create(&path).unwrap();
        file.append(b"ne").unwrap();
        assert_eq!(read(), "old");
        drop(file);
        assert_eq!((read().as_str(), fs::read_dir(folder.path()).unwrap().count()), ("old", 1));
        let mut file = WholeFile::create(&path).unwrap();
        file.append(b"ne").unwrap();
        file.append(b"w").unwrap();
        file.finish().unwrap();
        assert_eq!((read().as_str(), fs::read_dir(folder.path()).unwrap().count()), ("new", 1));
    }

    /// A file of which `bytes` are written, in a folder of its own.
    fn begun(bytes: &[u8]) -> (tempfile::TempDir, PathBuf, WholeFile) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.txt");
        let mut file = WholeFile::create(&path).unwrap();
        file.append(bytes).unwrap();
        (folder, path, file)
    }

    #[test]
    fn a_complete_file_that_cannot_take_its_place_is_kept() {
        let (_folder, path, file) = begun(b"measured");
        fs::create_dir(&path).unwrap();
        let error = file.finish().unwrap_err().to_string();
        assert!(error.ends_with(&format!("what was written is in {}", partial(&path).display())), "{error}");
        assert_eq!(fs::read_to_string(partial(&path)).unwrap(), "measured");
    }

    #[test]
    fn a_failed_append_leaves_no_hole() {
        let (_folder, path, mut file) = begun(b"row\n");
        // As an append that has written a part.
        file.file.write_all(b"ro").unwrap();
        file.cut_to(4);
        file.append(b"next\n").unwrap();
        file.finish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "row\nnext\n");
    }

    #[test]
    fn what_cannot_be_replaced_is_written_directly() {
        assert!(WholeFile::create(Path::new("/dev/full")).unwrap().append(b"x").is_err());
        let mut file = WholeFile::create(Path::new("/dev/null")).unwrap();
        file.append(b"x").unwrap();
        file.finish().unwrap();
        assert!(!Path::new("/dev/null").is_file());
    }
}
