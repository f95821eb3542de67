//! `weir export`: results as flat tables.

mod parquet;

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use weir_report::{ExportKind, ExportTable, ExportWriter, NamedRun};

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
    let partial = partial(&args.output);
    let written = write(&partial, format, kind, &found).and_then(|rows| {
        fs::rename(&partial, &args.output)?;
        Ok(rows)
    });
    let rows = written.map_err(|error| {
        _ = fs::remove_file(&partial);
        let path = args.output.display();
        Failure::environment(anyhow!("cannot write {path}: {error}; choose another file with --output"))
    })?;
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

/// The name of the file until it is complete.
fn partial(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".partial-{}", std::process::id()));
    name.into()
}

/// Writes all rows, and returns how many.
fn write(path: &Path, format: FileFormat, kind: ExportKind, runs: &[FoundRun]) -> io::Result<usize> {
    let mut writer = TableFile::new(BufWriter::new(File::create(path)?), format, kind)?;
    let mut rows = 0;
    for FoundRun { name, run } in runs {
        let (table, damaged) = ExportTable::new(&NamedRun { name, run, published: &[] }, kind);
        if damaged > 0 {
            output::talk(&format!("weir: {name}: {damaged} damaged histograms left out"));
        }
        writer.append(&table)?;
        rows += table.rows();
    }
    // The error of a last write must not be lost.
    let file = writer.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.sync_all()?;
    Ok(rows)
}

/// A file that is being written.
enum TableFile {
    Csv(Box<ExportWriter<BufWriter<File>>>),
    Parquet(Box<ParquetFile<BufWriter<File>>>),
}

impl TableFile {
    fn new(file: BufWriter<File>, format: FileFormat, kind: ExportKind) -> io::Result<Self> {
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

    fn finish(self) -> io::Result<BufWriter<File>> {
        match self {
            Self::Csv(file) => file.finish(),
            Self::Parquet(file) => file.finish(),
        }
    }
}

/// Creates a file that must not exist.
pub(crate) fn create_new(path: &Path, text: &str) -> Result<(), Failure> {
    use std::io::Write as _;
    let write = || File::create_new(path)?.write_all(text.as_bytes());
    write()
        .with_context(|| format!("cannot write {}: choose another file with --output", path.display()))
        .map_err(Failure::environment)
}
