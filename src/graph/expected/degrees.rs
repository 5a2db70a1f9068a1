//! Graphs known by their degrees: a node is in a halo with a chance that follows from its degree
//! alone, and a neighbour is of a class as often as that class has ends of edges.

use super::classes::{ExpectedGraph, NodeClass};

/// A graph in which so many nodes have so many neighbours, `(degree, nodes)`, in any order.
/// Neighbours are drawn as in the configuration model: a class is met in proportion to its ends of
/// edges.
pub(crate) fn graph(degrees: &[(f64, f64)]) -> ExpectedGraph {
    let ends: f64 = degrees.iter().map(|(degree, nodes)| degree * nodes).sum();
    let share = |(degree, nodes): &(f64, f64)| {
        // Without an edge nobody is met, and 0/0 is no share.
        if ends > 0.0 {
            degree * nodes / ends
        } else {
            0.0
        }
    };
    let shares: Vec<f64> = degrees.iter().map(share).collect();
    let class = |&(degree, nodes): &(f64, f64)| NodeClass {
        nodes,
        degree,
        neighbours: shares.iter().map(|share| degree * share).collect(),
        // Its neighbours are certain.
        chances: vec![(degree, 1.0)],
    };
    ExpectedGraph {
        classes: degrees.iter().map(class).collect(),
    }
}

/// A graph in which so many nodes share so many ends of edges out as evenly as whole numbers allow:
/// of all graphs with as many edges the one whose random parts have most boundary rows, for the
/// chance that a part has none of a node's d neighbours is convex in d.
pub(crate) fn even(nodes: f64, ends: f64) -> ExpectedGraph {
    let degree = (ends / nodes).floor();
    let more = ends - degree * nodes;
    graph(&[(degree, nodes - more), (degree + 1.0, more)])
}

