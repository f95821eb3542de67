//! Rules about files: no editor backups, no binaries, no paths of a single machine.

use super::{Complaint, File};

/// Extensions that a file may have, anywhere.
const EXTENSIONS: &[&str] = &[
    "c",
    "cpp",
    "css",
    "csv",
    "h",
    "idl",
    "json",
    "jsonl",
    "lock",
    "md",
    "proptest-regressions",
    "rs",
    "snap",
    "svg",
    "toml",
    "txt",
];

/// Files without one of those extensions.
const NAMES: &[&str] = &[".ci/run", ".gitattributes", ".gitignore", "LICENSE-APACHE", "LICENSE-MIT"];

/// Where files that are not text may be.
const BINARY_FOLDERS: &[&str] = &["fuzz/corpus/"];

/// Where the pictures of the documentation are.
const PICTURES: &str = "docs/pictures/";

const PICTURE_SIZE_MAX: usize = 200_000;

const SIZE_MAX: usize = 1 << 20;

/// Folders that exist only on their author's machine. Split in two, so that this file passes its
/// own rule.
const MACHINE_FOLDERS: &[(&str, &str)] = &[("/ho", "me/"), ("/Us", "ers/"), ("/wo", "rk/"), ("/ro", "ot/")];

/// Applies every rule of this module to one file.
pub(crate) fn check(file: &File) -> Vec<Complaint> {
    if BINARY_FOLDERS.iter().any(|folder| file.path.starts_with(folder)) {
        let complaint = || file.complain(0, "corpus file over 4096 bytes: shrink it");
        return (file.size > 4096).then(complaint).into_iter().collect();
    }
    if file.path.starts_with(PICTURES) && file.extension() == "png" {
        let complaint = || file.complain(0, format!("picture over {PICTURE_SIZE_MAX} bytes: shrink it"));
        return (file.size > PICTURE_SIZE_MAX).then(complaint).into_iter().collect();
    }
    let mut complaints = Vec::new();
    let is_known = NAMES.contains(&file.path.as_str()) || EXTENSIONS.contains(&file.extension());
    if !is_known {
        complaints.push(file.complain(0, "does not belong here (or is missing in xtask/src/tidy/files.rs)"));
    }
    if file.size > SIZE_MAX {
        complaints.push(file.complain(0, format!("{} bytes: too large for the repository", file.size)));
    }
    match &file.text {
        None => complaints.push(file.complain(0, "is no text")),
        Some(text) => complaints.extend(check_text(file, text)),
    }
    complaints
}

fn check_text(file: &File, text: &str) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    if text.is_empty() {
        complaints.push(file.complain(0, "is empty"));
    } else if !text.ends_with('\n') && !["svg", "snap"].contains(&file.extension()) {
        complaints.push(file.complain(0, "has no line end at its end"));
    }
    for (index, line) in text.lines().enumerate() {
        if line.ends_with([' ', '\t']) && file.extension() != "snap" {
            complaints.push(file.complain(index + 1, "ends in white space"));
        }
        if text.contains('\r') && index == 0 {
            complaints.push(file.complain(0, "has carriage returns"));
        }
        for (start, end) in MACHINE_FOLDERS {
            let folder = format!("{start}{end}");
            // A file system path starts a word; a path in a URL does not.
            if line
                .match_indices(&folder)
                .any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '.'))
            {
                complaints.push(file.complain(index + 1, format!("names a folder of one machine: {folder}")));
            }
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(path: &str, text: &str) -> Vec<String> {
        check(&File::new(path, text)).into_iter().map(|complaint| complaint.what).collect()
    }

    #[test]
    fn ordinary_files_pass() {
        let none: Vec<String> = Vec::new();
        assert_eq!(complaints("crates/x/src/lib.rs", "fn x() {}\n"), none);
        assert_eq!(complaints("LICENSE-MIT", "text\n"), none);
        assert_eq!(complaints(".ci/run", "cargo xtask ci\n"), none);
    }

    #[test]
    fn strays_are_found() {
        for path in ["notes.orig", "crates/.DS_Store", "core", "a/LICENSE-MIT", "trace.pcap"] {
            assert!(complaints(path, "x\n")[0].contains("belong"), "{path}");
        }
        assert_eq!(complaints("a.rs", ""), ["is empty"]);
        assert_eq!(complaints("a.rs", "x"), ["has no line end at its end"]);
        assert_eq!(complaints("a.rs", "x \n"), ["ends in white space"]);
        assert_eq!(complaints("a.rs", "x\r\n"), ["has carriage returns"]);
        let binary = File { path: "a.rs".into(), text: None, size: 2 << 20 };
        assert_eq!(check(&binary).len(), 2);
    }

    #[test]
    fn the_corpus_may_be_binary_but_not_large() {
        let seed = |size| check(&File { path: "fuzz/corpus/message/seed".into(), text: None, size });
        assert!(seed(100).is_empty());
        assert_eq!(seed(5000).len(), 1);
    }

    #[test]
    fn pictures_are_in_their_folder_and_small() {
        let picture = |path: &str, size| check(&File { path: path.into(), text: None, size });
        assert!(picture("docs/pictures/report.png", 150_000).is_empty());
        assert_eq!(picture("docs/pictures/report.png", 250_000).len(), 1);
        assert!(!picture("docs/guide/report.png", 100).is_empty());
    }

    #[test]
    fn paths_of_a_machine_are_found() {
        let text = format!("see /{}/me/x\n", "home");
        assert!(complaints("a.md", &text)[0].contains("one machine"));
        assert!(complaints("a.md", &format!("https://example.org/{}/x\n", "home")).is_empty());
    }
}
