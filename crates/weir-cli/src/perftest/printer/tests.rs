//! Rows, byte for byte.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use weir_bench::host::CpuReading;
use weir_compat::perftest::End;
use weir_results::{LatencyKind, LatencyRecorder, LossAttribution, SequenceCounts};

use super::*;

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn settings(format: Format) -> OutputSettings {
    OutputSettings { format, headers: true, intervals: true, cpu: false, precise: false, file: None }
}

fn summary() -> LatencySummary {
    let mut recorder = LatencyRecorder::new();
    [40_000, 41_900, 50_000].into_iter().for_each(|ns| recorder.record(ns));
    recorder.summary(LatencyKind::HalfRtt)
}

fn received() -> Received {
    Received {
        data_len: 32,
        counts: SequenceCounts { received: 98_447_835, lost: 608_768, ..SequenceCounts::default() },
        received_in: Duration::from_millis(20_000),
        kernel_drops: 0,
        loss: LossAttribution::default(),
        description: None,
        served: Vec::new(),
        end: End::Complete,
    }
}

fn interval() -> Interval {
    Interval { data_len: 1024, samples: 3000, new_samples: 1000, length: Duration::from_millis(500), lost: 5 }
}

fn printed(settings: OutputSettings, print: impl Fn(&mut Printer)) -> String {
    // A process that is busy for 15 ms in every second, which it looks at once.
    let seconds = Cell::new(0);
    let read = move || {
        seconds.set(seconds.get() + 1);
        CpuReading { at_ns: seconds.get() * 1_000_000_000, used: Duration::from_millis(15 * seconds.get()) }
    };
    printed_at(settings, Box::new(read), print)
}

fn printed_at(
    settings: OutputSettings,
    read: Box<dyn Fn() -> CpuReading>,
    print: impl Fn(&mut Printer),
) -> String {
    let sink = Sink::default();
    let mut printer = Printer::new(settings, Box::new(sink.clone()), CpuMeter::of(read, 1));
    printer.begin_run();
    print(&mut printer);
    printer.finish().unwrap();
    let bytes = sink.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

fn latency(printer: &mut Printer) {
    printer.echo(32, Echo { rtt_ns: 40_000 }).unwrap();
    printer.echo(32, Echo { rtt_ns: 41_900 }).unwrap();
    printer.latency(32, &summary()).unwrap();
}

fn throughput(printer: &mut Printer) {
    printer.interval(&interval()).unwrap();
    printer.throughput(32, &received()).unwrap();
}

#[test]
fn csv_is_that_of_rti_perftest() {
    assert_eq!(
        printed(settings(Format::Csv), latency),
        "\nIntervals One-Way Latency for 32 Bytes:\n\
         Length (Bytes), Latency (μs), Ave (μs), Std (μs), Min (μs), Max (μs)\n            \
         32,           20,       20,      0.0,       20,       20\n            \
         32,           20,       20,      0.5,       20,       20\n\
         \nOne-way Latency Summary:\n\
         Sample Size (Bytes), Ave (μs), Std (μs), Min (μs), Max (μs), 50% (μs), 90% (μs), 99% (μs), 99.99% (μs), \
         99.9999% (μs)\n                 \
         32,       22,      2.2,       20,       25,       20,       25,       25,          25,            25\n"
    );
    assert_eq!(
        printed(settings(Format::Csv), throughput),
        "\nInterval Throughput for 1024 Bytes:\n\
         Length (Bytes), Total Samples,  Samples/s, Avg Samples/s,     Mbps,  Avg Mbps, Lost Samples, Lost Samples (%)\n          \
         1024,          3000,       2000,          2000,     16.4,      16.4,            5,             0.17\n\
         \nThroughput Summary:\n\
         Sample Size (Bytes), Total Samples, Avg Samples/s,    Avg Mbps, Lost Samples, Lost Samples (%)\n                 \
         32,      98447835,       4922391,      1260.1,       608768,             0.61\n"
    );
}

#[test]
fn headers_and_titles_go_as_told() {
    let bare = OutputSettings { headers: false, intervals: false, ..settings(Format::Csv) };
    let row = "                 32,       22,      2.2,       20,       25,       20,       25,       25,          25,            25\n";
    assert_eq!(printed(bare.clone(), latency), row);
    let with_header = printed(OutputSettings { headers: true, ..bare.clone() }, latency);
    assert!(with_header.starts_with("Sample Size (Bytes), Ave") && with_header.ends_with(row));
    assert_eq!(with_header.lines().count(), 2);
    let cpu = printed(OutputSettings { headers: true, cpu: true, ..bare }, latency);
    assert!(cpu.contains("99.9999% (μs), CPU (%)\n") && cpu.ends_with(",    1.50\n"), "{cpu}");
}

#[test]
fn json_is_valid_with_intervals_and_without() {
    for (intervals, cpu) in [(true, true), (false, false)] {
        let settings = OutputSettings { intervals, cpu, precise: cpu, ..settings(Format::Json) };
        let text = printed(settings.clone(), latency);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let test = &value["perftest"][0];
        assert_eq!(test["length"], 32);
        assert_eq!(test["intervals"].as_array().unwrap().len(), if intervals { 2 } else { 0 });
        assert!(test["summary"]["latency_99.99"].is_number() && test["summary"]["latency_ave"].is_number());
        assert_eq!(test["summary"].get("cpu").is_some(), cpu);
        assert_eq!(test["summary"].get("CPU"), test["summary"].get("cpu"));
    }
    let text = printed(settings(Format::Json), latency);
    assert!(text.contains("\"latency\":20,\"latency_ave\":20.48,\"latency_std\":0.47,"), "{text}");
    assert!(text.contains("\"latency_ave\":21.98,\"latency_std\":2.17,\"latency_min\":20,"), "{text}");
    let text = printed(settings(Format::Json), throughput);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["perftest"][0]["intervals"][0]["packets/s_ave"], 2000.0);
    assert!(text.contains("\"packets/s_ave\":2000.00,"), "{text}");
    assert_eq!(value["perftest"][0]["summary"]["packets/sAve"], 4_922_391);
}

