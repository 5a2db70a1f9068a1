//! By what the rows of a working graph are normalised.

use serde::Deserialize;

use crate::graph::Csr;
use crate::model::EdgeDegrees;

/// The rule for nodes of the halo, which have no edges in a working graph but those into chunks.
///
/// GraphSAGE without self-loops, which divides by the degree of who reads, trains alike with all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum HaloDegrees {
    /// Their degrees in the whole graph.
    #[default]
    Global,
    /// Edges into the working graph's chunks.
    Seen,
    /// The number of chunk nodes that read a row, for rows of the halo and of chunks alike; a halo
    /// node's own row is not among its messages.
    Authors,
}

impl HaloDegrees {
    /// Whether a halo node's own row is among its messages.
    pub(super) fn has_own(self) -> bool {
        self != Self::Authors
    }

    /// What aggregations over a working graph divide by, whose first `inner` rows are nodes of
    /// chunks: these by the neighbours that they see, and the halo by this rule. `whole` has each
    /// row's degree in the whole graph.
    pub(super) fn degrees(self, adjacency: &Csr, inner: usize, whole: &[usize]) -> EdgeDegrees {
        let block = || EdgeDegrees::of_block(adjacency, inner, whole.len());
        let with_halo = |halo: &[usize]| {
            let chunks = (0..inner).map(|row| adjacency.degree(row));
            EdgeDegrees::of_rows(chunks.chain(halo.iter().copied()).collect())
        };
        match self {
            Self::Global => with_halo(&whole[inner..]),
            Self::Seen => with_halo(&block().from[inner..]),
            Self::Authors => block(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Aggregation, Block};

    /// Nodes 0, 1 and 2 of chunks, in a row; 3 of the halo is beside all of them, 4 beside 2.
    fn adjacency() -> Csr {
        let chunks = [(0, 1), (1, 0), (1, 2), (2, 1)];
        let halo = [(3, 0), (3, 1), (3, 2), (4, 2)];
        Csr::from_edges(5, chunks.into_iter().chain(halo))
    }

    fn degrees(halo: HaloDegrees) -> EdgeDegrees {
        halo.degrees(&adjacency(), 3, &[2, 3, 3, 7, 9])
    }

    /// The weights of all messages.
    fn dense(halo: HaloDegrees, aggregation: Aggregation) -> Vec<Vec<f32>> {
        Block::directed(&adjacency(), &degrees(halo), aggregation).dense()
    }

    #[test]
    fn the_authors_normalisation_is_dgls_on_a_block() {
        // DGL 2.1.0: GraphConv(5, 5, norm="both", weight=False, bias=False,
        // allow_zero_in_degree=True) of the rows of an identity, on to_block of these edges and
        // loops of 0, 1 and 2.
        let dgl = [
            [0.4082, 0.3333, 0.0, 0.3333, 0.0],
            [0.3536, 0.2887, 0.3536, 0.2887, 0.0],
            [0.0, 0.2887, 0.3536, 0.2887, 0.5],
            [0.0; 5],
            [0.0; 5],
        ];
        let ours = dense(HaloDegrees::Authors, Aggregation::SymmetricWithSelf);
        for (ours, dgl) in ours.iter().flatten().zip(dgl.iter().flatten()) {
            assert!((ours - dgl).abs() < 5e-5, "{ours} is {dgl} there");
        }
    }

    #[test]
    fn a_mean_over_neighbours_is_that_of_all_rules() {
        let of = |halo| dense(halo, Aggregation::Mean);
        let global = of(HaloDegrees::Global);
        assert_eq!(global, of(HaloDegrees::Seen));
        assert_eq!(global, of(HaloDegrees::Authors));
    }

    #[test]
    fn a_halo_row_reads_nothing_by_the_authors_rule() {
        let of = |aggregation| dense(HaloDegrees::Authors, aggregation);
        let third = 1.0 / 3.0;
        let quarter = 0.25;
        // DGL's mean over these edges and loops of 0, 1 and 2; GAT has the same places.
        let mean = [
            [third, third, 0.0, third, 0.0],
            [quarter, quarter, quarter, quarter, 0.0],
            [0.0, quarter, quarter, quarter, quarter],
            [0.0; 5],
            [0.0; 5],
        ];
        assert_eq!(of(Aggregation::MeanWithSelf), mean);
        let places = mean.map(|row| row.map(|weight| if weight > 0.0 { 1.0 } else { 0.0 }));
        assert_eq!(of(Aggregation::NeighboursAndSelf), places);
    }

    #[test]
    fn each_rule_has_its_degrees() {
        let global = EdgeDegrees::of_rows(vec![2, 3, 3, 7, 9]);
        assert_eq!(degrees(HaloDegrees::Global), global);
        let seen = EdgeDegrees::of_rows(vec![2, 3, 3, 3, 1]);
        assert_eq!(degrees(HaloDegrees::Seen), seen);
        let authors = degrees(HaloDegrees::Authors);
        assert_eq!(authors.to, [2, 3, 3, 0, 0]);
        assert_eq!(authors.from, [1, 2, 1, 3, 1]);
        let some = authors.of(&[4, 1]);
        assert_eq!((some.to, some.from), (vec![0, 3], vec![1, 2]));
        assert_eq!(some.own, [false, true]);
    }
}
