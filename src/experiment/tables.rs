//! The result tables of a folder: rows in memory, Parquet and CSV on disk.

use std::fs::File;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

use polars::prelude::{
    Column, CsvWriter, DataFrame, IntoColumn, NewChunkedArray, ParquetReader, ParquetWriter,
    PolarsError, SerReader, SerWriter, StringChunked,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use thiserror::Error;

use super::atomic;
use super::claims::judge;
use super::manifest::{MANIFEST, judged_by, table_hashes, write_manifest};
use super::rows::{
    ClaimRow, ColumnKind, ColumnSpec, DecisionRow, EpochRow, Row, RowError, RunRow, Text,
    TimelineRow, TrafficRow, Values,
};
use super::verify::records;

/// Everything a result folder says in numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tables {
    /// One row per cell and seed.
    pub runs: Vec<RunRow>,
    /// One row per cell, seed and epoch.
    pub epochs: Vec<EpochRow>,
    /// One row per cell, seed, epoch, layer, direction and kind.
    pub traffic: Vec<TrafficRow>,
    /// One row per claim.
    pub claims: Vec<ClaimRow>,
    /// One row per span of a worker's time; empty unless the runs were traced.
    pub timeline: Vec<TimelineRow>,
    /// One row per decision of a training; empty unless one decided.
    #[serde(default)]
    pub decisions: Vec<DecisionRow>,
}

/// Why tables could not be written or read.
#[derive(Debug, Error)]
pub enum TablesError {
    /// The file system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// `read`, `write` or `remove`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Its error.
        source: io::Error,
    },
    /// A file is not a table, or lacks a column.
    #[error("cannot {action} {}: {source}", path.display())]
    Format {
        /// `read` or `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the table library says.
        source: PolarsError,
    },
    /// The manifest does not say how claims are judged.
    #[error("manifest.json: {0}")]
    Manifest(String),
    /// A table's columns do not make up its rows.
    #[error("cannot read {}: {source}; it was not written by this version of the program", path.display())]
    Rows {
        /// The file.
        path: PathBuf,
        /// What is amiss.
        source: RowError,
    },
}

impl Tables {
    /// Adds the rows of other runs below.
    pub fn append(&mut self, mut more: Self) {
        self.runs.append(&mut more.runs);
        self.epochs.append(&mut more.epochs);
        self.traffic.append(&mut more.traffic);
        self.claims.append(&mut more.claims);
        self.timeline.append(&mut more.timeline);
        self.decisions.append(&mut more.decisions);
    }

    /// Writes `<table>.parquet` and `<table>.csv` for all tables into `folder`, each file atomically. Of a table
    /// that not every run has there are no files then, and those of an earlier run are removed.
    ///
    /// # Errors
    /// A file cannot be written; finished files stay, and what they replaced is never half-written.
    pub fn write(&self, folder: &Path) -> Result<(), TablesError> {
        write_table(folder, &self.runs)?;
        write_table(folder, &self.epochs)?;
        write_table(folder, &self.traffic)?;
        write_table(folder, &self.claims)?;
        write_if_any(folder, &self.timeline)?;
        write_if_any(folder, &self.decisions)
    }

    /// The table of runs alone, from its Parquet file or, where that was not kept, from its CSV file.
    ///
    /// # Errors
    /// Neither is there, or it is no table of runs.
    pub fn read_runs(folder: &Path) -> Result<Vec<RunRow>, TablesError> {
        let path = path_of::<RunRow>(folder).with_extension("csv");
        if path.with_extension("parquet").exists() || !path.exists() {
            return read_table(folder);
        }
        let text = std::fs::read_to_string(&path).map_err(|source| TablesError::Io {
            action: "read",
            path: path.clone(),
            source,
        })?;
        rows_of(&text).map_err(|source| TablesError::Rows { path, source })
    }

