//! `weir report`: prints or plots an earlier run, or writes a report of several as one HTML page.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use weir_report::{NamedRun, Published, ReportOptions};
use weir_results::{Case, Run};

use crate::args::{Format, PlotForm, PlotTest, ReportArgs, TelemetryForm};
use crate::exit::{Exit, Failure};
use crate::published::{self, mininet, mininet_report};
use crate::runs::{self, Finder, FoundRun};
use crate::{links_report, output};

pub(crate) fn run(args: &ReportArgs) -> Result<Exit, Failure> {
    let finder = Finder::new(&args.folder);
    let mut found = finder.load(&args.runs)?;
    // Before names are replaced, which are in the commands.
    let beside: Vec<Vec<Published>> =
        found.iter().map(|it| published_beside(args, &it.run)).collect::<Result<_, _>>()?;
    if let Some(mut redactor) = runs::redactor(&args.redact) {
        runs::redact(&mut redactor, &mut found)?;
    }
    if let (Some(path), true) = (&args.output, args.plot.is_empty()) {
        return write_report(args, path, &found, &beside);
    }
    let ([folder_or_file], [FoundRun { run, .. }]) = (args.runs.as_slice(), found.as_slice()) else {
        return Err(Failure::usage(anyhow!(
            "several runs make one report: name its file with -o report.html"
        )));
    };
    if let Some(form) = args.telemetry {
        return print_telemetry(run, form);
    }
    if args.compact {
        output::page(&weir_report::compact_tables(run))?;
        output::talk_block(&weir_report::case_warnings(run));
        return Ok(Exit::Success);
    }
    if args.links {
        let page = links_report::page(run);
        let none = || Failure::usage(anyhow!("the run has no emulated links: run `weir bench` with --link"));
        return output::page(&page.ok_or_else(none)?).map(|()| Exit::Success);
    }
    if args.plot.is_empty() {
        let options = ReportOptions { relative_to: args.relative_to.clone(), costs: args.resources };
        check_relative_to(run, &options.relative_to)?;
        print(run, args.format, &options)?;
        return Ok(Exit::Success);
    }
    let folder = match &args.output {
        Some(folder) => folder.clone(),
        None => folder_of(&finder.path(folder_or_file)?),
    };
    output::folder(&folder)?;
    for test in &args.plot {
        write_plots(run, beside.first().map_or(&[], Vec::as_slice), *test, args, &folder)?;
    }
    Ok(Exit::Success)
}

/// The published tables to show beside a run: the chosen ones, or those that its command names.
fn published_beside(args: &ReportArgs, run: &Run) -> Result<Vec<Published>, Failure> {
    match args.published.as_slice() {
        [] => Ok(published::named_in(&run.environment.command)),
        [none] if none == "none" => Ok(Vec::new()),
        names => {
            let mut all = Vec::new();
            for name in names {
                let tables = published::beside(name);
                if tables.is_empty() {
                    return Err(Failure::usage(anyhow!(
                        "--published: `{name}` is not a published table with figures to show: `weir published list` \
                         names them all"
                    )));
                }
                all.extend(tables);
            }
            Ok(all)
        }
    }
}

/// Writes all runs to one HTML page.
fn write_report(
    args: &ReportArgs,
    path: &Path,
    found: &[FoundRun],
    beside: &[Vec<Published>],
) -> Result<Exit, Failure> {
    if path.extension().is_none_or(|extension| !extension.eq_ignore_ascii_case("html")) {
        let path = path.display();
        return Err(Failure::usage(anyhow!(
            "--output {path}: end the name of a report in .html, or choose plots with --plot"
        )));
    }
    let options = ReportOptions { relative_to: args.relative_to.clone(), costs: true };
    if !found.iter().any(|it| check_relative_to(&it.run, &options.relative_to).is_ok()) {
        let name = &options.relative_to;
        return Err(Failure::usage(anyhow!("--relative-to names `{name}`, which no run contains")));
    }
    let named = found.iter().zip(beside);
    let named: Vec<NamedRun<'_>> =
        named.map(|(FoundRun { name, run, .. }, published)| NamedRun { name, run, published }).collect();
    output::file(path, &weir_report::html_report(&named, &options))?;
    output::talk(&format!("report: {}", path.display()));
    Ok(Exit::Success)
}

