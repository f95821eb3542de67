//! What the view of a run shows, and how it is drawn.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Gauge, Paragraph, Sparkline};
use weir_bench::case::CaseSpec;
use weir_bench::control::Role;
use weir_bench::live::LiveEnd;
use weir_bench::plan::{Action, Plan};
use weir_results::{LiveFigures, Test, format_rate};

use super::activity::Rates;

/// The state of a run, as it is drawn.
pub(super) struct View {
    /// Measured time up to the end of each step.
    ends: Vec<Duration>,
    begin: Instant,
    current: Option<Current>,
    rates: Option<Rates>,
    /// The last finished cases.
    finished: VecDeque<String>,
    finished_count: usize,
}

/// The case that is being measured.
struct Current {
    name: String,
    test: Test,
    warmup: Duration,
    duration: Duration,
    /// Measured time of the run when it started.
    from: Duration,
    elapsed: Duration,
    live: Vec<LiveEnd>,
    /// The figures of the end that measures, and those before.
    figures: Option<(LiveFigures, LiveFigures)>,
    /// Samples per second, and median latencies in nanoseconds, one for each report.
    rate_history: VecDeque<u64>,
    p50_history: VecDeque<u64>,
}

/// Finished cases that are kept: more than a terminal has rows.
const KEPT: usize = 200;
/// Reports that are kept: more than a terminal has columns.
const HISTORY: usize = 400;
/// Rows of the part about the current case.
const CASE_ROWS: u16 = 9;

impl View {
    pub(super) fn new(plan: &Plan) -> Self {
        let mut total = Duration::ZERO;
        let ends = plan.steps.iter().map(|step| {
            if !matches!(step.action, Action::NotSupported(_)) {
                total += step.case.warmup + step.case.duration;
            }
            total
        });
        let (rates, finished) = (None, VecDeque::new());
        Self {
            ends: ends.collect(),
            begin: Instant::now(),
            current: None,
            rates,
            finished,
            finished_count: 0,
        }
    }

    /// Case `number`, from 1, has started.
    pub(super) fn start(&mut self, number: usize, name: String, case: &CaseSpec) {
        let before = number.checked_sub(2).and_then(|index| self.ends.get(index)).copied();
        self.current = Some(Current {
            name: format!("{name}{}", conditions(case)),
            test: case.test,
            warmup: case.warmup,
            duration: case.duration,
            from: before.unwrap_or_default(),
            elapsed: Duration::ZERO,
            live: Vec::new(),
            figures: None,
            rate_history: VecDeque::new(),
            p50_history: VecDeque::new(),
        });
        self.rates = None;
    }

    /// The case has been running for `elapsed`, and its ends have reported this.
    pub(super) fn measure(&mut self, elapsed: Duration, live: &[LiveEnd]) {
        let Some(current) = &mut self.current else { return };
        current.elapsed = elapsed;
        current.live = live.to_vec();
        current.live.sort_by_key(|end| (end.role, end.index));
        let Some(figures) = live.iter().find_map(|end| end.report.figures) else { return };
        let before = current.figures.map_or_else(LiveFigures::default, |(latest, _)| latest);
        if figures.measured_ns <= before.measured_ns {
            return;
        }
        current.figures = Some((figures, before));
        push(&mut current.rate_history, rate(&figures, &before) as u64);
        if let Some(p50_us) = figures.p50_us {
            push(&mut current.p50_history, (p50_us * 1e3) as u64);
        }
    }

    /// What the processors and sockets of this host do.
    pub(super) fn set_rates(&mut self, rates: Rates) {
        self.rates = Some(rates);
    }

    /// The case has this result.
    pub(super) fn finish(&mut self, line: String) {
        if self.finished.len() == KEPT {
            self.finished.pop_front();
        }
        self.finished.push_back(line);
        self.finished_count += 1;
        self.current = None;
    }

    /// Draws all of it, as far as the terminal has room.
    pub(super) fn draw(&self, frame: &mut Frame<'_>) {
        let rows = [Constraint::Length(2), Constraint::Length(CASE_ROWS), Constraint::Min(0)];
        let [head, case, finished] = Layout::vertical(rows).areas(frame.area());
        self.draw_head(frame, head);
        self.draw_case(frame, case);
        self.draw_finished(frame, finished);
    }

