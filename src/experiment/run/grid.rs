//! What is to be run: cells and seeds, fitted once so that wrong input shows before anything is
//! trained.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::experiment::TRACES;
use crate::experiment::archive::{Address, Addresser, Archive, absorb_what_files_say};
use crate::experiment::config::{Cell, Experiment};
use crate::experiment::error::Error;
use crate::experiment::manifest::Manifest;
use crate::experiment::part::Share;
use crate::experiment::prepare::{Preparation, data_turns};
use crate::experiment::rows::distinct;
use crate::experiment::trace::RunNames;
use crate::experiment::uneven::note_on_steps;
use crate::graph::PartitionMethod;

/// One cell.
pub(super) struct Job<'a> {
    pub cell: &'a Cell,
    /// How its parts are made.
    pub method: PartitionMethod,
    /// Steps an epoch of parts that are unequal, and of equal ones.
    pub steps: Option<[usize; 2]>,
    pub epochs: usize,
    /// What the strategy says of how it goes with the cell's setting.
    pub notes: Vec<String>,
    /// Whether one program plays all workers.
    pub together: bool,
    /// Whether its compute is measured, and not modelled.
    pub measured: bool,
    /// One for each seed.
    pub runs: Vec<Planned>,
}

impl Job<'_> {
    /// Epochs of all runs that have not finished before.
    pub(super) fn epochs_to_run(&self) -> usize {
        self.epochs * self.runs.iter().filter(|run| !run.kept).count()
    }
}

/// One run that is to be there in the end.
pub(super) struct Planned {
    pub seed: u64,
    /// The place of its seed among all of the experiment.
    pub place: usize,
    pub(crate) address: Address,
    /// Where its trace goes, if it leaves one.
    pub trace: PathBuf,
    /// Whether it has finished before.
    pub kept: bool,
}

/// Plans the runs of an experiment for one result folder.
pub(super) struct Grid<'a> {
    experiment: &'a Experiment,
    out: &'a Path,
    share: Option<Share>,
    /// Epochs that leave a trace.
    traced: usize,
    resume: bool,
    addresser: Addresser,
    names: RunNames,
    /// What tells what was planned from anything else that could have been.
    digest: Sha256,
    /// Runs that were asked for so far, of this share or not.
    asked: usize,
}

impl<'a> Grid<'a> {
    /// Of an experiment that this `program` runs into `out`.
    pub(super) fn new(
        experiment: &'a Experiment,
        program: &str,
        (out, resume): (&'a Path, bool),
        share: Option<Share>,
        traced: usize,
    ) -> Self {
        Self {
            experiment,
            out,
            share,
            traced,
            resume,
            addresser: Addresser::new(program, &experiment.name, traced),
            names: RunNames::default(),
            digest: Sha256::new_with_prefix(experiment.resolved().to_string()),
            asked: 0,
        }
    }

    /// The first seeds of all cells, as far as they are in the share, and notes of cells whose data
    /// are not there.
    ///
    /// # Errors
    /// Wrong input, or a share of nothing.
    pub(super) fn first(
        &mut self,
        preparation: &mut Preparation<'_>,
        manifest: &mut Manifest,
    ) -> Result<(Vec<Job<'a>>, Vec<String>), Error> {
        let (cells, skipped) = preparation.present(self.experiment)?;
        for cell in &cells {
            // Those of seeds that claims may ask for hours later, too.
            for seed in self.experiment.all_seeds() {
                preparation.weights(cell, seed)?;
            }
        }
        let places: Vec<usize> = (0..self.experiment.seeds.len()).collect();
        let new = |cell: &'a Cell| Job {
            cell,
            method: cell.settings.partition.method,
            steps: None,
            epochs: 0,
            notes: Vec::new(),
            together: false,
            measured: false,
            runs: Vec::new(),
        };
        let mut jobs: Vec<Job<'a>> = cells.into_iter().map(new).collect();
        self.extend(jobs.iter_mut().collect(), &places, preparation, manifest)?;
        jobs.retain(|job| !job.runs.is_empty());
        match self.share {
            Some(share) if jobs.is_empty() => Err(share.of_nothing(self.asked)),
            _ => Ok((jobs, skipped)),
        }
    }

