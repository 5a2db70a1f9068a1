//! What an experiment file may say about models and optimisers.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Activation;
use crate::defaults::{count, is_default};

/// The `[model]` section.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// Which layers.
    pub kind: ModelKind,
    /// Number of message-passing layers. Default 2.
    #[serde(default = "count::<2>")]
    pub layers: usize,
    /// Width of the output of each hidden layer: of all attention heads together. Default 16.
    #[serde(default = "count::<16>")]
    pub hidden: usize,
    /// Attention heads of every layer, side by side in hidden layers and averaged in the last;
    /// other kinds than `gat` have none and read no more than that it is there, so that a sweep
    /// over kinds can set it. Default 1.
    #[serde(default = "count::<1>")]
    pub heads: usize,
    /// Probability that an input of a layer is set to zero in training; for `gat` also that an
    /// attention weight is. Default 0.5.
    #[serde(default = "half")]
    pub dropout: f64,
    /// The same of the features, which the first layer reads. Default: `dropout`. VARCO's authors
    /// drop hidden rows alone.
    pub input_dropout: Option<f64>,
    /// The same of attention weights, for `gat`. Default: `dropout`. Grappa's authors drop none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attention_dropout: Option<f64>,
    /// What hidden layers end with. Default: as in the paper of the kind, `elu` for `gat` and
    /// `relu` for the others. RETEXO's sub-models have that of their authors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activation: Option<Activation>,
    /// Whether a node's own row is among those of its neighbours: for `gcn` and `gat`, whose papers
    /// have it (the code of RETEXO's authors has not), and for `sage`, whose paper has it not (the
    /// code of BNS-GCN's and VARCO's authors has). Other kinds and RETEXO's clients, who hear their
    /// own logits beside their neighbours', read no more than that it is there, so that a sweep
    /// over kinds can set it. Default: as in the paper of the kind.
    pub self_loops: Option<bool>,
    /// From what the first weights are drawn. Default `glorot`.
    #[serde(default)]
    pub init: Init,
    /// What the first weights are multiplied with. Default 1; DGL's `SAGEConv`, which VARCO's
    /// authors use, has √2, which `init = "dgl"` has for it too.
    #[serde(default = "whole")]
    pub gain: f64,
    /// For `sage`, biases of a layer, for all alike or in a list: 1, behind one product of own rows
    /// and neighbours' side by side, or 2, one for each of two products. BNS-GCN's authors have
    /// `[1, 2, 2]`. Other kinds read no more than that it is there. Default 1.
    #[serde(default)]
    pub biases: Biases,
    /// For `gat`, whether heads that are averaged have a bias each (`bias` of `dgl.nn.GATConv`,
    /// which RETEXO's authors use), or one after the mean (Veličković and others). Default false.
    // Left out where it is the default, so that folders from before it can be resumed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub head_biases: bool,
    /// An `.npz` file with the first weights, in place of drawn ones: an array for each parameter,
    /// named as `grapevine weights` names them; `{seed}` in its name is the seed of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<PathBuf>,
    /// Normalisation between layers. Default `none`.
    #[serde(default)]
    pub norm: NormKind,
    /// Whether hidden layers after the first, whose input and output are equally wide, add their
    /// input to their output. Default false.
    #[serde(default)]
    pub residual: bool,
}

/// Graph neural networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelKind {
    /// Graph convolution with symmetric normalisation and self-loops (Kipf and Welling, 2017).
    Gcn,
    /// GraphSAGE with mean aggregation, by default without self-loops (Hamilton, Ying and Leskovec,
    /// 2017).
    Sage,
    /// GraphSAGE with max-pooling aggregation (Hamilton, Ying and Leskovec, 2017, eq. 3).
    SagePool,
    /// Attention over neighbours and the node itself (Veličković et al., 2018).
    Gat,
    /// Graph isomorphism network with ε = 0, GIN-0 (Xu, Hu, Leskovec and Jegelka, 2019).
    Gin,
}

impl ModelKind {
    /// Whether a node's own row is among those of its neighbours in the paper of this kind.
    pub const fn has_self_loops(self) -> bool {
        !matches!(self, Self::Sage | Self::SagePool)
    }

