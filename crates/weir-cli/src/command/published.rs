//! `weir published`: published reference tables, and the same measured on this host.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, stdout};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::anyhow;
use weir_bench::host;
use weir_bench::path::VirtualLink;
use weir_results::RESULTS_FILE_NAME;

use super::{mininet as mininet_run, setup};
use crate::args::{
    Format, Profile, PublishedArgs, PublishedCommand, PublishedEndArgs, PublishedRunArgs, PublishedShowArgs,
};
use crate::exit::{Exit, Failure};
use crate::published::{self as tables, LinkChoice, Plan, Shown, Table, mininet, mininet_report};
use crate::{output, perftest, runs, signals};

pub(crate) fn run(args: &PublishedArgs) -> Result<Exit, Failure> {
    match &args.command {
        PublishedCommand::List => output::data(&list()).map(|()| Exit::Success),
        PublishedCommand::Show(args) => show(args).map(|()| Exit::Success),
        PublishedCommand::Run(args) => measure(args),
        PublishedCommand::Page { folder } => page(folder).map(|()| Exit::Success),
    }
}

/// Runs one end of a row until standard input is closed.
pub(crate) fn end(args: &PublishedEndArgs) -> Result<Exit, Failure> {
    let interrupted = signals::watch()?;
    let stop = Arc::clone(&interrupted);
    std::thread::spawn(move || {
        let mut bytes = [0; 64];
        while matches!(std::io::stdin().lock().read(&mut bytes), Ok(1..)) {}
        stop.store(true, Ordering::Relaxed);
    });
    perftest::run(args.options.iter().cloned(), &interrupted)
}

fn list() -> String {
    let mut text = String::from("Tables that `weir published run` measures:\n");
    for table in tables::all() {
        let Some((first, last)) = table.rows.first().zip(table.rows.last()) else { continue };
        let doubtful = table.rows.iter().filter(|row| row.is_doubtful).count();
        let note = match doubtful {
            0 => String::new(),
            count => format!(", {count} of them contradictory"),
        };
        _ = writeln!(
            text,
            "  {:<48} {} rows, {} to {} bytes{note}",
            table.name,
            table.rows.len(),
            first.size,
            last.size
        );
    }
    text += "\nOpen Robotics' experiment on lossy links, which `weir published run` measures:\n";
    _ = writeln!(text, "  {:<48} 30 cells, 1024 and 524288 bytes", mininet::NAME);
    text += "\nTables of hpcbench, which `udptest` measures:\n";
    for document in tables::documents() {
        _ = writeln!(text, "  {:<48} {}", document.name, document.about);
    }
    text
}

fn show(args: &PublishedShowArgs) -> Result<(), Failure> {
    let mut documents = String::new();
    let mut all = Vec::new();
    for name in &args.tables {
        if name == mininet::NAME {
            documents += mininet::figures();
            continue;
        }
        match tables::documents().iter().find(|document| document.name.eq_ignore_ascii_case(name)) {
            Some(document) => documents += &tables::document_text(document),
            None => all.extend(tables_of(name)?.into_iter().map(published)),
        }
    }
    if !documents.is_empty() {
        output::data(&documents)?;
    }
    if all.is_empty() {
        return Ok(());
    }
    let text = |shown: &Shown| tables::table_text(shown, output::columns(stdout()));
    match args.format {
        Format::Table => output::page(&all.iter().map(text).collect::<Vec<_>>().join("\n")),
        Format::Csv => output::data(&tables::csv(&all)),
        Format::Json => output::data(&tables::json(&all)),
    }
}

fn published(table: Table) -> Shown {
    Shown::published(table)
}

fn page(folder: &Path) -> Result<(), Failure> {
    if folder.is_file() || folder.join(RESULTS_FILE_NAME).is_file() {
        let run = runs::read(folder)?;
        return match mininet_report::page(&run) {
            Some(page) => output::data(&page),
            None => Err(Failure::usage(anyhow!(
                "no results of {} in {}: print it with `weir report`",
                mininet::NAME,
                folder.display()
            ))),
        };
    }
    let text_of = |table: &Table| fs::read_to_string(folder.join(format!("{}.txt", table.name))).ok();
    match tables::page(&tables::all(), text_of) {
        Some(page) => output::data(&page),
        None => Err(Failure::usage(anyhow!(
            "no tables in {}: write them with `weir published run --output`",
            folder.display()
        ))),
    }
}

