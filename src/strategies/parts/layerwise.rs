//! Forward and backward passes that stop at every layer, so that rows can cross the cut in between.
//!
//! Automatic differentiation works inside a layer. The inputs of a layer are leaves; their gradient, with what other workers
//! send for the owned rows, is the gradient of the layer below.

use burn::tensor::Tensor;

use super::buckets::{Buckets, Started};
use super::{HaloExchange, Wire};
use crate::model::{
    Aggregation, Block, Dropout, Gnn, Input, Work, add_gradients, cross_entropy, parameter_count,
    targets,
};
use crate::sim::{Activity, SimError, Worker};

/// The graph a worker computes on.
pub struct LocalGraph {
    /// Aggregation over local rows.
    pub block: Block,
    /// That of the layers above the first, where it is another.
    pub upper: Option<Block>,
    /// Global numbers of the block's inputs, for dropout.
    pub nodes: Vec<u32>,
    /// Constant side of the loss, `[block.outputs, classes]`.
    pub targets: Tensor<2>,
}

impl LocalGraph {
    /// Owned rows that read owned and halo rows, with degrees of the whole graph.
    #[must_use]
    pub fn with_halo(worker: &Worker) -> Self {
        let shard = worker.shard();
        let aggregation = Aggregation::from(worker.setting().model.kind);
        Self {
            block: Block::new(&shard.adjacency, &shard.degrees, aggregation),
            upper: None,
            nodes: shard.nodes.clone(),
            targets: Self::mean_targets(worker, shard.owned),
        }
    }

    /// Owned rows alone: cut edges dropped, degrees counted within.
    #[must_use]
    pub fn without_halo(worker: &Worker) -> Self {
        let shard = worker.shard();
        let aggregation = Aggregation::from(worker.setting().model.kind);
        let (graph, degrees) = shard.without_halo();
        Self {
            block: Block::new(&graph, &degrees, aggregation),
            upper: None,
            nodes: shard.nodes[..shard.owned].to_vec(),
            targets: Self::mean_targets(worker, shard.owned),
        }
    }

    /// Aggregation of one layer.
    #[must_use]
    pub fn block(&self, layer: usize) -> &Block {
        match &self.upper {
            Some(upper) if layer > 0 => upper,
            _ => &self.block,
        }
    }

    /// The loss is the mean over all training nodes of the graph, of which this worker adds its own; so gradients are summed
    /// over workers.
    fn mean_targets(worker: &Worker, rows: usize) -> Tensor<2> {
        #[allow(clippy::cast_possible_truncation)] // loss weights are single precision
        let weight = (1.0 / worker.training_nodes() as f64) as f32;
        let shard = worker.shard();
        let weighted = shard.train.iter().filter_map(|&row| {
            shard.labels[row as usize].map(|class| (row as usize, class, weight))
        });
        targets(
            rows,
            worker.setting().model.classes(),
            weighted,
            worker.plain_device(),
        )
    }
}

/// The result of one forward and backward pass.
pub struct Step {
    /// This worker's gradient of all parameters, flat; the sum of all workers' if the trainer sums it.
    pub gradient: Vec<f32>,
    /// This worker's share of the loss.
    pub loss: f64,
    /// Logits of the block's outputs.
    pub logits: Tensor<2>,
}

/// Runs a model over a worker's graph, layer by layer.
pub struct LayerwiseTrainer {
    graph: LocalGraph,
    dropout: Dropout,
    buckets: Option<Buckets>,
}

/// What one layer leaves for the way back.
struct Segment {
    /// Its input rows, of which the gradient is wanted; none for the first layer.
    input: Option<Tensor<2>>,
    output: Tensor<2>,
}

impl LayerwiseTrainer {
    /// A trainer for a worker's graph.
    #[must_use]
    pub fn new(worker: &Worker, graph: LocalGraph) -> Self {
        Self {
            graph,
            dropout: worker.dropout(),
            buckets: None,
        }
    }

    /// One that sums gradients over workers itself, those of a layer while the layers below go back. All workers must do so.
    /// Sums of more than two workers may have other last bits than if all were summed at once, for the order of an element's
    /// terms can depend on its place.
    #[must_use]
    pub fn summing_by_layer(self, worker: &Worker) -> Self {
        Self {
            buckets: Some(Buckets::new(&worker.setting().model)),
            ..self
        }
    }

    /// The graph it computes on.
    #[must_use]
    pub const fn graph(&self) -> &LocalGraph {
        &self.graph
    }

    /// Replaces the constant side of the loss.
    pub fn set_targets(&mut self, targets: Tensor<2>) {
        self.graph.targets = targets;
    }

