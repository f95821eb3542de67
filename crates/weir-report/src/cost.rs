//! The costs of both ends of a case: a separate table, on request.

use weir_results::{Case, ProcessFigures, Spread};

use crate::group::{Group, Point};
use crate::table::{dash, drawn};

/// Returns the costs of a group's points, medians over the repeats; empty if none are known.
pub(crate) fn cost_table(group: &Group<'_>) -> String {
    let points = known(group);
    if points.is_empty() {
        return String::new();
    }
    let costs = ends_table(&points, &COLUMNS, |_| 1.0);
    let (discovery, calls, copies) = (discovery(group), call_table(&points), copy_table(&points));
    format!("\nResources of the above\n\n{costs}\n\n{NOTE}\n{discovery}{calls}{copies}")
}

/// Returns the headings and rows of the costs; `None` if none are known.
pub(crate) fn costs(group: &Group<'_>) -> Option<(Vec<String>, Vec<Vec<String>>)> {
    let points = known(group);
    (!points.is_empty()).then(|| ends(&points, &COLUMNS, |_| 1.0))
}

fn known<'g, 'a>(group: &'g Group<'a>) -> Vec<&'g Point<'a>> {
    let is_known = |point: &&Point<'_>| point.repeats.iter().any(|case| case.figures.publisher.is_some());
    group.points.iter().filter(is_known).collect()
}

/// Returns the system calls per sample; empty if calls were not counted by kind.
fn call_table(points: &[&Point<'_>]) -> String {
    let is_counted = |point: &&&Point<'_>| {
        point.repeats.iter().any(|case| case.figures.publisher.is_some_and(|end| end.send_calls.is_some()))
    };
    let counted: Vec<&Point<'_>> = points.iter().filter(is_counted).copied().collect();
    if counted.is_empty() {
        return String::new();
    }
    let note = "instructions: in user space, including the harness; sends, receives: system calls that send on and receive from \
                sockets, including those that found nothing; other: all other calls; waits: voluntary context switches";
    let calls = ends_table(&counted, &CALLS, |_| 1.0);
    format!("\nInstructions, system calls and waits per sample\n\n{calls}\n\n{note}\n")
}

/// Returns how often engines copied each byte of the samples; empty if none counted it.
fn copy_table(points: &[&Point<'_>]) -> String {
    let is_counted = |point: &&&Point<'_>| {
        let is_long = point.size_bytes > COUNTED_FROM_BYTES;
        is_long
            && point.repeats.iter().any(|case| case.figures.publisher.is_some_and(|end| end.copied.is_some()))
    };
    let counted: Vec<&Point<'_>> = points.iter().filter(is_counted).copied().collect();
    if counted.is_empty() {
        return String::new();
    }
    let copies = ends_table(&counted, &COPIES, |point| point.size_bytes as f64);
    format!("\nCopies of each byte of a sample\n\n{copies}\n\n{COPIES_NOTE}\n")
}

/// What the columns of the table of copies mean.
const COPIES_NOTE: &str = "encode: before the sample is sent; keep: behind the send, in case it is requested again; \
     assemble: out of the memory that receives; decode: into the application's memory. Those of the kernel are not \
     counted: one at each end. Nor are those of samples up to 2 KiB in batches";

/// Engines may leave out copies up to this length, in bytes.
const COUNTED_FROM_BYTES: u64 = 2048;

