//! RETEXO between workers that hold parts of the graph: the program of one worker.

use std::sync::Arc;

use burn::module::Module;

use super::one_hop::{Best, OneHop, Reads};
use super::rounds::Rounds;
use super::sub_model::SubModel;
use super::workers_plan::WorkersPlanner;
use super::{Workers, initial, note_on_model};
use crate::graph::Steps;
use crate::model::{
    Activation, Aggregation, Dropout, Input, Matrix, ModelSpec, NamedParameter, NormKind,
    parameter_count, parameters, with_parameters,
};
use crate::net::{CodingError, TrafficKind};
use crate::sim::{
    Activity, EpochReport, Inference, NodeRows, Planner, Restoring, Saved, Saving, Scores, Setting,
    SimError, Worker,
};
use crate::strategies::parts::{
    CodecState, Gradients, HaloExchange, Learner, LocalGraph, Wire, forward_error,
};
use crate::strategies::{EpochKind, Training};

impl Training for Workers {
    fn setting(&self) -> &Arc<Setting> {
        &self.setting
    }

    fn epochs(&self) -> usize {
        self.rounds.first(self.setting.model.layers())
    }

    fn epoch_kind(&self) -> EpochKind {
        EpochKind::SubModel
    }

    fn notes(&self) -> Vec<String> {
        let model = &self.setting.model;
        let own = note_on_model(model, NormKind::Layer, Activation::Relu);
        // The least of any sub-model's.
        let rounds = (0..model.layers()).map(|layer| self.rounds.of(layer));
        let steps = rounds.min().unwrap_or(0) * self.setting.steps().count();
        let late = self.gradients.note(&self.setting, steps);
        own.into_iter().chain(late).collect()
    }

    fn planner(&self) -> Box<dyn Planner> {
        Box::new(WorkersPlanner::new(self.clone()))
    }

    fn initial(&self) -> Vec<NamedParameter> {
        let setting = &*self.setting;
        let (spec, device) = (&self.spec, setting.device());
        let drawn = |k| SubModel::new(spec, k, setting.seed, &device);
        initial((0..spec.layers()).map(|k| setting.with_given(k, drawn(k))))
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
            state: self.wires.state(),
            done: Vec::new(),
            frozen: None,
        };
        let mut resumed: Option<Stage> = None;
        worker.resume(|from| {
            resumed = Some(run.restore(from, &spec)?);
            Ok(())
        })?;
        let mut representation: Option<Matrix> = None;
        for layer in run.done.len()..spec.layers() {
            if let Some(mut stage) = resumed.take() {
                let ratio = self.wires.ratio(self.ratio(layer));
                // The error of rows that crossed before was told then.
                let sent = Sent { ratio, error: None };
                let model = run.train_layer(worker, &mut stage, sent)?;
                representation = run.hand_over(worker, &model, &stage.input)?;
                continue;
            }
            let epoch = self.rounds.first(layer);
            // Rows are counted under the first round of the sub-model that reads them.
            worker.begin_epoch(epoch)?;
            let wire = self.wire(layer, &run.state);
            let input = match representation.take() {
                None => run.features(worker, Some(&wire))?,
                Some(rows) => Input::Dense(run.halo.forward(worker, layer, rows, &wire)?),
            };
            let sent = Sent {
                ratio: self.wires.ratio(self.ratio(layer)),
                error: run
                    .state
                    .gauge()
                    // Of a lossless codec there is no loss to measure.
                    .filter(|_| !wire.codec.is_lossless())
                    .map(|gauge| {
                        let errors = gauge.take();
                        worker.measured_errors(epoch, &errors, TrafficKind::Feature);
                        forward_error(&errors)
                    }),
            };
            let mut stage = run.stage(worker, &spec, layer, input);
            let model = run.train_layer(worker, &mut stage, sent)?;
            representation = run.hand_over(worker, &model, &stage.input)?;
        }
        Ok(())
    }

    fn saves(&self) -> Result<(), String> {
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
    state: CodecState,
    /// Parameters of the sub-models that are trained.
    done: Vec<Vec<f32>>,
    /// The input of the current sub-model for all nodes, for evaluation.
    frozen: Option<NodeRows>,
}

/// A sub-model that is trained.
struct Stage {
    layer: usize,
    model: SubModel,
    learner: Learner<SubModel>,
    best: Best,
    /// Rounds that are over.
    over: usize,
    /// Frozen rows, own ones and the halo's.
    input: Input,
}

impl Run {
    /// A sub-model that is to be trained on frozen inputs.
    fn stage(&self, worker: &Worker, spec: &ModelSpec, layer: usize, input: Input) -> Stage {
        let drawn = SubModel::new(spec, layer, worker.setting().seed, &worker.device());
        let model = worker.setting().with_given(layer, drawn);
        let steps = self.steps.count();
        // Each sub-model has a fresh optimiser, as in the authors' `trainers/trainer.py`.
        let first = self.rounds.first(layer);
        let taken = first * steps..(first + self.rounds.of(layer)) * steps;
        Stage {
            layer,
            learner: Learner::new(worker, self.gradients, &model, taken),
            model,
            best: Best::default(),
            over: 0,
            input,
        }
    }

