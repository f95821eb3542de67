//! `weir domain`: discovery among many participants.

use std::fs;
use std::io::{IsTerminal, stderr};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, anyhow};
use weir_bench::domain::part::{self, PartPlan};
use weir_bench::domain::{self, DomainError, DomainPlan, DomainReport};
use weir_bench::host;

use super::setup;
use crate::args::{ComparisonFormat, DomainArgs, DomainPartArgs};
use crate::exit::{Exit, Failure};
use crate::{output, signals};

pub(crate) fn run(args: &DomainArgs) -> Result<Exit, Failure> {
    if !args.from.is_empty() {
        let reports = args.from.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
        return output::page(&several(&reports)).map(|()| Exit::Success);
    }
    if !args.endpoints.is_multiple_of(2) {
        return Err(Failure::usage(anyhow!(
            "--endpoints {} is odd: half of them are writers, so use an even number",
            args.endpoints
        )));
    }
    host::interface_address(&args.interface).map_err(Failure::usage)?;
    let plan = DomainPlan {
        participants: args.participants,
        endpoints: args.endpoints,
        processes: args.processes,
        domain_id: args.domain,
        interface: args.interface.clone(),
        rest: args.rest,
        patience: args.timeout,
    };
    let program = setup::program()?;
    let part = || {
        let mut command = Command::new(&program);
        command.arg("domain-part");
        command
    };
    let is_shown = stderr().is_terminal();
    let mut progress = |line: &str| {
        if is_shown {
            output::talk(&format!("weir: {line}"));
        }
    };
    let interrupted = signals::watch()?;
    let report = match domain::measure(&plan, part, &interrupted, &mut progress) {
        Ok(report) => report,
        Err(DomainError::Interrupted) => return Ok(Exit::Interrupted),
        Err(error) => return Err(Failure::environment(error)),
    };
    for limit in &report.limits {
        output::talk(&format!("weir: limit reached: {limit}"));
    }
    let text = match args.format {
        ComparisonFormat::Table => table(&report),
        ComparisonFormat::Json => serde_json::to_string_pretty(&report).map_err(Failure::environment)?,
    };
    output::data(&text).map(|()| Exit::Success)
}

/// Runs one of the processes.
pub(crate) fn part(args: &DomainPartArgs) -> Result<Exit, Failure> {
    let plan = PartPlan::parse(&args.plan)
        .ok_or_else(|| Failure::usage(anyhow!("only `weir domain` starts this command: run that")))?;
    part::run(&plan).map_err(Failure::environment).map(|()| Exit::Success)
}

/// Reads what `--format json` has printed.
fn read(path: &Path) -> Result<DomainReport, Failure> {
    let what = || format!("{}: not the output of `weir domain --format json`", path.display());
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()));
    serde_json::from_str(&text.map_err(Failure::usage)?).with_context(what).map_err(Failure::usage)
}

/// A Markdown table with a row for each measurement.
fn several(reports: &[DomainReport]) -> String {
    let headings = vec![
        "Participants",
        "Endpoints of each",
        "All matched, s",
        "One that joins, ms",
        "Bytes per remote endpoint",
        "CPU at rest, % each",
        "Datagrams at rest/s",
        "Memory of all, MiB",
    ];
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let row = |report: &DomainReport| {
        vec![
            report.participants.to_string(),
            report.endpoints.to_string(),
            format!("{:.2}", report.matched_ms / 1e3),
            format!("{:.0}", report.joined_ms),
            or_none(report.bytes_per_remote_endpoint.map(|bytes| format!("{bytes:.0}"))),
            or_none(report.rest_cpu_percent.map(|percent| format!("{percent:.3}"))),
            or_none(report.rest_datagrams_per_s.map(|rate| format!("{rate:.1}"))),
            format!("{:.0}", report.resident_bytes as f64 / f64::from(1 << 20)),
        ]
    };
    format!("{}\n", weir_report::markdown_table(headings, reports.iter().map(row)))
}

