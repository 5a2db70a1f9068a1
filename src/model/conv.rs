//! Message-passing layers.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};
use rand::RngExt;

use super::{Block, Input, ModelKind, spmm};
use crate::rng::{Purpose, stream};

/// One message-passing layer without its activation.
#[derive(Module, Debug)]
pub enum Conv {
    /// Graph convolution.
    Gcn(GcnConv),
    /// GraphSAGE with mean aggregation.
    Sage(SageConv),
}

/// `A·x·W + b` (Kipf and Welling, 2017).
#[derive(Module, Debug)]
pub struct GcnConv {
    /// `[inputs, outputs]`
    pub weight: Param<Tensor<2>>,
    /// `[outputs]`
    pub bias: Param<Tensor<1>>,
}

/// `x_v·W_self + (mean of neighbours)·W_neighbour + b` (Hamilton, Ying and Leskovec, 2017, with concatenation).
#[derive(Module, Debug)]
pub struct SageConv {
    /// `[inputs, outputs]`
    pub weight_self: Param<Tensor<2>>,
    /// `[inputs, outputs]`
    pub weight_neighbour: Param<Tensor<2>>,
    /// `[outputs]`
    pub bias: Param<Tensor<1>>,
}

impl Conv {
    /// A layer from `inputs` to `outputs` columns with parameters drawn on the host for (`seed`, `layer`): uniform after Glorot and Bengio
    /// (2010), biases zero.
    #[must_use]
    pub fn new(
        kind: ModelKind,
        inputs: usize,
        outputs: usize,
        seed: u64,
        layer: usize,
        device: &Device,
    ) -> Self {
        let weight = |number| glorot(inputs, outputs, seed, layer, number, device);
        let bias = zeros(outputs, device);
        match kind {
            ModelKind::Gcn => Self::Gcn(GcnConv {
                weight: weight(0),
                bias,
            }),
            ModelKind::Sage => Self::Sage(SageConv {
                weight_self: weight(0),
                weight_neighbour: weight(1),
                bias,
            }),
        }
    }

    /// New representations of the block's outputs.
    ///
    /// # Shapes
    /// - input: `[block.inputs, d_in]`
    /// - result: `[block.outputs, d_out]`
    #[must_use]
    pub fn forward(&self, block: &Block, input: &Input) -> Tensor<2> {
        match self {
            Self::Gcn(conv) => {
                aggregate(block, input, conv.weight.val()) + conv.bias.val().unsqueeze()
            }
            Self::Sage(conv) => {
                let own = input.head(block.outputs()).times(conv.weight_self.val());
                own + aggregate(block, input, conv.weight_neighbour.val())
                    + conv.bias.val().unsqueeze()
            }
        }
    }
}

/// `A·x·W`, in the order that gathers the narrower rows.
fn aggregate(block: &Block, input: &Input, weight: Tensor<2>) -> Tensor<2> {
    match input {
        Input::Dense(rows) if rows.dims()[1] < weight.dims()[1] => {
            spmm(&block.matrix, rows.clone()).matmul(weight)
        }
        _ => spmm(&block.matrix, input.times(weight)),
    }
}

/// A weight `[inputs, outputs]` uniform in ±√(6 / (inputs + outputs)).
fn glorot(
    inputs: usize,
    outputs: usize,
    seed: u64,
    layer: usize,
    number: u64,
    device: &Device,
) -> Param<Tensor<2>> {
    let mut rng = stream(seed, Purpose::Parameters, number, layer as u64);
    let bound = (6.0 / (inputs + outputs) as f64).sqrt();
    #[allow(clippy::cast_possible_truncation)] // parameters are single precision
    let values: Vec<f32> = (0..inputs * outputs)
        .map(|_| rng.random_range(-bound..bound) as f32)
        .collect();
    Param::from_data(TensorData::new(values, [inputs, outputs]), device)
}

fn zeros(width: usize, device: &Device) -> Param<Tensor<1>> {
    Param::from_data(TensorData::new(vec![0.0_f32; width], [width]), device)
}

/// Parameters of a dense layer `[inputs, outputs]`, drawn for (`seed`, `layer`) apart from those of the message-passing layer.
#[must_use]
pub fn dense_parameters(
    inputs: usize,
    outputs: usize,
    seed: u64,
    layer: usize,
    device: &Device,
) -> (Param<Tensor<2>>, Param<Tensor<1>>) {
    (
        glorot(inputs, outputs, seed, layer, 2, device),
        zeros(outputs, device),
    )
}
