//! Runs an experiment cell by cell and writes what is there after each.

mod progress;
mod trial;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Error;
use super::archive::{Address, Addresser, Archive, absorb_partition};
use super::claims::judge;
use super::config::{Cell, Experiment};
use super::error::RunError;
use super::manifest::Manifest;
use super::noise::{Seen, Watch};
use super::pace::Pace;
use super::prepare::Preparation;
use super::row_maker::RowMaker;
use super::rows::{ClaimRow, RunRow, distinct};
use super::tables::Tables;
use super::trace::{RunNames, chrome_trace};
use super::{TRACES, atomic, folder};
use crate::graph::PartitionMethod;
use crate::sim::{Engine, Observer};
use crate::strategies::{self, Registry};
pub(crate) use progress::{Finished, Progress, Summary};
use sha2::{Digest, Sha256};

/// Runs one experiment into one folder.
pub(crate) struct Runner<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// What its strategies can be.
    pub registry: &'a Registry,
    /// Where its relative paths start.
    pub base: PathBuf,
    /// Where results go.
    pub out: PathBuf,
    /// What a report of an earlier run may have left there; removed before the first table is
    /// written.
    pub drawn: Vec<PathBuf>,
    /// The command as it was given, for the manifest.
    pub command: Vec<String>,
    /// What carries out the runs.
    pub engine: Engine,
    /// Of how many epochs each run leaves a trace; 0 for none.
    pub trace_epochs: usize,
    /// Whether runs that have finished in the result folder are kept and not run again.
    pub resume: bool,
    /// Whether the other runs go on when one fails.
    pub keep_going: bool,
}

/// One cell.
struct Job<'a> {
    cell: &'a Cell,
    /// How its parts are made.
    method: PartitionMethod,
    epochs: usize,
    /// Whether one program plays all workers.
    together: bool,
    /// One for each seed.
    runs: Vec<Planned>,
}

impl Job<'_> {
    /// Epochs of all runs that have not finished before.
    fn epochs_to_run(&self) -> usize {
        self.epochs * self.runs.iter().filter(|run| !run.kept).count()
    }
}

/// One run that is to be there in the end.
struct Planned {
    seed: u64,
    address: Address,
    /// Where its trace goes, if it leaves one.
    trace: PathBuf,
    /// Whether it has finished before.
    kept: bool,
}

/// The rows of a run, and the time spent inside model computation.
type Ended = (Tables, Duration);

/// The row of a run that failed, if it came as far as to have one, and why it failed.
type Failing = (Option<Box<RunRow>>, Error);

/// All that is to be run.
struct Prepared<'a> {
    jobs: Vec<Job<'a>>,
    skipped: Vec<String>,
    /// What tells it from anything else that could have been prepared.
    digest: Vec<u8>,
    /// Keeps other runs out of the result folder; where processes are workers, process 0 has it.
    lock: Option<File>,
}

