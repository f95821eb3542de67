//! Rules about Cargo's manifests: one minimum Rust version everywhere, and lints for every crate.

use super::{Complaint, File};

/// The only crates that may have unsafe code: foreign calls to the kernel and to other engines.
const MAY_BE_UNSAFE: &[&str] = &["crates/weir-peers/Cargo.toml", "crates/weir-udp/Cargo.toml"];

/// Applies every rule of this module.
pub(crate) fn check(files: &[File]) -> Vec<Complaint> {
    let mut complaints = check_rust_version(files);
    for file in files.iter().filter(|file| file.path.ends_with("Cargo.toml")) {
        complaints.extend(check_lints(file, files));
    }
    complaints
}

/// Every member inherits the workspace's lints, which forbid unsafe code; only the crate of sockets
/// sets its own.
fn check_lints(file: &File, files: &[File]) -> Option<Complaint> {
    let text = file.text();
    if file.path == "Cargo.toml" {
        let forbids = section(text, "[workspace.lints.rust]").any(|line| line == "unsafe_code = \"forbid\"");
        return (!forbids).then(|| file.complain(0, "[workspace.lints.rust] has to forbid unsafe_code"));
    }
    if MAY_BE_UNSAFE.contains(&file.path.as_str())
        || section(text, "[lints]").any(|line| line == "workspace = true")
    {
        return None;
    }
    let library = file.path.replace("Cargo.toml", "src/lib.rs");
    let forbids =
        files.iter().any(|other| other.path == library && other.text().contains("#![forbid(unsafe_code)]"));
    (!forbids).then(|| {
        file.complain(0, "has neither `[lints] workspace = true` nor a library that forbids unsafe_code")
    })
}

/// Returns the lines of one section of a manifest.
fn section<'a>(text: &'a str, header: &'a str) -> impl Iterator<Item = &'a str> {
    let after = text.lines().map(str::trim).skip_while(move |line| *line != header).skip(1);
    after.take_while(|line| !line.starts_with('['))
}

fn check_rust_version(files: &[File]) -> Vec<Complaint> {
    let Some(root) = files.iter().find(|file| file.path == "Cargo.toml") else { return Vec::new() };
    let Some((_, wanted)) = versions(root).into_iter().next() else {
        return vec![root.complain(0, "has no rust-version")];
    };
    let mut complaints = Vec::new();
    for file in files {
        for (line, found) in versions(file).into_iter().filter(|(_, found)| *found != wanted) {
            complaints.push(file.complain(line, format!("has Rust {found}, but the workspace has {wanted}")));
        }
    }
    let readme = files.iter().find(|file| file.path == "README.md");
    if let Some(readme) = readme.filter(|readme| versions(readme).is_empty()) {
        complaints.push(readme.complain(0, format!("does not mention the required Rust version {wanted}")));
    }
    complaints
}

/// Finds every mention of a minimum Rust version: in manifests and clippy's configuration by key,
/// in prose as "Rust 1.x".
fn versions(file: &File) -> Vec<(usize, String)> {
    let markers: &[&str] = match file.path.rsplit('.').next() {
        Some("toml") => &["rust-version = \"", "msrv = \""],
        Some("md") if file.path != "CHANGELOG.md" => &["Rust 1", "rustc 1"],
        _ => &[],
    };
    let mut found = Vec::new();
    for (index, line) in file.text().lines().enumerate() {
        for marker in markers {
            for (at, _) in line.match_indices(marker) {
                // The digit that marks prose belongs to the version.
                let start = at + marker.trim_end_matches('1').len();
                let version: String =
                    line[start..].chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
                found.push((index + 1, version.trim_end_matches('.').to_owned()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> File {
        File::new(
            "Cargo.toml",
            "[workspace.package]\nrust-version = \"1.88\"\n\n[workspace.lints.rust]\nunsafe_code = \"forbid\"\n",
        )
    }

    fn complaints(more: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<File> =
            std::iter::once(root()).chain(more.iter().map(|(path, text)| File::new(path, text))).collect();
        check(&files).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn equal_versions_pass() {
        let readme = "Needs Linux and Rust 1.88.\n";
        assert!(
            complaints(&[("README.md", readme), ("CHANGELOG.md", "Raised from Rust 1.80.\n")]).is_empty()
        );
    }

    #[test]
    fn another_version_is_found_wherever_it_is() {
        let manifest = "rust-version = \"1.87\"\n[lints]\nworkspace = true\n";
        assert_eq!(
            complaints(&[("README.md", "a\nRust 1.80 or newer\n"), ("fuzz/Cargo.toml", manifest)]),
            [
                "README.md:2: has Rust 1.80, but the workspace has 1.88",
                "fuzz/Cargo.toml:1: has Rust 1.87, but the workspace has 1.88"
            ]
        );
        assert_eq!(
            complaints(&[("README.md", "nothing\n")]),
            ["README.md: does not mention the required Rust version 1.88"]
        );
        assert_eq!(complaints(&[("clippy.toml", "msrv = \"1.70\"\n")]).len(), 1);
    }

    #[test]
    fn no_crate_escapes_the_ban_on_unsafe_code() {
        let own = "[package]\nname = \"x\"\n";
        assert_eq!(complaints(&[("crates/x/Cargo.toml", own)]).len(), 1);
        assert!(complaints(&[("crates/x/Cargo.toml", "[lints]\nworkspace = true\n")]).is_empty());
        assert!(complaints(&[("crates/weir-udp/Cargo.toml", own)]).is_empty());
        assert!(
            complaints(&[("fuzz/Cargo.toml", own), ("fuzz/src/lib.rs", "#![forbid(unsafe_code)]\n")])
                .is_empty()
        );
        let lax = File::new(
            "Cargo.toml",
            "rust-version = \"1.88\"\n[workspace.lints.rust]\nunsafe_code = \"warn\"\n",
        );
        assert_eq!(check(&[lax]).len(), 1);
    }
}
