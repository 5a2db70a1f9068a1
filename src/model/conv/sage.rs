//! GraphSAGE with mean aggregation.

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use super::{BIAS, Draws, SECOND_BIAS, aggregate};
use crate::model::{Activation, Block, Input, LayerSpec, Matrix, activate};

/// `x_v·W_self + (mean of neighbours)·W_neighbour + b` (Hamilton, Ying and Leskovec, 2017, with
/// concatenation).
#[derive(Module, Debug)]
pub struct SageConv {
    /// `[inputs, outputs]`
    pub weight_self: Param<Tensor<2>>,
    /// `[inputs, outputs]`
    pub weight_neighbour: Param<Tensor<2>>,
    /// `[outputs]`
    pub bias: Param<Tensor<1>>,
    /// `[outputs]`: that of the neighbours' product, where each product has one.
    pub bias_neighbour: Option<Param<Tensor<1>>>,
}

impl SageConv {
    pub(super) fn new(spec: &LayerSpec, draws: &Draws) -> Self {
        Self {
            weight_self: draws.weight(0, spec.inputs, spec.outputs),
            weight_neighbour: draws.weight(1, spec.inputs, spec.outputs),
            bias: draws.bias(BIAS, spec.inputs, spec.outputs),
            bias_neighbour: (spec.biases > 1)
                .then(|| draws.bias(SECOND_BIAS, spec.inputs, spec.outputs)),
        }
    }

    pub(super) fn forward(&self, block: &Block, input: &Input, activation: Activation) -> Matrix {
        let own = input.head(block.outputs());
        let sums = aggregate(block, input, self.weight_neighbour.val());
        self.combine(&own, sums, activation)
    }

    /// The output, given own rows and the neighbours' means after their product.
    pub(super) fn combine(&self, own: &Input, sums: Matrix, activation: Activation) -> Matrix {
        let own = own.times(self.weight_self.val());
        let sums = own.zip(sums, Tensor::add);
        let mut bias = self.bias.val();
        if let Some(other) = &self.bias_neighbour {
            bias = bias + other.val();
        }
        sums.map(|rows| activate(rows, bias.clone(), activation))
    }
}
