//! What one client trains on.

use super::sums;
use crate::graph::Csr;
use crate::model::{Aggregation, Block, BlockShape, Gnn, Input, InputShape, Targets};
use crate::sim::{Setting, SimError, Worker};
use crate::strategies::parts::{LocalGraph, Step, run_alone};

/// A client's layers: what each gathers, of which nodes.
pub(super) struct Client {
    layers: Vec<(Block, Vec<u32>)>,
    features: Input,
    targets: Targets,
}

impl Client {
    /// That of a worker; exchanges sums of features where there are `hops`.
    ///
    /// # Errors
    /// If communication fails.
    pub(super) fn new(worker: &mut Worker, hops: usize) -> Result<Self, SimError> {
        let features = if hops == 0 {
            Input::from_features(worker.shard().features.clone(), worker.place())
        } else {
            sums::exchanged(worker, hops)?
        };
        // Gradients are not summed, so the mean is over own training nodes alone.
        let own = worker.shard().train.len();
        let layers = worker.setting().model.layers();
        Ok(Self {
            layers: (0..layers)
                .map(|layer| block(worker, hops, layer))
                .collect(),
            features,
            targets: LocalGraph::mean_targets(worker, own),
        })
    }

    /// Loss and gradient of this client; `round` is the number of the step in the training.
    ///
    /// # Errors
    /// If the step fails.
    pub(super) fn step(
        &self,
        worker: &mut Worker,
        model: &Gnn,
        round: usize,
    ) -> Result<Step, SimError> {
        let layers = self.layers.iter().map(|(block, nodes)| (block, &nodes[..]));
        let features = Some(self.features.clone());
        run_alone(worker, model, layers, &self.targets, round as u64, features)
    }
}

/// What a layer gathers, and of which nodes.
fn block(worker: &Worker, hops: usize, layer: usize) -> (Block, Vec<u32>) {
    let (shard, setting) = (worker.shard(), worker.setting());
    let aggregation = setting.model.aggregation();
    let own = shard.nodes[..shard.owned].to_vec();
    let (within, degrees) = shard.without_halo();
    if hops == 0 {
        return (Block::new(&within, &degrees, aggregation), own);
    }
    // Degrees are those of the whole graph, as in the sums.
    let degrees = &shard.degrees;
    match layer {
        // Sums are there already: each row is its own.
        0 => {
            let rows = sums::rows(hops, setting.model.layers(), [shard.owned, shard.halo()]);
            let alone = Csr::from_edges(rows, std::iter::empty());
            let alone = Block::new(&alone, &vec![0; rows], Aggregation::SymmetricWithSelf);
            (alone, shard.nodes[..rows].to_vec())
        }
        1 if hops == 2 => {
            let block = Block::new(&shard.adjacency, degrees, aggregation);
            (block, shard.nodes.clone())
        }
        _ => {
            let block = Block::new(&within, &degrees[..shard.owned], aggregation);
            (block, own)
        }
    }
}

/// The same in numbers: the blocks of all layers, and the input of the first.
pub(super) fn shapes(setting: &Setting, rank: usize, hops: usize) -> (Vec<BlockShape>, InputShape) {
    let (model, part) = (&setting.model, &setting.counts.parts[rank]);
    let of = |outputs, inputs, edges| BlockShape::of(outputs, inputs, edges, model.aggregation());
    let within = of(part.owned, part.owned, part.internal_edges);
    let layers = 0..model.layers();
    if hops == 0 {
        let features = InputShape::new(part.own_values, setting.counts.dense);
        return (layers.map(|_| within).collect(), features);
    }
    let rows = sums::rows(hops, model.layers(), [part.owned, part.halo]);
    let layer = |layer| match layer {
        0 => of(rows, rows, 0),
        1 if hops == 2 => {
            let edges = part.internal_edges + part.cut_edges;
            of(part.owned, part.owned + part.halo, edges)
        }
        _ => within,
    };
    let features = InputShape::dense(rows, model.features());
    (layers.map(layer).collect(), features)
}