/// A scan of two sizes.
fn scan(printer: &mut Printer) {
    throughput(printer);
    printer.begin_run();
    printer.throughput(64, &received()).unwrap();
}

#[test]
fn a_scan_is_one_table_in_every_form() {
    let short = |format| OutputSettings { intervals: false, ..settings(format) };
    let print = |printer: &mut Printer| {
        printer.throughput(32, &received()).unwrap();
        printer.begin_run();
        printer.throughput(64, &received()).unwrap();
    };
    let text = printed(short(Format::Csv), print);
    assert_eq!((text.lines().count(), text.matches("Sample Size").count()), (3, 1), "{text}");
    let text = printed(short(Format::Legacy), print);
    assert!(text.contains("\n********** New data length is 64\nLength:    64  Packets"), "{text}");
    for settings in [short(Format::Json), settings(Format::Json)] {
        let value: serde_json::Value = serde_json::from_str(&printed(settings, scan)).unwrap();
        assert_eq!(
            (&value["perftest"][0]["length"], &value["perftest"][1]["length"]),
            (&1024.into(), &64.into())
        );
    }
}

#[test]
fn a_publisher_that_prints_nothing_leaves_valid_json() {
    let value: serde_json::Value = serde_json::from_str(&printed(settings(Format::Json), |_| ())).unwrap();
    assert_eq!(value["perftest"].as_array().map(Vec::len), Some(0));
}

#[test]
fn a_run_that_ends_with_an_error_leaves_valid_json() {
    let print = |printer: &mut Printer| {
        throughput(printer);
        printer.begin_run();
        printer.interval(&interval()).unwrap();
    };
    let value: serde_json::Value = serde_json::from_str(&printed(settings(Format::Json), print)).unwrap();
    let runs = value["perftest"].as_array().unwrap();
    assert_eq!((runs.len(), runs[1]["intervals"].as_array().map(Vec::len)), (2, Some(1)));
    assert!(runs[0].get("summary").is_some() && runs[1].get("summary").is_none());
}

