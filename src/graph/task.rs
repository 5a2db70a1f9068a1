//! Labels as the metric wants them.

use super::{Dataset, GraphError, Labels, Metric, Several, Task};

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
    /// Of two classes, ROC-AUC makes one label, which the nodes of the second class have (that of
    /// number 1). So a model has one logit and learns by binary cross-entropy, as Platonov et al.
    /// (2023) train on Minesweeper, Tolokers and Questions.
    ///
    /// # Errors
    /// If the metric is not one for these labels.
    pub fn measured_by(self, metric: Option<Metric>) -> Result<Self, GraphError> {
        let name = &self.name;
        let refuse = |what: String| Err(GraphError::key("task.metric", what));
        let labels = match (&self.labels, metric) {
            (_, None) => return Ok(self),
            (Labels::Classes(_), Some(Metric::Accuracy))
            | (Labels::Several(_), Some(Metric::RocAuc | Metric::MicroF1)) => None,
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
