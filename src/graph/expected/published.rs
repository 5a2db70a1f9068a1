//! Published graphs in numbers: what `counts = { like = "ogbn-papers100M" }` stands for.
//!
//! One entry a graph, with the source of its numbers. Nobody publishes the degrees of these graphs
//! in a form that can be carried along here. An R-MAT graph of the size stands in, as skewed as
//! real graphs are on average ([`SKEW`]). It lies between two ends: an R-MAT graph with the
//! quadrants of Graph500, which is more skewed than any graph that was looked at, and one in which
//! all nodes have the same degree, which no graph is beyond.

use crate::graph::rmat::graph500;
use crate::graph::{GraphError, RmatCounts};

/// A published graph, as its authors count it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PublishedSize {
    /// Its name in experiment files.
    pub name: &'static str,
    /// Number of nodes.
    pub nodes: u64,
    /// Number of undirected edges: of a directed graph, of its edges.
    pub edges: u64,
    /// Width of its features, if it has any.
    pub features: Option<usize>,
    /// Number of classes, if nodes have one.
    pub classes: Option<usize>,
    /// Nodes that train under the published split, if there is one.
    pub training: Option<u64>,
    /// Where these numbers are from, and what they leave out.
    pub source: &'static str,
}

/// All of them, by size.
pub(crate) const PUBLISHED: &[PublishedSize] = &[
    PublishedSize {
        name: "ogbn-arxiv",
        nodes: 169_343,
        edges: 1_157_799,
        features: Some(128),
        classes: Some(40),
        training: Some(90_941),
        source: "Open Graph Benchmark (Hu et al., NeurIPS 2020); of 1,166,243 citations, pairs that cite each other count once",
    },
    PublishedSize {
        name: "reddit",
        nodes: 232_965,
        edges: 57_307_946,
        features: Some(602),
        classes: Some(41),
        training: Some(153_431),
        source: "Hamilton, Ying and Leskovec (NeurIPS 2017), as DGL and PyTorch Geometric ship it: 114,615,892 stored edges, both directions",
    },
    PublishedSize {
        name: "ogbn-products",
        nodes: 2_449_029,
        edges: 61_859_140,
        features: Some(100),
        classes: Some(47),
        training: Some(196_615),
        source: "Open Graph Benchmark (Hu et al., NeurIPS 2020)",
    },
    PublishedSize {
        name: "friendster",
        nodes: 65_608_366,
        edges: 1_806_067_135,
        features: None,
        classes: None,
        training: None,
        source: "SNAP, com-Friendster (Yang and Leskovec, ICDM 2012), which has neither features nor classes",
    },
    PublishedSize {
        name: "igb-large",
        nodes: 100_000_000,
        edges: 1_223_571_364,
        features: Some(1024),
        classes: Some(19),
        training: Some(60_000_000),
        source: "Illinois Graph Benchmark, homogeneous (Khatua et al., KDD 2023): citations, and 60 % of nodes that train",
    },
    PublishedSize {
        name: "ogbn-papers100M",
        nodes: 111_059_956,
        edges: 1_615_685_872,
        features: Some(128),
        classes: Some(172),
        training: Some(1_207_179),
        source: "Open Graph Benchmark (Hu et al., NeurIPS 2020); pairs that cite each other count twice",
    },
    PublishedSize {
        name: "mag240m",
        nodes: 244_160_499,
        edges: 1_728_364_232,
        features: Some(768),
        classes: Some(153),
        training: Some(1_112_392),
        source: "OGB-LSC (Hu et al., NeurIPS 2021): papers, authors and institutions as nodes of one kind, all with the features that papers have",
    },
];

/// Quadrants whose boundary rows are those of real graphs on average: a + b was chosen so that 16
/// random parts of seven graphs (Coauthor CS, Amazon Computers and Photo, `BlogCatalog`, Cora-ML,
/// Facebook, `LastFM`) have as many, to 2 %, in the geometric mean; b and c are those of RMAT-G
/// (Çatalyürek et al., *Graph coloring algorithms for multi-core and massively multithreaded
/// architectures*, Parallel Computing 38, 2012).
pub(super) const SKEW: [f64; 3] = [0.48, 0.15, 0.15];

