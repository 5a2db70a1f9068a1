//! GraphSAGE with mean aggregation.

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use super::sage_product::own_and_neighbours;
use super::{BIAS, Draws, SECOND_BIAS, aggregate};
use crate::model::{Activation, Block, Init, Input, LayerSpec, Matrix, activate};

/// `x_v·W_self + (mean of neighbours)·W_neighbour + b` (Hamilton, Ying and Leskovec, 2017, with
/// concatenation).
#[derive(Module, Debug)]
pub struct SageConv {
    /// `[inputs, outputs]`
    pub(crate) weight_self: Param<Tensor<2>>,
    /// `[inputs, outputs]`
    pub(crate) weight_neighbour: Param<Tensor<2>>,
    /// `[outputs]`
    pub bias: Param<Tensor<1>>,
    /// `[outputs]`: that of the neighbours' product, where each product has one.
    pub(crate) bias_neighbour: Option<Param<Tensor<1>>>,
}

impl SageConv {
    pub(super) fn new(spec: &LayerSpec, draws: &Draws) -> Self {
        let two = spec.biases > 1;
        // With one bias it is one product, of own rows and neighbours' side by side. In DGL the
        // bias is that of the own rows' product.
        let fan_in = if two || spec.init == Init::Dgl {
            spec.inputs
        } else {
            2 * spec.inputs
        };
        let weight = |number| draws.part_of(number, fan_in, spec.inputs, spec.outputs);
        let bias = |number| draws.bias(number, fan_in, spec.outputs);
        Self {
            weight_self: weight(0),
            weight_neighbour: weight(1),
            bias: bias(BIAS),
            bias_neighbour: two.then(|| bias(SECOND_BIAS)),
        }
    }

    pub(super) fn forward(&self, block: &Block, input: &Input, activation: Activation) -> Matrix {
        let weights = || [self.weight_self.val(), self.weight_neighbour.val()];
        if let Input::Dense(rows) = input
            && let Some(sums) = own_and_neighbours(rows, block, weights)
        {
            return self.finish(sums, activation);
        }
        let own = input.head(block.outputs());
        let sums = aggregate(block, input, self.weight_neighbour.val());
        self.combine(&own, sums, activation)
    }

    /// The output, given own rows and the neighbours' means after their product.
    pub(super) fn combine(&self, own: &Input, sums: Matrix, activation: Activation) -> Matrix {
        self.finish(own.times_onto(sums, self.weight_self.val()), activation)
    }

    fn finish(&self, sums: Matrix, activation: Activation) -> Matrix {
        let mut bias = self.bias.val();
        if let Some(other) = &self.bias_neighbour {
            bias = bias + other.val();
        }
        sums.map(|rows| activate(rows, bias.clone(), activation))
    }
}
