//! Results in the formats of RTI Perftest 4.x: CSV, JSON, and the legacy lines.

use std::fmt::Write as _;
use std::io::{self, BufWriter, ErrorKind, Write};

use weir_bench::host::CpuMeter;
use weir_compat::perftest::{Echo, Interval, Received};
use weir_results::{LatencySummary, Percentile};

use super::append;
use super::settings::{Format, OutputSettings};
use crate::exit::Failure;

/// Writes the rows of the results.
pub(super) struct Printer {
    settings: OutputSettings,
    out: Box<dyn Write>,
    /// Runs so far, including this one.
    runs: u64,
    /// Runs with JSON output so far.
    json_runs: u64,
    /// Whether the last of these has no summary yet.
    is_json_open: bool,
    /// Interval rows of this run so far.
    rows: u64,
    running: Running,
    /// Samples of the intervals so far, and their length in seconds.
    streamed: (u64, f64),
    cpu: CpuMeter,
}

impl Printer {
    /// Opens the destination of the results.
    pub(super) fn open(settings: OutputSettings) -> Result<Self, Failure> {
        let out: Box<dyn Write> = match &settings.file {
            None => Box::new(BufWriter::new(io::stdout())),
            Some(path) => Box::new(BufWriter::new(append("-outputFile", path)?)),
        };
        Ok(Self::new(settings, out, CpuMeter::start()))
    }

    fn new(settings: OutputSettings, out: Box<dyn Write>, cpu: CpuMeter) -> Self {
        Self {
            settings,
            out,
            runs: 0,
            json_runs: 0,
            is_json_open: false,
            rows: 0,
            running: Running::default(),
            streamed: (0, 0.0),
            cpu,
        }
    }

    /// Begins a run.
    pub(super) fn begin_run(&mut self) {
        self.runs += 1;
        (self.rows, self.running, self.streamed) = (0, Running::default(), (0, 0.0));
        self.begin_data();
    }

    /// Begins the measured part of a run: processor time of the wait before it does not count.
    pub(super) fn begin_data(&mut self) {
        self.cpu.restart();
    }

