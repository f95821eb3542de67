//! `weir export`: results as flat tables.

mod parquet;

use std::io::{self, BufWriter};
use std::path::Path;

use anyhow::anyhow;
use weir_report::{ExportKind, ExportTable, ExportWriter, NamedRun};
use weir_results::WholeFile;

use crate::args::ExportArgs;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::runs::{self, Finder, FoundRun};
use parquet::ParquetFile;

pub(crate) fn run(args: &ExportArgs) -> Result<Exit, Failure> {
    let format = FileFormat::of(&args.output)?;
    let kind = match (args.series, args.histogram) {
        (true, _) => ExportKind::Series,
        (_, true) => ExportKind::Histogram,
        _ => ExportKind::Cases,
    };
    let mut found = Finder::new(&args.results).load(&args.runs)?;
    if let Some(mut redactor) = runs::redactor(&args.redact) {
        runs::redact(&mut redactor, &mut found)?;
    }
    let rows = output::whole(&args.output, |file| write(file, format, kind, &found))?;
    let path = args.output.display();
    if rows == 0 {
        let missing = match kind {
            ExportKind::Cases => "cases",
            ExportKind::Series => "series by the second",
            ExportKind::Histogram => "latency histograms",
        };
        output::talk(&format!("weir: the results have no {missing}: {path} has no rows"));
    }
    output::talk(&format!("export: {path}, {rows} rows"));
    Ok(Exit::Success)
}

#[derive(Clone, Copy)]
enum FileFormat {
    Csv,
    Parquet,
}

impl FileFormat {
    fn of(path: &Path) -> Result<Self, Failure> {
        let extension = path.extension().map(|it| it.to_string_lossy().to_ascii_lowercase());
        match extension.as_deref() {
            Some("csv") => Ok(Self::Csv),
            Some("parquet") => Ok(Self::Parquet),
            _ => Err(Failure::usage(anyhow!(
                "--output {}: end the name of the file in .csv or .parquet",
                path.display()
            ))),
        }
    }
}

/// Writes all rows, and returns how many.
fn write(
    file: &mut BufWriter<WholeFile>,
    format: FileFormat,
    kind: ExportKind,
    runs: &[FoundRun],
) -> io::Result<usize> {
    let mut writer = TableFile::new(file, format, kind)?;
    let mut rows = 0;
    for FoundRun { name, run, id } in runs {
        let (table, damaged) = ExportTable::new(&NamedRun { name, run, published: &[] }, id, kind);
        if damaged > 0 {
            output::talk(&format!("weir: {name}: {damaged} damaged histograms left out"));
        }
        writer.append(&table)?;
        rows += table.rows();
    }
    writer.finish()?;
    Ok(rows)
}

/// A file that is being written.
enum TableFile<'a> {
    Csv(Box<ExportWriter<&'a mut BufWriter<WholeFile>>>),
    Parquet(Box<ParquetFile<&'a mut BufWriter<WholeFile>>>),
}

impl<'a> TableFile<'a> {
    fn new(file: &'a mut BufWriter<WholeFile>, format: FileFormat, kind: ExportKind) -> io::Result<Self> {
        Ok(match format {
            FileFormat::Csv => Self::Csv(Box::new(ExportWriter::new(file, kind)?)),
            FileFormat::Parquet => Self::Parquet(Box::new(ParquetFile::new(file, kind)?)),
        })
    }

    fn append(&mut self, table: &ExportTable) -> io::Result<()> {
        match self {
            Self::Csv(file) => file.append(table),
            Self::Parquet(file) => file.append(table),
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::Csv(file) => file.finish().map(drop),
            Self::Parquet(file) => file.finish().map(drop),
        }
    }
}
