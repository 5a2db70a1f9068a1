//! What is known of the nodes: one class of each, or several labels.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Metric, Task, places};

/// What is known of all nodes, `[nodes]`. Copies share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Labels {
    /// The class of each node where it is known.
    Classes(Arc<[Option<u32>]>),
    /// Which of several labels each node has.
    Several(Arc<Several>),
}

impl From<Vec<Option<u32>>> for Labels {
    fn from(classes: Vec<Option<u32>>) -> Self {
        Self::Classes(classes.into())
    }
}

impl From<Several> for Labels {
    fn from(several: Several) -> Self {
        Self::Several(Arc::new(several))
    }
}

/// What is known of one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Label {
    /// Its class.
    Class(u32),
    /// Which labels it has: their bits, after one that is set.
    Several(Box<[u32]>),
}

/// In place of the class of a node of which none is known.
const NO_CLASS: u32 = u32::MAX;

impl Label {
    /// Whether a node is of class `number`, or has the label of that number.
    pub fn has(&self, number: usize) -> bool {
        match self {
            Self::Class(class) => *class as usize == number,
            Self::Several(words) => bit(words, number + 1),
        }
    }

    /// One such as the task has: of class 0, or with no label.
    pub fn plain(task: Task) -> Self {
        match task {
            Task::Classes(_) => Self::Class(0),
            Task::Labels(_) => {
                let mut words = vec![0; task.words()];
                words[0] = 1;
                Self::Several(words.into())
            }
        }
    }

    /// As it travels, in so many words as the task says.
    pub(crate) fn to_words(label: Option<&Self>, task: Task) -> Vec<u32> {
        match (label, task) {
            (Some(Self::Several(words)), _) => words.to_vec(),
            (Some(Self::Class(class)), _) => vec![*class],
            (None, Task::Classes(_)) => vec![NO_CLASS],
            // The first bit says whether anything is known, and here it is 0.
            (None, Task::Labels(_)) => vec![0; task.words()],
        }
    }

    /// The other end of [`Self::to_words`].
    pub(crate) fn from_words(words: &[u32], task: Task) -> Option<Self> {
        match task {
            Task::Classes(_) => match words {
                [class] if *class != NO_CLASS => Some(Self::Class(*class)),
                _ => None,
            },
            Task::Labels(_) => bit(words, 0).then(|| Self::Several(words.into())),
        }
    }
}

impl Labels {
    /// The class of each node; empty where nodes have several labels.
    pub fn classes(&self) -> &[Option<u32>] {
        match self {
            Self::Classes(classes) => classes,
            Self::Several(_) => &[],
        }
    }

    /// Which labels nodes have, where they may have several.
    pub fn several(&self) -> Option<&Several> {
        match self {
            Self::Classes(_) => None,
            Self::Several(several) => Some(several),
        }
    }

    /// What is known of a node.
    pub fn of(&self, node: usize) -> Option<Label> {
        match self {
            Self::Classes(classes) => classes[node].map(Label::Class),
            Self::Several(several) => {
                let words = several.words_of(node);
                bit(words, 0).then(|| Label::Several(words.into()))
            }
        }
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        match self {
            Self::Classes(classes) => classes.len(),
            Self::Several(several) => several.nodes(),
        }
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Nodes of which something is known, ascending.
    pub fn known(&self) -> Vec<u32> {
        match self {
            Self::Classes(classes) => places(classes, Option::is_some),
            Self::Several(several) => {
                let nodes = (0_u32..).take(several.nodes());
                nodes.filter(|&v| several.is_known(v as usize)).collect()
            }
        }
    }

    /// Those of a task, of which this is known node by node.
    pub(crate) fn of_each(task: Task, known: impl Iterator<Item = Option<Label>>) -> Self {
        match task {
            Task::Classes(_) => Self::Classes(
                known
                    .map(|label| match label {
                        Some(Label::Class(class)) => Some(class),
                        _ => None,
                    })
                    .collect(),
            ),
            Task::Labels(labels) => Self::from(Several {
                labels,
                words: known
                    .flat_map(|label| Label::to_words(label.as_ref(), task))
                    .collect(),
            }),
        }
    }

    /// What is known of these nodes, in this order.
    pub fn select(&self, nodes: &[u32]) -> Self {
        match self {
            Self::Classes(classes) => {
                Self::Classes(nodes.iter().map(|&v| classes[v as usize]).collect())
            }
            Self::Several(several) => Self::from(several.select(nodes)),
        }
    }

    /// The metric of such labels where nobody names one.
    pub(crate) const fn usual_metric(&self) -> Metric {
        match self {
            Self::Classes(_) => Metric::Accuracy,
            Self::Several(_) => Metric::MicroF1,
        }
    }
}

/// Which of several labels nodes have, a bit for each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Several {
    labels: usize,
    /// Node by node: a bit that says whether anything is known, then one for each label.
    words: Vec<u32>,
}

impl Several {
    /// So many labels, of no nodes.
    pub const fn new(labels: usize) -> Self {
        Self {
            labels,
            words: Vec::new(),
        }
    }

    /// Adds a node: which labels it has, `[labels]`, or that nothing is known.
    ///
    /// # Panics
    /// If it has another number of labels.
    pub fn push(&mut self, has: Option<&[bool]>) {
        let mut words = vec![0_u32; self.words_each()];
        if let Some(has) = has {
            assert_eq!(has.len(), self.labels, "a node has all labels or none");
            words[0] |= 1;
            for (number, _) in has.iter().enumerate().filter(|(_, has)| **has) {
                words[(number + 1) / 32] |= 1 << ((number + 1) % 32);
            }
        }
        self.words.append(&mut words);
    }