    /// Names of the tables' files in `folder`.
    pub(super) fn files(folder: &Path) -> Vec<String> {
        let tables = [
            RunRow::TABLE,
            EpochRow::TABLE,
            TrafficRow::TABLE,
            ClaimRow::TABLE,
            TimelineRow::TABLE,
            DecisionRow::TABLE,
        ];
        let files = tables
            .iter()
            .flat_map(|table| ["parquet", "csv"].map(|extension| format!("{table}.{extension}")));
        files.filter(|file| folder.join(file).exists()).collect()
    }

    /// Judges an experiment's claims again, by the statistics its manifest names, and writes their table and its hashes in the
    /// manifest. What did not finish decides nothing.
    ///
    /// # Errors
    /// The manifest's claims or statistics make no sense, or a file cannot be written.
    pub fn judge_again(&mut self, folder: &Path, manifest: &mut Value) -> Result<(), TablesError> {
        let (claims, statistics) = judged_by(manifest).map_err(TablesError::Manifest)?;
        self.claims = judge(&claims, &self.runs, &statistics);
        if manifest["finished"].is_null() {
            for claim in &mut self.claims {
                ClaimRow::INCONCLUSIVE.clone_into(&mut claim.verdict);
            }
        }
        write_table(folder, &self.claims)?;
        let failed = |source| TablesError::Io {
            action: "write",
            path: folder.join(MANIFEST),
            source,
        };
        // Those of the other tables stay as they were written.
        let hashes = table_hashes(folder).map_err(failed)?;
        for extension in ["parquet", "csv"] {
            let file = format!("{}.{extension}", ClaimRow::TABLE);
            manifest["tables"][&file] = json!(hashes.get(&file));
        }
        write_manifest(folder, manifest).map_err(failed)
    }

    /// Reads the Parquet files of `folder`; those of tables that not every run has if they are there.
    ///
    /// # Errors
    /// A file is missing, is no Parquet, lacks a column or holds values of another type.
    pub fn read(folder: &Path) -> Result<Self, TablesError> {
        Ok(Self {
            runs: read_table(folder)?,
            epochs: read_table(folder)?,
            traffic: read_table(folder)?,
            claims: read_table(folder)?,
            timeline: read_if_there(folder)?,
            decisions: read_if_there(folder)?,
        })
    }
}

/// Writes a table that not every run has; without rows there are no files of it.
fn write_if_any<R: Row>(folder: &Path, rows: &[R]) -> Result<(), TablesError> {
    if rows.is_empty() {
        return remove_table::<R>(folder);
    }
    write_table(folder, rows)
}

/// The rows of a table that not every run has.
fn read_if_there<R: Row>(folder: &Path) -> Result<Vec<R>, TablesError> {
    if path_of::<R>(folder).exists() {
        read_table(folder)
    } else {
        Ok(Vec::new())
    }
}

/// The Parquet file of a table.
fn path_of<R: Row>(folder: &Path) -> PathBuf {
    folder.join(R::TABLE).with_extension("parquet")
}

fn remove_table<R: Row>(folder: &Path) -> Result<(), TablesError> {
    let parquet = path_of::<R>(folder);
    for path in [parquet.with_extension("csv"), parquet] {
        match std::fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                let action = "remove";
                return Err(TablesError::Io {
                    action,
                    path,
                    source,
                });
            }
            _ => {}
        }
    }
    Ok(())
}

/// The rows as a data frame with the columns of [`Row::COLUMNS`].
///
/// # Errors
/// None with rows of this crate; the table library's, should it find columns of unequal length.
pub fn to_frame<R: Row>(rows: &[R]) -> Result<DataFrame, PolarsError> {
    let columns = R::COLUMNS
        .iter()
        .zip(R::to_columns(rows))
        .map(|(column, values)| match values {
            Values::Text(cells) => {
                let cells = cells.iter().map(Text::as_str);
                StringChunked::from_iter_values(column.name.into(), cells).into_column()
            }
            Values::Count(cells) => Column::new(column.name.into(), cells),
            Values::Real(cells) => Column::new(column.name.into(), cells),
        })
        .collect();
    DataFrame::new(rows.len(), columns)
}

