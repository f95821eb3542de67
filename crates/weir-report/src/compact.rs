//! Compact tables: one row per engine, one column per sample size.

use std::fmt::Write as _;

use weir_results::{Case, Environment, NotMeasured, Run, Test};

use crate::baseline::beaten_baselines;
use crate::compare::{headline, times};
use crate::group::{Group, Point, groups};
use crate::notes::concerned;
use crate::scaling::scaling_tables;
use crate::udp::{UdpPoint, udp_points};

/// The tables of a run as Markdown, with medians only, and how far repeats differ below each.
///
/// Latency cells hold p50 and p99 in microseconds, throughput cells thousand samples per second. A cell
/// names the share of lost samples from 0.1 % on. Open loops are left out: they vary by load, not by size. Workloads
/// with a parameter have a table for each figure, with a column for each of its values. Below a
/// table is a warning if an engine in it seems to be faster than raw UDP.
#[must_use]
pub fn compact_tables(run: &Run) -> String {
    let mut tables: Vec<String> =
        groups(run).iter().filter_map(|group| Some(table(group)? + &warning(group, run))).collect();
    tables.extend(udp_table(run));
    tables.extend(scaling_tables(run));
    format!("{}\n{}", tables.join("\n"), measured_by(&run.environment))
}

fn table(group: &Group<'_>) -> Option<String> {
    let points = || group.points.iter().filter(|point| point.load.is_none());
    let mut sizes: Vec<u64> = points().map(|point| point.size_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let unit = match group.key.test {
        Test::Latency => "Latency, p50 / p99, microseconds",
        Test::Throughput | Test::Workload => "Throughput, thousand samples/s",
    };
    let mut rows = String::new();
    for engine in group.engines() {
        let cell = |size: &u64| {
            let point = points().find(|point| point.engine == engine && point.size_bytes == *size);
            point.map_or_else(String::new, cell)
        };
        let cells: Vec<String> = sizes.iter().map(cell).collect();
        if cells.iter().any(|cell| !cell.is_empty()) {
            _ = writeln!(rows, "| {engine} | {} |", cells.join(" | "));
        }
    }
    if rows.is_empty() {
        return None;
    }
    let heads: Vec<String> = sizes.iter().map(|size| format!("{size} B")).collect();
    let rule = "---:|".repeat(sizes.len());
    Some(format!(
        "{unit}, {}:\n\n| Engine | {} |\n|---|{rule}\n{rows}\n{}",
        group.key.conditions(),
        heads.join(" | "),
        repeats(group)
    ))
}

/// UDP tests in one table: round trips, received rates, and losses.
fn udp_table(run: &Run) -> Option<String> {
    let row = |it: &UdpPoint<'_>| {
        let figure =
            |of: fn(&Case) -> Option<f64>| it.point.spread(of).map(|spread| three_digits(spread.median));
        let rate = figure(|case| Some(case.figures.throughput?.mbps));
        let p50 = figure(|case| times(case).map(|it| it.p50));
        let p99 = figure(|case| times(case).map(|it| it.p99));
        let delay = p50.zip(p99).map_or_else(|| "-".to_owned(), |(p50, p99)| format!("{p50} / {p99}"));
        let lost = three_digits(lost_percent(&it.point));
        let rate = rate.unwrap_or_else(|| "-".to_owned());
        format!(
            "| {} | {} | {} | {rate} | {delay} | {lost} |\n",
            it.title, it.point.engine, it.point.size_bytes
        )
    };
    let rows: String = udp_points(run).iter().map(row).collect();
    (!rows.is_empty()).then(|| {
        format!(
            "UDP tests, medians; round trips, or one-way delays of schedules, in microseconds:\n\n\
             | Test | By | Size (B) | Mbit/s | p50 / p99 | Lost % |\n|---|---|---:|---:|---:|---:|\n{rows}"
        )
    })
}