fn print_telemetry(run: &Run, form: TelemetryForm) -> Result<Exit, Failure> {
    let has_any = |case: &Case| {
        case.evidence.publisher_telemetry.is_some() || case.evidence.subscriber_telemetry.is_some()
    };
    if !run.cases.iter().any(has_any) {
        return Err(Failure::usage(anyhow!(
            "the run has no telemetry: run `weir bench` or `weir udp` with --telemetry-period above 0s"
        )));
    }
    let text = match form {
        TelemetryForm::Csv => weir_report::telemetry_csv(run),
        TelemetryForm::Log => weir_report::telemetry_log(run),
    };
    output::data(&text).map(|()| Exit::Success)
}

/// Rejects an engine that the run does not contain. The default may be missing: then there is no comparison.
fn check_relative_to(run: &Run, relative_to: &str) -> Result<(), Failure> {
    let is_there = run.cases.iter().any(|case| case.point.engine == relative_to);
    if is_there || relative_to == ReportOptions::default().relative_to {
        return Ok(());
    }
    Err(Failure::usage(anyhow!("--relative-to names `{relative_to}`, which the run does not contain")))
}

/// Prints a run on stdout and its warnings on stderr.
pub(crate) fn print(run: &Run, format: Format, options: &ReportOptions) -> Result<(), Failure> {
    match format {
        Format::Table => {
            output::page(&weir_report::tables(run, options))?;
            output::talk_block(&weir_report::warnings(run));
            Ok(())
        }
        Format::Csv => output::data(&weir_report::csv(run, options)),
        Format::Json => output::data(&weir_report::json(run, options)),
    }
}

fn write_plots(
    run: &Run,
    beside: &[Published],
    test: PlotTest,
    args: &ReportArgs,
    folder: &Path,
) -> Result<(), Failure> {
    let of = |prefix| {
        let plots = weir_report::plots_beside(run, beside).into_iter();
        plots.filter(move |plot| plot.name.starts_with(prefix)).collect()
    };
    let of_page = |prefix| {
        let run = NamedRun { name: "", run, published: beside };
        let options = ReportOptions { relative_to: args.relative_to.clone(), costs: true };
        let plots = weir_report::page_plots(&run, &options).into_iter();
        plots.filter(move |plot| plot.name.starts_with(prefix)).collect()
    };
    let (prefix, plots): (_, Vec<_>) = match test {
        PlotTest::Latency => ("latency", of("latency")),
        PlotTest::Throughput => ("throughput", of("throughput")),
        PlotTest::Breakdown => ("breakdown", of("breakdown")),
        PlotTest::Distribution => ("distribution", of("distribution")),
        PlotTest::Ratios => ("ratios", of_page("ratios")),
        PlotTest::Load => ("load", of_page("load")),
        PlotTest::Histogram => ("histogram", of_page("histogram")),
        PlotTest::Losses => ("losses", of_page("losses")),
        PlotTest::Processor => ("processor", of_page("processor")),
        PlotTest::Time => ("time", of_page("time")),
        PlotTest::Links => ("links", links_report::plots(run)),
        PlotTest::Scaling => ("scaling", weir_report::scaling_plots(run)),
        PlotTest::OsrfMininet => (mininet::NAME, mininet_report::plots(run)),
    };
    if plots.is_empty() {
        return Err(Failure::usage(anyhow!(
            "the run has no {prefix} figures to plot: choose another test with --plot"
        )));
    }
    for plot in plots {
        for form in &args.plot_format {
            let extension = if *form == PlotForm::Svg { "svg" } else { "png" };
            let path = folder.join(format!("{}.{extension}", plot.name));
            match form {
                PlotForm::Svg => output::file(&path, &plot.svg)?,
                PlotForm::Png => {
                    output::bytes(&path, &weir_report::png(&plot.svg).map_err(Failure::environment)?)?;
                }
            }
            output::talk(&format!("plot: {}", path.display()));
        }
    }
    Ok(())
}

fn folder_of(run: &Path) -> PathBuf {
    if run.is_dir() { run.to_owned() } else { run.parent().map_or_else(PathBuf::new, Path::to_owned) }
}
