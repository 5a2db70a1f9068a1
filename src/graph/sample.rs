//! A small part of a graph that is like the whole.

use rand::seq::IndexedRandom;
use rand::{Rng, RngExt};

use super::{Csr, RawDataset};
use crate::rng::{Purpose, stream};

/// Probability of going back to the start, and steps without a new node after which the walk starts
/// elsewhere, in nodes of the graph: as in the paper.
const BACK: f64 = 0.15;
const PATIENCE: usize = 100;

impl RawDataset {
    /// The part of the data that a random walk of this seed meets, of `nodes` nodes; all of them if
    /// there are no more. With restarts, as Leskovec and Faloutsos recommend (*Sampling from Large
    /// Graphs*, KDD 2006), degrees and clusters are those of the whole graph.
    pub(crate) fn sampled(&self, nodes: usize, seed: u64) -> Self {
        if nodes >= self.graph.nodes() {
            return self.clone();
        }
        let mut random = stream(seed, Purpose::Study, 0, nodes as u64);
        self.only(&walk(&self.graph, nodes, &mut random))
    }
}

/// The first `wanted` nodes of a walk, ascending.
fn walk(graph: &Csr, wanted: usize, random: &mut impl Rng) -> Vec<u32> {
    let mut met = vec![false; graph.nodes()];
    let mut found = Vec::with_capacity(wanted);
    let anywhere = |random: &mut _| RngExt::random_range(random, 0..graph.nodes());
    while found.len() < wanted {
        let start = anywhere(random);
        let (mut here, mut idle) = (start, 0);
        while found.len() < wanted && idle < PATIENCE * wanted.min(graph.nodes()) {
            if met[here] {
                idle += 1;
            } else {
                (met[here], idle) = (true, 0);
                found.push(here as u32);
            }
            let next = graph.neighbours(here).choose(random);
            here = match next {
                Some(&next) if !random.random_bool(BACK) => next as usize,
                _ => start,
            };
            // Nothing leads away from it.
            if graph.degree(start) == 0 {
                break;
            }
        }
    }
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::cora;

    #[test]
    fn a_sample_has_the_nodes_that_were_asked_for_and_the_edges_among_them() {
        let data = cora().unwrap();
        for nodes in [1, 50, 1000, 2708, 9999] {
            let part = data.sampled(nodes, 3);
            assert_eq!(part.graph.nodes(), nodes.min(2708));
            assert_eq!(part.labels.len(), part.graph.nodes());
            assert_eq!(part.features.rows(), part.graph.nodes());
            assert!(part.graph.transpose() == *part.graph);
            assert_eq!(part.graph, data.sampled(nodes, 3).graph);
        }
        assert_ne!(data.sampled(50, 3).graph, data.sampled(50, 4).graph);
    }

    #[test]
    fn a_sample_is_denser_than_nodes_at_random_and_keeps_its_split() {
        let data = cora().unwrap();
        let part = data.sampled(677, 0);
        // A quarter of the nodes at random would keep a quarter of each node's neighbours.
        let degree = |graph: &Csr| graph.edges() as f64 / graph.nodes() as f64;
        assert!(degree(&part.graph) > 0.6 * degree(&data.graph));
        let split = &part.splits[0];
        assert!(!split.train.is_empty() && split.train.len() < 140);
        assert!(split.test.iter().all(|&node| (node as usize) < 677));
    }

    #[test]
    fn islands_are_all_met_in_the_end() {
        let islands = Csr::undirected(6, [(0, 1), (2, 3)].into_iter());
        let mut random = stream(1, Purpose::Study, 0, 0);
        assert_eq!(walk(&islands, 6, &mut random), [0, 1, 2, 3, 4, 5]);
    }
}
