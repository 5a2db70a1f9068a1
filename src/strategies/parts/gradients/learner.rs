//! The steps of one worker's model, and when and how they are shared.

use std::ops::Range;

use burn::module::Module;

use super::sum::{Round, Sum};
use super::{Average, Gradients, kinds};
use crate::model::{Optimizer, Work, parameter_shapes, parameters, with_parameters};
use crate::net::TrafficKind;
use crate::sim::{Activity, Restoring, Saved, Saving, Setting, SimError, Track, Worker};

/// Takes the steps of a worker's model, which learns with those of the others: by the sum of
/// everybody's gradients, or as the mean of everybody's models.
///
/// The loss is a mean over the training nodes of all workers, so gradients are summed. A worker
/// that steps by itself (`average = "models"`) takes its own gradient times the number of workers
/// for it: with plain SGD and a sum after every step, the mean of models is then what the sum of
/// gradients makes of them.
pub struct Learner<M> {
    optimizer: Optimizer,
    gradients: Gradients,
    sum: Box<dyn Sum>,
    workers: usize,
    /// Steps of the whole training, and those taken.
    steps: usize,
    taken: usize,
    /// Sums so far.
    summed: u64,
    /// Gradients since the last sum, and of how many steps.
    held: Option<(Vec<f32>, usize)>,
    /// The last mean of all models, where workers step by themselves.
    agreed: Option<M>,
}

impl<M: Module> Learner<M> {
    /// One that takes these steps of a training, from a model that is the same on all workers; no
    /// draw of steps before them is made again.
    pub fn new(worker: &Worker, gradients: Gradients, model: &M, steps: Range<usize>) -> Self {
        let shapes = parameter_shapes(model);
        let len = shapes.iter().map(|shape| shape.iter().product::<usize>());
        let (workers, seed) = (worker.size(), worker.setting().seed);
        let sum = kinds::new(&gradients, workers, seed, len.sum(), || shapes);
        let agrees = gradients.average == Average::Models;
        Self {
            agreed: agrees.then(|| model.clone()),
            optimizer: worker.new_optimizer(),
            gradients,
            sum,
            workers,
            steps: steps.len(),
            taken: 0,
            summed: steps.start as u64,
            held: None,
        }
    }

    /// The model that is the same on all workers: `model`, with which this worker goes on, or the
    /// last mean, where workers step by themselves.
    pub(crate) fn agreed<'a>(&'a self, model: &'a M) -> &'a M {
        self.agreed.as_ref().unwrap_or(model)
    }

    /// The model after a step with the gradient of this worker.
    ///
    /// # Errors
    /// If communication fails.
    pub fn step(
        &mut self,
        worker: &mut Worker,
        model: M,
        gradient: Vec<f32>,
    ) -> Result<M, SimError> {
        let sums = self.gradients.sums_after(self.taken, self.steps);
        self.taken += 1;
        match self.gradients.average {
            Average::Gradients => {
                let gradient = self.held(worker, gradient);
                if !sums {
                    self.held = Some(gradient);
                    return Ok(model);
                }
                let (mut gradient, steps) = gradient;
                if self.gradients.every > 1 {
                    // Before the sum: what a codec leaves out is fed back to a sum that may be of
                    // another number of steps.
                    divide(&mut gradient, steps);
                }
                let gradient = self.sum(worker, gradient, TrafficKind::ParameterGradient)?;
                Ok(self.update(worker, model, &gradient))
            }
            Average::Models => {
                let (mut gradient, workers) = (gradient, self.workers as f32);
                for value in &mut gradient {
                    *value *= workers;
                }
                let model = self.update(worker, model, &gradient);
                if sums {
                    return self.average(worker, model);
                }
                Ok(model)
            }
        }
    }

    /// The model after a step with a gradient that is the sum of all workers' already.
    pub fn update(&mut self, worker: &mut Worker, model: M, gradient: &[f32]) -> M {
        worker.update(&mut self.optimizer, model, gradient)
    }

    /// A gradient with those that wait for the next sum, and of how many steps they are.
    fn held(&mut self, worker: &mut Worker, mut gradient: Vec<f32>) -> (Vec<f32>, usize) {
        if self.gradients.every == 1 {
            return (gradient, 1);
        }
        let held = self.held.take();
        worker.compute(Activity::Exchange, |_| match held {
            None => (gradient, 1),
            Some((held, steps)) => {
                let pairs = gradient.iter_mut().zip(held);
                pairs.for_each(|(value, held)| *value += held);
                (gradient, steps + 1)
            }
        })
    }

