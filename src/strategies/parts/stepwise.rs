//! The training loop of strategies whose epochs have steps of their own, with one sum of gradients
//! in each.

use super::{Gradients, Learner, Step};
use crate::model::Gnn;
use crate::sim::{EpochReport, SimError, Worker};

/// Trains the experiment's model: in each of the `steps` of an epoch, `step` gives this worker's
/// loss and gradient, given the model, epoch and step; gradients are summed as `gradients` says.
/// `report` says what else there is to tell of an epoch.
///
/// # Errors
/// If communication or a step fails.
pub fn sum_steps(
    worker: &mut Worker,
    gradients: Gradients,
    steps: usize,
    mut step: impl FnMut(&mut Worker, &Gnn, usize, usize) -> Result<Step, SimError>,
    report: impl Fn(&Worker, usize) -> EpochReport,
) -> Result<(), SimError> {
    let mut model = worker.new_model();
    let mut learner = Learner::new(worker, gradients, &model, worker.epochs() * steps);
    for epoch in 0..worker.epochs() {
        worker.begin_epoch(epoch)?;
        let mut loss = 0.0;
        for at in 0..steps {
            let step = step(worker, &model, epoch, at)?;
            model = learner.step(worker, model, step.gradient)?;
            loss += step.loss;
        }
        let scores = worker.evaluate_model(epoch, learner.agreed(&model))?;
        let report = EpochReport {
            // Each step's loss is a mean by itself.
            loss: loss / steps as f64,
            scores,
            ..report(worker, epoch)
        };
        worker.end_epoch(epoch, report);
    }
    Ok(())
}