    /// Adds seeds, by their places, to cells.
    ///
    /// # Errors
    /// Wrong input.
    pub(super) fn extend(
        &mut self,
        mut jobs: Vec<&mut Job<'a>>,
        places: &[usize],
        preparation: &mut Preparation<'_>,
        manifest: &mut Manifest,
    ) -> Result<(), Error> {
        let mut asked = Vec::new();
        for (at, job) in jobs.iter().enumerate() {
            for &place in places {
                // Named also where another share has it, so that all parts call it alike.
                let seed = self.experiment.seed(place);
                let trace = self.names.name(&job.cell.name, seed, "json");
                let number = self.asked;
                self.asked += 1;
                if self.share.is_none_or(|share| share.has(number)) {
                    asked.push((at, place, trace));
                }
            }
        }
        let turns = data_turns(jobs.iter().map(|job| job.cell));
        asked.sort_by_key(|&(at, place, _)| (turns[at], place));
        for (at, place, trace) in asked {
            let run = self.plan(jobs[at], (place, &trace), preparation, manifest)?;
            jobs[at].runs.push(run);
        }
        Ok(())
    }

    /// The run of a cell with the seed at a place, fitted once.
    ///
    /// # Errors
    /// Wrong input.
    fn plan(
        &mut self,
        job: &mut Job<'a>,
        (place, trace): (usize, &str),
        preparation: &mut Preparation<'_>,
        manifest: &mut Manifest,
    ) -> Result<Planned, Error> {
        let seed = self.experiment.seed(place);
        preparation.turn_to(&job.cell.settings.dataset, seed);
        let fitted = preparation.fit(job.cell, seed)?;
        job.steps = job.steps.max(fitted.uneven_steps(job.cell));
        if job.notes.is_empty() {
            job.notes = fitted.training.notes();
        }
        let setting = fitted.setting;
        (job.method, job.epochs) = (fitted.needs.partition.method, fitted.training.epochs());
        job.together = fitted.needs.together;
        job.measured = !setting.models_compute();
        manifest.describe(&job.cell.settings.dataset, &setting);
        self.digest.update(setting.counts.edges.to_le_bytes());
        absorb_what_files_say(&mut self.digest, &setting);
        let address = self.addresser.of(job.cell, &setting, job.epochs);
        let trace = self.out.join(TRACES).join(trace);
        let kept = self.resume
            && (self.traced == 0 || trace.exists())
            && Archive::of(self.out)
                .get(&address, &job.cell.name, seed)
                .is_some();
        self.digest.update([u8::from(kept)]);
        Ok(Planned {
            seed,
            place,
            address,
            trace,
            kept,
        })
    }

    /// The digest of all that was planned.
    pub(super) fn digest(&self) -> Vec<u8> {
        self.digest.clone().finalize().to_vec()
    }
}

/// What has to be said of parts, of other ones than [partition] asks for and of unequal ones, and
/// of strategies in their settings.
pub(super) fn notes(jobs: &[Job<'_>]) -> Vec<String> {
    let steps = jobs
        .iter()
        .map(|job| (job.cell.strategy.label.as_str(), job.steps));
    let all = parts_of_their_own(jobs).into_iter();
    let own = jobs.iter().flat_map(|job| {
        let said = |note| format!("{}: {note}", job.cell.strategy.label);
        job.notes.iter().map(said)
    });
    // The same of every setting of a sweep, mostly.
    let own = distinct(own);
    all.chain(note_on_steps(steps)).chain(own).collect()
}

/// Which strategies train on other parts than [partition] asks for.
fn parts_of_their_own(jobs: &[Job<'_>]) -> Option<String> {
    let differ = jobs.iter().filter(|job| {
        let settings = &job.cell.settings;
        let asked = &settings.partition;
        // Those of shards are what they are.
        settings.dataset.shards.is_none() && asked.workers > 1 && job.method != asked.method
    });
    let labels = distinct(differ.map(|job| job.cell.strategy.label.as_str())).join(", ");
    (!labels.is_empty())
        .then(|| {
            format!(
                "{labels}: trained on parts of the strategy's own choice, not on those of [partition]; `partitioner` in runs.csv says on which"
            )
        })
}