    /// The mean of all models.
    fn average(&mut self, worker: &mut Worker, model: M) -> Result<M, SimError> {
        let before = parameters(self.agreed(&model));
        let change = worker.compute(Activity::Exchange, |_| {
            let mut change = parameters(&model);
            let pairs = change.iter_mut().zip(&before);
            pairs.for_each(|(value, before)| *value -= before);
            change
        });
        let mut change = self.sum(worker, change, TrafficKind::Parameter)?;
        let model = worker.compute(Activity::Exchange, |_| {
            divide(&mut change, self.workers);
            let pairs = change.iter_mut().zip(&before);
            pairs.for_each(|(value, before)| *value += before);
            with_parameters(model, &change)
        });
        self.agreed = Some(model.clone());
        Ok(model)
    }

    fn sum(
        &mut self,
        worker: &mut Worker,
        values: Vec<f32>,
        kind: TrafficKind,
    ) -> Result<Vec<f32>, SimError> {
        let number = self.summed;
        self.summed += 1;
        self.sum.sum(worker, values, Round { number, kind })
    }
}

impl<M: Module> Saved for Learner<M> {
    fn save(&self, into: &mut Saving) {
        into.put(&(self.taken, self.summed));
        into.put(&self.optimizer.memory());
        into.lists(self.sum.memory());
        into.put(&self.held.as_ref().map(|(_, steps)| *steps));
        let (held, _) = self.held.clone().unwrap_or_default();
        into.floats(&held);
        if let Some(agreed) = &self.agreed {
            into.model(agreed);
        }
    }

    fn restore(&mut self, from: &mut Restoring<'_>) -> Result<(), SimError> {
        (self.taken, self.summed) = from.saved().take()?;
        let memory = from.saved().take()?;
        self.optimizer
            .remember(memory, &from.worker().place().device);
        self.sum.remember(from.saved().lists()?);
        let steps: Option<usize> = from.saved().take()?;
        let held = from.saved().floats()?;
        self.held = steps.map(|steps| (held, steps));
        let agreed = self.agreed.take();
        self.agreed = agreed.map(|agreed| from.model(agreed)).transpose()?;
        Ok(())
    }
}

fn divide(values: &mut [f32], by: usize) {
    let by = by as f32;
    for value in values {
        *value /= by;
    }
}

/// What a [`Learner`] does.
pub struct LearnerPlan {
    gradients: Gradients,
    sum: Box<dyn Sum>,
    /// Values of a gradient.
    parameters: usize,
    steps: usize,
}

impl LearnerPlan {
    /// Of a model with so many parameters that takes so many steps; `shapes` are asked for where
    /// matrices are told from vectors.
    pub fn new(
        gradients: Gradients,
        setting: &Setting,
        [parameters, steps]: [usize; 2],
        shapes: impl FnOnce() -> Vec<Vec<usize>>,
    ) -> Self {
        let sum = kinds::new(
            &gradients,
            setting.workers(),
            setting.seed,
            parameters,
            shapes,
        );
        Self {
            gradients,
            sum,
            parameters,
            steps,
        }
    }

    /// Of the experiment's model.
    pub(crate) fn of_model(gradients: Gradients, setting: &Setting, steps: usize) -> Self {
        let sizes = [setting.model.parameters(), steps];
        Self::new(gradients, setting, sizes, || {
            let (model, seed) = (&setting.model, setting.seed);
            parameter_shapes(&crate::model::Gnn::new(model, seed, &setting.device()))
        })
    }

    /// Whether gradients or models are summed after a step, counted from the first of the training.
    pub(crate) fn sums_after(&self, step: usize) -> bool {
        self.gradients.sums_after(step, self.steps)
    }

    /// Whether all workers do the same with their gradients, each turned to its own place. Of plain
    /// sums this is known.
    pub(crate) fn is_equal(&self) -> bool {
        self.gradients.are_plain()
    }

    /// Values that it keeps from one step to the next beside model and optimiser: what its sum
    /// keeps, gradients that wait for the next one, and the mean of models that steps by itself
    /// start from.
    fn kept(&self) -> usize {
        let waits = match self.gradients.average {
            Average::Gradients => self.gradients.every > 1,
            Average::Models => true,
        };
        self.sum.kept() + if waits { self.parameters } else { 0 }
    }

    /// Writes down what worker `rank` does with its gradient of a step, counted from the first of
    /// the training.
    pub fn write(&self, track: &mut Track, rank: usize, step: usize) {
        track.learns_with(4 * self.kept() as u64);
        let sums = self.sums_after(step);
        let pass = || Work::pass(self.parameters);
        match self.gradients.average {
            Average::Gradients => {
                if self.gradients.every > 1 {
                    track.compute(pass());
                }
                if sums {
                    self.sum.plan(track, rank, TrafficKind::ParameterGradient);
                    track.update(self.parameters);
                }
            }
            Average::Models => {
                track.update(self.parameters);
                if sums {
                    track.compute(pass());
                    self.sum.plan(track, rank, TrafficKind::Parameter);
                    track.compute(pass());
                }
            }
        }
    }

    /// Writes down a step with a gradient that is the sum of all workers' already.
    pub(crate) fn write_update(&self, track: &mut Track) {
        track.update(self.parameters);
    }
}
