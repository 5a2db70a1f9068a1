//! The result tables of a folder: rows in memory, Parquet and CSV on disk.

mod files;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::rows::{
    BesideRow, ClaimRow, DecisionRow, EpochRow, ProjectionRow, Row, RowError, RunRow, TimelineRow,
    TrafficRow,
};
use files::{path_of, read_csv, read_if_there, read_parquet, write, write_if_any};

/// Names of all tables, in their order.
pub(super) const ALL: [&str; 6] = [
    RunRow::TABLE,
    EpochRow::TABLE,
    TrafficRow::TABLE,
    ClaimRow::TABLE,
    TimelineRow::TABLE,
    DecisionRow::TABLE,
];

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
    /// The file system refused, or a file is not a table or lacks a column.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// `read`, `write` or `remove`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the file system or the table library says.
        source: FileError,
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

/// What the file system or the table library says of a file.
type FileError = Box<dyn std::error::Error + Send + Sync>;

impl TablesError {
    /// Makes an error of it.
    pub(super) fn file<E: Into<FileError>>(
        action: &'static str,
        path: &Path,
    ) -> impl FnOnce(E) -> Self + use<E> {
        let path = path.to_owned();
        move |source| Self::File {
            action,
            path,
            source: source.into(),
        }
    }
}

/// Writes `projection.parquet` and `projection.csv` into `folder`, each atomically, and `beside`
/// where there is anything trained beside it.
///
/// # Errors
/// A file cannot be written.
pub(crate) fn write_projection(
    folder: &Path,
    rows: &[ProjectionRow],
    beside: &[BesideRow],
) -> Result<(), TablesError> {
    write(folder, rows)?;
    write_if_any(folder, beside)
}

/// The rows of a projection that was written to `folder`; none if there is none.
///
/// # Errors
/// What is there is no table of projections.
pub(crate) fn read_projection(folder: &Path) -> Result<Vec<ProjectionRow>, TablesError> {
    read_if_there(folder)
}

impl Tables {
    /// Tables with rows of runs; those of claims are about all.
    pub(super) const OF_RUNS: usize = 5;

    /// How many rows there are of runs: of these, epochs, traffic, timeline and decisions.
    pub(super) const fn lengths(&self) -> [usize; Self::OF_RUNS] {
        [
            self.runs.len(),
            self.epochs.len(),
            self.traffic.len(),
            self.timeline.len(),
            self.decisions.len(),
        ]
    }

    /// Adds rows of runs behind so many of each table, in the order of [`Self::lengths`].
    pub(super) fn insert(&mut self, behind: [usize; Self::OF_RUNS], more: Self) {
        let [runs, epochs, traffic, timeline, decisions] = behind;
        self.runs.splice(runs..runs, more.runs);
        self.epochs.splice(epochs..epochs, more.epochs);
        self.traffic.splice(traffic..traffic, more.traffic);
        self.timeline.splice(timeline..timeline, more.timeline);
        self.decisions.splice(decisions..decisions, more.decisions);
    }

    /// Writes `<table>.parquet` and `<table>.csv` for all tables into `folder`, each file
    /// atomically. Of a table that not every run has there are no files then, and those of an
    /// earlier run are removed.
    ///
    /// # Errors
    /// A file cannot be written; finished files stay, and what they replaced is never half-written.
    pub fn write(&self, folder: &Path) -> Result<(), TablesError> {
        write(folder, &self.runs)?;
        write(folder, &self.epochs)?;
        write(folder, &self.traffic)?;
        self.write_claims(folder)?;
        write_if_any(folder, &self.timeline)?;
        write_if_any(folder, &self.decisions)
    }

    /// Writes the table of claims alone.
    pub(super) fn write_claims(&self, folder: &Path) -> Result<(), TablesError> {
        write(folder, &self.claims)
    }

    /// Reads the Parquet files of `folder`; those of tables that not every run has if they are
    /// there.
    ///
    /// # Errors
    /// A file is missing, is no Parquet, lacks a column or holds values of another type.
    pub fn read(folder: &Path) -> Result<Self, TablesError> {
        let runs: Vec<RunRow> = read_parquet(folder)?;
        // Without a sweep a cell is called as its strategy is. Where it has another name, the
        // column of the sweep was lost, and all settings would be taken for one.
        let unsaid = |run: &RunRow| run.sweep.is_empty() && run.cell != run.strategy;
        if let Some(row) = runs.iter().position(unsaid) {
            let (column, wanted) = ("sweep", "sweep");
            return Err(TablesError::Rows {
                path: path_of::<RunRow>(folder),
                source: RowError::Entry {
                    column,
                    row,
                    wanted,
                },
            });
        }
        Ok(Self {
            runs,
            epochs: read_parquet(folder)?,
            traffic: read_parquet(folder)?,
            claims: read_parquet(folder)?,
            timeline: read_if_there(folder)?,
            decisions: read_if_there(folder)?,
        })
    }

    /// Whether of the table of runs the CSV file alone was kept.
    pub(crate) fn has_runs_alone(folder: &Path) -> bool {
        let parquet = path_of::<RunRow>(folder);
        !parquet.exists() && parquet.with_extension("csv").exists()
    }

    /// The table of runs alone, from its Parquet file or, where that was not kept, from its CSV
    /// file.
    ///
    /// # Errors
    /// Neither is there, or it is no table of runs.
    pub(crate) fn read_runs(folder: &Path) -> Result<Vec<RunRow>, TablesError> {
        if Self::has_runs_alone(folder) {
            return read_csv(&path_of::<RunRow>(folder).with_extension("csv"));
        }
        read_parquet(folder)
    }

    /// The table of claims alone, likewise; nothing where there is none.
    ///
    /// # Errors
    /// It is no table of claims.
    pub(crate) fn read_claims(folder: &Path) -> Result<Vec<ClaimRow>, TablesError> {
        let parquet = path_of::<ClaimRow>(folder);
        let csv = parquet.with_extension("csv");
        match (parquet.exists(), csv.exists()) {
            (true, _) => read_parquet(folder),
            (false, true) => read_csv(&csv),
            (false, false) => Ok(Vec::new()),
        }
    }

    /// Names of the tables' files in `folder`.
    pub(super) fn files(folder: &Path) -> Vec<String> {
        let files = ALL
            .iter()
            .flat_map(|table| ["parquet", "csv"].map(|extension| format!("{table}.{extension}")));
        files.filter(|file| folder.join(file).exists()).collect()
    }
}
