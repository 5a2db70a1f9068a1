//! How much of a node's neighbourhood its worker sees, and how much it can expect to.

use super::Inclusion;
use crate::graph::Csr;

/// L-hop coverage `c^(L) = P_π^L · 1` with `P = D⁻¹A` on global degrees restricted to local edges:
/// the probability that a random walk of `hops` steps from a node stays where the worker sees it.
/// Nodes without neighbours are covered: `c = 1`. *(Derived, §4.5; the authors' code uses one
/// hop.)*
///
/// `adjacency` has a row per local node, and `degrees` are global. The result is in `[0, 1]`; it
/// takes `hops` passes over the local edges.
pub(crate) fn coverage(adjacency: &Csr, degrees: &[usize], hops: usize) -> Vec<f64> {
    by_hop(adjacency, degrees, hops, |_, _| 1.0)
}

/// The hops to give to [`coverage`] when the worker holds a 1-hop halo, whose rows end walks: their
/// last step may leave, `P_π^(L−1) · 1`. *(Derived, §4.5.)*
pub(crate) const fn halo_hops(hops: usize, halo: bool) -> usize {
    if halo { hops.saturating_sub(1) } else { hops }
}

/// [`coverage`] where an edge from `u` to `v` is seen with the chance `share(v, u)` in each step.
pub(crate) fn by_hop(
    adjacency: &Csr,
    degrees: &[usize],
    hops: usize,
    share: impl Fn(usize, usize) -> f64,
) -> Vec<f64> {
    let mut stays = vec![1.0_f64; degrees.len()];
    for _ in 0..hops {
        let next = |v: usize| {
            stay(adjacency.neighbours(v), degrees[v], |u| {
                share(v, u) * stays[u]
            })
        };
        stays = (0..degrees.len()).map(next).collect();
    }
    stays
}

/// The chance that a walk stays whose next step is to one of a node's local neighbours, out of so
/// many neighbours: the mean of what `seen` says of each. A node without any stays. *(Derived,
/// §4.5.)*
pub(crate) fn stay(local: &[u32], degree: usize, seen: impl Fn(usize) -> f64) -> f64 {
    if degree == 0 {
        return 1.0;
    }
    local.iter().map(|&u| seen(u as usize)).sum::<f64>() / degree as f64
}

/// `p0`, the probability that a node's worker sees none of its neighbours, which are in these
/// `units`: 0 for a node without any and for one with a neighbour that is always seen `together`
/// with it, otherwise by how many distinct units there are. *(Derived, §4.4 T2 for any design.)*
pub(crate) fn none_seen(
    inclusion: Inclusion,
    mut units: Vec<usize>,
    together: impl Fn(usize) -> bool,
) -> f64 {
    if units.is_empty() || units.iter().any(|&unit| together(unit)) {
        return 0.0;
    }
    units.sort_unstable();
    units.dedup();
    inclusion.none_of(units.len())
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

    /// The share of all walks of `hops` steps from `v` whose first `kept` steps stay local, walk by
    /// walk.
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
    }

    #[test]
    fn a_node_without_neighbours_is_covered() {
        let alone = Csr::from_edges(2, std::iter::empty());
        assert_eq!(coverage(&alone, &[0, 0], 3), [1.0, 1.0]);
        let design = Inclusion::Independent { workers: 3 };
        assert_eq!(none_seen(design, Vec::new(), |_| false), 0.0);
    }
}
