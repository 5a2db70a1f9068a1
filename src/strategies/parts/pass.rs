//! One forward and backward pass over the layers of a worker, which stops at each of them, so that
//! rows can cross the cut in between.
//!
//! Automatic differentiation works inside a layer. The inputs of a layer are leaves; their
//! gradient, with what other workers send for the rows made here, is the gradient of the layer
//! below. Where rows cross after a layer's product, it works on either side of the exchange:
//!
//! ```text
//!   x ── dropout ── · W ── exchange ── gather ─┬─ output      the way back: gather, exchange,
//!   └─ dropout ── own rows, if the layer reads them ─┘         product; both gradients of x add up
//! ```

use burn::tensor::Tensor;

use super::buckets::{Buckets, Started};
use super::{Crossing, Wire};
use crate::model::{
    Block, Dropout, Gnn, Input, Matrix, Place, RowForm, Targets, add_gradients, carrier,
    cross_entropy, parameter_count,
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
    /// Which of its rows cross the cut, if any do, and how they travel.
    pub crosses: Option<Crosses<'a>>,
}

/// How rows of a layer cross the cut.
#[derive(Clone, Copy)]
pub struct Crosses<'a> {
    /// Which.
    pub crossing: &'a Crossing,
    /// How they travel.
    pub wire: &'a Wire,
    /// Global numbers of the rows made here, for dropout before a product.
    pub made: &'a [u32],
}

/// One forward and backward pass over the layers of a worker.
pub struct Pass<'a> {
    /// One per layer of the model; the outputs of each are what the crossing of the next takes as
    /// made here.
    pub layers: &'a [PassLayer<'a>],
    /// Constant side of the loss, `[outputs of the last layer, classes]`.
    pub targets: &'a Targets,
    /// Dropout of inputs and attention weights.
    pub dropout: &'a Dropout,
    /// Number of the pass in the training, for dropout's draws: the epoch, where that is one step.
    pub round: u64,
    /// Sums the gradients of a layer over workers while the layers below go back, if given; all
    /// workers must do so.
    pub(crate) buckets: Option<&'a Buckets>,
}

/// What one layer leaves for the way back.
#[derive(Default)]
struct Segment {
    /// Its input rows, of which the gradient is wanted; none for the first layer. Where a product
    /// crosses, those of its outputs alone.
    input: Option<Matrix>,
    /// None where the worker has no rows to compute.
    output: Option<Matrix>,
    /// Where rows cross after the product.
    product: Option<Product>,
}

/// The rows of a layer that cross after its product; none where there are no rows.
#[derive(Default)]
struct Product {
    /// The input of the rows made here, of which the gradient is wanted; none for the first layer.
    input: Option<Matrix>,
    /// What the product made of that.
    made: Option<Matrix>,
    /// Own ones and those of others, as the layer gathers them.
    gathered: Option<Matrix>,
}

