//! A stack of message-passing layers that can be run one layer at a time.

use burn::module::Module;
use burn::nn::{LayerNorm, LayerNormConfig};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};

use super::{Block, Conv, Input, ModelConfig, ModelKind, NormKind};

/// The sizes of a model: everything that decides what has to be sent.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelSpec {
    /// Which layers.
    pub kind: ModelKind,
    /// Widths `d_0` (features), `d_1`, …, `d_L` (classes).
    pub widths: Vec<usize>,
    /// Dropout probability at the input of each layer.
    pub dropout: f64,
    /// Normalisation between layers.
    pub norm: NormKind,
}

impl ModelSpec {
    /// The model of a configuration for data of `features` columns and `classes` classes.
    #[must_use]
    pub fn new(config: &ModelConfig, features: usize, classes: usize) -> Self {
        let mut widths = vec![config.hidden; config.layers + 1];
        widths[0] = features;
        widths[config.layers] = classes;
        Self {
            kind: config.kind,
            widths,
            dropout: config.dropout,
            norm: config.norm,
        }
    }

    /// Number of layers.
    #[must_use]
    pub fn layers(&self) -> usize {
        self.widths.len() - 1
    }

    /// Number of hidden columns; for one layer, that of the classes.
    #[must_use]
    pub fn hidden(&self) -> usize {
        self.widths[1]
    }

    /// Number of features.
    #[must_use]
    pub fn features(&self) -> usize {
        self.widths[0]
    }

    /// Number of classes.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.widths[self.layers()]
    }

    /// Number of parameters |θ| of all layers.
    #[must_use]
    pub fn parameters(&self) -> usize {
        (0..self.layers())
            .map(|layer| self.layer_parameters(layer))
            .sum()
    }

    fn layer_parameters(&self, layer: usize) -> usize {
        let (inputs, outputs) = (self.widths[layer], self.widths[layer + 1]);
        let norm = if self.has_norm(layer) { 2 * outputs } else { 0 };
        conv_parameters(self.kind, inputs, outputs) + norm
    }

    fn has_norm(&self, layer: usize) -> bool {
        self.norm == NormKind::Layer && layer + 1 < self.layers()
    }
}

/// Number of parameters of one message-passing layer.
#[must_use]
pub const fn conv_parameters(kind: ModelKind, inputs: usize, outputs: usize) -> usize {
    let weights = match kind {
        ModelKind::Gcn => 1,
        ModelKind::Sage => 2,
    };
    weights * inputs * outputs + outputs
}

/// A graph neural network: layers with ReLU between them, the last one giving class logits.
#[derive(Module, Debug)]
pub struct Gnn {
    convs: Vec<Conv>,
    norms: Vec<LayerNorm>,
}

impl Gnn {
    /// A model with parameters drawn on the host from `seed`.
    #[must_use]
    pub fn new(spec: &ModelSpec, seed: u64, device: &Device) -> Self {
        let convs = (0..spec.layers())
            .map(|l| {
                Conv::new(
                    spec.kind,
                    spec.widths[l],
                    spec.widths[l + 1],
                    seed,
                    l,
                    device,
                )
            })
            .collect();
        let norms = (0..spec.layers())
            .filter(|&l| spec.has_norm(l))
            .map(|l| LayerNormConfig::new(spec.widths[l + 1]).init(device))
            .collect();
        Self { convs, norms }
    }

    /// Number of layers.
    #[must_use]
    pub fn layers(&self) -> usize {
        self.convs.len()
    }

    /// Output of one layer, with normalisation and ReLU unless it is the last.
    ///
    /// # Shapes
    /// - input: `[block.inputs, widths[layer]]`
    /// - result: `[block.outputs, widths[layer + 1]]`
    #[must_use]
    pub fn layer(&self, layer: usize, block: &Block, input: &Input) -> Tensor<2> {
        let mut output = self.convs[layer].forward(block, input);
        if layer + 1 < self.layers() {
            if let Some(norm) = self.norms.get(layer) {
                output = norm.forward(output);
            }
            output = relu(output);
        }
        output
    }

    /// Logits of all outputs of a block that covers the whole graph, without dropout.
    #[must_use]
    pub fn infer(&self, block: &Block, features: &Input) -> Tensor<2> {
        let mut input = features.clone();
        for layer in 0..self.layers() {
            input = Input::Dense(self.layer(layer, block, &input));
        }
        match input {
            Input::Dense(logits) => logits,
            Input::Sparse(_) => unreachable!("a model has at least one layer"),
        }
    }
}
