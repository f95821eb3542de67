//! Results in the formats of RTI Perftest 4.x: CSV, JSON, and the legacy lines.

use std::cell::Cell;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, BufWriter, ErrorKind, Write};

use anyhow::Context;
use weir_bench::host::CpuMeter;
use weir_compat::perftest::{Echo, Interval, Received};
use weir_results::{LatencySummary, Percentile};

use super::settings::{Format, OutputSettings};
use crate::exit::Failure;

/// Writes the rows of the results.
pub(super) struct Printer {
    settings: OutputSettings,
    out: Box<dyn Write>,
    /// Runs so far, including this one.
    runs: u64,
    /// Runs with JSON output so far.
    json_runs: Cell<u64>,
    /// Interval rows of this run so far.
    rows: u64,
    running: Running,
    /// Sum of the rates of the intervals so far, samples per second.
    rates: f64,
    /// CPU use in percent of all processors; called only with `-cpu`.
    cpu: Box<dyn Fn() -> f64>,
}

impl Printer {
    /// Opens the destination of the results.
    pub(super) fn open(settings: OutputSettings) -> Result<Self, Failure> {
        let out: Box<dyn Write> = match &settings.file {
            None => Box::new(BufWriter::new(io::stdout())),
            Some(path) => {
                let file = OpenOptions::new().create(true).append(true).open(path);
                let file = file.with_context(|| format!("-outputFile {}", path.display()));
                Box::new(BufWriter::new(file.map_err(Failure::environment)?))
            }
        };
        let meter = CpuMeter::start();
        Ok(Self::new(settings, out, Box::new(move || meter.percent())))
    }

    fn new(settings: OutputSettings, out: Box<dyn Write>, cpu: Box<dyn Fn() -> f64>) -> Self {
        Self {
            settings,
            out,
            runs: 0,
            json_runs: Cell::new(0),
            rows: 0,
            running: Running::default(),
            rates: 0.0,
            cpu,
        }
    }

    /// Begins a run.
    pub(super) fn begin_run(&mut self) {
        self.runs += 1;
        (self.rows, self.running, self.rates) = (0, Running::default(), 0.0);
    }