    /// Labels of which each row of numbers says whether a node has them: 1, or has not: 0. A row of
    /// which no number is known is that of a node of which nothing is.
    ///
    /// # Errors
    /// What is wrong with a row, and which one it is.
    pub(crate) fn from_rows(
        labels: usize,
        rows: impl Iterator<Item = impl Iterator<Item = f64>>,
    ) -> Result<Self, String> {
        let mut several = Self::new(labels);
        let mut has = Vec::with_capacity(labels);
        for (node, row) in rows.enumerate() {
            has.clear();
            let mut missing = 0;
            for value in row {
                // Not a number is how files say that a label is unknown, OGB's among them.
                missing += usize::from(value.is_nan());
                if !(value.is_nan() || value == 0.0 || value == 1.0) {
                    return Err(format!(
                        "row {node} (from 0): {value} is no label, which a node has, 1, or has not, 0"
                    ));
                }
                has.push(value == 1.0);
            }
            match missing {
                _ if has.len() != labels => {
                    let found = has.len();
                    return Err(format!(
                        "row {node} (from 0) has {found} labels where the first has {labels}"
                    ));
                }
                0 => several.push(Some(&has)),
                all if all == labels => several.push(None),
                some => {
                    return Err(format!(
                        "row {node} (from 0): {some} of {labels} labels are missing; all of them may be, or none"
                    ));
                }
            }
        }
        Ok(several)
    }

    /// The labels of these nodes, in this order.
    pub fn select(&self, nodes: &[u32]) -> Self {
        let words = nodes.iter().flat_map(|&v| self.words_of(v as usize));
        Self {
            labels: self.labels,
            words: words.copied().collect(),
        }
    }

    /// Adds nodes with as many labels.
    pub fn append(&mut self, mut other: Self) {
        self.words.append(&mut other.words);
    }

    /// Number of labels.
    pub const fn labels(&self) -> usize {
        self.labels
    }

    /// Number of nodes.
    pub const fn nodes(&self) -> usize {
        self.words.len() / self.words_each()
    }

    /// Whether anything is known of a node.
    pub(crate) fn is_known(&self, node: usize) -> bool {
        bit(self.words_of(node), 0)
    }

    /// Whether a node has a label; false where nothing is known.
    pub fn has(&self, node: usize, label: usize) -> bool {
        bit(self.words_of(node), label + 1)
    }

    /// Whether there is a label that some of these nodes have and others have not, of those of
    /// which anything is known.
    pub fn differ(&self, nodes: &[u32]) -> bool {
        let known = || {
            nodes
                .iter()
                .map(|&v| v as usize)
                .filter(|&v| self.is_known(v))
        };
        (0..self.labels).any(|label| {
            known().any(|v| self.has(v, label)) && known().any(|v| !self.has(v, label))
        })
    }

    /// All bits, node by node.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    const fn words_each(&self) -> usize {
        Task::Labels(self.labels).words()
    }

    fn words_of(&self, node: usize) -> &[u32] {
        let each = self.words_each();
        &self.words[node * each..][..each]
    }
}

fn bit(words: &[u32], place: usize) -> bool {
    words
        .get(place / 32)
        .is_some_and(|word| word >> (place % 32) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_a_node_are_what_was_said_of_it() {
        let mut several = Several::new(40);
        let has: Vec<bool> = (0..40).map(|label| label % 3 == 1).collect();
        several.push(Some(&has));
        several.push(None);
        several.push(Some(&[false; 40]));
        assert_eq!((several.labels(), several.nodes()), (40, 3));
        let labels = Labels::from(several.clone());
        assert_eq!(labels.known(), [0, 2]);
        for (label, &has) in has.iter().enumerate() {
            assert_eq!(several.has(0, label), has);
            assert_eq!(labels.of(0).unwrap().has(label), has);
            assert!(!several.has(1, label) && !several.has(2, label));
        }
        let picked = labels.select(&[2, 1, 0]);
        assert_eq!(picked.known(), [0, 2]);
        assert_eq!(picked.of(2), labels.of(0));
    }

    #[test]
    fn rows_of_labels_are_all_known_or_not_at_all() {
        let of = |rows: &[&[f64]]| {
            let rows = rows.iter().map(|row| row.iter().copied());
            Several::from_rows(2, rows)
        };
        let several = of(&[&[1.0, 0.0], &[f64::NAN, f64::NAN]]).unwrap();
        assert!(several.has(0, 0) && !several.has(0, 1));
        assert!(several.is_known(0) && !several.is_known(1));
        for (rows, message) in [
            (&[&[1.0, 0.5][..]][..], "row 0 (from 0): 0.5 is no label"),
            (&[&[1.0, f64::NAN]], "1 of 2 labels are missing"),
            (&[&[1.0, 0.0], &[1.0]], "row 1 (from 0) has 1 labels"),
        ] {
            assert!(of(rows).unwrap_err().contains(message), "{message}");
        }
    }

    #[test]
    fn a_label_survives_the_journey() {
        let mut several = Several::new(32);
        several.push(Some(&[true; 32]));
        several.push(Some(&[false; 32]));
        several.push(None);
        let task = Task::Labels(32);
        assert_eq!(task.words(), 2, "a bit for each and one more");
        let labels = Labels::from(several);
        for node in 0..3 {
            let words = Label::to_words(labels.of(node).as_ref(), task);
            assert_eq!(words.len(), task.words());
            assert_eq!(Label::from_words(&words, task), labels.of(node));
        }
        let task = Task::Classes(3);
        for label in [Some(Label::Class(2)), None] {
            let words = Label::to_words(label.as_ref(), task);
            assert_eq!(Label::from_words(&words, task), label);
        }
    }
}
