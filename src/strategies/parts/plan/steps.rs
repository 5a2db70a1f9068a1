//! What [`sum_steps`](super::super::sum_steps) does.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::sim::{Decision, Planner, Setting, Stretch, Timeline, Track};
use crate::strategies::parts::Gradients;
use crate::strategies::parts::gradients::LearnerPlan;

/// Plans epochs of steps that end with a sum of gradients: `step` writes down what a worker does in
/// one before.
pub struct StepPlanner<S> {
    setting: Arc<Setting>,
    steps: usize,
    epoch: usize,
    step: S,
    learner: LearnerPlan,
    /// Steps of the last epoch that are known to be like others, by what tells them apart.
    known: BTreeMap<Vec<usize>, Arc<[Track]>>,
}

/// What the workers do in one step until they sum gradients.
pub trait PlannedSteps: Send {
    /// Looks at a step before its workers are asked about.
    fn begin(&mut self, epoch: usize, step: usize);
    /// Writes down what a worker does in it.
    fn write(&self, track: &mut Track, rank: usize);
    /// Steps with the same of these numbers are the same for every worker. Nothing where that is
    /// not known.
    fn kind(&self) -> Option<Vec<usize>> {
        None
    }
    /// Whether all workers do the same in all steps, each turned to its own place.
    fn are_equal(&self) -> bool {
        false
    }
}

impl<S: PlannedSteps> StepPlanner<S> {
    /// So many steps an epoch.
    pub fn new(setting: Arc<Setting>, gradients: Gradients, steps: usize, step: S) -> Self {
        let all = steps * setting.training.epochs;
        Self {
            learner: LearnerPlan::of_model(gradients, &setting, all),
            setting,
            steps,
            epoch: 0,
            step,
            known: BTreeMap::new(),
        }
    }

    /// The step of all workers that has begun, so many steps after the first of the training.
    fn write(&self, tracks: &mut [Track], taken: usize) {
        for (rank, track) in tracks.iter_mut().enumerate() {
            self.step.write(track, rank);
            self.learner.write(track, rank, taken);
        }
    }

    /// The next epoch of the first so many workers.
    fn plan(&mut self, workers: usize) -> Arc<Timeline> {
        let none = vec![Track::default(); workers];
        let epoch = self.epoch;
        self.epoch += 1;
        let before = std::mem::take(&mut self.known);
        let mut stretches: Vec<Stretch> = Vec::new();
        let mut unknown = none.clone();
        for step in 0..self.steps {
            let taken = epoch * self.steps + step;
            self.step.begin(epoch, step);
            let Some(mut kind) = self.step.kind() else {
                self.write(&mut unknown, taken);
                continue;
            };
            kind.push(usize::from(self.learner.sums_after(taken)));
            let known = self.known.get(&kind).or_else(|| before.get(&kind));
            let workers = known.cloned().unwrap_or_else(|| {
                let mut tracks = none.clone();
                self.write(&mut tracks, taken);
                tracks.into()
            });
            match stretches.last_mut() {
                Some(last) if Arc::ptr_eq(&last.workers, &workers) => last.times += 1,
                _ => stretches.push(Stretch::once(Arc::clone(&workers))),
            }
            self.known.insert(kind, workers);
        }
        // Of one step it is known, or of none.
        if stretches.is_empty() {
            stretches.push(Stretch::once(unknown));
        }
        Arc::new(Timeline { epoch, stretches })
    }
}

impl<S: PlannedSteps> Planner for StepPlanner<S> {
    fn next(&mut self, _: Option<&Decision>) -> Arc<Timeline> {
        self.plan(self.setting.workers())
    }

    fn next_of_equals(&mut self) -> Option<Arc<Timeline>> {
        let equal = self.step.are_equal() && self.learner.is_equal();
        equal.then(|| self.plan(1))
    }
}
