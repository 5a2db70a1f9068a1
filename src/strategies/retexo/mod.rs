//! `retexo`: lazy message passing (Kolluri, Choudhary, Hooi and Saxena, arXiv 2302.13053), in the two forms of the authors' code.
//!
//! # `form = "layers"`, between workers that hold parts of the graph
//!
//! The layers are trained one after another. Sub-model `k` reads frozen representations of layer `k`: their boundary rows are
//! exchanged *once*, before its `R` rounds of full-batch training begin; within the rounds only its parameter gradients travel. The parameters with the best
//! validation accuracy of the rounds that are evaluated (`training.evaluate_every`; in the authors' code all) are restored, the representations for the next sub-model computed, a fresh optimiser taken. Gradients never cross
//! sub-models. With `B` boundary rows over ordered pairs the whole training moves `4B Σ_{k<K} d_k` bytes of node data, whatever
//! `R` is, and `2(P − 1)·4 Σ_k R |θ_k|` bytes of gradients.
//!
//! The layers are the paper's whatever `[model]` says of `norm` and `residual`: layer normalisation in each but the last, no residual
//! connections. GAT averages its heads in every layer, and its attention weights are not dropped. The convolution of the authors' GCN leaves
//! a node's own row out: that is `model.self_loops = false`.
//!
//! Degrees are those of the whole graph, so the result does not depend on the partition. Every sub-model trains `R` epochs of the
//! result tables: `K·R` in all. Accuracies are reported from the last sub-model's epochs only, since before them there is no model of `K` layers.
//!
//! With a `codec` the rows that are exchanged are compressed, but for those that the last sub-model reads; with a `schedule`, at the ratio of the epoch
//! in which their sub-model begins.
//!
//! In mini-batches each sub-model draws neighbours one hop away, `fanouts[k]` in sub-model `k`, among its frozen inputs: nothing but
//! parameter gradients moves for it.
//!
//! # `form = "distributed"`, between clients that hold a node each
//!
//! `K + 1` sub-models, the first of which reads raw features, that never leave their client, and the others the class logits of the one
//! before; see [`distributed`].

pub mod distributed;
mod model;
mod one_hop;
mod perceptron;
mod rounds;

use burn::module::Module;
use serde::Deserialize;

use super::fixed::{MEASURE_ERROR, RESCALE};
use super::parts::compressed::{CODEC, RATIO, SCHEDULE};
use super::parts::{
    CodecState, Compression, HaloExchange, LocalGraph, Wire, forward_error, gradient_traffic, lane,
    pairs,
};
use super::{Context, OptionError, OptionInfo, Registration, Strategy, StrategyInfo, options};
use crate::graph::{BoundaryPlan, Steps};
use crate::model::{
    Aggregation, Block, Dropout, Input, LayerSpec, Matrix, ModelSpec, add_gradients, cross_entropy,
    parameters, with_parameters,
};
use crate::net::{CodingError, Reduce, Traffic, TrafficKind, Way};
use crate::sim::{Activity, EpochReport, Scores, Setting, SimError, Worker};

use one_hop::{OneHop, Reads};
use rounds::Rounds;

pub use model::SubModel;
pub use perceptron::Perceptron;

/// How experiments name and make it.
pub const REGISTRATION: Registration = Registration {
    info: StrategyInfo {
        name: "retexo",
        paper: "Kolluri, Choudhary, Hooi and Saxena, RETEXO: Scalable Neural Network Training over Distributed Graphs (arXiv 2302.13053)",
        sends: "boundary rows of each layer once in the whole training; parameter gradients of one layer at a time; between clients, class logits in place of representations",
        options: &[
            OptionInfo {
                name: "rounds_per_layer",
                default: "training.epochs",
                meaning: "Rounds R for which each sub-model is trained, or a list of R_k with one for each (the authors' code: 200).",
            },
            OptionInfo {
                name: "form",
                default: "\"layers\"",
                meaning: "layers: a sub-model per layer on parts of the graph (the authors' v3); distributed: K + 1 sub-models on class logits, for one client per node (their v1; `partition.workers` = nodes).",
            },
            CODEC,
            RATIO,
            SCHEDULE,
            RESCALE,
            MEASURE_ERROR,
        ],
    },
    build,
};

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Form {
    #[default]
    Layers,
    Distributed,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    rounds_per_layer: Option<Rounds>,
    #[serde(default)]
    form: Form,
}

struct Retexo {
    rounds: Rounds,
    form: Form,
    compression: Compression,
    context: Context,
}

