//! Mini-batches of a worker that trains the nodes it owns: neighbours drawn alone or together with
//! the other workers.
//!
//! ```text
//!   seeds ─ draw ─ ask the owners of drawn halo rows ─┐   ids, `sample`
//!     ▲                                               ▼
//!     │            rows of the layer below = own inputs + what others asked for ─ draw ─ ask … ─
//!     │                                                                                 features
//!   loss ◀── layers, each reading rows that came with the strategy's codec; gradients go back so
//! ```
//!
//! So every worker computes the rows that it owns and that any worker needs, once each. Who will be
//! asked by whom is no message: the plan tells a worker which requests to wait for
//! ([`Worker::planned_senders`]).

use super::buckets::Buckets;
use super::requests::{Kept, ask, exchange_features};
use super::{Crosses, Crossing, EpochExchange, Pass, PassLayer, Step, Wire};
use crate::graph::{Csr, SampledLayer, Sampler, Steps, View, seeds_of, shuffled};
use crate::model::{Block, Dropout, Gnn, Input, Targets, mean_targets};
use crate::sim::{Activity, Restoring, Saving, SimError, Worker};

/// One worker's mini-batches.
pub struct BatchTrainer {
    steps: Steps,
    fanouts: Vec<usize>,
    /// Own rows alone, cut edges dropped, with degrees counted within; none where neighbours are
    /// drawn across the cut.
    alone: Option<(Csr, Vec<usize>)>,
    dropout: Dropout,
    order: EpochOrder,
    kept: Kept,
    /// As [`LayerwiseTrainer`](super::LayerwiseTrainer) has them.
    pub(super) buckets: Option<Buckets>,
}

/// A worker's training rows in the order of an epoch, which is drawn in the first step.
#[derive(Default)]
pub(crate) struct EpochOrder(pub Vec<u32>);

impl EpochOrder {
    /// The rows that train in a step of an epoch: the next piece of its one order, so that each
    /// trains once in it.
    pub(crate) fn seeds(
        &mut self,
        worker: &mut Worker,
        steps: &Steps,
        (epoch, step): (usize, usize),
    ) -> Vec<u32> {
        let (seed, rank) = (worker.setting().seed, worker.rank());
        if step == 0 {
            self.0 = worker.compute(Activity::Exchange, |worker| {
                shuffled(seed, epoch, rank, &worker.shard().train)
            });
        }
        seeds_of(&self.0, steps, rank, step)
    }
}

/// One layer of a step on its worker.
struct Layer {
    block: Block,
    /// Global numbers of its inputs.
    nodes: Vec<u32>,
    /// Rows of it that cross, and the global numbers of those made here; none for features, and
    /// where none do.
    crossing: Option<(Crossing, Vec<u32>)>,
}

impl BatchTrainer {
    /// The mini-batches of a worker, if the run has any; with `exchange`, neighbours are drawn
    /// across the cut.
    pub fn new(worker: &Worker, exchange: bool) -> Option<Self> {
        let setting = worker.setting();
        let batches = setting.batches.as_ref()?;
        let shard = worker.shard();
        Some(Self {
            steps: setting.steps(),
            fanouts: batches.spec.fanouts.clone(),
            alone: (!exchange).then(|| shard.without_halo()),
            dropout: worker.dropout(),
            order: EpochOrder::default(),
            kept: Kept::default(),
            buckets: None,
        })
    }

    /// Number of steps of an epoch.
    pub const fn steps(&self) -> usize {
        self.steps.count()
    }

    /// Saves the features that stay. All else is drawn anew in each epoch.
    pub(super) fn save(&self, worker: &Worker, into: &mut Saving) {
        self.kept.save(worker, into);
    }

    /// Takes back what was saved.
    pub(super) fn restore(&mut self, from: &mut Restoring<'_>) -> Result<(), SimError> {
        self.kept.restore(from)
    }

    /// Loss and gradient of one step; `sent` says how rows travel in its epoch.
    ///
    /// # Errors
    /// If communication fails, or rows are needed for which there is no wire.
    pub fn step(
        &mut self,
        worker: &mut Worker,
        model: &Gnn,
        sent: &EpochExchange,
        epoch: usize,
        step: usize,
    ) -> Result<Step, SimError> {
        let count = self.steps();
        let seeds = self.order.seeds(worker, &self.steps, (epoch, step));
        let constant = batch_targets(worker, &self.steps, &seeds, step);
        let wire = |wire: &Option<Wire>| Some(wire.as_ref()?.at_step(count, step));
        let wires: Vec<Option<Wire>> = sent.wires.iter().map(wire).collect();
        let mut outputs = seeds;
        let mut layers: Vec<Layer> = Vec::with_capacity(model.layers());
        let mut features = None;
        for layer in (0..model.layers()).rev() {
            let hop = model.layers() - 1 - layer;
            let sampled = self.draw(worker, hop, outputs, (epoch, step));
            let mut crossing = None;
            outputs = if layer == 0 && !sent.crosses_after_product(0) {
                let wire = wires.first().and_then(Option::as_ref);
                features = self.features(worker, &sampled, wire, sent.keeps_features)?;
                Vec::new()
            } else if self.alone.is_some() {
                sampled.rows.clone()
            } else {
                let asked = ask(worker, layer, sampled.others())?;
                let (made, sends) = sampled.below(&asked.of_me);
                let (own, receives) = (sampled.own, asked.by_me);
                let shard = worker.shard();
                let nodes = made.iter().map(|&row| shard.nodes[row as usize]);
                let nodes = nodes.collect();
                crossing = Some((Crossing::new(made.len(), own, sends, receives), nodes));
                if layer == 0 {
                    features = own_features(worker, &made);
                }
                made
            };
            layers.push(self.layer(worker, &sampled, crossing));
        }
        layers.reverse();
        let wire = |layer| wires.get(layer).and_then(Option::as_ref);
        let layers: Vec<PassLayer<'_>> =
            layers
                .iter()
                .enumerate()
                .map(|(layer, part)| PassLayer {
                    block: &part.block,
                    nodes: &part.nodes,
                    crosses: part.crossing.as_ref().zip(wire(layer)).map(
                        |((crossing, made), wire)| Crosses {
                            crossing,
                            wire,
                            made,
                        },
                    ),
                })
                .collect();
        let pass = Pass {
            layers: &layers,
            targets: &constant,
            dropout: &self.dropout,
            round: (epoch * count + step) as u64,
            buckets: self.buckets.as_ref(),
        };
        pass.run(worker, model, features)
    }

