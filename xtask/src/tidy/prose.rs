//! Rules about prose: the words that comments, messages and pages use, and the width of comments.

use super::{Complaint, File};
use scan::Span;

mod scan;

/// Most columns in a line that holds a comment.
const COMMENT_COLUMNS_MAX: usize = 120;

/// Words and phrases that are not used, in small letters, and what to write instead.
const WORDS: &[(&str, &str)] = &[
    ("anybody", NAME_THE_ACTOR),
    ("as it comes", "default configuration"),
    ("as they come", "default configuration"),
    ("asked for", "requested; of a figure: target"),
    ("asked to reach", "target"),
    ("behavior", "behaviour"),
    ("cannot tell", "inconclusive; cannot determine"),
    ("engines of others", "other engines, peers"),
    ("everybody", NAME_THE_ACTOR),
    ("floor", "baseline"),
    ("floors", "baselines"),
    ("give back", "return"),
    ("given back", "returned"),
    ("gives back", "returns"),
    ("goes alone", "single-sample datagram, uncoalesced"),
    ("hear", "receive"),
    ("heard", "received, acknowledged"),
    ("hears", "receives"),
    ("laid together", "compacted, coalesced"),
    ("lay together", "compact, coalesce"),
    ("lone", "single-sample, uncoalesced"),
    ("look at the clock", "clock read"),
    ("looks at the clock", "reads the clock"),
    ("mend", "fix"),
    ("mended", "fixed"),
    ("mends", "fixes"),
    ("mood", "speed state"),
    ("moods", "speed states"),
    ("nobody", NAME_THE_ACTOR),
    ("octet", "byte"),
    ("octets", "bytes, payload"),
    ("of ours", "our ..., workspace"),
    ("on its way", "in flight"),
    ("on their way", "in flight"),
    ("put down to", "attributed to"),
    ("put right", "fix, correct"),
    ("in turns", "interleaved"),
    ("rally", "ping-pong driver"),
    ("somebody", NAME_THE_ACTOR),
    ("straight way", "direct send, fast path"),
    ("stranger", "unmatched writer"),
    ("strangers", "unmatched writers"),
    ("tail probe", "tail loss probe"),
    ("tell", "report, distinguish"),
    ("tells", "reports, prints"),
    ("to its end", "completely"),
    ("to their end", "completely"),
    ("told", "reported, notified"),
    ("wants to know", "name the use, or: disabled"),
    ("way there and back", "round trip"),
    ("where asked to", "when enabled"),
    ("whoever", NAME_THE_ACTOR),
    ("whomever", NAME_THE_ACTOR),
];

const NAME_THE_ACTOR: &str = "name the actor: the sender, the waiting thread, ...";

/// Files with their own vocabulary: the engineering log, and this list.
const EXEMPT: &[&str] = &["docs/performance.md", "docs/performance/log.md", "xtask/src/tidy/prose.rs"];

/// Files and folders that still break these rules. Entries are only ever removed.
const UNFINISHED: &[&str] = &[];

/// Applies both rules to every file, and checks that `UNFINISHED` is up to date.
pub(crate) fn check(files: &[File]) -> Vec<Complaint> {
    check_with(files, UNFINISHED)
}

fn check_with(files: &[File], unfinished: &[&str]) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let mut is_needed = vec![false; unfinished.len()];
    for file in files.iter().filter(|file| !EXEMPT.contains(&file.path.as_str())) {
        let found = check_file(file);
        let covers =
            |entry: &&str| file.path == *entry || (entry.ends_with('/') && file.path.starts_with(*entry));
        match unfinished.iter().position(covers) {
            Some(entry) => is_needed[entry] |= !found.is_empty(),
            None => complaints.extend(found),
        }
    }
    let stale = unfinished.iter().zip(is_needed).filter(|(_, is_needed)| !is_needed);
    complaints.extend(stale.map(|(entry, _)| Complaint {
        path: (*entry).into(),
        line: 0,
        what: "has no findings: remove it from UNFINISHED in xtask/src/tidy/prose.rs".into(),
    }));
    complaints
}

fn check_file(file: &File) -> Vec<Complaint> {
    let spans = match file.extension() {
        "rs" | "c" | "cpp" | "h" => scan::rust(file.text()),
        "toml" => scan::toml(file.text()),
        "md" => scan::markdown(file.text()),
        _ => return Vec::new(),
    };
    let mut complaints = check_words(file, &spans);
    if file.extension() != "md" {
        complaints.extend(check_widths(file, &spans));
    }
    complaints
}

