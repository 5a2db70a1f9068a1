//! Runs an experiment cell by cell and writes what is there after each.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use thiserror::Error;

use super::config::{Cell, Experiment};
use super::manifest::{MANIFEST, Manifest, read_manifest};
use super::prepare::{Preparation, partitioner_name};
use super::rows::{ClaimRow, EpochRow, RunRow, TrafficRow};
use super::tables::{Tables, TablesError};
use crate::Error;
use crate::net::{Count, TrafficKind};
use crate::sim::{EpochRecord, Observer, Outcome, Setting, SimError};
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
}

/// Results are written after every cell, and within a cell after the first seed that ends so long after the last time.
const WRITE_EVERY: Duration = Duration::from_secs(5);

/// One cell with its strategy.
struct Job<'a> {
    cell: &'a Cell,
    strategy: Box<dyn Strategy>,
}

impl Runner<'_> {
    /// Prepares every cell, then trains each with every seed; tables and manifest are written after each cell, and after each
    /// seed that takes long.
    ///
    /// # Errors
    /// Bad input is reported before anything is trained or written. A failing run ends the experiment; its row and everything before it
    /// are kept.
    pub fn run(&self, progress: &Arc<dyn Progress>) -> Result<Summary, RunError> {
        let started = Instant::now();
        free(&self.out, &self.experiment.name)?;
        let input = |error: Error| RunError::Input(Box::new(error));
        let mut preparation = Preparation::new(self.registry, self.base.clone());
        let mut jobs = Vec::new();
        let mut manifest = Manifest::new(self.experiment, &self.command);
        let (cells, skipped) = preparation.present(self.experiment).map_err(input)?;
        for cell in cells {
            let strategy = preparation.strategy(cell).map_err(input)?;
            for &seed in &self.experiment.seeds {
                let setting = preparation
                    .setting(cell, seed, strategy.as_ref())
                    .map_err(input)?;
                manifest.describe(&setting);
            }
            jobs.push(Job { cell, strategy });
        }
        std::fs::create_dir_all(&self.out).map_err(|source| RunError::Folder {
            path: self.out.clone(),
            source,
        })?;

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
        let mut written = Instant::now();
        for job in &jobs {
            for (place, &seed) in seeds.iter().enumerate() {
                number += 1;
                let outcome = self.one(&mut preparation, job, seed, progress, &mut tables);
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
                let last = place + 1 == seeds.len() || outcome.is_err();
                if last || written.elapsed() >= WRITE_EVERY {
                    self.write(&tables, &manifest, started, model, &skipped)?;
                    written = Instant::now();
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
        notes.extend(super::manifest::notes(&tables.runs, &tables.epochs));
        self.write(&tables, &manifest, started, model, &notes)?;
        Ok(Summary {
            tables,
            elapsed: started.elapsed(),
            model,
            notes,
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
    ) -> Result<Duration, Error> {
        let strategy = job.strategy.as_ref();
        let setting = preparation.setting(job.cell, seed, strategy)?;
        let rows = RowMaker {
            experiment: &self.experiment.name,
            job,
            setting: &setting,
        };
        let observer: Observer = {
            let (progress, cell) = (Arc::clone(progress), job.cell.name.clone());
            Arc::new(move |record| progress.epoch(&cell, seed, record))
        };
        let outcome = strategy
            .run(&setting, observer)
            .and_then(|outcome| plan_is_ledger(strategy, &setting, &outcome).map(|()| outcome));
        match outcome {
            Ok(outcome) => {
                tables.runs.push(rows.run(&outcome));
                tables.epochs.extend(rows.epochs(&outcome));
                tables.traffic.extend(rows.traffic(&outcome));
                Ok(outcome.model)
            }
            Err(error) => {
                tables.runs.push(rows.failed(&error));
                Err(error.into())
            }
        }
    }
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

/// Makes the rows of one run.
struct RowMaker<'a> {
    experiment: &'a str,
    job: &'a Job<'a>,
    setting: &'a Setting,
}

impl RowMaker<'_> {
    /// The row of a run of which nothing is known but what it was to be.
    fn blank(&self) -> RunRow {
        let (cell, setting) = (self.job.cell, self.setting);
        let settings = &cell.settings;
        let asked = self.job.strategy.partition(&settings.partition);
        RunRow {
            experiment: self.experiment.to_owned(),
            cell: cell.name.clone(),
            strategy: cell.strategy.label.clone(),
            dataset: setting.dataset.name.clone(),
            model: lower_name(&settings.model.kind),
            layers: setting.model.layers() as u64,
            hidden: settings.model.hidden as u64,
            partitioner: partitioner_name(asked.method).to_owned(),
            workers: setting.workers() as u64,
            network: settings
                .network
                .preset
                .clone()
                .unwrap_or_else(|| "custom".to_owned()),
            backend: lower_name(&settings.device.backend),
            device: setting.devices[0].description.clone(),
            seed: setting.seed,
            epochs: setting.epochs as u64,
            parameters: 0,
            edge_cut: setting.partition.edge_cut(&setting.dataset.graph) as u64,
            boundary_rows: setting.boundary.boundary_rows() as u64,
            best_epoch: None,
            val_accuracy: None,
            test_accuracy: None,
            payload_bytes: 0,
            wire_bytes: 0,
            both_ends_bytes: 0,
            feature_bytes: 0,
            activation_bytes: 0,
            activation_gradient_bytes: 0,
            parameter_gradient_bytes: 0,
            parameter_bytes: 0,
            repartition_bytes: 0,
            sample_bytes: 0,
            control_bytes: 0,
            messages: 0,
            simulated_seconds: 0.0,
            compute_seconds: 0.0,
            communication_seconds: 0.0,
            exposed_communication_seconds: 0.0,
            measured_seconds: 0.0,
            seconds_to_target: None,
            bytes_to_target: None,
            peak_memory_bytes: 0,
            status: RunRow::OK.to_owned(),
        }
    }

    fn failed(&self, error: &SimError) -> RunRow {
        RunRow {
            status: format!("failed: {error}"),
            ..self.blank()
        }
    }

    fn run(&self, outcome: &Outcome) -> RunRow {
        let ledger = outcome.ledger.traffic();
        let total = ledger.total(&self.setting.framing);
        let of = |kind| ledger.payload_of(kind).0;
        let best = outcome.best();
        let target = self.setting.training.target_accuracy.and_then(|target| {
            outcome.epochs.iter().find(|record| {
                record
                    .scores
                    .and_then(|s| s.validation)
                    .is_some_and(|score| score >= target)
            })
        });
        let so_far = self.cumulative(outcome);
        RunRow {
            parameters: outcome.parameters as u64,
            best_epoch: best.map(|(epoch, _)| epoch as u64),
            val_accuracy: best.and_then(|(_, scores)| scores.validation),
            test_accuracy: best.and_then(|(_, scores)| scores.test),
            payload_bytes: total.payload.0,
            wire_bytes: total.wire.0,
            both_ends_bytes: 2 * total.payload.0,
            feature_bytes: of(TrafficKind::Feature),
            activation_bytes: of(TrafficKind::Activation),
            activation_gradient_bytes: of(TrafficKind::ActivationGradient),
            parameter_gradient_bytes: of(TrafficKind::ParameterGradient),
            parameter_bytes: of(TrafficKind::Parameter),
            repartition_bytes: of(TrafficKind::Repartition),
            sample_bytes: of(TrafficKind::Sample),
            control_bytes: of(TrafficKind::Control),
            messages: total.messages,
            simulated_seconds: outcome.simulated().0,
            compute_seconds: outcome.mean_time(|times| times.compute).0,
            communication_seconds: outcome.mean_time(|times| times.communication).0,
            exposed_communication_seconds: outcome.mean_time(|times| times.exposed).0,
            measured_seconds: outcome.measured.as_secs_f64(),
            seconds_to_target: target.map(|record| record.simulated.0),
            bytes_to_target: target.map(|record| so_far[record.epoch].payload.0),
            peak_memory_bytes: outcome.peak_memory_bytes,
            ..self.blank()
        }
    }

    /// Bytes sent up to and including each epoch.
    fn cumulative(&self, outcome: &Outcome) -> Vec<Count> {
        let mut sum = Count::default();
        (0..self.setting.epochs)
            .map(|epoch| {
                if let Some(traffic) = outcome.ledger.epoch(epoch) {
                    sum += traffic.total(&self.setting.framing);
                }
                sum
            })
            .collect()
    }

    fn epochs(&self, outcome: &Outcome) -> Vec<EpochRow> {
        let so_far = self.cumulative(outcome);
        let blank = self.blank();
        outcome
            .epochs
            .iter()
            .zip(so_far)
            .map(|(record, sent)| EpochRow {
                experiment: blank.experiment.clone(),
                cell: blank.cell.clone(),
                strategy: blank.strategy.clone(),
                seed: blank.seed,
                epoch: record.epoch as u64,
                simulated_seconds: record.simulated.0,
                measured_seconds: record.measured.as_secs_f64(),
                payload_bytes: sent.payload.0,
                wire_bytes: sent.wire.0,
                train_loss: Some(record.loss),
                train_accuracy: record.scores.and_then(|scores| scores.train),
                val_accuracy: record.scores.and_then(|scores| scores.validation),
                test_accuracy: record.scores.and_then(|scores| scores.test),
                compression_ratio: record.compression_ratio,
                coverage: record.coverage,
                weight_mean: record.weight_mean,
                weight_sd: record.weight_sd,
                compression_error: record.compression_error,
            })
            .collect()
    }

    fn traffic(&self, outcome: &Outcome) -> Vec<TrafficRow> {
        let blank = self.blank();
        let mut rows = Vec::new();
        for (epoch, traffic) in outcome.ledger.iter() {
            for (lane, count) in traffic.by_lane(&self.setting.framing) {
                rows.push(TrafficRow {
                    cell: blank.cell.clone(),
                    seed: blank.seed,
                    epoch: epoch as u64,
                    layer: u64::from(lane.layer),
                    from: u64::from(lane.from),
                    to: u64::from(lane.to),
                    kind: lane.kind.name().to_owned(),
                    messages: count.messages,
                    payload_bytes: count.payload.0,
                    wire_bytes: count.wire.0,
                    compression_error: outcome
                        .coding_errors
                        .get(&(epoch, lane))
                        .map(|error| error.relative()),
                });
            }
        }
        rows
    }
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

/// The name of a unit variant as experiment files write it.
fn lower_name<T: serde::Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
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
