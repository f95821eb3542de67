//! Charts of the documentation's tables: `cargo xtask charts` updates docs/charts.md and its pictures.
//!
//! Drawn without a library, which would make this program many times as large.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::ci::Outcome;
use crate::environment::Environment;

/// Draws all charts.
pub(crate) fn step(environment: &Environment) -> Outcome {
    match draw_all(&environment.root.join("docs")) {
        Ok(count) => Outcome::Passed(format!("{count} charts, in docs/charts.md")),
        Err(text) => Outcome::Failed(text),
    }
}

fn draw_all(docs: &Path) -> Result<usize, String> {
    let failed = |path: &Path, error: std::io::Error| format!("{}: {error}\n", path.display());
    let mut page = PAGE_HEAD.to_owned();
    for chart in CHARTS {
        let source = docs.join(chart.page);
        let text = fs::read_to_string(&source).map_err(|error| failed(&source, error))?;
        let wanted = || format!("{}: no table with numbers below {:?}\n", chart.page, chart.heading);
        let table = table_below(&text, chart.heading).ok_or_else(wanted)?;
        let bars = bars(&table, chart).filter(|bars| !bars.rows.is_empty()).ok_or_else(wanted)?;
        let picture = docs.join(format!("images/charts/{}.svg", chart.name));
        fs::create_dir_all(docs.join("images/charts")).map_err(|error| failed(&picture, error))?;
        fs::write(&picture, svg(&bars, chart)).map_err(|error| failed(&picture, error))?;
        let _ = writeln!(
            page,
            "\n## {}\n\nThe table is in [{}]({}), below *{}*.\n\n![{}](images/charts/{}.svg)",
            chart.title,
            chart.page,
            chart.page,
            chart.heading.trim_matches(['*', '#', ' ']),
            chart.title,
            chart.name
        );
    }
    let path = docs.join("charts.md");
    fs::write(&path, page).map_err(|error| failed(&path, error))?;
    Ok(CHARTS.len())
}

/// What is drawn of which table.
struct Chart {
    page: &'static str,
    /// A line begins so, and the table is the first one below it.
    heading: &'static str,
    /// The name of the picture.
    name: &'static str,
    title: &'static str,
    /// Columns from the second on, from 0 up, that have one unit; empty = all.
    columns: &'static [usize],
    /// The heading of the first column drawn, if another table may precede the right one; empty: any.
    first: &'static str,
    /// How many columns name a row.
    names: usize,
    /// Whether the axis goes by powers of ten.
    logarithmic: bool,
}

/// The cells of a table, without the line below its heads.
type Table = Vec<Vec<String>>;

/// Values by row and column.
#[derive(Debug, PartialEq)]
struct Bars {
    columns: Vec<String>,
    rows: Vec<(String, Vec<Option<f64>>)>,
}

/// The first table below the line that begins with `heading`.
fn table_below(text: &str, heading: &str) -> Option<Table> {
    let lines = text.lines().skip_while(|line| !line.starts_with(heading)).skip(1);
    let rows = lines.skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let cells = |line: &str| {
        let line = line.trim().trim_start_matches('|');
        let line = line.strip_suffix('|').unwrap_or(line);
        line.split('|').map(|cell| cell.trim().replace('`', "")).collect::<Vec<_>>()
    };
    let is_rule = |row: &Vec<String>| row.iter().all(|cell| cell.chars().all(|c| c == '-' || c == ':'));
    let table: Table = rows.map(cells).filter(|row| !is_rule(row)).collect();
    (table.len() > 1).then_some(table)
}

/// Parses the first number of a cell.
///
/// Thousands may be separated by a space. A separate k or M, for thousands or millions, applies to all
/// numbers of the cell.
fn number(cell: &str) -> Option<f64> {
    let has = |unit| cell.split([' ', ',']).any(|word| word == unit);
    let unit = if has("M") {
        1e6
    } else if has("k") {
        1e3
    } else {
        1.0
    };
    first_number(cell).map(|value| value * unit)
}

fn first_number(cell: &str) -> Option<f64> {
    let from = cell.find(|c: char| c.is_ascii_digit())?;
    let mut digits = String::new();
    let mut rest = cell[from..].chars().peekable();
    while let Some(c) = rest.next() {
        let is_between = c == ' '
            && rest.clone().take(3).filter(char::is_ascii_digit).count() == 3
            && !rest.clone().nth(3).is_some_and(|c| c.is_ascii_digit());
        match c {
            '0'..='9' => digits.push(c),
            '.' if rest.peek().is_some_and(char::is_ascii_digit) && !digits.contains('.') => digits.push(c),
            _ if is_between && !digits.contains('.') => {}
            _ => break,
        }
    }
    digits.parse().ok()
}

