//! The sub-models of RETEXO: one message-passing layer each, trained on its own.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};

use crate::model::{
    Activation, Block, BlockShape, Conv, Input, InputShape, LayerSpec, Matrix, Merge, ModelSpec,
    Norm, Work, activate, dense_parameters,
};

/// The model whose sub-models are trained: heads of attention, which are averaged in every layer,
/// have their share of the hidden columns each, and so has their mean (`hidden_dim` of the authors'
/// configuration of GAT, `256/heads`).
pub fn own_spec(model: &ModelSpec) -> ModelSpec {
    let mut spec = model.clone();
    let (heads, last) = (model.attention_heads().max(1), model.layers());
    for width in &mut spec.widths[1..last] {
        *width /= heads;
    }
    spec
}

/// The message-passing layer of sub-model `layer` of [`own_spec`]: the paper's, but that attention
/// heads are averaged in every layer, not in the last alone.
pub(super) fn layer_spec(spec: &ModelSpec, layer: usize) -> LayerSpec {
    LayerSpec {
        merge: Merge::Average,
        ..spec.layer(layer)
    }
}

/// Sub-model `k`: a message-passing layer and, unless it is the last, layer normalisation, ReLU and
/// an auxiliary linear head to the classes, which is thrown away after training.
#[derive(Module, Debug)]
pub struct SubModel {
    conv: Conv,
    norm: Option<Norm>,
    head_weight: Option<Param<Tensor<2>>>,
    head_bias: Option<Param<Tensor<1>>>,
}

impl SubModel {
    /// Sub-model `layer` of a model with parameters drawn from `seed`.
    pub fn new(spec: &ModelSpec, layer: usize, seed: u64, device: &Device) -> Self {
        let (outputs, conv) = (spec.widths[layer + 1], layer_spec(spec, layer));
        let conv = Conv::new(&conv, seed, layer, device);
        if layer + 1 == spec.layers() {
            return Self {
                conv,
                norm: None,
                head_weight: None,
                head_bias: None,
            };
        }
        let start = (spec.init, spec.gain);
        let (weight, bias) =
            dense_parameters(start, [outputs, spec.classes()], seed, layer, device);
        Self {
            conv,
            norm: Some(Norm::new(outputs, device)),
            head_weight: Some(weight),
            head_bias: Some(bias),
        }
    }

    /// Number of parameters `|θ_k|` of sub-model `layer`.
    pub fn parameters(spec: &ModelSpec, layer: usize) -> usize {
        let outputs = spec.widths[layer + 1];
        let head = if layer + 1 == spec.layers() {
            0
        } else {
            // Scale and shift of the normalisation, then weights and biases of the head.
            2 * outputs + outputs * spec.classes() + spec.classes()
        };
        layer_spec(spec, layer).parameters() + head
    }

    /// Arithmetic of what the next sub-model reads: message passing and, unless it is the last,
    /// normalisation.
    pub(crate) fn work(
        spec: &ModelSpec,
        layer: usize,
        block: BlockShape,
        input: InputShape,
    ) -> Work {
        let passing = Work::message_passing(&layer_spec(spec, layer), block, input);
        if layer + 1 == spec.layers() {
            return passing;
        }
        passing + Work::norm(block.outputs * spec.widths[layer + 1])
    }

    /// Arithmetic of the two passes of a step, the head's with it: to the class logits, and back to
    /// rows that have no gradient.
    pub(crate) fn step_work(
        spec: &ModelSpec,
        layer: usize,
        block: BlockShape,
        input: InputShape,
    ) -> [Work; 2] {
        let below = Self::work(spec, layer, block, input);
        let head = if layer + 1 == spec.layers() {
            Work::default()
        } else {
            let (rows, hidden) = (block.outputs, spec.widths[layer + 1]);
            Work::product(rows, rows * hidden, hidden, spec.classes())
        };
        [below + head, below.backward(false) + head.backward(true)]
    }

    /// What the next sub-model reads: `ReLU(LayerNorm(u))`, `[block.outputs, hidden]`; the logits
    /// for the last.
    pub(crate) fn representation(&self, block: &Block, input: &Input) -> Matrix {
        let output = self.conv.forward(block, input, Activation::Identity);
        match &self.norm {
            Some(norm) => norm.forward(output, Activation::Relu),
            None => output,
        }
    }

    /// Class logits, `[block.outputs, classes]`.
    pub(crate) fn logits(&self, block: &Block, input: &Input) -> Matrix {
        let representation = self.representation(block, input);
        match (&self.head_weight, &self.head_bias) {
            (Some(weight), Some(bias)) => representation.map(|rows| {
                let logits = rows.matmul(weight.val());
                activate(logits, bias.val(), Activation::Identity)
            }),
            _ => representation,
        }
    }
}
