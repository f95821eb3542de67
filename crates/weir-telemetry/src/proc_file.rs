//! Kernel files that are read repeatedly.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A file of `/proc` or `/sys` that stays open, with a buffer for its text. Reading it again opens
/// and allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct ProcFile {
    /// `None`: the file does not exist.
    file: Option<File>,
    buffer: Vec<u8>,
}

impl ProcFile {
    /// Opens the file; a missing or refused one has no text.
    pub(crate) fn open(path: impl AsRef<Path>) -> Self {
        Self { file: File::open(path).ok(), buffer: Vec::new() }
    }

    /// Returns whether the file exists.
    pub(crate) fn exists(&self) -> bool {
        self.file.is_some()
    }

    /// Reads the text; `None` without a file.
    pub(crate) fn read(&mut self) -> Option<&str> {
        let file = self.file.as_ref()?;
        let mut length = 0;
        loop {
            if self.buffer.len() == length {
                self.buffer.resize((2 * length).max(FIRST_BYTES), 0);
            }
            match file.read_at(&mut self.buffer[length..], length as u64) {
                Ok(0) => break,
                Ok(count) => length += count,
                Err(_) => return None,
            }
        }
        std::str::from_utf8(&self.buffer[..length]).ok()
    }
}

/// Most of these files are smaller.
const FIRST_BYTES: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_again_from_its_beginning_however_long() {
        let mut file = ProcFile::open("/proc/self/stat");
        assert!(file.exists());
        let first = file.read().unwrap().to_owned();
        let pid = first.split(' ').next().unwrap();
        assert!(file.read().unwrap().starts_with(pid));
        // Longer than the first buffer.
        let mut symbols = ProcFile::open("/proc/self/smaps");
        assert!(symbols.read().unwrap().len() > 2 * FIRST_BYTES);
        assert_eq!(ProcFile::open("/proc/no such file").read(), None);
    }
}
