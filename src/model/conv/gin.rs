//! Graph isomorphism network.

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use super::{BIAS, Draws, SECOND_BIAS, activated, aggregate};
use crate::model::{Activation, Block, Input, LayerSpec, Matrix, product};

/// `ReLU((x_v + Σ_u x_u)·W₁ + b₁)·W₂ + b₂` (Xu, Hu, Leskovec and Jegelka, 2019, eq. 4.1 with a
/// perceptron of two layers).
///
/// ε is fixed at 0: the paper's GIN-0, which it found to generalise at least as well as a trained
/// ε. There is no batch normalisation inside, which would mix the nodes of a worker;
/// `norm = "layer"` normalises between layers.
#[derive(Module, Debug)]
pub struct GinConv {
    /// `[inputs, inner]`
    pub(crate) weight_inner: Param<Tensor<2>>,
    /// `[inner]`
    pub(crate) bias_inner: Param<Tensor<1>>,
    /// `[inner, outputs]`
    pub weight: Param<Tensor<2>>,
    /// `[outputs]`
    pub bias: Param<Tensor<1>>,
}

impl GinConv {
    pub(super) fn new(spec: &LayerSpec, draws: &Draws) -> Self {
        Self {
            weight_inner: draws.weight(0, spec.inputs, spec.inner),
            bias_inner: draws.bias(SECOND_BIAS, spec.inputs, spec.inner),
            weight: draws.weight(1, spec.inner, spec.outputs),
            bias: draws.bias(BIAS, spec.inner, spec.outputs),
        }
    }

    pub(super) fn forward(&self, block: &Block, input: &Input, activation: Activation) -> Matrix {
        self.perceptron(aggregate(block, input, self.weight_inner.val()), activation)
    }

    /// What the perceptron makes of sums that went through its first product.
    pub(super) fn perceptron(&self, sums: Matrix, activation: Activation) -> Matrix {
        let inner = activated(sums, &self.bias_inner, Activation::Relu);
        let sums = inner.map(|inner| product(inner, self.weight.val()));
        activated(sums, &self.bias, activation)
    }
}