impl PublishedSize {
    /// The graph of a name, in whatever letters.
    ///
    /// # Errors
    /// If there is none; the message has all names.
    pub(crate) fn named(name: &str) -> Result<&'static Self, GraphError> {
        let found = PUBLISHED
            .iter()
            .find(|graph| graph.name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| {
            let names: Vec<&str> = PUBLISHED.iter().map(|graph| graph.name).collect();
            let near = names.iter().map(|known| {
                let given = name.to_ascii_lowercase();
                (strsim::jaro_winkler(&given, &known.to_ascii_lowercase()), known)
            });
            let near = near.filter(|(likeness, _)| *likeness > 0.8);
            let near = near.max_by(|(one, _), (other, _)| one.total_cmp(other));
            let meant = near.map_or(String::new(), |(_, known)| format!(" (did you mean `{known}`?)"));
            let what = format!(
                "no published graph is known as `{name}`{meant}; choose one of {}, or give `rmat` or `degrees`",
                names.join(", ")
            );
            GraphError::key("dataset.counts.like", what)
        })
    }

    /// The law of an R-MAT graph of this size: the next power of two of nodes, of which so many are
    /// kept, and so many edges between them.
    pub(crate) fn rmat(&self) -> RmatCounts {
        RmatCounts {
            scale: self.nodes.next_power_of_two().ilog2(),
            edge_factor: None,
            nodes: Some(self.nodes as f64),
            edges: Some(self.edges as f64),
            quadrants: SKEW,
        }
    }

    /// The same, more skewed.
    pub(super) fn skewed(&self) -> RmatCounts {
        RmatCounts {
            quadrants: graph500(),
            ..self.rmat()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stand_in_has_the_published_size() {
        for published in PUBLISHED {
            let graph = published.rmat().law().unwrap().graph();
            let (nodes, edges) = (published.nodes as f64, published.edges as f64);
            let name = published.name;
            assert!((graph.nodes() / nodes - 1.0).abs() < 1e-6, "{name}");
            assert!((graph.edges() / 2.0 / edges - 1.0).abs() < 1e-6, "{name}");
            assert!(published.training.unwrap_or(1) < published.nodes, "{name}");
            // A neighbour of most nodes is somewhere else, and nobody is in a halo twice.
            let rows = graph.boundary_rows(16);
            assert!(rows > 0.0 && rows < 15.0 * nodes, "{name}");
        }
    }

    #[test]
    fn stand_ins_have_the_boundary_of_real_graphs_to_11_percent() {
        // Nodes, edges, and rows over 4, 16 and 64 random parts that the graph's degrees give.
        for (name, [nodes, edges, rows @ ..]) in [
            ("Coauthor CS", [18_333, 81_894, 42_372, 102_608, 142_528]),
            ("Amazon Photo", [7_650, 119_081, 20_804, 76_384, 152_256]),
            ("Computers", [13_752, 245_861, 37_272, 138_336, 287_552]),
            ("BlogCatalog", [5_196, 171_743, 15_576, 71_104, 182_720]),
            ("Cora-ML", [2_995, 8_158, 5_544, 11_254, 14_490]),
            ("LastFM", [7_624, 27_806, 14_448, 32_976, 46_758]),
            ("Facebook", [22_470, 170_823, 51_024, 144_880, 246_080]),
        ] {
            let size = PublishedSize {
                nodes,
                edges,
                ..PUBLISHED[0]
            };
            let [middle, skewed] =
                [size.rmat(), size.skewed()].map(|rmat| rmat.law().unwrap().graph());
            for (parts, real) in [4, 16, 64].into_iter().zip(rows) {
                let [off, far] =
                    [&middle, &skewed].map(|graph| graph.boundary_rows(parts) / real as f64 - 1.0);
                assert!(off.abs() < 0.11, "{name}, {parts} parts: {off}");
                assert!(far < -0.15, "{name}, {parts} parts: {far}");
            }
        }
    }

    #[test]
    fn mean_degrees_are_those_of_the_papers() {
        for (name, degree) in [
            ("Reddit", 492.0),
            ("ogbn-products", 50.5),
            ("ogbn-papers100M", 29.1),
        ] {
            let graph = PublishedSize::named(name).unwrap();
            let found = 2.0 * graph.edges as f64 / graph.nodes as f64;
            assert!((found - degree).abs() < 0.1, "{name}: {found}");
        }
    }

    #[test]
    fn who_asks_for_another_hears_which_there_are() {
        let error = PublishedSize::named("ogbn-papers").unwrap_err().to_string();
        assert!(
            error.contains("ogbn-papers100M") && error.contains("igb-large"),
            "{error}"
        );
    }
}
