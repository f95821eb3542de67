use std::collections::BTreeSet;

use weir_results::{
    Case, CaseSeries, Environment, LatencyKind, LatencyRecorder, LinkFigures, Reliability, Test,
    ThroughputSummary, UdpFigures,
};

use super::*;

fn run() -> Run {
    let mut recorder = LatencyRecorder::new();
    (1..=1_000_u64).for_each(|n| recorder.record(n * 1_000));
    let latency = Case::new("weir", Test::Latency, Reliability::Reliable, 32).with(|it| {
        it.figures.latency_us = Some(recorder.summary(LatencyKind::Rtt));
        it.figures.histogram = recorder.histogram(LatencyKind::Rtt);
        it.figures.series = Some(CaseSeries {
            step_ms: 1_000.0,
            received: vec![600, 400],
            missing: vec![0, 3],
            p50_us: vec![Some(250.5), None],
            p99_us: vec![Some(900.0), None],
            max_us: vec![Some(1_000.0), None],
            publisher_cpu_percent: vec![],
            subscriber_cpu_percent: vec![Some(12.5), Some(13.0)],
        });
        it.conditions.settings =
            [("library", "a \"b\", c"), ("window", "7")].map(|(k, v)| (k.into(), v.into())).into();
    });
    let throughput = Case::new("udp", Test::Throughput, Reliability::None, 8192).with(|it| {
        it.figures.throughput =
            Some(ThroughputSummary { samples_per_s: 123.25, lost: u64::MAX, ..ThroughputSummary::default() });
        it.point.keyed = true;
        it.conditions.beside = Some("tcp".into());
        it.figures.beside_mbps = Some(12.5);
        it.conditions.path = Some("tun,rate=1M\nline".into());
        it.figures.link = Some(LinkFigures { overrun_packets: 5, ..LinkFigures::default() });
        it.figures.udp = Some(UdpFigures { flows: 3, ..UdpFigures::default() });
    });
    let environment = Environment {
        hostname: Some("größe".into()),
        date: "2026-11-24T10:00:00Z".into(),
        ..Environment::default()
    };
    Run { cases: vec![latency, throughput], ..Run::new(environment) }
}

/// The rows of a table as text, as they are in a CSV file.
fn rows(table: &ExportTable) -> Vec<Vec<String>> {
    (0..table.rows()).map(|row| table.columns.iter().map(|(_, values)| values.text(row)).collect()).collect()
}

fn table(kind: ExportKind) -> ExportTable {
    let run = run();
    let (table, damaged) =
        ExportTable::new(&NamedRun { name: "one", run: &run, published: &[] }, "0a1b2c3d", kind);
    assert_eq!(damaged, 0);
    table
}

const KINDS: [ExportKind; 3] = [ExportKind::Cases, ExportKind::Series, ExportKind::Histogram];

#[test]
fn csv_files_read_back_as_what_was_written() {
    for kind in KINDS {
        let table = table(kind);
        let mut writer = ExportWriter::new(Vec::new(), kind).unwrap();
        writer.append(&table).unwrap();
        writer.append(&table).unwrap();
        let file = writer.finish().unwrap();
        let mut reader = ::csv::Reader::from_reader(file.as_slice());
        let names: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
        assert_eq!(names, ExportTable::columns_of(kind).into_iter().map(|it| it.name).collect::<Vec<_>>());
        let read: Vec<Vec<String>> =
            reader.records().map(|it| it.unwrap().iter().map(str::to_owned).collect()).collect();
        assert_eq!(read, [rows(&table), rows(&table)].concat());
    }
}

#[test]
fn rows_are_cases_seconds_and_buckets() {
    let cell = |table: &ExportTable, row: usize, name: &str| {
        let column = table.columns.iter().find(|(column, _)| column.name == name);
        column.unwrap_or_else(|| panic!("{name}")).1.text(row)
    };
    let cases = table(ExportKind::Cases);
    let at = |row, name| cell(&cases, row, name);
    assert_eq!(
        (cases.rows(), at(0, "run"), at(1, "case"), at(0, "hostname")),
        (2, "one".into(), "2".into(), "größe".into())
    );
    assert_eq!(
        (at(0, "settings").as_str(), at(0, "latency_kind").as_str()),
        ("library=a \"b\", c;window=7", "rtt")
    );
    assert_eq!(
        (at(1, "samples_per_s").as_str(), at(1, "lost"), at(0, "lost")),
        ("123.25", u64::MAX.to_string(), String::new())
    );
    assert_eq!(
        (at(1, "keyed").as_str(), at(1, "flows").as_str(), at(1, "link_overrun_packets").as_str()),
        ("true", "3", "5")
    );

    let series = table(ExportKind::Series);
    let at = |row, name| cell(&series, row, name);
    assert_eq!(
        (series.rows(), at(1, "start_s").as_str(), at(1, "received_samples").as_str()),
        (2, "1", "400")
    );
    assert_eq!(
        (at(0, "p50_us").as_str(), at(1, "p50_us").as_str(), at(0, "publisher_cpu_percent").as_str()),
        ("250.5", "", "")
    );

    let histogram = table(ExportKind::Histogram);
    let last = histogram.rows() - 1;
    for table in [&cases, &series, &histogram] {
        let (column, values) = table.columns.last().unwrap();
        assert_eq!((column.name.as_str(), values.text(table.rows() - 1).as_str()), ("run_id", "0a1b2c3d"));
    }
    assert_eq!(cell(&histogram, last, "cumulative_count"), "1000");
    let up_to: f64 = cell(&histogram, last, "up_to_us").parse().unwrap();
    assert!((up_to / 1_000.0 - 1.0).abs() < 2e-3, "{up_to}");
}

#[test]
fn every_column_has_the_type_of_its_values() {
    // Every figure of these cases that is a number, a flag or a text in the results is one in the table.
    let run = run();
    for case in &run.cases {
        let parts = crate::csv::parts(case, None);
        for (name, field) in cases::columns() {
            let value = parts.pointer(&field).filter(|it| !it.is_null());
            assert_eq!(
                value.is_some(),
                cases::cell(value, cases::kind_of(&name)) != Cell::Missing,
                "{name}: {value:?}"
            );
        }
    }
}

#[test]
fn names_of_columns_are_unique_and_documented() {
    let page = include_str!("../../../../docs/reference/export.md");
    for kind in KINDS {
        let columns = ExportTable::columns_of(kind);
        let names: BTreeSet<&str> = columns.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names.len(), columns.len());
        for column in &columns {
            assert!(
                page.contains(&format!("`{}`", column.name)),
                "docs/reference/export.md lacks {}",
                column.name
            );
        }
    }
}

#[test]
fn a_file_that_does_not_take_more_is_an_error_of_writing() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::new(std::io::ErrorKind::StorageFull, "no room"))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let ended = ExportWriter::new(Full, ExportKind::Cases).and_then(|mut writer| {
        writer.append(&table(ExportKind::Cases))?;
        writer.finish().map(|_| ())
    });
    assert_eq!(ended.unwrap_err().to_string(), "no room");
}
