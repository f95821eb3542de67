//! A run as one JSON document, as defined by the results format.

use serde::Serialize;
use serde_json::{Value, json};
use weir_results::{Comparison, Interval, Run, Test, Warning};

use crate::baseline::beaten_baseline;
use crate::compare::{ReportOptions, compare, headline_name};
use crate::group::{Group, Point, groups};
use crate::udp::{UdpPoint, udp_points};

/// Returns the run as one JSON document, indented, with a line break at its end.
///
/// [`Run::load`] reads it. In addition to the cases it has a derived `summary`. For each point that
/// is the `median`, `min` and `max` over its repeats of the `figure` that decides (`p50_us` or
/// `samples_per_s`), the 95 % interval of that median (`interval_95`, from six repeats on), and
/// under `relative_to` the comparison with that engine: `ratio`, its `interval_95`, `pairs`, and
/// the `verdict` better, worse or inconclusive. Its `warnings` say whether it is faster than raw UDP, which cannot be.
///
/// # Panics
/// Never: a run can always be expressed in JSON.
#[must_use]
pub fn json(run: &Run, options: &ReportOptions) -> String {
    let groups = groups(run);
    let summary = groups
        .iter()
        .flat_map(|group| group.points.iter().map(|point| entry(group, point, options)))
        .chain(udp_points(run).iter().map(udp_entry))
        .collect();
    let mut text = serde_json::to_string_pretty(&Document { run, summary })
        .expect("a run has text keys only and can be written as JSON");
    text.push('\n');
    text
}

#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    run: &'a Run,
    summary: Vec<Value>,
}

/// Returns the summary of a point.
pub(crate) fn entry(group: &Group<'_>, point: &Point<'_>, options: &ReportOptions) -> Value {
    let relative_to =
        compare(group, point, &options.relative_to).map(|found| comparison(&found, &options.relative_to));
    summary(point, &group.key.conditions(), relative_to, beaten_baseline(group, point))
}

/// Returns the summary of a UDP test, which is compared with nothing.
fn udp_entry(it: &UdpPoint<'_>) -> Value {
    summary(&it.point, &it.title, None, None)
}

fn summary(
    point: &Point<'_>,
    conditions: &str,
    relative_to: Option<Value>,
    warning: Option<Warning>,
) -> Value {
    let spread = point.headline();
    let test = point.repeats.first().map_or(Test::Latency, |case| case.point.test);
    json!({
        "engine": point.engine,
        "test": test,
        "size_bytes": point.size_bytes,
        "load_percent": point.repeats.first().and_then(|case| case.conditions.load_percent),
        "rate_samples_per_s": point.repeats.first().and_then(|case| case.conditions.rate_samples_per_s),
        "conditions": conditions,
        "figure": headline_name(test),
        "repeats": point.repeats.len(),
        "median": spread.map(|spread| rounded(spread.median)),
        "min": spread.map(|spread| rounded(spread.min)),
        "max": spread.map(|spread| rounded(spread.max)),
        "interval_95": ends(point.interval()),
        "relative_to": relative_to,
        "warnings": warning.into_iter().collect::<Vec<_>>(),
    })
}

fn comparison(found: &Comparison, relative_to: &str) -> Value {
    json!({
        "engine": relative_to,
        "ratio": rounded(found.ratio),
        "interval_95": ends(found.interval),
        "pairs": found.pairs,
        "verdict": found.verdict.name(),
    })
}

fn ends(interval: Option<Interval>) -> Value {
    interval.map_or(Value::Null, |interval| json!([rounded(interval.low), rounded(interval.high)]))
}

/// Rounds to four decimals.
pub(crate) fn rounded(figure: f64) -> f64 {
    (figure * 1e4).round() / 1e4
}
