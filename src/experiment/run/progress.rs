//! What is told of an experiment while it runs, and what it leaves behind.

use std::time::Duration;

use crate::experiment::error::Error;
use crate::experiment::rows::RunRow;
use crate::experiment::tables::Tables;
use crate::sim::EpochRecord;

/// Told how an experiment goes on.
pub(crate) trait Progress: Send + Sync {
    /// All runs are known: how many, and how many epochs they have in all.
    fn begin(&self, runs: usize, epochs: usize);
    /// Something to know before it begins: results that are replaced, cells that are left out and
    /// why.
    fn note(&self, note: &str);
    /// Whether it is worth a trial of each strategy to say how long all will take.
    fn wants_outlook(&self) -> bool {
        false
    }
    /// Seconds that are left, as far as is known: said before the first run, and again after each.
    fn outlook(&self, _seconds: f64) {}
    /// An epoch of a run ended.
    fn epoch(&self, cell: &str, seed: u64, record: &EpochRecord);
    /// A run ended.
    fn finished(&self, run: &Finished<'_>);
    /// More epochs have come to be trained.
    fn more(&self, _epochs: usize) {}
    /// All runs have ended.
    fn end(&self) {}
}

/// A run that ended.
pub(crate) struct Finished<'a> {
    /// Its row in the table of runs.
    pub row: &'a RunRow,
    /// How many have ended, with it.
    pub number: usize,
    /// Of how many.
    pub of: usize,
    /// Whether it had finished before this program started.
    pub kept: bool,
}

/// What an experiment left behind.
pub(crate) struct Summary {
    /// All rows.
    pub tables: Tables,
    /// Time from start to end.
    pub elapsed: Duration,
    /// Time inside model computation: forward, backward, optimiser, evaluation.
    pub model: Duration,
    /// Sentences a reader should see beside the figures.
    pub notes: Vec<String>,
    /// [`Error::Failed`] of each run that failed, where the others were to go on.
    pub(crate) failures: Vec<Error>,
}
