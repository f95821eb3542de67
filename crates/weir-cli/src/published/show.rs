//! Prints published tables, with our rows if measured, as text, CSV and JSON.

use std::fmt::Write as _;
use std::ops::Range;

use serde_json::{Map, Value, json};
use weir_results::Test;

use super::differences::Difference;
use super::run::OurRow;
use super::tables::{Document, Row, Table, columns};

/// A published table with the rows measured on this host.
pub(crate) struct Shown {
    /// The published table.
    pub(crate) table: Table,
    /// Rows measured on this host.
    pub(crate) ours: Vec<OurRow>,
    /// Differences of the setups; empty when nothing was measured.
    pub(crate) differences: Vec<Difference>,
    /// The measuring command; empty when nothing was measured.
    pub(crate) command: String,
    /// When it began, as in results; empty when nothing was measured.
    pub(crate) date: String,
}

impl Shown {
    /// A table with its published rows alone.
    pub(crate) fn published(table: Table) -> Self {
        let (ours, differences) = (Vec::new(), Vec::new());
        Self { table, ours, differences, command: String::new(), date: String::new() }
    }

    /// The rows to print: those that were measured, or all if nothing was.
    fn rows(&self) -> impl Iterator<Item = &Row> {
        self.table.rows.iter().filter(|row| self.ours.is_empty() || self.ours(row).is_some())
    }

    /// Our row of the same size, if measured.
    fn ours(&self, published: &Row) -> Option<&OurRow> {
        self.ours.iter().find(|ours| ours.published.size == published.size)
    }
}

/// Before the command, and the time, of a measurement.
pub(super) const MADE_BY: &str = "made by: ";
pub(super) const MEASURED: &str = "measured: ";

/// Heading of the differences.
pub(super) const DIFFERENCES: &str = "\nwhat differs:\n";

/// As text, with the columns in several parts if they do not fit in `width`.
pub(crate) fn table_text(shown: &Shown, width: Option<usize>) -> String {
    let Shown { table, ours, differences, command, date } = shown;
    let mut text = format!("{}: {}\nsource: {}\n", table.name, about(table), table.source.title);
    if !command.is_empty() {
        _ = writeln!(text, "{MADE_BY}{command}\n{MEASURED}{date}");
    }
    let all = columns(table.test).len();
    let fitting =
        width.map_or(all, |width| width.saturating_sub(NAMES_WIDTH) / (self::width(table.test) + 1));
    let parts = all.div_ceil(fitting.max(1));
    for from in (0..all).step_by(all.div_ceil(parts)) {
        push_part(&mut text, shown, from..all.min(from + all.div_ceil(parts)));
    }
    if ours.iter().any(|row| row.of_few.contains(&true)) {
        text += "* of too few samples: another run may differ much\n";
    }
    if shown.rows().any(|row| row.is_doubtful) {
        text += "? as published: Mbit/s do not match samples/s at this size\n";
    }
    if ours.iter().any(|row| row.of_link.is_some()) {
        text +=
            "of link: share of the rate that the link carries after the RTPS, UDP, IP and Ethernet headers\n";
    }
    if !differences.is_empty() {
        text += DIFFERENCES;
        for Difference { what, published, here } in differences {
            _ = writeln!(text, "  {what:11} published: {published}\n  {:11} here:      {here}", "");
        }
    }
    text
}

/// The rows with some of the columns. The last ones have with them what else there is to say about a row.
fn push_part(text: &mut String, shown: &Shown, part: Range<usize>) {
    let Shown { table, ours, .. } = shown;
    let is_last = part.end == columns(table.test).len();
    let has_link = is_last && ours.iter().any(|row| row.of_link.is_some());
    let width = width(table.test);
    _ = write!(text, "\n{:>8}  {:9}", "Size", "");
    columns(table.test)[part.clone()].iter().for_each(|(name, ..)| _ = write!(text, " {name:>width$}"));
    *text += if has_link { "  of link\n" } else { "\n" };
    for row in shown.rows() {
        let mut size = row.size.to_string();
        if let Some(mine) = shown.ours(row) {
            _ = write!(text, "{size:>8}  {:9}", "ours");
            size.clear();
            if let Some(figures) = &mine.figures {
                push_figures(text, table.test, figures, part.clone(), 1, &mine.of_few);
            }
            if let Some(share) = mine.of_link.filter(|_| is_last) {
                _ = write!(text, "  {share:7.3}");
            }
            if let Some(trouble) = mine.trouble.as_ref().filter(|_| is_last) {
                _ = write!(text, "  {trouble}");
            }
            *text += if is_last && mine.is_lossy && table.reliable { "  LOST\n" } else { "\n" };
        }
        _ = write!(text, "{size:>8}  {:9}", "published");
        push_figures(text, table.test, &row.figures, part.clone(), 0, &[]);
        *text += if is_last && row.is_doubtful { " ?\n" } else { "\n" };
    }
}

