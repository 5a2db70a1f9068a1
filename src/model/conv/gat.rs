//! Graph attention.

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use super::Draws;
use crate::model::{Block, Input, LayerSpec, Merge, edge_softmax, edge_sum};

/// `Σ_u α_vu x_u·W + b` over neighbours and the node itself, for each head, with
/// `α_vu = softmax_u(LeakyReLU(a_own·W x_v + a_other·W x_u))` (Veličković et al., 2018, eq. 3–6).
#[derive(Module, Debug)]
pub struct GatConv {
    /// `[inputs, heads · head_width]`
    pub weight: Param<Tensor<2>>,
    /// `[heads, head_width]`: of the node that reads.
    pub score_own: Param<Tensor<2>>,
    /// `[heads, head_width]`: of the node that is read.
    pub score_other: Param<Tensor<2>>,
    /// `[outputs]`
    pub bias: Param<Tensor<1>>,
    average: bool,
}

impl GatConv {
    pub(super) fn new(spec: &LayerSpec, draws: &Draws) -> Self {
        let (heads, width) = (spec.heads, spec.head_width());
        // A product of one head with a column, as in the authors' code.
        let bound = (6.0 / (width + 1) as f64).sqrt();
        Self {
            weight: draws.heads(0, spec.inputs, heads, width),
            score_own: draws.uniform(1, bound, [heads, width]),
            score_other: draws.uniform(3, bound, [heads, width]),
            bias: draws.bias(spec.outputs),
            average: spec.merge == Merge::Average,
        }
    }

    pub(super) fn forward(&self, block: &Block, input: &Input) -> Tensor<2> {
        let rows = input.times(self.weight.val());
        let own = scores(rows.clone().narrow(0, 0, block.outputs()), &self.score_own);
        let other = scores(rows.clone(), &self.score_other);
        let mut weights = edge_softmax(&block.matrix, own, other);
        if let Some(mask) = &block.attention {
            weights = weights * mask.clone();
        }
        let sums = edge_sum(&block.matrix, weights, rows);
        let merged = if self.average {
            let [heads, width] = self.score_own.val().dims();
            let nodes = block.outputs();
            sums.reshape([nodes, heads, width])
                .mean_dim(1)
                .reshape([nodes, width])
        } else {
            sums
        };
        merged + self.bias.val().unsqueeze()
    }
}

/// `⟨a_k, row's part k⟩` of each row and head: `[rows, heads]`.
fn scores(rows: Tensor<2>, of_heads: &Param<Tensor<2>>) -> Tensor<2> {
    let of_heads = of_heads.val();
    let ([nodes, _], [heads, width]) = (rows.dims(), of_heads.dims());
    (rows.reshape([nodes, heads, width]) * of_heads.unsqueeze())
        .sum_dim(2)
        .reshape([nodes, heads])
}
