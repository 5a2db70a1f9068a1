//! Runs an experiment, data set by data set and seed by seed, and writes what is there.

mod grid;
mod lanes;
mod one;
mod progress;
mod trial;
mod until;

use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::archive::{Address, Archive};
use super::claims::{judge, seeds_taken};
use super::collected::{Collected, Place};
use super::config::Experiment;
use super::error::Error;
use super::manifest::Manifest;
use super::noise::Watch;
use super::outlook::Outlook;
use super::pace::Pace;
use super::part::Share;
use super::prepare::Preparation;
use super::rows::{ClaimRow, RunRow};
use super::tables::Tables;
use super::{folder, sentences};
use crate::memory;
use crate::sim::{Engine, SimError};
use crate::strategies::Registry;
use grid::{Grid, Job, Planned};
use lanes::{Room, in_lanes};
use one::{Ended, Failing, Shared};
pub(crate) use progress::{Finished, Progress, Summary};

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
    pub(crate) trace_epochs: usize,
    /// Whether runs that have finished in the result folder are kept and not run again.
    pub resume: bool,
    /// Whether the other runs go on when one fails.
    pub(crate) keep_going: bool,
    /// How many runs train at the same time; more than one with modelled compute alone.
    pub jobs: usize,
    /// Which of the runs are done here; all if none.
    pub part: Option<Share>,
}

/// All that is to be run.
struct Prepared<'a> {
    jobs: Vec<Job<'a>>,
    skipped: Vec<String>,
    /// What tells it from anything else that could have been prepared.
    digest: Vec<u8>,
    /// Keeps other runs out of the result folder; where processes are workers, process 0 has it.
    lock: Option<File>,
}

/// What there is so far, and how it is written.
struct State<'a> {
    manifest: Manifest,
    notes: Vec<String>,
    started: Instant,
    collected: Collected,
    /// Time inside model computation.
    model: Duration,
    failures: Vec<(Place, Error)>,
    pace: Pace,
    outlook: Outlook,
    /// Runs that have ended, of how many.
    ended: usize,
    of: usize,
    progress: &'a Arc<dyn Progress>,
}

/// A run to be done: its cell by its place, the cell, and the run.
type Item<'a> = (usize, &'a Job<'a>, &'a Planned);