/// The warning about engines below their baseline, as a paragraph; empty if there is none.
fn warning(group: &Group<'_>, run: &Run) -> String {
    let found = beaten_baselines(group);
    let text = found.map(|(text, cases)| format!("{text} ({})", concerned(&cases, run.cases.len())));
    text.map_or_else(String::new, |text| format!("\n{}\n", paragraph(&format!("Warning: {text}."))))
}

/// The text with lines of up to 100 columns.
pub(crate) fn paragraph(text: &str) -> String {
    wrapped(text.split(' '), "\n")
}

fn cell(point: &Point<'_>) -> String {
    if point.headline().is_none() {
        let failed = |case: &&Case| matches!(case.evidence.not_measured, Some(NotMeasured::Failed { .. }));
        return if point.repeats.iter().any(failed) { "failed".to_owned() } else { String::new() };
    }
    let figure = |figure: fn(&Case) -> Option<f64>| {
        point.spread(figure).map_or_else(String::new, |spread| three_digits(spread.median))
    };
    let mut text = match point.repeats[0].point.test {
        Test::Latency => {
            let p99 = figure(|case| case.figures.latency_us.map(|latency| latency.p99));
            format!("{} / {p99}", figure(headline))
        }
        Test::Throughput | Test::Workload => {
            figure(|case| case.figures.throughput.map(|t| t.samples_per_s / 1e3))
        }
    };
    let lost = lost_percent(point);
    if lost >= 0.1 {
        _ = write!(text, ", {} % lost", three_digits(lost));
    }
    text
}

/// The largest share of lost samples among the repeats.
pub(crate) fn lost_percent(point: &Point<'_>) -> f64 {
    let lost = |case: &&Case| {
        let pings = case.figures.latency_us.filter(|latency| latency.lost > 0);
        let pings = pings.map(|latency| latency.lost as f64 * 100.0 / (latency.lost + latency.count) as f64);
        case.figures.throughput.map(|throughput| throughput.lost_percent).or(pings)
    };
    point.repeats.iter().filter_map(lost).fold(0.0, f64::max)
}

/// How far the repeats of a point differ at most.
fn repeats(group: &Group<'_>) -> String {
    let count = group.points.iter().map(|point| point.repeats.len()).max().unwrap_or(0);
    let factor = |point: &Point<'_>| {
        let spread = point.headline().filter(|spread| spread.min > 0.0 && spread.count > 1)?;
        Some((spread.max / spread.min, format!("{}, {} B", point.engine, point.size_bytes)))
    };
    let widest = group.points.iter().filter_map(factor).max_by(|a, b| a.0.total_cmp(&b.0));
    match widest {
        Some((factor, point)) => {
            format!(
                "Medians of {count} repeats; the largest repeat is at most {factor:.1} x the smallest ({point}).\n"
            )
        }
        None => "One run each.\n".to_owned(),
    }
}

fn measured_by(environment: &Environment) -> String {
    let machine = if environment.virtualised.is_some() { "a virtual machine" } else { "a host" };
    let text = format!(
        "Measured {} with Weir {} on {machine} with {} processors ({}), Linux {}.",
        environment.date,
        environment.weir_version,
        environment.logical_cpus,
        environment.cpu_model.as_deref().unwrap_or("unknown"),
        environment.kernel,
    );
    let text = paragraph(&text);
    if environment.command.is_empty() {
        return format!("{text}\n");
    }
    // Options stay with their values.
    let options = environment.command.join(" ").replace(" --", "\n--");
    let command = wrapped(options.lines(), " \\\n    ");
    format!("{text} The command:\n\n```sh\n{command}\n```\n")
}

/// The words, or groups of words, with `line_break` between lines of up to 100 columns.
fn wrapped<'a>(words: impl Iterator<Item = &'a str>, line_break: &str) -> String {
    let mut text = String::new();
    let mut column = 0;
    for word in words {
        if column > 0 && column + word.len() >= 100 {
            text += line_break;
            column = line_break.len();
        } else if column > 0 {
            text += " ";
        }
        text += word;
        column += word.len() + 1;
    }
    text
}

