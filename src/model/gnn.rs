//! A stack of message-passing layers that can be run one layer at a time.

use std::ops::Range;

use burn::module::Module;
use burn::tensor::{Device, Tensor};

use super::{
    Activation, Aggregation, Biases, Block, Conv, Init, Input, LayerSpec, Matrix, Merge,
    ModelConfig, ModelKind, Norm, NormKind,
};

/// The sizes of a model: everything that decides what has to be sent.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelSpec {
    /// Which layers.
    pub kind: ModelKind,
    /// Widths `d_0` (features), `d_1`, …, `d_L` (classes).
    pub widths: Vec<usize>,
    /// Attention heads of each layer, for `gat`.
    pub heads: usize,
    /// Dropout probability at the input of each layer above the first.
    pub dropout: f64,
    /// Dropout probability of the features.
    pub input_dropout: f64,
    /// Dropout probability of attention weights.
    pub attention_dropout: f64,
    /// What hidden layers end with.
    pub activation: Activation,
    /// For `gcn`, `sage` and `gat`, whether a node's own row is among its neighbours'.
    pub self_loops: bool,
    /// From what the first weights are drawn.
    pub init: Init,
    /// What their bounds are multiplied with.
    pub gain: f64,
    /// Biases of a layer of `sage`.
    pub biases: Biases,
    /// For `gat`, whether heads that are averaged have a bias each.
    pub head_biases: bool,
    /// Normalisation between layers.
    pub norm: NormKind,
    /// Whether hidden layers after the first add their input to their output.
    pub residual: bool,
}

impl ModelSpec {
    /// The model of a configuration for data of `features` columns and `classes` classes.
    pub fn new(config: &ModelConfig, features: usize, classes: usize) -> Self {
        let mut widths = vec![config.hidden; config.layers + 1];
        widths[0] = features;
        widths[config.layers] = classes;
        Self {
            kind: config.kind,
            widths,
            heads: config.heads,
            dropout: config.dropout,
            input_dropout: config.input_dropout.unwrap_or(config.dropout),
            attention_dropout: config.attention_dropout.unwrap_or(config.dropout),
            activation: config
                .activation
                .unwrap_or_else(|| config.kind.activation()),
            self_loops: config
                .self_loops
                .unwrap_or_else(|| config.kind.has_self_loops()),
            init: config.init,
            gain: config.gain,
            biases: config.biases.clone(),
            head_biases: config.head_biases,
            norm: config.norm,
            residual: config.residual,
        }
    }

    /// How messages are weighted: as the kind has it, but with or without a node's own row as the
    /// configuration says.
    pub fn aggregation(&self) -> Aggregation {
        match (self.kind, self.self_loops) {
            (ModelKind::Gcn, false) => Aggregation::Symmetric,
            (ModelKind::Sage, true) => Aggregation::MeanWithSelf,
            (ModelKind::Gat, false) => Aggregation::Neighbours,
            (kind, _) => Aggregation::from(kind),
        }
    }

    /// Number of layers.
    pub fn layers(&self) -> usize {
        self.widths.len() - 1
    }

    /// Number of hidden columns; for one layer, that of the classes.
    pub fn hidden(&self) -> usize {
        self.widths[1]
    }

    /// Number of features.
    pub fn features(&self) -> usize {
        self.widths[0]
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.widths[self.layers()]
    }

    /// Number of parameters |θ| of all layers.
    pub fn parameters(&self) -> usize {
        (0..self.layers())
            .map(|layer| self.layer_parameters(layer))
            .sum()
    }

    /// The sizes of one layer. Heads stand side by side in hidden layers and are averaged in the
    /// last.
    pub fn layer(&self, layer: usize) -> LayerSpec {
        let last = layer + 1 == self.layers();
        LayerSpec {
            kind: self.kind,
            inputs: self.widths[layer],
            outputs: self.widths[layer + 1],
            inner: self.hidden(),
            heads: self.heads,
            head_biases: self.head_biases,
            merge: if last {
                Merge::Average
            } else {
                Merge::Concatenate
            },
            init: self.init,
            gain: self.gain,
            biases: self.biases.of(layer),
        }
    }

    /// Attention heads whose weights dropout applies to; 0 for kinds without attention.
    pub fn attention_heads(&self) -> usize {
        self.layer(0).attention_heads()
    }

    /// Number of parameters of one layer, with the normalisation behind it.
    pub(crate) fn layer_parameters(&self, layer: usize) -> usize {
        self.layer(layer).parameters() + self.norm_parameters(layer)
    }

    fn norm_parameters(&self, layer: usize) -> usize {
        if self.has_norm(layer) {
            2 * self.widths[layer + 1]
        } else {
            0
        }
    }

    /// Where the parameters of one layer are among all of [`Gnn`] when they are flat: its weights,
    /// and those of the normalisation behind it, for a module lists all of the former first.
    pub fn parameter_ranges(&self, layer: usize) -> [Range<usize>; 2] {
        let weights = |layer: usize| self.layer(layer).parameters();
        let first: usize = (0..layer).map(weights).sum();
        let all: usize = (0..self.layers()).map(weights).sum();
        let norms =
            |layers: usize| all + (0..layers).map(|l| self.norm_parameters(l)).sum::<usize>();
        [
            first..first + weights(layer),
            norms(layer)..norms(layer + 1),
        ]
    }

