//! The sub-models of the fully distributed form: perceptrons of one hidden layer, `K + 1` of them.

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor};

use crate::model::{
    Activation, Aggregation, Block, BlockShape, Conv, Input, InputShape, Matrix, ModelKind,
    ModelSpec, Work, activate, dense_parameters,
};
use crate::strategies::OptionError;

/// Sub-model `k`, to class logits. Sub-model 0 is `MLP(x_v)` on raw features. The others read the
/// logits `z` of the one before:
///
/// - GCN: `MLP[z_v ‖ mean of z_u]`,
/// - SAGE: `MLP[z_v ‖ max of ReLU(W z_u + b)]`,
/// - GAT: attention heads side by side, `ELU`, and a linear layer.
///
/// A linear layer on rows side by side is the sum of one on each: so the first layers of the MLPs
/// are [`Conv`]s of the library. The width of the MLPs is `model.hidden`, `--hidden_size` in the
/// authors' code.
#[derive(Module, Debug)]
pub struct Perceptron {
    /// Of sub-model 0, `[features, hidden]`.
    features: Option<Param<Tensor<2>>>,
    features_bias: Option<Param<Tensor<1>>>,
    /// Of the others.
    conv: Option<Conv>,
    /// `[hidden, classes]`
    weight: Param<Tensor<2>>,
    bias: Param<Tensor<1>>,
    elu: bool,
}

/// The first layer of sub-model 0 is drawn apart from the second layers, of which there is one per
/// stage.
const FIRST: usize = 1 << 20;

/// From logits to hidden columns to logits, as a model of two layers, of which the first is the one
/// that listens to neighbours.
fn listening(spec: &ModelSpec) -> ModelSpec {
    // The authors' GCN (`MLPGCN` of `models/multimlp_gcn.py`) reads `z_v` beside the mean, which
    // here is what a SAGE layer reads. Their SAGE (`MLPPool` of `multimlp_sage.py`) takes the
    // maximum instead of the mean, which here is the pooling layer.
    let kind = match spec.kind {
        ModelKind::Gcn => ModelKind::Sage,
        ModelKind::Sage => ModelKind::SagePool,
        other => other,
    };
    ModelSpec {
        kind,
        widths: vec![spec.classes(), spec.hidden(), spec.classes()],
        ..spec.clone()
    }
}

/// How the clients' neighbours are gathered.
pub(super) fn aggregation(spec: &ModelSpec) -> Aggregation {
    listening(spec).kind.into()
}

/// Whether there are such sub-models: the authors have some kinds of models only, and heads must
/// divide the hidden columns.
///
/// # Errors
/// An explanation.
pub(super) fn suits(spec: &ModelSpec) -> Result<(), OptionError> {
    let (hidden, heads) = (spec.hidden(), spec.heads);
    let refuse = |what: String| Err(OptionError::key("form", what));
    match spec.kind {
        ModelKind::Gin => refuse(
            "distributed has no `gin`; model.kind must be gcn, sage, sage-pool or gat".to_owned(),
        ),
        ModelKind::Gat if !hidden.is_multiple_of(heads) => refuse(format!(
            "distributed divides the hidden columns among heads, and {heads} heads do not divide {hidden} columns"
        )),
        _ => Ok(()),
    }
}

impl Perceptron {
    /// Sub-model `stage` of `0..=layers`, with parameters drawn from `seed`.
    pub fn new(spec: &ModelSpec, stage: usize, seed: u64, device: &Device) -> Self {
        let (hidden, classes) = (spec.hidden(), spec.classes());
        let start = (spec.init, spec.gain);
        let (weight, bias) = dense_parameters(start, [hidden, classes], seed, stage, device);
        let (mut features, mut features_bias, mut conv) = (None, None, None);
        if stage == 0 {
            let first = dense_parameters(start, [spec.features(), hidden], seed, FIRST, device);
            (features, features_bias) = (Some(first.0), Some(first.1));
        } else {
            conv = Some(Conv::new(&listening(spec).layer(0), seed, stage, device));
        }
        Self {
            features,
            features_bias,
            conv,
            weight,
            bias,
            elu: stage > 0 && spec.kind == ModelKind::Gat,
        }
    }

    /// Number of parameters `|θ_k|` of sub-model `stage`.
    pub fn parameters(spec: &ModelSpec, stage: usize) -> usize {
        let (hidden, classes) = (spec.hidden(), spec.classes());
        let first = match stage {
            0 => (spec.features() + 1) * hidden,
            _ => listening(spec).layer(0).parameters(),
        };
        first + (hidden + 1) * classes
    }

    /// Class logits, `[block.outputs, classes]`; sub-model 0 reads the rows themselves, the others
    /// their neighbours' too.
    pub(crate) fn logits(&self, block: &Block, input: &Input) -> Matrix {
        let activation = if self.elu {
            Activation::Elu
        } else {
            Activation::Relu
        };
        let hidden = match (&self.conv, &self.features, &self.features_bias) {
            (Some(conv), ..) => conv.forward(block, input, activation),
            (None, Some(weight), Some(bias)) => {
                let sums = input.times(weight.val());
                sums.map(|rows| activate(rows, bias.val(), activation))
            }
            (None, ..) => unreachable!("a sub-model has one of two first layers"),
        };
        hidden.map(|rows| {
            let logits = rows.matmul(self.weight.val());
            activate(logits, self.bias.val(), Activation::Identity)
        })
    }

    /// Arithmetic of a forward pass of sub-model `stage` for all rows of `input`.
    pub(crate) fn work(
        spec: &ModelSpec,
        stage: usize,
        block: BlockShape,
        input: InputShape,
    ) -> Work {
        let (first, second) = Self::work_of_layers(spec, stage, block, input);
        first + second
    }

    /// Arithmetic of the two passes of a step: to the class logits, and back to rows that have no
    /// gradient.
    pub(crate) fn step_work(
        spec: &ModelSpec,
        stage: usize,
        block: BlockShape,
        input: InputShape,
    ) -> [Work; 2] {
        let (first, second) = Self::work_of_layers(spec, stage, block, input);
        [
            first + second,
            first.backward(false) + second.backward(true),
        ]
    }

    /// Of the layer that reads, and of the one to the classes.
    fn work_of_layers(
        spec: &ModelSpec,
        stage: usize,
        block: BlockShape,
        input: InputShape,
    ) -> (Work, Work) {
        let hidden = spec.hidden();
        // Sub-model 0 has no neighbours: each row of its input is a row of its output.
        let (rows, first) = if stage == 0 {
            let (rows, stored) = (block.inputs, input.stored);
            (rows, Work::product(rows, stored, spec.features(), hidden))
        } else {
            let passing = Work::message_passing(&listening(spec).layer(0), block, input);
            (block.outputs, passing)
        };
        let second =
            Work::pass(rows * hidden) + Work::product(rows, rows * hidden, hidden, spec.classes());
        (first, second)
    }
}