fn build(table: &toml::Table, context: &Context) -> Result<Box<dyn Strategy>, OptionError> {
    let (compression, table) = Compression::on_request(table, context)?;
    let Options {
        rounds_per_layer,
        form,
    } = options(&table)?;
    let rounds = rounds_per_layer.unwrap_or(Rounds::Same(context.epochs));
    rounds.check()?;
    if compression.codec.is_some() && matches!(form, Form::Distributed) {
        let what = "is of rows between workers: clients send class logits, a few floats each; leave it out, or take form = \"layers\"";
        return Err(OptionError::key("codec", what));
    }
    if compression.remembers() {
        let what = "takes the difference from what was sent before, and every row is sent once: choose another";
        return Err(OptionError::key("codec", what));
    }
    if compression.is_adaptive() {
        let what = "looks at how the training goes, and every row is sent once: choose one that goes by the epoch";
        return Err(OptionError::key("schedule", what));
    }
    compression.check_layers(context)?;
    Ok(Box::new(Retexo {
        rounds,
        form,
        compression,
        context: *context,
    }))
}

impl Retexo {
    const fn sub_models(&self, layers: usize) -> usize {
        match self.form {
            Form::Layers => layers,
            Form::Distributed => layers + 1,
        }
    }

    fn epochs_of(&self, layers: usize) -> usize {
        self.rounds.first(self.sub_models(layers))
    }

    /// The compression ratio of the rows that sub-model `layer` reads.
    fn ratio(&self, layer: usize) -> f64 {
        let schedule = &self.compression.schedule;
        schedule.ratio(
            self.rounds.first(layer),
            self.epochs_of(self.context.layers),
            &[],
        )
    }

    /// How they travel.
    fn wire(&self, layer: usize, seed: u64, state: &CodecState) -> Wire {
        let round = self.rounds.first(layer) as u64;
        let (context, ratio) = (&self.context, self.ratio(layer));
        self.compression
            .wire(context, layer, ratio, (seed, round), state)
    }
}

impl Strategy for Retexo {
    fn trains_in_batches(&self) -> bool {
        true
    }

    fn epochs(&self, context: &Context) -> usize {
        self.epochs_of(context.layers)
    }

    fn layer(&self, model: &ModelSpec, layer: usize) -> LayerSpec {
        match self.form {
            Form::Layers => model::layer_spec(model, layer),
            Form::Distributed => model.layer(layer),
        }
    }

    fn suits(&self, setting: &Setting) -> Result<(), OptionError> {
        self.rounds.suit(self.sub_models(setting.model.layers()))?;
        match self.form {
            Form::Layers => Ok(()),
            Form::Distributed => perceptron::suits(&setting.model),
        }
    }

    fn plan(&self, boundary: &BoundaryPlan, model: &ModelSpec, epoch: usize) -> Traffic {
        if let Form::Distributed = self.form {
            return distributed::plan(boundary, model, &self.rounds, epoch);
        }
        let ((layer, round), workers) = (self.rounds.at(epoch), boundary.workers());
        let parameters = SubModel::parameters(model, layer);
        let mut traffic = gradient_traffic(self.context.all_reduce, workers, parameters)
            .times(boundary.steps().count());
        if round == 0 {
            // What is drawn does not change how many bytes it takes.
            let wire = self.wire(layer, 0, &CodecState::default());
            let kind = if layer == 0 {
                TrafficKind::Feature
            } else {
                TrafficKind::Activation
            };
            for (owner, reader, rows) in pairs(boundary) {
                let way = (owner, reader, Way::Forward);
                let bytes = wire.bytes(way, rows, model.widths[layer]);
                traffic.add(lane(layer, owner, reader, kind), bytes);
            }
        }
        traffic
    }

    fn plays_all_workers(&self) -> bool {
        matches!(self.form, Form::Distributed)
    }