    /// Ends the output, also that of a run without a summary.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        if self.settings.format == Format::Json {
            if std::mem::take(&mut self.is_json_open) {
                self.write("]}")?;
            }
            self.write(if self.json_runs > 0 { JSON_END } else { JSON_EMPTY })?;
        }
        self.flush()
    }

    /// Prints a ping with its echo.
    pub(super) fn echo(&mut self, length: usize, echo: Echo) -> Result<(), Failure> {
        if !self.settings.intervals {
            return Ok(());
        }
        self.running.record(echo.rtt_ns);
        let latency = echo.rtt_ns as f64 / 2e3;
        let (mean, std, min, max) = self.running.figures_us();
        let times = self.times(mean, std, min, max);
        let row = match self.settings.format {
            Format::Csv => format!("{length:14},{},{times}", self.us(latency, 13)),
            Format::Legacy => format!("One-Way Latency: {} μs {times}", self.us(latency, 6)),
            Format::Json => format!("\"latency\":{},{times}", self.us(latency, 0)),
        };
        self.interval_row(length, "Intervals One-Way Latency", LATENCY_ROW, &row)
    }

    /// Prints the publisher's summary.
    pub(super) fn latency(&mut self, length: usize, summary: &LatencySummary) -> Result<(), Failure> {
        let times = self.times(summary.mean, summary.std, summary.min, summary.max);
        let mut row =
            if self.settings.format == Format::Legacy { format!("Latency: {times}") } else { times };
        for (percentile, width) in Percentile::ALL.into_iter().zip([9, 9, 9, 12, 14]) {
            let us = self.us(summary.percentile(percentile), 0);
            let is_marked = self.settings.precise && !summary.supports(percentile);
            let marked = if is_marked { format!("{us}*") } else { us.clone() };
            _ = match self.settings.format {
                Format::Csv => write!(row, ",{marked:>width$}"),
                Format::Legacy => write!(row, " {} {marked:>6} μs", percentile.label()),
                Format::Json => write!(row, ",\"{}\":{us}", member(percentile)),
            };
        }
        if self.settings.format == Format::Json && self.settings.precise {
            let unsupported = Percentile::ALL.into_iter().filter(|percentile| !summary.supports(*percentile));
            let names: Vec<String> = unsupported.map(|it| format!("\"{}\"", member(it))).collect();
            _ = write!(row, ",\"unsupported\":[{}]", names.join(","));
        }
        self.summary_row(length, "One-way Latency Summary:", LATENCY_SUMMARY, &row)
    }

    /// Prints an interval of the subscriber.
    pub(super) fn interval(&mut self, interval: &Interval) -> Result<(), Failure> {
        let length = interval.data_len;
        let seconds = interval.length.as_secs_f64();
        let (all, all_seconds) = (self.streamed.0 + interval.new_samples, self.streamed.1 + seconds);
        self.streamed = (all, all_seconds);
        let per_second = |samples: u64, seconds: f64| samples as f64 / seconds.max(1e-9);
        let (rate, average) = (per_second(interval.new_samples, seconds), per_second(all, all_seconds));
        let (mbps, mbps_average) = (mbps(rate, length), mbps(average, length));
        let (samples, lost) = (interval.samples, interval.lost);
        let lost_percent = percent(lost, samples);
        let rate = rate as u64;
        let row = match self.settings.format {
            Format::Csv => format!(
                "{length:14},{samples:14},{rate:11},{average:14.0},{mbps:9.1},{mbps_average:10.1}, {lost:12}, \
                 {lost_percent:16.2}"
            ),
            Format::Legacy => format!(
                "Packets: {samples:8}  Packets/s: {rate:7}  Packets/s(ave): {average:7.0}  Mbps: {mbps:7.1}  \
                 Mbps(ave): {mbps_average:7.1}  Lost: {lost:5} ({lost_percent:1.2}%)"
            ),
            Format::Json => format!(
                "\"length\":{length},\"packets\":{samples},\"packets/s\":{rate},\"packets/s_ave\":{average:.2},\
                 \"mbps\":{mbps:.1},\"mbps_ave\":{mbps_average:.1},\"lost\":{lost},\"lost_percent\":{lost_percent:.2}"
            ),
        };
        self.interval_row(length, "Interval Throughput", THROUGHPUT_ROW, &row)?;
        self.flush()
    }

    /// Prints the subscriber's summary.
    pub(super) fn throughput(&mut self, length: usize, received: &Received) -> Result<(), Failure> {
        let counts = &received.counts;
        let (samples, lost) = (counts.received, counts.lost);
        let seconds = received.received_in.as_secs_f64();
        let rate = if seconds > 0.0 { samples as f64 / seconds } else { 0.0 };
        let (mbps, lost_percent) = (mbps(rate, length), percent(lost, samples));
        let rate = rate as u64;
        let row = match self.settings.format {
            Format::Csv => {
                format!("{samples:14},{rate:14},{mbps:12.1}, {lost:12}, {lost_percent:16.2}")
            }
            Format::Legacy => format!(
                " Packets: {samples:8}  Packets/s(ave): {rate:7}  Mbps(ave): {mbps:7.1}  Lost: {lost:5} \
                 ({lost_percent:1.2}%)"
            ),
            Format::Json => format!(
                "\"packets\":{samples},\"packets/sAve\":{rate},\"mbpsAve\":{mbps:.1},\"lost\":{lost},\
                 \"lostPercent\":{lost_percent:.2}"
            ),
        };
        self.summary_row(length, "Throughput Summary:", THROUGHPUT_SUMMARY, &row)
    }

    /// Flushes the output.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        let flushed = self.out.flush();
        self.checked(flushed)
    }

    /// Writes an interval row; the first one with title and header.
    fn interval_row(&mut self, length: usize, title: &str, header: &str, row: &str) -> Result<(), Failure> {
        let is_first = self.rows == 0;
        let start = match self.settings.format {
            Format::Legacy => self.legacy_start(length),
            Format::Json if is_first => self.json_start(length),
            Format::Json => ",".to_owned(),
            Format::Csv if is_first && self.settings.headers => {
                format!("\n{title} for {length} Bytes:\n{header}{}\n", self.cpu_header())
            }
            Format::Csv => String::new(),
        };
        self.rows += 1;
        let cpu = self.cpu_text(CpuMeter::interval);
        let (open, close) = if self.settings.format == Format::Json { ("{", "}") } else { ("", "") };
        self.write(&format!("{start}{open}{row}{cpu}{close}\n"))
    }

    /// Writes the row of a summary, with title and header.
    fn summary_row(&mut self, length: usize, title: &str, header: &str, row: &str) -> Result<(), Failure> {
        let cpu = self.cpu_text(|meter| meter.average());
        let text = match self.settings.format {
            Format::Csv => {
                let has_intervals = self.settings.intervals;
                let title = if has_intervals { format!("\n{title}\n") } else { String::new() };
                // The rows of a scan form one table unless intervals separate them.
                let has_header = self.settings.headers && (self.runs <= 1 || has_intervals);
                let header = format!("{title}{header}{}\n", self.cpu_header());
                let header = if has_header { header } else { String::new() };
                format!("{header}{length:19},{row}{cpu}\n")
            }
            Format::Legacy => {
                format!("{}Length: {length:5} {row}{cpu}\n", self.legacy_start(length))
            }
            Format::Json => {
                let start = if self.rows == 0 { self.json_start(length) } else { String::new() };
                self.is_json_open = false;
                format!("{start}],\"summary\":{{{row}{cpu}}}}}")
            }
        };
        self.write(&text)
    }

    fn json_start(&mut self, length: usize) -> String {
        let begin = if self.json_runs > 0 { "," } else { "{\"perftest\":[" };
        self.json_runs += 1;
        self.is_json_open = true;
        format!("{begin}{{\"length\":{length},\"intervals\":[")
    }

    /// The legacy heading of a size: before its first interval, and between the sizes of a scan.
    fn legacy_start(&self, length: usize) -> String {
        let is_new = self.rows == 0 && (self.settings.intervals || self.runs > 1);
        if is_new && self.settings.headers {
            format!("\n\n********** New data length is {length}\n")
        } else {
            String::new()
        }
    }

    /// Mean, standard deviation, minimum and maximum in microseconds.
    fn times(&self, mean: f64, std: f64, min: f64, max: f64) -> String {
        let decimals = if self.settings.precise { 3 } else { 0 };
        let json_decimals = if self.settings.precise { 3 } else { 2 };
        match self.settings.format {
            Format::Csv => {
                format!("{mean:9.decimals$},{std:9.1},{},{}", self.us(min, 9), self.us(max, 9))
            }
            Format::Legacy => format!(
                "Ave {mean:6.decimals$} μs Std {std:6.1} μs Min {} μs Max {} μs",
                self.us(min, 6),
                self.us(max, 6)
            ),
            Format::Json => format!(
                "\"latency_ave\":{mean:.json_decimals$},\"latency_std\":{std:.json_decimals$},\"latency_min\":{},\
                 \"latency_max\":{}",
                self.us(min, 0),
                self.us(max, 0)
            ),
        }
    }

    /// Microseconds, truncated as in RTI Perftest.
    fn us(&self, value: f64, width: usize) -> String {
        if self.settings.precise { format!("{value:width$.3}") } else { format!("{:width$}", value as u64) }
    }

    fn cpu_header(&self) -> &'static str {
        if self.settings.cpu { ", CPU (%)" } else { "" }
    }

    /// CPU use behind the figures of a row; in JSON with the member names of 4.0 and of 4.3.
    fn cpu_text(&mut self, percent: impl Fn(&mut CpuMeter) -> f64) -> String {
        if !self.settings.cpu {
            return String::new();
        }
        let percent = percent(&mut self.cpu);
        match self.settings.format {
            Format::Csv => format!(",{percent:8.2}"),
            Format::Legacy => format!(" CPU {percent:1.2} (%)"),
            Format::Json => format!(",\"cpu\":{percent:.2},\"CPU\":{percent:.2}"),
        }
    }

    fn write(&mut self, text: &str) -> Result<(), Failure> {
        let written = self.out.write_all(text.as_bytes());
        self.checked(written)
    }

    /// Ignores a closed pipe.
    fn checked(&self, done: io::Result<()>) -> Result<(), Failure> {
        match done {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                Err(Failure::environment(anyhow::Error::new(error).context("cannot write results")))
            }
            _ => Ok(()),
        }
    }
}