    fn draw_head(&self, frame: &mut Frame<'_>, area: Rect) {
        let [line, bar] = Layout::vertical([Constraint::Length(1), Constraint::Length(1)]).areas(area);
        let text =
            format!("weir: {} of {} cases, {}", self.finished_count, self.ends.len(), self.time_left());
        frame.render_widget(Paragraph::new(text).style(Style::new().add_modifier(Modifier::BOLD)), line);
        frame.render_widget(Gauge::default().ratio(self.share()).use_unicode(true), bar);
    }

    fn draw_case(&self, frame: &mut Frame<'_>, area: Rect) {
        let name = self.current.as_ref().map_or("between two cases", |current| current.name.as_str());
        let block = Block::new().borders(Borders::TOP).title(format!(" {} ", plain(name)));
        let inner = block.inner(area);
        frame.render_widget(block, area);
        let rows = [Constraint::Length(3), Constraint::Length(3), Constraint::Min(0)];
        let [figures, plots, host] = Layout::vertical(rows).areas(inner);
        if let Some(current) = &self.current {
            let lines = [current.state(), current.latency(), current.rate()].map(Line::from);
            frame.render_widget(Paragraph::new(lines.to_vec()), figures);
            current.draw_plots(frame, plots);
        }
        let lines: Vec<Line<'_>> =
            [self.processors(), self.datagrams()].into_iter().map(Line::from).collect();
        frame.render_widget(Paragraph::new(lines), host);
    }

    fn draw_finished(&self, frame: &mut Frame<'_>, area: Rect) {
        let block = Block::new().borders(Borders::TOP).title(" finished ");
        let inner = block.inner(area);
        frame.render_widget(block, area);
        let shown = self.finished.len().saturating_sub(usize::from(inner.height));
        let lines: Vec<Line<'_>> = self.finished.range(shown..).map(|line| Line::from(plain(line))).collect();
        frame.render_widget(Paragraph::new(lines), inner);
    }

    /// Measured time so far.
    fn position(&self) -> Duration {
        match &self.current {
            Some(current) => current.from + current.elapsed.min(current.warmup + current.duration),
            None => self
                .finished_count
                .checked_sub(1)
                .and_then(|at| self.ends.get(at))
                .copied()
                .unwrap_or_default(),
        }
    }

