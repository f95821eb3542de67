//! Rules about Markdown files: links that lead somewhere, one title each, lines and table cells of a readable length,
//! every crate in the list of crates.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use super::{Complaint, File};

/// Applies every rule of this module; `members` are the names of the workspace's crates.
pub(crate) fn check(files: &[File], members: &BTreeSet<String>) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| file.extension() == "md") {
        complaints.extend(check_title(file));
        complaints.extend(check_links(file, files));
        complaints.extend(check_widths(file));
    }
    complaints.extend(check_summary(files));
    complaints.extend(check_crate_list(files, members));
    complaints
}

/// Every page of the book is in its summary.
fn check_summary(files: &[File]) -> Vec<Complaint> {
    let Some(summary) = files.iter().find(|file| file.path == "docs/SUMMARY.md") else { return Vec::new() };
    let listed: BTreeSet<String> =
        summary.text().lines().flat_map(links).filter_map(|link| resolve(&summary.path, link)).collect();
    let is_page = |file: &&File| file.path.starts_with("docs/") && file.extension() == "md";
    let pages = files.iter().filter(is_page).filter(|file| file.path != summary.path);
    let missing = pages.filter(|file| !listed.contains(&file.path));
    missing.map(|file| file.complain(0, "is not in docs/SUMMARY.md")).collect()
}

fn check_title(file: &File) -> Option<Complaint> {
    // The parts of a book are titles in its summary.
    if file.path.ends_with("/SUMMARY.md") {
        return None;
    }
    let titles = prose(file.text()).filter(|(_, line)| line.starts_with("# ")).count();
    (titles != 1).then(|| file.complain(0, format!("has {titles} titles (`# ...`) instead of one")))
}

fn check_links(file: &File, files: &[File]) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (number, line) in prose(file.text()) {
        for target in links(line).filter(|target| !target.contains("://") && !target.starts_with("mailto:")) {
            if let Some(why) = broken(file, target, files) {
                complaints.push(file.complain(number, format!("the link to {target:?} is broken: {why}")));
            }
        }
    }
    complaints
}

/// Why a relative link leads nowhere, if it does.
fn broken(file: &File, target: &str, files: &[File]) -> Option<String> {
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if path.is_empty() { file.path.clone() } else { resolve(&file.path, path)? };
    let folder = format!("{path}/");
    if path.is_empty() || files.iter().any(|other| other.path.starts_with(&folder)) {
        return None;
    }
    let Some(found) = files.iter().find(|other| other.path == path) else {
        return Some(format!("there is no {path}"));
    };
    let has_anchor = || prose(found.text()).any(|(_, line)| line.starts_with('#') && slug(line) == anchor);
    (!anchor.is_empty() && !has_anchor()).then(|| format!("{path} has no heading for #{anchor}"))
}

/// Resolves a link from the root of the repository; a link out of it is unchanged and will not be found.
fn resolve(from: &str, link: &str) -> Option<String> {
    let mut path = PathBuf::from(from);
    path.pop();
    for component in Path::new(link).components() {
        match component {
            Component::ParentDir => drop(path.pop()),
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    path.to_str().map(str::to_owned)
}

/// Targets of links and images: what stands in `](...)`, without a title, or behind `[name]: `.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let reference = line.strip_prefix('[').and_then(|rest| rest.split_once("]: ")).map(|(_, target)| target);
    line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next()).chain(reference)
}

/// Lines end at 120 columns. Those of tables need not, but their cells hold short labels.
fn check_widths(file: &File) -> Vec<Complaint> {
    let is_generated = file.path.contains("/generated/") || file.path == COMMAND_LINES;
    let is_log = file.path == ENGINEERING_LOG;
    let mut complaints = Vec::new();
    for (number, line) in (1..).zip(file.text().lines()).filter(|_| !is_generated) {
        if !line.starts_with('|') {
            let width = line.chars().count();
            if width > LINE_MAX {
                let what = format!("{width} columns, over {LINE_MAX}: wrap the line");
                complaints.push(file.complain(number, what));
            }
        } else if !is_log && let Some(width) = cell_widths(line).find(|width| *width > CELL_MAX) {
            let what = format!("a cell of {width} characters, over {CELL_MAX}: move it into the text");
            complaints.push(file.complain(number, what));
        }
    }
    complaints
}

/// The characters of each cell as they are shown: without the targets of links.
fn cell_widths(row: &str) -> impl Iterator<Item = usize> {
    row.split('|').map(|cell| {
        let shown = |(index, part): (usize, &str)| {
            let text = if index == 0 { part } else { part.split_once(')').map_or("", |(_, rest)| rest) };
            text.replace(['`', '[', ']'], "").chars().count()
        };
        cell.trim().split("](").enumerate().map(shown).sum()
    })
}

/// The anchor that a heading gets: small letters, words joined by hyphens, no punctuation.
fn slug(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    text.chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

/// Lines outside code blocks.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        (!is_code && !is_fence).then_some((index + 1, line))
    })
}

