//! Our figures of Open Robotics' experiment beside the published ones: a page of Markdown, and plots.

use std::fmt::Write as _;
use std::time::Duration;

use weir_report::{LineChart, Plot, line_chart, markdown_table};
use weir_results::{Case, Run, Spread, parse_duration};

use super::mininet::{BANDWIDTHS, ENGINES, LOSSES, LossyLink, MESSAGES, RATE_HZ, delivered, links};

/// What was measured of one cell, over its runs.
#[derive(Clone, Debug, PartialEq)]
struct Cell<'a> {
    link: LossyLink,
    engine: &'a str,
    runs: Vec<&'a Case>,
}

impl Cell<'_> {
    /// Samples delivered per second; the mean of the runs, 0 for one without figures. The seconds are those in which
    /// they were due, or those from the first to the last arrival if these are more. If the first ones were late, the
    /// arrivals alone would be too close together; on a slow link, the last ones arrive after the schedule.
    fn delivered_per_s(&self) -> f64 {
        let of = |case: &&Case| {
            let count = case.figures.latency_us.map_or(0, |figures| figures.count);
            let rate = case.figures.throughput.map_or(0.0, |figures| figures.samples_per_s);
            let arrivals_s = if rate > 0.0 { count as f64 / rate } else { 0.0 };
            scheduled(case).map_or(0.0, |time| count as f64 / time.as_secs_f64().max(arrivals_s))
        };
        self.runs.iter().map(of).sum::<f64>() / self.runs.len().max(1) as f64
    }

    /// A figure of the cases, the median of the runs.
    fn median(&self, of: impl Fn(&Case) -> Option<f64>) -> Option<f64> {
        Spread::of(self.runs.iter().filter_map(|case| of(case))).map(|spread| spread.median)
    }

    fn p99_ms(&self) -> Option<f64> {
        self.median(|case| Some(case.figures.latency_us?.p99 / 1e3))
    }

    fn p50_ms(&self) -> Option<f64> {
        self.median(|case| Some(case.figures.latency_us?.p50 / 1e3))
    }

    fn bytes_per_byte(&self) -> Option<f64> {
        self.median(|case| case.figures.link.as_ref()?.offered_per_payload_byte)
    }
}

/// How long samples of the measured part were due.
fn scheduled(case: &Case) -> Option<Duration> {
    let text = case.conditions.settings.get("duration")?;
    parse_duration(text).ok().filter(|time| !time.is_zero())
}

/// How many runs of which length the cells are of, as a sentence.
fn runs_of(run: &Run) -> String {
    let count = run.cases.iter().map(|case| case.conditions.repeat).max().unwrap_or(0);
    let Some(time) = run.cases.iter().find_map(scheduled) else { return String::new() };
    let (noun, each) = if count == 1 { ("run", "") } else { ("runs", " each") };
    format!("- Weir's figures are of {count} {noun} of {} s{each} on each link\n", time.as_secs_f64())
}

/// The page of a run; `None` if it has nothing of the experiment.
pub(crate) fn page(run: &Run) -> Option<String> {
    let mut page = String::from(INTRODUCTION) + &runs_of(run);
    let mut is_empty = true;
    for (message, size, about) in MESSAGES {
        let cells = cells(run, size);
        if cells.is_empty() {
            continue;
        }
        is_empty = false;
        _ = write!(page, "\n## {about}\n\n{}\n", table(message, size, &cells));
    }
    let failures = failures(run);
    if !failures.is_empty() {
        _ = write!(page, "\n## Runs without figures\n\n{failures}");
    }
    (!is_empty).then(|| page + DIFFERENCES)
}

/// The plots of a run: samples delivered per second, and their age, by loss.
pub(crate) fn plots(run: &Run) -> Vec<Plot> {
    let mut plots = Vec::new();
    for (message, size, about) in MESSAGES {
        let cells = cells(run, size);
        let ours = |of: &dyn Fn(&Cell<'_>) -> Option<f64>| -> Vec<(String, Vec<(f64, f64)>)> {
            let line = |mbps: u64| {
                let is_its = |cell: &&Cell<'_>| cell.link.mbps == mbps && cell.link.delay.is_zero();
                let point = |cell: &Cell<'_>| Some((f64::from(cell.link.loss_percent), of(cell)?));
                (format!("Weir, {mbps} Mbit/s"), cells.iter().filter(is_its).filter_map(point).collect())
            };
            BANDWIDTHS.into_iter().map(line).collect()
        };
        let mut push = |name: &str, title: String, y_label, lines: &[(String, Vec<(f64, f64)>)]| {
            let lines = lines.iter().filter(|(_, points)| !points.is_empty());
            let lines: Vec<_> = lines.map(|(name, points)| (&**name, &**points)).collect();
            if cells.is_empty() {
                return;
            }
            let chart =
                LineChart { title: &title, x_label: "Packets lost (%)", y_label, logarithmic: false, lines };
            plots.push(Plot { name: format!("{name}-{}", size >> 10), svg: line_chart(&chart) });
        };
        let mut lines = ours(&|cell| Some(cell.delivered_per_s()));
        lines.push(("best of 2020, any bandwidth".to_owned(), best_published(message)));
        push("delivered", format!("{about}: delivered at {RATE_HZ} Hz"), "Samples per second", &lines);
        push("age", format!("{about}: 99 % are younger"), "Age (ms)", &ours(&|cell| cell.p99_ms()));
    }
    plots
}