/// The tables that a name stands for.
fn tables_of(name: &str) -> Result<Vec<Table>, Failure> {
    if let Some(document) = tables::documents().iter().find(|document| document.name == name) {
        let instead = document.instead;
        return Err(Failure::usage(anyhow!(
            "{name} is a table of hpcbench: print it with `weir published show {name}`, measure it with `{instead}`"
        )));
    }
    if name == mininet::NAME {
        return Err(Failure::usage(anyhow!("measure {name} by itself: it has options of its own")));
    }
    let found = tables::find(name);
    if found.is_empty() {
        return Err(Failure::usage(anyhow!(
            "`{name}` is not a published table: `weir published list` names them all"
        )));
    }
    Ok(found)
}

fn measure(args: &PublishedRunArgs) -> Result<Exit, Failure> {
    if args.tables == [mininet::NAME] {
        return mininet_run::run(args);
    }
    if args.mininet.runs.is_some() {
        return Err(Failure::usage(anyhow!(
            "--runs is for {}; other tables are measured once",
            mininet::NAME
        )));
    }
    let mut wanted: Vec<Table> = Vec::new();
    for name in &args.tables {
        for table in tables_of(name)? {
            if !wanted.iter().any(|known| known.name == table.name) {
                wanted.push(table);
            }
        }
    }
    let plan = plan(args)?;
    wanted
        .retain(|table| table.rows.iter().any(|row| plan.sizes.is_empty() || plan.sizes.contains(&row.size)));
    if wanted.is_empty() {
        return Err(Failure::usage(anyhow!(
            "no table has a row of those --sizes: `weir published show TABLE` prints the sizes"
        )));
    }
    if let Some(folder) = &args.output {
        output::folder(folder)?;
    }
    let interrupted = signals::watch()?;
    let mut all = Vec::new();
    let count = wanted.len();
    for (number, table) in wanted.into_iter().enumerate() {
        if interrupted.load(Ordering::Relaxed) {
            break;
        }
        let shown = measure_table(table, &plan, &interrupted, (number + 1, count))?;
        if args.format == Format::Table {
            let between = if number > 0 { "\n" } else { "" };
            output::page(&format!("{between}{}", tables::table_text(&shown, output::columns(stdout()))))?;
        }
        if let Some(folder) = &args.output {
            keep(folder, &shown)?;
        }
        all.push(shown);
    }
    match args.format {
        Format::Table => {}
        Format::Csv => output::data(&tables::csv(&all))?,
        Format::Json => output::data(&tables::json(&all))?,
    }
    Ok(exit(&all, interrupted.load(Ordering::Relaxed)))
}

fn measure_table(
    table: Table,
    plan: &Plan,
    interrupted: &AtomicBool,
    (number, count): (usize, usize),
) -> Result<Shown, Failure> {
    let interface = match plan.link(&table) {
        Some(_) => VirtualLink::INTERFACE.to_owned(),
        None => plan.link.to_string(),
    };
    let environment = host::environment(&interface);
    let differences = tables::differences(&table, plan, &environment);
    output::talk(&format!("[{number}/{count}] {}", table.name));
    let mut on_row = |row: &tables::OurRow| {
        let how = match (&row.trouble, &row.figures) {
            (Some(trouble), _) => trouble.clone(),
            (None, Some(_)) => "measured".to_owned(),
            (None, None) => "no figures".to_owned(),
        };
        output::talk(&format!("  {} bytes: {how}", row.published.size));
    };
    let command = plan.command(&table);
    let ours = tables::measure(&table, plan, interrupted, &mut on_row).map_err(Failure::environment)?;
    Ok(Shown { table, ours, differences, command, date: environment.date })
}

/// The files of a table.
fn keep(folder: &Path, shown: &Shown) -> Result<(), Failure> {
    let all = std::slice::from_ref(shown);
    for (extension, text) in
        [("txt", tables::table_text(shown, None)), ("csv", tables::csv(all)), ("json", tables::json(all))]
    {
        output::file(&folder.join(format!("{}.{extension}", shown.table.name)), &text)?;
    }
    Ok(())
}

fn plan(args: &PublishedRunArgs) -> Result<Plan, Failure> {
    let cpus = setup::cpus(args.cpus)?;
    if let LinkChoice::Interface(name) = &args.link {
        host::interface_address(name).map_err(Failure::usage)?;
    }
    Ok(Plan {
        link: args.link.clone(),
        exec: args.exec,
        sizes: args.sizes.clone(),
        cpus,
        wait: args.wait,
        is_small: args.profile == Profile::Small,
        domain: args.domain,
    })
}

fn exit(all: &[Shown], is_interrupted: bool) -> Exit {
    let mut rows = all.iter().flat_map(|shown| shown.ours.iter().map(|row| (row, shown.table.reliable)));
    if is_interrupted {
        return Exit::Interrupted;
    }
    if rows.clone().any(|(row, is_reliable)| row.is_lossy && is_reliable) {
        return Exit::DataLost;
    }
    if rows.any(|(row, _)| row.trouble.is_some()) { Exit::Environment } else { Exit::Success }
}
