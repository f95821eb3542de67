//! Files that take their place when they are complete.

use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, IntoInnerError, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A file that is written beside its place, as `NAME.partial-PID`, and takes its place when it is complete.
///
/// Dropped before that, it is removed, and what was there is unchanged. If the process is killed, it stays beside.
/// A symbolic link stays one, and a file that is replaced hands its permissions on. Devices and pipes, which cannot be
/// replaced, are written directly, and so is `/dev/stdout`, wherever it leads.
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
        let place = place_of(path);
        let before = place.metadata().ok();
        // A link that leads nowhere is for the system to refuse.
        let is_replaced =
            !is_of_system(&place) && !place.is_symlink() && before.as_ref().is_none_or(Metadata::is_file);
        let beside = is_replaced.then(|| partial(&place));
        let file = File::create(beside.as_ref().unwrap_or(&place))?;
        if let Some(before) = before.filter(|_| is_replaced) {
            // Before anything is written: it may be secret.
            file.set_permissions(before.permissions())?;
        }
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

/// Where symbolic links lead, even if nothing is there yet.
fn place_of(path: &Path) -> PathBuf {
    let mut place = path.to_owned();
    for _ in 0..LINKS_MAX {
        if is_of_system(&place) {
            break;
        }
        let Ok(target) = fs::read_link(&place) else { break };
        // An absolute target replaces all of it.
        place = place.parent().unwrap_or(Path::new("")).join(target);
    }
    place
}

/// Whether it is a device, or what a process has open: not to be replaced, even if it leads to a file.
fn is_of_system(path: &Path) -> bool {
    path.starts_with("/dev") || path.starts_with("/proc")
}

/// As many symbolic links as Linux follows (path_resolution(7)).
const LINKS_MAX: usize = 40;

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

    #[cfg(unix)]
    #[test]
    fn links_and_permissions_outlive_a_replacement() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        symlink("second", at("first")).unwrap();
        symlink(at("report.txt"), at("second")).unwrap();
        for text in ["where nothing was", "again"] {
            let mut file = WholeFile::create(&at("first")).unwrap();
            file.append(text.as_bytes()).unwrap();
            file.finish().unwrap();
            assert!(at("first").is_symlink() && at("second").is_symlink());
            assert_eq!(fs::read_to_string(at("report.txt")).unwrap(), text);
            fs::set_permissions(at("report.txt"), fs::Permissions::from_mode(0o600)).unwrap();
        }
        let mut file = WholeFile::create(&at("report.txt")).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&partial(&at("report.txt"))), 0o600);
        file.append(b"secret").unwrap();
        file.finish().unwrap();
        assert_eq!(mode(&at("report.txt")), 0o600);
        // A link to itself leads nowhere.
        symlink("loop", at("loop")).unwrap();
        assert!(WholeFile::create(&at("loop")).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_a_process_has_open_is_not_replaced() {
        use std::os::fd::AsRawFd as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("redirected");
        let open = File::create(&path).unwrap();
        // As `/dev/stdout` is a link to it.
        let link = PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd()));
        let mut file = WholeFile::create(&link).unwrap();
        file.append(b"x").unwrap();
        file.finish().unwrap();
        assert_eq!((open.metadata().unwrap().len(), fs::read_dir(folder.path()).unwrap().count()), (1, 1));
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
