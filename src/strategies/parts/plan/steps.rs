//! What [`sum_steps`](super::super::sum_steps) does.

use std::sync::Arc;

use crate::net::TrafficKind;
use crate::sim::{Decision, Planner, Setting, Timeline, Track};

/// Plans epochs of steps that each end with a sum of all gradients: `step` writes down what a
/// worker does in one, and `before` what it does first in an epoch.
pub struct StepPlanner<S> {
    setting: Arc<Setting>,
    steps: usize,
    epoch: usize,
    step: S,
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
    pub const fn new(setting: Arc<Setting>, steps: usize, step: S) -> Self {
        Self {
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
        let parameters = self.setting.model.parameters();
        let mut tracks = vec![Track::default(); workers];
        for step in 0..self.steps {
            self.step.begin(self.epoch, step);
            for (rank, track) in tracks.iter_mut().enumerate() {
                self.step.write(track, rank);
                track.all_reduce(parameters, TrafficKind::ParameterGradient);
                track.update(parameters);
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
