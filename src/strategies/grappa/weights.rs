//! Coverage of a training node's neighbourhood and the gradient weights made of it. Plain functions of plain numbers.
//!
//! `d` is a node's degree in the whole graph, `d_local` the number of its neighbours that its worker sees; self-loops count in
//! neither.

use crate::graph::Csr;

/// L-hop coverage `c^(L) = P_π^L · 1` with `P = D⁻¹A` on global degrees restricted to local edges: the probability that a
/// random walk of `hops` steps from a node stays where the worker sees it. Nodes without neighbours are covered: `c = 1`. *(Derived; the authors'
/// code uses one hop.)*
///
/// `adjacency` has a row per local node, and `degrees` are global. The result is in `[0, 1]`; it takes `hops` passes over the
/// local edges.
#[must_use]
pub fn coverage(adjacency: &Csr, degrees: &[usize], hops: usize) -> Vec<f64> {
    let mut stays = vec![1.0_f64; degrees.len()];
    for _ in 0..hops {
        stays = (0..degrees.len())
            .map(|v| {
                if degrees[v] == 0 {
                    return 1.0;
                }
                let local: f64 = adjacency
                    .neighbours(v)
                    .iter()
                    .map(|&u| stays[u as usize])
                    .sum();
                local / degrees[v] as f64
            })
            .collect();
    }
    stays
}

/// Add-κ smoothing of a coverage: `1 + λ_v (c_v − 1)` with `λ_v = d/(d + κ)`, which for one hop is `(d_local + κ)/(d + κ)`. κ = 1 is, but for nodes
/// without local neighbours, the weight of the authors' code. *(Derived.)*
#[must_use]
pub fn smoothed(coverage: f64, degree: usize, kappa: f64) -> f64 {
    let degree = degree as f64;
    if degree == 0.0 {
        return 1.0;
    }
    1.0 + degree / (degree + kappa) * (coverage - 1.0)
}

/// Shrinkage of a batch weight towards 1: `1 + λ (w − 1)`. *(The paper's form.)*
#[must_use]
pub fn shrunk(weight: f64, lambda: f64) -> f64 {
    1.0 + lambda * (weight - 1.0)
}

/// Mean, or 1 of nothing.
#[must_use]
pub fn mean_or_one(weights: &[f64]) -> f64 {
    if weights.is_empty() {
        return 1.0;
    }
    weights.iter().sum::<f64>() / weights.len() as f64
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
        Csr::from_edges(
            graph.nodes(),
            graph.iter_edges().filter(|&(u, v)| here(u) && here(v)),
        )
    }

    fn degrees(graph: &Csr) -> Vec<usize> {
        (0..graph.nodes()).map(|v| graph.degree(v)).collect()
    }

    /// The share of all walks of `hops` steps from `v` that stay local, walk by walk.
    fn walks_that_stay(graph: &Csr, local: &[bool], v: usize, hops: usize) -> f64 {
        if hops == 0 || graph.degree(v) == 0 {
            return 1.0;
        }
        let stays = |u: &u32| local[*u as usize] && local[v];
        let sum: f64 = graph
            .neighbours(v)
            .iter()
            .filter(|u| stays(u))
            .map(|&u| walks_that_stay(graph, local, u as usize, hops - 1))
            .sum();
        sum / graph.degree(v) as f64
    }

    proptest! {
        #[test]
        fn coverage_is_the_share_of_walks_that_stay((graph, local) in graphs(), hops in 0..4_usize) {
            let covered = coverage(&restricted(&graph, &local), &degrees(&graph), hops);
            for v in (0..graph.nodes()).filter(|&v| local[v]) {
                let expected = walks_that_stay(&graph, &local, v, hops);
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
        fn smoothing_one_hop_adds_kappa_to_both_counts(
            degree in 1..50_usize,
            share in 0.0..1.0_f64,
            kappa in 0.0..5.0_f64,
        ) {
            let local = (share * degree as f64).floor();
            let expected = (local + kappa) / (degree as f64 + kappa);
            prop_assert!((smoothed(local / degree as f64, degree, kappa) - expected).abs() < 1e-12);
        }

        #[test]
        fn shrinkage_goes_from_one_to_the_weight(weight in 0.0..4.0_f64, lambda in 0.0..1.0_f64) {
            prop_assert_eq!(shrunk(weight, 0.0), 1.0);
            prop_assert!((shrunk(weight, 1.0) - weight).abs() < 1e-12);
            let between = shrunk(weight, lambda);
            prop_assert!(between >= weight.min(1.0) - 1e-12 && between <= weight.max(1.0) + 1e-12);
        }
    }

    #[test]
    fn a_node_without_neighbours_is_covered() {
        let alone = Csr::from_edges(2, std::iter::empty());
        assert_eq!(coverage(&alone, &[0, 0], 3), [1.0, 1.0]);
        assert_eq!(smoothed(1.0, 0, 1.0), 1.0);
    }
}