fn column_values(frame: &DataFrame, column: &ColumnSpec) -> Result<Values, PolarsError> {
    // Columns that may be null, of a folder from before there were any.
    if column.nullable && frame.column(column.name).is_err() {
        return Ok(match column.kind {
            ColumnKind::Count => Values::Count(vec![None; frame.height()]),
            _ => Values::Real(vec![None; frame.height()]),
        });
    }
    let cells = frame.column(column.name)?.as_materialized_series();
    Ok(match column.kind {
        // A null text is read as an empty one: no text column may be null.
        ColumnKind::Text => {
            let mut last = Text::default();
            let mut shared = |cell: Option<&str>| {
                let cell = cell.unwrap_or_default();
                if last != *cell {
                    last = Text::from(cell);
                }
                last.clone()
            };
            Values::Text(cells.str()?.iter().map(&mut shared).collect())
        }
        ColumnKind::Count => Values::Count(cells.u64()?.iter().collect()),
        ColumnKind::Real => Values::Real(cells.f64()?.iter().collect()),
    })
}

/// Rows from the text of a CSV file; a column that is not there is null; without any of them it is no such table.
fn rows_of<R: Row>(text: &str) -> Result<Vec<R>, RowError> {
    let mut records = records(text).into_iter();
    let header = records.next().unwrap_or_default();
    let records: Vec<Vec<String>> = records.collect();
    let known = |column: &ColumnSpec| header.iter().any(|name| name == column.name);
    let foreign = !R::COLUMNS.iter().any(known);
    let columns = R::COLUMNS.iter().map(|column| {
        let place = header.iter().position(|name| name == column.name);
        if foreign {
            return Err(RowError::Length {
                column: column.name,
                found: 0,
                expected: records.len(),
            });
        }
        let cells = records.iter().map(|record| {
            let cell = place.and_then(|place| record.get(place));
            cell.map_or("", String::as_str)
        });
        Ok(match column.kind {
            ColumnKind::Text => Values::Text(cells.map(Text::from).collect()),
            ColumnKind::Count => Values::Count(numbers(column.name, "whole number", cells)?),
            ColumnKind::Real => Values::Real(numbers(column.name, "number", cells)?),
        })
    });
    R::from_columns(&columns.collect::<Result<Vec<Values>, RowError>>()?)
}

/// The numbers of a column; an empty cell is null.
fn numbers<'a, T: std::str::FromStr>(
    column: &'static str,
    wanted: &'static str,
    cells: impl Iterator<Item = &'a str>,
) -> Result<Vec<Option<T>>, RowError> {
    let number = |(row, cell): (usize, &str)| match cell {
        "" => Ok(None),
        cell => cell.parse().map(Some).map_err(|_| RowError::Cell {
            column,
            row,
            wanted,
        }),
    };
    cells.enumerate().map(number).collect()
}

