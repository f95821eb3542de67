//! Tables of workloads: what each engine cost in all, how old samples of each kind were, and what each process used.

use weir_results::{
    AgeSummary, Case, Run, ScheduleLag, Spread, Test, TopicGroupFigures, WorkloadFigures, WorkloadProcess,
};

use crate::compare::{ReportOptions, compare_repeats};
use crate::group::{Point, counted, rank};
use crate::table::{dash, drawn, spread_text};

/// A workload under the same conditions, measured with several engines.
pub(crate) struct WorkloadGroup<'a> {
    /// E.g. `Workload robot, 60 nodes, 300 topics`.
    pub(crate) title: String,
    /// The repeats of each engine.
    points: Vec<(&'a str, Vec<&'a Case>)>,
}

/// A table of a workload.
pub(crate) struct WorkloadTable {
    pub(crate) title: &'static str,
    /// How many columns hold names.
    pub(crate) names: usize,
    pub(crate) headings: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
    /// For each row, whether its engine carried less than the whole workload.
    pub(crate) is_of_less: Vec<bool>,
}

/// Returns the workloads of a run.
pub(crate) fn workload_groups(run: &Run) -> Vec<WorkloadGroup<'_>> {
    let cases = || run.cases.iter().filter(|case| case.point.test == Test::Workload);
    let mut groups: Vec<(Key<'_>, WorkloadGroup<'_>)> = Vec::new();
    for case in cases() {
        let key = Key::of(case);
        let at = groups.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
            let is_other = |other: Key<'_>| other.name == key.name && other.digest != key.digest;
            let title = key.title(cases().map(Key::of).any(is_other));
            groups.push((key, WorkloadGroup { title, points: Vec::new() }));
            groups.len() - 1
        });
        let points = &mut groups[at].1.points;
        match points.iter_mut().find(|(engine, _)| *engine == case.point.engine) {
            Some((_, repeats)) => repeats.push(case),
            None => points.push((&case.point.engine, vec![case])),
        }
    }
    groups.into_iter().map(|(_, group)| group.finished()).collect()
}

/// Returns each workload of a run with each engine: what distinguishes it from others, and its repeats.
pub(crate) fn workload_points(run: &Run) -> Vec<(String, Point<'_>)> {
    let mut points = Vec::new();
    for group in workload_groups(run) {
        let conditions = group.cases().first().map(|case| Key::of(case).conditions()).unwrap_or_default();
        for (engine, repeats) in group.points {
            let point = Point { engine: engine.to_owned(), size_bytes: 0, load: None, repeats };
            points.push((conditions.clone(), point));
        }
    }
    points
}

/// Returns the age in microseconds that 1 % of all samples of a workload exceeded, unless it lost what it should not.
pub(crate) fn age_p99(case: &Case) -> Option<f64> {
    case.headline().and(ages(case)).map(|ages| ages.p99)
}

/// What the cases of a group have in common.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key<'a> {
    name: Option<&'a str>,
    digest: Option<&'a str>,
    kept_awake: bool,
}

impl<'a> Key<'a> {
    fn of(case: &'a Case) -> Self {
        let conditions = &case.conditions;
        Self {
            name: conditions.workload_name.as_deref(),
            digest: conditions.workload_digest.as_deref(),
            kept_awake: conditions.kept_awake,
        }
    }

    /// All of it in words.
    fn conditions(self) -> String {
        let contents = self.digest.map(|digest| format!("contents {digest}"));
        let awake = self.kept_awake.then(|| "processors kept awake".to_owned());
        let name = Some(self.name.unwrap_or("without a name").to_owned());
        [name, contents, awake].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// The beginning of the title. With the digest, if the run has other contents of the same name as well.
    fn title(self, is_ambiguous: bool) -> String {
        let mut title = format!("Workload {}", self.name.unwrap_or("without a name"));
        if is_ambiguous {
            title += &format!(" ({})", self.digest.unwrap_or("without a digest"));
        }
        if self.kept_awake {
            title += ", processors kept awake";
        }
        title
    }
}

impl<'a> WorkloadGroup<'a> {
    fn finished(mut self) -> Self {
        self.points.sort_by_key(|(engine, _)| rank(engine));
        let first = self.figures().next();
        if let Some(figures) = first {
            let WorkloadFigures { nodes, topics, writers, readers, processes, .. } = figures;
            let count = u32::try_from(processes.len()).unwrap_or(u32::MAX);
            let (nodes, processes) = (
                counted(*nodes, "node"),
                if count == 1 { "1 process".to_owned() } else { format!("{count} processes") },
            );
            let [topics, writers, readers] = [(topics, "topic"), (writers, "writer"), (readers, "reader")]
                .map(|(count, what)| counted(*count, what));
            self.title += &format!(", {nodes} in {processes}, {topics}, {writers}, {readers}");
        }
        self
    }

