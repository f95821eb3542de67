//! Tables as Parquet files, by the column writers of the `parquet` crate.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};
use weir_report::{ExportColumn, ExportKind, ExportTable, ExportType, ExportValues as Values};

/// The most rows of a row group.
const ROWS_MAX: usize = 1 << 20;

/// A Parquet file that is being written, compressed with Snappy. All columns are optional.
pub(super) struct ParquetFile<W: Write + Send>(SerializedFileWriter<W>);

impl<W: Write + Send> ParquetFile<W> {
    pub(super) fn new(file: W, kind: ExportKind) -> io::Result<Self> {
        let columns = ExportTable::columns_of(kind);
        let fields = columns.iter().map(field).collect::<Result<Vec<TypePtr>, _>>().map_err(error)?;
        let schema = Type::group_type_builder("weir").with_fields(fields).build().map_err(error)?;
        let created_by = concat!("weir version ", env!("CARGO_PKG_VERSION")).to_owned();
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(created_by)
            .build();
        let writer =
            SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties)).map_err(error)?;
        Ok(Self(writer))
    }

    pub(super) fn append(&mut self, table: &ExportTable) -> io::Result<()> {
        for start in (0..table.rows()).step_by(ROWS_MAX) {
            let rows = start..table.rows().min(start + ROWS_MAX);
            self.append_rows(table, &rows).map_err(error)?;
        }
        Ok(())
    }

    pub(super) fn finish(self) -> io::Result<W> {
        self.0.into_inner().map_err(error)
    }

    fn append_rows(&mut self, table: &ExportTable, rows: &Range<usize>) -> Result<(), ParquetError> {
        let mut group = self.0.next_row_group()?;
        for (_, values) in table.columns() {
            let Some(column) = group.next_column()? else { break };
            write_column(column, values, rows.clone())?;
        }
        group.close()?;
        Ok(())
    }
}

fn field(column: &ExportColumn) -> Result<TypePtr, ParquetError> {
    let (physical, logical) = match column.kind {
        ExportType::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        ExportType::Integer => (PhysicalType::INT64, Some(LogicalType::integer(64, false))),
        ExportType::Float => (PhysicalType::DOUBLE, None),
        ExportType::Boolean => (PhysicalType::BOOLEAN, None),
    };
    let field = Type::primitive_type_builder(&column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build()?;
    Ok(Arc::new(field))
}

fn write_column(
    column: SerializedColumnWriter<'_>,
    values: &Values,
    rows: Range<usize>,
) -> Result<(), ParquetError> {
    match values {
        Values::Text(values) => {
            write::<ByteArrayType, _>(column, &values[rows], |text| ByteArray::from(text.as_bytes().to_vec()))
        }
        // The annotation of the column says that all 64 bits are the number.
        Values::Integer(values) => write::<Int64Type, _>(column, &values[rows], |count| *count as i64),
        Values::Float(values) => write::<DoubleType, _>(column, &values[rows], |figure| *figure),
        Values::Boolean(values) => write::<BoolType, _>(column, &values[rows], |flag| *flag),
    }
}

/// Writes the values that are there, and for each row whether it has one.
fn write<T: DataType, V>(
    mut column: SerializedColumnWriter<'_>,
    values: &[Option<V>],
    convert: impl Fn(&V) -> T::T,
) -> Result<(), ParquetError> {
    let present: Vec<T::T> = values.iter().flatten().map(convert).collect();
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    column.typed::<T>().write_batch(&present, Some(&levels), None)?;
    column.close()
}

fn error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(cause) => cause.downcast().map_or_else(io::Error::other, |cause| *cause),
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    use weir_report::NamedRun;
    use weir_results::{
        Case, CaseSeries, Environment, LatencyKind, LatencyRecorder, Reliability, Run, Test,
        ThroughputSummary,
    };

    use super::*;

    fn run() -> Run {
        let mut recorder = LatencyRecorder::new();
        (1..=1_000_u64).for_each(|n| recorder.record(n * 1_000));
        let latency = Case::new("weir", Test::Latency, Reliability::Reliable, 32).with(|it| {
            it.figures.latency_us = Some(recorder.summary(LatencyKind::HalfRtt));
            it.figures.histogram = recorder.histogram(LatencyKind::HalfRtt);
            it.figures.series = Some(CaseSeries {
                step_ms: 1_000.0,
                received: vec![600, 400],
                missing: vec![0, 3],
                p50_us: vec![Some(250.5), None],
                ..CaseSeries::default()
            });
        });
        let throughput = Case::new("udp", Test::Throughput, Reliability::None, 8192).with(|it| {
            let summary = ThroughputSummary { samples_per_s: 123.25, lost: u64::MAX, ..Default::default() };
            it.figures.throughput = Some(summary);
            it.conditions.path = Some("tun,\"rate\"=1M\nline".into());
            it.point.keyed = true;
        });
        let environment = Environment { hostname: Some("größe".into()), ..Environment::default() };
        Run { cases: vec![latency, throughput], ..Run::new(environment) }
    }

    fn text(field: &Field) -> String {
        match field {
            Field::Null => String::new(),
            Field::Str(text) => text.clone(),
            Field::ULong(count) => count.to_string(),
            Field::Double(figure) => figure.to_string(),
            Field::Bool(flag) => flag.to_string(),
            other => panic!("unexpected {other:?}"),
        }
    }

    #[test]
    fn files_read_back_as_what_was_written() {
        let run = run();
        for kind in [ExportKind::Cases, ExportKind::Series, ExportKind::Histogram] {
            let (table, _) =
                ExportTable::new(&NamedRun { name: "one", run: &run, published: &[] }, "1", kind);
            let mut file = ParquetFile::new(Vec::new(), kind).unwrap();
            file.append(&table).unwrap();
            file.append(&table).unwrap();
            let reader = SerializedFileReader::new(bytes::Bytes::from(file.finish().unwrap())).unwrap();
            assert_eq!(reader.metadata().num_row_groups(), 2);
            let read: Vec<Vec<(String, String)>> = reader
                .get_row_iter(None)
                .unwrap()
                .map(|row| {
                    row.unwrap().get_column_iter().map(|(name, it)| (name.clone(), text(it))).collect()
                })
                .collect();
            let row = |row: usize| -> Vec<(String, String)> {
                table
                    .columns()
                    .iter()
                    .map(|(column, values)| (column.name.clone(), values.text(row)))
                    .collect()
            };
            let expected: Vec<_> = (0..table.rows()).chain(0..table.rows()).map(row).collect();
            assert!(expected.len() >= 4);
            assert_eq!(read, expected);
        }
    }

    #[test]
    fn a_file_that_does_not_take_more_is_an_error_of_writing() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::Error::new(io::ErrorKind::StorageFull, "no room"))
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let ended = ParquetFile::new(Full, ExportKind::Cases).and_then(ParquetFile::finish).map(|_| ());
        assert!(ended.unwrap_err().to_string().contains("no room"));
    }
}