/// The error of either half of writing, before the file is known.
enum WriteError {
    Io(io::Error),
    Format(PolarsError),
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<PolarsError> for WriteError {
    fn from(error: PolarsError) -> Self {
        Self::Format(error)
    }
}

impl WriteError {
    fn at(self, path: PathBuf) -> TablesError {
        match self {
            Self::Io(source) => TablesError::Io {
                action: "write",
                path,
                source,
            },
            Self::Format(source) => TablesError::Format {
                action: "write",
                path,
                source,
            },
        }
    }
}

fn write_table<R: Row>(folder: &Path, rows: &[R]) -> Result<(), TablesError> {
    let parquet = path_of::<R>(folder);
    let mut frame =
        to_frame(rows).map_err(|error| WriteError::Format(error).at(parquet.clone()))?;
    atomic::write(&parquet, |file| -> Result<(), WriteError> {
        ParquetWriter::new(file).finish(&mut frame)?;
        Ok(())
    })
    .map_err(|error| error.at(parquet.clone()))?;
    let csv = parquet.with_extension("csv");
    atomic::write(&csv, |file| -> Result<(), WriteError> {
        CsvWriter::new(file).finish(&mut frame)?;
        Ok(())
    })
    .map_err(|error| error.at(csv.clone()))
}

/// What `read` reads. On a damaged file the table library panics, sometimes on a thread of its own, and says so: here that is an error
/// like others.
fn without_panics(
    read: impl FnOnce() -> Result<DataFrame, PolarsError>,
) -> Result<DataFrame, PolarsError> {
    static READING: AtomicUsize = AtomicUsize::new(0);
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |told| {
            let theirs = told
                .location()
                .is_some_and(|place| place.file().contains("polars"));
            if !theirs || READING.load(Ordering::Relaxed) == 0 {
                usual(told);
            }
        }));
    });
    READING.fetch_add(1, Ordering::Relaxed);
    let outcome = panic::catch_unwind(AssertUnwindSafe(read));
    READING.fetch_sub(1, Ordering::Relaxed);
    outcome.unwrap_or_else(|_| {
        let what = "the file is damaged";
        Err(PolarsError::ComputeError(what.into()))
    })
}