    fn figures(&self) -> impl Iterator<Item = &'a WorkloadFigures> {
        self.cases().into_iter().filter_map(|case| case.figures.workload.as_ref())
    }

    /// Its cases.
    pub(crate) fn cases(&self) -> Vec<&'a Case> {
        self.points.iter().flat_map(|(_, repeats)| repeats).copied().collect()
    }

    /// The most repeats of an engine.
    pub(crate) fn repeats(&self) -> usize {
        self.points.iter().map(|(_, repeats)| repeats.len()).max().unwrap_or(0)
    }

    /// The tables and notes as text.
    pub(crate) fn text(&self, options: &ReportOptions) -> String {
        let mut text = format!("{}\n", self.title);
        for table in self.tables(options) {
            let drawn = drawn(table.headings, table.rows, |column| column >= table.names);
            text += &format!("\n{}\n\n{drawn}\n", table.title);
        }
        format!("{text}\n{}\n", self.notes().join("\n"))
    }

    /// The tables, without those that have no rows.
    pub(crate) fn tables(&self, options: &ReportOptions) -> Vec<WorkloadTable> {
        let mut tables = vec![self.totals(&options.relative_to), self.topics(), self.processes()];
        tables.retain(|table| !table.rows.is_empty());
        tables
    }

    /// What the figures mean, and why there are none.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            "CPU: processor time of all processes, harness included, percent of one processor".to_owned(),
            "age: from the time at which a sample was due to its arrival in the application; lag: how late its writer \
             began to write it, which is part of its age; microseconds"
                .to_owned(),
        ];
        if self.repeats() > 1 {
            notes.push("median over the repeats, smallest..largest below".to_owned());
        }
        notes.extend(self.points.iter().filter_map(|(engine, repeats)| less_work(engine, repeats)));
        let mut reasons: Vec<String> = Vec::new();
        for case in self.cases() {
            let reason =
                case.evidence.not_measured.as_ref().map(|why| format!("{}: {why}", case.point.engine));
            reasons.extend(reason.filter(|reason| !reasons.contains(reason)));
        }
        notes.extend(reasons);
        notes
    }

    /// `weir took 12.3 % of a processor, and 1 % of its samples were older than 456 us.`
    pub(crate) fn sentence(&self) -> String {
        let of = |(engine, repeats): &(&str, Vec<&Case>)| {
            let cpu = median(repeats, |case| Some(workload(case)?.cpu_percent))?;
            let age = median(repeats, |case| Some(ages(case)?.p99))?;
            let less = less_work(engine, repeats).map_or_else(String::new, |text| format!(" {text}."));
            Some(format!(
                "{engine} took {cpu:.1} % of a processor, and 1 % of its samples were older than {age:.0} us.{less}"
            ))
        };
        self.points.iter().filter_map(of).collect::<Vec<_>>().join(" ")
    }

    fn totals(&self, relative_to: &str) -> WorkloadTable {
        let base = self.points.iter().find(|(engine, _)| *engine == relative_to);
        let base = base.filter(|_| self.measured().count() > 1);
        let mut headings = vec!["Engine".to_owned(), "CPU %".to_owned()];
        headings.extend(base.map(|_| format!("CPU x {relative_to}")));
        headings.extend(TOTALS.map(|(heading, ..)| heading.to_owned()));
        let row = |(engine, repeats): (&str, &Vec<&Case>)| {
            let cpu = spread_text(repeats, 1, |case| Some(workload(case)?.cpu_percent));
            let mut cells = vec![engine.to_owned(), cpu];
            cells.extend(base.map(|(_, others)| {
                compare_repeats(repeats, others).map_or_else(dash, |found| format!("{:.2}", found.ratio))
            }));
            cells.extend(TOTALS.map(|(_, decimals, figure)| spread_text(repeats, decimals, figure)));
            cells
        };
        let rows = self.measured().map(row).collect();
        let is_of_less =
            self.measured().map(|(engine, repeats)| less_work(engine, repeats).is_some()).collect();
        WorkloadTable { title: "In all", names: 1, headings, rows, is_of_less }
    }

    fn topics(&self) -> WorkloadTable {
        let mut names: Vec<&str> = Vec::new();
        for group in self.figures().flat_map(|figures| &figures.groups) {
            if !names.contains(&group.name.as_str()) {
                names.push(&group.name);
            }
        }
        let (mut rows, mut is_of_less) = (Vec::new(), Vec::new());
        for name in names {
            for (engine, repeats) in self.measured() {
                let Some(group) = repeats.iter().find_map(|case| topics(case, name)) else { continue };
                let mut cells = vec![name.to_owned(), engine.to_owned(), qos(group)];
                cells.extend([group.size_bytes.to_string(), rate(group)]);
                cells.extend(TOPICS.map(|(_, decimals, figure)| {
                    spread_text(repeats, decimals, |case| figure(topics(case, name)?))
                }));
                rows.push(cells);
                is_of_less.push(less_work(engine, repeats).is_some());
            }
        }
        let headings = ["Topics", "Engine", "QoS", "Size (B)", "Rate"].into_iter();
        let headings = headings.chain(TOPICS.map(|(heading, ..)| heading)).map(str::to_owned).collect();
        WorkloadTable { title: "By topics", names: 3, headings, rows, is_of_less }
    }

    fn processes(&self) -> WorkloadTable {
        let (mut rows, mut is_of_less) = (Vec::new(), Vec::new());
        let count = self.figures().map(|figures| figures.processes.len()).max().unwrap_or(0);
        for number in 0..count {
            for (engine, repeats) in self.measured() {
                let of = |case: &Case| workload(case)?.processes.get(number).cloned();
                let Some(first) = repeats.iter().find_map(|case| of(case)) else { continue };
                let mut cells = vec![(number + 1).to_string(), first.nodes, engine.to_owned()];
                cells.extend(PROCESSES.map(|(_, decimals, figure)| {
                    spread_text(repeats, decimals, |case| {
                        Some(figure(&of(case)?, case.figures.duration_s.filter(|it| *it > 0.0)?))
                    })
                }));
                rows.push(cells);
                is_of_less.push(less_work(engine, repeats).is_some());
            }
        }
        let headings = ["Process", "Nodes", "Engine"].into_iter();
        let headings = headings.chain(PROCESSES.map(|(heading, ..)| heading)).map(str::to_owned).collect();
        WorkloadTable { title: "By processes", names: 3, headings, rows, is_of_less }
    }

    /// The engines with figures.
    fn measured(&self) -> impl Iterator<Item = (&'a str, &Vec<&'a Case>)> {
        let has_figures = |repeats: &Vec<&Case>| repeats.iter().any(|case| case.figures.workload.is_some());
        self.points
            .iter()
            .filter(move |(_, repeats)| has_figures(repeats))
            .map(|(engine, repeats)| (*engine, repeats))
    }
}

