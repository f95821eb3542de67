//! All measured tables on one page of Markdown.

use std::fmt::Write as _;

use super::show::{DIFFERENCES, MADE_BY, MEASURED};
use super::tables::Table;

/// Returns the page, from the saved texts of `tables`; `None` if there are none. Tables with the
/// same differences share one list of them.
pub(crate) fn page(tables: &[Table], text_of: impl Fn(&Table) -> Option<String>) -> Option<String> {
    let mut page = String::from(INTRODUCTION);
    let mut title = "";
    let mut all_differences: Vec<(String, Vec<&str>)> = Vec::new();
    let mut missing = Vec::new();
    for table in tables {
        let Some(text) = text_of(table) else {
            missing.push(table.name.as_str());
            continue;
        };
        if title != table.source.title {
            title = table.source.title;
            _ = write!(page, "\n## {title}\n");
        }
        let (figures, differences) = text.split_once(DIFFERENCES).unwrap_or((&text, ""));
        let (command, date, figures) = parted(figures);
        _ = write!(
            page,
            "\n### {}\n\n`{command}`{date}\n\n```text\n{}\n```\n",
            table.name,
            figures.trim_end()
        );
        match all_differences.iter_mut().find(|(known, _)| known == differences) {
            Some((_, names)) => names.push(&table.name),
            None => all_differences.push((differences.to_owned(), vec![&table.name])),
        }
    }
    if missing.len() == tables.len() {
        return None;
    }
    page += "\n## What differs\n";
    for (differences, names) in all_differences.iter().filter(|(differences, _)| !differences.is_empty()) {
        _ = write!(page, "\n{}:\n\n```text\n{}\n```\n", names.join(", "), differences.trim_end());
    }
    if !missing.is_empty() {
        page += "\n## Tables that are not on this page\n\n";
        missing.iter().for_each(|name| _ = writeln!(page, "- `{name}`"));
    }
    Some(page)
}

const INTRODUCTION: &str = "\
# RTI's published tables, and the same measured on one host

Each table shows our rows above the published ones, and the command that measured ours. The published rows were
measured between two hosts and ours on one, so the tables do not show which engine is faster. The end of the page
lists how the two setups differ. Our percentiles with a `*` are of too few samples: 99.99 % takes ten thousand round
trips, and 99.9999 % a million. To make this page, run `weir published run all --output DIR` as root,
with the options shown at each table, and then `weir published page DIR`.
";

/// Separates the command of a table, and when it was measured, from the table, and drops the source line.
fn parted(text: &str) -> (&str, String, String) {
    let (mut command, mut date) = ("", String::new());
    let mut rest = String::new();
    for line in text.lines() {
        if let Some(made_by) = line.strip_prefix(MADE_BY) {
            command = made_by;
        } else if let Some(measured) = line.strip_prefix(MEASURED) {
            date = format!(", {measured}");
        } else if !line.starts_with("source: ") {
            _ = writeln!(rest, "{line}");
        }
    }
    (command, date, rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::all;

    #[test]
    fn tables_have_their_commands_and_share_their_differences() {
        let tables = all();
        let text_of = |table: &Table| {
            let name = &table.name;
            let text = format!(
                "{name}: about\nsource: x\nmade by: run {name}\nmeasured: today\n\n\
                 \x20 rows of {name}\n{DIFFERENCES}  MTU 1\n"
            );
            name.starts_with("pro").then_some(text)
        };
        let page = page(&tables, text_of).unwrap();
        assert_eq!(page.matches("\n### pro-").count(), 12);
        assert_eq!(page.matches("\n## RTI").count(), 2);
        let expected = "### pro-latency-1g-unkeyed-reliable\n\n`run pro-latency-1g-unkeyed-reliable`, today\n\n\
                        ```text\n\
                        pro-latency-1g-unkeyed-reliable: about\n\n  rows of pro-latency-1g-unkeyed-reliable\n```\n";
        assert!(page.contains(expected), "{page}");
        assert_eq!(page.matches("MTU 1").count(), 1);
        let expected =
            "## Tables that are not on this page\n\n- `micro-latency-xeon-1g-keyed-best-effort`\n- `";
        assert!(page.contains(expected), "{page}");
        assert_eq!(super::page(&tables, |_| None), None);
    }
}
