//! The names by which experiments choose weights.

use serde::{Deserialize, Serialize};

use super::{over_two_more, smoothed};
use crate::names::named;

named! {
    /// What corrects for missing neighbours.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub(crate) enum Weight {
        /// Nothing (the paper's ablation UW).
        None = "none",
        /// Each node's loss by its coverage (the paper's node-level form; the authors' code
        /// averages it).
        NodeHt = "node_ht",
        /// Each node's loss by 1 if any neighbour is seen and by 0 if none is (derived).
        NodeHajek = "node_hajek",
        /// The batch's gradient by the mean coverage of its nodes (the authors' code).
        #[default]
        BatchMean = "batch_mean",
        /// The batch's gradient by the factor that brings it nearest to the node-weighted one (the
        /// paper's v2 calls it "minimum-distance"; the formula is derived).
        BatchGram = "batch_gram",
        /// Each message by one over the probability that it is seen, with global degrees (derived;
        /// `GraphSAINT`'s aggregator).
        EdgeHt = "edge_ht",
    }
}

impl Weight {
    /// Whether all nodes of a batch get one weight, which can be shrunk as a whole.
    pub(crate) const fn is_batch(self) -> bool {
        matches!(self, Self::BatchMean | Self::BatchGram)
    }

    /// Whether the weight is made of coverages.
    pub(crate) const fn uses_coverage(self) -> bool {
        matches!(self, Self::NodeHt | Self::BatchMean | Self::BatchGram)
    }
}

named! {
    /// How weights are pulled towards 1.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub(crate) enum Shrinkage {
        /// Not at all.
        #[default]
        None = "none",
        /// Coverages smoothed by κ, node by node.
        Kappa = "kappa",
        /// `(d_local + 1)/(d + 2)` in place of coverages, node by node (the authors' code).
        Authors = "authors",
        /// Batch weights by `1 + λ (w − 1)`, with a given λ; in the study of estimators, if none is
        /// given, the one estimated from all workers.
        Lambda = "lambda",
        /// As lambda, with the factor of James and Stein.
        JamesStein = "james_stein",
    }
}

impl Shrinkage {
    /// The coverage of a node of this degree, pulled towards 1 if that is done node by node.
    pub(crate) fn of_node(self, coverage: f64, degree: usize, kappa: f64) -> f64 {
        match self {
            Self::Kappa => smoothed(coverage, degree, kappa),
            Self::Authors => over_two_more(coverage, degree),
            Self::None | Self::Lambda | Self::JamesStein => coverage,
        }
    }

    /// Whether it pulls batch weights, and not those of nodes.
    pub(crate) const fn is_of_batches(self) -> bool {
        matches!(self, Self::Lambda | Self::JamesStein)
    }
}

named! {
    /// What weights are divided by.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub(crate) enum Normalise {
        /// Nothing: the step shrinks with the coverage (the authors' code).
        #[default]
        None = "none",
        /// The expected weight of each node under the design, which makes the weight Horvitz and
        /// Thompson's where that expectation is exact: in training for one hop, and for more as if
        /// the walk never came back to units it has seen.
        Rho = "rho",
        /// The mean weight over all training nodes: one number in an all-reduce.
        Mean = "mean",
    }
}
