//! How much of a node's neighbourhood its worker sees, and how much it can expect to.

use super::Inclusion;
use crate::graph::Csr;

/// L-hop coverage `c^(L) = P_π^L · 1` with `P = D⁻¹A` on global degrees restricted to local edges: the probability that a
/// random walk of `hops` steps from a node stays where the worker sees it. Nodes without neighbours are covered: `c = 1`. *(Derived, §4.5; the
/// authors' code uses one hop.)*
///
/// `adjacency` has a row per local node, and `degrees` are global. The result is in `[0, 1]`; it takes `hops` passes over the
/// local edges.
#[must_use]
pub fn coverage(adjacency: &Csr, degrees: &[usize], hops: usize) -> Vec<f64> {
    by_hop(adjacency, degrees, hops, |_, _| 1.0)
}

/// The hops to give to [`coverage`] when the worker holds a 1-hop halo, whose rows end walks: their last step may leave,
/// `P_π^(L−1) · 1`. *(Derived, §4.5.)*
#[must_use]
pub const fn halo_hops(hops: usize, halo: bool) -> usize {
    if halo { hops.saturating_sub(1) } else { hops }
}

/// The expectation of [`coverage`] under a design, exactly, by following every walk: a walk stays with the probability that all
/// units it meets are seen, however often it comes back to them. `unit` is that of each node. O(Σ d^hops) time. *(Derived.)*
#[must_use]
pub fn expected_coverage(graph: &Csr, unit: &[u32], inclusion: Inclusion, hops: usize) -> Vec<f64> {
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
    if hops == 0 || graph.degree(v) == 0 {
        return inclusion.joint(met.len() - 1);
    }
    let mut sum = 0.0;
    for &u in graph.neighbours(v) {
        let new = unit[u as usize];
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

/// As [`expected_coverage`] but as if every step were seen independently, `(P ∘ π)^L · 1`: `hops` passes over the edges, exact for one hop.
/// For more it ignores that walks come back, and is therefore too low in independent designs. *(Derived.)*
#[must_use]
pub fn expected_coverage_by_hop(
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

fn by_hop(
    adjacency: &Csr,
    degrees: &[usize],
    hops: usize,
    share: impl Fn(usize, usize) -> f64,
) -> Vec<f64> {
    let mut stays = vec![1.0_f64; degrees.len()];
    for _ in 0..hops {
        stays = (0..degrees.len())
            .map(|v| {
                if degrees[v] == 0 {
                    return 1.0;
                }
                let neighbours = adjacency.neighbours(v).iter().map(|&u| u as usize);
                let local: f64 = neighbours.map(|u| share(v, u) * stays[u]).sum();
                local / degrees[v] as f64
            })
            .collect();
    }
    stays
}

/// `p0`, the probability that a node's worker sees none of its neighbours: 0 for a node without any and for one with a neighbour in its
/// own unit, otherwise by how many distinct units its neighbours are in. *(Derived, §4.4 T2 for any design.)*
#[must_use]
pub fn empty_probability(graph: &Csr, unit: &[u32], inclusion: Inclusion) -> Vec<f64> {
    (0..graph.nodes())
        .map(|v| {
            let mut units: Vec<u32> = graph
                .neighbours(v)
                .iter()
                .map(|&u| unit[u as usize])
                .collect();
            if units.is_empty() || units.contains(&unit[v]) {
                return 0.0;
            }
            units.sort_unstable();
            units.dedup();
            inclusion.none_of(units.len())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A graph, and which nodes are local.
    fn graphs() -> impl Strategy<Value = (Csr, Vec<bool>)> {
        (2..12_usize).prop_flat_map(|n| {
            let edges = proptest::collection::vec((0..n as u32, 0..n as u32), 0..30);
            let local = proptest::collection::vec(any::<bool>(), n);
            (edges, local)
                .prop_map(move |(edges, local)| (Csr::undirected(n, edges.into_iter()), local))
        })
    }

    fn restricted(graph: &Csr, local: &[bool]) -> Csr {
        let here = |v: u32| local[v as usize];
        let edges = graph.iter_edges().filter(|&(u, v)| here(u) && here(v));
        Csr::from_edges(graph.nodes(), edges)
    }

    fn degrees(graph: &Csr) -> Vec<usize> {
        (0..graph.nodes()).map(|v| graph.degree(v)).collect()
    }

    /// The share of all walks of `hops` steps from `v` whose first `kept` steps stay local, walk by walk.
    fn walks_that_stay(graph: &Csr, local: &[bool], v: usize, hops: usize, kept: usize) -> f64 {
        if hops == 0 || graph.degree(v) == 0 {
            return 1.0;
        }
        let stays = |u: &u32| kept == 0 || (local[*u as usize] && local[v]);
        let sum: f64 = graph
            .neighbours(v)
            .iter()
            .filter(|u| stays(u))
            .map(|&u| walks_that_stay(graph, local, u as usize, hops - 1, kept.saturating_sub(1)))
            .sum();
        sum / graph.degree(v) as f64
    }

    proptest! {
        #[test]
        fn coverage_is_the_share_of_walks_that_stay((graph, local) in graphs(), hops in 0..4_usize) {
            let covered = coverage(&restricted(&graph, &local), &degrees(&graph), hops);
            for v in (0..graph.nodes()).filter(|&v| local[v]) {
                let expected = walks_that_stay(&graph, &local, v, hops, hops);
                prop_assert!((covered[v] - expected).abs() < 1e-12);
            }
        }

        #[test]
        fn with_a_halo_the_last_step_may_leave((graph, local) in graphs(), hops in 1..4_usize) {
            let covered = coverage(&restricted(&graph, &local), &degrees(&graph), halo_hops(hops, true));
            for v in (0..graph.nodes()).filter(|&v| local[v]) {
                let expected = walks_that_stay(&graph, &local, v, hops, hops - 1);
                prop_assert!((covered[v] - expected).abs() < 1e-12);
            }
        }

        #[test]
        fn coverage_is_a_share_that_falls_with_every_hop((graph, local) in graphs()) {
            let (here, degrees) = (restricted(&graph, &local), degrees(&graph));
            let mut before = vec![1.0; graph.nodes()];
            for hops in 0..5 {
                let now = coverage(&here, &degrees, hops);
                for (c, b) in now.iter().zip(&before) {
                    prop_assert!((0.0..=1.0 + 1e-12).contains(c) && *c <= b + 1e-12);
                }
                before = now;
            }
        }

        #[test]
        fn a_worker_that_sees_everything_has_coverage_one((graph, _) in graphs(), hops in 0..4_usize) {
            let all = coverage(&graph, &degrees(&graph), hops);
            prop_assert!(all.iter().all(|c| (c - 1.0).abs() < 1e-12));
        }

        #[test]
        fn independent_steps_are_exact_for_one_hop_and_too_few_for_more((graph, _) in graphs(), workers in 1..4_usize) {
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
        assert_eq!(coverage(&alone, &[0, 0], 3), [1.0, 1.0]);
        let design = Inclusion::Independent { workers: 3 };
        assert_eq!(expected_coverage(&alone, &[0, 1], design, 2), [1.0, 1.0]);
        assert_eq!(
            expected_coverage_by_hop(&alone, &[0, 1], design, 2),
            [1.0, 1.0]
        );
        assert_eq!(empty_probability(&alone, &[0, 1], design), [0.0, 0.0]);
    }
}
