//! What is to be learnt of each node, and by what the result is measured.

use serde::{Deserialize, Serialize};

use super::{Dataset, GraphError, Labels, Several};

/// What the columns of accuracy hold: a number between 0 and 1, higher where predictions are
/// better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Share of nodes whose class is predicted.
    #[default]
    Accuracy,
    /// Area under the receiver operating characteristic: the chance that a node with a label has a
    /// higher logit than one without, ties counted half. Of several labels the mean over those that
    /// some nodes have and others have not, as OGB's evaluator takes it.
    RocAuc,
    /// `2 TP / (2 TP + FP + FN)` over all nodes and labels, where a logit above 0 predicts a label.
    MicroF1,
}

impl Metric {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Accuracy, Self::RocAuc, Self::MicroF1];

    /// How experiment files and tables name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Accuracy => "accuracy",
            Self::RocAuc => "roc-auc",
            Self::MicroF1 => "micro-f1",
        }
    }

    /// How sentences, headings and axes name it.
    pub const fn title(self) -> &'static str {
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
    pub fn is_default(&self) -> bool {
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
    pub const fn outputs(self) -> usize {
        match self {
            Self::Classes(outputs) | Self::Labels(outputs) => outputs,
        }
    }

    /// Words of four bytes in which what is known of a node travels: the number of its class, or a
    /// bit for each label and one that says whether they are known.
    pub const fn words(self) -> usize {
        match self {
            Self::Classes(_) => 1,
            Self::Labels(labels) => (labels + 1).div_ceil(32),
        }
    }
}

impl Dataset {
    /// What a model predicts of its nodes.
    pub fn task(&self) -> Task {
        match &self.labels {
            Labels::Classes(_) => Task::Classes(self.classes),
            Labels::Several(_) => Task::Labels(self.classes),
        }
    }

    /// The same data for a task that is measured so; without a metric by what fits the labels.
    ///
    /// Of two classes, ROC-AUC makes one label: a node has it if it is of the second class, class
    /// 1. So a model has one logit and learns by binary cross-entropy, as Platonov and others
    /// (2023) train on Minesweeper, Tolokers and Questions.
    ///
    /// # Errors
    /// If the metric is not one for these labels.
    pub fn measured_by(self, metric: Option<Metric>) -> Result<Self, GraphError> {
        let name = &self.name;
        let refuse = |what: String| Err(GraphError::key("task.metric", what));
        let labels = match (&self.labels, metric) {
            (_, None) => return Ok(self),
            (Labels::Classes(_), Some(Metric::Accuracy)) => None,
            (Labels::Classes(of), Some(Metric::RocAuc)) if self.classes == 2 => {
                let mut second = Several::new(1);
                for class in of.iter() {
                    second.push(class.map(|class| [class == 1]).as_ref().map(|one| &one[..]));
                }
                Some(second)
            }
            (Labels::Classes(_), Some(Metric::RocAuc)) => {
                return refuse(format!(
                    "\"roc-auc\" is for two classes or several labels, and `{name}` has {} classes; take \"accuracy\"",
                    self.classes
                ));
            }
            (Labels::Classes(_), Some(Metric::MicroF1)) => {
                return refuse(format!(
                    "\"micro-f1\" is for several labels of a node, and `{name}` has one class of each, for which it would be \
                     the accuracy; take \"accuracy\""
                ));
            }
            (Labels::Several(_), Some(Metric::RocAuc | Metric::MicroF1)) => None,
            (Labels::Several(of), Some(Metric::Accuracy)) => {
                return refuse(format!(
                    "\"accuracy\" is for one class of a node, and `{name}` has {} labels of each; take \"micro-f1\" or \
                     \"roc-auc\"",
                    of.labels()
                ));
            }
        };
        let metric = metric.unwrap_or(self.metric);
        Ok(match labels {
            Some(labels) => Self {
                classes: labels.labels(),
                labels: labels.into(),
                metric,
                ..self
            },
            None => Self { metric, ..self },
        })
    }
}
