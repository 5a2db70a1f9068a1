//! Streaming partitioners: nodes come one after another, in random order, and go where they have
//! most neighbours already, less a penalty for full parts. One pass: O(edges + nodes · workers),
//! for graphs that METIS takes too long for.

use rand::Rng;
use rand::seq::SliceRandom;

use crate::graph::Csr;

/// How full parts are penalised.
#[derive(Clone, Copy, Debug)]
pub(super) enum Penalty {
    /// `|N(v) ∩ P| · (1 − |P| / C)` with `C = ⌈nodes / workers⌉`: linear deterministic greedy
    /// (Stanton and Kliot, *Streaming Graph Partitioning for Large Distributed Graphs*, 2012).
    Linear,
    /// `|N(v) ∩ P| − αγ|P|^(γ−1)` with `γ = 3/2` and `α = √workers · edges / nodes^(3/2)`, no part
    /// above 1.1 times the mean (Tsourakakis and others, *FENNEL: Streaming Graph Partitioning for
    /// Massive Scale Graphs*, 2014).
    Fennel,
}

impl Penalty {
    /// The most nodes that a part may hold.
    fn capacity(self, nodes: usize, workers: usize) -> usize {
        match self {
            Self::Linear => nodes.div_ceil(workers),
            Self::Fennel => (11 * nodes).div_ceil(10 * workers),
        }
    }
}

/// Assigns every node to a part that is not full, the best by the score above; of equally good ones
/// to the smallest, of those to the first.
pub(super) fn partition(
    graph: &Csr,
    workers: usize,
    penalty: Penalty,
    random: &mut impl Rng,
) -> Vec<u32> {
    let nodes = graph.nodes();
    let capacity = penalty.capacity(nodes, workers);
    // Undirected edges are stored both ways.
    let edges = graph.edges() as f64 / 2.0;
    let alpha = (workers as f64).sqrt() * edges / (nodes as f64).powf(1.5);
    let score = |neighbours: usize, size: usize| match penalty {
        Penalty::Linear => neighbours as f64 * (1.0 - size as f64 / capacity as f64),
        Penalty::Fennel => neighbours as f64 - 1.5 * alpha * (size as f64).sqrt(),
    };

    let mut order: Vec<u32> = (0_u32..).take(nodes).collect();
    order.shuffle(random);
    let mut assignment = vec![u32::MAX; nodes];
    let (mut sizes, mut beside) = (vec![0_usize; workers], vec![0_usize; workers]);
    for node in order {
        let neighbours = graph.neighbours(node as usize);
        let assigned = || {
            let parts = neighbours.iter().map(|&u| assignment[u as usize]);
            parts.filter(|&part| part != u32::MAX)
        };
        assigned().for_each(|part| beside[part as usize] += 1);
        // Not all are full: together they hold all nodes.
        let mut best: Option<(f64, usize, u32)> = None;
        for (part, (&size, &neighbours)) in (0_u32..).zip(sizes.iter().zip(&beside)) {
            let score = score(neighbours, size);
            let better =
                // Not less and not more: equal, where the smaller part wins.
                best.is_none_or(|(most, least, _)| score > most || (score >= most && size < least));
            if size < capacity && better {
                best = Some((score, size, part));
            }
        }
        // Only what was counted is set back: a node has few neighbours where there may be many
        // parts.
        assigned().for_each(|part| beside[part as usize] = 0);
        if let Some((_, _, part)) = best {
            assignment[node as usize] = part;
            sizes[part as usize] += 1;
        }
    }
    assignment
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Partition;
    use crate::rng::{Purpose, stream};

    fn of_cora(penalty: Option<Penalty>, workers: usize) -> (f64, f64) {
        let graph = crate::graph::cora().unwrap().graph;
        let mut random = stream(1, Purpose::Partition, 0, 0);
        let assignment = match penalty {
            Some(penalty) => partition(&graph, workers, penalty, &mut random),
            None => super::super::random::partition(graph.nodes(), workers, &mut random),
        };
        let parts = Partition {
            parts: workers,
            assignment,
        };
        (parts.edge_cut(&graph) as f64, parts.balance())
    }

    #[test]
    fn they_cut_far_fewer_edges_than_chance_and_keep_to_their_capacity() {
        let (chance, _) = of_cora(None, 4);
        for (penalty, slack) in [(Penalty::Linear, 1.0), (Penalty::Fennel, 1.1)] {
            let (cut, balance) = of_cora(Some(penalty), 4);
            assert!(cut < 0.65 * chance, "{penalty:?}: {cut} of {chance}");
            // Capacities are rounded up to whole nodes.
            assert!(balance <= slack + 4.0 / 2708.0, "{penalty:?}: {balance}");
        }
    }

    #[test]
    fn a_node_goes_where_its_neighbours_are_until_that_is_full() {
        // Two triangles without an edge between them, for two workers of three nodes each: whole
        // unless the first two nodes that come are of one triangle and are told apart.
        let edges = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)];
        let graph = Csr::undirected(6, edges.into_iter());
        let whole = (0..200).filter(|&seed| {
            let mut random = stream(seed, Purpose::Partition, 0, 0);
            let parts = partition(&graph, 2, Penalty::Linear, &mut random);
            assert_eq!(parts.iter().filter(|&&part| part == 0).count(), 3);
            parts[0] == parts[1] && parts[1] == parts[2]
        });
        // A node that comes second sees its neighbour at a score above nothing, so that only a full
        // part parts a triangle.
        assert_eq!(whole.count(), 200);
    }
}