/// The best published figure of any engine and bandwidth, by loss.
fn best_published(message: &str) -> Vec<(f64, f64)> {
    let best = |loss| {
        let links = links(&BANDWIDTHS, &[loss], &[Duration::ZERO]);
        let all = links.iter().flat_map(|link| {
            ENGINES.iter().filter_map(|(engine, mode, _)| delivered(message, link, engine, mode))
        });
        (f64::from(loss), all.fold(0.0, f64::max))
    };
    LOSSES.into_iter().map(best).collect()
}

/// The cells of a size, the slowest link first.
fn cells(run: &Run, size: u64) -> Vec<Cell<'_>> {
    let of_size = || run.cases.iter().filter(|case| case.point.size_bytes == size);
    let mut engines: Vec<&str> = Vec::new();
    of_size().for_each(|case| {
        if !engines.contains(&&*case.point.engine) {
            engines.push(&case.point.engine);
        }
    });
    let mut cells = Vec::new();
    for link in links(&BANDWIDTHS, &LOSSES, &DELAYS.map(Duration::from_millis)) {
        for &engine in &engines {
            let runs: Vec<&Case> =
                of_size().filter(|case| case.point.engine == engine && link.carried(case)).collect();
            if !runs.is_empty() {
                cells.push(Cell { link, engine, runs });
            }
        }
    }
    cells
}