/// `crates/README.md` has one entry for each crate in `crates/` and for no other one.
fn check_crate_list(files: &[File], members: &BTreeSet<String>) -> Vec<Complaint> {
    let Some(list) = files.iter().find(|file| file.path == "crates/README.md") else {
        return vec![Complaint { path: "crates/README.md".into(), line: 0, what: "does not exist".into() }];
    };
    let is_crate = |name: &&String| files.iter().any(|file| file.path == format!("crates/{name}/Cargo.toml"));
    let listed: BTreeSet<&str> =
        list.text().lines().filter_map(|line| line.strip_prefix("| [")?.split(']').next()).collect();
    let mut complaints = Vec::new();
    for name in members.iter().filter(is_crate).filter(|name| !listed.contains(name.as_str())) {
        complaints.push(list.complain(0, format!("does not list {name}")));
    }
    for name in listed.iter().filter(|name| !members.contains(**name)) {
        complaints.push(list.complain(0, format!("lists {name}, which does not exist")));
    }
    complaints
}

const LINE_MAX: usize = 120;
const CELL_MAX: usize = 60;

/// Generated by `weir reference`.
const COMMAND_LINES: &str = "docs/reference/command-lines.md";

/// Its tables hold sentences, as they were written when things were tried.
const ENGINEERING_LOG: &str = "docs/performance/log.md";

#[cfg(test)]
mod tests {
    use super::*;

    fn broken_links(text: &str) -> Vec<String> {
        let files = [
            File::new("docs/a.md", text),
            File::new("docs/b.md", "# B\n## How it is `measured`, and why\n"),
            File::new("crates/x/src/lib.rs", "//! X\n"),
        ];
        check_links(&files[0], &files).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn links_that_lead_somewhere_pass() {
        let text = "# A\n[b](b.md) [x](../crates/x/src/lib.rs) [folder](../crates/x) [web](https://example.org/nowhere)\n\
                    [up](#a) [h](b.md#how-it-is-measured-and-why) ![p](b.md \"title\") [top](..)\n[ref]: b.md\n```\n[code](nowhere.md)\n```\n";
        assert_eq!(broken_links(text), Vec::<String>::new());
    }

    #[test]
    fn broken_links_are_found() {
        assert_eq!(
            broken_links("# A\n[c](c.md) and [b](b.md#none)\n"),
            [
                "docs/a.md:2: the link to \"c.md\" is broken: there is no docs/c.md",
                "docs/a.md:2: the link to \"b.md#none\" is broken: docs/b.md has no heading for #none"
            ]
        );
        assert_eq!(broken_links("[out](../../secret.md)\n").len(), 1);
        assert_eq!(broken_links("[ref]: c.md\n").len(), 1);
    }

    #[test]
    fn long_lines_and_cells_are_found() {
        let widths = |path: &str, text: &str| check_widths(&File::new(path, text)).len();
        let (long, cell) = (format!("{}\n", "x".repeat(121)), format!("| a | {} |\n", "x".repeat(61)));
        assert_eq!((widths("a.md", &long), widths("a.md", &long[1..])), (1, 0));
        assert_eq!((widths("a.md", &cell), widths("a.md", &cell.replacen('x', "", 1))), (1, 0));
        assert_eq!(widths("a.md", &format!("| [b](../{}) |\n", "x".repeat(200))), 0);
        assert_eq!((widths(ENGINEERING_LOG, &cell), widths(ENGINEERING_LOG, &long)), (0, 1));
        assert_eq!(widths("docs/generated/a.md", &format!("{long}{cell}")), 0);
    }

    #[test]
    fn pages_are_in_the_summary() {
        let files = [
            File::new("docs/SUMMARY.md", "# Summary\n- [a](guide/a.md)\n"),
            File::new("docs/guide/a.md", "# A\n"),
            File::new("docs/b.md", "# B\n"),
            File::new("README.md", "# R\n"),
        ];
        let complaints: Vec<String> = check_summary(&files).iter().map(ToString::to_string).collect();
        assert_eq!(complaints, ["docs/b.md: is not in docs/SUMMARY.md"]);
    }

    #[test]
    fn a_page_has_one_title() {
        assert_eq!(check_title(&File::new("a.md", "# A\n## B\n```\n# comment\n```\n")), None);
        assert!(check_title(&File::new("a.md", "# A\n# B\n")).unwrap().what.contains("2 titles"));
        assert!(check_title(&File::new("a.md", "text\n")).is_some());
    }

    #[test]
    fn the_list_of_crates_is_complete() {
        let files =
            |list: &str| [File::new("crates/README.md", list), File::new("crates/weir-a/Cargo.toml", "")];
        let members = BTreeSet::from(["weir-a".to_owned(), "xtask".to_owned()]);
        let complaints = |list: &str| -> Vec<String> {
            check_crate_list(&files(list), &members).into_iter().map(|complaint| complaint.what).collect()
        };
        assert_eq!(complaints("| [weir-a](weir-a) | text |\n"), Vec::<String>::new());
        assert_eq!(
            complaints("| [weir-b](weir-b) | text |\n"),
            ["does not list weir-a", "lists weir-b, which does not exist"]
        );
        assert_eq!(check_crate_list(&[], &members).len(), 1);
    }
}