fn read_table<R: Row>(folder: &Path) -> Result<Vec<R>, TablesError> {
    let path = path_of::<R>(folder);
    let file = File::open(&path).map_err(|source| TablesError::Io {
        action: "read",
        path: path.clone(),
        source,
    })?;
    let read = || ParquetReader::new(file).finish();
    let columns = without_panics(read).and_then(|frame| {
        R::COLUMNS
            .iter()
            .map(|column| column_values(&frame, column))
            .collect::<Result<Vec<_>, _>>()
    });
    let columns = columns.map_err(|source| TablesError::Format {
        action: "read",
        path: path.clone(),
        source,
    })?;
    R::from_columns(&columns).map_err(|source| TablesError::Rows { path, source })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_parquet_file_whose_end_is_altered_is_an_error_and_no_panic() {
        let folder = tempfile::tempdir().unwrap();
        sample().write(folder.path()).unwrap();
        let path = path_of::<RunRow>(folder.path());
        let whole = fs::read(&path).unwrap();
        // The description of the columns lies at the end.
        for place in (whole.len() / 2..whole.len()).step_by(97) {
            let mut altered = whole.clone();
            altered[place] ^= 0x41;
            fs::write(&path, altered).unwrap();
            let _ = Tables::read(folder.path());
        }
        let found = without_panics(|| panic!("as the library does"));
        assert!(
            found
                .unwrap_err()
                .to_string()
                .contains("the file is damaged")
        );
    }

    fn sample() -> Tables {
        let run = RunRow {
            experiment: "quickstart".into(),
            cell: "full, \"quoted\"".into(),
            seed: u64::MAX,
            val_accuracy: Some(0.1 + 0.2),
            simulated_seconds: 1.0 / 3.0,
            status: RunRow::OK.into(),
            ..RunRow::default()
        };
        let epoch = EpochRow {
            epoch: 1,
            train_loss: Some(1.5e-300),
            ..EpochRow::default()
        };
        let traffic = TrafficRow {
            kind: "activation".into(),
            from: 3,
            ..TrafficRow::default()
        };
        let claim = ClaimRow {
            id: "bytes".into(),
            statement: "10× fewer".into(),
            verdict: ClaimRow::INCONCLUSIVE.into(),
            ..ClaimRow::default()
        };
        Tables {
            runs: vec![
                run.clone(),
                RunRow {
                    best_epoch: Some(7),
                    ..run
                },
            ],
            epochs: vec![EpochRow::default(), epoch],
            traffic: vec![traffic],
            claims: vec![claim],
            timeline: Vec::new(),
            decisions: Vec::new(),
        }
    }

    #[test]
    fn tables_come_back_from_parquet_to_the_last_bit() {
        let folder = tempfile::tempdir().unwrap();
        sample().write(folder.path()).unwrap();
        assert_eq!(Tables::read(folder.path()).unwrap(), sample());
    }

    #[test]
    fn a_timeline_is_there_only_if_the_last_run_was_traced() {
        let folder = tempfile::tempdir().unwrap();
        let span = TimelineRow {
            activity: "send".into(),
            end_seconds: 0.1 + 0.2,
            ..TimelineRow::default()
        };
        let traced = Tables {
            timeline: vec![span],
            ..sample()
        };
        traced.write(folder.path()).unwrap();
        assert_eq!(Tables::read(folder.path()).unwrap(), traced);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 10);
        sample().write(folder.path()).unwrap();
        assert_eq!(Tables::read(folder.path()).unwrap(), sample());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 8);
    }

    #[test]
    fn runs_come_back_from_csv_where_only_that_was_kept() {
        let folder = tempfile::tempdir().unwrap();
        sample().write(folder.path()).unwrap();
        fs::remove_file(folder.path().join("runs.parquet")).unwrap();
        assert_eq!(Tables::read_runs(folder.path()).unwrap(), sample().runs);
        fs::write(folder.path().join("runs.csv"), "cell,seed\nfull,x\n").unwrap();
        let broken = Tables::read_runs(folder.path()).unwrap_err().to_string();
        assert!(
            broken.contains("runs.csv") && broken.contains("a whole number is needed"),
            "{broken}"
        );
    }

    #[test]
    fn empty_tables_keep_their_columns() {
        let folder = tempfile::tempdir().unwrap();
        Tables::default().write(folder.path()).unwrap();
        assert_eq!(Tables::read(folder.path()).unwrap(), Tables::default());
        let csv = fs::read_to_string(folder.path().join("claims.csv")).unwrap();
        assert_eq!(
            csv,
            "id,source,statement,expected,measured,low,high,verdict,paper,seeds,censored,p_value,p_adjusted\n"
        );
    }

    #[test]
    fn csv_holds_nulls_as_nothing_and_numbers_in_full() {
        let folder = tempfile::tempdir().unwrap();
        sample().write(folder.path()).unwrap();
        let csv = fs::read_to_string(folder.path().join("runs.csv")).unwrap();
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[1].contains("0.30000000000000004"), "{}", lines[1]);
        assert!(lines[1].contains("0.3333333333333333"), "{}", lines[1]);
        assert!(
            lines[1].contains("\"full, \"\"quoted\"\"\""),
            "{}",
            lines[1]
        );
        assert!(lines[1].contains("18446744073709551615"), "{}", lines[1]);
    }

    #[test]
    fn writing_twice_gives_the_same_bytes_and_no_stray_file() {
        let folder = tempfile::tempdir().unwrap();
        sample().write(folder.path()).unwrap();
        let parquet = folder.path().join("runs.parquet");
        let first = fs::read(&parquet).unwrap();
        sample().write(folder.path()).unwrap();
        assert_eq!(fs::read(&parquet).unwrap(), first);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 8);
    }

    #[test]
    fn a_missing_table_a_broken_one_and_a_foreign_one_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let missing = Tables::read(folder.path()).unwrap_err().to_string();
        assert!(
            missing.contains("cannot read") && missing.contains("runs.parquet"),
            "{missing}"
        );

        sample().write(folder.path()).unwrap();
        let epochs = folder.path().join("epochs.parquet");
        fs::write(&epochs, b"PAR1 nonsense").unwrap();
        let broken = Tables::read(folder.path()).unwrap_err().to_string();
        assert!(broken.contains("epochs.parquet"), "{broken}");

        fs::copy(folder.path().join("claims.parquet"), &epochs).unwrap();
        let foreign = Tables::read(folder.path()).unwrap_err().to_string();
        assert!(
            foreign.contains("epochs.parquet") && foreign.contains("experiment"),
            "{foreign}"
        );
    }
}
