//! The training loop of strategies whose epochs have steps of their own, with one sum of gradients
//! in each.

use super::{Gradients, Learner, Step};
use crate::model::Gnn;
use crate::sim::{EpochReport, Restoring, Saved, Saving, SimError, Worker};

/// What a worker does in the steps of a training with one sum of gradients in each.
pub trait Stepwise {
    /// This worker's loss and gradient, given the model, epoch and step.
    ///
    /// # Errors
    /// If communication fails.
    fn step(
        &mut self,
        worker: &mut Worker,
        model: &Gnn,
        epoch: usize,
        step: usize,
    ) -> Result<Step, SimError>;

    /// Waits for what is still under way after the last step. Default: nothing is.
    ///
    /// # Errors
    /// If communication fails.
    fn finish(&mut self, _worker: &mut Worker) -> Result<(), SimError> {
        Ok(())
    }

    /// What else there is to tell of an epoch. Default: nothing.
    fn report(&self, _worker: &Worker, _epoch: usize) -> EpochReport {
        EpochReport::default()
    }

    /// Saves what it remembers from one epoch to the next. Default: nothing.
    fn save(&self, _worker: &Worker, _into: &mut Saving) {}

    /// Takes back what was saved.
    ///
    /// # Errors
    /// If something else was.
    fn restore(&mut self, _from: &mut Restoring<'_>) -> Result<(), SimError> {
        Ok(())
    }
}

/// One that remembers nothing from one epoch to the next.
impl<F: FnMut(&mut Worker, &Gnn, usize, usize) -> Result<Step, SimError>> Stepwise for F {
    fn step(
        &mut self,
        worker: &mut Worker,
        model: &Gnn,
        epoch: usize,
        step: usize,
    ) -> Result<Step, SimError> {
        self(worker, model, epoch, step)
    }
}

/// Trains the experiment's model, in so many `steps` an epoch; gradients are summed as `gradients`
/// says.
///
/// # Errors
/// If communication or a step fails.
pub fn sum_steps(
    worker: &mut Worker,
    gradients: Gradients,
    steps: usize,
    program: &mut impl Stepwise,
) -> Result<(), SimError> {
    let mut model = worker.new_model();
    let mut learner = Learner::new(worker, gradients, &model, 0..worker.epochs() * steps);
    let begins = worker.resume(|from| {
        model = from.model(model.clone())?;
        learner.restore(from)?;
        program.restore(from)
    })?;
    for epoch in begins..worker.epochs() {
        worker.begin_epoch(epoch)?;
        let mut loss = 0.0;
        for at in 0..steps {
            let step = program.step(worker, &model, epoch, at)?;
            model = learner.step(worker, model, step.gradient)?;
            loss += step.loss;
        }
        if epoch + 1 == worker.epochs() {
            program.finish(worker)?;
        }
        let scores = worker.evaluate_model(epoch, learner.agreed(&model))?;
        let report = EpochReport {
            // Each step's loss is a mean by itself.
            loss: loss / steps as f64,
            scores,
            ..program.report(worker, epoch)
        };
        worker.end_epoch(epoch, report);
        worker.checkpoint(epoch, |worker, into| {
            into.model(&model);
            learner.save(into);
            program.save(worker, into);
        })?;
    }
    Ok(())
}
