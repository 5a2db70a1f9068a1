//! Cooperative sampling played through for all workers at once: who asks whom for how many rows.

use std::sync::Arc;

use rayon::prelude::*;

use super::batches::{Batches, Steps, shuffled};
use super::{BoundaryPlan, Csr, Part, Peers, SampledLayer, Sampler, View};

/// What one worker computes on at one layer of a step, and asks others for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LayerDraw {
    /// Rows whose new representation is computed.
    pub outputs: usize,
    /// Rows that are read.
    pub inputs: usize,
    /// Those of them that the worker owns.
    pub own: usize,
    /// Neighbours drawn.
    pub edges: usize,
    /// Neighbours looked at to draw these.
    pub(crate) looked_at: usize,
    /// Rows that the worker asks of each owner.
    pub asks: Peers<usize>,
    /// Own rows that it and those who ask read, which the layer below has to make; 0 for the first
    /// layer where features are kept.
    pub made: usize,
    /// The inputs of the first layer, as rows of the worker: own ones and then those of others.
    pub rows: Vec<u32>,
    /// Those that [`Self::made`] counts, for the first layer.
    pub(crate) made_rows: Vec<u32>,
}

/// What all workers draw in one step: for each layer, for each worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StepDraws {
    /// From the first layer to the last.
    pub layers: Vec<Vec<LayerDraw>>,
}

impl StepDraws {
    /// Who asks `owner` for rows of a layer's input, ascending, and for how many.
    pub(crate) fn asked_of(
        &self,
        layer: usize,
        owner: usize,
    ) -> impl Iterator<Item = (usize, usize)> {
        let readers = self.layers[layer].iter().enumerate();
        readers.filter_map(move |(reader, draw)| {
            let rows = draw.asks[owner];
            (rows > 0).then_some((reader, rows))
        })
    }
}

/// The mini-batches of all workers of a run, step after step.
///
/// Sampling is a pure function of the seed, so this says in advance what will be sent. One step
/// costs what it costs to sample.
pub(crate) struct Rehearsal {
    boundary: Arc<BoundaryPlan>,
    batches: Arc<Batches>,
    workers: Vec<Rehearsed>,
    steps: Steps,
    form: Form,
    /// The epoch whose order of training the workers have.
    epoch: Option<usize>,
    /// Whether neighbours are drawn.
    draws: bool,
}

/// How rows of others are come by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// They are not: cut edges are dropped.
    Alone,
    /// They are asked for in every step.
    Together,
    /// The same, but features that came once are kept.
    KeepingFeatures,
}

/// What is known of one worker.
struct Rehearsed {
    adjacency: Csr,
    nodes: Vec<u32>,
    train: Vec<u32>,
    /// Those in the order of an epoch.
    order: Vec<u32>,
    /// Halo rows whose features were received.
    known: Vec<bool>,
}

impl Rehearsal {
    /// The rehearsal of a run that has drawn nothing yet.
    pub(crate) fn new(boundary: Arc<BoundaryPlan>, batches: Arc<Batches>, form: Form) -> Self {
        let worker = |part: &Part| {
            let mut adjacency = part.local_graph(&batches.graph);
            let mut nodes = part.owned.clone();
            if form == Form::Alone {
                let owned: Vec<u32> = (0_u32..).take(part.owned.len()).collect();
                adjacency = adjacency.induced(&owned);
            } else {
                nodes.extend(&part.halo);
            }
            Rehearsed {
                adjacency,
                nodes,
                train: part.training_rows(&batches.train),
                order: Vec::new(),
                known: vec![false; part.halo.len()],
            }
        };
        Self {
            workers: boundary.parts.iter().map(worker).collect(),
            steps: Steps::of(&boundary, Some(&batches)),
            boundary,
            batches,
            form,
            epoch: None,
            draws: true,
        }
    }

    /// The rehearsal of a run in which nobody asks for work, but for messages alone: where no rows
    /// of others are read, nothing is drawn, and it is known of each layer whether there are rows.
    pub(crate) fn of_messages(self) -> Self {
        let apart = self.form == Form::Alone || self.workers.len() == 1;
        Self {
            draws: !apart,
            ..self
        }
    }

    /// Number of steps of an epoch.
    pub(crate) const fn steps(&self) -> usize {
        self.steps.count()
    }