/// A pass over these blocks, each with the global numbers of its inputs, in which nothing crosses
/// the cut.
///
/// # Errors
/// If communication fails.
pub fn run_alone<'a>(
    worker: &mut Worker,
    model: &Gnn,
    blocks: impl Iterator<Item = (&'a Block, &'a [u32])>,
    targets: &Targets,
    round: u64,
    features: Option<Input>,
) -> Result<Step, SimError> {
    let crosses = None;
    let layer = |(block, nodes)| PassLayer {
        block,
        nodes,
        crosses,
    };
    let pass = Pass {
        layers: &blocks.map(layer).collect::<Vec<_>>(),
        targets,
        dropout: &worker.dropout(),
        round,
        buckets: None,
    };
    pass.run(worker, model, features)
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
            let made = match segments.last() {
                None => features.take(),
                Some(below) => below.output.clone().map(Matrix::inner).map(Input::Dense),
            };
            let segment = if let Some(crosses) = part.product() {
                self.forward_around(worker, model, layer, made, crosses)?
            } else {
                match self.input(worker, layer, made)? {
                    Some(input) if part.block.outputs() > 0 => {
                        self.forward(worker, model, layer, input)
                    }
                    _ => Segment::default(),
                }
            };
            segments.push(segment);
        }
        let mut gradient = vec![0.0_f32; parameter_count(model)];
        let (mut below, mut loss, mut started) = (None, 0.0, Started::default());
        for (layer, segment) in segments.into_iter().enumerate().rev() {
            let Segment {
                input,
                output,
                product,
            } = segment;
            let upstream = below.take();
            let gathered = product.as_ref().and_then(|rows| rows.gathered.clone());
            let (leaves, last) = ([input, gathered], layer + 1 == self.layers.len());
            let mut found = [None, None];
            if let Some(output) = output.filter(|_| last || upstream.is_some()) {
                let value;
                (found, value) = worker.compute(Activity::Model, |_| {
                    let scalar = match upstream {
                        Some(upstream) => output.zip_sum(upstream, carrier),
                        None => cross_entropy(output, self.targets.clone()),
                    };
                    differentiate(model, &scalar, leaves, &mut gradient)
                });
                if last {
                    loss = value;
                }
            }
            below = match (product, self.layers[layer].product()) {
                (Some(product), Some(crosses)) => back_around(
                    worker,
                    model,
                    layer,
                    (product, crosses),
                    found,
                    &mut gradient,
                )?,
                _ => found[0].take(),
            };
            if let Some(buckets) = self.buckets {
                buckets.start(worker, layer, &gradient, &mut started)?;
            }
            if let (1.., Some(Crosses { crossing, wire, .. })) = (layer, self.layers[layer].input())
            {
                let width = worker.setting().model.widths[layer];
                below = crossing.backward(worker, layer, below, width, wire)?;
            }
        }
        if let Some(buckets) = self.buckets {
            buckets.finish(worker, &mut gradient, started)?;
        }
        Ok(Step { gradient, loss })
    }

    /// The input of a layer, given the rows made here; features are there already.
    fn input(
        &self,
        worker: &mut Worker,
        layer: usize,
        made: Option<Input>,
    ) -> Result<Option<Input>, SimError> {
        let part = &self.layers[layer];
        let made = match made {
            made if layer == 0 => return Ok(made),
            Some(Input::Dense(made)) => Some(made),
            _ => None,
        };
        if let Some(Crosses { crossing, wire, .. }) = part.crosses {
            let width = worker.setting().model.widths[layer];
            let all = crossing.forward(worker, layer, made, width, wire)?;
            return Ok(all.map(Input::Dense));
        }
        if made.as_ref().map_or(0, Matrix::rows) == part.block.inputs() {
            return Ok(made.map(Input::Dense));
        }
        Err(SimError::Strategy(format!(
            "layer {layer} reads halo rows, but nothing says how they travel"
        )))
    }

    /// A layer in one piece.
    fn forward(&self, worker: &mut Worker, model: &Gnn, layer: usize, input: Input) -> Segment {
        let (leaf, rows) = as_leaf(layer, input);
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
            product: None,
        }
    }

    /// A layer around its exchange, which stands after its product; `input` is that of the rows
    /// made here.
    fn forward_around(
        &self,
        worker: &mut Worker,
        model: &Gnn,
        layer: usize,
        input: Option<Input>,
        Crosses {
            crossing,
            wire,
            made,
        }: Crosses<'_>,
    ) -> Result<Segment, SimError> {
        let PassLayer { block, nodes, .. } = self.layers[layer];
        let (round, dropout) = (self.round, self.dropout);
        let input = input.filter(|rows| rows.rows() > 0);
        let mut product = Product::default();
        if let Some(rows) = &input {
            let (leaf, rows) = as_leaf(layer, rows.clone());
            let transformed = worker.compute(Activity::Model, |worker| {
                let dropped = rows.dropped(dropout, round, layer, made);
                let transformed = model.transform(layer, &dropped);
                worker.wait_for(&transformed);
                transformed
            });
            (product.input, product.made) = (leaf, Some(transformed));
        }
        let width = worker.setting().model.layer(layer).width(RowForm::Product);
        let rows = product.made.clone().map(Matrix::inner);
        let gathered = crossing.forward(worker, layer, rows, width, wire)?;
        let outputs = block.outputs();
        let (Some(gathered), Some(input)) = (gathered, input.filter(|_| outputs > 0)) else {
            return Ok(Segment {
                product: Some(product),
                ..Segment::default()
            });
        };
        let gathered = gathered.leaf();
        let (leaf, own) = as_leaf(layer, input.head(outputs));
        let output = worker.compute(Activity::Model, |worker| {
            let own = if model.reads_own(layer) {
                own.dropped(dropout, round, layer, &made[..outputs])
            } else {
                own
            };
            let heads = worker.setting().model.attention_heads();
            let block = block.dropped(dropout, round, layer, nodes, heads, worker.place());
            let output = model.gather(layer, &block, &gathered, &own);
            worker.wait_for(&output);
            output
        });
        product.gathered = Some(gathered);
        Ok(Segment {
            input: leaf,
            output: Some(output),
            product: Some(product),
        })
    }
}

