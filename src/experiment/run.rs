//! Runs an experiment cell by cell and writes what is there after each.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use thiserror::Error;

use super::config::{Cell, Experiment};
use super::manifest::{MANIFEST, Manifest, read_manifest};
use super::prepare::Preparation;
use super::row_maker::RowMaker;
use super::rows::{ClaimRow, RunRow};
use super::tables::{Tables, TablesError};
use super::trace::{TraceNames, chrome_trace};
use super::{TRACES, atomic};
use crate::Error;
use crate::sim::{Engine, EpochRecord, Observer, Outcome, Setting, SimError};
use crate::strategies::{Registry, Strategy};

/// Why an experiment did not finish.
#[derive(Debug, Error)]
pub enum RunError {
    /// Something is wrong with the input, found before anything was trained.
    #[error(transparent)]
    Input(Box<Error>),
    /// A run failed; what was finished before is in the result folder.
    #[error("cell \"{cell}\", seed {seed}: {source}")]
    Failed {
        /// Name of the cell.
        cell: String,
        /// Seed of the run.
        seed: u64,
        /// What happened.
        source: Box<Error>,
    },
    /// The folder for results has those of another experiment, or cannot be a folder.
    #[error("{}: {what}; give another folder with --out", path.display())]
    Taken {
        /// The folder.
        path: PathBuf,
        /// What is there.
        what: String,
    },
    /// Results cannot be written.
    #[error(transparent)]
    Write(#[from] TablesError),
    /// Results cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Folder {
        /// The file or folder.
        path: PathBuf,
        /// The file system's error.
        source: std::io::Error,
    },
}

impl RunError {
    /// Whether the cause is something a person wrote (exit code 2), not a failure of the run (exit code 1).
    #[must_use]
    pub fn is_input(&self) -> bool {
        match self {
            Self::Input(error) => error.is_input(),
            Self::Taken { .. } => true,
            Self::Failed { .. } | Self::Write(_) | Self::Folder { .. } => false,
        }
    }
}

impl From<SimError> for RunError {
    fn from(error: SimError) -> Self {
        Self::Input(Box::new(error.into()))
    }
}

/// Told how an experiment goes on.
pub trait Progress: Send + Sync {
    /// All runs are known: how many, and how many epochs they have in all.
    fn begin(&self, runs: usize, epochs: usize);
    /// Cells are left out; the note says which and why.
    fn skipped(&self, note: &str);
    /// An epoch of a run ended.
    fn epoch(&self, cell: &str, seed: u64, record: &EpochRecord);
    /// A run ended.
    fn finished(&self, run: &Finished<'_>);
}

/// A run that ended.
pub struct Finished<'a> {
    /// Its row in the table of runs.
    pub row: &'a RunRow,
    /// Its number, from 1.
    pub number: usize,
    /// Of how many.
    pub of: usize,
}

/// What an experiment left behind.
pub struct Summary {
    /// All rows.
    pub tables: Tables,
    /// Time from start to end.
    pub elapsed: Duration,
    /// Time inside model computation: forward, backward, optimiser, evaluation.
    pub model: Duration,
    /// Sentences a reader should see beside the figures.
    pub notes: Vec<String>,
}

/// Runs one experiment into one folder.
pub struct Runner<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// What its strategies can be.
    pub registry: &'a Registry,
    /// Where its relative paths start.
    pub base: PathBuf,
    /// Where results go.
    pub out: PathBuf,
    /// The command as it was given, for the manifest.
    pub command: Vec<String>,
    /// What carries out the runs.
    pub engine: Engine,
    /// Of how many epochs each run leaves a trace; 0 for none.
    pub trace_epochs: usize,
}

/// Results are written after every cell, and within a cell after the first seed that ends so long after the last time.
const WRITE_EVERY: Duration = Duration::from_secs(5);

/// When results are written: they are written whole, so that what takes long to write is written less often, and writing takes a small share of
/// the whole.
struct Pace {
    ended: Instant,
    took: Duration,
}

