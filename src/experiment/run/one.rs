//! One run, from a cell and a seed to its rows.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fs, io};

use super::grid::{Job, Planned};
use super::lanes::{Room, locked};
use super::{Progress, Runner};
use crate::atomic;
use crate::experiment::archive::Archive;
use crate::experiment::error::Error;
use crate::experiment::noise::Watch;
use crate::experiment::prepare::{Fitted, Preparation};
use crate::experiment::row_maker::RowMaker;
use crate::experiment::rows::RunRow;
use crate::experiment::tables::Tables;
use crate::experiment::trace::chrome_trace;
use crate::sim::{Checkpoints, Observer};
use crate::strategies;

/// The rows of a run, and the time spent inside model computation.
pub(super) type Ended = (Tables, Duration);

/// The row of a run that failed, if it came as far as to have one, and why it failed.
pub(super) type Failing = (Option<Box<RunRow>>, Error);

/// What runs share.
pub(super) struct Shared<'a, 'p> {
    pub preparation: Mutex<&'a mut Preparation<'p>>,
    /// Over the machine, while compute is measured; runs are then one at a time.
    pub watch: Mutex<Watch>,
    pub room: Room,
    pub progress: &'a Arc<dyn Progress>,
}

impl Runner<'_> {
    /// The rows of a run, out of the archive or, if it is not there, by running it.
    pub(super) fn rows_of(
        &self,
        shared: &Shared<'_, '_>,
        job: &Job<'_>,
        run: &Planned,
    ) -> Result<Ended, Failing> {
        let archive = Archive::of(&self.out);
        match run
            .kept
            .then(|| archive.get(&run.address, &job.cell.name, run.seed))
            .flatten()
        {
            Some(rows) => Ok((rows, Duration::ZERO)),
            None => self.one(shared, job, run),
        }
    }

    /// One cell and seed. Returns its rows, which are in the archive then, and the time spent
    /// inside model computation.
    ///
    /// # Errors
    /// See [`Failing`].
    fn one(&self, shared: &Shared<'_, '_>, job: &Job<'_>, run: &Planned) -> Result<Ended, Failing> {
        let seed = run.seed;
        let fitted = {
            let mut preparation = locked(&shared.preparation);
            preparation.turn_to(&job.cell.settings.dataset, seed);
            preparation
                .fit(job.cell, seed)
                .map_err(|error| (None, error))?
        };
        let setting = &fitted.setting;
        // Of one at a time nobody asks: planning an epoch takes time.
        let _room = (self.jobs > 1).then(|| shared.room.take(holds(&fitted)));
        let rows = RowMaker {
            experiment: &self.experiment.name,
            cell: job.cell,
            fitted: &fitted,
        };
        let observer: Observer = {
            let (progress, cell) = (Arc::clone(shared.progress), job.cell.name.clone());
            Arc::new(move |record| progress.epoch(&cell, seed, record))
        };
        let together = fitted.needs.together;
        let measured = !setting.models_compute() && setting.engine.processes().is_none();
        if measured {
            locked(&shared.watch).begin();
        }
        let checkpoints = self
            .checkpoints(shared, job, run)
            .map_err(|error| (None, error))?;
        let outcome = strategies::run_keeping(&*fitted.training, together, observer, checkpoints);
        let seen = measured.then(|| locked(&shared.watch).end());
        if !self.engine.leads() {
            return outcome
                .map(|outcome| (Tables::default(), outcome.model))
                .map_err(|error| (None, error.into()));
        }
        let outcome =
            outcome.map_err(|error| (Some(Box::new(rows.failed(&error))), error.into()))?;
        let epochs = rows.epochs(&outcome);
        let mut row = rows.run(&outcome, &epochs);
        if let (Some(row), Some(seen)) = (&mut row.measured, seen) {
            [row.load_before, row.load_during, row.calibration_spread] = seen;
        }
        let mut tables = Tables {
            runs: vec![row],
            epochs,
            traffic: rows.traffic(&outcome),
            decisions: rows.decisions(&outcome),
            ..Tables::default()
        };
        let unwritten = |path: &Path, source| (None, Error::folder(path)(source));
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
        // Nothing goes on from them any more, and what stays does no harm.
        let _ = fs::remove_dir_all(archive.checkpoints(&run.address));
        Ok((tables, outcome.model))
    }

    /// The checkpoints of a run, if it writes any; without those of an earlier one, unless it
    /// resumes that.
    ///
    /// # Errors
    /// If those of an earlier one cannot be removed.
    fn checkpoints(
        &self,
        shared: &Shared<'_, '_>,
        job: &Job<'_>,
        run: &Planned,
    ) -> Result<Option<Checkpoints>, Error> {
        let Some(every) = job.cell.settings.training.checkpoint_every else {
            return Ok(None);
        };
        let folder = Archive::of(&self.out).checkpoints(&run.address);
        // Of processes on other machines, each may have a folder of its own.
        if !self.resume
            && let Err(error) = fs::remove_dir_all(&folder)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(Error::folder(&folder)(error));
        }
        let (progress, cell, seed) = (Arc::clone(shared.progress), job.cell.name.clone(), run.seed);
        let note = move |note: &str| progress.note(&format!("\"{cell}\", seed {seed}: {note}"));
        Ok(Some(Checkpoints::new(folder, every, note)))
    }
}

/// Bytes that all workers of a run hold, by the plan of its first epoch: what `project` says of
/// each. Of strategies whose plan says nothing about that, what workers hold always.
fn holds(fitted: &Fitted) -> u64 {
    let timeline = fitted.training.planner().next(None);
    let held = (0..timeline.workers()).map(|rank| {
        let memory = timeline.memory(rank);
        fitted.setting.holds(rank, memory)
    });
    held.sum()
}
