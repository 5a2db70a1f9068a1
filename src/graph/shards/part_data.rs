//! What one part of a graph holds, cut out of the whole or read from its folder.

use crate::graph::{Csr, Dataset, Features, Labels, Part, Split};

/// The nodes of a part and its boundary, the edges that end in its nodes, and what is known of
/// them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PartData {
    /// Its nodes, and which rows cross.
    pub part: Part,
    /// In-neighbours of the owned nodes as local rows, `[owned, owned + halo]`.
    pub adjacency: Csr,
    /// Degrees in the whole graph, `[owned + halo]`.
    pub degrees: Vec<usize>,
    /// Features of the owned nodes.
    pub features: Features,
    /// What is known of the owned nodes.
    pub labels: Labels,
    /// Owned rows, not nodes, that train, validate and test.
    pub split: Split,
}

impl PartData {
    /// Cuts a part out of the graph of its plan. Features that lie in a file stay there.
    ///
    /// # Panics
    /// If the part is of another graph.
    pub(crate) fn cut(dataset: &Dataset, part: &Part) -> Self {
        let nodes = part.owned.iter().chain(&part.halo);
        // Of the whole graph, so that normalisation does not depend on the partition.
        let degrees = nodes.map(|&v| dataset.graph.degree(v as usize)).collect();
        Self {
            adjacency: part.local_graph(&dataset.graph),
            degrees,
            features: dataset.features.select(&part.owned),
            labels: dataset.labels.select(&part.owned),
            split: dataset.split.map(|nodes| part.training_rows(nodes)),
            part: part.clone(),
        }
    }
}
