//! Mini-batches over a working graph: neighbours are drawn among those that the worker holds, and
//! each batch has weights of its own.

use super::chances::inverse_chances;
use super::estimators::{Weight, share_of_loss};
use super::layout::Layout;
use super::norms;
use super::weighing::{Weighing, Weights};
use super::working::{Seed, WorkingGraph};
use crate::graph::{Label, Sampler, Steps, View, seeds_of, shuffled};
use crate::model::{Block, EdgeDegrees, Gnn, Input, targets};
use crate::sim::{Activity, SimError, Worker};
use crate::strategies::parts::{Step, draw_alone, run_alone};

/// Which step of the training one is.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub epoch: usize,
    /// Of the epoch.
    pub step: usize,
    /// Steps before it in all epochs, which may have different numbers of them. Numbers the draws
    /// of dropout.
    pub taken: u64,
}

/// A working graph to draw from.
pub(super) struct WorkingBatches {
    pub graph: WorkingGraph,
    /// What aggregations divide by.
    pub degrees: EdgeDegrees,
    /// Features of all its nodes.
    pub features: Input,
    /// Weights of its seeds before those of a batch are compared.
    pub weights: Vec<f64>,
    /// Chunk of each node, for weights of edges.
    pub chunks: Vec<usize>,
    pub fanouts: Vec<usize>,
    pub steps: Steps,
}

impl WorkingBatches {
    /// The seeds in the order of an epoch, as places in the list of them.
    pub(super) fn order(&self, worker: &Worker, epoch: usize) -> Vec<u32> {
        let seeds: Vec<u32> = (0..self.graph.seeds.len() as u32).collect();
        shuffled(worker.setting().seed, epoch, worker.rank(), &seeds)
    }

    /// Loss and gradient of one step, with the weights of its seeds.
    ///
    /// # Errors
    /// If communication fails.
    pub(super) fn step(
        &self,
        worker: &mut Worker,
        model: &Gnn,
        (weighing, layout): (&Weighing, &Layout<'_>),
        order: &[u32],
        At { epoch, step, taken }: At,
    ) -> Result<(Step, Weights), SimError> {
        let setting = worker.setting().clone();
        let places = seeds_of(order, &self.steps, worker.rank(), step);
        let seeds: Vec<Seed> = places
            .iter()
            .map(|&place| self.graph.seeds[place as usize].clone())
            .collect();
        let view = View {
            adjacency: &self.graph.adjacency,
            nodes: &self.graph.nodes,
            own: self.graph.nodes.len(),
        };
        let sampler = Sampler::new(setting.seed, epoch, step, &self.fanouts);
        let outputs = seeds.iter().map(|seed| seed.row as u32).collect();
        let layers = draw_alone(worker, &sampler, &view, outputs, model.layers());
        let blocks: Vec<Block> = worker.compute(Activity::Exchange, |_| {
            let aggregation = setting.model.aggregation();
            let block = |(layer, sampled): (usize, &crate::graph::SampledLayer)| {
                let rows = &sampled.rows;
                let block = Block::sampled_directed(sampled, &self.degrees.of(rows), aggregation);
                if weighing.weight != Weight::EdgeHt || (layout.rules().halo && layer == 0) {
                    return block;
                }
                let chance = inverse_chances(layout, &self.chunks, self.graph.inner);
                block.scaled(|v, u| chance(rows[v as usize], rows[u as usize]))
            };
            layers.iter().enumerate().map(block).collect()
        });
        let first = &layers[0].rows;
        let features = worker.compute(Activity::Exchange, |_| {
            (!first.is_empty()).then(|| self.features.select(first))
        });
        let weights = places.iter().map(|&place| self.weights[place as usize]);
        let norms = match (weighing.weight, &features) {
            (Weight::BatchGram, Some(features)) => {
                let seeds = seeds.iter().map(|seed| seed.label.clone());
                let seeds: Vec<(usize, Label)> = seeds.enumerate().collect();
                let blocks: Vec<&Block> = blocks.iter().collect();
                norms::squared(worker, model, &blocks, features, &seeds)
            }
            _ => Vec::new(),
        };
        let total = self.steps.seeds(step).max(1);
        let weights = weighing.agreed(worker, weights.collect(), &norms, total)?;
        let weighted = seeds.iter().zip(&weights.of_nodes).enumerate();
        let share = |weight: &f64| share_of_loss(*weight, total);
        let weighted =
            weighted.map(|(row, (seed, weight))| (row, seed.label.clone(), share(weight)));
        let constant = targets(seeds.len(), setting.task(), weighted, worker.place());
        let nodes: Vec<Vec<u32>> = layers
            .iter()
            .map(|layer| {
                let rows = layer.rows.iter();
                rows.map(|&row| self.graph.nodes[row as usize]).collect()
            })
            .collect();
        let parts = blocks.iter().zip(nodes.iter().map(Vec::as_slice));
        let step = run_alone(worker, model, parts, &constant, taken, features)?;
        Ok((step, weights))
    }
}