impl Pace {
    /// Least time between two writings, in times that the first took.
    const REST: u32 = 10;
    /// What is written faster than this needs no rest: results are there at every end of a cell.
    const FAST: Duration = Duration::from_millis(200);

    /// Whether to write, at the end of a cell or within one.
    fn is_due(&self, cell_ended: bool) -> bool {
        let wait = if cell_ended {
            Duration::ZERO
        } else {
            WRITE_EVERY
        };
        let rest = if self.took < Self::FAST {
            Duration::ZERO
        } else {
            self.took * Self::REST
        };
        self.ended.elapsed() >= wait.max(rest)
    }
}

/// One cell with its strategy.
struct Job<'a> {
    cell: &'a Cell,
    strategy: Box<dyn Strategy>,
}

/// All that is to be run.
struct Prepared<'a> {
    jobs: Vec<Job<'a>>,
    skipped: Vec<String>,
    /// What tells it from anything else that could have been prepared.
    digest: Vec<u8>,
}

impl Runner<'_> {
    /// Prepares every cell, then trains each with every seed; tables and manifest are written after each cell, and after each
    /// seed that takes long.
    ///
    /// # Errors
    /// Bad input is reported before anything is trained or written. A failing run ends the experiment; its row and everything before it
    /// are kept. Where workers are processes, process 0 alone writes and has the tables.
    pub fn run(&self, progress: &Arc<dyn Progress>) -> Result<Summary, RunError> {
        let started = Instant::now();
        let mut preparation = Preparation::new(self.registry, self.base.clone())
            .with_timeline(self.trace_epochs)
            .on(self.engine.clone());
        let mut manifest = Manifest::new(self.experiment, &self.command, &self.engine);
        let Prepared { jobs, skipped, .. } = self.engine.agree(
            self.prepare(&mut preparation, &mut manifest),
            |prepared| prepared.digest.clone(),
            RunError::is_input,
        )?;

        if self.engine.leads() {
            remove_traces(&self.out)?;
        }
        let mut names = TraceNames::default();
        let seeds = &self.experiment.seeds;
        let runs = jobs.len() * seeds.len();
        let epochs: usize = jobs
            .iter()
            .map(|job| job.strategy.epochs(&Preparation::context(job.cell)) * seeds.len())
            .sum();
        progress.begin(runs, epochs);
        for note in &skipped {
            progress.skipped(note);
        }

        let mut tables = Tables::default();
        let mut model = Duration::ZERO;
        let mut number = 0;
        let mut pace = Pace {
            ended: Instant::now(),
            took: Duration::ZERO,
        };
        for job in &jobs {
            for (place, &seed) in seeds.iter().enumerate() {
                number += 1;
                let trace = TraceFile {
                    path: self.out.join(TRACES).join(names.name(&job.cell.name, seed)),
                    first: place == 0,
                };
                let outcome = self.one(&mut preparation, job, seed, progress, &mut tables, &trace);
                if let Ok(spent) = &outcome {
                    model += *spent;
                }
                if let Some(row) = tables.runs.last() {
                    progress.finished(&Finished {
                        row,
                        number,
                        of: runs,
                    });
                }
                if outcome.is_err() || pace.is_due(place + 1 == seeds.len()) {
                    let begun = Instant::now();
                    self.write(&tables, &manifest, started, model, &skipped)?;
                    pace = Pace {
                        ended: Instant::now(),
                        took: begun.elapsed(),
                    };
                }
                outcome.map_err(|source| RunError::Failed {
                    cell: job.cell.name.clone(),
                    seed,
                    source: Box::new(source),
                })?;
            }
        }
        tables.claims = self.claims(&tables.runs);
        let mut notes = skipped;
        if let Some(processes) = self.engine.processes() {
            notes.push(format!(
                "trained on {processes} processes over MPI: what is called simulated time here is measured on the workers' clocks"
            ));
        }
        notes.extend(super::manifest::notes(&tables.runs, &tables.epochs));
        self.write(&tables, &manifest, started, model, &notes)?;
        Ok(Summary {
            tables,
            elapsed: started.elapsed(),
            model,
            notes,
        })
    }

    /// Everything that can be wrong with the input shows here, and the folder for results is there afterwards.
    fn prepare<'a>(
        &'a self,
        preparation: &mut Preparation<'_>,
        manifest: &mut Manifest,
    ) -> Result<Prepared<'a>, RunError> {
        if self.engine.leads() {
            free(&self.out, &self.experiment.name)?;
        }
        let input = |error: Error| RunError::Input(Box::new(error));
        let mut jobs = Vec::new();
        let mut digest = Sha256::new_with_prefix(self.experiment.resolved().to_string());
        let (cells, skipped) = preparation.present(self.experiment).map_err(input)?;
        for cell in cells {
            let strategy = preparation.strategy(cell).map_err(input)?;
            for &seed in &self.experiment.seeds {
                let setting = preparation
                    .setting(cell, seed, strategy.as_ref())
                    .map_err(input)?;
                manifest.describe(&setting);
                digest.update(setting.dataset.graph.edges().to_le_bytes());
                for &part in &setting.partition.assignment {
                    digest.update(part.to_le_bytes());
                }
            }
            jobs.push(Job { cell, strategy });
        }
        if self.engine.leads() {
            std::fs::create_dir_all(&self.out).map_err(|source| RunError::Folder {
                path: self.out.clone(),
                source,
            })?;
        }
        Ok(Prepared {
            jobs,
            skipped,
            digest: digest.finalize().to_vec(),
        })
    }

    fn claims(&self, runs: &[RunRow]) -> Vec<ClaimRow> {
        self.experiment
            .claims
            .iter()
            .map(|claim| claim.judge(runs))
            .collect()
    }

    fn write(
        &self,
        tables: &Tables,
        manifest: &Manifest,
        started: Instant,
        model: Duration,
        notes: &[String],
    ) -> Result<(), RunError> {
        if !self.engine.leads() {
            return Ok(());
        }
        tables.write(&self.out)?;
        manifest
            .write(&self.out, started.elapsed(), model, notes)
            .map_err(|source| RunError::Folder {
                path: self.out.clone(),
                source,
            })
    }

    /// One cell and seed; returns the time spent inside model computation.
    fn one(
        &self,
        preparation: &mut Preparation<'_>,
        job: &Job<'_>,
        seed: u64,
        progress: &Arc<dyn Progress>,
        tables: &mut Tables,
        trace: &TraceFile,
    ) -> Result<Duration, Error> {
        let strategy = job.strategy.as_ref();
        let setting = preparation.setting(job.cell, seed, strategy)?;
        let rows = RowMaker {
            experiment: &self.experiment.name,
            cell: job.cell,
            strategy,
            setting: &setting,
        };
        let observer: Observer = {
            let (progress, cell) = (Arc::clone(progress), job.cell.name.clone());
            Arc::new(move |record| progress.epoch(&cell, seed, record))
        };
        let outcome = strategy.run(&setting, observer);
        if !self.engine.leads() {
            return Ok(outcome?.model);
        }
        let outcome = outcome
            .and_then(|outcome| plan_is_ledger(strategy, &setting, &outcome).map(|()| outcome));
        match outcome {
            Ok(outcome) => {
                tables.runs.push(rows.run(&outcome));
                tables.epochs.extend(rows.epochs(&outcome));
                tables.traffic.extend(rows.traffic(&outcome));
                if self.trace_epochs > 0 {
                    let text = chrome_trace(&outcome.timeline, &setting.topology);
                    write_trace(&trace.path, &text)?;
                    if trace.first {
                        tables.timeline.extend(rows.timeline(&outcome));
                    }
                }
                Ok(outcome.model)
            }
            Err(error) => {
                tables.runs.push(rows.failed(&error));
                Err(error.into())
            }
        }
    }
}

