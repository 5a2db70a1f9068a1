//! R-MAT graphs in closed form.
//!
//! A draw picks one bit of both ends at a time, from the quadrants (a, b, c, d). Nodes with the
//! same number k of one-bits are exchangeable, so a graph of scale s has s + 1 classes of C(s, k)
//! nodes. A node u of class k, and a v that has j of u's ones and i ones where u has zeros:
//!
//! ```text
//! P(u → v) = a^(s−k−i) b^i c^(k−j) d^j        P(v → u): b and c change places
//! ```
//!
//! There are C(k, j) · C(s − k, i) such v, of class i + j. With M draws, taken as Poisson, an
//! undirected edge is there with chance q = 1 − exp(−M (P(u → v) + P(v → u))).

use statrs::function::gamma::ln_gamma;

use super::classes::{ExpectedGraph, NodeClass};
use crate::graph::rmat::{self, Size};
use crate::graph::{Csr, GraphError};
use crate::memory;

/// Most draws of a graph that is really drawn.
const MOST_DRAWS: f64 = 1e9;
/// Bytes that one takes at least, while a graph is made and cut.
const EACH_DRAW: usize = 24;

/// What is drawn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RmatLaw {
    scale: u32,
    /// Natural logarithms of the quadrants' chances.
    ln_quadrants: [f64; 4],
    quadrants: [f64; 3],
    draws: f64,
    /// The share of nodes that are kept.
    kept: f64,
}

/// The nodes v that stand in one relation to a node u.
struct Relation {
    /// How many there are, u itself left out.
    count: f64,
    /// Their class.
    class: usize,
    /// The chance that a draw is an edge between u and one of them.
    chance: f64,
}

/// ln C(n, k).
fn ln_choose(n: u32, k: u32) -> f64 {
    let factorial = |n: u32| ln_gamma(f64::from(n) + 1.0);
    factorial(n) - factorial(k) - factorial(n - k)
}

/// C(n, k), a whole number while that can be told.
fn choose(n: u32, k: u32) -> f64 {
    ln_choose(n, k).exp().round()
}

impl RmatLaw {
    /// A graph of 2^`scale` nodes from `edge_factor` · 2^`scale` draws; d is what the quadrants
    /// a, b, c leave of 1.
    pub(crate) fn new(scale: u32, edge_factor: f64, quadrants: [f64; 3]) -> Self {
        let [a, b, c] = quadrants;
        Self {
            scale,
            quadrants,
            // Shares that are 1 together may leave a rounding below nothing.
            ln_quadrants: [a, b, c, (1.0 - a - b - c).max(0.0)].map(f64::ln),
            draws: edge_factor * f64::from(scale).exp2(),
            kept: 1.0,
        }
    }

    /// The same with so many of its nodes, chosen at random, and the edges between them.
    pub(crate) fn keeping(mut self, nodes: f64) -> Self {
        self.kept = nodes / f64::from(self.scale).exp2();
        self
    }

    /// The same with as many draws as give so many distinct undirected edges: what a generator does
    /// that goes on drawing. `None` if the nodes cannot have so many.
    pub(crate) fn with_edges(mut self, edges: f64) -> Option<Self> {
        // Pairs of nodes by what a draw is worth to them: only the number of draws changes.
        let pairs: Vec<(f64, f64)> = (0..=self.scale)
            .flat_map(|ones| {
                let nodes = choose(self.scale, ones) * self.kept;
                let relations = self.relations(ones);
                relations.map(move |relation| (nodes * relation.count / 2.0, relation.chance))
            })
            .collect();
        let found = |law: &Self| -> f64 {
            let edges = |&(pairs, chance): &(f64, f64)| pairs * law.edge(chance);
            pairs.iter().map(edges).sum()
        };
        // Repeated draws find ever fewer new edges: far above this the graph is as good as full.
        let most = self.draws * 1e6;
        // How many draws it takes has no closed form: doubled until they suffice, then bisected.
        let (mut low, mut high) = (0.0, edges.max(1.0));
        while {
            self.draws = high;
            found(&self) < edges
        } {
            low = high;
            high *= 2.0;
            if high > most.max(edges * 1e6) {
                return None;
            }
        }
        // Halved until no number lies between.
        for _ in 0..100 {
            self.draws = f64::midpoint(low, high);
            if found(&self) < edges {
                low = self.draws;
            } else {
                high = self.draws;
            }
        }
        Some(self)
    }