#[test]
fn legacy_lines_are_those_of_old() {
    assert_eq!(
        printed(settings(Format::Legacy), latency),
        "\n\n********** New data length is 32\n\
         One-Way Latency:     20 μs Ave     20 μs Std    0.0 μs Min     20 μs Max     20 μs\n\
         One-Way Latency:     20 μs Ave     20 μs Std    0.5 μs Min     20 μs Max     20 μs\n\
         Length:    32 Latency: Ave     22 μs Std    2.2 μs Min     20 μs Max     25 μs 50%     20 μs 90%     25 μs \
         99%     25 μs 99.99%     25 μs 99.9999%     25 μs\n"
    );
    let cpu = OutputSettings { cpu: true, ..settings(Format::Legacy) };
    assert_eq!(
        printed(cpu, throughput),
        "\n\n********** New data length is 1024\n\
         Packets:     3000  Packets/s:    2000  Packets/s(ave):    2000  Mbps:    16.4  Mbps(ave):    16.4  \
         Lost:     5 (0.17%) CPU 1.50 (%)\n\
         Length:    32  Packets: 98447835  Packets/s(ave): 4922391  Mbps(ave):  1260.1  Lost: 608768 (0.61%) \
         CPU 1.50 (%)\n"
    );
    let bare = OutputSettings { headers: false, ..settings(Format::Legacy) };
    assert!(printed(bare, throughput).starts_with("Packets:"));
}

#[test]
fn precise_rows_have_decimals_and_mark_what_few_samples_cannot_say() {
    let settings =
        OutputSettings { precise: true, intervals: false, headers: false, ..settings(Format::Csv) };
    let text = printed(settings, latency);
    assert!(text.contains("20.000") && text.contains("25.000*"), "{text}");
    assert_eq!(text.matches('*').count(), 4);
}

#[test]
fn nothing_received_prints_zeros() {
    let none = Received {
        data_len: 0,
        counts: SequenceCounts::default(),
        received_in: Duration::ZERO,
        kernel_drops: 0,
        loss: LossAttribution::default(),
        description: None,
        served: Vec::new(),
        end: End::Interrupted,
    };
    for format in [Format::Csv, Format::Json, Format::Legacy] {
        let settings = OutputSettings { headers: false, intervals: false, ..settings(format) };
        let text = printed(settings.clone(), |printer| printer.throughput(0, &none).unwrap());
        assert!(text.contains('0') && !text.contains("NaN"), "{text}");
        let text = printed(settings, |printer| printer.latency(100, &LatencySummary::default()).unwrap());
        assert!(text.contains('0') && !text.contains("NaN"), "{text}");
    }
}

#[test]
fn the_average_of_intervals_is_that_of_their_time() {
    let print = |printer: &mut Printer| {
        let first = Interval {
            data_len: 1000,
            samples: 1,
            new_samples: 1,
            length: Duration::from_millis(1),
            lost: 0,
        };
        printer.interval(&first).unwrap();
        for number in 1..=4 {
            let samples = 1 + 10 * number;
            let length = Duration::from_secs(1);
            printer.interval(&Interval { samples, new_samples: 10, length, ..first }).unwrap();
        }
    };
    let text = printed(OutputSettings { headers: false, ..settings(Format::Csv) }, print);
    let averages: Vec<&str> = text.lines().map(|row| row.split(',').nth(3).unwrap().trim()).collect();
    assert_eq!(averages, ["1000", "11", "10", "10", "10"], "{text}");
}

#[test]
fn processor_time_is_that_of_the_row_and_of_the_run() {
    let moment = Rc::new(Cell::new(CpuReading::default()));
    let pass = |seconds: u64, busy: u64| {
        let CpuReading { at_ns, used } = moment.get();
        moment.set(CpuReading {
            at_ns: at_ns + seconds * 1_000_000_000,
            used: used + Duration::from_secs(busy),
        });
    };
    let print = |printer: &mut Printer| {
        for (wait, first, second) in [(8, 5, 0), (9, 1, 2)] {
            // Busy while it waits for the other end.
            pass(10, wait);
            printer.begin_data();
            pass(10, first);
            printer.interval(&interval()).unwrap();
            pass(10, second);
            printer.interval(&interval()).unwrap();
            printer.throughput(32, &received()).unwrap();
            printer.begin_run();
        }
    };
    let settings = OutputSettings { cpu: true, headers: false, ..settings(Format::Csv) };
    let read = Rc::clone(&moment);
    let text = printed_at(settings, Box::new(move || read.get()), print);
    let rows = text.lines().filter(|line| line.contains(','));
    let shares: Vec<&str> = rows.map(|row| row.split(',').next_back().unwrap().trim()).collect();
    assert_eq!(shares, ["50.00", "0.00", "25.00", "10.00", "20.00", "15.00"], "{text}");
}
