//! By what the rows of a working graph are normalised.

use serde::Deserialize;

use crate::graph::{Csr, SampledLayer};
use crate::model::{Aggregation, Block, EdgeDegrees};

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

/// What aggregations over a working graph divide by, row by row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Degrees {
    /// One degree each, whether a row is written or read.
    OfRows(Vec<usize>),
    /// Those of the edges that are there.
    OfEdges(EdgeDegrees),
}

impl Degrees {
    /// Those of a working graph whose first `inner` rows are nodes of chunks: these by the
    /// neighbours that they see, and the halo by its rule. `whole` has each row's degree in the
    /// whole graph.
    pub(super) fn new(adjacency: &Csr, inner: usize, whole: &[usize], halo: HaloDegrees) -> Self {
        let seen = |row: usize| adjacency.degree(row);
        let within = (0..inner).map(seen);
        match halo {
            HaloDegrees::Global => {
                Self::OfRows(within.chain(whole[inner..].iter().copied()).collect())
            }
            HaloDegrees::Seen => {
                let readers = readers(adjacency, inner).split_off(inner);
                Self::OfRows(within.chain(readers).collect())
            }
            HaloDegrees::Authors => Self::OfEdges(EdgeDegrees {
                to: (0..whole.len()).map(seen).collect(),
                from: readers(adjacency, inner),
                own: (0..whole.len()).map(|row| row < inner).collect(),
            }),
        }
    }

    /// What a layer over the whole working graph computes on.
    pub(super) fn block(&self, adjacency: &Csr, aggregation: Aggregation) -> Block {
        match self {
            Self::OfRows(degrees) => Block::new(adjacency, degrees, aggregation),
            Self::OfEdges(degrees) => Block::directed(adjacency, degrees, aggregation),
        }
    }

    /// What a layer over some of its rows computes on.
    pub(super) fn sampled(&self, layer: &SampledLayer, aggregation: Aggregation) -> Block {
        match self {
            Self::OfRows(degrees) => {
                let degrees = layer.rows.iter().map(|&row| degrees[row as usize]);
                let degrees: Vec<usize> = degrees.collect();
                Block::sampled(layer, &degrees, aggregation)
            }
            Self::OfEdges(degrees) => {
                Block::sampled_directed(layer, &degrees.of(&layer.rows), aggregation)
            }
        }
    }
}

/// How many of the first `inner` rows read each row.
fn readers(adjacency: &Csr, inner: usize) -> Vec<usize> {
    let mut readers = vec![0; adjacency.nodes()];
    for row in 0..inner {
        for &source in adjacency.neighbours(row) {
            readers[source as usize] += 1;
        }
    }
    readers
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes 0, 1 and 2 of chunks, in a row; 3 of the halo is beside all of them, 4 beside 2.
    fn adjacency() -> Csr {
        let chunks = [(0, 1), (1, 0), (1, 2), (2, 1)];
        let halo = [(3, 0), (3, 1), (3, 2), (4, 2)];
        Csr::from_edges(5, chunks.into_iter().chain(halo))
    }

    fn degrees(halo: HaloDegrees) -> Degrees {
        Degrees::new(&adjacency(), 3, &[2, 3, 3, 7, 9], halo)
    }

    fn dense(block: &Block) -> Vec<Vec<f32>> {
        let rows = block.matrix.by_row();
        let mut dense = vec![vec![0.0; block.inputs()]; block.outputs()];
        for (v, row) in dense.iter_mut().enumerate() {
            for entry in rows.entries(v) {
                row[rows.columns[entry] as usize] = block.matrix.values()[entry];
            }
        }
        dense
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
        let aggregation = Aggregation::SymmetricWithSelf;
        let ours = dense(&degrees(HaloDegrees::Authors).block(&adjacency(), aggregation));
        for (ours, dgl) in ours.iter().flatten().zip(dgl.iter().flatten()) {
            assert!((ours - dgl).abs() < 5e-5, "{ours} is {dgl} there");
        }
    }

    #[test]
    fn a_mean_over_neighbours_is_that_of_all_rules() {
        let of = |halo| dense(&degrees(halo).block(&adjacency(), Aggregation::Mean));
        let global = of(HaloDegrees::Global);
        assert_eq!(global, of(HaloDegrees::Seen));
        assert_eq!(global, of(HaloDegrees::Authors));
    }

    #[test]
    fn a_halo_row_reads_nothing_by_the_authors_rule() {
        let of =
            |aggregation| dense(&degrees(HaloDegrees::Authors).block(&adjacency(), aggregation));
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
        let rows = |halo| match degrees(halo) {
            Degrees::OfRows(degrees) => degrees,
            Degrees::OfEdges(degrees) => panic!("a degree a row, not {degrees:?}"),
        };
        assert_eq!(rows(HaloDegrees::Global), [2, 3, 3, 7, 9]);
        assert_eq!(rows(HaloDegrees::Seen), [2, 3, 3, 3, 1]);
        let Degrees::OfEdges(authors) = degrees(HaloDegrees::Authors) else {
            panic!("degrees of edges");
        };
        assert_eq!(authors.to, [2, 3, 3, 0, 0]);
        assert_eq!(authors.from, [1, 2, 1, 3, 1]);
        let some = authors.of(&[4, 1]);
        assert_eq!((some.to, some.from), (vec![0, 3], vec![1, 2]));
        assert_eq!(some.own, [false, true]);
    }
}