    /// A graph of this law.
    ///
    /// # Errors
    /// If it is too large to be drawn here.
    pub(crate) fn draw(&self, seed: u64) -> Result<Csr, GraphError> {
        if self.draws > MOST_DRAWS || self.scale > 31 {
            let what = format!(
                "`fit`: a graph of 2^{} nodes takes {:.1e} draws, and at most {MOST_DRAWS:.0e} are made; choose \
                 other `scales`, where it is less dense or smaller",
                self.scale, self.draws
            );
            return Err(GraphError::key("dataset.counts", what));
        }
        let nodes = (f64::from(self.scale).exp2() * self.kept).round() as usize;
        let draws = self.draws.round() as usize;
        let need = memory::bytes(&[draws], EACH_DRAW);
        memory::need(|| format!("a graph of {draws} draws"), need)
            .map_err(|short| GraphError::key("dataset.counts", short.to_string()))?;
        rmat::graph(
            self.scale,
            nodes,
            Size::Draws(draws),
            self.quadrants,
            seed,
            None,
        )
    }

    /// The graph in expectation. O(scale³).
    pub(crate) fn graph(&self) -> ExpectedGraph {
        let class = |ones: u32| {
            let mut neighbours = vec![0.0; self.scale as usize + 1];
            let mut chances = Vec::new();
            for relation in self.relations(ones) {
                let edge = self.edge(relation.chance);
                neighbours[relation.class] += relation.count * edge;
                chances.push((relation.count, edge));
            }
            NodeClass {
                nodes: choose(self.scale, ones) * self.kept,
                degree: neighbours.iter().sum(),
                neighbours,
                chances,
            }
        };
        ExpectedGraph {
            classes: (0..=self.scale).map(class).collect(),
        }
    }

    /// How all other nodes stand to one with `ones` one-bits.
    fn relations(&self, ones: u32) -> impl Iterator<Item = Relation> {
        let zeros = self.scale - ones;
        (0..=ones).flat_map(move |kept| {
            (0..=zeros).map(move |gained| {
                let all = choose(ones, kept) * choose(zeros, gained);
                let itself = f64::from(u8::from(kept == ones && gained == 0));
                let lost = ones - kept;
                let chance = self.chance(zeros - gained, gained, lost, kept)
                    + self.chance(zeros - gained, lost, gained, kept);
                Relation {
                    count: (all - itself) * self.kept,
                    class: (kept + gained) as usize,
                    chance,
                }
            })
        })
    }

    /// The chance of an edge between two nodes of which a draw with this chance makes one.
    fn edge(&self, chance: f64) -> f64 {
        -(-self.draws * chance).exp_m1()
    }

