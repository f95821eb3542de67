//! Rules about Cargo's manifests: one minimum Rust version wherever it is written, lints that no crate escapes, and a
//! workspace of other engines that the main one does not reach.

use super::{Complaint, File};

/// The only crates that may have unsafe code: foreign calls to the kernel and to other engines.
const MAY_BE_UNSAFE: &[&str] = &["crates/weir-udp/Cargo.toml", "peers/weir-peers/Cargo.toml"];

/// The workspace of the other engines.
const PEERS: &str = "peers/Cargo.toml";

/// What both workspaces state: the same engine is built in both, with the same profile, or their figures differ.
const SHARED: &[&str] = &[
    "[workspace.package]",
    "[workspace.lints.rust]",
    "[workspace.lints.clippy]",
    "[profile.dev]",
    "[profile.release]",
];

/// The other engines' packages, which are for `peers/` only.
const ENGINES: &[&str] =
    &["dust_dds", "int2dds", "rusteron-media-driver", "rustdds", "weir-peers", "zenoh", "zmq"];

/// Applies every rule of this module.
pub(crate) fn check(files: &[File]) -> Vec<Complaint> {
    let mut complaints = check_rust_version(files);
    complaints.extend(check_lock(files));
    complaints.extend(check_peers(files));
    for file in files.iter().filter(|file| file.path.ends_with("Cargo.toml")) {
        complaints.extend(check_lints(file, files));
    }
    complaints
}

/// The main workspace's lock file has no other engine: what the product needs is what it is built from.
fn check_lock(files: &[File]) -> Vec<Complaint> {
    let Some(lock) = files.iter().find(|file| file.path == "Cargo.lock") else { return Vec::new() };
    let engine = |line: &str| {
        let name = line.strip_prefix("name = \"")?.strip_suffix('"')?;
        ENGINES.contains(&name).then(|| format!("{name} is for the workspace peers/ only"))
    };
    let complain = |(index, line)| engine(line).map(|what| lock.complain(index + 1, what));
    lock.text().lines().enumerate().filter_map(complain).collect()
}

/// The workspace of the other engines states what the main one states.
fn check_peers(files: &[File]) -> Vec<Complaint> {
    let find = |path: &str| files.iter().find(|file| file.path == path);
    let (Some(root), Some(peers)) = (find("Cargo.toml"), find(PEERS)) else { return Vec::new() };
    let lines = |file: &'_ File, header: &'_ str| -> Vec<String> {
        let stated = section(file.text(), header).filter(|line| !line.is_empty() && !line.starts_with('#'));
        stated.map(str::to_owned).collect()
    };
    let differ = SHARED.iter().filter(|header| lines(root, header) != lines(peers, header));
    differ.map(|header| peers.complain(0, format!("{header} differs from the main workspace's"))).collect()
}

/// Every member takes its workspace's lints, where unsafe code is forbidden; only the crates of
/// foreign calls set their own.
fn check_lints(file: &File, files: &[File]) -> Option<Complaint> {
    let text = file.text();
    if ["Cargo.toml", PEERS].contains(&file.path.as_str()) {
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

    #[test]
    fn other_engines_stay_out_of_the_lock_file() {
        let lock = "[[package]]\nname = \"bytes\"\n\n[[package]]\nname = \"zenoh\"\n";
        assert_eq!(
            complaints(&[("Cargo.lock", lock)]),
            ["Cargo.lock:5: zenoh is for the workspace peers/ only"]
        );
        assert!(complaints(&[("peers/Cargo.lock", lock)]).is_empty());
    }

    #[test]
    fn both_workspaces_build_the_same_way() {
        assert!(complaints(&[("peers/Cargo.toml", root().text())]).is_empty());
        let other = format!("{}\n[profile.release]\nlto = \"fat\"\n", root().text());
        assert_eq!(
            complaints(&[("peers/Cargo.toml", &other)]),
            ["peers/Cargo.toml: [profile.release] differs from the main workspace's"]
        );
    }
}