fn table(report: &DomainReport) -> String {
    let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let per_endpoint = report.bytes_per_remote_endpoint.map(|bytes| format!("{bytes:.0} bytes"));
    let rest_cpu = report.rest_cpu_percent.map(|percent| format!("{percent:.3} % of a processor"));
    let rest_datagrams = report.rest_datagrams_per_s.map(|rate| format!("{rate:.1} datagrams/s"));
    let rows = [
        ("all matched after", format!("{:.2} s", report.matched_ms / 1e3)),
        ("processor time until then", format!("{:.2} s", report.matched_cpu_ms / 1e3)),
        ("datagrams sent", report.datagrams.to_string()),
        ("bytes sent", mib(report.bytes)),
        ("datagrams dropped, socket buffer full", report.overran.to_string()),
        ("resident memory of all", mib(report.resident_bytes)),
        ("memory of one participant alone", mib(report.alone_bytes)),
        ("memory per participant and remote endpoint", or_none(per_endpoint)),
        ("processor time at rest, per participant", or_none(rest_cpu)),
        ("traffic at rest, all", or_none(rest_datagrams)),
        ("a restarted participant is matched after", format!("{:.0} ms", report.joined_ms)),
        ("  it knows all participants after", format!("{:.0} ms", report.joined_discovered_ms)),
        ("  all of them have acknowledged it after", format!("{:.0} ms", report.joined_answered_ms)),
        ("  it knows all their endpoints after", format!("{:.0} ms", report.joined_endpoints_ms)),
        ("all others have matched it after", format!("{:.0} ms", report.joined_everywhere_ms)),
        ("datagrams dropped meanwhile", report.joined_overran.to_string()),
    ];
    let title = format!(
        "{} participants with {} endpoints each, in {}\n",
        report.participants,
        report.endpoints,
        if report.processes == 1 {
            "one process".to_owned()
        } else {
            format!("{} processes", report.processes)
        }
    );
    let lines = rows.iter().map(|(what, value)| format!("  {what:<42}{value:>24}\n"));
    std::iter::once(title).chain(lines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_measurements_have_a_row_each_and_are_read_from_what_is_printed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("domain.json");
        fs::write(&file, serde_json::to_string_pretty(&report()).unwrap()).unwrap();
        let small = DomainReport {
            participants: 10,
            bytes_per_remote_endpoint: None,
            rest_cpu_percent: None,
            ..report()
        };
        let text = several(&[small, read(&file).unwrap()]);
        let cells = |line: usize| -> Vec<String> {
            text.lines().nth(line).unwrap().split('|').map(|cell| cell.trim().to_owned()).collect()
        };
        assert_eq!(cells(2)[1..9], ["10", "50", "12.34", "420", "-", "-", "33.3", "1024"]);
        assert_eq!(cells(3)[1..9], ["200", "50", "12.34", "420", "590", "0.025", "33.3", "1024"]);
        fs::write(&file, "{}").unwrap();
        assert!(
            read(&file).unwrap_err().to_string().contains("not the output of `weir domain --format json`")
        );
    }

    fn report() -> DomainReport {
        DomainReport {
            participants: 200,
            endpoints: 50,
            processes: 4,
            matches_per_participant: 10_000.0,
            matched_ms: 12_340.0,
            matched_cpu_ms: 20_000.0,
            datagrams: 1000,
            bytes: 3 << 20,
            overran: 0,
            resident_bytes: 1 << 30,
            alone_bytes: 2 << 20,
            bytes_per_remote_endpoint: Some(590.4),
            rest_cpu_percent: Some(0.0251),
            rest_datagrams_per_s: Some(33.3),
            joined_ms: 420.0,
            joined_discovered_ms: 220.0,
            joined_answered_ms: 310.0,
            joined_endpoints_ms: 415.0,
            joined_everywhere_ms: 500.0,
            joined_overran: 7,
            limits: Vec::new(),
        }
    }

    #[test]
    fn a_table_has_a_line_for_each_figure() {
        let mut report = report();
        let text = table(&report);
        assert!(text.starts_with("200 participants with 50 endpoints each, in 4 processes\n"), "{text}");
        for part in [
            "12.34 s",
            "590 bytes",
            "0.025 % of a processor",
            "220 ms",
            "310 ms",
            "415 ms",
            "420 ms",
            "1024.0 MiB",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert_eq!(text.lines().count(), 17);
        report.bytes_per_remote_endpoint = None;
        (report.rest_cpu_percent, report.rest_datagrams_per_s) = (None, None);
        let text = table(&report);
        assert_eq!(text.lines().filter(|line| line.ends_with(" -")).count(), 3, "{text}");
        assert_eq!(text.lines().count(), 17);
    }
}