    /// Ends the output.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        if self.settings.format == Format::Json {
            self.write(if self.json_runs.get() > 0 { JSON_END } else { JSON_EMPTY })?;
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
        let mut text =
            self.begin(length, &format!("Intervals One-Way Latency for {length} Bytes:"), LATENCY_ROW);
        let us = |value: f64, width: usize| self.us(value, width);
        let comma = if self.rows > 1 { "," } else { "" };
        _ = match self.settings.format {
            Format::Csv => write!(
                text,
                "{length:14},{},{},{std:9.1},{},{}{}",
                us(latency, 13),
                self.rounded(mean, 9),
                us(min, 9),
                us(max, 9),
                self.cpu_column()
            ),
            Format::Legacy => write!(
                text,
                "One-Way Latency: {} μs Ave {} μs Std {std:6.1} μs Min {} μs Max {} μs{}",
                us(latency, 6),
                self.rounded(mean, 6),
                us(min, 6),
                us(max, 6),
                self.cpu_legacy()
            ),
            Format::Json => write!(
                text,
                "{comma}{{\"latency\":{},\"latency_ave\":{},\"latency_std\":{},\"latency_min\":{},\"latency_max\":{}{}}}",
                us(latency, 0),
                self.json_mean(mean),
                self.json_mean(std),
                us(min, 0),
                us(max, 0),
                self.cpu_json()
            ),
        };
        text.push('\n');
        self.write(&text)
    }

    /// Prints the publisher's summary.
    pub(super) fn latency(&mut self, length: usize, summary: &LatencySummary) -> Result<(), Failure> {
        let us = |value: f64, width: usize| self.us(value, width);
        let (mean, std) = (self.rounded(summary.mean, 9), summary.std);
        let marked = |percentile: Percentile, width: usize| {
            let text = us(summary.percentile(percentile), 0);
            let is_marked = self.settings.precise && !summary.supports(percentile);
            format!("{:>width$}", if is_marked { text + "*" } else { text })
        };
        let text = match self.settings.format {
            Format::Csv => {
                let mut text = self.summary_title("One-way Latency Summary:", LATENCY_SUMMARY);
                _ = write!(
                    text,
                    "{length:19},{mean},{std:9.1},{},{}",
                    us(summary.min, 9),
                    us(summary.max, 9)
                );
                for (percentile, width) in Percentile::ALL.into_iter().zip([9, 9, 9, 12, 14]) {
                    _ = write!(text, ",{}", marked(percentile, width));
                }
                text + &self.cpu_column() + "\n"
            }
            Format::Legacy => {
                let mut text = self.legacy_start(length);
                _ = write!(
                    text,
                    "Length: {length:5} Latency: Ave {} μs Std {std:6.1} μs Min {} μs Max {} μs",
                    self.rounded(summary.mean, 6),
                    us(summary.min, 6),
                    us(summary.max, 6)
                );
                for percentile in Percentile::ALL {
                    _ = write!(text, " {} {} μs", percentile.label(), marked(percentile, 6));
                }
                text + &self.cpu_legacy() + "\n"
            }
            Format::Json => {
                let mut text = self.json_summary(length);
                _ = write!(
                    text,
                    "\"latency_ave\":{},\"latency_std\":{},\"latency_min\":{},\"latency_max\":{}",
                    self.json_mean(summary.mean),
                    self.json_mean(std),
                    us(summary.min, 0),
                    us(summary.max, 0)
                );
                for percentile in Percentile::ALL {
                    let name = percentile.label().trim_end_matches('%');
                    _ = write!(text, ",\"latency_{name}\":{}", us(summary.percentile(percentile), 0));
                }
                if self.settings.precise {
                    _ = write!(text, ",\"unsupported\":[{}]", unsupported(summary));
                }
                text + &self.cpu_json() + JSON_RUN_END
            }
        };
        self.write(&text)
    }

    /// Prints an interval of the subscriber.
    pub(super) fn interval(&mut self, interval: &Interval) -> Result<(), Failure> {
        let length = interval.data_len;
        let mut text =
            self.begin(length, &format!("Interval Throughput for {length} Bytes:"), THROUGHPUT_ROW);
        let rate = interval.new_samples as f64 / interval.length.as_secs_f64().max(1e-9);
        self.rates += rate;
        let average = self.rates / self.rows as f64;
        let (mbps, mbps_average) = (mbps(rate, length), mbps(average, length));
        let (samples, lost) = (interval.samples, interval.lost);
        let lost_percent = percent(lost, samples);
        let rate = rate as u64;
        let comma = if self.rows > 1 { "," } else { "" };
        _ = match self.settings.format {
            Format::Csv => writeln!(
                text,
                "{length:14},{samples:14},{rate:11},{average:14.0},{mbps:9.1},{mbps_average:10.1}, {lost:12}, \
                 {lost_percent:16.2}{}",
                self.cpu_column()
            ),
            Format::Legacy => writeln!(
                text,
                "Packets: {samples:8}  Packets/s: {rate:7}  Packets/s(ave): {average:7.0}  Mbps: {mbps:7.1}  \
                 Mbps(ave): {mbps_average:7.1}  Lost: {lost:5} ({lost_percent:1.2}%){}",
                self.cpu_legacy()
            ),
            Format::Json => writeln!(
                text,
                "{comma}{{\"length\":{length},\"packets\":{samples},\"packets/s\":{rate},\"packets/s_ave\":{average:.2},\
                 \"mbps\":{mbps:.1},\"mbps_ave\":{mbps_average:.1},\"lost\":{lost},\"lost_percent\":{lost_percent:.2}{}}}",
                self.cpu_json()
            ),
        };
        self.write(&text)?;
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
        let text = match self.settings.format {
            Format::Csv => {
                let mut text = self.summary_title("Throughput Summary:", THROUGHPUT_SUMMARY);
                _ = write!(
                    text,
                    "{length:19},{samples:14},{rate:14},{mbps:12.1}, {lost:12}, {lost_percent:16.2}"
                );
                text + &self.cpu_column() + "\n"
            }
            Format::Legacy => {
                self.legacy_start(length)
                    + &format!(
                        "Length: {length:5}  Packets: {samples:8}  Packets/s(ave): {rate:7}  Mbps(ave): {mbps:7.1}  \
                 Lost: {lost:5} ({lost_percent:1.2}%){}\n",
                        self.cpu_legacy()
                    )
            }
            Format::Json => {
                let mut text = self.json_summary(length);
                _ = write!(
                    text,
                    "\"packets\":{samples},\"packets/sAve\":{rate},\"mbpsAve\":{mbps:.1},\"lost\":{lost},\
                     \"lostPercent\":{lost_percent:.2}"
                );
                text + &self.cpu_json() + JSON_RUN_END
            }
        };
        self.write(&text)
    }

    /// Flushes the output.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        let flushed = self.out.flush();
        self.checked(flushed)
    }

    /// The text in front of the first interval row.
    fn begin(&mut self, length: usize, title: &str, header: &str) -> String {
        let is_first = self.rows == 0;
        let legacy_start = self.legacy_start(length);
        self.rows += 1;
        match self.settings.format {
            Format::Legacy => legacy_start,
            Format::Json if is_first => self.json_start(length),
            Format::Csv if is_first && self.settings.headers => {
                format!("\n{title}\n{header}{}\n", self.cpu_header())
            }
            Format::Csv | Format::Json => String::new(),
        }
    }

    fn summary_title(&self, title: &str, header: &str) -> String {
        // The rows of a scan form one table unless intervals separate them.
        if !self.settings.headers || (self.runs > 1 && !self.settings.intervals) {
            return String::new();
        }
        let title = if self.settings.intervals { format!("\n{title}\n") } else { String::new() };
        format!("{title}{header}{}\n", self.cpu_header())
    }

    fn json_start(&self, length: usize) -> String {
        let begin = if self.json_runs.get() > 0 { "," } else { "{\"perftest\":[" };
        self.json_runs.set(self.json_runs.get() + 1);
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

    fn json_summary(&self, length: usize) -> String {
        let start = if self.rows == 0 { self.json_start(length) } else { String::new() };
        format!("{start}],\"summary\":{{")
    }

    /// Microseconds, truncated as in RTI Perftest.
    fn us(&self, value: f64, width: usize) -> String {
        if self.settings.precise { format!("{value:width$.3}") } else { format!("{:width$}", value as u64) }
    }

    /// Microseconds of a mean or a deviation in JSON.
    fn json_mean(&self, value: f64) -> String {
        if self.settings.precise { format!("{value:.3}") } else { format!("{value:.2}") }
    }

    /// Microseconds, rounded.
    fn rounded(&self, value: f64, width: usize) -> String {
        if self.settings.precise { format!("{value:width$.3}") } else { format!("{value:width$.0}") }
    }

    fn cpu_header(&self) -> &'static str {
        if self.settings.cpu { ", CPU (%)" } else { "" }
    }

    fn cpu_column(&self) -> String {
        if self.settings.cpu { format!(",{:8.2}", (self.cpu)()) } else { String::new() }
    }

    fn cpu_legacy(&self) -> String {
        if self.settings.cpu { format!(" CPU {:1.2} (%)", (self.cpu)()) } else { String::new() }
    }

    /// With the member names of 4.0 and of 4.3.
    fn cpu_json(&self) -> String {
        if !self.settings.cpu {
            return String::new();
        }
        let percent = (self.cpu)();
        format!(",\"cpu\":{percent:.2},\"CPU\":{percent:.2}")
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
const JSON_RUN_END: &str = "}}";
const JSON_END: &str = "]}\n";
const JSON_EMPTY: &str = "{\"perftest\":[]}\n";

fn unsupported(summary: &LatencySummary) -> String {
    let names = Percentile::ALL.into_iter().filter(|percentile| !summary.supports(*percentile));
    let names: Vec<String> =
        names.map(|percentile| format!("\"latency_{}\"", percentile.label().trim_end_matches('%'))).collect();
    names.join(",")
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