/// A number with three significant digits; never `0` for what is not zero.
pub(crate) fn three_digits(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    let decimals = (2 - value.abs().log10().floor() as i32).max(0);
    let text = format!("{value:.*}", decimals as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use weir_results::{LatencySummary, Reliability, ThroughputSummary};

    use super::*;

    fn stream(engine: &str, repeat: u32, samples_per_s: f64, lost_percent: f64) -> Case {
        let throughput = ThroughputSummary {
            samples_per_s,
            lost_percent,
            ..serde_json::from_str(
                r#"{"offered_samples_per_s":0,"total_samples":0,"samples_per_s":0,"mbps":0,"lost":0,
                "lost_percent":0,"duplicates":0,"reordered":0,"samples_per_datagram":null,"datagrams_per_send":null}"#,
            )
            .unwrap()
        };
        Case::new(engine, Test::Throughput, Reliability::Reliable, 32).with(|it| {
            it.conditions.repeat = repeat;
            it.figures.throughput = Some(throughput);
        })
    }

    fn tables(cases: Vec<Case>) -> String {
        compact_tables(&Run { cases, ..Run::new(Environment::default()) })
    }

    #[test]
    fn engines_are_rows_and_losses_stand_in_the_cell() {
        let text = tables(vec![
            stream("weir", 1, 1_000_000.0, 0.0),
            stream("weir", 2, 2_000_000.0, 0.0),
            stream("other", 1, 47_400.0, 93.44),
        ]);
        assert!(
            text.contains("| Engine | 32 B |\n|---|---:|\n| weir | 1500 |\n| other | 47.4, 93.4 % lost |\n"),
            "{text}"
        );
        assert!(text.contains(
            "Medians of 2 repeats; the largest repeat is at most 2.0 x the smallest (weir, 32 B)."
        ));
    }

    #[test]
    fn latencies_have_both_percentiles_and_failures_say_so() {
        let latency_us =
            Some(LatencySummary { count: 9, p50: 3.456, p99: 20.0, ..LatencySummary::default() });
        let weir = Case::new("weir", Test::Latency, Reliability::Reliable, 32)
            .with(|it| it.figures.latency_us = latency_us);
        let not_measured = Some(NotMeasured::Failed { reason: "hung".to_owned() });
        let other = Case::new("other", Test::Latency, Reliability::Reliable, 32)
            .with(|it| it.evidence.not_measured = not_measured);
        let text = tables(vec![weir, other]);
        assert!(text.contains("| weir | 3.46 / 20 |\n| other | failed |\n\nOne run each.\n"), "{text}");
    }

    #[test]
    fn a_warning_follows_a_table_in_which_an_engine_beats_its_baseline() {
        let latency = |engine: &str, repeat: u32, p50: f64| {
            Case::new(engine, Test::Latency, Reliability::BestEffort, 32).with(|case| {
                case.conditions.repeat = repeat;
                case.figures.latency_us = Some(LatencySummary { count: 9, p50, ..LatencySummary::default() });
            })
        };
        let with_ratio = |ratio: f64| {
            let of = |repeat| [latency("udp", repeat, 10.0), latency("weir", repeat, 10.0 * ratio)];
            tables((1..=6).flat_map(of).collect())
        };
        let text = with_ratio(0.8);
        assert!(text.contains("32 B).\n\nWarning: the median latency is 0.80 times that of udp"), "{text}");
        assert!(text.lines().all(|line| line.len() <= 120), "{text}");
        assert!(!with_ratio(1.2).contains("Warning"));
    }

    #[test]
    fn long_commands_go_on_in_the_next_line() {
        let command: Vec<String> =
            std::iter::once("weir").chain(["--option"; 20]).map(str::to_owned).collect();
        let text = compact_tables(&Run::new(Environment { command, ..Environment::default() }));
        assert!(text.contains(" \\\n    --option") && text.lines().all(|line| line.len() <= 120), "{text}");
    }

    #[test]
    fn small_numbers_keep_their_digits() {
        let texts = [0.0, 0.0004, 0.123_45, 1.0, 3.456, 20_263.4].map(three_digits);
        assert_eq!(texts, ["0", "0.0004", "0.123", "1", "3.46", "20263"]);
    }
}