/// A figure of a case: heading, decimals, and the figure.
type CaseColumn = (&'static str, usize, fn(&Case) -> Option<f64>);

const TOTALS: [CaseColumn; 8] = [
    ("Age 50%", 1, |case| Some(ages(case)?.p50)),
    ("Age 99%", 1, |case| Some(ages(case)?.p99)),
    ("Age 99.9%", 1, |case| Some(ages(case)?.p99_9)),
    ("Age max", 1, |case| Some(ages(case)?.max)),
    ("Sent/s", 0, |case| Some(workload(case)?.groups.iter().map(|it| it.sent_samples_per_s).sum())),
    ("Lost", 0, |case| Some(workload(case)?.sum(|it| it.lost) as f64)),
    ("Discovery ms", 0, |case| Some(workload(case)?.discovery?.from_first_ms)),
    ("Memory MiB", 0, |case| {
        Some(workload(case)?.processes.iter().map(|it| it.figures.max_rss_kib as f64).sum::<f64>() / 1024.0)
    }),
];

/// A figure of a kind of topics.
type TopicColumn = (&'static str, usize, fn(&TopicGroupFigures) -> Option<f64>);

const TOPICS: [TopicColumn; 9] = [
    ("Due/s", 0, |it| Some(it.due_samples_per_s)),
    ("Sent/s", 0, |it| Some(it.sent_samples_per_s)),
    ("Age 50%", 1, |it| Some(it.age_us?.p50)),
    ("Age 99%", 1, |it| Some(it.age_us?.p99)),
    ("Age 99.9%", 1, |it| Some(it.age_us?.p99_9)),
    ("Age max", 1, |it| Some(it.age_us?.max)),
    ("Lag 99%", 1, |it| it.schedule_lag_us.map(|ScheduleLag { p99, .. }| p99)),
    ("Lost", 0, |it| Some(it.lost as f64)),
    ("Lost %", 3, |it| (it.expected > 0).then(|| it.lost as f64 / it.expected as f64 * 100.0)),
];

/// A figure of a process and the measured seconds.
type ProcessColumn = (&'static str, usize, fn(&WorkloadProcess, f64) -> f64);

const PROCESSES: [ProcessColumn; 6] = [
    ("CPU %", 1, |it, _| it.cpu_percent),
    ("User %", 1, |it, seconds| it.figures.cpu_user_s / seconds * 100.0),
    ("System %", 1, |it, seconds| it.figures.cpu_system_s / seconds * 100.0),
    ("Waits/s", 0, |it, seconds| it.figures.context_switches_voluntary as f64 / seconds),
    ("Preempted/s", 0, |it, seconds| it.figures.context_switches_involuntary as f64 / seconds),
    ("Memory MiB", 1, |it, _| it.figures.max_rss_kib as f64 / 1024.0),
];

fn workload(case: &Case) -> Option<&WorkloadFigures> {
    case.figures.workload.as_ref()
}

fn ages(case: &Case) -> Option<AgeSummary> {
    workload(case)?.ages().ok().flatten()
}

fn topics<'a>(case: &'a Case, name: &str) -> Option<&'a TopicGroupFigures> {
    workload(case)?.groups.iter().find(|group| group.name == name)
}

fn median(repeats: &[&Case], figure: impl Fn(&Case) -> Option<f64>) -> Option<f64> {
    Spread::of(repeats.iter().filter_map(|case| figure(case))).map(|spread| spread.median)
}

/// E.g. `reliable, last 10` or `best-effort, all, keyed`.
fn qos(group: &TopicGroupFigures) -> String {
    let history = group.keep_last.map_or_else(|| "all".to_owned(), |depth| format!("last {depth}"));
    let keyed = if group.instances > 0 { ", keyed" } else { "" };
    format!("{}, {history}{keyed}", group.reliability)
}

/// Says that an engine did not carry a workload in some repeat, and how much of its worst topics at least.
fn less_work(engine: &str, repeats: &[&Case]) -> Option<String> {
    let share = |group: &TopicGroupFigures| {
        let of = |part: f64, all: f64| if all > 0.0 { (part / all).min(1.0) } else { 1.0 };
        of(group.received as f64, group.expected as f64)
            * of(group.sent_samples_per_s, group.due_samples_per_s)
    };
    let short = repeats.iter().filter_map(|case| workload(case)).filter(|it| !it.is_complete());
    let shares = short.flat_map(|figures| &figures.groups).map(|group| (share(group), &group.name));
    let (share, name) = shares.min_by(|(one, _), (other, _)| one.total_cmp(other))?;
    // Rounded down: what counts as all is not shown for less.
    let percent = (share * 1e3).floor() / 10.0;
    Some(format!(
        "{engine} delivered {percent:.1} % of its samples of `{name}`, so its figures are of less work"
    ))
}

/// E.g. `300 x 10 Hz` or `1 x 50 Hz x 64`.
fn rate(group: &TopicGroupFigures) -> String {
    let burst = if group.burst > 1 { format!(" x {}", group.burst) } else { String::new() };
    format!("{} x {} Hz{burst}", group.writers, group.rate_hz)
}

#[cfg(test)]
pub(crate) mod tests {
    use weir_results::{Environment, LatencyKind, LatencyRecorder, NotMeasured, ProcessFigures, Reliability};

    use super::*;

    fn group(name: &str, age_us: u64, lost: u64) -> TopicGroupFigures {
        let mut ages = LatencyRecorder::new();
        (0..100).for_each(|_| ages.record(age_us * 1_000));
        let histogram = ages.histogram(LatencyKind::OneWay);
        TopicGroupFigures {
            name: name.to_owned(),
            topics: 2,
            writers: 2,
            readers: 4,
            size_bytes: 200,
            reliability: Reliability::Reliable,
            keep_last: Some(10),
            instances: 0,
            rate_hz: 50.0,
            burst: 1,
            due_samples_per_s: 100.0,
            sent_samples_per_s: 99.0,
            expected: 1000 + lost,
            received: 1000,
            lost,
            duplicates: 0,
            age_us: AgeSummary::merged(&histogram).unwrap(),
            histogram,
            schedule_lag_us: None,
        }
    }

    pub(crate) fn case(engine: &str, repeat: u32, cpu_percent: f64, age_us: u64) -> Case {
        let figures = ProcessFigures { cpu_user_s: 0.5, max_rss_kib: 2048, ..ProcessFigures::default() };
        let process = WorkloadProcess { nodes: "camera 1, arm 2".to_owned(), figures, cpu_percent };
        Case::new(engine, Test::Workload, Reliability::None, 0).with(|it| {
            it.conditions.repeat = repeat;
            it.conditions.workload_name = Some("robot".to_owned());
            it.conditions.workload_digest = Some("0123456789abcdef".to_owned());
            it.figures.duration_s = Some(2.0);
            it.figures.workload = Some(WorkloadFigures {
                nodes: 3,
                topics: 4,
                writers: 4,
                readers: 8,
                cpu_percent,
                discovery: None,
                groups: vec![group("image", age_us, 0), group("state", age_us * 2, 3)],
                processes: vec![process],
            });
        })
    }

    fn run() -> Run {
        let mut run = Run::new(Environment::default());
        run.cases = vec![case("weir", 1, 10.0, 100), case("other", 1, 30.0, 90), case("weir", 2, 12.0, 100)];
        run.cases.push(Case::new("udp", Test::Workload, Reliability::None, 0).with(|it| {
            it.conditions.workload_name = Some("robot".to_owned());
            it.conditions.workload_digest = Some("0123456789abcdef".to_owned());
            let reason = "udp carries at most 65507 bytes".to_owned();
            it.evidence.not_measured = Some(NotMeasured::NotSupported { reason });
        }));
        run
    }

    #[test]
    fn workloads_have_tables_in_all_by_topics_and_by_processes() {
        let run = run();
        let options = ReportOptions { relative_to: "other".to_owned(), ..ReportOptions::default() };
        let groups = workload_groups(&run);
        assert_eq!(groups.len(), 1);
        let expected = "Workload robot, 3 nodes in 1 process, 4 topics, 4 writers, 8 readers";
        assert_eq!(groups[0].title, expected);
        let tables = groups[0].tables(&options);
        let totals = &tables[0];
        assert_eq!(totals.headings[..3], ["Engine", "CPU %", "CPU x other"]);
        assert_eq!(totals.rows[0][..3], ["weir", "11.0\n10.0..12.0", "0.33"]);
        assert_eq!((totals.rows[1][0].as_str(), totals.rows.len()), ("other", 2));
        // 100 samples of 100 us and 100 of 200 us.
        assert!(totals.rows[0][4].starts_with("200"), "{:?}", totals.rows[0]);
        let topics = &tables[1];
        assert_eq!(topics.rows[0][..5], ["image", "weir", "reliable, last 10", "200", "2 x 50 Hz"]);
        assert_eq!((topics.rows.len(), topics.rows[3][12].as_str()), (4, "3"));
        let processes = &tables[2];
        assert_eq!(processes.rows[0][..3], ["1", "camera 1, arm 2", "weir"]);
        assert_eq!(processes.rows[0][4], "25.0");
    }

    #[test]
    fn workloads_of_one_name_with_different_contents_have_tables_of_their_own() {
        let mut run = run();
        let titles = |run: &Run| -> Vec<String> {
            workload_groups(run).iter().map(|it| it.title.split(',').next().unwrap().to_owned()).collect()
        };
        assert_eq!(titles(&run), ["Workload robot"]);
        for (case, digest) in run.cases.iter_mut().zip(["12ab", "12ab", "34cd", "12ab"]) {
            case.conditions.workload_digest = Some(digest.to_owned());
        }
        assert_eq!(titles(&run), ["Workload robot (12ab)", "Workload robot (34cd)"]);
        // They are no repeats of each other, either.
        assert_eq!(workload_groups(&run).iter().map(WorkloadGroup::repeats).collect::<Vec<_>>(), [1, 1]);
        // Those of earlier versions have none.
        run.cases[2].conditions.workload_digest = None;
        assert_eq!(titles(&run)[1], "Workload robot (without a digest)");
    }

    #[test]
    fn csv_has_a_line_for_each_kind_of_topics() {
        let run = run();
        let text = crate::csv(&run, &ReportOptions::default());
        let lines: Vec<&str> = text.lines().collect();
        // Two for each case with figures, and one for the case without.
        assert_eq!(lines.len(), 1 + 3 * 2 + 1);
        let at = |name: &str| lines[0].split(',').position(|column| column == name).unwrap();
        let cell = |line: usize, name: &str| lines[line].split(',').nth(at(name)).unwrap().to_owned();
        assert_eq!([cell(1, "workload"), cell(1, "topics"), cell(2, "topics")], ["robot", "image", "state"]);
        assert_eq!([cell(2, "topic_lost"), cell(1, "workload_cpu_percent")], ["3", "10"]);
        assert_eq!(cell(1, "workload_digest"), "0123456789abcdef");
        assert!(cell(2, "age_p99_us").starts_with("200"), "{text}");
    }

    #[test]
    fn an_engine_that_did_not_deliver_a_workload_is_marked_and_its_figures_are_of_less_work() {
        let less = "delivered 89.0 % of its samples of `state`, so its figures are of less work";
        let mut run = run();
        assert!(!workload_groups(&run)[0].text(&ReportOptions::default()).contains("less work"));
        let state = &mut run.cases[1].figures.workload.as_mut().unwrap().groups[1];
        // Of 99 % that were written, 902 of 1003.
        (state.received, state.lost) = (902, 101);
        let groups = workload_groups(&run);
        assert!(groups[0].text(&ReportOptions::default()).contains(&format!("other {less}\n")));
        assert!(groups[0].sentence().ends_with(&format!(" us. other {less}.")), "{}", groups[0].sentence());
        let marks = groups[0].tables(&ReportOptions::default()).into_iter().map(|it| it.is_of_less);
        let expected = [vec![false, true], vec![false, true, false, true], vec![false, true]];
        assert_eq!(marks.collect::<Vec<_>>(), expected);
        // A burst that was written too late is less work, too.
        let state = &mut run.cases[1].figures.workload.as_mut().unwrap().groups[1];
        (state.received, state.lost, state.sent_samples_per_s) = (1003, 0, 50.0);
        assert!(workload_groups(&run)[0].sentence().contains("other delivered 50.0 % of its samples"));
    }

    #[test]
    fn notes_say_why_an_engine_has_no_figures() {
        let run = run();
        let text = workload_groups(&run)[0].text(&ReportOptions::default());
        assert!(text.contains("udp: not supported: udp carries at most 65507 bytes"), "{text}");
        assert!(text.contains("median over the repeats"), "{text}");
        let sentence = workload_groups(&run)[0].sentence();
        assert!(
            sentence.starts_with(
                "weir took 11.0 % of a processor, and 1 % of its samples were older than 200 us."
            ),
            "{sentence}"
        );
    }
}