    /// Whether rows are normalised behind a layer: behind all but the last, if at all.
    pub(super) fn has_norm(&self, layer: usize) -> bool {
        self.norm == NormKind::Layer && layer + 1 < self.layers()
    }
}

/// A graph neural network: layers with an activation between them, the last one giving class
/// logits.
#[derive(Module, Debug)]
pub struct Gnn {
    convs: Vec<Conv>,
    norms: Vec<Norm>,
    elu: bool,
    residual: bool,
}

impl Gnn {
    /// A model with parameters drawn on the host from `seed`.
    pub fn new(spec: &ModelSpec, seed: u64, device: &Device) -> Self {
        let convs = (0..spec.layers())
            .map(|l| Conv::new(&spec.layer(l), seed, l, device))
            .collect();
        let norms = (0..spec.layers())
            .filter(|&l| spec.has_norm(l))
            .map(|l| Norm::new(spec.widths[l + 1], device))
            .collect();
        Self {
            convs,
            norms,
            // A flag rather than an `Activation`: burn's derive takes plain constants as they are.
            elu: spec.activation == Activation::Elu,
            residual: spec.residual,
        }
    }

    /// Number of layers.
    pub fn layers(&self) -> usize {
        self.convs.len()
    }

    /// Output of one layer, with normalisation and activation unless it is the last. With residual
    /// connections, hidden layers after the first add their input, as dropout left it, to that (Li,
    /// Müller, Thabet and Ghanem, 2019).
    ///
    /// # Shapes
    /// - input: `[block.inputs, widths[layer]]`
    /// - result: `[block.outputs, widths[layer + 1]]`
    pub fn layer(&self, layer: usize, block: &Block, input: &Input) -> Matrix {
        let output = self.behind(layer, |activation| {
            self.convs[layer].forward(block, input, activation)
        });
        if self.adds_input(layer) {
            return added(output, &input.head(block.outputs()));
        }
        output
    }

    /// What the first product of a layer makes of rows that neighbours read: with it, and
    /// [`Self::gather`], a layer is done in two steps, between which rows can cross the cut.
    ///
    /// # Shapes
    /// - input: `[rows, widths[layer]]`
    /// - result: `[rows, d]`, with the `d` of [`LayerSpec::transformed`]
    pub fn transform(&self, layer: usize, input: &Input) -> Matrix {
        self.convs[layer].transform(input)
    }

    /// As [`Self::layer`], given what [`Self::transform`] made of the block's inputs, and the input
    /// of its outputs alone, which some layers do not read ([`Self::reads_own`]).
    ///
    /// # Shapes
    /// - rows: `[block.inputs, d]`
    /// - own: `[block.outputs, widths[layer]]`
    /// - result: `[block.outputs, widths[layer + 1]]`
    pub fn gather(&self, layer: usize, block: &Block, rows: &Matrix, own: &Input) -> Matrix {
        let output = self.behind(layer, |activation| {
            self.convs[layer].gather(block, rows, own, activation)
        });
        if self.adds_input(layer) {
            return added(output, own);
        }
        output
    }

    /// Whether a layer reads the input of its outputs beside what is gathered.
    pub fn reads_own(&self, layer: usize) -> bool {
        self.convs[layer].reads_own() || self.adds_input(layer)
    }

    /// Whether a layer adds its input to its output.
    fn adds_input(&self, layer: usize) -> bool {
        self.residual && (1..self.layers() - 1).contains(&layer)
    }

    /// What `conv` gives, with normalisation and activation unless the layer is the last.
    fn behind(&self, layer: usize, conv: impl Fn(Activation) -> Matrix) -> Matrix {
        if layer + 1 == self.layers() {
            return conv(Activation::Identity);
        }
        let activation = if self.elu {
            Activation::Elu
        } else {
            Activation::Relu
        };
        // All layers but the last have one or none has, so the layer's number is that of its
        // normalisation.
        match self.norms.get(layer) {
            Some(norm) => norm.forward(conv(Activation::Identity), activation),
            None => conv(activation),
        }
    }

    /// Logits of all outputs of a block that covers the whole graph, without dropout.
    pub fn infer(&self, block: &Block, features: &Input) -> Matrix {
        // The features are shared, not copied; each layer's result takes their place.
        let mut input = features.clone();
        for layer in 0..self.layers() {
            input = Input::Dense(self.layer(layer, block, &input));
        }
        match input {
            Input::Dense(logits) => logits,
            Input::Sparse(..) => unreachable!("a model has at least one layer"),
        }
    }
}

/// Rows with the input of a layer above the first, which is dense.
fn added(rows: Matrix, own: &Input) -> Matrix {
    match own {
        Input::Dense(own) => rows.zip(own.clone(), Tensor::add),
        // Features alone are sparse, and the first layer, which reads them, adds no input.
        Input::Sparse(..) => rows,
    }
}