/// Returns the columns of both ends, medians over the repeats, each figure by what `per` returns.
fn ends_table(points: &[&Point<'_>], columns: &[Column], per: Per) -> String {
    let (headings, rows) = ends(points, columns, per);
    drawn(headings, rows, |column| column > 0)
}

fn ends(points: &[&Point<'_>], columns: &[Column], per: Per) -> (Vec<String>, Vec<Vec<String>>) {
    let ends: [(&str, End); 2] = [("Pub", |case| case.figures.publisher), ("Sub", subscriber)];
    let of_ends = || ends.iter().flat_map(|end| columns.iter().map(move |column| (end, column)));
    let mut headings = ["Engine", "Size (B)"].map(str::to_owned).to_vec();
    headings.extend(of_ends().map(|(&(end, _), &(heading, ..))| format!("{end} {heading}")));
    let row = |point: &&Point<'_>| {
        let mut cells = vec![point.engine.clone(), point.size_bytes.to_string()];
        cells.extend(of_ends().map(|(&(_, end), &(_, decimals, figure))| {
            let spread = point.spread(|case| figure(&end(case)?));
            spread.map_or_else(dash, |spread| format!("{:.decimals$}", spread.median / per(point)))
        }));
        cells
    };
    (headings, points.iter().map(row).collect())
}

/// Returns the discovery time of the ends, by engine; empty if no engine needed discovery.
fn discovery(group: &Group<'_>) -> String {
    let of = |name: &str| {
        let cases = group.points.iter().filter(|point| point.engine == name).flat_map(|point| &point.repeats);
        let spread = Spread::of(cases.filter_map(|case| Some(case.figures.discovery?.from_last_ms)))?;
        Some(format!("{name} {:.1} ({:.1})", spread.median, spread.max))
    };
    let engines: Vec<String> = group.engines().into_iter().filter_map(of).collect();
    if engines.is_empty() {
        return String::new();
    }
    format!(
        "ms from the opening of the last end until all were discovered, median (maximum): {}\n",
        engines.join(", ")
    )
}

/// Each ping has an echo, whether the engine counted the echoes or not.
pub(crate) fn subscriber(case: &Case) -> Option<ProcessFigures> {
    let figures = case.figures.subscriber?;
    let samples = figures.samples.or_else(|| case.figures.publisher?.samples);
    Some(ProcessFigures { samples, ..figures })
}

/// What the columns mean.
pub(crate) const NOTE: &str = "user, sys: processor time in seconds per million samples, warm-up included; calls: system calls per sample (only \
     counted when enabled); waits, preempted: context switches; peak: resident memory";

/// The process of an end.
type End = fn(&Case) -> Option<ProcessFigures>;

/// What the figures of a point are divided by.
type Per = fn(&Point<'_>) -> f64;

/// A column of both ends: heading, decimals, and the figure.
type Column = (&'static str, usize, fn(&ProcessFigures) -> Option<f64>);

const COLUMNS: [Column; 6] = [
    ("user s/M", 3, |end| per_million(end, end.cpu_user_s)),
    ("sys s/M", 3, |end| per_million(end, end.cpu_system_s)),
    ("calls/sample", 3, |end| per_sample(end, end.system_calls?)),
    ("waits", 0, |end| Some(end.context_switches_voluntary as f64)),
    ("preempted", 0, |end| Some(end.context_switches_involuntary as f64)),
    ("peak MiB", 1, |end| Some(end.max_rss_kib as f64 / 1024.0)),
];

const CALLS: [Column; 5] = [
    ("instructions", 0, |end| per_sample(end, end.instructions?)),
    ("sends", 4, |end| per_sample(end, end.send_calls?)),
    ("receives", 4, |end| per_sample(end, end.receive_calls?)),
    ("other", 4, |end| {
        let on_sockets = end.send_calls? + end.receive_calls?;
        per_sample(end, end.system_calls?.saturating_sub(on_sockets))
    }),
    ("waits", 4, |end| per_sample(end, end.context_switches_voluntary)),
];

const COPIES: [Column; 4] = [
    ("encode", 2, |end| per_sample(end, end.copied?.encode)),
    ("keep", 2, |end| per_sample(end, end.copied?.keep)),
    ("assemble", 2, |end| per_sample(end, end.copied?.assemble)),
    ("decode", 2, |end| per_sample(end, end.copied?.decode)),
];

fn per_sample(end: &ProcessFigures, count: u64) -> Option<f64> {
    Some(count as f64 / end.samples.filter(|count| *count > 0)? as f64)
}

pub(crate) fn per_million(end: &ProcessFigures, seconds: f64) -> Option<f64> {
    Some(seconds * 1e6 / end.samples.filter(|count| *count > 0)? as f64)
}

#[cfg(test)]
mod tests {
    use weir_results::{CopiedBytes, Environment, Reliability, Run, Test};

    use super::*;
    use crate::group::groups;

    #[test]
    fn time_and_calls_are_by_sample_and_an_echo_counts_as_its_ping() {
        let publisher = ProcessFigures {
            cpu_user_s: 1.0,
            cpu_system_s: 0.5,
            context_switches_voluntary: 7,
            context_switches_involuntary: 8,
            max_rss_kib: 2048,
            system_calls: Some(3_000_000),
            samples: Some(2_000_000),
            ..ProcessFigures::default()
        };
        let subscriber = ProcessFigures { system_calls: None, samples: None, ..publisher };
        let case = Case::new("weir", Test::Latency, Reliability::Reliable, 32).with(|it| {
            it.figures.publisher = Some(publisher);
            it.figures.subscriber = Some(subscriber);
        });
        let run = Run { cases: vec![case], ..Run::new(Environment::default()) };
        let table = cost_table(&groups(&run)[0]);
        let row: Vec<&str> =
            table.lines().find(|line| line.contains("weir")).unwrap().split('|').map(str::trim).collect();
        let expected = ["weir", "32", "0.500", "0.250", "1.500", "7", "8", "2.0"];
        assert_eq!(row[1..9], expected);
        assert_eq!(row[9..15], ["0.500", "0.250", "-", "7", "8", "2.0"]);
        assert!(!table.contains("per sample\n"), "{table}");
    }

    #[test]
    fn calls_are_told_by_their_kind_where_they_were_counted_so() {
        let end = ProcessFigures {
            context_switches_voluntary: 5_000,
            system_calls: Some(30_000),
            send_calls: Some(10_000),
            receive_calls: Some(12_500),
            instructions: Some(15_000_000),
            samples: Some(10_000),
            ..ProcessFigures::default()
        };
        let case = Case::new("weir", Test::Latency, Reliability::Reliable, 32).with(|it| {
            it.figures.publisher = Some(end);
            it.figures.subscriber = Some(ProcessFigures { samples: None, ..end });
        });
        let run = Run { cases: vec![case], ..Run::new(Environment::default()) };
        let table = cost_table(&groups(&run)[0]);
        let calls = table.split("system calls and waits per sample").nth(1).unwrap();
        let row: Vec<&str> =
            calls.lines().find(|line| line.contains("weir")).unwrap().split('|').map(str::trim).collect();
        let end = ["1500", "1.0000", "1.2500", "0.7500", "0.5000"];
        assert_eq!((&row[3..8], &row[8..13]), (&end[..], &end[..]));
    }

    #[test]
    fn copies_are_by_byte_of_the_samples_and_only_of_long_ones() {
        let copied = CopiedBytes { encode: 0, keep: 63_000_000, assemble: 31_500_000, decode: 126_000_000 };
        let end = ProcessFigures { copied: Some(copied), samples: Some(1000), ..ProcessFigures::default() };
        let of = |engine, size, end| {
            Case::new(engine, Test::Latency, Reliability::Reliable, size).with(|it| {
                it.figures.publisher = Some(end);
                it.figures.subscriber = Some(end);
            })
        };
        let uncounted = ProcessFigures { copied: None, ..end };
        let cases = vec![of("weir", 63_000, end), of("weir", 1024, end), of("udp", 63_000, uncounted)];
        let run = Run { cases, ..Run::new(Environment::default()) };
        let table = cost_table(&groups(&run)[0]);
        let copies = table.split("Copies of each byte").nth(1).unwrap();
        let rows: Vec<&str> =
            copies.lines().filter(|line| line.contains("weir") || line.contains("udp")).collect();
        let [row] = rows[..] else { panic!("one row: {table}") };
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let end = ["0.00", "1.00", "0.50", "2.00"];
        assert_eq!((cells[2], &cells[3..7], &cells[7..11]), ("63000", &end[..], &end[..]), "{row}");
    }
}