fn table(message: &str, size: u64, cells: &[Cell<'_>]) -> String {
    let has_delays = cells.iter().any(|cell| !cell.link.delay.is_zero());
    let delay = has_delays.then_some("Delay ms");
    let ours = ["Mbit/s", "Loss %", "Carries/s", "Delivered/s", "p50 ms", "p99 ms", "Bytes/byte"];
    let published = ENGINES.iter().map(|(_, _, heading)| *heading);
    let headings: Vec<&str> = delay.into_iter().chain(ours).chain(published).collect();
    let number = |value: Option<f64>, decimals: usize| {
        value.map_or_else(|| "-".to_owned(), |value| format!("{value:.decimals$}"))
    };
    let rows = cells.iter().map(|cell| {
        let link = &cell.link;
        let mut row = Vec::new();
        if has_delays {
            row.push(link.delay.as_millis().to_string());
        }
        row.extend([
            link.mbps.to_string(),
            link.loss_percent.to_string(),
            number(Some(carried_per_s(link, size)), 1),
            number(Some(cell.delivered_per_s()), 1),
            number(cell.p50_ms(), 2),
            number(cell.p99_ms(), 2),
            number(cell.bytes_per_byte(), 2),
        ]);
        // There are no published figures with a delay.
        row.extend(ENGINES.iter().map(|(engine, mode, _)| {
            let found = link.delay.is_zero().then(|| delivered(message, link, engine, mode)).flatten();
            number(found, 1)
        }));
        row
    });
    markdown_table(headings, rows)
}

/// Samples per second that the link carries, each byte sent once and again where it was lost; at most the rate.
fn carried_per_s(link: &LossyLink, size: u64) -> f64 {
    let capacity = link.spec(1).and_then(|spec| spec.capacity());
    let capacity = capacity.map_or(0.0, |capacity| capacity.samples_per_s(size, 0));
    (capacity * (1.0 - f64::from(link.loss_percent) / 100.0)).min(RATE_HZ as f64)
}

/// Why runs have no figures.
fn failures(run: &Run) -> String {
    let mut text = String::new();
    for case in &run.cases {
        if let (Some(why), Some(path)) = (&case.evidence.not_measured, &case.conditions.path) {
            _ = writeln!(text, "- {} bytes, {path}: {}", case.point.size_bytes, why.reason());
        }
    }
    text
}

/// The delays that are looked for in results, milliseconds.
pub(crate) const DELAYS: [u64; 3] = [0, 20, 80];

const INTRODUCTION: &str = "\
# Open Robotics' experiment on lossy links

One publisher sends to one subscriber at 30 Hz: reliable, volatile, KEEP_LAST 10. In 2020, Open Robotics measured this
through Mininet to choose the default middleware of ROS 2 Galactic.

- **Carries/s**: samples per second that the link carries when each lost packet is sent again
- **Delivered/s**: samples that Weir delivered, by the seconds in which they were due, or in which they arrived if
  those are more; mean of the runs
- **p50, p99**: their age, from the time at which they were due; median of the runs
- **Bytes/byte**: bytes of IP packets sent towards the subscriber per byte of samples delivered
- The other columns: samples per second that the engines delivered in 2020; means of 10 runs of 15 s
";

const DIFFERENCES: &str = "
## What differs

- **Link**: Mininet joined two network namespaces by a veth with netem. Here the link is Weir's
  [emulator](../../reference/links.md), which also loses each IP packet by itself. The bandwidth, the share of losses,
  and netem's default queue of 1000 packets (1.5 MB) apply to each direction.
- **Discovery**: here the losses start when the ends have met.
- **Host**: the published figures are of another host.
- **Clock**: both ends are on one host, and read the same clock.
";

#[cfg(test)]
mod tests {
    use weir_results::{
        Environment, LatencyKind, LatencySummary, LinkFigures, NotMeasured, Reliability, Test,
        ThroughputSummary,
    };

    use super::*;

    /// A run of ten seconds, whose samples arrived within nine.
    fn case(link: LossyLink, run: u32, size: u64, count: u64) -> Case {
        Case::new("weir", Test::Latency, Reliability::Reliable, size).with(|case| {
            case.conditions.repeat = run;
            case.conditions.path = link.spec(run).map(|spec| spec.to_string());
            let samples_per_s = count as f64 / 9.0;
            case.figures.throughput =
                Some(ThroughputSummary { samples_per_s, ..ThroughputSummary::default() });
            case.conditions.settings = [("duration".to_owned(), "10s".to_owned())].into();
            let kind = LatencyKind::OneWay;
            case.figures.latency_us =
                Some(LatencySummary { kind, count, p50: 1_500.0, p99: 9_000.0, ..LatencySummary::default() });
            case.figures.link =
                Some(LinkFigures { offered_per_payload_byte: Some(1.25), ..LinkFigures::default() });
        })
    }

    const LINK: LossyLink = LossyLink { mbps: 300, loss_percent: 10, delay: Duration::ZERO };

    #[test]
    fn a_cell_is_the_mean_of_its_runs_beside_the_published_figures() {
        let mut run = Run::new(Environment::default());
        run.cases = vec![case(LINK, 1, 524_288, 300), case(LINK, 2, 524_288, 270)];
        let page = page(&run).unwrap();
        let row = page.lines().find(|line| line.starts_with('|') && line.contains("300")).unwrap();
        let cells: Vec<&str> = row.split('|').map(str::trim).filter(|cell| !cell.is_empty()).collect();
        let expected = ["300", "10", "30.0", "28.5", "1.50", "9.00", "1.25", "0.1", "0.0", "0.0"];
        assert_eq!(cells, expected, "{page}");
        assert!(page.contains("of 2 runs of 10 s each on each link"), "{page}");
        assert!(!page.contains("1 kB arrays") && !page.contains("Delay ms"), "{page}");
    }

    #[test]
    fn what_arrives_after_the_schedule_takes_the_time_until_then() {
        let mut run = Run::new(Environment::default());
        let late = case(LINK, 1, 524_288, 120).with(|case| {
            case.figures.throughput =
                Some(ThroughputSummary { samples_per_s: 10.0, ..ThroughputSummary::default() });
        });
        run.cases = vec![late];
        assert_eq!(cells(&run, 524_288)[0].delivered_per_s(), 10.0);
    }

    #[test]
    fn a_run_in_which_nothing_arrived_counts_as_none_and_says_why() {
        let mut run = Run::new(Environment::default());
        let link = LossyLink { delay: Duration::from_millis(20), ..LINK };
        let failed = case(link, 1, 1024, 300).with(|case| {
            (case.figures.throughput, case.figures.latency_us) = (None, None);
            let reason = "no sample arrived".to_owned();
            case.evidence.not_measured = Some(NotMeasured::Failed { reason });
        });
        run.cases = vec![failed];
        let page = page(&run).unwrap();
        assert!(page.contains("no sample arrived") && page.contains("Delay ms"), "{page}");
        let row = page.lines().find(|line| line.starts_with('|') && line.contains("300")).unwrap();
        let cells: Vec<&str> = row.split('|').map(str::trim).filter(|cell| !cell.is_empty()).collect();
        // Nothing was published of links with a delay.
        assert_eq!(cells[4..], ["0.0", "-", "-", "1.25", "-", "-", "-"], "{row}");
    }

    #[test]
    fn other_results_have_no_page_and_no_plots() {
        let run = Run::new(Environment::default());
        assert_eq!(page(&run), None);
        assert!(plots(&run).is_empty());
    }

    #[test]
    fn there_is_a_plot_of_what_arrived_and_of_its_age() {
        let mut run = Run::new(Environment::default());
        run.cases = vec![case(LINK, 1, 1024, 300)];
        let names: Vec<String> = plots(&run).into_iter().map(|plot| plot.name).collect();
        assert_eq!(names, ["delivered-1", "age-1"]);
    }

    #[test]
    fn a_link_carries_what_is_left_after_headers_and_losses() {
        let of = |mbps, loss_percent| carried_per_s(&LossyLink { mbps, loss_percent, ..LINK }, 512 << 10);
        assert!((12.0..12.9).contains(&of(54, 0)), "{}", of(54, 0));
        assert!((7.2..7.7).contains(&of(54, 40)), "{}", of(54, 40));
        assert_eq!(of(300, 40), 30.0);
    }
}
