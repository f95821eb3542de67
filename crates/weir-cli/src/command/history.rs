//! `weir history`: the runs of a folder, and their cases over time.

use anyhow::anyhow;
use serde_json::{Value, json};
use weir_history::{Filter, History, IndexState, PointHistory, RunEntry, RunState};
use weir_report::{Timeline, TimelineRun, text_table, timeline_plot, timeline_tables};
use weir_results::{Better, Interval, Test, format_size};

use crate::args::{Format, HistoryArgs};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::text::counted;

pub(crate) fn run(args: &HistoryArgs) -> Result<Exit, Failure> {
    let history = History::open(&args.folder).map_err(Failure::usage)?;
    if history.state() == IndexState::InMemory {
        output::talk("weir: the index cannot be used now, so all results files were read");
    }
    if history.is_incomplete() {
        output::talk("weir: the folder has too many results files, some are left out: choose a folder in it");
    }
    let filter = Filter {
        engines: args.engines.clone(),
        tests: args.tests.iter().map(ToString::to_string).collect(),
        sizes: args.sizes.clone(),
        hosts: args.hosts.clone(),
        names: args.names.clone(),
    };
    let last = args.last.map_or(usize::MAX, |last| last as usize);
    if args.cases || args.plot.is_some() {
        cases(args, &history, &filter, last)
    } else {
        list(args, &history, &filter, last)
    }
}

fn list(args: &HistoryArgs, history: &History, filter: &Filter, last: usize) -> Result<Exit, Failure> {
    let mut runs = history.runs(filter).map_err(Failure::environment)?;
    // Other files may have the same extension.
    runs.retain(|run| !matches!(run.state, RunState::Unreadable(_)) || run.path.ends_with("results.jsonl"));
    runs.drain(..runs.len().saturating_sub(last));
    if runs.is_empty() {
        return Err(none(history, filter));
    }
    let rows = runs.iter().map(|run| run_cells(run).to_vec());
    match args.format {
        Format::Table => output::page(&text_table(&HEADINGS, rows, &[5])),
        Format::Csv => output::data(&weir_report::csv_text(&NAMES, rows)),
        Format::Json => json_text(&Value::Array(runs.iter().map(run_json).collect())),
    }?;
    Ok(Exit::Success)
}

fn none(history: &History, filter: &Filter) -> Failure {
    let folder = history.folder().display();
    Failure::usage(if *filter == Filter::default() {
        anyhow!("no results in {folder}: measure with `weir bench`, or name another folder")
    } else {
        anyhow!("no run in {folder} has such cases: `weir history {folder}` lists all runs")
    })
}

const HEADINGS: [&str; 8] = ["Run", "Start (UTC)", "Name", "Host", "Engines", "Cases", "Weir", "Remarks"];
const NAMES: [&str; 8] = ["run", "start_utc", "name", "host", "engines", "cases", "weir_version", "remarks"];

fn run_cells(run: &RunEntry) -> [String; 8] {
    let host = match &run.peer {
        Some(peer) if *peer != run.host => format!("{} > {peer}", run.host),
        _ => run.host.clone(),
    };
    [
        format!("@{}", run.id),
        run.date.replace('T', " ").replace('Z', ""),
        run.name.clone(),
        host,
        run.engines.clone(),
        run.cases.to_string(),
        run.weir_version.clone(),
        remarks(run),
    ]
}

fn remarks(run: &RunEntry) -> String {
    let state = match &run.state {
        RunState::Whole => None,
        RunState::Cut => Some("cut short, or being written".to_owned()),
        RunState::Damaged(lines) => Some(format!("{} left out", counted(*lines, "damaged line"))),
        RunState::Unreadable(reason) => Some(format!("not readable: {reason}")),
    };
    let missing =
        (run.not_measured > 0).then(|| format!("{} without figures", counted(run.not_measured, "case")));
    state.into_iter().chain(missing).collect::<Vec<_>>().join("; ")
}

fn run_json(run: &RunEntry) -> Value {
    json!({
        "id": run.id,
        "path": run.path.to_string_lossy(),
        "name": run.name,
        "date": run.date,
        "host": run.host,
        "peer": run.peer,
        "weir_version": run.weir_version,
        "engines": run.engines.split_whitespace().collect::<Vec<_>>(),
        "cases": run.cases,
        "not_measured": run.not_measured,
        "remarks": remarks(run),
    })
}