    /// One forward and backward pass. `wires[l]` says how the boundary rows of layer `l`'s input travel; without a wire the layer
    /// reads local rows only.
    ///
    /// # Errors
    /// If communication fails.
    pub fn step(
        &self,
        worker: &mut Worker,
        model: &Gnn,
        features: &Input,
        halo: &HaloExchange,
        wires: &[Option<Wire>],
        epoch: usize,
    ) -> Result<Step, SimError> {
        let mut segments: Vec<Segment> = Vec::with_capacity(model.layers());
        for layer in 0..model.layers() {
            let input = match (segments.last(), wires.get(layer).and_then(Option::as_ref)) {
                (None, _) => None,
                (Some(below), None) if below.output.dims()[0] == self.graph.block.inputs() => {
                    Some(below.output.clone().inner())
                }
                (Some(_), None) => {
                    return Err(SimError::Strategy(format!(
                        "layer {layer} reads halo rows, but nothing says how they travel"
                    )));
                }
                (Some(below), Some(wire)) => {
                    Some(halo.forward(worker, layer, below.output.clone().inner(), wire)?)
                }
            };
            let segment = self.forward(worker, model, layer, features, input, epoch);
            segments.push(segment);
        }
        let mut gradient = vec![0.0_f32; parameter_count(model)];
        let Some(last) = segments.pop() else {
            return Err(SimError::Strategy(
                "a model needs at least one layer".to_owned(),
            ));
        };
        let logits = last.output.clone().inner();
        let loss = || cross_entropy(last.output, self.graph.targets.clone());
        let (mut below, loss) = self.backward(worker, model, loss, last.input, &mut gradient);
        let mut started = Started::default();
        self.start(worker, model.layers() - 1, &gradient, &mut started)?;
        for (layer, segment) in segments.into_iter().enumerate().rev() {
            let Some(mut upstream) = below.take() else {
                break;
            };
            if let Some(wire) = wires.get(layer + 1).and_then(Option::as_ref) {
                upstream = halo.backward(worker, layer + 1, upstream, wire)?;
            }
            // The derivative of Σ output·g with respect to the output is g: one scalar carries the whole upstream gradient.
            let surrogate = || (segment.output * upstream).sum();
            (below, _) = self.backward(worker, model, surrogate, segment.input, &mut gradient);
            self.start(worker, layer, &gradient, &mut started)?;
        }
        if let Some(buckets) = &self.buckets {
            buckets.start(worker, 0, &gradient, &mut started)?;
            buckets.finish(worker, &mut gradient, started)?;
        }
        Ok(Step {
            gradient,
            loss,
            logits,
        })
    }

    /// The gradients of a layer, and of those above it, are complete.
    fn start(
        &self,
        worker: &mut Worker,
        layer: usize,
        gradient: &[f32],
        started: &mut Started,
    ) -> Result<(), SimError> {
        match &self.buckets {
            Some(buckets) => buckets.start(worker, layer, gradient, started),
            None => Ok(()),
        }
    }

    fn forward(
        &self,
        worker: &mut Worker,
        model: &Gnn,
        layer: usize,
        features: &Input,
        input: Option<Tensor<2>>,
        epoch: usize,
    ) -> Segment {
        let leaf = input.map(|rows| Tensor::from_inner(rows).require_grad());
        let rows = leaf.clone().map_or_else(|| features.clone(), Input::Dense);
        let block = self.graph.block(layer);
        let work = Work::layer(&worker.setting().model, layer, block, &rows);
        let output = worker.compute(Activity::Model, work, |worker| {
            let plain = worker.plain_device();
            let dropped =
                rows.dropped(&self.dropout, epoch as u64, layer, &self.graph.nodes, plain);
            let (heads, nodes) = (worker.setting().model.attention_heads(), &self.graph.nodes);
            let block = block.dropped(&self.dropout, epoch as u64, layer, nodes, heads, plain);
            let output = model.layer(layer, &block, &dropped);
            worker.wait_for(&output);
            output
        });
        Segment {
            input: leaf,
            output,
        }
    }

    /// Gradients of the scalar that ends a segment: the parameters' are added to `gradient`, the input's is returned with the
    /// scalar's value.
    fn backward(
        &self,
        worker: &mut Worker,
        model: &Gnn,
        scalar: impl FnOnce() -> Tensor<1>,
        input: Option<Tensor<2>>,
        gradient: &mut [f32],
    ) -> (Option<Tensor<2>>, f64) {
        let work = self.backward_work(worker, input.as_ref());
        worker.compute(Activity::Model, work, |_| {
            let scalar = scalar();
            let mut gradients = scalar.backward();
            add_gradients(model, &mut gradients, gradient);
            let value = f64::from(scalar.inner().into_scalar::<f32>());
            (
                input.and_then(|leaf| leaf.grad_remove(&mut gradients)),
                value,
            )
        })
    }

    /// Twice the forward pass: one product for the weights, one for the rows.
    fn backward_work(&self, worker: &Worker, input: Option<&Tensor<2>>) -> Work {
        let spec = &worker.setting().model;
        let layer = if input.is_none() {
            0
        } else {
            spec.layers() - 1
        };
        let rows = input.map_or(0, |rows| rows.dims()[0]) * spec.widths[layer];
        let block = &self.graph.block;
        let (inner, columns) = (spec.widths[layer], spec.layer(layer).transformed());
        (Work::product(
            block.inputs(),
            rows.max(block.inputs() * columns),
            inner,
            columns,
        ) + Work::aggregation(block.inputs(), block.matrix.entries(), columns))
            * 2.0
    }
}
