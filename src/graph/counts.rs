//! What a plan needs to know of a boundary: how much of everything, and not what.

use serde::{Deserialize, Serialize};

use super::{BoundaryPlan, Features, Part};

/// The boundary of a partitioned graph in numbers. A real partition has exact ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundaryCounts {
    /// One per worker.
    pub parts: Vec<PartCounts>,
    /// Nodes of the graph.
    pub nodes: usize,
    /// Stored (directed) edges of the graph.
    pub edges: usize,
    /// Whether features are stored as dense rows.
    pub dense: bool,
}

/// What one worker holds, sends and receives, in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartCounts {
    /// Nodes that it owns.
    pub owned: usize,
    /// Nodes of others that its own have as in-neighbours.
    pub halo: usize,
    /// Stored edges that end and begin here.
    pub internal_edges: usize,
    /// Stored edges that end here and begin elsewhere.
    pub cut_edges: usize,
    /// Owned nodes that train.
    pub training: usize,
    /// Feature values that are stored of the owned nodes.
    pub own_values: usize,
    /// Feature values that are stored of the halo.
    pub halo_values: usize,
    /// Workers that need some of its rows, ascending, and how many.
    pub sends: Vec<(u32, usize)>,
    /// Workers whose rows it needs, ascending, and how many.
    pub receives: Vec<(u32, usize)>,
}

impl BoundaryCounts {
    /// Those of a partitioned graph with features.
    pub fn new(boundary: &BoundaryPlan, features: &Features) -> Self {
        let values = |nodes: &[u32]| nodes.iter().map(|&node| features.stored_of(node)).sum();
        let with_values = |part: &Part| PartCounts {
            own_values: values(&part.owned),
            halo_values: values(&part.halo),
            ..PartCounts::new(part)
        };
        Self {
            parts: boundary.parts.iter().map(with_values).collect(),
            dense: features.is_dense(),
            ..Self::of_rows(boundary)
        }
    }

    /// Those of a partitioned graph without features.
    pub(crate) fn of_rows(boundary: &BoundaryPlan) -> Self {
        Self {
            parts: boundary.parts.iter().map(PartCounts::new).collect(),
            nodes: boundary.nodes,
            edges: boundary.edges,
            // Of no values, dense or not; nothing is to be said about columns of theirs.
            dense: true,
        }
    }

    /// Number of workers.
    pub const fn workers(&self) -> usize {
        self.parts.len()
    }

    /// Rows that cross the cut in one full exchange.
    pub fn boundary_rows(&self) -> usize {
        self.parts.iter().map(|part| part.halo).sum()
    }
}

impl PartCounts {
    fn new(part: &Part) -> Self {
        let sends = part.sends.iter();
        let receives = part.receives.iter();
        Self {
            owned: part.owned.len(),
            halo: part.halo.len(),
            internal_edges: part.internal_edges,
            cut_edges: part.cut_edges,
            training: part.training,
            sends: sends
                .map(|(peer, rows)| (peer as u32, rows.len()))
                .collect(),
            receives: (receives.map(|(peer, range)| (peer as u32, range.len()))).collect(),
            ..Self::default()
        }
    }

    /// Rows that it sends, over all receivers.
    pub(crate) fn sent_rows(&self) -> usize {
        self.sends.iter().map(|(_, rows)| rows).sum()
    }
}
