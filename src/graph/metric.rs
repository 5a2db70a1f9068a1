//! What is to be learnt of each node, and by what the result is measured.

use serde::{Deserialize, Serialize};

use crate::names::named;

named! {
    /// What the columns of accuracy hold: a number between 0 and 1, higher where predictions are
    /// better.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Metric {
        /// Share of nodes whose class is predicted.
        #[default]
        Accuracy = "accuracy",
        /// Area under the receiver operating characteristic: the chance that a node with a label
        /// has a higher logit than one without, ties counted half. Of several labels the mean over
        /// those that some nodes have and others have not, as OGB's evaluator takes it.
        RocAuc = "roc-auc",
        /// `2 TP / (2 TP + FP + FN)` over all nodes and labels, where a logit above 0 predicts a
        /// label.
        MicroF1 = "micro-f1",
    }
}

impl Metric {
    /// How sentences, headings and axes name it.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Accuracy => "accuracy",
            Self::RocAuc => "ROC-AUC",
            Self::MicroF1 => "micro-F1",
        }
    }
}

/// The `[task]` section.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskSpec {
    /// By what predictions are measured. Default: what the data set's authors report; for other
    /// data micro-F1 where nodes have several labels, and accuracy where they have one class.
    // Left out where nothing is said, so that folders from before it can be resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<Metric>,
}

impl TaskSpec {
    /// Whether nothing is said.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What a model predicts of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// One of so many classes: a logit for each, softmax and cross-entropy.
    Classes(usize),
    /// Each of so many labels, which a node has or has not: a logit for each, and binary
    /// cross-entropy.
    Labels(usize),
}

impl Task {
    /// Logits of a node.
    pub(crate) const fn outputs(self) -> usize {
        match self {
            Self::Classes(outputs) | Self::Labels(outputs) => outputs,
        }
    }

    /// Words of four bytes in which what is known of a node travels: the number of its class, or a
    /// bit for each label and one that says whether they are known.
    pub(crate) const fn words(self) -> usize {
        match self {
            Self::Classes(_) => 1,
            Self::Labels(labels) => (labels + 1).div_ceil(32),
        }
    }
}
