//! GraphSAGE with mean aggregation.

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use super::{Draws, activated, aggregate};
use crate::model::{Activation, Block, Input, LayerSpec, Matrix};

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
}

impl SageConv {
    pub(super) fn new(spec: &LayerSpec, draws: &Draws) -> Self {
        Self {
            weight_self: draws.weight(0, spec.inputs, spec.outputs),
            weight_neighbour: draws.weight(1, spec.inputs, spec.outputs),
            bias: draws.bias(spec.outputs),
        }
    }

    pub(super) fn forward(&self, block: &Block, input: &Input, activation: Activation) -> Matrix {
        let own = input.head(block.outputs()).times(self.weight_self.val());
        let sums = aggregate(block, input, self.weight_neighbour.val());
        let sums = own.zip(sums, Tensor::add);
        activated(sums, &self.bias, activation)
    }
}