/// What a chart shows of its table; rows without any number are left out.
fn bars(table: &[Vec<String>], chart: &Chart) -> Option<Bars> {
    let (head, rows) = table.split_first()?;
    let width = head.len().saturating_sub(chart.names);
    let chosen: Vec<usize> =
        (0..width).filter(|at| chart.columns.is_empty() || chart.columns.contains(at)).collect();
    let columns: Vec<String> = chosen.iter().map(|at| head[at + chart.names].clone()).collect();
    if !chart.first.is_empty() && columns.first().is_none_or(|first| first != chart.first) {
        return None;
    }
    let row = |cells: &Vec<String>| {
        let value = |at: &usize| cells.get(at + chart.names).and_then(|cell| number(cell));
        let values: Vec<Option<f64>> = chosen.iter().map(value).collect();
        let names = cells.iter().take(chart.names).map(String::as_str).filter(|name| !name.is_empty());
        values.iter().any(Option::is_some).then(|| (names.collect::<Vec<_>>().join(", "), values))
    };
    Some(Bars { columns, rows: rows.iter().filter_map(row).collect() })
}

/// The picture.
fn svg(bars: &Bars, chart: &Chart) -> String {
    let all = || bars.rows.iter().flat_map(|(_, values)| values.iter().flatten().copied());
    let most = all().fold(f64::MIN_POSITIVE, f64::max);
    let least = all().filter(|value| *value > 0.0).fold(most, f64::min);
    // A logarithmic axis begins at a power of ten below the smallest value, so that this one shows, too.
    let from = (least.log10() - 0.3).floor();
    let to = most.log10();
    let length = |value: f64| {
        let share = if chart.logarithmic {
            (value.max(f64::MIN_POSITIVE).log10() - from) / (to - from)
        } else {
            value / most
        };
        share.clamp(0.0, 1.0) * LENGTH
    };
    let group = bars.columns.len() * BAR + GAP;
    let top = 52 + if bars.columns.len() > 1 { 22 } else { 0 };
    let height = top + bars.rows.len() * group + 24;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" font-family=\"sans-serif\" \
         font-size=\"12\" fill=\"#1f2937\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"12\" y=\"26\" font-size=\"18\">{}</text>\n",
        escaped(chart.title)
    );
    if bars.columns.len() > 1 {
        for ((column, colour), at) in bars.columns.iter().zip(COLOURS.iter().cycle()).zip(0..) {
            let x = LEFT + at * ((WIDTH - LEFT) / bars.columns.len()).min(160);
            let _ = writeln!(
                out,
                "<rect x=\"{x}\" y=\"44\" width=\"12\" height=\"12\" fill=\"{colour}\"/>\
                 <text x=\"{}\" y=\"54\">{}</text>",
                x + 18,
                escaped(column)
            );
        }
    }
    for ((name, values), row) in bars.rows.iter().zip(0..) {
        let y = top + row * group;
        let middle = y + bars.columns.len() * BAR / 2 + 4;
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{middle}\" text-anchor=\"end\">{}</text>",
            LEFT - 8,
            escaped(&shortened(name))
        );
        for ((value, colour), at) in values.iter().zip(COLOURS.iter().cycle()).zip(0..) {
            let Some(value) = value else { continue };
            let (y, length) = (y + at * BAR, length(*value));
            let _ = writeln!(
                out,
                "<rect x=\"{LEFT}\" y=\"{y}\" width=\"{length:.1}\" height=\"{}\" fill=\"{colour}\"/>\
                 <text x=\"{:.1}\" y=\"{}\" font-size=\"10\">{}</text>",
                BAR - 2,
                LEFT as f64 + length + 4.0,
                y + BAR - 4,
                label(*value)
            );
        }
    }
    let axis = if chart.logarithmic { "the bars go by powers of ten" } else { "the bars begin at zero" };
    let _ = writeln!(out, "<text x=\"{LEFT}\" y=\"{}\" fill=\"#6b7280\">{axis}</text>\n</svg>", height - 8);
    out
}

/// As much of a name as fits.
fn shortened(name: &str) -> String {
    if name.chars().count() <= NAME_MAX {
        return name.to_owned();
    }
    format!("{}...", name.chars().take(NAME_MAX - 3).collect::<String>())
}

