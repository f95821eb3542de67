//! The HTML report: one page that needs nothing else, neither scripts nor a network.
//!
//! - `headline`: what decides about each point; `summary`: the same in sentences
//! - `results`: the tables of a group; `environment`: those of the host; `table`: how they are written
//! - `plots`: the plots of a group; `times`: those over time; `figure`: a plot with its caption and data
//! - `index`: a list of runs, for a server of reports
//! - `files`: the plots of a page as files of their own
//! - `chart`, `rows`: how plots are drawn; `palette`: the colours of engines; `number`: numbers as texts
//!
//! All texts pass through maud, which escapes them: names and settings in a results file are not trusted.

mod chart;
mod environment;
mod figure;
mod files;
mod headline;
mod index;
mod number;
mod palette;
mod plots;
mod results;
mod rows;
mod spread;
mod summary;
mod table;
mod times;

use std::collections::BTreeSet;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use weir_results::{Case, Environment, Interval, LatencyKind, Run};

use crate::baseline::beaten_baselines;
use crate::compact::lost_percent;
use crate::compare::ReportOptions;
use crate::group::{Group, GroupKey, counted, groups, rank};
use crate::notes::{concerned, each_warning};
use crate::plot::HEAVY_LOSS_PERCENT;
use crate::published::{Published, notes as published_notes, put_beside};
use crate::udp::{UdpGroup, udp_groups};
use crate::workload::{WorkloadGroup, workload_groups};
use figure::Figure;
pub use files::page_plots;
use headline::{Headline, headlines};
pub use index::{ListedRun, index_page, served_page};
use palette::Palette;
use table::{Row, RowMark, Table};

/// A run and how it is called in a report.
#[derive(Debug, Clone, Copy)]
pub struct NamedRun<'a> {
    /// The name, such as its folder's.
    pub name: &'a str,
    /// The run.
    pub run: &'a Run,
    /// Published figures to show beside it.
    pub published: &'a [Published],
}

/// Formats runs as one HTML page, a section for each.
#[must_use]
pub fn html_report(runs: &[NamedRun<'_>], options: &ReportOptions) -> String {
    let sections: Vec<Section<'_>> = (1..)
        .zip(runs)
        .map(|(number, run)| Section { number, is_only: runs.len() == 1, run, options })
        .collect();
    let title = title(runs);
    let page = html! {
        (DOCTYPE)
        html lang="en-GB" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'";
                meta name="generator" content="weir report";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { (title) }
                    @for run in runs { p.faint { (origin(run)) } }
                }
                main {
                    @let grouped: Vec<Vec<Group<'_>>> = runs.iter().map(grouped).collect();
                    (contents(&sections, &grouped))
                    @for (section, groups) in sections.iter().zip(&grouped) { (section.render(groups)) }
                }
                footer {
                    p.faint {
                        "Written by weir report. Samples are lost, and figures vary: "
                        "read the warnings and the intervals."
                    }
                }
            }
        }
    };
    without_controls(page.into_string())
}

/// Control characters have no meaning in HTML, and may have one elsewhere.
fn without_controls(page: String) -> String {
    let is_control = |letter: char| letter.is_control() && letter != '\n';
    page.replace(is_control, "\u{FFFD}")
}

const STYLE: &str = concat!(include_str!("html/style.css"), include_str!("html/plot.css"));

/// `udp, weir and mock on vm, 2026-11-24`
fn title(runs: &[NamedRun<'_>]) -> String {
    let engines: BTreeSet<(u8, String)> =
        runs.iter().flat_map(|run| &run.run.cases).map(|case| rank(&case.point.engine)).collect();
    let engines: Vec<&str> = engines.iter().map(|(_, name)| name.as_str()).collect();
    let what = match engines.as_slice() {
        [] => "No cases".to_owned(),
        [one] => (*one).to_owned(),
        [first @ .., last] if first.len() < TITLE_ENGINES_MAX => format!("{} and {last}", first.join(", ")),
        _ => format!("{} engines", engines.len()),
    };
    match runs {
        [run] => format!("{what}{}", on_host(&run.run.environment)),
        _ => format!("{what}: {} runs", runs.len()),
    }
}

fn on_host(environment: &Environment) -> String {
    let host = environment.hostname.as_ref().map_or_else(String::new, |name| format!(" on {name}"));
    let day = environment.date.split('T').next().unwrap_or_default();
    if day.is_empty() { host } else { format!("{host}, {day}") }
}

/// `20261124T092000Z: weir 0.1.0, 2026-11-24T09:20:00Z, vm, AMD EPYC, 24 cases`
fn origin(run: &NamedRun<'_>) -> String {
    let environment = &run.run.environment;
    let host = environment.hostname.as_deref().unwrap_or("host without a name");
    let cpu = environment.cpu_model.as_deref().unwrap_or("unknown processor");
    let cases = run.run.cases.len();
    let (version, date) = (&environment.weir_version, &environment.date);
    format!(
        "{}: Weir {version}, {date}, {host}, {cpu}, kernel {}, {cases} cases.",
        run.name, environment.kernel
    )
}

/// The groups of a run, with the published figures beside them.
fn grouped<'a>(named: &NamedRun<'a>) -> Vec<Group<'a>> {
    let mut groups = groups(named.run);
    put_beside(&mut groups, named.published);
    groups
}

