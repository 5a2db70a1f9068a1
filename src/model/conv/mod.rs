//! Message-passing layers.

mod gat;
mod gcn;
mod gin;
mod pool;
mod sage;
mod sage_product;

use std::f64::consts::SQRT_2;

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};
use rand::RngExt;
use rand_distr::StandardNormal;

use super::layer::sums_first;
use super::{
    Activation, Block, Init, Input, LayerSpec, Matrix, ModelKind, activate, product, tiles,
};
use crate::rng::{Purpose, stream};

pub use gat::GatConv;
pub use gcn::GcnConv;
pub use gin::GinConv;
pub use pool::PoolConv;
pub use sage::SageConv;

/// One message-passing layer.
#[derive(Module, Debug)]
pub enum Conv {
    /// Graph convolution.
    Gcn(GcnConv),
    /// GraphSAGE with mean aggregation.
    Sage(SageConv),
    /// GraphSAGE with max-pooling aggregation.
    SagePool(PoolConv),
    /// Graph attention.
    Gat(GatConv),
    /// Graph isomorphism network.
    Gin(GinConv),
}

impl Conv {
    /// A layer with parameters drawn on the host for (`seed`, `layer`), as `spec.init` says.
    pub fn new(spec: &LayerSpec, seed: u64, layer: usize, device: &Device) -> Self {
        let draws = Draws {
            seed,
            layer,
            device,
            kind: Some(spec.kind),
            init: spec.init,
            gain: spec.gain,
        };
        match spec.kind {
            ModelKind::Gcn => Self::Gcn(GcnConv::new(spec, &draws)),
            ModelKind::Sage => Self::Sage(SageConv::new(spec, &draws)),
            ModelKind::SagePool => Self::SagePool(PoolConv::new(spec, &draws)),
            ModelKind::Gat => Self::Gat(GatConv::new(spec, &draws)),
            ModelKind::Gin => Self::Gin(GinConv::new(spec, &draws)),
        }
    }

    /// New representations of the block's outputs, through `activation`.
    ///
    /// # Shapes
    /// - input: `[block.inputs, d_in]`
    /// - result: `[block.outputs, d_out]`
    pub fn forward(&self, block: &Block, input: &Input, activation: Activation) -> Matrix {
        match self {
            Self::Gcn(conv) => conv.forward(block, input, activation),
            Self::Sage(conv) => conv.forward(block, input, activation),
            Self::SagePool(conv) => conv.forward(block, input, activation),
            Self::Gat(conv) => conv.forward(block, input, activation),
            Self::Gin(conv) => conv.forward(block, input, activation),
        }
    }

    /// What the first product makes of rows before neighbours gather them; for `sage-pool` with its
    /// bias and ReLU, for each row is on its own until the maximum is taken.
    ///
    /// # Shapes
    /// - input: `[rows, d_in]`
    /// - result: `[rows, d]`, with the `d` of [`LayerSpec::transformed`]
    pub(crate) fn transform(&self, input: &Input) -> Matrix {
        match self {
            Self::Gcn(conv) => input.times(conv.weight.val()),
            Self::Sage(conv) => input.times(conv.weight_neighbour.val()),
            Self::SagePool(conv) => conv.transform(input),
            Self::Gat(conv) => input.times(conv.weight.val()),
            Self::Gin(conv) => input.times(conv.weight_inner.val()),
        }
    }

    /// As [`Self::forward`], given what [`Self::transform`] made of the block's inputs, and the
    /// input of its outputs alone, which is not read unless [`Self::reads_own`].
    ///
    /// # Shapes
    /// - rows: `[block.inputs, d]`
    /// - own: `[block.outputs, d_in]`
    /// - result: `[block.outputs, d_out]`
    pub(crate) fn gather(
        &self,
        block: &Block,
        rows: &Matrix,
        own: &Input,
        activation: Activation,
    ) -> Matrix {
        match self {
            Self::Gcn(conv) => activated(sums(block, rows), &conv.bias, activation),
            Self::Sage(conv) => conv.combine(own, sums(block, rows), activation),
            Self::SagePool(conv) => conv.gather(block, rows, own, activation),
            Self::Gat(conv) => conv.gather(block, rows, activation),
            Self::Gin(conv) => conv.perceptron(sums(block, rows), activation),
        }
    }

