//! Rules about Rust files: their length, leftovers, what tests may not do.

use super::{Complaint, File};

/// Maximum number of code lines in a file, without its tests at the bottom, comments and blank
/// lines.
const CODE_LINES_MAX: usize = 600;

/// Files over the limit, with their length, which may only shrink.
const LONG_FILES: &[(&str, usize)] = &[];

/// Markers of unfinished work. Split in two here, so that this file passes its own rule.
const LEFTOVERS: &[(&str, &str)] =
    &[("todo", "!("), ("unimplemented", "!("), ("dbg", "!("), ("FIX", "ME"), ("TO", "DO"), ("XX", "X")];

/// What tests may not do: it would be slow or flaky, or would not run.
const NOT_IN_TESTS: &[(&str, &str, &str)] = &[
    ("#[ign", "ore", "tests are run or removed, never ignored"),
    ("#[should_", "panic", "assert on what is returned instead of a panic"),
    ("thread::", "sleep", "tests wait for something to happen, never for time to pass"),
];

/// Applies every rule of this module to one file.
pub(crate) fn check(file: &File) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    if file.extension() == "rs" {
        complaints.extend(check_length(file, LONG_FILES));
        complaints.extend(check_tests(file));
    }
    if ["rs", "toml", "md", "sh"].contains(&file.extension()) {
        complaints.extend(check_leftovers(file));
    }
    complaints
}

fn check_length(file: &File, allowances: &[(&str, usize)]) -> Option<Complaint> {
    let code = before_tests(file.text())
        .map(|(_, line)| line.trim())
        .filter(|line| !line.is_empty() && !line.starts_with("//"));
    let count = code.count();
    let allowance = allowances.iter().find(|(path, _)| *path == file.path).map(|(_, lines)| *lines);
    match allowance {
        Some(lines) if count < lines => {
            Some(file.complain(0, format!("is shorter now: write {count} in LONG_FILES, or remove it")))
        }
        Some(lines) if count == lines => None,
        _ if count <= CODE_LINES_MAX => None,
        _ => Some(file.complain(0, format!("{count} lines of code, {CODE_LINES_MAX} allowed: split it"))),
    }
}

fn check_leftovers(file: &File) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (number, line) in numbered(file.text()) {
        for (start, end) in LEFTOVERS {
            let word = format!("{start}{end}");
            if holds_word(line, &word) {
                complaints.push(file.complain(number, format!("{word:?} is left over")));
            }
        }
    }
    complaints
}

fn check_tests(file: &File) -> Vec<Complaint> {
    let is_test_file = file.path.contains("/tests/") || file.path.ends_with("/tests.rs");
    let first_test_line = if is_test_file { 0 } else { before_tests(file.text()).count() };
    let mut complaints = Vec::new();
    for (number, line) in numbered(file.text()).filter(|(number, _)| *number > first_test_line) {
        for (start, end, why) in NOT_IN_TESTS {
            if line.contains(&format!("{start}{end}")) {
                complaints.push(file.complain(number, *why));
            }
        }
    }
    complaints
}

/// Returns the lines up to the module of tests at the bottom of a file.
fn before_tests(text: &str) -> impl Iterator<Item = (usize, &str)> {
    numbered(text).take_while(|(_, line)| !line.starts_with("#[cfg(test)]"))
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line))
}

/// Returns whether the word occurs without letters, digits or underscores right before it or, for a
/// word that ends in a letter, after it.
fn holds_word(line: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        let is_inside =
            before.is_some_and(is_part) || (word.ends_with(is_part) && after.is_some_and(is_part));
        !is_inside
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(count: usize) -> String {
        "let x = 1;\n".repeat(count)
    }

    #[test]
    fn comments_blank_lines_and_tests_do_not_count() {
        let text =
            format!("//! Docs\n\n{}    // why\n#[cfg(test)]\nmod tests {{\n{}}}\n", lines(600), lines(300));
        assert_eq!(check_length(&File::new("a.rs", &text), &[]), None);
        let text = format!("{}#[cfg(test)]\nmod tests;\n", lines(601));
        assert!(check_length(&File::new("a.rs", &text), &[]).unwrap().what.starts_with("601 lines"));
    }

    #[test]
    fn an_allowance_only_shrinks() {
        let file = File::new("a.rs", &lines(700));
        assert_eq!(check_length(&file, &[("a.rs", 700)]), None);
        assert!(check_length(&file, &[("a.rs", 699)]).unwrap().what.contains("split"));
        assert!(check_length(&file, &[("a.rs", 701)]).unwrap().what.contains("shorter"));
        assert!(
            check_length(&File::new("a.rs", &lines(10)), &[("a.rs", 700)]).unwrap().what.contains("shorter")
        );
    }

    #[test]
    fn leftovers_are_found_as_words() {
        let text = format!("fine\n{}{}()\n// {}{}: later\n", "todo", "!", "FIX", "ME");
        let found: Vec<usize> =
            check_leftovers(&File::new("a.rs", &text)).iter().map(|complaint| complaint.line).collect();
        assert_eq!(found, [2, 3]);
        assert!(check_leftovers(&File::new("a.rs", "let my_todos = AUTODOC; // prefixed")).is_empty());
    }

    #[test]
    fn tests_neither_sleep_nor_hide() {
        let sleep = format!("std::thread::{}(ms);\n", "sleep");
        let text = format!("fn pace() {{ {sleep} }}\n#[cfg(test)]\nmod tests {{\n {sleep}}}\n");
        let found = check_tests(&File::new("src/a.rs", &text));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 5);
        assert_eq!(check_tests(&File::new("crates/a/tests/it/b.rs", &sleep)).len(), 1);
        assert_eq!(check_tests(&File::new("src/a/tests.rs", &format!("#[ig{}]\n", "nore"))).len(), 1);
    }
}