fn contents(sections: &[Section<'_>], grouped: &[Vec<Group<'_>>]) -> Markup {
    html! {
        nav aria-label="Contents" {
            ul {
                @for (section, groups) in sections.iter().zip(grouped) {
                    li {
                        a href={ "#" (section.id()) } { (section.heading()) }
                        ul {
                            @for (number, group) in groups.iter().enumerate() {
                                li { a href={ "#" (section.group_id(number)) } { (group_title(group)) } }
                            }
                            @for (number, group) in udp_groups(section.run.run).iter().enumerate() {
                                li { a href={ "#" (section.udp_id(number)) } { (group.title) } }
                            }
                            @for (number, group) in workload_groups(section.run.run).iter().enumerate() {
                                li { a href={ "#" (section.workload_id(number)) } { (group.title) } }
                            }
                            li { a href={ "#" (section.id()) "-host" } { "Environment and command" } }
                        }
                    }
                }
            }
        }
    }
}

fn group_title(group: &Group<'_>) -> String {
    let test = match group.key.test {
        weir_results::Test::Latency => "Latency",
        weir_results::Test::Throughput | weir_results::Test::Workload => "Throughput",
    };
    format!("{test}, {}", group.key.conditions())
}

/// A run's part of the page.
struct Section<'a> {
    number: usize,
    is_only: bool,
    run: &'a NamedRun<'a>,
    options: &'a ReportOptions,
}

impl<'a> Section<'a> {
    fn id(&self) -> String {
        format!("run{}", self.number)
    }

    fn group_id(&self, number: usize) -> String {
        format!("run{}-{}", self.number, number + 1)
    }

    fn udp_id(&self, number: usize) -> String {
        format!("run{}-udp{}", self.number, number + 1)
    }

    fn workload_id(&self, number: usize) -> String {
        format!("run{}-workload{}", self.number, number + 1)
    }

    fn heading(&self) -> String {
        if self.is_only { "Summary".to_owned() } else { format!("Run {}: {}", self.number, self.run.name) }
    }

