//! One forward and backward pass over the layers of a worker, which stops at each of them, so that
//! rows can cross the cut in between.
//!
//! Automatic differentiation works inside a layer. The inputs of a layer are leaves; their
//! gradient, with what other workers send for the rows made here, is the gradient of the layer
//! below.

use burn::tensor::Tensor;

use super::buckets::{Buckets, Started};
use super::{Crossing, Wire};
use crate::model::{
    Block, Dropout, Gnn, Input, Matrix, add_gradients, carrier, cross_entropy, parameter_count,
};
use crate::sim::{Activity, SimError, Worker};

/// The result of one forward and backward pass.
pub struct Step {
    /// This worker's gradient of all parameters, flat; the sum of all workers' if the pass sums it.
    pub gradient: Vec<f32>,
    /// This worker's share of the loss.
    pub loss: f64,
}

/// What one layer of a pass computes on.
pub struct PassLayer<'a> {
    /// Its aggregation.
    pub block: &'a Block,
    /// Global numbers of its inputs, for dropout.
    pub nodes: &'a [u32],
    /// Which rows of its input cross the cut, if any do, and how they travel.
    pub crosses: Option<(&'a Crossing, &'a Wire)>,
}

/// One forward and backward pass over the layers of a worker.
pub struct Pass<'a> {
    /// One per layer of the model; the outputs of each are what the crossing of the next takes as
    /// made here.
    pub layers: &'a [PassLayer<'a>],
    /// Constant side of the loss, `[outputs of the last layer, classes]`.
    pub targets: &'a Matrix,
    /// Dropout of inputs and attention weights.
    pub dropout: &'a Dropout,
    /// Number of the pass in the training, for dropout's draws: the epoch, where that is one step.
    pub round: u64,
    /// Sums the gradients of a layer over workers while the layers below go back, if given; all
    /// workers must do so.
    pub buckets: Option<&'a Buckets>,
}

/// What one layer leaves for the way back.
#[derive(Default)]
struct Segment {
    /// Its input rows, of which the gradient is wanted; none for the first layer.
    input: Option<Matrix>,
    /// None where the worker has no rows to compute.
    output: Option<Matrix>,
}

impl Pass<'_> {
    /// Loss and gradient; `features` are the input of the first layer, none for no rows.
    ///
    /// # Errors
    /// If communication fails.
    pub fn run(
        &self,
        worker: &mut Worker,
        model: &Gnn,
        mut features: Option<Input>,
    ) -> Result<Step, SimError> {
        let mut segments: Vec<Segment> = Vec::with_capacity(self.layers.len());
        for (layer, part) in self.layers.iter().enumerate() {
            let input = match segments.last() {
                None => features.take(),
                Some(below) => self.input(worker, layer, below)?.map(Input::Dense),
            };
            let segment = match input {
                Some(input) if part.block.outputs() > 0 => {
                    self.forward(worker, model, layer, input)
                }
                _ => Segment::default(),
            };
            segments.push(segment);
        }
        let mut gradient = vec![0.0_f32; parameter_count(model)];
        let (mut below, mut loss, mut started) = (None, 0.0, Started::default());
        for (layer, segment) in segments.into_iter().enumerate().rev() {
            let Segment { input, output } = segment;
            if let Some(above) = self.layers.get(layer + 1) {
                let mut upstream = below.take();
                if let Some((crossing, wire)) = above.crosses {
                    let width = worker.setting().model.widths[layer + 1];
                    upstream = crossing.backward(worker, layer + 1, upstream, width, wire)?;
                }
                if let (Some(output), Some(upstream)) = (output, upstream) {
                    let scalar = || output.zip_sum(upstream, carrier);
                    (below, _) = backward(worker, model, scalar, input, &mut gradient);
                }
            } else if let Some(output) = output {
                let scalar = || cross_entropy(output, self.targets.clone());
                (below, loss) = backward(worker, model, scalar, input, &mut gradient);
            }
            if let Some(buckets) = self.buckets {
                buckets.start(worker, layer, &gradient, &mut started)?;
            }
        }
        if let Some(buckets) = self.buckets {
            buckets.finish(worker, &mut gradient, started)?;
        }
        Ok(Step { gradient, loss })
    }

    /// The input of a layer above the first, given the layer below it.
    fn input(
        &self,
        worker: &mut Worker,
        layer: usize,
        below: &Segment,
    ) -> Result<Option<Matrix>, SimError> {
        let made = below.output.clone().map(Matrix::inner);
        let part = &self.layers[layer];
        if let Some((crossing, wire)) = part.crosses {
            let width = worker.setting().model.widths[layer];
            return crossing.forward(worker, layer, made, width, wire);
        }
        if made.as_ref().map_or(0, Matrix::rows) == part.block.inputs() {
            return Ok(made);
        }
        Err(SimError::Strategy(format!(
            "layer {layer} reads halo rows, but nothing says how they travel"
        )))
    }

    fn forward(&self, worker: &mut Worker, model: &Gnn, layer: usize, input: Input) -> Segment {
        let (leaf, rows) = match input {
            Input::Dense(rows) if layer > 0 => {
                let leaf = rows.leaf();
                (Some(leaf.clone()), Input::Dense(leaf))
            }
            features => (None, features),
        };
        let PassLayer { block, nodes, .. } = self.layers[layer];
        let (round, dropout) = (self.round, self.dropout);
        let output = worker.compute(Activity::Model, |worker| {
            let dropped = rows.dropped(dropout, round, layer, nodes);
            let heads = worker.setting().model.attention_heads();
            let block = block.dropped(dropout, round, layer, nodes, heads, worker.place());
            let output = model.layer(layer, &block, &dropped);
            worker.wait_for(&output);
            output
        });
        Segment {
            input: leaf,
            output: Some(output),
        }
    }
}

/// Gradients of the scalar that ends a segment: the parameters' are added to `gradient`, the
/// input's is returned with the scalar's value.
fn backward(
    worker: &mut Worker,
    model: &Gnn,
    scalar: impl FnOnce() -> Tensor<1>,
    input: Option<Matrix>,
    gradient: &mut [f32],
) -> (Option<Matrix>, f64) {
    worker.compute(Activity::Model, |_| {
        let scalar = scalar();
        let mut gradients = scalar.backward();
        add_gradients(model, &mut gradients, gradient);
        let value = f64::from(scalar.inner().into_scalar::<f32>());
        (input.and_then(|leaf| leaf.gradient(&mut gradients)), value)
    })
}
