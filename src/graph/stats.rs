//! What a partition costs, before anything is trained.

use serde::Serialize;

use super::{BoundaryPlan, Csr, Partition};

/// The numbers that `grapevine partition` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct PartitionStats {
    /// Number of workers.
    pub workers: usize,
    /// Nodes of the graph.
    pub nodes: usize,
    /// Undirected edges of the graph.
    pub edges: usize,
    /// Undirected edges between workers.
    pub(crate) cut_edges: usize,
    /// Share of edges that are cut, in [0, 1]; 0 without edges.
    pub cut_share: f64,
    /// Rows that cross in one full exchange, over ordered pairs of workers.
    pub boundary_rows: usize,
    /// Owned and halo rows of all workers over the number of nodes; 1 means that nothing crosses.
    pub(crate) replication_factor: f64,
    /// Nodes of the smallest worker.
    pub smallest: usize,
    /// Nodes of the largest worker.
    pub largest: usize,
    /// Nodes of the largest worker over the mean.
    pub(crate) balance: f64,
    /// Mean over nodes of the coverage `c_v = d_v^π / d_v`, the share of a node's neighbours that
    /// are on its worker (1 for nodes without neighbours).
    pub(crate) coverage_mean: f64,
    /// Smallest coverage.
    pub(crate) coverage_min: f64,
    /// Standard deviation of the coverage over all nodes (divided by their number).
    pub(crate) coverage_sd: f64,
}

impl PartitionStats {
    /// Counts for a partition of an undirected graph. O(nodes + edges).
    pub(crate) fn new(graph: &Csr, partition: &Partition, plan: &BoundaryPlan) -> Self {
        let (nodes, edges) = (graph.nodes(), graph.edges() / 2);
        let sizes = partition.sizes();
        let cut_edges = partition.edge_cut(graph);
        let boundary_rows = plan.boundary_rows();
        let coverage = |v: usize| {
            let home = partition.assignment[v];
            let neighbours = graph.neighbours(v);
            let local = neighbours
                .iter()
                .filter(|&&u| partition.assignment[u as usize] == home);
            if neighbours.is_empty() {
                1.0
            } else {
                local.count() as f64 / neighbours.len() as f64
            }
        };
        let all: Vec<f64> = (0..nodes).map(coverage).collect();
        let mean = all.iter().sum::<f64>() / nodes as f64;
        let variance = all.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / nodes as f64;
        Self {
            workers: partition.parts,
            nodes,
            edges,
            cut_edges,
            cut_share: if edges == 0 {
                0.0
            } else {
                cut_edges as f64 / edges as f64
            },
            boundary_rows,
            replication_factor: (nodes + boundary_rows) as f64 / nodes as f64,
            smallest: sizes.iter().copied().min().unwrap_or(0),
            largest: sizes.iter().copied().max().unwrap_or(0),
            balance: partition.balance(),
            coverage_mean: mean,
            coverage_min: all.iter().copied().fold(f64::INFINITY, f64::min),
            coverage_sd: variance.sqrt(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_cut_in_two_is_counted_by_hand() {
        // Node 0 in the middle of 1, 2, 3; node 4 alone. Worker 1 owns 3 and 4.
        let graph = Csr::undirected(5, [(0, 1), (0, 2), (0, 3)].into_iter());
        let partition = Partition {
            parts: 2,
            assignment: vec![0, 0, 0, 1, 1],
        };
        let stats = PartitionStats::new(&graph, &partition, &BoundaryPlan::new(&graph, &partition));
        assert_eq!(
            (stats.edges, stats.cut_edges, stats.boundary_rows),
            (3, 1, 2)
        );
        assert_eq!((stats.smallest, stats.largest), (2, 3));
        let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-12, "{found}");
        near(stats.cut_share, 1.0 / 3.0);
        near(stats.replication_factor, 7.0 / 5.0);
        near(stats.balance, 6.0 / 5.0);
        // Coverages 2/3, 1, 1, 0, 1.
        near(stats.coverage_mean, 11.0 / 15.0);
        near(stats.coverage_min, 0.0);
        near(
            stats.coverage_sd,
            (31.0_f64 / 45.0 - (11.0_f64 / 15.0).powi(2)).sqrt(),
        );
    }
}