fn check_words(file: &File, spans: &[Span]) -> Vec<Complaint> {
    let words = scan::words(spans);
    let mut complaints = Vec::new();
    for (index, (line, first)) in words.iter().enumerate().filter(|(_, (_, word))| !word.is_empty()) {
        for (phrase, instead) in WORDS.iter().filter(|(phrase, _)| phrase.starts_with(first.as_str())) {
            let mut rest = words[index..].iter().map(|(_, word)| word.as_str());
            if phrase.split(' ').all(|word| rest.next() == Some(word)) {
                complaints.push(file.complain(*line, format!("{phrase:?}: write instead: {instead}")));
            }
        }
    }
    complaints
}

/// Lines with an address are exempt: it cannot be wrapped.
fn check_widths(file: &File, spans: &[Span]) -> Vec<Complaint> {
    let lines: Vec<&str> = file.text().lines().collect();
    let comments = spans
        .iter()
        .filter(|span| span.is_comment)
        .filter_map(|span| Some((span.line, *lines.get(span.line - 1)?)));
    comments
        .filter(|(_, line)| line.chars().count() > COMMENT_COLUMNS_MAX && !line.contains("://"))
        .map(|(number, _)| {
            file.complain(number, format!("comment over {COMMENT_COLUMNS_MAX} columns: wrap it"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        check_with(&[File::new(path, text)], &[]).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn words_are_found_in_comments_and_strings() {
        let text = "//! The octets of a sample.\nfn f() {\n    g(\"nobody waits\"); // Told once.\n}\n";
        assert_eq!(
            found("a.rs", text),
            [
                "a.rs:1: \"octets\": write instead: bytes, payload",
                "a.rs:3: \"nobody\": write instead: name the actor: the sender, the waiting thread, ...",
                "a.rs:3: \"told\": write instead: reported, notified",
            ]
        );
    }

    #[test]
    fn phrases_are_found_across_lines() {
        assert_eq!(found("a.rs", "// A datagram on its\n// way.\n").len(), 1);
        assert_eq!(found("a.md", "a datagram on its\nway.\n").len(), 1);
        assert_eq!(found("a.rs", "// A datagram on its\nlet way = 1;\n// way\n").len(), 0);
    }

    #[test]
    fn code_and_terms_are_no_prose() {
        assert_eq!(found("a.rs", "fn floor(octets: u8) {} // the `octets` of\n").len(), 0);
        assert_eq!(
            found("a.rs", "/// ```\n/// let octets = 1;\n/// ```\n/// OCTETS_TOLD\nfn f() {}\n").len(),
            0
        );
        assert_eq!(found("a.rs", "let a = format!(\"{octets} bytes\");\n").len(), 0);
        assert_eq!(found("a.md", "# A\n```\noctets\n```\n`octets`, [a](octets.md)\n").len(), 0);
        assert_eq!(found("a.toml", "floor = 1\n# the floor\n").len(), 1);
    }

    #[test]
    fn wide_comments_are_found() {
        let wide = "x ".repeat(60);
        assert_eq!(found("a.rs", &format!("// {wide}\n")), ["a.rs:1: comment over 120 columns: wrap it"]);
        assert_eq!(found("a.toml", &format!("# {wide}\n")).len(), 1);
        assert_eq!(found("a.rs", &format!("// https://example.org {wide}\n")).len(), 0);
        assert_eq!(found("a.rs", &format!("f(\"{wide}\");\n")).len(), 0);
    }

    #[test]
    fn unfinished_files_are_exempt_until_they_are_finished() {
        let bad = File::new("crates/x/src/a.rs", "// octets\n");
        let good = File::new("crates/y/a.rs", "// bytes\n");
        let check = |unfinished: &[&str]| check_with(&[bad.clone(), good.clone()], unfinished).len();
        assert_eq!(check(&[]), 1);
        assert_eq!(check(&["crates/x/"]), 0);
        assert_eq!(check(&["crates/x/src/a.rs"]), 0);
        assert_eq!(check(&["crates/x/", "crates/y/"]), 1);
        assert_eq!(check(&["crates/x/", "crates/none/"]), 1);
    }
}