    /// What hidden layers end with in the paper of this kind.
    pub(crate) const fn activation(self) -> Activation {
        match self {
            Self::Gat => Activation::Elu,
            Self::Gcn | Self::Sage | Self::SagePool | Self::Gin => Activation::Relu,
        }
    }
}

/// From what the first weights of a layer with `n` inputs and `m` outputs are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Init {
    /// Uniform in ±√(6 / (n + m)), biases zero (Glorot and Bengio, 2010).
    #[default]
    Glorot,
    /// Uniform in ±1/√n, biases as well: `PyTorch`'s `Linear`, and the code of BNS-GCN's and
    /// `PipeGCN`'s authors. A layer of `sage` with one bias is one product, of 2n inputs.
    UniformFanIn,
    /// As the layer of the kind in DGL since 1.0, which Grappa's authors use. `GraphConv` has
    /// `glorot`. `SAGEConv` has it with √2 as gain, and uniform biases in ±1/√n. `GATConv` is
    /// normal, with a standard deviation of √2 · √(2 / (n + m)), where the m columns are those of
    /// all heads together; of the scores' weights n is as many, and m the columns of a head; its
    /// biases are zero. The perceptrons of `gin`, and other dense layers, are `PyTorch`'s `Linear`.
    Dgl,
}

/// How many biases layers of `sage` have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Biases {
    /// Each as many.
    Each(usize),
    /// One number a layer.
    Layers(Vec<usize>),
}

impl Default for Biases {
    fn default() -> Self {
        Self::Each(1)
    }
}

impl Biases {
    /// The number of a layer.
    pub fn of(&self, layer: usize) -> usize {
        match self {
            Self::Each(count) => *count,
            // A list of another length is refused by `suit` when the experiment is read.
            Self::Layers(counts) => counts.get(layer).copied().unwrap_or(1),
        }
    }

    /// Whether a model of so many layers can have them.
    pub fn suit(&self, layers: usize) -> bool {
        let counted = match self {
            Self::Each(_) => true,
            Self::Layers(counts) => counts.len() == layers,
        };
        counted && (0..layers).all(|layer| (1..=2).contains(&self.of(layer)))
    }
}

/// Normalisation between layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NormKind {
    /// No normalisation.
    #[default]
    None,
    /// Layer normalisation (Ba, Kiros and Hinton, 2016) before the activation.
    Layer,
}

const fn whole() -> f64 {
    1.0
}
const fn half() -> f64 {
    0.5
}

/// The `[optimizer]` section.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum OptimizerConfig {
    /// Adam (Kingma and Ba, 2015) with L2 regularisation added to the gradient.
    Adam {
        /// Step size. Default 0.01.
        #[serde(default = "hundredth")]
        learning_rate: f64,
        /// Factor of the parameters that is added to their gradient. Default 0.
        #[serde(default)]
        weight_decay: f64,
        /// Added to the denominator. Default 1e-8.
        // Left out where it is the default, so that a strategy's own settings can ask for SGD,
        // which has none.
        #[serde(default = "tiny", skip_serializing_if = "is_tiny")]
        epsilon: f64,
    },
    /// Stochastic gradient descent.
    Sgd {
        /// Step size.
        learning_rate: f64,
        /// Factor of the parameters that is added to their gradient. Default 0.
        #[serde(default)]
        weight_decay: f64,
        /// Share of the previous step that is kept. Default 0.
        #[serde(default, skip_serializing_if = "is_default")]
        momentum: f64,
    },
}

impl Default for OptimizerConfig {
    fn default() -> Self {
        Self::Adam {
            learning_rate: hundredth(),
            weight_decay: 0.0,
            epsilon: tiny(),
        }
    }
}

impl OptimizerConfig {
    /// The same with another step size.
    pub(crate) const fn with_learning_rate(mut self, rate: f64) -> Self {
        match &mut self {
            Self::Adam { learning_rate, .. } | Self::Sgd { learning_rate, .. } => {
                *learning_rate = rate;
            }
        }
        self
    }
}

const fn hundredth() -> f64 {
    0.01
}
// The signature is serde's.
#[allow(clippy::trivially_copy_pass_by_ref, clippy::float_cmp)]
fn is_tiny(epsilon: &f64) -> bool {
    *epsilon == tiny()
}

const fn tiny() -> f64 {
    1e-8
}