    fn train(&self, worker: &mut Worker) -> Result<(), SimError> {
        if let Form::Distributed = self.form {
            return distributed::train(worker, &self.rounds);
        }
        let spec = worker.setting().model.clone();
        worker.trains(
            (0..spec.layers())
                .map(|k| SubModel::parameters(&spec, k))
                .sum(),
        );
        let aggregation = spec.aggregation();
        let mut run = Run {
            graph: LocalGraph {
                block: Block::new(
                    &worker.shard().adjacency,
                    &worker.shard().degrees,
                    aggregation,
                ),
                ..LocalGraph::with_halo(worker)
            },
            halo: HaloExchange::new(worker),
            dropout: worker.dropout(),
            aggregation,
            rounds: self.rounds.clone(),
            steps: worker.setting().boundary.steps(),
            whole: None,
        };
        let (seed, state) = (worker.setting().seed, self.compression.state());
        let mut representation: Option<Matrix> = None;
        for layer in 0..spec.layers() {
            let epoch = self.rounds.first(layer);
            worker.begin_epoch(epoch);
            let wire = self.wire(layer, seed, &state);
            let input = match representation.take() {
                None => run.halo.features(worker, Some(&wire))?,
                Some(rows) => Input::Dense(run.halo.forward(worker, layer, rows, &wire)?),
            };
            let sent = Sent {
                ratio: self.compression.ratio(self.ratio(layer)),
                error: state
                    .gauge()
                    .filter(|_| !wire.codec.is_lossless())
                    .map(|gauge| {
                        let errors = gauge.take();
                        worker.measured_errors(epoch, &errors);
                        forward_error(&errors)
                    }),
            };
            let model = run.train_layer(worker, &spec, layer, &input, sent)?;
            if layer + 1 < spec.layers() {
                let work = SubModel::work(&spec, layer, &run.graph.block, &input);
                representation = Some(worker.compute(Activity::Model, work, |worker| {
                    let rows = model.valid().representation(&run.graph.block, &input);
                    worker.wait_for(&rows);
                    rows
                }));
                run.freeze(worker, &model);
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
    steps: Steps,
    /// The input of the current sub-model for all nodes, on worker 0, for evaluation.
    whole: Option<Input>,
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
        let mut optimizer = worker.new_optimizer();
        let mut best: Option<(f64, Vec<f32>)> = None;
        let whole = Reads {
            block: self.graph.block.clone(),
            input: input.clone(),
            nodes: self.graph.nodes.clone(),
            targets: self.graph.targets.clone(),
        };
        let mut batches = OneHop::new(worker, layer, self.aggregation);
        let steps = self.steps.count();
        let rounds = self.rounds.of(layer);
        for round in 0..rounds {
            let epoch = self.rounds.first(layer) + round;
            worker.begin_epoch(epoch);
            let mut losses = 0.0;
            for step in 0..steps {
                let batch = batches.as_mut();
                let batch = batch.map(|all| all.step(worker, &self.steps, input, (epoch, step)));
                let reads = match &batch {
                    None => Some(&whole),
                    Some(batch) => batch.as_ref(),
                };
                let draws = (epoch * steps + step) as u64;
                let (mut gradient, loss) = match reads {
                    Some(reads) => self.gradient(worker, &model, layer, reads, draws),
                    None => (vec![0.0; count], 0.0),
                };
                worker.all_reduce(&mut gradient, Reduce::Sum, TrafficKind::ParameterGradient)?;
                model = worker.update(&mut optimizer, model, &gradient);
                losses += loss;
            }
            let loss = losses / steps as f64;

            let last = round + 1 == rounds;
            let scores = if last || worker.setting().evaluates(epoch) {
                Some(self.evaluate(worker, &model)?)
            } else {
                None
            };
            if let Some(Scores {
                validation: Some(validation),
                ..
            }) = scores
                && best.as_ref().is_none_or(|(so_far, _)| validation > *so_far)
            {
                best = Some((validation, parameters(&model)));
            }
            let scores = scores.filter(|_| layer + 1 == spec.layers());
            worker.end_epoch(
                epoch,
                EpochReport {
                    loss,
                    scores,
                    compression_ratio: sent.ratio,
                    coding_error: sent.error.filter(|_| round == 0),
                    ..EpochReport::default()
                },
            );
        }
        Ok(match best {
            Some((_, values)) => with_parameters(model, &values),
            None => model,
        })
    }

    /// Gradient, flat, and loss of one step; `draws` numbers it for dropout.
    fn gradient(
        &self,
        worker: &mut Worker,
        model: &SubModel,
        layer: usize,
        reads: &Reads,
        draws: u64,
    ) -> (Vec<f32>, f64) {
        let spec = &worker.setting().model;
        let count = SubModel::parameters(spec, layer);
        let (block, input) = (&reads.block, &reads.input);
        let [forward, backward] = SubModel::step_work(spec, layer, block, input);
        let logits = worker.compute(Activity::Model, forward, |worker| {
            let dropped = input.dropped(&self.dropout, draws, layer, &reads.nodes);
            let logits = model.logits(block, &dropped);
            worker.wait_for(&logits);
            logits
        });
        worker.compute(Activity::Model, backward, |_| {
            let loss = cross_entropy(logits, reads.targets.clone());
            let mut gradients = loss.backward();
            let mut flat = vec![0.0_f32; count];
            add_gradients(model, &mut gradients, &mut flat);
            (flat, f64::from(loss.inner().into_scalar::<f32>()))
        })
    }

    /// On all workers, for each keeps the best of what it trains.
    fn evaluate(&self, worker: &mut Worker, model: &SubModel) -> Result<Scores, SimError> {
        let scores = worker.evaluate(|graph| {
            let input = self.whole.as_ref().unwrap_or_else(|| graph.features());
            model.valid().logits(&graph.block(self.aggregation), input)
        })?;
        worker.share_scores(scores)
    }

    /// Carries the whole graph's representations through a trained sub-model, for evaluation.
    fn freeze(&mut self, worker: &Worker, model: &SubModel) {
        if worker.rank() > 0 {
            return;
        }
        let rows = worker.evaluation(|graph| {
            let input = self.whole.as_ref().unwrap_or_else(|| graph.features());
            model
                .valid()
                .representation(&graph.block(self.aggregation), input)
        });
        self.whole = Some(Input::Dense(rows));
    }
}