/// A value to three decimals, without needless ones; millions as such.
fn label(value: f64) -> String {
    let (value, unit) = if value >= 1e6 { (value / 1e6, " M") } else { (value, "") };
    let text = format!("{value:.3}");
    format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

const WIDTH: usize = 960;
/// Where the bars begin.
const LEFT: usize = 380;
/// Of the longest bar.
const LENGTH: f64 = 500.0;
/// Characters that fit left of the bars.
const NAME_MAX: usize = 58;
const BAR: usize = 14;
const GAP: usize = 8;
/// The same as in the plots of `weir report`: distinguishable with colour vision deficiency.
const COLOURS: [&str; 6] = ["#005fcc", "#d97706", "#008866", "#be3c78", "#7850c8", "#8c5a32"];

const PAGE_HEAD: &str = "\
# Charts

One for each table of figures in [performance.md](performance.md) and [comparison.md](comparison.md), drawn from the tables as they
are by `cargo xtask charts`, which also writes this page. What the figures mean, how they were measured and how far they can be
trusted is said there and not here. Of a cell with several numbers, the first one is drawn.
";

const PERFORMANCE: Chart = Chart {
    page: "performance.md",
    heading: "",
    name: "",
    title: "",
    columns: &[],
    first: "",
    names: 1,
    logarithmic: false,
};
const COMPARISON: Chart = Chart { page: "comparison.md", logarithmic: true, ..PERFORMANCE };

const CHARTS: &[Chart] = &[
    Chart {
        heading: "## Instructions per sample",
        name: "instructions",
        title: "Instructions per sample (callgrind)",
        ..PERFORMANCE
    },
    Chart {
        heading: "## What a sample asks of the processor and the kernel",
        name: "instructions-in-use",
        title: "Instructions in user space per sample, both processes in use",
        columns: &[0],
        ..PERFORMANCE
    },
    Chart {
        heading: "## What a sample asks of the processor and the kernel",
        name: "calls",
        title: "System calls and waits per sample",
        columns: &[1, 2, 4],
        logarithmic: true,
        ..PERFORMANCE
    },
    Chart {
        heading: "## What a large sample costs",
        name: "large-samples",
        title: "Large samples: Gbit/s",
        columns: &[0],
        first: "Gbit/s",
        ..PERFORMANCE
    },
    Chart {
        heading: "## What the harness costs",
        name: "harness",
        title: "What the harness costs: nanoseconds per sample",
        ..PERFORMANCE
    },
    Chart {
        heading: "## How soon ends find each other",
        name: "discovery",
        title: "Until both ends know each other, ms",
        ..PERFORMANCE
    },
    Chart {
        heading: "## Streams, where we stand",
        name: "streams",
        title: "Reliable streams: samples/s",
        columns: &[0],
        first: "weir, samples/s",
        ..PERFORMANCE
    },
    Chart {
        heading: "## Under loss",
        name: "streams-under-loss",
        title: "Reliable 1024-byte samples across veth, lossless and at 10 % loss: samples/s",
        ..PERFORMANCE
    },
    Chart {
        heading: "Pings under loss",
        name: "pings-under-loss",
        title: "Pings across veth, lossless and at 10 % loss: one way, median, us",
        ..PERFORMANCE
    },
    Chart {
        heading: "## Where we stand with latency",
        name: "latency-ratio",
        title: "Median latency as a multiple of plain UDP's",
        ..PERFORMANCE
    },
    Chart {
        heading: "## What instances cost",
        name: "keyed-batches",
        title: "Batches with 100 000 instances and without: million samples/s",
        columns: &[0, 1],
        first: "keyed, M/s",
        ..PERFORMANCE
    },
    Chart {
        heading: "`cargo run --release -p weir-rtps --example instances`",
        name: "instances",
        title: "One of a million instances: time each, ns",
        columns: &[0],
        first: "time each",
        ..PERFORMANCE
    },
    Chart {
        heading: "## One writer, three readers",
        name: "three-readers",
        title: "One writer, three readers: samples/s of each",
        logarithmic: true,
        ..PERFORMANCE
    },
    Chart {
        heading: "**Latency, best effort",
        name: "latency-best-effort",
        title: "Latency, best effort: one way, median, us",
        ..COMPARISON
    },
    Chart {
        heading: "**Latency, reliable",
        name: "latency-reliable",
        title: "Latency, reliable: one way, median, us",
        ..COMPARISON
    },
    Chart {
        heading: "**Throughput, best effort, no batching",
        name: "throughput-best-effort",
        title: "Throughput, best effort, no batching: thousand samples/s",
        ..COMPARISON
    },
    Chart {
        heading: "**Throughput, best effort, batching",
        name: "throughput-best-effort-batching",
        title: "Throughput, best effort, batching: thousand samples/s",
        ..COMPARISON
    },
    Chart {
        heading: "**Throughput, reliable, no batching",
        name: "throughput-reliable",
        title: "Throughput, reliable, no batching: thousand samples/s",
        ..COMPARISON
    },
    Chart {
        heading: "**Throughput, reliable, batching",
        name: "throughput-reliable-batching",
        title: "Throughput, reliable, batching: thousand samples/s",
        ..COMPARISON
    },
    Chart {
        heading: "## Processors kept awake",
        name: "kept-awake",
        title: "Latency with processors kept awake: one way, median, us",
        columns: &[0, 1],
        first: "without: 50 %; 99 %",
        names: 2,
        logarithmic: false,
        ..COMPARISON
    },
    Chart {
        heading: "**Throughput: received",
        name: "throughput-then",
        title: "Throughput of other engines, then and now: thousand samples/s",
        columns: &[0, 1],
        names: 3,
        ..COMPARISON
    },
    Chart {
        heading: "**Latency.**",
        name: "latency-then",
        title: "Latency of other engines, then and now: one way, median, us",
        columns: &[0, 1],
        names: 3,
        ..COMPARISON
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
## One\n\nwords\n\n| | 32 B | 1024 B | |\n|---|---:|:---|---|\n| `udp` | 20 263 | 607 (0.1 % lost) | 1 |\n| weir | failed |  | x |\n\
| weir | 5.5, 5..6 | 4 | 1 |\n\n## Two\n\n| a | b |\n|---|---|\n| x | 7 |\n";

    #[test]
    fn the_numbers_of_a_table_are_found_below_its_heading() {
        let chart = Chart { columns: &[0, 1], heading: "## One", ..PERFORMANCE };
        let found = bars(&table_below(TEXT, chart.heading).unwrap(), &chart).unwrap();
        let row = |name: &str, values: [f64; 2]| (name.to_owned(), values.map(Some).to_vec());
        assert_eq!(found.columns, ["32 B", "1024 B"]);
        // The row without a number is left out.
        assert_eq!(found.rows, [row("udp", [20_263.0, 607.0]), row("weir", [5.5, 4.0])]);
        let other = Chart { first: "64 B", ..chart };
        assert_eq!(bars(&table_below(TEXT, "## One").unwrap(), &other), None);
        assert_eq!(table_below(TEXT, "## Two").unwrap().len(), 2);
        assert_eq!(table_below(TEXT, "## Three"), None);
    }

    #[test]
    fn numbers_may_have_spaces_and_units_and_ranges() {
        for (cell, expected) in [
            ("10.4 / 24", Some(10.4)),
            ("1 510", Some(1_510.0)),
            ("17.7 M, 17.5..18.0", Some(17.7e6)),
            ("13.7, 12.6 k", Some(13.7e3)),
            ("1.8 to 1.95 M samples/s", Some(1.8e6)),
            ("1.038 [1.030, 1.043]", Some(1.038)),
            ("41000", Some(41_000.0)),
            ("29 ms (the table grows)", Some(29.0)),
            ("2000 1000", Some(2_000.0)),
            ("failed", None),
            ("", None),
        ] {
            assert_eq!(number(cell), expected, "{cell}");
        }
    }

    #[test]
    fn labels_are_short() {
        let labels = [2.05 * 1e6, 20_263.0, 0.131, 1_000_000.0, 0.0].map(label);
        assert_eq!(labels, ["2.05 M", "20263", "0.131", "1 M", "0"]);
        assert_eq!(shortened(&"x".repeat(NAME_MAX)).len(), NAME_MAX);
        assert!(shortened(&"x".repeat(NAME_MAX + 1)).ends_with("x..."));
    }

    #[test]
    fn bars_are_as_long_as_their_values_say() {
        let bars = Bars {
            columns: vec!["one".into()],
            rows: vec![
                ("a & b".into(), vec![Some(100.0)]),
                ("c".into(), vec![Some(10.0)]),
                ("d".into(), vec![None]),
            ],
        };
        let linear = svg(&bars, &Chart { title: "T", ..PERFORMANCE });
        assert!(linear.contains("width=\"500.0\"") && linear.contains("width=\"50.0\""), "{linear}");
        assert!(linear.contains("a &amp; b") && linear.ends_with("</svg>\n"), "{linear}");
        // From 1 to 100.
        let logarithmic = svg(&bars, &Chart { title: "T", ..COMPARISON });
        assert!(
            logarithmic.contains("width=\"500.0\"") && logarithmic.contains("width=\"250.0\""),
            "{logarithmic}"
        );
    }
}