impl<'a> PassLayer<'a> {
    /// How rows cross after the layer's product, if they do.
    fn product(&self) -> Option<Crosses<'a>> {
        self.crosses.filter(|crosses| crosses.wire.takes_product())
    }

    /// How rows cross before the layer's product, if they do.
    fn input(&self) -> Option<Crosses<'a>> {
        self.crosses.filter(|crosses| !crosses.wire.takes_product())
    }
}

/// The input of a layer as something that gradients are asked of, and that; features have none.
pub fn as_leaf(layer: usize, input: Input) -> (Option<Matrix>, Input) {
    match input {
        Input::Dense(rows) if layer > 0 => {
            let leaf = rows.leaf();
            (Some(leaf.clone()), Input::Dense(leaf))
        }
        features => (None, features),
    }
}

/// Leaves of a segment, of which gradients are asked: its input, and gathered rows.
pub type Leaves = [Option<Matrix>; 2];

/// Gradients of the scalar that ends a segment: the parameters' are added to `gradient`, the
/// leaves' are returned with the scalar's value.
pub fn differentiate(
    model: &Gnn,
    scalar: &Tensor<1>,
    leaves: Leaves,
    gradient: &mut [f32],
) -> (Leaves, f64) {
    let mut gradients = scalar.backward();
    add_gradients(model, &mut gradients, gradient);
    let value = f64::from(scalar.clone().inner().into_scalar::<f32>());
    let of = |leaf: Option<Matrix>| leaf.and_then(|leaf| leaf.gradient(&mut gradients));
    (leaves.map(of), value)
}

/// The way back through an exchange after a layer's product, and through the product: the gradient
/// of the input of the rows made here, given those of the layer's own rows and of gathered ones.
fn back_around(
    worker: &mut Worker,
    model: &Gnn,
    layer: usize,
    (rows, crosses): (Product, Crosses<'_>),
    [own, gathered]: Leaves,
    gradient: &mut [f32],
) -> Result<Option<Matrix>, SimError> {
    let Crosses { crossing, wire, .. } = crosses;
    let width = worker.setting().model.layer(layer).width(RowForm::Product);
    let arrived = crossing.backward(worker, layer, gathered, width, wire)?;
    let (Some(made), Some(arrived)) = (rows.made, arrived) else {
        return Ok(None);
    };
    Ok(worker.compute(Activity::Model, |worker| {
        let scalar = made.zip_sum(arrived, carrier);
        let ([found, _], _) = differentiate(model, &scalar, [rows.input, None], gradient);
        plus(found, own, worker.place())
    }))
}

/// The sum of the gradients of rows, and of some of them, the first.
fn plus(all: Option<Matrix>, first: Option<Matrix>, place: &Place) -> Option<Matrix> {
    let (Some(all), Some(first)) = (&all, first) else {
        return all;
    };
    let rest = vec![0.0; (all.rows() - first.rows()) * all.width()];
    let first = if rest.is_empty() {
        first
    } else {
        first.followed_by(rest, place)
    };
    Some(all.clone().zip(first, Tensor::add))
}