/// Where a run's trace goes, and whether it is its cell's first, of which the table is.
struct TraceFile {
    path: PathBuf,
    first: bool,
}

fn write_trace(path: &Path, text: &str) -> Result<(), RunError> {
    atomic::write_bytes(path, text.as_bytes()).map_err(|source| RunError::Folder {
        path: path.to_owned(),
        source,
    })
}

/// Removes the traces of an earlier run of the experiment.
fn remove_traces(out: &Path) -> Result<(), RunError> {
    let Ok(entries) = std::fs::read_dir(out.join(TRACES)) else {
        return Ok(());
    };
    let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
    for path in paths.filter(|path| path.extension().is_some_and(|end| end == "json")) {
        std::fs::remove_file(&path).map_err(|source| RunError::Folder { path, source })?;
    }
    Ok(())
}

/// Every message that was sent had been stated in advance, and no other.
fn plan_is_ledger(
    strategy: &dyn Strategy,
    setting: &Setting,
    outcome: &Outcome,
) -> Result<(), SimError> {
    for record in &outcome.epochs {
        let epoch = record.epoch;
        let plan = strategy.plan_after(&setting.boundary, &setting.model, record);
        let ledger = outcome.ledger.epoch(epoch).cloned().unwrap_or_default();
        if plan != ledger {
            let where_ = plan
                .first_difference(&ledger)
                .map_or(String::new(), |(lane, a, b)| {
                    format!(
                        ": {} of layer {} from worker {} to {}: {} planned, {} sent",
                        lane.kind, lane.layer, lane.from, lane.to, a.payload, b.payload
                    )
                });
            return Err(SimError::Strategy(format!(
                "what it sent in epoch {epoch} is not what it had planned{where_}"
            )));
        }
    }
    Ok(())
}