    /// What the first sub-model reads; it is sent once.
    fn features(&mut self, worker: &mut Worker, wire: Option<&Wire>) -> Result<Input, SimError> {
        let features = self.halo.features(worker, wire)?;
        self.halo.end_features();
        Ok(features)
    }

    /// Saves the stage, and what is behind it.
    fn save(&self, worker: &Worker, stage: &Stage, into: &mut Saving) {
        self.state.save(into);
        self.halo.save(worker, into);
        into.lists(self.done.iter().map(Vec::as_slice));
        into.put(&(stage.over, stage.input.width()));
        if stage.layer > 0 {
            into.floats(&stage.input.values_from(0));
        }
        into.model(&stage.model);
        stage.learner.save(into);
        stage.best.save(into);
    }

    /// The stage that was saved.
    fn restore(&mut self, from: &mut Restoring<'_>, spec: &ModelSpec) -> Result<Stage, SimError> {
        self.state.restore(from)?;
        let mut none = |_, _| Err(SimError::Strategy("no rows are late".to_owned()));
        self.halo.restore(from, &mut none)?;
        let done = from.saved().lists()?;
        let (seed, device) = (from.worker().setting().seed, from.worker().device());
        for (layer, values) in done.iter().enumerate() {
            let model = SubModel::new(spec, layer, seed, &device);
            self.freeze(from.worker(), &with_parameters(model, values))?;
        }
        let layer = done.len();
        self.done = done;
        let (over, width): (usize, usize) = from.saved().take()?;
        let input = if layer == 0 {
            self.features(from.worker(), None)?
        } else {
            let values = from.saved().floats()?;
            Input::Dense(Matrix::from_values(values, width, from.worker().place()))
        };
        let mut stage = self.stage(from.worker(), spec, layer, input);
        stage.over = over;
        stage.model = from.model(stage.model)?;
        stage.learner.restore(from)?;
        stage.best.restore(from)?;
        Ok(stage)
    }

    /// What the sub-model above reads of a trained one; nothing above the last.
    fn hand_over(
        &mut self,
        worker: &mut Worker,
        model: &SubModel,
        input: &Input,
    ) -> Result<Option<Matrix>, SimError> {
        self.done.push(parameters(model));
        let above = self.done.len();
        if above == worker.setting().model.layers() {
            return Ok(None);
        }
        // This work is planned in the first round of the sub-model above, which reads the result.
        worker.begin_epoch(self.rounds.first(above))?;
        let representation = worker.compute(Activity::Model, |worker| {
            // Without a history for gradients: these never cross sub-models.
            let rows = model.valid().representation(&self.graph.block, input);
            worker.wait_for(&rows);
            rows
        });
        // The sub-models above are evaluated on what this one makes of all nodes.
        self.freeze(worker, model)?;
        Ok(Some(representation))
    }

    /// Trains a sub-model, and returns it with its best parameters.
    fn train_layer(
        &mut self,
        worker: &mut Worker,
        stage: &mut Stage,
        sent: Sent,
    ) -> Result<SubModel, SimError> {
        let (layer, layers) = (stage.layer, worker.setting().model.layers());
        let count = parameter_count(&stage.model);
        // Made once: without mini-batches every step reads the same.
        let whole = Reads {
            block: self.graph.block.clone(),
            input: stage.input.clone(),
            nodes: self.graph.nodes.clone(),
            targets: self.graph.targets.clone(),
        };
        let mut batches = OneHop::new(worker, layer, self.aggregation);
        let steps = self.steps.count();
        let rounds = self.rounds.of(layer);
        for round in stage.over..rounds {
            let epoch = self.rounds.first(layer) + round;
            worker.begin_epoch(epoch)?;
            let mut losses = 0.0;
            for step in 0..steps {
                let batch = batches.as_mut();
                let input = &stage.input;
                let batch = batch.map(|all| all.step(worker, &self.steps, input, (epoch, step)));
                let reads = match &batch {
                    None => Some(&whole),
                    Some(batch) => batch.as_ref(),
                };
                // Each step has dropout masks of its own.
                let draws = (epoch * steps + step) as u64;
                let (gradient, loss) = match reads {
                    Some(reads) => {
                        self.gradient(worker, &stage.model, (layer, count), reads, draws)
                    }
                    // A worker without nodes in this step takes part in the sum all the same.
                    None => (vec![0.0; count], 0.0),
                };
                let model = stage.model.clone();
                stage.model = stage.learner.step(worker, model, gradient)?;
                losses += loss;
            }
            let loss = losses / steps as f64;

            let last = round + 1 == rounds;
            // After the last round at least, or a sub-model might have no best parameters.
            let agreed = stage.learner.agreed(&stage.model);
            let scores = if last || worker.evaluates(epoch) {
                Some(self.evaluate(worker, agreed)?)
            } else {
                None
            };
            stage.best.see(scores, agreed);
            let scores = scores.filter(|_| layer + 1 == layers);
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
            stage.over = round + 1;
            worker.checkpoint(epoch, |worker, into| self.save(worker, stage, into))?;
        }
        let best = std::mem::take(&mut stage.best);
        Ok(best.of(stage.model.clone()))
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
