//! Training steps on a worker's whole graph.

use super::buckets::Buckets;
use super::{Crosses, HaloExchange, Pass, PassLayer, Step, Wire};
use crate::model::{Block, Dropout, Gnn, Input, Targets, mean_targets};
use crate::sim::{SimError, Worker};

/// The graph a worker computes on.
pub struct LocalGraph {
    /// Aggregation over local rows.
    pub block: Block,
    /// That of the layers above the first, where it is another, and the global numbers of its
    /// inputs.
    pub upper: Option<(Block, Vec<u32>)>,
    /// Global numbers of the block's inputs, for dropout.
    pub nodes: Vec<u32>,
    /// Constant side of the loss, `[block.outputs, classes]`.
    pub targets: Targets,
}

impl LocalGraph {
    /// Owned rows that read owned and halo rows, with degrees of the whole graph.
    pub fn with_halo(worker: &Worker) -> Self {
        let shard = worker.shard();
        let aggregation = worker.setting().model.aggregation();
        Self {
            block: Block::new(&shard.adjacency, &shard.degrees, aggregation),
            upper: None,
            nodes: shard.nodes.clone(),
            targets: Self::mean_targets(worker, worker.training_nodes()),
        }
    }

    /// Owned rows alone: cut edges dropped, degrees counted within.
    pub fn without_halo(worker: &Worker) -> Self {
        let shard = worker.shard();
        let aggregation = worker.setting().model.aggregation();
        let (graph, degrees) = shard.without_halo();
        Self {
            block: Block::new(&graph, &degrees, aggregation),
            upper: None,
            nodes: shard.nodes[..shard.owned].to_vec(),
            targets: Self::mean_targets(worker, worker.training_nodes()),
        }
    }

    /// Aggregation of one layer, and the global numbers of its inputs.
    pub fn layer(&self, layer: usize) -> (&Block, &[u32]) {
        match &self.upper {
            Some((block, nodes)) if layer > 0 => (block, nodes),
            _ => (&self.block, &self.nodes),
        }
    }

    /// Constant side of a loss that is the mean over so many training nodes, of which this worker
    /// adds its own. Where these are all of the graph, gradients are summed over workers.
    pub fn mean_targets(worker: &Worker, nodes: usize) -> Targets {
        let (shard, task) = (worker.shard(), worker.setting().task());
        let rows = shard.train.iter().map(|&row| row as usize);
        let labelled = rows.map(|row| (row, shard.labels.of(row)));
        mean_targets(shard.owned, task, labelled, nodes, worker.place())
    }
}

/// Runs a model over a worker's graph, layer by layer.
pub struct LayerwiseTrainer {
    graph: LocalGraph,
    dropout: Dropout,
    /// Where it sums gradients over workers itself, those of a layer while the layers below go
    /// back. All workers must do so. Sums of more than two workers may have other last bits than if
    /// all were summed at once, for the order of an element's terms can depend on its place.
    pub(super) buckets: Option<Buckets>,
}

impl LayerwiseTrainer {
    /// A trainer for a worker's graph.
    pub fn new(worker: &Worker, graph: LocalGraph) -> Self {
        Self {
            graph,
            dropout: worker.dropout(),
            buckets: None,
        }
    }

    /// The graph it computes on, which may be another in each step.
    pub const fn graph_mut(&mut self) -> &mut LocalGraph {
        &mut self.graph
    }

    /// One forward and backward pass. `wires[l]` says how the boundary rows of layer `l` travel;
    /// without a wire the layer reads local rows only. `features` are the halo's as well, unless
    /// their product crosses: then they are those of owned rows.
    ///
    /// # Errors
    /// If communication fails.
    pub fn step<'a>(
        &'a self,
        worker: &mut Worker,
        model: &Gnn,
        features: &Input,
        halo: &'a HaloExchange,
        wires: &'a [Option<Wire>],
        epoch: usize,
    ) -> Result<Step, SimError> {
        let crosses = |layer: usize| {
            let (_, nodes) = self.graph.layer(layer);
            Some(Crosses {
                crossing: halo.crossing(),
                wire: wires.get(layer)?.as_ref()?,
                made: &nodes[..self.graph.block.outputs()],
            })
        };
        self.pass(worker, model, features, &crosses, epoch)
    }

    /// As [`Self::step`], where nothing travels: every layer reads local rows only.
    ///
    /// # Errors
    /// If communication fails, where gradients are summed layer by layer.
    pub fn local_step(
        &self,
        worker: &mut Worker,
        model: &Gnn,
        features: &Input,
        epoch: usize,
    ) -> Result<Step, SimError> {
        self.pass(worker, model, features, &|_| None, epoch)
    }

    fn pass<'a>(
        &'a self,
        worker: &mut Worker,
        model: &Gnn,
        features: &Input,
        crosses: &dyn Fn(usize) -> Option<Crosses<'a>>,
        epoch: usize,
    ) -> Result<Step, SimError> {
        let layer = |layer: usize| {
            let (block, nodes) = self.graph.layer(layer);
            PassLayer {
                block,
                nodes,
                crosses: crosses(layer),
            }
        };
        let layers: Vec<PassLayer<'_>> = (0..model.layers()).map(layer).collect();
        let pass = Pass {
            layers: &layers,
            targets: &self.graph.targets,
            dropout: &self.dropout,
            round: epoch as u64,
            buckets: self.buckets.as_ref(),
        };
        pass.run(worker, model, Some(features.clone()))
    }
}