/// Whether results of the experiment `name` may go to `folder`: there is nothing, or results of an experiment of that name, or no
/// results.
fn free(folder: &Path, name: &str) -> Result<(), RunError> {
    let taken = |path: &Path, what: String| {
        Err(RunError::Taken {
            path: path.to_owned(),
            what,
        })
    };
    if let Some(file) = folder.ancestors().find(|path| path.exists())
        && !file.is_dir()
    {
        return taken(
            folder,
            format!("{} is a file, not a folder", file.display()),
        );
    }
    if !folder.join(MANIFEST).exists() {
        return Ok(());
    }
    let manifest = read_manifest(folder).unwrap_or_default();
    match manifest["name"].as_str() {
        Some(other) if other == name => Ok(()),
        Some(other) => taken(
            folder,
            format!("holds results of the experiment \"{other}\", not of \"{name}\""),
        ),
        None => taken(folder, format!("holds a {MANIFEST} of something else")),
    }
}

/// A progress that says nothing.
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _: usize, _: usize) {}
    fn skipped(&self, _: &str) {}
    fn epoch(&self, _: &str, _: u64, _: &EpochRecord) {}
    fn finished(&self, _: &Finished<'_>) {}
}

/// The default folder of an experiment's results.
#[must_use]
pub fn default_out(experiment: &Experiment) -> PathBuf {
    Path::new("results").join(&experiment.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_to_write_is_written_less_often() {
        let now = |took| Pace {
            ended: Instant::now(),
            took,
        };
        let fast = now(Duration::ZERO);
        assert!(fast.is_due(true) && !fast.is_due(false));
        assert!(!now(Duration::from_mins(1)).is_due(true));
        let long_ago = Instant::now().checked_sub(Duration::from_secs(6));
        let rested = |took| long_ago.is_none_or(|ended| Pace { ended, took }.is_due(false));
        assert!(rested(Duration::ZERO) && rested(Duration::from_millis(500)));
        assert!(!now(Duration::from_millis(500)).is_due(true));
    }
}