    /// Whether the layer reads the input of its outputs beside what it gathers.
    pub(crate) const fn reads_own(&self) -> bool {
        matches!(self, Self::Sage(_) | Self::SagePool(_))
    }
}

/// `A·x`: what the outputs of a block gather of rows, weighted and summed.
///
/// # Shapes
/// - rows: `[block.inputs, width]`
/// - result: `[block.outputs, width]`
pub(crate) fn sums(block: &Block, rows: &Matrix) -> Matrix {
    tiles::product(&block.matrix, rows, rows.stripe())
}

/// `A·x·W`, in the order that [`sums_first`] says.
fn aggregate(block: &Block, input: &Input, weight: Tensor<2>) -> Matrix {
    match input {
        Input::Dense(rows) if sums_first(block.sampled, rows.width(), weight.dims()[1]) => {
            // Of features it is the same in every epoch, where nothing is dropped of them.
            let sums = rows.once(&block.matrix, || sums(block, rows));
            sums.map(|sums| product(sums, weight.clone()))
        }
        // Sparse features go through the weight first, whatever the widths: the product gathers
        // dense rows only.
        _ => sums(block, &input.times(weight)),
    }
}

/// `activation(rows + bias)`.
fn activated(rows: Matrix, bias: &Param<Tensor<1>>, activation: Activation) -> Matrix {
    rows.map(|rows| activate(rows, bias.val(), activation))
}

/// Where the initial parameters of a layer come from.
struct Draws<'a> {
    seed: u64,
    layer: usize,
    device: &'a Device,
    /// The kind of layer; none of a dense one.
    kind: Option<ModelKind>,
    init: Init,
    gain: f64,
}

/// What values are drawn from, with zero as its mean.
#[derive(Clone, Copy)]
enum Law {
    /// Between the bound and its negative, equally likely.
    Uniform(f64),
    /// Normal, with a standard deviation.
    Normal(f64),
}