    /// What is drawn in a step. Where features are kept, steps are played in their order.
    pub(crate) fn play(&mut self, epoch: usize, step: usize) -> StepDraws {
        let batches = Arc::clone(&self.batches);
        let fanouts = &batches.spec.fanouts;
        let sampler = Sampler::new(batches.seed, epoch, step, fanouts);
        let (layers, count) = (fanouts.len(), self.workers.len());
        if self.epoch != Some(epoch) {
            self.epoch = Some(epoch);
            for (rank, worker) in self.workers.iter_mut().enumerate() {
                worker.order = shuffled(batches.seed, epoch, rank, &worker.train);
            }
        }
        let seeds =
            |(rank, worker): (usize, &Rehearsed)| seeds_of(&worker.order, &self.steps, rank, step);
        let mut outputs: Vec<Vec<u32>> = self.workers.iter().enumerate().map(seeds).collect();
        let mut draws = StepDraws {
            layers: vec![Vec::new(); layers],
        };
        // From the last layer down: what one layer reads, the layer below has to make.
        for layer in (0..layers).rev() {
            let hop = layers - 1 - layer;
            let draw = |((outputs, worker), part): ((&mut Vec<u32>, &Rehearsed), &Part)| {
                let view = View {
                    adjacency: &worker.adjacency,
                    nodes: &worker.nodes,
                    own: part.owned.len(),
                };
                // Taken, as what this layer reads becomes the outputs of the layer below.
                let outputs = std::mem::take(outputs);
                if self.draws {
                    SampledLayer::draw(&sampler, hop, &view, outputs)
                } else {
                    SampledLayer::without_neighbours(outputs, view.own, view.nodes.len())
                }
            };
            let all = outputs.par_iter_mut().zip(&self.workers);
            let drawn: Vec<SampledLayer> = all.zip(&self.boundary.parts).map(draw).collect();
            let mut asked: Vec<Peers<Vec<u32>>> = vec![Peers::default(); count];
            // Drawing is each worker's own, but asking writes into the lists of others: one by one.
            for (rank, sampled) in drawn.iter().enumerate() {
                let asks = self.ask(rank, layer, sampled, &mut asked);
                draws.layers[layer].push(LayerDraw {
                    outputs: sampled.outputs,
                    inputs: sampled.rows.len(),
                    own: sampled.own,
                    edges: sampled.adjacency.edges(),
                    looked_at: sampled.degrees.iter().sum(),
                    asks,
                    made: 0,
                    made_rows: Vec::new(),
                    rows: if layer == 0 {
                        sampled.rows.clone()
                    } else {
                        Vec::new()
                    },
                });
            }
            // Only now has everybody asked.
            // Below the first layer nothing is computed: what is made there are the rows of
            // features to send.
            let counts = layer > 0 || self.form == Form::Together;
            for (rank, sampled) in drawn.iter().enumerate().filter(|_| counts) {
                let (made, _) = sampled.below(&asked[rank]);
                let draw = &mut draws.layers[layer][rank];
                draw.made = made.len();
                if layer > 0 {
                    outputs[rank] = made;
                } else {
                    draw.made_rows = made;
                }
            }
        }
        draws
    }

    /// How many rows a worker asks of each owner, which hears which ones they are.
    fn ask(
        &mut self,
        rank: usize,
        layer: usize,
        sampled: &SampledLayer,
        asked: &mut [Peers<Vec<u32>>],
    ) -> Peers<usize> {
        let mut asks = Peers::default();
        let (worker, part) = (&mut self.workers[rank], &self.boundary.parts[rank]);
        let own = part.owned.len();
        let mut wanted = sampled.others().to_vec();
        if layer == 0 && self.form == Form::KeepingFeatures {
            let known = &mut worker.known;
            wanted.retain(|&row| !std::mem::replace(&mut known[row as usize - own], true));
        }
        for (owner, range) in SampledLayer::by_owner(&wanted, own, &part.receives).iter() {
            *asks.of(owner) = range.len();
            let ids = wanted[range.clone()].iter();
            let ids: Vec<u32> = ids.map(|&row| worker.nodes[row as usize]).collect();
            *asked[owner].of(rank) = self.boundary.parts[owner].rows_of(&ids);
        }
        asks
    }
}

/// The rows of a worker's order of training that train in a step, ascending.
pub(crate) fn seeds_of(order: &[u32], steps: &Steps, worker: usize, step: usize) -> Vec<u32> {
    let range = steps.range(worker, step);
    let seeds = order.iter().take(range.end).skip(range.start);
    let mut seeds: Vec<u32> = seeds.copied().collect();
    seeds.sort_unstable();
    seeds
}
