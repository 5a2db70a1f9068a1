//! A graph with features, labels and a split.

use std::sync::Arc;

use super::{Csr, DataSummary, Features, Labels, Metric, Reading};

/// Three disjoint sets of nodes, each in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// Nodes whose labels train the model.
    pub train: Vec<u32>,
    /// Nodes that choose the best epoch.
    pub validation: Vec<u32>,
    /// Nodes that are reported.
    pub test: Vec<u32>,
}

impl Split {
    pub(super) const fn new(train: Vec<u32>, validation: Vec<u32>, test: Vec<u32>) -> Self {
        Self {
            train,
            validation,
            test,
        }
    }

    /// What becomes of each set.
    pub(super) fn map(&self, change: impl Fn(&[u32]) -> Vec<u32>) -> Self {
        let [train, validation, test] = [&self.train, &self.validation, &self.test];
        Self::new(change(train), change(validation), change(test))
    }

    /// The same sets in ascending order.
    pub(super) fn sorted(mut self) -> Self {
        for nodes in [&mut self.train, &mut self.validation, &mut self.test] {
            nodes.sort_unstable();
        }
        self
    }
}

/// A data set as it was published or generated, before a seed chooses a split. The large parts are
/// shared: several seeds train on one copy.
#[derive(Clone, Debug)]
pub struct RawDataset {
    /// Name for tables: `cora`, or what the files are called.
    pub name: String,
    /// Undirected, without self-loops and duplicates.
    pub graph: Arc<Csr>,
    /// `[nodes, width]`; width 0 if there are neither features nor labels.
    pub features: Arc<Features>,
    /// What is known of each node, `[nodes]`.
    pub labels: Labels,
    /// Number of classes, or of labels of which a node may have several; 0 for data that is
    /// topology only, which can be partitioned but not trained on.
    pub classes: usize,
    /// What its authors report, where that is known.
    pub metric: Option<Metric>,
    /// The splits that come with the data: `public` is the first, `public-1` the second.
    pub splits: Vec<Split>,
    /// How it was read.
    pub reading: Arc<Reading>,
}

/// A data set with the nodes that train, validate and test.
///
/// # Example
/// ```
/// use grapevine::graph::{SplitSpec, cora};
///
/// let data = cora()?.split(&SplitSpec::Named("public".to_owned()), 0)?;
/// assert_eq!((data.graph.nodes(), data.features.width(), data.classes), (2708, 1433, 7));
/// assert_eq!(data.split.train.len(), 140);
/// # Ok::<(), grapevine::graph::GraphError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Dataset {
    /// Name for tables.
    pub name: String,
    /// Undirected, without self-loops and duplicates.
    pub graph: Arc<Csr>,
    /// `[nodes, width]`.
    pub features: Arc<Features>,
    /// What is known of each node, `[nodes]`.
    pub labels: Labels,
    /// Number of classes, or of labels of which a node may have several: the outputs of a model; 0
    /// for data that is topology only.
    pub classes: usize,
    /// By what predictions are measured.
    pub metric: Metric,
    /// Which nodes train, validate and test; empty for data that is topology only.
    pub split: Split,
    /// How it was read.
    pub reading: Arc<Reading>,
}

impl RawDataset {
    /// Puts the parts together.
    pub fn new(
        name: String,
        graph: Csr,
        features: Features,
        labels: impl Into<Labels>,
        classes: usize,
        splits: Vec<Split>,
    ) -> Self {
        let (graph, features) = (Arc::new(graph), Arc::new(features));
        Self {
            name,
            graph,
            features,
            labels: labels.into(),
            classes,
            metric: None,
            splits,
            reading: Arc::default(),
        }
    }

    /// Bytes of the edges and features.
    pub(crate) fn bytes(&self) -> usize {
        self.graph.edges() * size_of::<u32>() + self.features.bytes()
    }

    /// The same with an account of how it was read.
    pub(super) fn read_as(mut self, reading: Reading) -> Self {
        self.reading = Arc::new(reading);
        self
    }
}

impl Dataset {
    /// The training nodes, in their order, and the edges between them: what is known where nodes
    /// that are to be predicted have not come yet (Hamilton, Ying and Leskovec, 2017).
    pub(crate) fn of_training(&self) -> Self {
        let nodes = &self.split.train;
        Self {
            graph: self.graph.induced(nodes).into(),
            features: self.features.select(nodes).into(),
            labels: self.labels.select(nodes),
            split: Split {
                train: (0..nodes.len() as u32).collect(),
                ..Split::default()
            },
            ..self.clone()
        }
    }

    /// Share of the test nodes that are of their largest class; none where classes are not what is
    /// measured, or not at hand.
    pub(crate) fn largest_class(&self) -> Option<f64> {
        let Labels::Classes(classes) = &self.labels else {
            return None;
        };
        if self.metric != Metric::Accuracy {
            return None;
        }
        let mut nodes = vec![0_usize; self.classes];
        for &node in &self.split.test {
            if let Some(class) = classes.get(node as usize)? {
                *nodes.get_mut(*class as usize)? += 1;
            }
        }
        let known: usize = nodes.iter().sum();
        (known > 0).then(|| nodes.into_iter().max().unwrap_or(0) as f64 / known as f64)
    }

    /// Counts of what is there, and how it was read.
    pub(crate) fn summary(&self) -> DataSummary {
        let nodes = self.graph.nodes();
        DataSummary {
            name: self.name.clone(),
            nodes,
            // Published counts have each undirected edge once; it is stored both ways.
            edges: self.graph.edges() / 2,
            listed: self.reading.edges,
            features: self.features.width(),
            classes: self.classes,
            several: self.labels.several().is_some(),
            unlabelled: nodes - self.labels.known().len(),
            isolated: (0..nodes).filter(|&v| self.graph.degree(v) == 0).count(),
            train: self.split.train.len(),
            validation: self.split.validation.len(),
            test: self.split.test.len(),
            unread: self.reading.unread.clone(),
            notes: self.reading.notes.clone(),
        }
    }
}