    /// The chance of a draw with so many bits in each quadrant.
    fn chance(&self, a: u32, b: u32, c: u32, d: u32) -> f64 {
        let bits = [a, b, c, d].into_iter().zip(self.ln_quadrants);
        // A quadrant that is never drawn has the logarithm −∞, which times nothing is nothing.
        let used = bits.filter(|(bits, _)| *bits > 0);
        used.map(|(bits, ln)| f64::from(bits) * ln)
            .sum::<f64>()
            .exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::rmat::{Size, graph};
    use crate::graph::{BoundaryPlan, Known, PartitionMethod, PartitionSpec};
    use std::path::Path;

    const GRAPH500: [f64; 3] = [0.57, 0.19, 0.19];

    /// Boundary rows that an earlier, independent calculation gave, and within which share of them
    /// generated graphs were measured (scale, rows, of a generated graph).
    const KNOWN: [(u32, f64, f64); 3] = [
        (18, 1_104_605.0, 1_104_574.0),
        (20, 3_990_260.0, 3_989_796.0),
        (22, 14_430_771.0, 14_431_465.0),
    ];

    #[test]
    fn sixteen_random_parts_have_the_boundary_that_generated_graphs_have() {
        for (scale, closed, generated) in KNOWN {
            let rows = RmatLaw::new(scale, 16.0, GRAPH500)
                .graph()
                .boundary_rows(16);
            assert!((rows - closed).abs() <= 0.51, "scale {scale}: {rows}");
            assert!(
                (rows / generated - 1.0).abs() < 2e-4,
                "scale {scale}: {rows}"
            );
        }
    }

    #[test]
    fn a_small_graph_has_the_edges_and_boundary_of_its_law() {
        let (scale, draws) = (11, 16 << 11);
        let law = RmatLaw::new(scale, 16.0, GRAPH500).graph();
        let (mut edges, mut rows) = (0.0, 0.0);
        for seed in 0..8 {
            let graph = graph(scale, 1 << scale, Size::Draws(draws), GRAPH500, seed, None).unwrap();
            let spec = PartitionSpec {
                method: PartitionMethod::Random,
                workers: 4,
                ..PartitionSpec::default()
            };
            let partition = spec
                .partition(&graph, Known::default(), Path::new(""), seed)
                .unwrap();
            edges += graph.edges() as f64 / 8.0;
            rows += BoundaryPlan::new(&graph, &partition).boundary_rows() as f64 / 8.0;
        }
        assert!(
            (edges / law.edges() - 1.0).abs() < 0.003,
            "{edges} {}",
            law.edges()
        );
        let closed = law.boundary_rows(4);
        assert!((rows / closed - 1.0).abs() < 0.005, "{rows} {closed}");
    }

    #[test]
    fn a_stand_in_of_given_size_has_the_boundary_that_generated_ones_have() {
        // A fifth of ogbn-arxiv's size by `nodes` and `edges`.
        let (scale, nodes, edges) = (16, 33_869_u32, 231_560_usize);
        let law = RmatLaw::new(scale, 16.0, GRAPH500).keeping(f64::from(nodes));
        let law = law.with_edges(edges as f64).unwrap().graph();
        assert!((law.edges() / 2.0 / edges as f64 - 1.0).abs() < 1e-9);
        assert!((law.nodes() - f64::from(nodes)).abs() < 1e-6);
        let nodes = nodes as usize;
        let graph = graph(scale, nodes, Size::Distinct(edges), GRAPH500, 3, None).unwrap();
        let spec = PartitionSpec {
            method: PartitionMethod::Random,
            workers: 16,
            ..PartitionSpec::default()
        };
        let partition = spec
            .partition(&graph, Known::default(), Path::new(""), 1)
            .unwrap();
        let rows = BoundaryPlan::new(&graph, &partition).boundary_rows() as f64;
        let closed = law.boundary_rows(16);
        assert!((rows / closed - 1.0).abs() < 0.01, "{rows} {closed}");
    }

    #[test]
    fn a_full_graph_has_no_more_edges() {
        let law = RmatLaw::new(4, 16.0, [0.25; 3]);
        assert!(law.clone().with_edges(119.9).is_some());
        assert!(law.with_edges(120.1).is_none());
    }

    #[test]
    fn every_edge_has_two_ends() {
        let graph = RmatLaw::new(9, 16.0, GRAPH500).graph();
        for (k, one) in graph.classes.iter().enumerate() {
            for (l, other) in graph.classes.iter().enumerate() {
                let (there, back) = (
                    one.nodes * one.neighbours[l],
                    other.nodes * other.neighbours[k],
                );
                assert!((there - back).abs() <= 1e-9 * there.max(1.0), "{k} {l}");
            }
        }
        assert_eq!(graph.nodes(), 512.0);
    }

    #[test]
    fn equal_quadrants_are_a_uniform_random_graph() {
        let graph = RmatLaw::new(8, 4.0, [0.25; 3]).graph();
        let edge = -(-2.0 * 4.0 * 256.0 / 65_536.0_f64).exp_m1();
        for class in &graph.classes {
            assert!((class.degree - 255.0 * edge).abs() < 1e-9);
        }
    }

    #[test]
    fn a_trillion_edges_take_no_longer_to_describe() {
        let graph = RmatLaw::new(36, 16.0, GRAPH500).graph();
        assert_eq!(graph.nodes(), f64::from(36).exp2());
        let rows = graph.boundary_rows(1024);
        // Between a worker for every node and one for every end of an edge.
        assert!(rows > graph.nodes() && rows < graph.edges());
    }
}