impl Draws<'_> {
    /// Weight `number` of the layer (2 is that of [`dense_parameters`], 4 and 5 are biases),
    /// `[inputs, outputs]`.
    fn weight(&self, number: u64, inputs: usize, outputs: usize) -> Param<Tensor<2>> {
        self.heads(number, inputs, 1, outputs)
    }

    /// Weight `number` of the layer, `[inputs, outputs]`, as a part of one product of `fan_in`
    /// inputs.
    fn part_of(
        &self,
        number: u64,
        fan_in: usize,
        inputs: usize,
        outputs: usize,
    ) -> Param<Tensor<2>> {
        let law = match self.init {
            Init::Glorot | Init::Dgl => self.law(inputs, outputs),
            Init::UniformFanIn => self.law(fan_in, outputs),
        };
        self.drawn(number, law, [inputs, outputs])
    }

    /// Weight `number` of the layer for several heads side by side, `[inputs, heads · outputs]`:
    /// each as if it were alone, but by `dgl`.
    fn heads(&self, number: u64, inputs: usize, heads: usize, outputs: usize) -> Param<Tensor<2>> {
        let all = heads * outputs;
        let law = match self.init {
            Init::Glorot | Init::UniformFanIn => self.law(inputs, outputs),
            Init::Dgl => self.law(inputs, all),
        };
        self.drawn(number, law, [inputs, all])
    }

    /// Weight `number` of the layer that makes a score of each head's columns, `[heads, width]`.
    fn scores(&self, number: u64, heads: usize, width: usize) -> Param<Tensor<2>> {
        let law = match self.init {
            // A product of one head with a column, as in the authors' code.
            Init::Glorot | Init::UniformFanIn => self.law(width, 1),
            // PyTorch takes the second size of `[1, heads, width]` for inputs, the first for
            // outputs, and what is left for a field that each of them is read in.
            Init::Dgl => self.law(heads * width, width),
        };
        self.drawn(number, law, [heads, width])
    }

    /// What weights between so many inputs and outputs are drawn from.
    fn law(&self, inputs: usize, outputs: usize) -> Law {
        let both = (inputs + outputs) as f64;
        // A third of the square of the bound is the variance of a uniform value: as for a normal.
        let uniform = |gain: f64| Law::Uniform(self.gain * (gain * (6.0 / both).sqrt()));
        match (self.init, self.kind) {
            (Init::Glorot, _) | (Init::Dgl, Some(ModelKind::Gcn)) => uniform(1.0),
            (Init::Dgl, Some(ModelKind::Sage | ModelKind::SagePool)) => uniform(SQRT_2),
            (Init::Dgl, Some(ModelKind::Gat)) => {
                Law::Normal(self.gain * (SQRT_2 * (2.0 / both).sqrt()))
            }
            (Init::UniformFanIn, _) | (Init::Dgl, Some(ModelKind::Gin) | None) => {
                Law::Uniform(self.gain * fan_in_bound(inputs))
            }
        }
    }

    fn drawn(&self, number: u64, law: Law, shape: [usize; 2]) -> Param<Tensor<2>> {
        let values = self.values(number, law, shape[0] * shape[1]);
        Param::from_data(TensorData::new(values, shape), self.device)
    }

    fn values(&self, number: u64, law: Law, count: usize) -> Vec<f32> {
        // Not by burn, which has one generator a backend for the whole process: workers would race
        // for it.
        let mut rng = stream(self.seed, Purpose::Parameters, number, self.layer as u64);
        let one = |_| match law {
            Law::Uniform(bound) => rng.random_range(-bound..bound) as f32,
            Law::Normal(deviation) => {
                let standard: f64 = rng.sample(StandardNormal);
                (deviation * standard) as f32
            }
        };
        (0..count).map(one).collect()
    }

    /// Bias `number` of the layer, behind a product of so many `inputs`.
    fn bias(&self, number: u64, inputs: usize, width: usize) -> Param<Tensor<1>> {
        let is_zero = match self.init {
            Init::Glorot => true,
            Init::UniformFanIn => false,
            // Others are those of a `Linear`, of whose values the weights alone are drawn anew.
            Init::Dgl => matches!(self.kind, Some(ModelKind::Gcn | ModelKind::Gat)),
        };
        let values = if is_zero {
            vec![0.0; width]
        } else {
            // Without the gain: that setting speaks of weights alone.
            self.values(number, Law::Uniform(fan_in_bound(inputs)), width)
        };
        Param::from_data(TensorData::new(values, [width]), self.device)
    }
}

/// The bound of `PyTorch`'s `Linear`.
fn fan_in_bound(inputs: usize) -> f64 {
    1.0 / (inputs as f64).sqrt()
}

/// Numbers of the biases of a layer among its draws.
// Part of the key of a draw, as the numbers of weights: another one would change every published
// run.
const BIAS: u64 = 4;
const SECOND_BIAS: u64 = 5;

/// Parameters of a dense layer `[inputs, outputs]`, drawn for (`seed`, `layer`) apart from those of
/// the message-passing layer, from `init` with bounds times `gain`.
pub(crate) fn dense_parameters(
    (init, gain): (Init, f64),
    [inputs, outputs]: [usize; 2],
    seed: u64,
    layer: usize,
    device: &Device,
) -> (Param<Tensor<2>>, Param<Tensor<1>>) {
    const NUMBER: u64 = 2;
    const DENSE_BIAS: u64 = 6;
    let draws = Draws {
        seed,
        layer,
        device,
        kind: None,
        init,
        gain,
    };
    let weight = draws.weight(NUMBER, inputs, outputs);
    (weight, draws.bias(DENSE_BIAS, inputs, outputs))
}
