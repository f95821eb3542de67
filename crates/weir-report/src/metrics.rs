//! The latest figures as OpenMetrics text (version 1.0.0).

use std::fmt::Write as _;

use weir_results::{Interval, Test};

/// A case of the latest run that has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// Names and values of labels.
    pub labels: Vec<(&'static str, String)>,
    /// What was measured: the figure is a latency in microseconds, received samples per second, or the processor time
    /// of a workload in percent of one processor.
    pub test: Test,
    /// The median over the repeats.
    pub median: f64,
    /// Its 95 % interval; `None` with too few repeats.
    pub interval: Option<Interval>,
    /// Samples lost in all repeats.
    pub lost: u64,
    /// Number of repeats.
    pub repeats: usize,
    /// Start of the run, seconds since 1970; `None`: unknown.
    pub start_s: Option<f64>,
}

/// Returns the metrics as OpenMetrics text. Times are in seconds, as the format asks for.
#[must_use]
pub fn open_metrics(runs: usize, metrics: &[Metric]) -> String {
    let mut text = String::new();
    family(&mut text, "weir_runs", None, "Runs in the results folder", [(Vec::new(), runs as f64)]);
    for (test, name, unit, divisor, about) in [
        (Test::Latency, "weir_latency_median_seconds", Some("seconds"), 1e6, "Median latency"),
        (Test::Throughput, "weir_received_samples_per_second", None, 1.0, "Received samples per second"),
        (
            Test::Workload,
            "weir_workload_cpu_percent",
            Some("percent"),
            1.0,
            "Processor time of all processes of a workload, of one processor",
        ),
    ] {
        let values = || metrics.iter().filter(move |metric| metric.test == test);
        let medians = values().map(|metric| (metric.labels.clone(), metric.median / divisor));
        family(&mut text, name, unit, &format!("{about}, latest run of each case"), medians);
        for (end, value) in [("low", (|it| it.low) as fn(Interval) -> f64), ("high", |it| it.high)] {
            let ends = values().filter_map(|it| Some((it.labels.clone(), value(it.interval?) / divisor)));
            // Units are the end of a name.
            let stem = unit.map_or(name, |unit| name.trim_end_matches(unit).trim_end_matches('_'));
            let name = format!("{stem}_{end}{}", unit.map_or_else(String::new, |unit| format!("_{unit}")));
            family(&mut text, &name, unit, &format!("{about}, {end} end of the 95 % interval"), ends);
        }
    }
    let each = |figure: fn(&Metric) -> Option<f64>| {
        metrics.iter().filter_map(move |metric| Some((metric.labels.clone(), figure(metric)?)))
    };
    family(
        &mut text,
        "weir_lost_samples",
        None,
        "Samples lost in all repeats",
        each(|it| Some(it.lost as f64)),
    );
    family(&mut text, "weir_repeats", None, "Repeats of the case", each(|it| Some(it.repeats as f64)));
    let about = "Start of the run since 1970";
    family(&mut text, "weir_run_start_seconds", Some("seconds"), about, each(|it| it.start_s));
    text.push_str("# EOF\n");
    text
}

/// Writes a gauge with its samples, if it has any.
fn family(
    text: &mut String,
    name: &str,
    unit: Option<&str>,
    about: &str,
    samples: impl IntoIterator<Item = (Vec<(&'static str, String)>, f64)>,
) {
    let mut samples = samples.into_iter().filter(|(_, value)| value.is_finite()).peekable();
    if samples.peek().is_none() {
        return;
    }
    _ = writeln!(text, "# TYPE {name} gauge");
    if let Some(unit) = unit {
        _ = writeln!(text, "# UNIT {name} {unit}");
    }
    _ = writeln!(text, "# HELP {name} {about}.");
    for (labels, value) in samples {
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        _ = writeln!(text, "{name}{labels} {value}");
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_follows_the_format() {
        let metric = |test, median| Metric {
            labels: vec![("engine", "a\"b\\c\nd".into()), ("size_bytes", "32".into())],
            test,
            median,
            interval: Some(Interval { low: median / 2.0, high: median * 2.0 }),
            lost: 3,
            repeats: 8,
            start_s: Some(1_795_000_000.0),
        };
        let one = Metric { interval: None, start_s: None, ..metric(Test::Throughput, 2e6) };
        let text = open_metrics(2, &[metric(Test::Latency, 32.0), one, metric(Test::Workload, 37.5)]);
        let labels = r#"{engine="a\"b\\c\nd",size_bytes="32"}"#;
        for line in [
            "weir_runs 2".to_owned(),
            "# TYPE weir_latency_median_seconds gauge".to_owned(),
            "# UNIT weir_latency_median_seconds seconds".to_owned(),
            format!("weir_latency_median_seconds{labels} 0.000032"),
            format!("weir_latency_median_low_seconds{labels} 0.000016"),
            format!("weir_received_samples_per_second{labels} 2000000"),
            "# UNIT weir_workload_cpu_percent percent".to_owned(),
            format!("weir_workload_cpu_percent{labels} 37.5"),
            format!("weir_workload_cpu_low_percent{labels} 18.75"),
            format!("weir_lost_samples{labels} 3"),
            format!("weir_run_start_seconds{labels} 1795000000"),
        ] {
            assert!(text.lines().any(|it| it == line), "{line}: {text}");
        }
        assert!(
            text.ends_with("\n# EOF\n") && !text.contains("weir_received_samples_per_second_low"),
            "{text}"
        );
        assert!(!text.contains(&format!("weir_latency_median_seconds{labels} 0.0000375")), "{text}");
        // All samples of a family are together, after its own three lines at most.
        let families: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
        assert_eq!(families.len(), families.iter().collect::<std::collections::BTreeSet<_>>().len());
        assert_eq!(open_metrics(0, &[]).lines().last(), Some("# EOF"));
    }
}
