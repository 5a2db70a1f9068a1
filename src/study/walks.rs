//! How much of a neighbourhood a worker can expect to see, exactly.

use crate::graph::Csr;
#[cfg(test)]
use crate::strategies::grappa::estimators::by_hop;
use crate::strategies::grappa::estimators::{Inclusion, none_seen};

/// The expectation of [`coverage`](crate::strategies::grappa::estimators::coverage) under a design,
/// exactly, by following every walk: a walk stays with the probability that all units it meets are
/// seen, however often it comes back to them. `unit` is that of each node. O(Σ d^hops) time.
/// *(Derived.)*
pub(super) fn expected_coverage(
    graph: &Csr,
    unit: &[u32],
    inclusion: Inclusion,
    hops: usize,
) -> Vec<f64> {
    (0..graph.nodes())
        .map(|v| {
            let mut met = vec![unit[v]];
            staying_walks(graph, unit, inclusion, v, &mut met, hops)
        })
        .collect()
}

fn staying_walks(
    graph: &Csr,
    unit: &[u32],
    inclusion: Inclusion,
    v: usize,
    met: &mut Vec<u32>,
    hops: usize,
) -> f64 {
    // A walk that cannot go on ends where it is: a node without neighbours is covered.
    if hops == 0 || graph.degree(v) == 0 {
        // The first unit is the worker's own, which it always sees.
        return inclusion.joint(met.len() - 1);
    }
    let mut sum = 0.0;
    for &u in graph.neighbours(v) {
        let new = unit[u as usize];
        // A list to search: a walk meets no more units than it has steps.
        let known = met.contains(&new);
        if !known {
            met.push(new);
        }
        sum += staying_walks(graph, unit, inclusion, u as usize, met, hops - 1);
        if !known {
            met.pop();
        }
    }
    sum / graph.degree(v) as f64
}

/// `p0` of every node; see [`none_seen`].
pub(super) fn empty_probability(graph: &Csr, unit: &[u32], inclusion: Inclusion) -> Vec<f64> {
    let of = |v: usize| {
        let units = graph.neighbours(v).iter();
        let units = units.map(|&u| unit[u as usize] as usize).collect();
        none_seen(inclusion, units, |other| other == unit[v] as usize)
    };
    (0..graph.nodes()).map(of).collect()
}

#[cfg(test)]
/// As [`expected_coverage`] but as if every step were seen independently, `(P ∘ π)^L · 1`: `hops`
/// passes over the edges, exact for one hop. For more it ignores that walks come back, and is
/// therefore too low in independent designs. *(Derived.)*
pub(super) fn expected_coverage_by_hop(
    graph: &Csr,
    unit: &[u32],
    inclusion: Inclusion,
    hops: usize,
) -> Vec<f64> {
    let degrees: Vec<usize> = (0..graph.nodes()).map(|v| graph.degree(v)).collect();
    by_hop(graph, &degrees, hops, |v, u| {
        inclusion.pair(unit[v] == unit[u])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn graphs() -> impl Strategy<Value = Csr> {
        (2..12_usize).prop_flat_map(|n| {
            let edges = proptest::collection::vec((0..n as u32, 0..n as u32), 0..30);
            edges.prop_map(move |edges| Csr::undirected(n, edges.into_iter()))
        })
    }

    proptest! {
        #[test]
        fn independent_steps_are_exact_for_one_hop_and_too_few_for_more(graph in graphs(), workers in 1..4_usize) {
            let unit: Vec<u32> = (0..graph.nodes() as u32).collect();
            let design = Inclusion::Independent { workers };
            for hops in 1..4 {
                let exact = expected_coverage(&graph, &unit, design, hops);
                let quick = expected_coverage_by_hop(&graph, &unit, design, hops);
                for (exact, quick) in exact.iter().zip(&quick) {
                    prop_assert!(*quick <= exact + 1e-12);
                    prop_assert!(hops > 1 || (exact - quick).abs() < 1e-12);
                }
            }
        }
    }

    #[test]
    fn a_node_without_neighbours_is_covered() {
        let alone = Csr::from_edges(2, std::iter::empty());
        let design = Inclusion::Independent { workers: 3 };
        assert_eq!(expected_coverage(&alone, &[0, 1], design, 2), [1.0, 1.0]);
        assert_eq!(
            expected_coverage_by_hop(&alone, &[0, 1], design, 2),
            [1.0, 1.0]
        );
        assert_eq!(empty_probability(&alone, &[0, 1], design), [0.0, 0.0]);
    }
}
