//! RETEXO between workers that hold parts of the graph: the program of one worker.

use std::sync::Arc;

use burn::module::Module;

use super::one_hop::{Best, OneHop, Reads};
use super::rounds::Rounds;
use super::sub_model::SubModel;
use super::workers_plan::WorkersPlanner;
use super::{Workers, initial};
use crate::graph::Steps;
use crate::model::{Aggregation, Dropout, Input, Matrix, ModelSpec, NamedParameter};
use crate::net::{CodingError, TrafficKind};
use crate::sim::{
    Activity, EpochReport, Inference, NodeRows, Planner, Scores, Setting, SimError, Worker,
};
use crate::strategies::Training;
use crate::strategies::parts::{Gradients, HaloExchange, Learner, LocalGraph, forward_error};

impl Training for Workers {
    fn setting(&self) -> &Arc<Setting> {
        &self.setting
    }

    fn epochs(&self) -> usize {
        self.rounds.first(self.setting.model.layers())
    }

    fn planner(&self) -> Box<dyn Planner> {
        Box::new(WorkersPlanner::new(self.clone()))
    }

    fn initial(&self) -> Vec<NamedParameter> {
        let (spec, seed) = (&self.setting.model, self.setting.seed);
        let device = self.setting.device();
        initial((0..spec.layers()).map(|k| SubModel::new(spec, k, seed, &device)))
    }

    fn train(&self, worker: &mut Worker) -> Result<(), SimError> {
        let spec = self.spec.clone();
        worker.trains(
            (0..spec.layers())
                .map(|k| SubModel::parameters(&spec, k))
                .sum(),
        );
        let aggregation = spec.aggregation();
        let mut run = Run {
            graph: LocalGraph::with_halo(worker),
            halo: HaloExchange::new(worker),
            dropout: worker.dropout(),
            aggregation,
            rounds: self.rounds.clone(),
            gradients: self.gradients,
            steps: worker.setting().steps(),
            frozen: None,
        };
        let state = self.wires.state();
        let mut representation: Option<Matrix> = None;
        for layer in 0..spec.layers() {
            let epoch = self.rounds.first(layer);
            // Rows are counted under the first round of the sub-model that reads them.
            worker.begin_epoch(epoch)?;
            let wire = self.wire(layer, &state);
            let input = match representation.take() {
                None => run.halo.features(worker, Some(&wire))?,
                Some(rows) => Input::Dense(run.halo.forward(worker, layer, rows, &wire)?),
            };
            let sent = Sent {
                ratio: self.wires.ratio(self.ratio(layer)),
                error: state
                    .gauge()
                    // Of a lossless codec there is no loss to measure.
                    .filter(|_| !wire.codec.is_lossless())
                    .map(|gauge| {
                        let errors = gauge.take();
                        worker.measured_errors(epoch, &errors, TrafficKind::Feature);
                        forward_error(&errors)
                    }),
            };
            let model = run.train_layer(worker, &spec, layer, &input, sent)?;
            if layer + 1 < spec.layers() {
                // This work is planned in the first round of the sub-model above, which reads the
                // result.
                worker.begin_epoch(self.rounds.first(layer + 1))?;
                representation = Some(worker.compute(Activity::Model, |worker| {
                    // Without a history for gradients: these never cross sub-models.
                    let rows = model.valid().representation(&run.graph.block, &input);
                    worker.wait_for(&rows);
                    rows
                }));
                // The sub-models above are evaluated on what this one makes of all nodes.
                run.freeze(worker, &model)?;
            }
        }
        Ok(())
    }
}

/// What became of the rows that a sub-model reads.
#[derive(Clone, Copy)]
struct Sent {
    ratio: Option<f64>,
    /// What was lost, if that was measured.
    error: Option<CodingError>,
}

/// One worker's training.
struct Run {
    graph: LocalGraph,
    halo: HaloExchange,
    dropout: Dropout,
    aggregation: Aggregation,
    rounds: Rounds,
    gradients: Gradients,
    steps: Steps,
    /// The input of the current sub-model for all nodes, for evaluation.
    frozen: Option<NodeRows>,
}

