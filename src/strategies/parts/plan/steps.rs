//! What [`sum_steps`](super::super::sum_steps) does.

use std::sync::Arc;

use crate::sim::{Decision, Planner, Setting, Timeline, Track};
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
}

/// What the workers do in one step until they sum gradients.
pub trait PlannedSteps: Send {
    /// Looks at a step before its workers are asked about.
    fn begin(&mut self, epoch: usize, step: usize);
    /// Writes down what a worker does in it.
    fn write(&self, track: &mut Track, rank: usize);
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
        }
    }
}

impl<S: PlannedSteps> Planner for StepPlanner<S> {
    fn next(&mut self, _: Option<&Decision>) -> Arc<Timeline> {
        let workers = self.setting.workers();
        let mut tracks = vec![Track::default(); workers];
        for step in 0..self.steps {
            self.step.begin(self.epoch, step);
            for (rank, track) in tracks.iter_mut().enumerate() {
                self.step.write(track, rank);
                let taken = self.epoch * self.steps + step;
                self.learner.write(track, rank, taken);
            }
        }
        let epoch = self.epoch;
        self.epoch += 1;
        Arc::new(Timeline {
            epoch,
            workers: tracks.into(),
        })
    }
}
