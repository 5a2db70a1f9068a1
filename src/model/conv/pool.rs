//! GraphSAGE with max-pooling aggregation.

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use super::{BIAS, Draws, SECOND_BIAS, activated};
use crate::model::{Activation, Block, Input, LayerSpec, Matrix, product_onto, tiles};

/// `x_v·W_self + (max over neighbours u of ReLU(x_u·W_pool + b_pool))·W_neighbour + b` (Hamilton,
/// Ying and Leskovec, 2017, eq. 3, with concatenation). A node without neighbours has a maximum of
/// zero.
#[derive(Module, Debug)]
pub struct PoolConv {
    /// `[inputs, inner]`
    pub(crate) weight_pool: Param<Tensor<2>>,
    /// `[inner]`
    pub(crate) bias_pool: Param<Tensor<1>>,
    /// `[inputs, outputs]`
    pub(crate) weight_self: Param<Tensor<2>>,
    /// `[inner, outputs]`
    pub(crate) weight_neighbour: Param<Tensor<2>>,
    /// `[outputs]`
    pub bias: Param<Tensor<1>>,
}

impl PoolConv {
    pub(super) fn new(spec: &LayerSpec, draws: &Draws) -> Self {
        Self {
            // Draw 2 is left out: RETEXO's dense layer draws it for the same seed and layer.
            weight_pool: draws.weight(3, spec.inputs, spec.inner),
            bias_pool: draws.bias(SECOND_BIAS, spec.inputs, spec.inner),
            weight_self: draws.weight(0, spec.inputs, spec.outputs),
            weight_neighbour: draws.weight(1, spec.inner, spec.outputs),
            bias: draws.bias(BIAS, spec.inputs, spec.outputs),
        }
    }

    pub(super) fn forward(&self, block: &Block, input: &Input, activation: Activation) -> Matrix {
        let own = input.head(block.outputs());
        self.gather(block, &self.transform(input), &own, activation)
    }

    /// Rows of which neighbours take the maximum.
    pub(super) fn transform(&self, input: &Input) -> Matrix {
        let pooled = input.times(self.weight_pool.val());
        activated(pooled, &self.bias_pool, Activation::Relu)
    }

    pub(super) fn gather(
        &self,
        block: &Block,
        pooled: &Matrix,
        own: &Input,
        activation: Activation,
    ) -> Matrix {
        let largest = tiles::largest(&block.matrix, pooled);
        let own = own.times(self.weight_self.val());
        let sums = own.zip(largest, |own, largest| {
            product_onto(own, largest, self.weight_neighbour.val())
        });
        activated(sums, &self.bias, activation)
    }
}