/// As CSV: a row for each published and each measured row, with a header.
pub(crate) fn csv(all: &[Shown]) -> String {
    let mut text = String::new();
    for test in [Test::Latency, Test::Throughput] {
        let mut of_test = all.iter().filter(|shown| shown.table.test == test).peekable();
        if of_test.peek().is_none() {
            continue;
        }
        text += "table,size_bytes,who";
        columns(test).iter().for_each(|(_, key, _)| _ = write!(text, ",{key}"));
        text += ",of_link,note\n";
        for shown in of_test {
            let mut push = |row: &Row, who: &str, figures: &[f64], of_link: &str, note: &str| {
                _ = write!(text, "{},{},{who},", shown.table.name, row.size);
                let figure = |at| figures.get(at).map_or_else(String::new, f64::to_string);
                let figures: Vec<String> = (0..columns(test).len()).map(figure).collect();
                _ = writeln!(text, "{},{of_link},{note}", figures.join(","));
            };
            for row in &shown.table.rows {
                if let Some(mine) = shown.ours(row) {
                    let of_link = mine.of_link.map_or_else(String::new, |share| format!("{share:.4}"));
                    let few = names_of_few(test, mine).join(" ");
                    let few = if few.is_empty() { few } else { format!("too few samples: {few}") };
                    let note = mine.trouble.as_deref().unwrap_or(&few).replace([',', '"'], ";");
                    push(row, "ours", mine.figures.as_deref().unwrap_or_default(), &of_link, &note);
                }
                let note = if row.is_doubtful { "contradicts itself" } else { "" };
                push(row, "published", &row.figures, "", note);
            }
        }
    }
    text
}

/// As one JSON document.
pub(crate) fn json(all: &[Shown]) -> String {
    let tables: Vec<Value> = all.iter().map(as_json).collect();
    let mut text = serde_json::to_string_pretty(&json!({ "tables": tables })).unwrap_or_default();
    text.push('\n');
    text
}

/// The figures of another program, unchanged.
pub(crate) fn document_text(document: &Document) -> String {
    format!(
        "{}: {}\nto measure the same: {}\n\n{}",
        document.name, document.about, document.instead, document.text
    )
}

fn as_json(shown: &Shown) -> Value {
    let Shown { table, differences, command, date, .. } = shown;
    let figures = |figures: &[f64]| -> Value {
        let pairs = columns(table.test).iter().zip(figures);
        let pairs = pairs.map(|((_, key, _), figure)| ((*key).to_owned(), json!(figure)));
        Value::Object(pairs.collect::<Map<_, _>>())
    };
    let rows: Vec<Value> = table
        .rows
        .iter()
        .map(|row| {
            let mine = shown.ours(row);
            json!({
                "size_bytes": row.size,
                "published": figures(&row.figures),
                "published_contradicts_itself": row.is_doubtful,
                "ours": mine.and_then(|mine| mine.figures.as_deref()).map(figures),
                "ours_of_too_few_samples": mine.map(|mine| names_of_few(table.test, mine)),
                "of_link": mine.and_then(|mine| mine.of_link),
                "lost_reliable_samples": mine.map(|mine| mine.is_lossy && table.reliable),
                "trouble": mine.and_then(|mine| mine.trouble.as_deref()),
            })
        })
        .collect();
    let differences: Vec<Value> = differences
        .iter()
        .map(|it| json!({ "what": it.what, "published": it.published, "here": it.here }))
        .collect();
    json!({
        "name": table.name,
        "test": table.test.name(),
        "source": table.source.title,
        "link_gbps": table.link_gbps,
        "keyed": table.keyed,
        "reliable": table.reliable,
        "batch_bytes": table.batch_bytes,
        "command": if command.is_empty() { Value::Null } else { json!(command) },
        "date": if date.is_empty() { Value::Null } else { json!(date) },
        "rows": rows,
        "differences": differences,
    })
}

/// The keys of the figures that are of too few samples.
fn names_of_few(test: Test, mine: &OurRow) -> Vec<&'static str> {
    columns(test)
        .iter()
        .zip(&mine.of_few)
        .filter(|(_, is_of_few)| **is_of_few)
        .map(|((_, key, _), _)| *key)
        .collect()
}

fn about(table: &Table) -> String {
    let mut words = vec![
        match table.test {
            Test::Latency => "one-way latency in μs".to_owned(),
            Test::Throughput | Test::Workload => "throughput".to_owned(),
        },
        format!("{} Gbit/s", table.link_gbps),
        if table.keyed { "keyed" } else { "unkeyed" }.to_owned(),
        if table.reliable { "reliable" } else { "best-effort" }.to_owned(),
    ];
    match table.batch_bytes {
        Some(0) => words.push("no batches".to_owned()),
        Some(bytes) => words.push(format!("batches of {bytes} bytes where two samples fit")),
        None => {}
    }
    words.join(", ")
}

