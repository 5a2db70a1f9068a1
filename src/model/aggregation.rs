//! What the messages of a node's neighbours weigh.

use super::ModelKind;
use crate::graph::Csr;

/// How the messages of a node's neighbours are weighted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregation {
    /// `1 / √((d_v + 1)(d_u + 1))` over neighbours and the node itself (Kipf and Welling, 2017, eq.
    /// 2).
    SymmetricWithSelf,
    /// `1 / √(d_v d_u)` over neighbours only, as in the code of RETEXO's authors.
    Symmetric,
    /// `1 / d_v` over neighbours (Hamilton, Ying and Leskovec, 2017).
    Mean,
    /// `1 / (d_v + 1)` over neighbours and the node itself: a mean over a graph with self-loops, as
    /// in the code of BNS-GCN's and VARCO's authors.
    MeanWithSelf,
    /// 1 over neighbours: for maxima, which need no weights.
    Neighbours,
    /// 1 over neighbours and the node itself: the sum of GIN-0 (Xu et al., 2019, eq. 4.1 with ε =
    /// 0), and what attention weighs itself.
    NeighboursAndSelf,
}

impl Aggregation {
    /// Whether a node's own row is among its messages.
    pub const fn has_self(self) -> bool {
        matches!(
            self,
            Self::SymmetricWithSelf | Self::MeanWithSelf | Self::NeighboursAndSelf
        )
    }

    /// The weight of a message to a node of degree `own` from one of degree `other`, degrees
    /// without self-loops.
    pub(crate) fn weight(self, own: usize, other: usize) -> f32 {
        self.weights(own)(other)
    }

    /// The weights of messages to a node of degree `own`, by the degree that they come from.
    pub(super) fn weights(self, own: usize) -> impl Fn(usize) -> f32 {
        // Worked out once where who sends makes no difference.
        let all = match self {
            Self::SymmetricWithSelf | Self::Symmetric => None,
            Self::Mean => Some((1.0 / own.max(1) as f64) as f32),
            Self::MeanWithSelf => Some((1.0 / (own + 1) as f64) as f32),
            Self::Neighbours | Self::NeighboursAndSelf => Some(1.0),
        };
        let loops = usize::from(self == Self::SymmetricWithSelf);
        // A boundary row's degree may be 0 in a graph with edges one way; it must not divide by
        // zero.
        let of_pair =
            move |other: usize| inverse_root((own + loops).max(1) * (other + loops).max(1));
        move |other| all.unwrap_or_else(|| of_pair(other))
    }
}

impl From<ModelKind> for Aggregation {
    fn from(kind: ModelKind) -> Self {
        match kind {
            ModelKind::Gcn => Self::SymmetricWithSelf,
            ModelKind::Sage => Self::Mean,
            ModelKind::SagePool => Self::Neighbours,
            ModelKind::Gat | ModelKind::Gin => Self::NeighboursAndSelf,
        }
    }
}

/// Degrees of rows of which some are only read, or are read by fewer rows than they read
/// themselves: one entry a row, degrees without self-loops.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EdgeDegrees {
    /// Rows that it reads.
    pub to: Vec<usize>,
    /// Rows that read it.
    pub from: Vec<usize>,
    /// Whether its own row is among its messages, where the aggregation has such.
    pub own: Vec<bool>,
}

impl EdgeDegrees {
    /// One degree a row, whether it reads or is read.
    pub(crate) fn of_rows(degrees: Vec<usize>) -> Self {
        Self {
            own: vec![true; degrees.len()],
            from: degrees.clone(),
            to: degrees,
        }
    }

    /// Those of a block of so many `rows`, of which the first `readers` read others and themselves,
    /// and the rest nothing: by the edges of the block alone, the rules of DGL's `GraphConv` with
    /// `norm = "both"`.
    pub(crate) fn of_block(adjacency: &Csr, readers: usize, rows: usize) -> Self {
        let (mut to, mut from) = (vec![0; rows], vec![0; rows]);
        for (row, to) in to.iter_mut().enumerate().take(readers) {
            let sources = adjacency.neighbours(row);
            *to = sources.len();
            for &source in sources {
                from[source as usize] += 1;
            }
        }
        let own = (0..rows).map(|row| row < readers).collect();
        Self { to, from, own }
    }

    /// Those of some of the rows.
    pub(crate) fn of(&self, rows: &[u32]) -> Self {
        fn select<T: Copy>(of: &[T], rows: &[u32]) -> Vec<T> {
            rows.iter().map(|&row| of[row as usize]).collect()
        }
        Self {
            to: select(&self.to, rows),
            from: select(&self.from, rows),
            own: select(&self.own, rows),
        }
    }

    /// The weights of messages to row `v`, by the row that they come from.
    pub(super) fn weights(&self, v: usize, aggregation: Aggregation) -> impl Fn(usize) -> f32 {
        let weights = aggregation.weights(self.to[v]);
        // An aggregation with self-loops adds 1 to a degree, also where there is no loop.
        let loops = aggregation.has_self();
        move |u| weights(self.from[u].saturating_sub(usize::from(loops && !self.own[u])))
    }

    /// Whether row `v` is among its own messages.
    pub(super) fn has_own(&self, v: usize, aggregation: Aggregation) -> bool {
        aggregation.has_self() && self.own[v]
    }
}

fn inverse_root(product: usize) -> f32 {
    // In double precision and rounded once: a root and a division in `f32` would round twice.
    (1.0 / (product as f64).sqrt()) as f32
}
