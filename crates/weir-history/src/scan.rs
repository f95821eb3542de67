//! The results files of a folder.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file, and what changes when it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundFile {
    /// Relative to the folder.
    pub(crate) path: PathBuf,
    pub(crate) stamp: Stamp,
}

/// Differs from an earlier one if the file was written meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) bytes: i64,
    pub(crate) modified_ns: i64,
    pub(crate) inode: i64,
}

/// Levels of folders that are searched: TIME/STUDY/results.jsonl, in a folder of projects.
const DEPTH_MAX: usize = 5;
/// Files of a folder; further ones are left out.
const FILES_MAX: usize = 100_000;

/// Returns the `.jsonl` files of a folder and of the folders in it, sorted; `true`: there are too many. Hidden ones,
/// those behind symbolic links and what cannot be read are left out.
pub(crate) fn files(folder: &Path) -> (Vec<FoundFile>, bool) {
    let mut found = Vec::new();
    let mut folders = vec![(PathBuf::new(), 0)];
    while let Some((relative, depth)) = folders.pop() {
        let Ok(entries) = fs::read_dir(folder.join(&relative)) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Ok(kind) = entry.file_type() else { continue };
            if name.to_string_lossy().starts_with('.') {
                continue;
            }
            let path = relative.join(&name);
            if kind.is_dir() && depth < DEPTH_MAX {
                folders.push((path, depth + 1));
            } else if kind.is_file()
                && path.extension().is_some_and(|it| it == "jsonl")
                && let Ok(metadata) = entry.metadata()
            {
                found.push(FoundFile { path, stamp: Stamp::of(&metadata) });
            }
        }
        if found.len() > FILES_MAX {
            break;
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    let is_too_many = found.len() > FILES_MAX;
    found.truncate(FILES_MAX);
    (found, is_too_many)
}

impl Stamp {
    fn of(metadata: &fs::Metadata) -> Self {
        Self {
            bytes: metadata.len() as i64,
            modified_ns: metadata.mtime().wrapping_mul(1_000_000_000).wrapping_add(metadata.mtime_nsec()),
            inode: metadata.ino() as i64,
        }
    }
}