    fn render(&self, groups: &[Group<'_>]) -> Markup {
        let run = self.run.run;
        let base = self.options.relative_to.as_str();
        let palette = Palette::new(groups);
        let headlines: Vec<Vec<Headline<'_>>> = groups.iter().map(|group| headlines(group, base)).collect();
        let udp = udp_groups(run);
        let workloads = workload_groups(run);
        html! {
            section {
                h2 id=(self.id()) { (self.heading()) }
                (self.summary(groups, &headlines, &udp, &workloads))
                (warnings(&about_all(run), run.cases.len()))
                @for (number, (group, headlines)) in groups.iter().zip(&headlines).enumerate() {
                    (self.group(number, group, headlines, &palette))
                }
                @for (number, group) in udp.iter().enumerate() { (self.udp(number, group)) }
                @for (number, group) in workloads.iter().enumerate() { (self.workload(number, group)) }
                h3 id={ (self.id()) "-host" } { "Environment and command" }
                (environment::environment(run))
            }
        }
    }

    fn summary(
        &self,
        groups: &[Group<'_>],
        headlines: &[Vec<Headline<'_>>],
        udp: &[UdpGroup<'_>],
        workloads: &[WorkloadGroup<'_>],
    ) -> Markup {
        let base = &self.options.relative_to;
        let points =
            groups.iter().flat_map(|group| &group.points).chain(udp.iter().flat_map(|tests| &tests.points));
        let most = points.map(|point| point.repeats.len());
        let most = most.chain(workloads.iter().map(WorkloadGroup::repeats)).max().unwrap_or(0);
        html! {
            ul.summary {
                @for (number, (group, headlines)) in groups.iter().zip(headlines).enumerate() {
                    li {
                        a href={ "#" (self.group_id(number)) } { (group_title(group)) } ": "
                        (summary::sentences(group, headlines, base).join(" "))
                    }
                }
                @for (number, tests) in udp.iter().enumerate() {
                    li {
                        a href={ "#" (self.udp_id(number)) } { (tests.title) } ": "
                        (summary::udp_sentence(&tests.points))
                    }
                }
                @for (number, group) in workloads.iter().enumerate() {
                    li { a href={ "#" (self.workload_id(number)) } { (group.title) } ": " (group.sentence()) }
                }
            }
            @match most {
                0 => {}
                1 => p.faint { "One run of each case: there are no intervals, and small differences mean nothing." }
                _ if most < Interval::COUNT_MIN => p.faint {
                    "Medians of up to " (most) " repeats. Intervals need " (Interval::COUNT_MIN)
                    ", so small differences mean nothing."
                }
                _ => p.faint {
                    "Medians of up to " (most) " repeats, with 95 % intervals (bootstrap over the repeats)."
                }
            }
        }
    }

    fn group(
        &self,
        number: usize,
        group: &Group<'_>,
        headlines: &[Headline<'_>],
        palette: &Palette<'_>,
    ) -> Markup {
        let base = self.options.relative_to.as_str();
        let cases: Vec<&Case> = group.points.iter().flat_map(|point| &point.repeats).copied().collect();
        html! {
            h3 id=(self.group_id(number)) { (group_title(group)) }
            @let concerns = [about_some(&cases, self.run.run), beaten_baselines(group).into_iter().collect()].concat();
            (warnings(&concerns, self.run.run.cases.len()))
            (results::main_table(group, headlines, base).render())
            @if let Some(note) = results::main_note(group) { p.faint { (note) } }
            @for note in &results::not_measured(headlines) { p.faint { (note) } }
            @for note in &published_notes(group) { p.faint { (note) } }
            (results::all_figures(group))
            (self.figures(group, headlines, palette))
        }
    }

    /// Workloads have tables of their own: in all, by topics, and by processes.
    fn workload(&self, number: usize, group: &WorkloadGroup<'_>) -> Markup {
        html! {
            h3 id=(self.workload_id(number)) { (group.title) }
            (warnings(&about_some(&group.cases(), self.run.run), self.run.run.cases.len()))
            @for table in group.tables(self.options) {
                @let headings = table.headings.iter().map(|it| (*it).to_owned()).collect();
                @let mark = |is_of_less: &bool| if *is_of_less { RowMark::Lossy } else { RowMark::Plain };
                @let marks = table.is_of_less.iter().map(mark);
                @let rows = table.rows.iter().cloned().zip(marks).map(|(cells, mark)| Row { cells, mark }).collect();
                (Table { rows, ..Table::new(table.title, table.names, headings) }.render())
            }
            @for note in &group.notes() { p.faint { (note) } }
        }
    }

    /// UDP tests have columns of their own, and the same plots.
    fn udp(&self, number: usize, tests: &UdpGroup<'a>) -> Markup {
        let mut table =
            Table::new(tests.title.as_str(), 1, tests.headings.iter().map(|it| (*it).to_owned()).collect());
        for (row, point) in tests.rows.iter().zip(&tests.points) {
            let is_lossy = lost_percent(point) >= HEAVY_LOSS_PERCENT;
            let mark = if is_lossy { RowMark::Lossy } else { RowMark::Plain };
            table.push_marked(row.iter().map(|(cell, _)| cell.clone()).collect(), mark);
        }
        let cases: Vec<&Case> = tests.points.iter().flat_map(|point| &point.repeats).copied().collect();
        let group = self.group_of(tests);
        group.iter().for_each(|group| add_published(&mut table, group, tests));
        html! {
            h3 id=(self.udp_id(number)) { (tests.title) }
            (warnings(&about_some(&cases, self.run.run), self.run.run.cases.len()))
            @if !table.rows.is_empty() { (table.render()) }
            @for note in &tests.notes { p.faint { (note) } }
            @for note in group.iter().flat_map(published_notes) { p.faint { (note) } }
            @if let Some(group) = &group {
                @let groups = std::slice::from_ref(group);
                (self.figures(group, &headlines(group, &self.options.relative_to), &Palette::new(groups)))
            }
        }
    }

    /// UDP tests as a group of cases, for their plots.
    fn group_of(&self, tests: &UdpGroup<'a>) -> Option<Group<'a>> {
        let case = tests.points.first()?.repeats.first()?;
        let key = GroupKey::of(case, LatencyKind::Rtt);
        let mut group = Group { key, points: tests.points.clone(), published: Vec::new() };
        put_beside(std::slice::from_mut(&mut group), self.run.published);
        Some(group)
    }

    /// The plots of a group, and those over time.
    fn drawn(
        &self,
        group: &Group<'_>,
        headlines: &[Headline<'_>],
        palette: &Palette<'_>,
    ) -> (Vec<Figure>, Vec<Figure>) {
        let figures = [
            plots::by_size(group, palette, link_mbps(self.run.run)),
            plots::ratios(group, headlines, palette, &self.options.relative_to),
            plots::by_load(group, palette),
            spread::by_percentile(group, palette),
            spread::histograms(group, palette),
            plots::stages(group, palette),
            plots::losses(group, palette),
            plots::processor(group, palette),
        ];
        let over_time = times::over_time(group, palette, self.run.run.peer.is_some());
        (figures.into_iter().flatten().collect(), over_time)
    }

    fn figures(&self, group: &Group<'_>, headlines: &[Headline<'_>], palette: &Palette<'_>) -> Markup {
        let (figures, over_time) = self.drawn(group, headlines, palette);
        let plots_over_time: usize = over_time.iter().map(|figure| figure.plots.len()).sum();
        html! {
            @if !figures.is_empty() { div.figures { @for figure in &figures { (figure.render()) } } }
            @if !over_time.is_empty() {
                details.over-time {
                    summary { "Over time: " (counted(plots_over_time as u32, "plot")) }
                    div.figures { @for figure in &over_time { (figure.render()) } }
                }
            }
        }
    }
}

/// Adds published figures of UDP tests to their table, where it has a column for them.
fn add_published(table: &mut Table, group: &Group<'_>, tests: &UdpGroup<'_>) {
    let at = tests.headings.iter().position(|heading| *heading == "Size (B)").unwrap_or(1);
    let is_shown = |size: &String| table.rows.iter().any(|row| row.cells.get(at) == Some(size));
    let rows = group.published.iter().filter(|it| is_shown(&it.point.size_bytes.to_string()));
    let rows: Vec<Vec<String>> = rows.map(|it| tests.published_cells(&it.point)).collect();
    rows.into_iter().for_each(|cells| table.push_marked(cells, RowMark::Published));
}

/// A warning and the cases that it concerns.
type Concern<'a> = (String, Vec<&'a Case>);

/// The warnings about all cases of a run.
fn about_all(run: &Run) -> Vec<Concern<'_>> {
    let found = each_warning(&run.cases.iter().collect::<Vec<_>>());
    found.into_iter().filter(|(_, concerned)| concerned.len() == run.cases.len()).collect()
}

/// The other warnings about some cases.
fn about_some<'a>(cases: &[&'a Case], run: &Run) -> Vec<Concern<'a>> {
    let known = about_all(run);
    let is_new = |(text, _): &Concern<'_>| known.iter().all(|(known, _)| known != text);
    each_warning(cases).into_iter().filter(is_new).collect()
}

/// Merges warnings that differ only in numbers, such as those of repeats: the first one stands for all, with their
/// cases and their count.
fn merged<'a>(found: &[Concern<'a>]) -> Vec<(String, Vec<&'a Case>, usize)> {
    let without_numbers = |text: &str| text.replace(|c: char| c.is_ascii_digit(), "");
    let mut merged: Vec<(String, Vec<&'a Case>, usize)> = Vec::new();
    for (text, cases) in found {
        match merged.iter_mut().find(|(known, ..)| without_numbers(known) == without_numbers(text)) {
            Some((_, all, count)) => {
                all.extend(cases);
                *count += 1;
            }
            None => merged.push((text.clone(), cases.clone(), 1)),
        }
    }
    merged
}

fn warnings(found: &[Concern<'_>], of: usize) -> Markup {
    let found = merged(found);
    html! {
        @if !found.is_empty() {
            aside aria-label="Warnings" {
                strong { "Warnings" }
                ul {
                    @for (warning, cases, count) in &found {
                        li {
                            (warning) " (" (concerned(cases, of))
                            @if *count > 1 { "; " (count - 1) " more differ only in numbers" } ")"
                        }
                    }
                }
            }
        }
    }
}

/// The speed of the interface that carried the samples, if all cases used the same path.
fn link_mbps(run: &Run) -> Option<f64> {
    let path = |case: &Case| case.conditions.path.clone();
    let is_one = run.cases.windows(2).all(|pair| path(&pair[0]) == path(&pair[1]));
    let speed = run.environment.interface.as_ref()?.speed_mbps?;
    (is_one && speed > 0).then(|| f64::from(speed))
}

const TITLE_ENGINES_MAX: usize = 6;
