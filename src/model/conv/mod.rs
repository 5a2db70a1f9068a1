//! Message-passing layers.

mod gat;
mod gcn;
mod gin;
mod pool;
mod sage;

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};
use rand::RngExt;

use super::{Activation, Block, Input, LayerSpec, Matrix, ModelKind, activate, tiles};
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
    /// A layer with parameters drawn on the host for (`seed`, `layer`): uniform after Glorot and
    /// Bengio (2010), biases zero.
    #[must_use]
    pub fn new(spec: &LayerSpec, seed: u64, layer: usize, device: &Device) -> Self {
        let draws = Draws {
            seed,
            layer,
            device,
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
    #[must_use]
    pub fn forward(&self, block: &Block, input: &Input, activation: Activation) -> Matrix {
        match self {
            Self::Gcn(conv) => conv.forward(block, input, activation),
            Self::Sage(conv) => conv.forward(block, input, activation),
            Self::SagePool(conv) => conv.forward(block, input, activation),
            Self::Gat(conv) => conv.forward(block, input, activation),
            Self::Gin(conv) => conv.forward(block, input, activation),
        }
    }
}

/// `A·x·W`, in the order that gathers the narrower rows.
fn aggregate(block: &Block, input: &Input, weight: Tensor<2>) -> Matrix {
    let sums = |rows: &Matrix| tiles::product(&block.matrix, rows, rows.stripe());
    match input {
        Input::Dense(rows) if rows.width() < weight.dims()[1] => {
            sums(rows).map(|sums| sums.matmul(weight.clone()))
        }
        _ => sums(&input.times(weight)),
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
}

impl Draws<'_> {
    /// Weight `number` of the layer (2 is that of [`dense_parameters`]), `[inputs, outputs]`,
    /// uniform in ±√(6 / (inputs + outputs)).
    fn weight(&self, number: u64, inputs: usize, outputs: usize) -> Param<Tensor<2>> {
        self.heads(number, inputs, 1, outputs)
    }

    /// Weight `number` of the layer for several heads side by side, `[inputs, heads · outputs]`,
    /// each as if it were alone.
    fn heads(&self, number: u64, inputs: usize, heads: usize, outputs: usize) -> Param<Tensor<2>> {
        let bound = (6.0 / (inputs + outputs) as f64).sqrt();
        self.uniform(number, bound, [inputs, heads * outputs])
    }

    fn uniform(&self, number: u64, bound: f64, shape: [usize; 2]) -> Param<Tensor<2>> {
        let mut rng = stream(self.seed, Purpose::Parameters, number, self.layer as u64);
        let values: Vec<f32> = (0..shape[0] * shape[1])
            .map(|_| rng.random_range(-bound..bound) as f32)
            .collect();
        Param::from_data(TensorData::new(values, shape), self.device)
    }

    fn bias(&self, width: usize) -> Param<Tensor<1>> {
        Param::from_data(TensorData::new(vec![0.0_f32; width], [width]), self.device)
    }
}

/// Parameters of a dense layer `[inputs, outputs]`, drawn for (`seed`, `layer`) apart from those of
/// the message-passing layer.
#[must_use]
pub fn dense_parameters(
    inputs: usize,
    outputs: usize,
    seed: u64,
    layer: usize,
    device: &Device,
) -> (Param<Tensor<2>>, Param<Tensor<1>>) {
    const NUMBER: u64 = 2;
    let draws = Draws {
        seed,
        layer,
        device,
    };
    (draws.weight(NUMBER, inputs, outputs), draws.bias(outputs))
}