/// `of_few`: the figures with a mark behind them, in place of the space before the next one.
fn push_figures(
    text: &mut String,
    test: Test,
    figures: &[f64],
    part: Range<usize>,
    more: usize,
    of_few: &[bool],
) {
    let mut before = " ";
    let figures = columns(test).iter().zip(figures).enumerate().take(part.end).skip(part.start);
    for (at, ((.., decimals), figure)) in figures {
        // Our latencies have nanosecond resolution; sample counts stay whole.
        let decimals = if test == Test::Latency { decimals.max(&more) } else { decimals };
        _ = write!(text, "{before}{figure:>w$.d$}", w = width(test), d = *decimals);
        before = if of_few.get(at) == Some(&true) { "*" } else { " " };
    }
    *text += before.trim_end();
}

/// Width of the size, and of whose figures they are.
const NAMES_WIDTH: usize = 19;

/// Width of a column.
fn width(test: Test) -> usize {
    if test == Test::Latency { 9 } else { 14 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::find;

    fn shown(name: &str, size: u64, figures: Option<Vec<f64>>, trouble: Option<&str>) -> Shown {
        let table = find(name).remove(0);
        let published = table.rows.iter().find(|row| row.size == size).unwrap().clone();
        let of_link = figures.as_ref().map(|_| 0.991);
        let trouble = trouble.map(str::to_owned);
        let of_few = vec![true];
        let ours = vec![OurRow { published, figures, of_few, of_link, trouble, is_lossy: false }];
        let differences =
            vec![Difference { what: "path", published: "a switch".to_owned(), here: "lo".to_owned() }];
        let (command, date) = ("weir published run it".to_owned(), "2026-11-29T05:00:00Z".to_owned());
        Shown { table, ours, differences, command, date }
    }

    #[test]
    fn ours_stand_above_the_published_and_differences_below() {
        let figures = Some(vec![100_000.0, 50_000.0, 1638.4, 0.0, 0.0]);
        let text =
            table_text(&shown("pro-throughput-10g-unkeyed-best-effort-batch", 4096, figures, None), None);
        let lines: Vec<&str> = text.lines().collect();
        let at = lines.iter().position(|line| line.contains("ours")).unwrap();
        assert!(lines[at].starts_with("    4096  ours"), "{text}");
        assert!(lines[at].ends_with("50000         1638.4              0           0.00    0.991"), "{text}");
        assert!(lines[at + 1].contains("published") && lines[at + 1].ends_with(" ?"), "{text}");
        assert!(text.contains("? as published"), "{text}");
        assert!(
            text.contains("\nmade by: weir published run it\nmeasured: 2026-11-29T05:00:00Z\n"),
            "{text}"
        );
        assert!(lines[at].contains(" 100000* ") && text.contains("\n* of too few samples"), "{text}");
        assert!(!lines[at + 1].contains('*'), "{text}");
        assert!(text.contains("path        published: a switch\n              here:      lo"), "{text}");
    }

    #[test]
    fn columns_that_do_not_fit_in_a_terminal_follow_in_a_second_part() {
        let figures = Some(vec![100_000.0, 50_000.0, 1638.4, 0.0, 0.0]);
        let shown = [
            shown("pro-throughput-10g-unkeyed-best-effort-batch", 4096, figures, None),
            shown("pro-latency-1g-keyed-reliable", 1024, Some((0..9).map(f64::from).collect()), None),
        ];
        for shown in &shown {
            let (all, fitted) = (table_text(shown, None), table_text(shown, Some(80)));
            let rows = fitted.lines().filter(|line| line.contains("  ours") || line.contains("  published"));
            assert!(rows.clone().count() >= 4 && rows.clone().all(|line| line.len() <= 80), "{fitted}");
            for word in all.split_whitespace() {
                assert!(fitted.contains(word), "{word} in {fitted}");
            }
            assert_eq!(table_text(shown, Some(200)), all);
        }
    }

    #[test]
    fn a_row_without_figures_says_why_in_every_form() {
        let shown = [shown("micro-latency-pi-1g-keyed-reliable", 64, None, Some("the publisher, \"gone\""))];
        assert!(table_text(&shown[0], None).contains("the publisher, \"gone\""));
        let csv = csv(&shown);
        assert!(
            csv.contains("micro-latency-pi-1g-keyed-reliable,64,ours,,,,,,,,,,,the publisher; ;gone;\n"),
            "{csv}"
        );
        let document: Value = serde_json::from_str(&json(&shown)).unwrap();
        let row = &document["tables"][0]["rows"][1];
        assert_eq!((&row["size_bytes"], &row["ours"]), (&json!(64), &Value::Null));
        assert_eq!(row["published"]["p50_us"], 86.0);
    }

    #[test]
    fn every_line_of_the_csv_is_as_long_as_its_header() {
        let all: Vec<Shown> = find("all").into_iter().map(Shown::published).collect();
        let text = csv(&all);
        let mut cells = 0;
        for line in text.lines() {
            if line.starts_with("table,") {
                cells = line.split(',').count();
            }
            assert_eq!(line.split(',').count(), cells, "{line}");
        }
        assert_eq!(text.lines().filter(|line| line.ends_with("contradicts itself")).count(), 6);
    }
}