fn cases(args: &HistoryArgs, history: &History, filter: &Filter, last: usize) -> Result<Exit, Failure> {
    let mut points = history.points(filter).map_err(Failure::environment)?;
    if points.is_empty() {
        return Err(none(history, filter));
    }
    for point in &mut points {
        point.runs.drain(..point.runs.len().saturating_sub(last));
    }
    let several_hosts = points.iter().any(|point| point.key.host != points[0].key.host);
    let timelines: Vec<Timeline> = points.iter().map(|point| timeline(point, several_hosts)).collect();
    if let Some(path) = &args.plot {
        if timelines.len() > CHARTS_MAX {
            return Err(Failure::usage(anyhow!(
                "--plot draws at most {CHARTS_MAX} cases, these are {}: choose some with --engines, --tests or --sizes",
                timelines.len()
            )));
        }
        if path.extension().is_none_or(|it| !it.eq_ignore_ascii_case("svg")) {
            return Err(Failure::usage(anyhow!("--plot {}: end the name in .svg", path.display())));
        }
        output::file(path, &timeline_plot(&timelines))?;
        output::talk(&format!("plot: {}", path.display()));
    }
    match args.format {
        Format::Table => output::page(&timeline_tables(&timelines)),
        Format::Csv => output::data(&weir_report::csv_text(&CASE_NAMES, points.iter().flat_map(case_rows))),
        Format::Json => json_text(&Value::Array(points.iter().map(point_json).collect())),
    }?;
    Ok(Exit::Success)
}

/// The most charts of a plot.
const CHARTS_MAX: usize = 50;

fn timeline(point: &PointHistory, several_hosts: bool) -> Timeline {
    let key = &point.key;
    let host = if several_hosts { format!(", on {}", key.host) } else { String::new() };
    let (engine, test, size) = (&key.engine, &key.test, format_size(key.size_bytes));
    let title = match is_workload(point) {
        true => format!("{engine} {test} {}{host}", key.conditions),
        false => format!("{engine} {test} {size}, {}{host}", key.conditions),
    };
    let figure = match (point.better(), is_workload(point)) {
        (_, true) => "processor time (%)",
        (Better::Less, _) => "median latency (us)",
        (Better::More, _) => "received (samples/s)",
    };
    let runs = point.runs.iter().enumerate().filter_map(|(at, of_run)| {
        let before = at.checked_sub(1).and_then(|before| point.runs.get(before));
        let change = before.and_then(|before| of_run.ratio(before));
        Some(TimelineRun {
            id: format!("@{}", of_run.run.id),
            date: of_run.run.date.clone(),
            median: of_run.median()?,
            interval: of_run.interval(),
            repeats: of_run.values.len(),
            lost: of_run.lost,
            ratio: change.map(|(ratio, _)| ratio),
            ratio_interval: change.and_then(|(_, interval)| interval),
        })
    });
    Timeline { title, figure, runs: runs.collect() }
}

const CASE_NAMES: [&str; 13] = [
    "engine",
    "test",
    "size_bytes",
    "conditions",
    "host",
    "run",
    "start_utc",
    "figure",
    "repeats",
    "median",
    "low",
    "high",
    "lost",
];

fn figure_name(point: &PointHistory) -> &'static str {
    match (point.better(), is_workload(point)) {
        (_, true) => "cpu_percent",
        (Better::Less, _) => "p50_us",
        (Better::More, _) => "samples_per_s",
    }
}

fn is_workload(point: &PointHistory) -> bool {
    point.key.test == Test::Workload.name()
}

fn case_rows(point: &PointHistory) -> Vec<Vec<String>> {
    let key = &point.key;
    let text = |figure: Option<f64>| figure.map_or_else(String::new, |it| it.to_string());
    let row = |it: &weir_history::PointOfRun| {
        let interval = it.interval();
        vec![
            key.engine.clone(),
            key.test.clone(),
            key.size_bytes.to_string(),
            key.conditions.clone(),
            key.host.clone(),
            it.run.id.clone(),
            it.run.date.clone(),
            figure_name(point).to_owned(),
            it.values.len().to_string(),
            text(it.median()),
            text(interval.map(|it| it.low)),
            text(interval.map(|it| it.high)),
            it.lost.to_string(),
        ]
    };
    point.runs.iter().map(row).collect()
}

fn point_json(point: &PointHistory) -> Value {
    let ends = |it: Interval| [it.low, it.high];
    let run = |it: &weir_history::PointOfRun| {
        json!({
            "run": it.run.id,
            "date": it.run.date,
            "median": it.median(),
            "interval_95": it.interval().map(ends),
            "values": it.values,
            "lost": it.lost,
        })
    };
    let key = &point.key;
    json!({
        "engine": key.engine,
        "test": key.test,
        "size_bytes": key.size_bytes,
        "conditions": key.conditions,
        "host": key.host,
        "figure": figure_name(point),
        "runs": point.runs.iter().map(run).collect::<Vec<_>>(),
    })
}

fn json_text(value: &Value) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(Failure::environment)?;
    output::data(&format!("{text}\n"))
}