    /// Draws the inputs of a layer.
    fn draw(
        &self,
        worker: &mut Worker,
        hop: usize,
        outputs: Vec<u32>,
        at: (usize, usize),
    ) -> SampledLayer {
        let sampler = Sampler::new(worker.setting().seed, at.0, at.1, &self.fanouts);
        worker.compute(Activity::Exchange, |worker| {
            SampledLayer::draw(&sampler, hop, &self.view(worker), outputs)
        })
    }

    fn view<'a>(&'a self, worker: &'a Worker) -> View<'a> {
        let shard = worker.shard();
        let (adjacency, nodes) = match &self.alone {
            Some((graph, _)) => (graph, &shard.nodes[..shard.owned]),
            None => (&shard.adjacency, &shard.nodes[..]),
        };
        View {
            adjacency,
            nodes,
            own: shard.owned,
        }
    }

    fn layer(
        &self,
        worker: &mut Worker,
        sampled: &SampledLayer,
        crossing: Option<(Crossing, Vec<u32>)>,
    ) -> Layer {
        worker.compute(Activity::Exchange, |worker| {
            let shard = worker.shard();
            let degrees = match &self.alone {
                Some((_, degrees)) => degrees,
                None => &shard.degrees,
            };
            let rows = || sampled.rows.iter().map(|&row| row as usize);
            let degrees: Vec<usize> = rows().map(|row| degrees[row]).collect();
            let aggregation = worker.setting().model.aggregation();
            Layer {
                block: Block::sampled(sampled, &degrees, aggregation),
                nodes: rows().map(|row| shard.nodes[row]).collect(),
                crossing,
            }
        })
    }

    /// The features of a step: own ones, and below them those of others, which come when they are
    /// needed, or once.
    fn features(
        &mut self,
        worker: &mut Worker,
        sampled: &SampledLayer,
        wire: Option<&Wire>,
        keeps: bool,
    ) -> Result<Option<Input>, SimError> {
        let mut arrived = Vec::new();
        let mut wanted = sampled.others().to_vec();
        if self.alone.is_none() {
            let Some(wire) = wire else {
                return Err(SimError::Strategy(
                    "nothing says how the features of sampled rows travel".to_owned(),
                ));
            };
            if keeps {
                wanted = self.kept.missing(worker, &wanted);
            }
            let asked = ask(worker, 0, &wanted)?;
            arrived = exchange_features(worker, &asked, wire)?;
        }
        if sampled.rows.is_empty() {
            return Ok(None);
        }
        let kept = &mut self.kept;
        let features = worker.compute(Activity::Exchange, |worker| {
            let features = if keeps {
                kept.take(worker, &wanted, &arrived);
                kept.select(worker, sampled)
            } else {
                let own = &sampled.rows[..sampled.own];
                let mut features = worker.shard().features.select(own);
                features.append(&arrived);
                features
            };
            Input::from_features(features, worker.place())
        });
        Ok(Some(features))
    }
}

/// The features of own rows, none for no rows.
fn own_features(worker: &mut Worker, rows: &[u32]) -> Option<Input> {
    if rows.is_empty() {
        return None;
    }
    Some(worker.compute(Activity::Exchange, |worker| {
        let features = worker.shard().features.select(rows);
        Input::from_features(features, worker.place())
    }))
}

/// Constant side of the loss of a step, `[seeds, classes]`: the mean over the step's training nodes
/// of all workers, of which this one adds its own, which are the rows `seeds`.
pub fn batch_targets(worker: &Worker, steps: &Steps, seeds: &[u32], step: usize) -> Targets {
    let labels = &worker.shard().labels;
    let labelled = seeds.iter().map(|&row| labels.of(row as usize)).enumerate();
    let (rows, task) = (seeds.len(), worker.setting().task());
    mean_targets(rows, task, labelled, steps.seeds(step), worker.place())
}

/// The layers of a step whose neighbourhoods lie within what the worker holds, from the first layer
/// on; `seeds` are the outputs of the last.
pub(crate) fn draw_alone(
    worker: &mut Worker,
    sampler: &Sampler<'_>,
    view: &View<'_>,
    seeds: Vec<u32>,
    layers: usize,
) -> Vec<SampledLayer> {
    let mut sampled: Vec<SampledLayer> = Vec::with_capacity(layers);
    let mut seeds = Some(seeds);
    for hop in 0..layers {
        let outputs = match sampled.last() {
            Some(above) => above.rows.clone(),
            None => seeds.take().unwrap_or_default(),
        };
        let layer = worker.compute(Activity::Exchange, |_| {
            SampledLayer::draw(sampler, hop, view, outputs)
        });
        sampled.push(layer);
    }
    sampled.reverse();
    sampled
}
