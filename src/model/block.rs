//! A worker's piece of the graph as the matrices that layers multiply with.

use std::sync::Arc;

use super::{ModelKind, SparseMatrix};
use crate::graph::Csr;

/// How the messages of a node's neighbours are weighted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregation {
    /// `1 / √((d_v + 1)(d_u + 1))` over neighbours and the node itself (Kipf and Welling, 2017, eq. 2).
    SymmetricWithSelf,
    /// `1 / √(d_v d_u)` over neighbours only, as in RETEXO's graph convolution.
    Symmetric,
    /// `1 / d_v` over neighbours (Hamilton, Ying and Leskovec, 2017).
    Mean,
}

impl From<ModelKind> for Aggregation {
    fn from(kind: ModelKind) -> Self {
        match kind {
            ModelKind::Gcn => Self::SymmetricWithSelf,
            ModelKind::Sage => Self::Mean,
        }
    }
}

/// The part of the graph a layer computes on: the inputs are rows `0..inputs`, of which the first `outputs` are
/// the nodes whose new representation is computed.
#[derive(Clone, Debug)]
pub struct Block {
    /// Aggregation weights `[outputs, inputs]`.
    pub matrix: Arc<SparseMatrix>,
}

impl Block {
    /// The block of a local graph.
    ///
    /// `adjacency` has one row per output; its entries are input rows. `degrees` are the degrees, without
    /// self-loops, that the normalisation uses, one per *input*: global ones make the result independent of the partition. Isolated nodes
    /// aggregate nothing (and themselves, where self-loops are used).
    ///
    /// # Panics
    /// If an entry of `adjacency` has no degree.
    #[must_use]
    pub fn new(adjacency: &Csr, degrees: &[usize], aggregation: Aggregation) -> Self {
        let outputs = adjacency.nodes();
        let with_self = aggregation == Aggregation::SymmetricWithSelf;
        let mut offsets = Vec::with_capacity(outputs + 1);
        let mut columns = Vec::with_capacity(adjacency.edges() + outputs);
        let mut values = Vec::with_capacity(adjacency.edges() + outputs);
        offsets.push(0);
        for v in 0..outputs {
            let own = degrees[v];
            let weight = |u: usize| match aggregation {
                Aggregation::SymmetricWithSelf => inverse_root((own + 1) * (degrees[u] + 1)),
                Aggregation::Symmetric => inverse_root(own.max(1) * degrees[u].max(1)),
                Aggregation::Mean => (1.0 / own.max(1) as f64) as f32,
            };
            let mut own_pending = with_self;
            for &u in adjacency.neighbours(v) {
                if own_pending && u as usize > v {
                    own_pending = false;
                    columns.push(index(v));
                    values.push(weight(v));
                }
                columns.push(u);
                values.push(weight(u as usize));
            }
            if own_pending {
                columns.push(index(v));
                values.push(weight(v));
            }
            offsets.push(columns.len());
        }
        Self {
            matrix: Arc::new(SparseMatrix::new(degrees.len(), &offsets, columns, values)),
        }
    }

    /// Number of nodes whose new representation is computed.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.matrix.rows()
    }

    /// Number of nodes whose representation is read.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.matrix.columns()
    }
}

#[allow(clippy::cast_possible_truncation)] // weights are single precision
fn inverse_root(product: usize) -> f32 {
    (1.0 / (product as f64).sqrt()) as f32
}

#[allow(clippy::cast_possible_truncation)] // nodes are numbered by u32 throughout
const fn index(v: usize) -> u32 {
    v as u32
}
