//! `grappa`: gradient-only communication (Xu, Siebenbrunner and Bindschaedler, arXiv 2602.01872).
//!
//! The graph is cut into one chunk per worker. A worker trains on its *base* chunk, which never changes, together with one *variable* chunk, which
//! moves on round-robin every `repartition_every` epochs (a super-epoch), so that a cycle of `N − 1` super-epochs pairs all chunks. At a switch
//! the variable chunk's structure and features move, and with `halo` the features of the sources of all edges into both chunks; these bytes are
//! counted as `repartition`. In between *only parameter gradients* travel: `2(N − 1)/N · 4|θ|` bytes per worker and step. The training
//! nodes are those of the base chunk, so each is used once per epoch.
//!
//! What a worker does not see biases its gradient. Each gradient is therefore weighted by the *coverage* of its training nodes'
//! neighbourhoods, per node or per batch; with `normalise = "mean"` the weights are divided by their mean over all training nodes, for which one
//! all-reduce of two numbers is made at each switch (`control`).
//!
//! Choices where the paper's code leaves a trap or says nothing: coverage is over as many hops as the model has layers
//! (its one-hop weight is 1 up to `d/(d + 1)` with the halo on); chunks normalise by the neighbours they see, halo nodes by their degree in
//! the whole graph.

mod chunks;
pub mod estimators;
pub mod study;
mod working;

use serde::Deserialize;

use super::parts::{HaloExchange, LayerwiseTrainer, LocalGraph, gradient_traffic};
use super::{Context, OptionError, OptionInfo, Registration, Strategy, StrategyInfo, options};
use crate::graph::{BoundaryPlan, Csr, PartitionMethod, PartitionSpec};
use crate::model::{Aggregation, Block, Input, ModelSpec, Work};
use crate::net::{Lane, Reduce, Traffic, TrafficKind, all_reduce_traffic};
use crate::sim::{Activity, EpochReport, SimError, Worker};
use chunks::Switch;
use working::{Loader, WorkingGraph};

/// How experiments name and make it.
pub const REGISTRATION: Registration = Registration {
    info: StrategyInfo {
        name: "grappa",
        paper: "Xu, Siebenbrunner and Bindschaedler, Grappa: Gradient-Only Communication for Scalable Graph Neural Network Training (arXiv 2602.01872)",
        sends: "parameter gradients; at each switch one chunk's structure and features, with the halo's features",
        options: &[
            OptionInfo {
                name: "chunking",
                default: "\"random\"",
                meaning: "How nodes are dealt into chunks: random (the authors' default), metis, or partition: as [partition] says.",
            },
            OptionInfo {
                name: "schedule",
                default: "\"sweep\"",
                meaning: "sweep: the variable chunk moves on round-robin; fixed: the first one stays (the paper's ablation FP).",
            },
            OptionInfo {
                name: "repartition_every",
                default: "50",
                meaning: "Epochs between switches (the authors' code).",
            },
            OptionInfo {
                name: "halo",
                default: "true",
                meaning: "Also load the features of all sources of edges into both chunks (the authors' default).",
            },
            OptionInfo {
                name: "weight",
                default: "\"batch_mean\"",
                meaning: "none (the paper's ablation UW); node_ht: each node's loss by its coverage; batch_mean: the whole gradient by their mean (the paper).",
            },
            OptionInfo {
                name: "coverage_hops",
                default: "the model's layers",
                meaning: "Steps of the random walk whose chance to stay local is the coverage (derived; the authors' code: 1).",
            },
            OptionInfo {
                name: "shrinkage",
                default: "\"kappa\"",
                meaning: "none; kappa: (d_local + κ)/(d + κ) per node (κ = 1: the authors' code); lambda: 1 + λ(w − 1) on the batch weight (the paper's form).",
            },
            OptionInfo {
                name: "kappa",
                default: "1",
                meaning: "κ of shrinkage = \"kappa\".",
            },
            OptionInfo {
                name: "lambda",
                default: "0.5",
                meaning: "λ of shrinkage = \"lambda\".",
            },
            OptionInfo {
                name: "normalise",
                default: "\"mean\"",
                meaning: "mean: divide weights by their mean over all training nodes, which keeps the learning rate's scale (derived); none.",
            },
            OptionInfo {
                name: "cap",
                default: "none",
                meaning: "Largest weight a node may have after normalisation (the authors' code: 1, before).",
            },
        ],
    },
    build,
};

