//! Tables as CSV files.

use std::io::{self, Write};

use super::{ExportKind, ExportTable};

/// Writes the tables of several runs to one CSV file (RFC 4180, but with line feeds). Missing values are empty.
#[derive(Debug)]
pub struct ExportWriter<W: Write>(::csv::Writer<W>);

impl<W: Write> ExportWriter<W> {
    /// Starts a file with its header.
    ///
    /// # Errors
    /// If `file` does not take it.
    pub fn new(file: W, kind: ExportKind) -> io::Result<Self> {
        let mut writer = ::csv::Writer::from_writer(file);
        writer.write_record(ExportTable::columns_of(kind).iter().map(|it| &it.name)).map_err(io_error)?;
        Ok(Self(writer))
    }

    /// Appends the rows of a run.
    ///
    /// # Errors
    /// If the file does not take them.
    pub fn append(&mut self, table: &ExportTable) -> io::Result<()> {
        for row in 0..table.rows() {
            let record = table.columns().iter().map(|(_, values)| values.text(row));
            self.0.write_record(record).map_err(io_error)?;
        }
        Ok(())
    }

    /// Ends the file and returns it.
    ///
    /// # Errors
    /// If the file does not take the rest.
    pub fn finish(self) -> io::Result<W> {
        self.0.into_inner().map_err(::csv::IntoInnerError::into_error)
    }
}

fn io_error(error: ::csv::Error) -> io::Error {
    match error.into_kind() {
        ::csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