/// The least degree, and the number of nodes with it or more, that have more ends of edges than
/// they can have; none if there is a graph with these degrees.
///
/// Erdős and Gallai (Matematikai Lapok 11, 1960): the k nodes of the highest degrees have
/// k(k − 1) ends among themselves at most, and min(d, k) on each other node of degree d. It is
/// enough to ask at the last node of each degree (Tripathi and Vijay, Discrete Mathematics 265,
/// 2003).
pub(crate) fn beyond(degrees: &[(f64, f64)]) -> Option<(f64, f64)> {
    let mut sorted = degrees.to_vec();
    sorted.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (mut nodes, mut ends) = (0.0, 0.0);
    for (at, &(degree, count)) in sorted.iter().enumerate() {
        (nodes, ends) = (nodes + count, ends + degree * count);
        let onto = |&(degree, count): &(f64, f64)| degree.min(nodes) * count;
        let others: f64 = sorted[at + 1..].iter().map(onto).sum();
        if ends > nodes * (nodes - 1.0) + others {
            return Some((degree, nodes));
        }
        // Nodes of lower degree than there are nodes before them meet the condition if these do.
        if degree < nodes {
            break;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::expected::{PUBLISHED, PublishedSize};
    use crate::graph::{Csr, bundled, cora};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// How many nodes of a graph have which degree.
    fn of(graph: &Csr) -> Vec<(f64, f64)> {
        let mut degrees: BTreeMap<usize, f64> = BTreeMap::new();
        for node in 0..graph.nodes() {
            *degrees.entry(graph.degree(node)).or_default() += 1.0;
        }
        degrees.into_iter().map(|(d, n)| (d as f64, n)).collect()
    }

    #[test]
    fn a_star_has_the_boundary_that_can_be_counted_by_hand() {
        // One centre with 3 leaves on 2 workers: the centre is missed by the other worker with
        // chance 1/8, a leaf with chance 1/2.
        let star = graph(&[(3.0, 1.0), (1.0, 3.0)]);
        assert!((star.boundary_rows(2) - (7.0 / 8.0 + 3.0 / 2.0)).abs() < 1e-12);
        assert_eq!((star.nodes(), star.edges()), (4.0, 6.0));
    }

    #[test]
    fn the_degrees_of_cora_give_the_sum_over_its_nodes() {
        let cora = cora().unwrap().graph;
        let expected: f64 = (0..cora.nodes())
            .map(|node| 3.0 * (1.0 - 0.75_f64.powi(i32::try_from(cora.degree(node)).unwrap())))
            .sum();
        assert!((graph(&of(&cora)).boundary_rows(4) - expected).abs() < 1e-6);
    }

    #[test]
    fn real_graphs_lie_between_what_stands_in_for_graphs_of_their_size() {
        // A board has next to no skew.
        for (data, most) in [(cora(), 0.2), (bundled::minesweeper(), 0.3)] {
            let real = data.unwrap().graph;
            let size = PublishedSize {
                nodes: real.nodes() as u64,
                edges: real.edges() as u64 / 2,
                ..PUBLISHED[0]
            };
            let [skewed, middle] =
                [size.skewed(), size.rmat()].map(|rmat| rmat.law().unwrap().graph());
            let even = even(real.nodes() as f64, real.edges() as f64);
            let all = [skewed, graph(&of(&real)), even, middle];
            for workers in [2, 4, 16, 64] {
                let rows = all.each_ref().map(|graph| graph.boundary_rows(workers));
                let [skewed, real, even, middle] = rows;
                assert!(skewed < real && real < even, "{workers} workers: {rows:?}");
                let off = middle / real - 1.0;
                assert!(off.abs() < most, "{workers} workers: {rows:?}, {off}");
            }
        }
    }

    proptest! {
        #[test]
        fn no_degrees_have_more_boundary_rows_than_even_ones(
            degrees in proptest::collection::vec((0_u32..200, 1_u32..50), 1..12),
            workers in 2_usize..40,
        ) {
            let degrees: Vec<(f64, f64)> = (degrees.into_iter())
                .map(|(degree, nodes)| (f64::from(degree), f64::from(nodes)))
                .collect();
            let any = graph(&degrees);
            let even = even(any.nodes(), any.edges());
            prop_assert!((even.nodes() - any.nodes()).abs() < 1e-6);
            prop_assert!((even.edges() - any.edges()).abs() < 1e-6);
            let [any, even] = [any, even].map(|graph| graph.boundary_rows(workers));
            prop_assert!(any <= even * (1.0 + 1e-12), "{any} {even}");
        }
    }

    #[test]
    fn degrees_are_those_of_a_graph_where_one_can_be_built_of_them() {
        // Havel and Hakimi: join the node of the highest degree to the next ones, and go on.
        let can_be_built = |mut left: Vec<usize>| {
            loop {
                left.sort_unstable_by(|a, b| b.cmp(a));
                let first = left[0];
                if first == 0 {
                    return true;
                }
                if first >= left.len() || left[first] == 0 {
                    return false;
                }
                left[0] = 0;
                left[1..=first].iter_mut().for_each(|degree| *degree -= 1);
            }
        };
        // All sequences of six degrees up to 5.
        let (mut built, mut all) = (0, 0);
        for code in 0..6_usize.pow(6) {
            let sequence: Vec<usize> = (0..6).map(|at| code / 6_usize.pow(at) % 6).collect();
            if sequence.iter().sum::<usize>() % 2 == 1 || !sequence.is_sorted() {
                continue;
            }
            let mut counts: BTreeMap<usize, f64> = BTreeMap::new();
            for &degree in &sequence {
                *counts.entry(degree).or_default() += 1.0;
            }
            let degrees: Vec<(f64, f64)> = counts.iter().map(|(&d, &n)| (d as f64, n)).collect();
            let can = can_be_built(sequence.clone());
            assert_eq!(beyond(&degrees).is_none(), can, "{sequence:?}");
            (built, all) = (built + usize::from(can), all + 1);
        }
        // As many as there are graphs of six nodes told apart by their degrees (OEIS A004251).
        assert_eq!(built, 102);
        assert!(all > built);
    }

    #[test]
    fn equal_parts_hold_everything_once() {
        let graph = graph(&[(3.0, 1.0), (1.0, 3.0), (0.0, 6.0), (7.0, 93.0)]);
        let counts = graph.counts(4, 51.0, 8);
        let sum = |of: fn(&crate::graph::PartCounts) -> usize| -> usize {
            counts.parts.iter().map(of).sum()
        };
        assert_eq!(sum(|part| part.owned), 103);
        assert_eq!(sum(|part| part.training), 51);
        assert_eq!(
            sum(|part| part.internal_edges + part.cut_edges),
            counts.edges
        );
        let rows = graph.boundary_rows(4);
        assert!(
            (counts.boundary_rows() as f64 - rows).abs() <= 12.0,
            "{rows}"
        );
        for (rank, part) in (0_u32..).zip(&counts.parts) {
            assert_eq!(part.own_values, part.owned * 8);
            for (peer, rows) in &part.sends {
                let back = &counts.parts[*peer as usize].receives;
                assert!(back.contains(&(rank, *rows)), "{rank} {peer}");
            }
        }
    }
}
