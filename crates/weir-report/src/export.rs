//! Runs as flat tables for spreadsheets, data frames and databases.
//!
//! - `cases`, `series`, `histogram`: the columns and rows of each kind of table
//! - `writer`: CSV files; Parquet files are the business of weir-cli

mod cases;
mod histogram;
mod series;
mod writer;

pub use writer::ExportWriter;

use std::rc::Rc;

use weir_results::{Case, Run};

use crate::html::NamedRun;

/// What a row of an export is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportKind {
    /// A case.
    Cases,
    /// A second of a case, or a wider step of a long one.
    Series,
    /// A bucket of a case's latency histogram.
    Histogram,
}

/// A column of an export. Names end in their unit, and stay the same from version to version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportColumn {
    /// The name, e.g. `p99_us`.
    pub name: String,
    /// The type of its values, each of which may be missing.
    pub kind: ExportType,
}

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportType {
    /// UTF-8.
    Text,
    /// Counts and sizes: 64 bits, unsigned.
    Integer,
    /// 64 bits.
    Float,
    /// `true` or `false`.
    Boolean,
}

/// The rows of one run, column by column.
#[derive(Debug, Clone, PartialEq)]
pub struct ExportTable {
    columns: Vec<(ExportColumn, ExportValues)>,
}

/// The values of a column; `None`: missing.
#[derive(Debug, Clone, PartialEq)]
pub enum ExportValues {
    /// Of [`ExportType::Text`].
    Text(Vec<Option<Rc<str>>>),
    /// Of [`ExportType::Integer`].
    Integer(Vec<Option<u64>>),
    /// Of [`ExportType::Float`], finite.
    Float(Vec<Option<f64>>),
    /// Of [`ExportType::Boolean`].
    Boolean(Vec<Option<bool>>),
}

impl ExportTable {
    /// Returns the rows of a run, which `run_id` distinguishes from others of the same name. A case without a series or
    /// histogram has no rows of that kind.
    ///
    /// The second figure is the number of histograms that cannot be decoded, and are left out.
    #[must_use]
    pub fn new(run: &NamedRun<'_>, run_id: &str, kind: ExportKind) -> (Self, usize) {
        let (mut table, damaged) = match kind {
            ExportKind::Cases => (cases::table(run), 0),
            ExportKind::Series => (series::table(run), 0),
            ExportKind::Histogram => histogram::table(run),
        };
        let id: Rc<str> = run_id.into();
        let column = ExportColumn { name: "run_id".to_owned(), kind: ExportType::Text };
        table.columns.push((column, ExportValues::Text(vec![Some(id); table.rows()])));
        (table, damaged)
    }

    /// Returns the columns of a kind of export, in order.
    #[must_use]
    pub fn columns_of(kind: ExportKind) -> Vec<ExportColumn> {
        let run = Run::new(weir_results::Environment::default());
        let (table, _) = Self::new(&NamedRun { name: "", run: &run, published: &[] }, "", kind);
        table.columns.into_iter().map(|(column, _)| column).collect()
    }

    /// Returns the columns with their values, all of the same length.
    #[must_use]
    pub fn columns(&self) -> &[(ExportColumn, ExportValues)] {
        &self.columns
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, values)| values.len())
    }

    fn empty(columns: impl IntoIterator<Item = (String, ExportType)>) -> Self {
        let column = |(name, kind)| (ExportColumn { name, kind }, ExportValues::empty(kind));
        Self { columns: columns.into_iter().map(column).collect() }
    }

    /// Appends a row, whose cells are in the order of the columns.
    fn push(&mut self, row: impl IntoIterator<Item = Cell>) {
        for ((_, values), cell) in self.columns.iter_mut().zip(row) {
            values.push(cell);
        }
        debug_assert!(self.columns.iter().all(|(_, values)| values.len() == self.rows()));
    }
}

impl ExportType {
    /// The name in the documentation.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Integer => "integer",
            Self::Float => "float",
            Self::Boolean => "boolean",
        }
    }
}

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
enum Cell {
    Missing,
    Text(Rc<str>),
    Integer(u64),
    Float(f64),
    Boolean(bool),
}

impl ExportValues {
    const fn empty(kind: ExportType) -> Self {
        match kind {
            ExportType::Text => Self::Text(Vec::new()),
            ExportType::Integer => Self::Integer(Vec::new()),
            ExportType::Float => Self::Float(Vec::new()),
            ExportType::Boolean => Self::Boolean(Vec::new()),
        }
    }

    /// Returns the number of rows.
    #[must_use]
    fn len(&self) -> usize {
        match self {
            Self::Text(values) => values.len(),
            Self::Integer(values) => values.len(),
            Self::Float(values) => values.len(),
            Self::Boolean(values) => values.len(),
        }
    }

    /// Appends a value. One of another type is missing; infinite and undefined figures are, too.
    fn push(&mut self, cell: Cell) {
        match (self, cell) {
            (Self::Text(values), Cell::Text(text)) => values.push(Some(text)),
            (Self::Integer(values), Cell::Integer(count)) => values.push(Some(count)),
            (Self::Float(values), Cell::Float(figure)) => {
                values.push(Some(figure).filter(|it| it.is_finite()))
            }
            (Self::Float(values), Cell::Integer(count)) => values.push(Some(count as f64)),
            (Self::Boolean(values), Cell::Boolean(flag)) => values.push(Some(flag)),
            (Self::Text(values), _) => values.push(None),
            (Self::Integer(values), _) => values.push(None),
            (Self::Float(values), _) => values.push(None),
            (Self::Boolean(values), _) => values.push(None),
        }
    }

    /// Returns a value as a CSV file has it; empty if it is missing.
    #[must_use]
    pub fn text(&self, row: usize) -> String {
        let shown = match self {
            Self::Text(values) => values[row].as_ref().map(ToString::to_string),
            Self::Integer(values) => values[row].map(|it| it.to_string()),
            Self::Float(values) => values[row].map(|it| it.to_string()),
            Self::Boolean(values) => values[row].map(|it| it.to_string()),
        };
        shown.unwrap_or_default()
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<u64> for Cell {
    fn from(count: u64) -> Self {
        Self::Integer(count)
    }
}

impl From<f64> for Cell {
    fn from(figure: f64) -> Self {
        Self::Float(figure)
    }
}

impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Missing, Into::into)
    }
}

/// The columns that lead each row of a series or histogram, to join it with its case.
const KEYS: [(&str, ExportType); 8] = [
    ("run", ExportType::Text),
    ("case", ExportType::Integer),
    ("engine", ExportType::Text),
    ("test", ExportType::Text),
    ("reliability", ExportType::Text),
    ("size_bytes", ExportType::Integer),
    ("path", ExportType::Text),
    ("repeat", ExportType::Integer),
];

/// Returns the values of [`KEYS`]; `number` is that of the case in its run, from 1.
fn keys(run: &str, number: u64, case: &Case) -> [Cell; 8] {
    [
        run.into(),
        number.into(),
        case.point.engine.as_str().into(),
        case.point.test.name().into(),
        case.point.reliability.name().into(),
        case.point.size_bytes.into(),
        case.conditions.path.as_deref().into(),
        u64::from(case.conditions.repeat).into(),
    ]
}

/// Returns the columns of a table with [`KEYS`] in front.
fn with_keys(columns: &[(&str, ExportType)]) -> Vec<(String, ExportType)> {
    KEYS.iter().chain(columns).map(|(name, kind)| ((*name).to_owned(), *kind)).collect()
}

#[cfg(test)]
mod tests;
