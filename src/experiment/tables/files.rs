//! One table on disk.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use polars::prelude::{
    Column, CsvReadOptions, CsvWriter, DataFrame, DataType, IntoColumn, NewChunkedArray,
    ParquetWriter, PolarsError, SerReader, SerWriter, StringChunked,
};

use super::{FileError, TablesError};
use crate::atomic;
use crate::experiment::rows::{ColumnKind, ColumnSpec, Row, Text, Values};
use crate::parquet;

/// The Parquet file of a table.
pub(super) fn path_of<R: Row>(folder: &Path) -> PathBuf {
    folder.join(R::TABLE).with_extension("parquet")
}

/// Writes a table that not every run has; without rows there are no files of it.
pub(super) fn write_if_any<R: Row>(folder: &Path, rows: &[R]) -> Result<(), TablesError> {
    if !rows.is_empty() {
        return write(folder, rows);
    }
    let parquet = path_of::<R>(folder);
    for path in [parquet.with_extension("csv"), parquet] {
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(TablesError::file("remove", &path)(source));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The rows of a table that not every run has.
pub(super) fn read_if_there<R: Row>(folder: &Path) -> Result<Vec<R>, TablesError> {
    if path_of::<R>(folder).exists() {
        read_parquet(folder)
    } else {
        Ok(Vec::new())
    }
}

/// The rows as a data frame with the columns of [`Row::COLUMNS`].
fn to_frame<R: Row>(rows: &[R]) -> Result<DataFrame, PolarsError> {
    let columns = R::COLUMNS
        .iter()
        .zip(R::to_columns(rows))
        .map(|(column, values)| match values {
            Values::Text(entries) => {
                let entries = entries.iter().map(Text::as_ref);
                StringChunked::from_iter_values(column.name.into(), entries).into_column()
            }
            Values::Count(entries) => Column::new(column.name.into(), entries),
            Values::Real(entries) => Column::new(column.name.into(), entries),
        })
        .collect();
    DataFrame::new(rows.len(), columns)
}

fn column_values(frame: &DataFrame, column: &ColumnSpec) -> Result<Values, PolarsError> {
    // Columns that may be null, of a folder from before there were any.
    if column.nullable && frame.column(column.name).is_err() {
        let height = frame.height();
        return Ok(match column.kind {
            ColumnKind::Text => Values::Text(vec![Text::default(); height]),
            ColumnKind::Count => Values::Count(vec![None; height]),
            ColumnKind::Real => Values::Real(vec![None; height]),
        });
    }
    let entries = frame.column(column.name)?.as_materialized_series();
    Ok(match column.kind {
        // A null text is read as an empty one: no text column may be null.
        ColumnKind::Text => {
            // Rows of one cell stand together: most texts are that of the row above, and share its
            // memory.
            let mut last = Text::default();
            let mut shared = |entry: Option<&str>| {
                let entry = entry.unwrap_or_default();
                if *last != *entry {
                    last = Text::from(entry);
                }
                last.clone()
            };
            Values::Text(entries.str()?.iter().map(&mut shared).collect())
        }
        ColumnKind::Count => Values::Count(entries.u64()?.iter().collect()),
        ColumnKind::Real => Values::Real(entries.f64()?.iter().collect()),
    })
}

/// So many rows become columns at a time, or columns rows: a group of rows of the Parquet file. Of
/// a long sweep a table has tens of millions, whose columns beside them would more than double the
/// memory.
const AT_A_TIME: usize = 1 << 18;

pub(super) fn write<R: Row>(folder: &Path, rows: &[R]) -> Result<(), TablesError> {
    let parquet = path_of::<R>(folder);
    let csv = parquet.with_extension("csv");
    let empty = to_frame::<R>(&[]).map_err(TablesError::file("write", &parquet))?;
    let schema = empty.schema();
    // The two writers have no trait in common.
    macro_rules! write {
        ($writer:ident to $path:expr) => {
            atomic::write::<FileError>($path, |file| {
                let mut writer = $writer::new(file).batched(schema)?;
                for frame in rows.chunks(AT_A_TIME).map(to_frame) {
                    writer.write_batch(&frame?)?;
                }
                writer.finish()?;
                Ok(())
            })
            .map_err(TablesError::file("write", $path))
        };
    }
    write!(ParquetWriter to &parquet)?;
    write!(CsvWriter to &csv)
}

pub(super) fn read_parquet<R: Row>(folder: &Path) -> Result<Vec<R>, TablesError> {
    read_parts(folder, AT_A_TIME)
}

pub(super) fn read_parts<R: Row>(folder: &Path, at_a_time: usize) -> Result<Vec<R>, TablesError> {
    let path = path_of::<R>(folder);
    // Whether it can be opened is told apart from what is in it.
    File::open(&path).map_err(TablesError::file("read", &path))?;
    let parts = parquet::parts(&path, at_a_time).map_err(TablesError::file("read", &path))?;
    let mut rows = Vec::new();
    for part in parts {
        let part = part.map_err(TablesError::file("read", &path))?;
        rows.extend(rows_of(&path, &part, rows.len())?);
    }
    Ok(rows)
}

/// The rows of a table of which the CSV file alone was kept.
pub(super) fn read_csv<R: Row>(path: &Path) -> Result<Vec<R>, TablesError> {
    let file = File::open(path).map_err(TablesError::file("read", path))?;
    // Without looking at values every column is text.
    let options = CsvReadOptions::default().with_infer_schema_length(Some(0));
    let typed = |mut frame: DataFrame| {
        for column in R::COLUMNS {
            let kind = match column.kind {
                ColumnKind::Text => continue,
                ColumnKind::Count => DataType::UInt64,
                ColumnKind::Real => DataType::Float64,
            };
            if let Ok(text) = frame.column(column.name) {
                // Strictly: another cast would read what is no number as null.
                let numbers = text.strict_cast(&kind)?;
                frame.with_column(numbers)?;
            }
        }
        Ok(frame)
    };
    let frame = options.into_reader_with_file_handle(file).finish();
    let frame = frame.and_then(typed);
    rows_of(path, &frame.map_err(TablesError::file("read", path))?, 0)
}

/// The rows in a frame, which has so many `before` it in its file.
fn rows_of<R: Row>(path: &Path, frame: &DataFrame, before: usize) -> Result<Vec<R>, TablesError> {
    let columns = R::COLUMNS.iter();
    let columns = columns.map(|column| column_values(frame, column));
    let columns: Result<Vec<Values>, _> = columns.collect();
    let columns = columns.map_err(TablesError::file("read", path))?;
    R::from_columns(&columns).map_err(|source| TablesError::Rows {
        path: path.to_owned(),
        source: source.after(before),
    })
}