const LATENCY_ROW: &str = "Length (Bytes), Latency (μs), Ave (μs), Std (μs), Min (μs), Max (μs)";
const LATENCY_SUMMARY: &str = "Sample Size (Bytes), Ave (μs), Std (μs), Min (μs), Max (μs), 50% (μs), 90% (μs), 99% (μs), \
                               99.99% (μs), 99.9999% (μs)";
const THROUGHPUT_ROW: &str = "Length (Bytes), Total Samples,  Samples/s, Avg Samples/s,     Mbps,  Avg Mbps, Lost Samples, Lost Samples (%)";
const THROUGHPUT_SUMMARY: &str =
    "Sample Size (Bytes), Total Samples, Avg Samples/s,    Avg Mbps, Lost Samples, Lost Samples (%)";
const JSON_END: &str = "]}\n";
const JSON_EMPTY: &str = "{\"perftest\":[]}\n";

/// The member of a percentile in JSON.
fn member(percentile: Percentile) -> String {
    format!("latency_{}", percentile.label().trim_end_matches('%'))
}

fn mbps(rate: f64, length: usize) -> f64 {
    rate * length as f64 * 8.0 / 1e6
}

fn percent(lost: u64, received: u64) -> f64 {
    let all = lost + received;
    if all == 0 { 0.0 } else { lost as f64 / all as f64 * 100.0 }
}

/// Statistics of the pings so far.
#[derive(Debug, Default)]
struct Running {
    count: f64,
    sum_us: f64,
    squares: f64,
    min_us: f64,
    max_us: f64,
}

impl Running {
    fn record(&mut self, rtt_ns: u64) {
        let us = rtt_ns as f64 / 2e3;
        self.min_us = if self.count == 0.0 { us } else { self.min_us.min(us) };
        self.max_us = self.max_us.max(us);
        self.count += 1.0;
        self.sum_us += us;
        self.squares += us * us;
    }

    /// Mean, standard deviation, minimum, maximum.
    fn figures_us(&self) -> (f64, f64, f64, f64) {
        let mean = self.sum_us / self.count;
        (mean, (self.squares / self.count - mean * mean).max(0.0).sqrt(), self.min_us, self.max_us)
    }
}

#[cfg(test)]
mod tests;
