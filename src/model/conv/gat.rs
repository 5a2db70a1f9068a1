//! Graph attention.

use burn::module::{Module, Param};
use burn::tensor::{Tensor, TensorData};

use super::{BIAS, Draws};
use crate::model::{Activation, Block, Input, LayerSpec, Matrix, Merge, activate, product, tiles};

/// `Σ_u α_vu x_u·W + b` over neighbours and the node itself, for each head, with
/// `α_vu = softmax_u(LeakyReLU(a_own·W x_v + a_other·W x_u))` (Veličković et al., 2018, eq. 3–6).
#[derive(Module, Debug)]
pub struct GatConv {
    /// `[inputs, heads · head_width]`
    pub weight: Param<Tensor<2>>,
    /// `[heads, head_width]`: of the node that reads.
    pub(crate) score_own: Param<Tensor<2>>,
    /// `[heads, head_width]`: of the node that is read.
    pub(crate) score_other: Param<Tensor<2>>,
    /// `[outputs]`, or of all heads side by side
    pub bias: Param<Tensor<1>>,
    average: bool,
}

impl GatConv {
    pub(super) fn new(spec: &LayerSpec, draws: &Draws) -> Self {
        let (heads, width) = (spec.heads, spec.head_width());
        Self {
            weight: draws.heads(0, spec.inputs, heads, width),
            score_own: draws.scores(1, heads, width),
            // Draw 2 is left out: RETEXO's dense layer draws it for the same seed and layer.
            score_other: draws.scores(3, heads, width),
            bias: draws.bias(BIAS, spec.inputs, spec.bias_width()),
            average: spec.merge == Merge::Average,
        }
    }

    pub(super) fn forward(&self, block: &Block, input: &Input, activation: Activation) -> Matrix {
        // The gradients of the two products meet behind a step of their own: what else reads the
        // input then adds one term to one sum, and the bits are the same however the input was
        // made.
        let input = &match input {
            Input::Dense(rows) => Input::Dense(rows.clone().map(|rows| {
                let shape = rows.dims();
                rows.reshape(shape)
            })),
            sparse @ Input::Sparse(..) => sparse.clone(),
        };
        let scores = input.times(self.score_weights());
        self.attend(block, scores, &input.times(self.weight.val()), activation)
    }

    /// The output, given `x·W` of the block's inputs, from which the scores follow too.
    pub(super) fn gather(&self, block: &Block, rows: &Matrix, activation: Activation) -> Matrix {
        let vectors = self.score_columns();
        let scores = rows.clone().map(|rows| product(rows, vectors.clone()));
        self.attend(block, scores, rows, activation)
    }

    /// The output, given `x·W` of the block's inputs and their scores, `[inputs, 2 · heads]`.
    fn attend(
        &self,
        block: &Block,
        scores: Matrix,
        rows: &Matrix,
        activation: Activation,
    ) -> Matrix {
        let stripe = scores.stripe();
        // Scores have two columns a head: narrow enough for one buffer where rows are not.
        let scores = scores.into_tensor();
        let [nodes, heads] = [block.inputs(), self.score_own.val().dims()[0]];
        // Outputs are the first inputs of a block.
        let own = scores.clone().slice([0..block.outputs(), 0..heads]);
        let other = scores.slice([0..nodes, heads..2 * heads]);
        let weights = tiles::attention(block, &own, &other, stripe);
        let merge = if self.average {
            Merge::Average
        } else {
            Merge::Concatenate
        };
        let merged = tiles::attend(block, &weights, rows, merge);
        let bias = self.bias(merged.width());
        merged.map(|rows| activate(rows, bias.clone(), activation))
    }

    /// The bias of an output row: where heads that are averaged have one each, the mean of these.
    fn bias(&self, outputs: usize) -> Tensor<1> {
        let bias = self.bias.val();
        let [all] = bias.dims();
        if all == outputs {
            return bias;
        }
        bias.reshape([all / outputs, outputs])
            .mean_dim(0)
            .reshape([outputs])
    }

    /// What a row `x·W` is multiplied with to get its scores, `[heads · head_width, 2 · heads]`:
    /// each head has columns of its own, in which the other heads count for nothing.
    fn score_columns(&self) -> Tensor<2> {
        let (own, other) = (self.score_own.val(), self.score_other.val());
        let [heads, width] = own.dims();
        let mut of_head = vec![0.0_f32; heads * width * heads];
        for column in 0..heads * width {
            of_head[column * heads + column / width] = 1.0;
        }
        let shape = [heads * width, heads];
        let device = own.device();
        let of_head: Tensor<2> = Tensor::from_data(TensorData::new(of_head, shape), &device);
        let spread = |vectors: Tensor<2>| vectors.reshape([heads * width, 1]) * of_head.clone();
        Tensor::cat(vec![spread(own), spread(other)], 1)
    }

    /// What an input row is multiplied with to get its scores, `[inputs, 2 · heads]`: first of the
    /// node that reads, then of the node that is read. `⟨a_k, (x·W)_k⟩ = x·(W_k·a_k)`, and `W` has
    /// far fewer rows than the graph has edges.
    fn score_weights(&self) -> Tensor<2> {
        let (own, other) = (self.score_own.val(), self.score_other.val());
        let [heads, width] = own.dims();
        let weight = self.weight.val();
        let inputs = weight.dims()[0];
        let vectors: Tensor<3> = Tensor::stack(vec![own, other], 2);
        // One product for all heads, with the heads as its batch.
        let by_head = weight.reshape([inputs, heads, width]).swap_dims(0, 1);
        by_head
            .matmul(vectors)
            .permute([1, 2, 0])
            .reshape([inputs, 2 * heads])
    }
}