impl Run {
    /// Trains one sub-model on frozen inputs and returns it with its best parameters.
    fn train_layer(
        &mut self,
        worker: &mut Worker,
        spec: &ModelSpec,
        layer: usize,
        input: &Input,
        sent: Sent,
    ) -> Result<SubModel, SimError> {
        let mut model = SubModel::new(spec, layer, worker.setting().seed, &worker.device());
        let count = SubModel::parameters(spec, layer);
        let mut best = Best::default();
        // Made once: without mini-batches every step reads the same.
        let whole = Reads {
            block: self.graph.block.clone(),
            input: input.clone(),
            nodes: self.graph.nodes.clone(),
            targets: self.graph.targets.clone(),
        };
        let mut batches = OneHop::new(worker, layer, self.aggregation);
        let steps = self.steps.count();
        let rounds = self.rounds.of(layer);
        // Each sub-model has a fresh optimiser, as in the authors' code.
        let mut learner = Learner::new(worker, self.gradients, &model, rounds * steps);
        for round in 0..rounds {
            let epoch = self.rounds.first(layer) + round;
            worker.begin_epoch(epoch)?;
            let mut losses = 0.0;
            for step in 0..steps {
                let batch = batches.as_mut();
                let batch = batch.map(|all| all.step(worker, &self.steps, input, (epoch, step)));
                let reads = match &batch {
                    None => Some(&whole),
                    Some(batch) => batch.as_ref(),
                };
                // Each step has dropout masks of its own.
                let draws = (epoch * steps + step) as u64;
                let (gradient, loss) = match reads {
                    Some(reads) => self.gradient(worker, &model, (layer, count), reads, draws),
                    // A worker without nodes in this step takes part in the sum all the same.
                    None => (vec![0.0; count], 0.0),
                };
                model = learner.step(worker, model, gradient)?;
                losses += loss;
            }
            let loss = losses / steps as f64;

            let last = round + 1 == rounds;
            // After the last round at least, or a sub-model might have no best parameters.
            let agreed = learner.agreed(&model);
            let scores = if last || worker.evaluates(epoch) {
                Some(self.evaluate(worker, agreed)?)
            } else {
                None
            };
            best.see(scores, agreed);
            let scores = scores.filter(|_| layer + 1 == spec.layers());
            worker.end_epoch(
                epoch,
                EpochReport {
                    loss,
                    scores,
                    compression_ratio: sent.ratio,
                    // The rows crossed once, so their error is told once.
                    coding_error: sent.error.filter(|_| round == 0),
                    ..EpochReport::default()
                },
            );
        }
        Ok(best.of(model))
    }

    /// Gradient, flat, of `count` parameters, and loss of one step; `draws` numbers it for dropout.
    fn gradient(
        &self,
        worker: &mut Worker,
        model: &SubModel,
        (layer, count): (usize, usize),
        reads: &Reads,
        draws: u64,
    ) -> (Vec<f32>, f64) {
        let (block, input) = (&reads.block, &reads.input);
        let logits = worker.compute(Activity::Model, |worker| {
            let dropped = input.dropped(&self.dropout, draws, layer, &reads.nodes);
            let logits = model.logits(block, &dropped);
            worker.wait_for(&logits);
            logits
        });
        worker.compute(Activity::Model, |_| reads.gradient(model, logits, count))
    }

    /// On all workers, for each keeps the best of what it trains.
    fn evaluate(&self, worker: &mut Worker, model: &SubModel) -> Result<Scores, SimError> {
        let model = model.valid();
        let scores = worker.evaluate(&Inference {
            aggregation: self.aggregation,
            // The first sub-model reads the features of the graph as they are.
            from: self.frozen.as_ref(),
            layers: 1,
            layer: &|_, block, input| model.logits(block, input),
        })?;
        // All workers must keep the same parameters as the best, so all hear the scores.
        worker.share_scores(scores)
    }

    /// Carries the representations of all nodes through a trained sub-model, for evaluation.
    fn freeze(&mut self, worker: &mut Worker, model: &SubModel) -> Result<(), SimError> {
        let model = model.valid();
        self.frozen = Some(worker.infer(&Inference {
            aggregation: self.aggregation,
            from: self.frozen.as_ref(),
            layers: 1,
            layer: &|_, block, input| model.representation(block, input),
        })?);
        Ok(())
    }
}