/// When variable chunks move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// Round-robin.
    #[default]
    Sweep,
    /// Never after the first.
    Fixed,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Chunking {
    #[default]
    Random,
    Metis,
    Partition,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Weight {
    None,
    NodeHt,
    #[default]
    BatchMean,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Shrinkage {
    None,
    #[default]
    Kappa,
    Lambda,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Normalise {
    None,
    #[default]
    Mean,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Options {
    chunking: Chunking,
    schedule: Schedule,
    repartition_every: usize,
    halo: bool,
    weight: Weight,
    coverage_hops: Option<usize>,
    shrinkage: Shrinkage,
    kappa: f64,
    lambda: f64,
    normalise: Normalise,
    cap: Option<f64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            chunking: Chunking::default(),
            schedule: Schedule::default(),
            repartition_every: 50,
            halo: true,
            weight: Weight::default(),
            coverage_hops: None,
            shrinkage: Shrinkage::default(),
            kappa: 1.0,
            lambda: 0.5,
            normalise: Normalise::default(),
            cap: None,
        }
    }
}

struct Grappa {
    options: Options,
    context: Context,
}

fn build(table: &toml::Table, context: &Context) -> Result<Box<dyn Strategy>, OptionError> {
    let options: Options = options(table)?;
    if options.repartition_every == 0 {
        return Err(OptionError::key("repartition_every", "must be at least 1"));
    }
    if let Some(hops) = options.coverage_hops
        && !(1..=context.layers).contains(&hops)
    {
        let range = format!(
            "must be between 1 and the model's {} layers",
            context.layers
        );
        return Err(OptionError::key("coverage_hops", range));
    }
    if !(options.kappa >= 0.0 && options.kappa.is_finite()) {
        return Err(OptionError::key("kappa", "must be a number of at least 0"));
    }
    if !(0.0..=1.0).contains(&options.lambda) {
        return Err(OptionError::key("lambda", "must be between 0 and 1"));
    }
    if options
        .cap
        .is_some_and(|cap| !(cap > 0.0 && cap.is_finite()))
    {
        return Err(OptionError::key("cap", "must be a positive number"));
    }
    Ok(Box::new(Grappa {
        options,
        context: *context,
    }))
}

impl Grappa {
    fn switch(&self, epoch: usize) -> Option<Switch> {
        let Options {
            repartition_every,
            schedule,
            halo,
            ..
        } = self.options;
        Switch::before(epoch, repartition_every, schedule, halo)
    }

    fn normalises(&self) -> bool {
        self.options.weight != Weight::None && self.options.normalise == Normalise::Mean
    }

    /// Coverage of each training node, and the weight of its loss before normalisation.
    fn weights(&self, worker: &Worker, graph: &WorkingGraph) -> (Vec<f64>, Vec<f64>) {
        let hops = self.options.coverage_hops.unwrap_or(self.context.layers);
        // The halo completes one hop, so the walk may leave with its last step.
        let hops = if self.options.halo { hops - 1 } else { hops };
        let inner = |v: u32| (v as usize) < graph.inner;
        let edges = graph
            .adjacency
            .iter_edges()
            .filter(|&(u, v)| inner(u) && inner(v));
        let local = Csr::from_edges(graph.inner, edges);
        let degrees = &graph.degrees[..graph.inner];
        let all = estimators::coverage(&local, degrees, hops);
        let train = &worker.shard().train;
        let coverage: Vec<f64> = train.iter().map(|&row| all[row as usize]).collect();
        if self.options.weight == Weight::None {
            return (coverage, vec![1.0; train.len()]);
        }
        let mut weights = coverage.clone();
        if self.options.shrinkage == Shrinkage::Kappa {
            for (weight, &row) in weights.iter_mut().zip(train) {
                *weight = estimators::smoothed(*weight, degrees[row as usize], self.options.kappa);
            }
        }
        (coverage, weights)
    }

    /// Divides by the mean over all workers, caps, and makes batch weights of node weights.
    fn finish_weights(
        &self,
        worker: &mut Worker,
        mut weights: Vec<f64>,
    ) -> Result<Vec<f64>, SimError> {
        if self.normalises() {
            #[allow(clippy::cast_possible_truncation)] // what travels is single precision
            let mut sums = [weights.iter().sum::<f64>() as f32, weights.len() as f32];
            worker.all_reduce(&mut sums, Reduce::Sum, TrafficKind::Control)?;
            let mean = f64::from(sums[0]) / f64::from(sums[1]).max(1.0);
            if mean > 0.0 {
                for weight in &mut weights {
                    *weight /= mean;
                }
            }
        }
        if let Some(cap) = self.options.cap {
            for weight in &mut weights {
                *weight = weight.min(cap);
            }
        }
        if self.options.weight == Weight::BatchMean {
            let mut batch = estimators::mean_or_one(&weights);
            if self.options.shrinkage == Shrinkage::Lambda {
                batch = estimators::shrunk(batch, self.options.lambda);
            }
            weights.fill(batch);
        }
        Ok(weights)
    }
}

/// A working graph ready to train on.
struct Loaded {
    trainer: LayerwiseTrainer,
    features: Input,
    coverage: f64,
    weight: f64,
}

impl Strategy for Grappa {
    fn partition(&self, asked: &PartitionSpec) -> PartitionSpec {
        let method = match self.options.chunking {
            Chunking::Random => PartitionMethod::Random,
            Chunking::Metis => PartitionMethod::Metis,
            Chunking::Partition => return asked.clone(),
        };
        PartitionSpec {
            method,
            file: None,
            ..asked.clone()
        }
    }

    fn check(&self, _context: &Context) -> Result<(), OptionError> {
        if self.options.weight == Weight::NodeHt && self.options.shrinkage == Shrinkage::Lambda {
            return Err(OptionError::key(
                "shrinkage",
                "must be \"kappa\" or \"none\" with weight = \"node_ht\": lambda shrinks a batch weight",
            ));
        }
        Ok(())
    }

    #[allow(clippy::cast_possible_truncation)] // ranks are few
    fn plan(&self, boundary: &BoundaryPlan, model: &ModelSpec, epoch: usize) -> Traffic {
        let workers = boundary.workers();
        let all_reduce = self.context.all_reduce;
        let mut traffic = gradient_traffic(all_reduce, workers, model.parameters());
        let Some(switch) = self.switch(epoch) else {
            return traffic;
        };
        if self.normalises() {
            traffic.merge(&all_reduce_traffic(
                all_reduce,
                workers,
                2,
                TrafficKind::Control,
            ));
        }
        for from in 0..workers {
            for to in (0..workers).filter(|&to| to != from) {
                if let Some(bytes) = switch.payload(boundary, model.features(), from, to) {
                    let (from, to) = (from as u32, to as u32);
                    let lane = Lane {
                        layer: 0,
                        from,
                        to,
                        kind: TrafficKind::Repartition,
                    };
                    traffic.add(lane, bytes);
                }
            }
        }
        traffic
    }

    fn train(&self, worker: &mut Worker) -> Result<(), SimError> {
        let mut model = worker.new_model();
        let mut optimizer = worker.new_optimizer();
        let mut loader = Loader::default();
        let nothing_exchanged = HaloExchange::new(worker);
        let mut loaded: Option<Loaded> = None;
        for epoch in 0..worker.setting().epochs {
            worker.begin_epoch(epoch);
            if let Some(switch) = self.switch(epoch) {
                loaded = Some(self.load(worker, &mut loader, switch)?);
            }
            let Some(Loaded {
                trainer,
                features,
                coverage,
                weight,
            }) = &loaded
            else {
                return Err(SimError::Strategy(
                    "nothing was loaded before epoch 0".to_owned(),
                ));
            };
            let mut step =
                trainer.step(worker, &model, features, &nothing_exchanged, &[], epoch)?;
            worker.all_reduce(
                &mut step.gradient,
                Reduce::Sum,
                TrafficKind::ParameterGradient,
            )?;
            let work = Work::pass(step.gradient.len()) * 6.0;
            model = worker.compute(Activity::Model, work, |_| {
                optimizer.step(model, &step.gradient)
            });
            let scores = worker.evaluate_model(epoch, &model)?;
            worker.end_epoch(
                epoch,
                EpochReport {
                    loss: step.loss,
                    scores,
                    coverage: Some(*coverage),
                    weight: Some(*weight),
                    ..EpochReport::default()
                },
            );
        }
        Ok(())
    }
}

impl Grappa {
    fn load(
        &self,
        worker: &mut Worker,
        loader: &mut Loader,
        switch: Switch,
    ) -> Result<Loaded, SimError> {
        let graph = loader.switch(worker, switch)?;
        let edges = Work::pass(graph.adjacency.edges() * self.context.layers);
        let (coverage, weights) = worker.compute(Activity::Exchange, edges, |worker| {
            self.weights(worker, &graph)
        });
        let weights = self.finish_weights(worker, weights)?;
        let (features, graph) = worker.compute(Activity::Exchange, edges, |worker| {
            ready(worker, graph, &weights)
        });
        Ok(Loaded {
            trainer: LayerwiseTrainer::new(worker, graph),
            features,
            coverage: estimators::mean_or_one(&coverage),
            weight: estimators::mean_or_one(&weights),
        })
    }
}

/// A working graph in the form that is trained on, with the weight of each seed's loss.
fn ready(worker: &Worker, graph: WorkingGraph, weights: &[f64]) -> (Input, LocalGraph) {
    let rows = graph.nodes.len();
    let degrees: Vec<usize> = (0..rows)
        .map(|v| {
            if v < graph.inner {
                graph.adjacency.degree(v)
            } else {
                graph.degrees[v]
            }
        })
        .collect();
    let aggregation = Aggregation::from(worker.setting().model.kind);
    let nodes = worker.training_nodes() as f64;
    // Each worker's mean loss times b_i / Σ b_j: the sum over workers is the mean over all training nodes.
    #[allow(clippy::cast_possible_truncation)] // loss weights are single precision
    let targets = LocalGraph::weighted_targets(worker, rows, |seed| (weights[seed] / nodes) as f32);
    let features = Input::from_features(graph.features, worker.plain_device());
    let graph = LocalGraph {
        block: Block::new(&graph.adjacency, &degrees, aggregation),
        nodes: graph.nodes,
        targets,
    };
    (features, graph)
}
