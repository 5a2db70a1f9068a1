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

    /// The same data, if the metric says something of the nodes that choose the best epoch and of
    /// those that are reported. Without a score of the former any epoch would be the best.
    ///
    /// # Errors
    /// If there are no such nodes, or by ROC-AUC each label is that of all of them or of none.
    pub(crate) fn with_scores(self) -> Result<Self, GraphError> {
        let sets = [
            ("validation", &self.split.validation),
            ("test", &self.split.test),
        ];
        for (set, nodes) in sets.into_iter().filter(|_| self.classes > 0) {
            let what = match &self.labels {
                _ if nodes.is_empty() => "has no nodes",
                Labels::Several(of) if self.metric == Metric::RocAuc && !of.differ(nodes) => {
                    "has no label that some of its nodes have and others have not, and ROC-AUC compares these"
                }
                _ => continue,
            };
            let what = format!(
                "the {set} set of `{}` {what}; take another split, such as {{ train = 0.6, val = 0.2 }}",
                self.name
            );
            return Err(GraphError::key("dataset.split", what));
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Csr, Features, RawDataset, Split, SplitSpec};
    use super::*;

    #[test]
    fn a_set_that_the_metric_says_nothing_of_is_refused() {
        let of = |classes: [u32; 6], validation: &[u32]| {
            let split = Split::new(vec![0, 1], validation.to_vec(), vec![4, 5]);
            let graph = Csr::undirected(6, std::iter::empty());
            let labels = classes.map(Some).to_vec();
            let (name, features) = ("toy".to_owned(), Features::identity(6));
            RawDataset::new(name, graph, features, labels, 2, vec![split])
                .split(&SplitSpec::default(), 0)
                .unwrap()
        };
        let check = |data: Dataset, metric| {
            let data = data.measured_by(Some(metric)).unwrap();
            data.with_scores().map_err(|error| error.to_string())
        };
        let one_kind = || of([0, 1, 0, 0, 0, 1], &[2, 3]);
        assert!(check(one_kind(), Metric::Accuracy).is_ok());
        let error = check(one_kind(), Metric::RocAuc).unwrap_err();
        assert!(error.starts_with("dataset.split: the validation set of `toy` has no label that"));
        assert!(check(of([0, 1, 0, 1, 0, 1], &[2, 3]), Metric::RocAuc).is_ok());
        let error = check(of([0, 1, 0, 1, 1, 1], &[2, 3]), Metric::RocAuc).unwrap_err();
        assert!(error.contains("the test set"), "{error}");
        let error = check(of([0, 1, 0, 1, 0, 1], &[]), Metric::Accuracy).unwrap_err();
        assert!(
            error.contains("the validation set of `toy` has no nodes"),
            "{error}"
        );
    }
}
