//! What [`sum_steps`](super::super::sum_steps) does.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::net::TrafficKind;
use crate::sim::{Decision, Planner, Setting, Stretch, Timeline, Track};

/// Plans epochs of steps that each end with a sum of all gradients: `step` writes down what a
/// worker does in one, and `before` what it does first in an epoch.
pub struct StepPlanner<S> {
    setting: Arc<Setting>,
    steps: usize,
    epoch: usize,
    step: S,
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
    pub const fn new(setting: Arc<Setting>, steps: usize, step: S) -> Self {
        Self {
            setting,
            steps,
            epoch: 0,
            step,
            known: BTreeMap::new(),
        }
    }

    /// The step of all workers that has begun.
    fn write(&self, tracks: &mut [Track]) {
        let parameters = self.setting.model.parameters();
        for (rank, track) in tracks.iter_mut().enumerate() {
            self.step.write(track, rank);
            track.all_reduce(parameters, TrafficKind::ParameterGradient);
            track.update(parameters);
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
            self.step.begin(epoch, step);
            let Some(kind) = self.step.kind() else {
                self.write(&mut unknown);
                continue;
            };
            let known = self.known.get(&kind).or_else(|| before.get(&kind));
            let workers = known.cloned().unwrap_or_else(|| {
                let mut tracks = none.clone();
                self.write(&mut tracks);
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
        self.step.are_equal().then(|| self.plan(1))
    }
}
