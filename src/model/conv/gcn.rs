//! Graph convolution.

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use super::{BIAS, Draws, activated, aggregate};
use crate::model::{Activation, Block, Input, LayerSpec, Matrix};

/// `A·x·W + b` (Kipf and Welling, 2017).
#[derive(Module, Debug)]
pub struct GcnConv {
    /// `[inputs, outputs]`
    pub weight: Param<Tensor<2>>,
    /// `[outputs]`
    pub bias: Param<Tensor<1>>,
}

impl GcnConv {
    pub(super) fn new(spec: &LayerSpec, draws: &Draws) -> Self {
        Self {
            weight: draws.weight(0, spec.inputs, spec.outputs),
            bias: draws.bias(BIAS, spec.inputs, spec.outputs),
        }
    }

    pub(super) fn forward(&self, block: &Block, input: &Input, activation: Activation) -> Matrix {
        let sums = aggregate(block, input, self.weight.val());
        activated(sums, &self.bias, activation)
    }
}