impl Runner<'_> {
    /// Prepares every cell, then trains each with every seed; tables and manifest are written with
    /// the first and the last seed of each cell, and after each run that takes long.
    ///
    /// # Errors
    /// Bad input is reported before anything is trained or written. A failing run ends the
    /// experiment once those that train beside it have ended; its row and everything before it are
    /// kept. Where workers are processes, process 0 alone writes and has the tables.
    pub(crate) fn run(&self, progress: &Arc<dyn Progress>) -> Result<Summary, Error> {
        let started = Instant::now();
        let mut preparation = Preparation::new(self.registry, self.base.clone());
        preparation.timeline_epochs = self.trace_epochs;
        preparation.engine = self.engine.clone();
        // Of one run at a time nobody asks what it holds.
        preparation.memory = self.jobs > 1;
        let program = super::manifest::program().map_err(Error::Program)?;
        let mut manifest = Manifest::new(
            &program,
            self.experiment,
            &self.base,
            &self.command,
            &self.engine,
            self.part,
        );
        let into = (self.out.as_path(), self.resume);
        let mut grid = Grid::new(
            self.experiment,
            &program,
            into,
            self.part,
            self.trace_epochs,
        );
        let Prepared {
            mut jobs,
            skipped,
            lock: _lock,
            ..
        } = self.engine.agree(
            self.prepare(&mut grid, &mut preparation, &mut manifest),
            |prepared| prepared.digest.clone(),
            Error::is_input,
        )?;

        if self.engine.leads()
            && let Some(note) = folder::make_way(&self.out, &self.drawn, self.resume)?
        {
            progress.note(&note);
        }
        let kept = jobs.iter().flat_map(|job| &job.runs).any(|run| run.kept);
        if self.engine.leads()
            && self.resume
            && !kept
            && let Some(note) = folder::none_kept(&self.out, manifest.fixed())
        {
            progress.note(&note);
        }
        let runs: usize = jobs.iter().map(|job| job.runs.len()).sum();
        progress.begin(runs, jobs.iter().map(Job::epochs_to_run).sum());
        for note in skipped.iter().cloned().chain(manifest.data()) {
            progress.note(&note);
        }

        let outlook = trial::outlook(&self.engine, &mut preparation, &jobs, progress);
        let mut state = State {
            manifest,
            notes: skipped,
            started,
            collected: Collected::default(),
            model: Duration::ZERO,
            failures: Vec::new(),
            pace: Pace::start(),
            outlook,
            ended: 0,
            of: runs,
            progress,
        };
        self.train_until_decided(&mut jobs, &mut grid, &mut preparation, &mut state)?;
        progress.end();
        state.failures.sort_by_key(|(place, _)| *place);
        let mut tables = std::mem::take(&mut state.collected).into_tables();
        tables.claims = self.claims(&tables.runs);
        let notes = &mut state.notes;
        notes.extend(grid::notes(&jobs));
        notes.extend(self.experiment.note_on_nvlink());
        notes.extend(self.experiment.note_on_server());
        notes.extend(self.notes(&tables));
        if self.part.is_none() {
            let (claims, sets) = (&self.experiment.claims, state.manifest.test_sets());
            notes.extend(sentences::on_claims(claims, &tables.runs, sets));
        }
        self.write(&state, &tables, true)?;
        if self.engine.leads() && !self.resume {
            self.forget_all_but(&jobs)?;
        }
        Ok(Summary {
            tables,
            elapsed: started.elapsed(),
            model: state.model,
            notes: state.notes,
            failures: (state.failures.into_iter())
                .map(|(_, failure)| failure)
                .collect(),
        })
    }

    /// Trains what is to be run, `jobs` at a time, and writes what is there as it comes.
    ///
    /// # Errors
    /// The first run that failed, unless the others go on; or a result cannot be written.
    fn train<'a>(
        &self,
        mut items: Vec<Item<'a>>,
        preparation: &mut Preparation<'_>,
        state: &mut State<'_>,
    ) -> Result<(), Error> {
        // What is there already comes first: tables that are written on the way have all of it.
        items.sort_by_key(|(.., run)| !run.kept);
        let cells = items.iter().map(|(cell, ..)| cell + 1).max();
        let mut left = vec![0_usize; cells.unwrap_or(0)];
        for (cell, ..) in &items {
            left[*cell] += 1;
        }
        let shared = Shared {
            preparation: Mutex::new(preparation),
            watch: Mutex::new(Watch::start()),
            room: Room::new(memory::free()),
            progress: state.progress,
        };
        let all = left.clone();
        let work = |item: Item<'a>| {
            let (_, job, run) = item;
            let begun = Instant::now();
            let ended = self.rows_of(&shared, job, run);
            (item, ended, (!run.kept).then(|| begun.elapsed()))
        };
        let mut failed = None;
        let stops = |(_, ended, _): &(_, Result<_, Failing>, _)| matches!(ended, Err((_, error)) if !self.goes_on_after(error));
        in_lanes(self.jobs, items, work, stops, |(item, ended, took)| {
            // The first of a cell, for those after it may take long; and the last.
            let marks = left[item.0] == all[item.0] || left[item.0] == 1;
            left[item.0] -= 1;
            if let Err(error) = self.take(state, item, ended, (took, marks)) {
                // What fails later, beside it, is not told: one message says enough.
                failed.get_or_insert(error);
            }
            failed.is_none()
        });
        failed.map_or(Ok(()), Err)
    }

    /// Takes in what came of a run, and writes where that is due.
    ///
    /// # Errors
    /// That of the run, unless the others go on after it; or a result cannot be written.
    fn take(
        &self,
        state: &mut State<'_>,
        (cell, job, run): Item<'_>,
        ended: Result<Ended, Failing>,
        (took, marks): (Option<Duration>, bool),
    ) -> Result<(), Error> {
        // Of a run that was kept nothing was to come.
        let left = match took {
            Some(_) => (state.outlook).ended(&job.cell.name, took.filter(|_| ended.is_ok())),
            None => state.outlook.left(),
        };
        if let Some(left) = left {
            state.progress.outlook(left / self.jobs as f64);
        }
        let goes_on =
            (ended.as_ref()).map_or_else(|(_, error)| self.goes_on_after(error), |_| true);
        let (rows, failure) = match ended {
            Ok((rows, spent)) => {
                state.model += spent;
                (rows, None)
            }
            Err((row, error)) => {
                let rows = Tables {
                    runs: row.map(|row| *row).into_iter().collect(),
                    ..Tables::default()
                };
                let failure = Error::Failed {
                    cell: job.cell.name.clone(),
                    seed: run.seed,
                    source: Box::new(error),
                };
                (rows, Some(failure))
            }
        };
        state.ended += 1;
        if let Some(row) = rows.runs.first() {
            state.progress.finished(&Finished {
                row,
                number: state.ended,
                of: state.of,
                kept: run.kept,
            });
        }
        state.collected.put((cell, run.place), rows);
        if !goes_on || (!run.kept && state.pace.is_due(marks)) {
            let begun = Instant::now();
            self.write(state, state.collected.tables(), false)?;
            state.pace = Pace::after(begun);
        }
        match failure {
            Some(failure) if !goes_on => Err(failure),
            failure => {
                let place = (cell, run.place);
                state
                    .failures
                    .extend(failure.map(|failure| (place, failure)));
                Ok(())
            }
        }
    }

    /// Removes the finished runs of other settings and other programs.
    fn forget_all_but(&self, jobs: &[Job<'_>]) -> Result<(), Error> {
        let runs = jobs.iter().flat_map(|job| &job.runs);
        let addresses: Vec<Address> = runs.map(|run| run.address.clone()).collect();
        Archive::of(&self.out)
            .keep_only(&addresses)
            .map_err(Error::folder(&self.out))
    }

    /// What a reader of these tables should see beside the figures.
    fn notes(&self, tables: &Tables) -> Vec<String> {
        let mut notes = cautions(self.experiment, self.part);
        if let Some(processes) = self.engine.processes() {
            notes.push(format!(
                "trained on {processes} processes over MPI: what is called simulated time here is measured on the workers' clocks"
            ));
        }
        let jobs = tables.runs.len().min(self.jobs);
        if jobs > 1 {
            notes.push(format!(
                "{jobs} runs trained at a time: measured_seconds and peak_memory_bytes are those of a run beside others"
            ));
        }
        let (claims, statistics) = (&self.experiment.claims, &self.experiment.statistics);
        if let Some(looks) = statistics.looks {
            notes.push(seeds_taken(claims, &tables.runs, statistics, looks));
        }
        notes.extend(sentences::of_results(tables, is_smoke(self.experiment)));
        notes
    }

    /// Everything that can be wrong with the input shows here, and the folder for results is there
    /// afterwards.
    fn prepare<'a>(
        &self,
        grid: &mut Grid<'a>,
        preparation: &mut Preparation<'_>,
        manifest: &mut Manifest,
    ) -> Result<Prepared<'a>, Error> {
        if self.engine.leads() {
            folder::free(&self.out, &self.experiment.name)?;
        }
        self.may_add_seeds()?;
        let (jobs, skipped) = grid.first(preparation, manifest)?;
        self.may_run_beside(&jobs)?;
        let leads = self.engine.leads();
        let lock = leads.then(|| folder::occupy(&self.out)).transpose()?;
        Ok(Prepared {
            jobs,
            skipped,
            digest: grid.digest(),
            lock,
        })
    }

    /// Whether runs do not disturb each other.
    fn may_run_beside(&self, jobs: &[Job<'_>]) -> Result<(), Error> {
        match jobs.iter().find(|job| job.measured) {
            Some(job) if self.jobs > 1 => Err(Error::from(SimError::Input(format!(
                "--jobs {}: compute of cell \"{}\" is measured, and runs beside each other would disturb each other's times; leave --jobs \
                 out, or let [compute] timing = {{ profile = \"…\" }} model compute",
                self.jobs, job.cell.name
            )))),
            _ => Ok(()),
        }
    }

    /// Verdicts; of a part none, for its runs are not all.
    fn claims(&self, runs: &[RunRow]) -> Vec<ClaimRow> {
        if self.part.is_some() {
            return Vec::new();
        }
        judge(&self.experiment.claims, runs, &self.experiment.statistics)
    }

    fn write(&self, state: &State<'_>, tables: &Tables, complete: bool) -> Result<(), Error> {
        if !self.engine.leads() {
            return Ok(());
        }
        tables.write(&self.out)?;
        let (elapsed, notes) = (state.started.elapsed(), &state.notes);
        (state.manifest)
            .write(&self.out, elapsed, state.model, notes, complete)
            .map_err(Error::folder(&self.out))
    }

    /// Whether the other runs go on after a failure. Where one result cannot be written, none can.
    const fn goes_on_after(&self, failure: &Error) -> bool {
        self.keep_going && !matches!(failure, Error::Tables(_))
    }
}

/// Why verdicts say little or nothing: a part alone has none, there are too few seeds, or a size
/// only shows that everything runs.
pub(super) fn cautions(experiment: &Experiment, part: Option<Share>) -> Vec<String> {
    let (seeds, needed) = (experiment.seeds.len(), experiment.statistics.minimum_seeds);
    let mut cautions = Vec::new();
    if let Some(part) = part {
        cautions.push(waits(part));
    } else if !experiment.claims.is_empty() && seeds < needed {
        cautions.push(format!(
            "a verdict needs {needed} seeds and this has {seeds}: claims are inconclusive (statistics.minimum_seeds changes that)"
        ));
    }
    if is_smoke(experiment) {
        cautions.push(OF_SMOKE.to_owned());
    }
    cautions
}

/// What is said of the size that only shows that everything runs.
pub(super) const OF_SMOKE: &str =
    "size smoke shows that the experiment runs; its numbers and verdicts mean nothing";

/// Whether an experiment is of that size.
fn is_smoke(experiment: &Experiment) -> bool {
    experiment.scale == "smoke"
}

/// What is said of a part.
pub(super) fn waits(part: Share) -> String {
    format!("part {part} of the runs: claims wait until `grapevine merge` has joined all parts")
}
