//! Seeds until the claims are decided.

use std::collections::BTreeSet;

use super::grid::{Grid, Job};
use super::{Runner, State};
use crate::experiment::claims::open_cells;
use crate::experiment::error::Error;
use crate::experiment::prepare::{Preparation, data_turns};
use crate::experiment::statistics::Looks;
use crate::sim::SimError;

impl Runner<'_> {
    /// Trains what is planned; where seeds are added until claims are decided, plans more for the
    /// cells of claims that are open, and trains these.
    ///
    /// # Errors
    /// As [`Self::train`], or if a seed that is added does not go with the data.
    pub(super) fn train_until_decided<'a>(
        &self,
        jobs: &mut [Job<'a>],
        grid: &mut Grid<'a>,
        preparation: &mut Preparation<'_>,
        state: &mut State<'_>,
    ) -> Result<(), Error> {
        let statistics = &self.experiment.statistics;
        let counts = statistics.looks.map(Looks::counts);
        let mut trained = vec![0; jobs.len()];
        for look in 0.. {
            let untrained = jobs.iter().enumerate().zip(&trained);
            let items = untrained.flat_map(|((cell, job), &from)| {
                job.runs[from..].iter().map(move |run| (cell, job, run))
            });
            let mut items: Vec<_> = items.collect();
            let turns = data_turns(jobs.iter().map(|job| job.cell));
            items.sort_by_key(|(cell, _, run)| (turns[*cell], run.place));
            self.train(items, preparation, state)?;
            trained = jobs.iter().map(|job| job.runs.len()).collect();
            let (Some(looks), Some(counts)) = (statistics.looks, &counts) else {
                return Ok(());
            };
            let (Some(&from), Some(&to)) = (counts.get(look), counts.get(look + 1)) else {
                return Ok(());
            };
            let runs = &state.collected.tables().runs;
            let open = open_cells(&self.experiment.claims, runs, statistics, looks, look);
            if open.is_empty() {
                return Ok(());
            }
            let places: Vec<usize> = (from..to).collect();
            let is_open = |job: &&mut Job<'a>| open.contains(&job.cell.name);
            let more = jobs.iter_mut().filter(is_open).collect();
            grid.extend(more, &places, preparation, &mut state.manifest)?;
            tell_more(jobs, &trained, (from, to, &open), state);
        }
        Ok(())
    }

    /// Whether seeds can be added here, where the file asks for that.
    pub(super) fn may_add_seeds(&self) -> Result<(), Error> {
        let refused = if self.experiment.statistics.looks.is_none() {
            return Ok(());
        } else if let Some(part) = self.part {
            format!(
                "--part {part}: `seeds` has `first` and `most`, and whether more are needed shows in the runs of all parts alone; \
                 give a list of seeds"
            )
        } else if self.engine.processes().is_some() {
            "`seeds` has `first` and `most`, which is for the simulated engine: over MPI one process alone sees the claims; give a list \
             of seeds"
                .to_owned()
        } else {
            return Ok(());
        };
        Err(Error::from(SimError::Input(refused)))
    }
}

/// Says what is to come after a look.
fn tell_more(
    jobs: &[Job<'_>],
    trained: &[usize],
    (from, to, open): (usize, usize, &BTreeSet<String>),
    state: &mut State<'_>,
) {
    let mut epochs = 0;
    for (job, &trained) in jobs.iter().zip(trained) {
        for run in &job.runs[trained..] {
            state.of += 1;
            if !run.kept {
                epochs += job.epochs;
                let label = &job.cell.strategy.label;
                state.outlook.add(&job.cell.name, label, job.epochs);
            }
        }
    }
    state.progress.note(&format!(
        "{from} seeds leave claims open: {} of {} cells go on to {to}",
        open.len(),
        jobs.len()
    ));
    state.progress.more(epochs);
}