    /// The share of the measured time that is over, 0 to 1.
    fn share(&self) -> f64 {
        let total = self.ends.last().copied().unwrap_or_default().as_secs_f64();
        if total > 0.0 { (self.position().as_secs_f64() / total).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Estimates the time left: cases take longer than they measure, as much longer as those so far.
    fn time_left(&self) -> String {
        let total = self.ends.last().copied().unwrap_or_default();
        let position = self.position();
        let left_s = total.saturating_sub(position).as_secs_f64();
        let so_far_s = position.as_secs_f64();
        let slowness = if so_far_s > 0.0 { self.begin.elapsed().as_secs_f64() / so_far_s } else { 1.0 };
        format!("{} left", minutes((left_s * slowness.clamp(1.0, 10.0)) as u64))
    }

    /// The processors that the ends and the host use.
    fn processors(&self) -> String {
        let live = self.current.iter().flat_map(|current| &current.live);
        let mut parts: Vec<String> = live
            .map(|LiveEnd { role, index, report }| {
                let number = if *index > 0 { format!(" {}", index + 1) } else { String::new() };
                format!("{}{number} {:.0} %", role.name(), report.cpu_percent)
            })
            .collect();
        let rates = self.rates.as_ref();
        if parts.is_empty() {
            let ends = rates.iter().flat_map(|rates| &rates.ends);
            parts.extend(ends.map(|(role, percent)| format!("{role} {percent:.0} %")));
        }
        let host = rates.and_then(|rates| rates.host_percent);
        parts.extend(host.map(|percent| format!("whole host {percent:.0} %")));
        if parts.is_empty() { String::new() } else { format!("processors  {}", parts.join(", ")) }
    }

    fn datagrams(&self) -> String {
        let Some(per_s) = self.rates.as_ref().and_then(|rates| rates.udp_per_s) else { return String::new() };
        let [sent, received, dropped] = per_s.map(format_rate);
        format!("UDP         {sent}/s sent, {received}/s received, {dropped}/s dropped by full sockets")
    }
}

impl Current {
    /// How far it is.
    fn state(&self) -> String {
        let s = |time: Duration| format!("{:.1}", time.as_secs_f64());
        match self.elapsed.checked_sub(self.warmup) {
            _ if self.elapsed.is_zero() => "starting".to_owned(),
            None => format!("warm-up     {} of {} s", s(self.elapsed), s(self.warmup)),
            Some(measured) if measured > self.duration => {
                format!("finishing   after {} s", s(self.duration))
            }
            Some(measured) => format!("measuring   {} of {} s", s(measured), s(self.duration)),
        }
    }

    /// Percentiles of the last second or so.
    fn latency(&self) -> String {
        let Some((LiveFigures { p50_us: Some(p50), p99_us: Some(p99), max_us: Some(max), .. }, _)) =
            self.figures
        else {
            return String::new();
        };
        format!("latency     p50 {p50:.2} us, p99 {p99:.2} us, max {max:.2} us")
    }

    fn rate(&self) -> String {
        let Some((latest, before)) = &self.figures else { return String::new() };
        let what = match self.test {
            Test::Latency => "round trips",
            Test::Throughput | Test::Workload => "samples",
        };
        let subscribers =
            self.live.iter().filter(|end| end.role == Role::Subscriber && end.report.figures.is_some());
        let by = match subscribers.count() {
            0 | 1 => "",
            _ => " by the first subscriber",
        };
        let missing = latest.missing;
        format!(
            "rate        {}/s {what}{by}, {missing} lost or not yet sent again",
            format_rate(rate(latest, before))
        )
    }

    /// The median latency over time, or else the rate.
    fn draw_plots(&self, frame: &mut Frame<'_>, area: Rect) {
        let (name, history) = match self.p50_history.is_empty() {
            false => ("p50", &self.p50_history),
            true if !self.rate_history.is_empty() => ("rate", &self.rate_history),
            true => return,
        };
        let [label, plot] = Layout::horizontal([Constraint::Length(12), Constraint::Min(0)]).areas(area);
        frame.render_widget(Paragraph::new(format!("{name}\nover time")), label);
        let from = history.len().saturating_sub(usize::from(plot.width));
        let values: Vec<u64> = history.range(from..).copied().collect();
        frame.render_widget(Sparkline::default().data(&values), plot);
    }
}

/// What distinguishes a case from others of its name.
fn conditions(case: &CaseSpec) -> String {
    let mut text = String::new();
    if case.batch_bytes > 0 {
        text += &format!(", batches of {} B", case.batch_bytes);
    }
    if let Some(rate) = &case.method.rate {
        text += &format!(", {rate}");
    }
    if let Some(workload) = &case.workload {
        text += &format!(", {}", workload.name);
    }
    if case.method.keep_awake {
        text += ", kept awake";
    }
    if let Some(path) = &case.method.path {
        text += &format!(", {path}");
    }
    format!("{text}, repeat {}", case.repeat)
}

/// Samples per second between two reports.
fn rate(latest: &LiveFigures, before: &LiveFigures) -> f64 {
    let elapsed_ns = latest.measured_ns.saturating_sub(before.measured_ns);
    let samples = latest.received.saturating_sub(before.received);
    if elapsed_ns > 0 { samples as f64 / (elapsed_ns as f64 / 1e9) } else { 0.0 }
}

fn push(history: &mut VecDeque<u64>, value: u64) {
    if history.len() == HISTORY {
        history.pop_front();
    }
    history.push_back(value);
}

/// On one line, without control characters: reasons may quote anything.
fn plain(text: &str) -> String {
    text.chars().map(|it| if it.is_control() { ' ' } else { it }).collect()
}

fn minutes(seconds: u64) -> String {
    match seconds {
        3600.. => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
        60.. => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use weir_bench::live::LiveReport;
    use weir_bench::plan::Step;

    use super::*;

    fn case(test: Test) -> CaseSpec {
        let (warmup, duration) = (Duration::from_millis(500), Duration::from_secs(2));
        CaseSpec { warmup, duration, ..CaseSpec::new("weir", test) }
    }

    fn view(test: Test) -> View {
        let step = Step { case: case(test), action: Action::Measure };
        View::new(&Plan { steps: vec![step; 4], until_width: None })
    }

    fn end(role: Role, cpu_percent: f64, figures: Option<LiveFigures>) -> LiveEnd {
        LiveEnd { role, index: 0, report: LiveReport { figures, cpu_percent } }
    }

    fn figures(measured_ms: u64, received: u64, p50_us: Option<f64>) -> LiveFigures {
        let [p99_us, max_us] = [2.0, 10.0].map(|factor| p50_us.map(|p50| p50 * factor));
        LiveFigures { measured_ns: measured_ms * 1_000_000, received, missing: 3, p50_us, p99_us, max_us }
    }

    /// A view in the middle of its second case.
    fn measured() -> View {
        let mut view = view(Test::Latency);
        view.start(1, "[1/4] udp latency none 32 B".to_owned(), &case(Test::Latency));
        view.finish("[1/4] udp: failed: a\nb\u{1b}[2J".to_owned());
        view.start(2, "[2/4] weir latency reliable 32 B".to_owned(), &case(Test::Latency));
        view.set_rates(Rates {
            ends: Vec::new(),
            host_percent: Some(45.0),
            udp_per_s: Some([31_200.0, 31_100.0, 0.0]),
        });
        for half in 1..=3 {
            let live = [
                end(Role::Publisher, 38.2, Some(figures(half * 500, half * 10_000, Some(12.345)))),
                end(Role::Subscriber, 31.0, None),
            ];
            view.measure(Duration::from_millis(500 + half * 500), &live);
        }
        view
    }

    fn drawn(view: &View, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| view.draw(frame)).unwrap();
        let buffer = terminal.backend().buffer();
        let cells = buffer.content().chunks(usize::from(width.max(1)));
        cells
            .map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned())
            .collect()
    }

    #[test]
    fn a_case_shows_percentiles_rate_losses_processors_and_the_time_left() {
        let lines = drawn(&measured(), 100, 20);
        assert!(lines[0].starts_with("weir: 1 of 4 cases, ") && lines[0].ends_with(" left"), "{lines:?}");
        // 2.5 s of the first case, 2.0 of the second, of 10.
        assert!(lines[1].contains("45%"), "{lines:?}");
        assert!(lines[2].contains(" [2/4] weir latency reliable 32 B, repeat 1 "), "{lines:?}");
        assert_eq!(lines[3], "measuring   1.5 of 2.0 s");
        assert_eq!(lines[4], "latency     p50 12.35 us, p99 24.69 us, max 123.45 us");
        assert_eq!(lines[5], "rate        20.0 k/s round trips, 3 lost or not yet sent again");
        assert!(lines[6].starts_with("p50         ███"), "{lines:?}");
        assert_eq!(lines[9], "processors  publisher 38 %, subscriber 31 %, whole host 45 %");
        assert_eq!(lines[10], "UDP         31.2 k/s sent, 31.1 k/s received, 0/s dropped by full sockets");
        assert_eq!(lines[12], "[1/4] udp: failed: a b [2J");
    }

    #[test]
    fn a_stream_shows_its_rate_over_time() {
        let mut view = view(Test::Throughput);
        view.start(1, "[1/4] weir".to_owned(), &case(Test::Throughput));
        assert_eq!(drawn(&view, 100, 20)[3], "starting");
        view.measure(Duration::from_millis(300), &[end(Role::Publisher, 99.0, None)]);
        assert_eq!(drawn(&view, 100, 20)[3], "warm-up     0.3 of 0.5 s");
        let live = end(Role::Subscriber, 80.0, Some(figures(500, 1_000_000, None)));
        view.measure(Duration::from_secs(1), &[end(Role::Publisher, 99.0, None), live]);
        // The same report again is no new one.
        view.measure(Duration::from_millis(1_100), &[live]);
        let lines = drawn(&view, 100, 20);
        assert_eq!(lines[5], "rate        2.00 M/s samples, 3 lost or not yet sent again");
        assert!(lines[6].starts_with("rate        █") && !lines[6].contains("██"), "{lines:?}");
        view.measure(Duration::from_secs(9), &[live]);
        assert_eq!(drawn(&view, 100, 20)[3], "finishing   after 2.0 s");
    }

    #[test]
    fn no_size_of_a_terminal_is_too_small() {
        let views = [view(Test::Latency), measured()];
        for width in [0, 1, 2, 3, 5, 8, 11, 12, 13, 20, 40] {
            for height in (0..=14).chain([25]) {
                views.iter().for_each(|view| drop(drawn(view, width, height)));
            }
        }
    }

    #[test]
    fn the_last_finished_cases_are_shown_and_only_so_many_are_kept() {
        let mut view = view(Test::Latency);
        (0..KEPT + 50).for_each(|number| view.finish(format!("case {number}")));
        assert_eq!(view.finished.len(), KEPT);
        assert_eq!(drawn(&view, 40, 14).last().unwrap(), &format!("case {}", KEPT + 49));
    }

    #[test]
    fn times_are_in_words() {
        assert_eq!([5, 65, 3_720].map(minutes), ["5 s", "1 min 05 s", "1 h 02 min"]);
    }
}