/// Which strategies train on other parts than [partition] asks for.
fn parts_of_their_own(jobs: &[Job<'_>]) -> Vec<String> {
    let differ = jobs.iter().filter(|job| {
        let asked = &job.cell.settings.partition;
        asked.workers > 1 && job.method != asked.method
    });
    let labels = distinct(differ.map(|job| job.cell.strategy.label.as_str())).join(", ");
    (!labels.is_empty())
        .then(|| {
            format!(
                "{labels}: trained on parts of the strategy's own choice, not on those of [partition]; `partitioner` in runs.csv says on which"
            )
        })
        .into_iter()
        .collect()
}

impl Runner<'_> {
    /// Prepares every cell, then trains each with every seed; tables and manifest are written after
    /// each cell, and after each seed that takes long.
    ///
    /// # Errors
    /// Bad input is reported before anything is trained or written. A failing run ends the
    /// experiment; its row and everything before it are kept. Where workers are processes, process
    /// 0 alone writes and has the tables.
    pub(crate) fn run(&self, progress: &Arc<dyn Progress>) -> Result<Summary, RunError> {
        let started = Instant::now();
        let mut preparation = Preparation::new(self.registry, self.base.clone())
            .with_timeline(self.trace_epochs)
            .on(self.engine.clone());
        let program = super::manifest::program().map_err(RunError::Program)?;
        let mut manifest = Manifest::new(
            &program,
            self.experiment,
            &self.base,
            &self.command,
            &self.engine,
        );
        let Prepared {
            jobs,
            skipped,
            lock: _lock,
            ..
        } = self.engine.agree(
            self.prepare(&program, &mut preparation, &mut manifest),
            |prepared| prepared.digest.clone(),
            RunError::is_input,
        )?;

        if self.engine.leads()
            && let Some(note) = folder::make_way(&self.out, &self.drawn, self.resume)?
        {
            progress.note(&note);
        }
        let runs: usize = jobs.iter().map(|job| job.runs.len()).sum();
        progress.begin(runs, jobs.iter().map(Job::epochs_to_run).sum());
        for note in skipped.iter().cloned().chain(manifest.data()) {
            progress.note(&note);
        }

        let mut outlook = trial::outlook(&self.engine, &mut preparation, &jobs, progress);
        let mut watch = Watch::start();
        let mut tables = Tables::default();
        let mut model = Duration::ZERO;
        let mut failures = Vec::new();
        let mut pace = Pace::start();
        let all = jobs.iter().flat_map(|job| {
            let runs = job.runs.iter().enumerate();
            runs.map(move |(place, run)| (job, place, run))
        });
        for (number, (job, place, run)) in all.enumerate() {
            let begun = Instant::now();
            let ended = self.rows_of(&mut preparation, job, run, &mut watch, progress);
            let took = (!run.kept).then(|| begun.elapsed());
            if let Some(left) = outlook.ended(took) {
                progress.outlook(left);
            }
            let mut failure = None;
            match ended {
                Ok((mut rows, spent)) => {
                    if place > 0 {
                        // The table has the first seed's alone; every trace is a file of its own.
                        rows.timeline.clear();
                    }
                    tables.append(rows);
                    model += spent;
                }
                Err((row, error)) => {
                    tables.runs.extend(row.map(|row| *row));
                    failure = Some(RunError::Failed {
                        cell: job.cell.name.clone(),
                        seed: run.seed,
                        source: Box::new(error),
                    });
                }
            }
            if let Some(row) = tables.runs.last() {
                progress.finished(&Finished {
                    row,
                    number: number + 1,
                    of: runs,
                    kept: run.kept,
                });
            }
            let cell_ended = place + 1 == job.runs.len();
            let goes_on = failure
                .as_ref()
                .is_none_or(|error| self.goes_on_after(error));
            if !goes_on || (!run.kept && pace.is_due(cell_ended)) {
                pace.time(|| self.write(&tables, &manifest, started, model, &skipped, false))?;
            }
            match failure {
                Some(failure) if !goes_on => return Err(failure),
                failure => failures.extend(failure),
            }
        }
        tables.claims = self.claims(&tables.runs);
        let notes = [skipped, parts_of_their_own(&jobs), self.notes(&tables)].concat();
        self.write(&tables, &manifest, started, model, &notes, true)?;
        if self.engine.leads() && !self.resume {
            self.forget_all_but(&jobs)?;
        }
        Ok(Summary {
            tables,
            elapsed: started.elapsed(),
            model,
            notes,
            failures,
        })
    }

    /// Removes the finished runs of other settings and other programs.
    fn forget_all_but(&self, jobs: &[Job<'_>]) -> Result<(), RunError> {
        let runs = jobs.iter().flat_map(|job| &job.runs);
        let addresses: Vec<Address> = runs.map(|run| run.address.clone()).collect();
        Archive::of(&self.out)
            .keep_only(&addresses)
            .map_err(RunError::folder(&self.out))
    }

    /// What a reader of these tables should see beside the figures.
    fn notes(&self, tables: &Tables) -> Vec<String> {
        let mut notes = self.cautions();
        if let Some(processes) = self.engine.processes() {
            notes.push(format!(
                "trained on {processes} processes over MPI: what is called simulated time here is measured on the workers' clocks"
            ));
        }
        notes.extend(super::manifest::notes(&tables.runs));
        notes
    }

    /// Everything that can be wrong with the input shows here, and the folder for results is there
    /// afterwards.
    fn prepare<'a>(
        &'a self,
        program: &str,
        preparation: &mut Preparation<'_>,
        manifest: &mut Manifest,
    ) -> Result<Prepared<'a>, RunError> {
        if self.engine.leads() {
            folder::free(&self.out, &self.experiment.name)?;
        }
        let input = |error: Error| RunError::Input(Box::new(error));
        let mut jobs = Vec::new();
        let mut digest = Sha256::new_with_prefix(self.experiment.resolved().to_string());
        let (cells, skipped) = preparation.present(self.experiment).map_err(input)?;
        let mut addresser = Addresser::new(program, &self.experiment.name, self.trace_epochs);
        let archive = Archive::of(&self.out);
        let mut names = RunNames::default();
        for cell in cells {
            let mut runs = Vec::new();
            let (mut method, mut epochs) = (cell.settings.partition.method, 0);
            let mut together = false;
            for &seed in &self.experiment.seeds {
                let fitted = preparation.fit(cell, seed).map_err(input)?;
                let setting = fitted.setting;
                (method, epochs) = (fitted.needs.partition.method, fitted.training.epochs());
                together = fitted.needs.together;
                manifest.describe(&setting);
                digest.update(setting.dataset.graph.edges().to_le_bytes());
                absorb_partition(&mut digest, &setting);
                let address = addresser.of(cell, &setting, epochs);
                let trace = self
                    .out
                    .join(TRACES)
                    .join(names.name(&cell.name, seed, "json"));
                let kept = self.resume
                    && (self.trace_epochs == 0 || trace.exists())
                    && archive.get(&address, &cell.name, seed).is_some();
                digest.update([u8::from(kept)]);
                runs.push(Planned {
                    seed,
                    address,
                    trace,
                    kept,
                });
            }
            jobs.push(Job {
                cell,
                method,
                epochs,
                together,
                runs,
            });
        }
        let leads = self.engine.leads();
        let lock = leads.then(|| folder::occupy(&self.out)).transpose()?;
        Ok(Prepared {
            jobs,
            skipped,
            digest: digest.finalize().to_vec(),
            lock,
        })
    }

    /// Why verdicts say little or nothing: too few seeds, or a size that only shows that everything
    /// runs.
    fn cautions(&self) -> Vec<String> {
        let experiment = self.experiment;
        let (seeds, needed) = (experiment.seeds.len(), experiment.statistics.minimum_seeds);
        let mut cautions = Vec::new();
        if !experiment.claims.is_empty() && seeds < needed {
            cautions.push(format!(
                "a verdict needs {needed} seeds and there are {seeds}: claims are inconclusive (statistics.minimum_seeds changes that)"
            ));
        }
        if experiment.scale == "smoke" {
            let caution =
                "size smoke shows that the experiment runs; its numbers and verdicts mean nothing";
            cautions.push(caution.to_owned());
        }
        cautions
    }

    fn claims(&self, runs: &[RunRow]) -> Vec<ClaimRow> {
        judge(&self.experiment.claims, runs, &self.experiment.statistics)
    }

    fn write(
        &self,
        tables: &Tables,
        manifest: &Manifest,
        started: Instant,
        model: Duration,
        notes: &[String],
        complete: bool,
    ) -> Result<(), RunError> {
        if !self.engine.leads() {
            return Ok(());
        }
        tables.write(&self.out)?;
        manifest
            .write(&self.out, started.elapsed(), model, notes, complete)
            .map_err(RunError::folder(&self.out))
    }

    /// Whether the other runs go on after a failure. Where one result cannot be written, none can.
    fn goes_on_after(&self, failure: &RunError) -> bool {
        let unwritten =
            matches!(failure, RunError::Failed { source, .. } if matches!(**source, Error::Run(_)));
        self.keep_going && !unwritten
    }

    /// The rows of a run, out of the archive or, if it is not there, by running it.
    fn rows_of(
        &self,
        preparation: &mut Preparation<'_>,
        job: &Job<'_>,
        run: &Planned,
        watch: &mut Watch,
        progress: &Arc<dyn Progress>,
    ) -> Result<Ended, Failing> {
        let archive = Archive::of(&self.out);
        match run
            .kept
            .then(|| archive.get(&run.address, &job.cell.name, run.seed))
            .flatten()
        {
            Some(rows) => Ok((rows, Duration::ZERO)),
            None => self.one(preparation, job, run, watch, progress),
        }
    }

    /// One cell and seed. Returns its rows, which are in the archive then, and the time spent
    /// inside model computation.
    ///
    /// # Errors
    /// See [`Failing`].
    fn one(
        &self,
        preparation: &mut Preparation<'_>,
        job: &Job<'_>,
        run: &Planned,
        watch: &mut Watch,
        progress: &Arc<dyn Progress>,
    ) -> Result<Ended, Failing> {
        let seed = run.seed;
        let fitted = preparation
            .fit(job.cell, seed)
            .map_err(|error| (None, error))?;
        let setting = &fitted.setting;
        let rows = RowMaker {
            experiment: &self.experiment.name,
            cell: job.cell,
            fitted: &fitted,
        };
        let observer: Observer = {
            let (progress, cell) = (Arc::clone(progress), job.cell.name.clone());
            Arc::new(move |record| progress.epoch(&cell, seed, record))
        };
        let together = fitted.needs.together;
        let measured = !setting.models_compute() && setting.engine.processes().is_none();
        if measured {
            watch.begin();
        }
        let outcome = strategies::run(&*fitted.training, together, observer);
        let seen = if measured {
            watch.end()
        } else {
            Seen::default()
        };
        if !self.engine.leads() {
            return outcome
                .map(|outcome| (Tables::default(), outcome.model))
                .map_err(|error| (None, error.into()));
        }
        let outcome =
            outcome.map_err(|error| (Some(Box::new(rows.failed(&error))), error.into()))?;
        let epochs = rows.epochs(&outcome);
        let mut row = rows.run(&outcome, &epochs);
        if let Some(measured) = &mut row.measured {
            seen.note_in(measured);
        }
        let mut tables = Tables {
            runs: vec![row],
            epochs,
            traffic: rows.traffic(&outcome),
            decisions: rows.decisions(&outcome),
            ..Tables::default()
        };
        let unwritten = |path: &Path, source| (None, RunError::folder(path)(source).into());
        if self.trace_epochs > 0 {
            let text = chrome_trace(&outcome.timeline, &setting.topology);
            atomic::write_bytes(&run.trace, text.as_bytes())
                .map_err(|source| unwritten(&run.trace, source))?;
            tables.timeline = rows.timeline(&outcome);
        }
        // Last, so that what is in the archive is there with all that belongs to it.
        let archive = Archive::of(&self.out);
        archive
            .put(&run.address, &tables)
            .map_err(|source| unwritten(&archive.path(&run.address), source))?;
        Ok((tables, outcome.model))
    }
}
