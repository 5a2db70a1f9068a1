//! What has to cross the cut: who sends which rows to whom.

use std::ops::Range;

use super::{Csr, Partition, Peers, places};

/// The plan of all workers. It depends on the graph and the partition alone; models and strategies
/// decide how often, how wide and in which code the rows travel.
///
/// ```text
///   worker 0          worker 1         0 → 1 needs row 2 of worker 0 in the halo of worker 1
///   0 ── 1 ── 2 ───── 3 ── 4           1 → 0 needs row 3 of worker 1 in the halo of worker 0
/// ```
///
/// # Example
/// ```
/// use grapevine::graph::{BoundaryPlan, Csr, Partition};
///
/// // The path 0 – 1 – 2 – 3 – 4 of the picture.
/// let path = Csr::undirected(5, [(0, 1), (1, 2), (2, 3), (3, 4)].into_iter());
/// let partition = Partition { parts: 2, assignment: vec![0, 0, 0, 1, 1] };
/// let plan = BoundaryPlan::new(&path, &partition);
/// assert_eq!(plan.parts[0].halo, [3]);
/// assert_eq!(plan.parts[1].halo, [2]);
/// assert_eq!(plan.parts[0].sends[1], [2]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundaryPlan {
    /// One per worker.
    pub parts: Vec<Part>,
    /// Nodes of the graph.
    pub nodes: usize,
    /// Stored (directed) edges of the graph.
    pub edges: usize,
}

/// What one worker holds, sends and receives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Global numbers of its nodes, ascending: local row i is node `owned[i]`.
    pub owned: Vec<u32>,
    /// Global numbers of the other workers' nodes that its own have as in-neighbours, grouped by
    /// owner ascending, ascending within an owner: local row `owned.len() + i` is node `halo[i]`.
    pub halo: Vec<u32>,
    /// The row that each node of the halo has where it is owned.
    pub halo_rows: Vec<u32>,
    /// For each worker that needs some the local rows it needs, in the order of its halo.
    pub sends: Peers<Vec<u32>>,
    /// For each worker whose rows are in `halo`, where.
    pub receives: Peers<Range<usize>>,
    /// Stored edges that end and begin here.
    pub internal_edges: usize,
    /// Stored edges that end here and begin elsewhere.
    pub cut_edges: usize,
    /// Number of owned nodes that train: all of them, unless [`BoundaryPlan::with_training`] says
    /// which.
    pub training: usize,
}

impl BoundaryPlan {
    /// The plan for a partition of a graph. O(edges · log nodes) time, O(nodes + boundary rows)
    /// memory.
    ///
    /// # Panics
    /// If the partition is of another graph.
    pub fn new(graph: &Csr, partition: &Partition) -> Self {
        assert_eq!(
            graph.nodes(),
            partition.assignment.len(),
            "a partition is of one graph"
        );
        let owner = |node: u32| partition.assignment[node as usize] as usize;
        let mut members = vec![Vec::new(); partition.parts];
        let mut row_of = vec![0_u32; graph.nodes()];
        for (node, row) in (0_u32..).zip(&mut row_of) {
            let mine = &mut members[owner(node)];
            // A worker has no more rows than there are nodes, whose number fits.
            *row = u32::try_from(mine.len()).unwrap_or(u32::MAX);
            mine.push(node);
        }
        let mut parts: Vec<Part> = Vec::with_capacity(partition.parts);
        // The last worker whose halo a node is in, so that each node is taken once per worker.
        let mut taken_by = vec![usize::MAX; graph.nodes()];
        for (part, owned) in members.into_iter().enumerate() {
            let (mut halo, mut internal_edges, mut cut_edges) = (Vec::new(), 0, 0);
            for &v in &owned {
                for &u in graph.neighbours(v as usize) {
                    if owner(u) == part {
                        internal_edges += 1;
                        continue;
                    }
                    cut_edges += 1;
                    if std::mem::replace(&mut taken_by[u as usize], part) != part {
                        halo.push(u);
                    }
                }
            }
            // Nodes differ, so that an unstable sort has one outcome.
            halo.sort_unstable_by_key(|&node| (owner(node), node));
            let mut receives: Peers<Range<usize>> = Peers::default();
            for (at, &node) in halo.iter().enumerate() {
                // The halo is sorted by owner, so the rows of each are one range.
                let range = receives.of(owner(node));
                if range.start == range.end {
                    range.start = at;
                }
                range.end = at + 1;
            }
            parts.push(Part {
                training: owned.len(),
                halo_rows: halo.iter().map(|&node| row_of[node as usize]).collect(),
                owned,
                halo,
                sends: Peers::default(),
                receives,
                internal_edges,
                cut_edges,
            });
        }
        for to in 0..parts.len() {
            for at in 0..parts[to].halo.len() {
                let (from, row) = (owner(parts[to].halo[at]), parts[to].halo_rows[at]);
                parts[from].sends.of(to).push(row);
            }
        }
        Self {
            parts,
            nodes: graph.nodes(),
            edges: graph.edges(),
        }
    }

    /// The plan with the training nodes of a split, in ascending order, for strategies in which
    /// only workers that have some take part in a round. O(nodes · log training).
    pub fn with_training(mut self, train: &[u32]) -> Self {
        for part in &mut self.parts {
            let trains = |node: &&u32| train.binary_search(node).is_ok();
            part.training = part.owned.iter().filter(trains).count();
        }
        self
    }

    /// Number of workers.
    pub const fn workers(&self) -> usize {
        self.parts.len()
    }

    /// Bytes of its lists of nodes and rows, of which the halo's is there three times: with its
    /// rows, and with those who send them.
    pub(crate) fn bytes(&self) -> usize {
        let lists = self
            .parts
            .iter()
            .map(|part| part.owned.len() + 3 * part.halo.len());
        lists.sum::<usize>() * size_of::<u32>()
    }

    /// Number of rows of worker `from` that worker `to` needs.
    pub fn rows(&self, from: usize, to: usize) -> usize {
        self.parts[to].receives[from].len()
    }

    /// Rows that cross the cut in one full exchange: the sum over ordered pairs of workers, which
    /// is the sum of all halos.
    pub fn boundary_rows(&self) -> usize {
        self.parts.iter().map(|part| part.halo.len()).sum()
    }
}

impl Part {
    /// Own rows of nodes that are owned here; others are left out.
    pub fn rows_of(&self, nodes: &[u32]) -> Vec<u32> {
        let row = |node: &u32| self.owned.binary_search(node).ok();
        let rows = nodes.iter().filter_map(row);
        // A worker has no more rows than there are nodes, whose number fits.
        rows.map(|row| u32::try_from(row).unwrap_or(u32::MAX))
            .collect()
    }

    /// The nodes of the halo by their owner, ascending.
    pub(crate) fn halo_by_owner(&self) -> impl Iterator<Item = (usize, &[u32])> {
        let owners = self.receives.iter();
        owners.map(|(owner, range)| (owner, &self.halo[range.clone()]))
    }

    /// Own rows that train, of training nodes in ascending order.
    pub fn training_rows(&self, train: &[u32]) -> Vec<u32> {
        places(&self.owned, |node| train.binary_search(node).is_ok())
    }

    /// In-neighbours of the owned nodes as local rows, `[owned, owned + halo]`: owned rows come
    /// first, then the halo.
    ///
    /// # Panics
    /// If `graph` is not the one of the plan.
    pub fn local_graph(&self, graph: &Csr) -> Csr {
        let columns = self.owned.len() + self.halo.len();
        // A table of all nodes, for one look at each edge in place of a search of the halo.
        let mut local = vec![0_u32; graph.nodes()];
        for (row, &node) in (0_u32..).zip(self.owned.iter().chain(&self.halo)) {
            local[node as usize] = row;
        }
        let local = &local;
        let entries = (0_u32..).zip(&self.owned).flat_map(|(row, &v)| {
            graph
                .neighbours(v as usize)
                .iter()
                // Never the 0 of a node that is neither: sources of owned nodes are owned, or in
                // the halo.
                .map(move |&u| (local[u as usize], row))
        });
        Csr::rectangular(self.owned.len(), columns, entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Known, PartitionMethod, PartitionSpec, cora};
    use proptest::prelude::*;
    use std::path::Path;

    fn path_of_five() -> (Csr, BoundaryPlan) {
        let graph = Csr::undirected(5, (0..4).map(|v| (v, v + 1)));
        let partition = Partition {
            parts: 2,
            assignment: vec![1, 1, 1, 0, 0],
        };
        let plan = BoundaryPlan::new(&graph, &partition);
        (graph, plan)
    }

    #[test]
    fn a_path_cut_once_exchanges_its_two_inner_ends() {
        let (graph, plan) = path_of_five();
        assert_eq!(
            (plan.rows(0, 1), plan.rows(1, 0), plan.boundary_rows()),
            (1, 1, 2)
        );
        let part = &plan.parts[1];
        assert_eq!(
            (&part.owned[..], &part.halo[..]),
            (&[0, 1, 2][..], &[3][..])
        );
        assert_eq!(
            (&part.sends[0][..], part.receives[0].clone()),
            (&[2][..], 0..1)
        );
        assert_eq!((part.internal_edges, part.cut_edges), (4, 1));
        let local = part.local_graph(&graph);
        assert_eq!((local.nodes(), local.columns()), (3, 4));
        assert_eq!(local.neighbours(2), [1, 3]);
    }

    #[test]
    fn training_nodes_are_counted_where_they_are_owned() {
        let (_, plan) = path_of_five();
        let of = |plan: &BoundaryPlan| [0, 1].map(|rank| plan.parts[rank].training);
        assert_eq!(of(&plan), [2, 3]);
        assert_eq!(of(&plan.with_training(&[1, 2])), [0, 2]);
    }

    #[test]
    fn a_one_way_edge_makes_a_halo_on_one_side_only() {
        let graph = Csr::from_edges(2, [(0, 1)].into_iter());
        let plan = BoundaryPlan::new(
            &graph,
            &Partition {
                parts: 2,
                assignment: vec![0, 1],
            },
        );
        assert_eq!((plan.rows(0, 1), plan.rows(1, 0)), (1, 0));
    }

    #[test]
    fn one_worker_has_the_whole_graph_and_no_halo() {
        let (graph, _) = path_of_five();
        let plan = BoundaryPlan::new(
            &graph,
            &Partition {
                parts: 1,
                assignment: vec![0; 5],
            },
        );
        assert_eq!(plan.boundary_rows(), 0);
        assert_eq!(plan.parts[0].local_graph(&graph), graph);
    }

    #[test]
    fn random_partitions_of_cora_have_the_expected_boundary() {
        let graph = cora().unwrap().graph;
        for workers in [2_usize, 8] {
            // A node is in the halo of each other worker that has one of its neighbours.
            let absent = |degree: usize| (1.0 - 1.0 / workers as f64).powf(degree as f64);
            let halos = |u: usize| (workers - 1) as f64 * (1.0 - absent(graph.degree(u)));
            let expected: f64 = (0..graph.nodes()).map(halos).sum();
            let spec = PartitionSpec {
                method: PartitionMethod::Random,
                workers,
                ..PartitionSpec::default()
            };
            let found: usize = (0..5)
                .map(|seed| {
                    let partition = spec
                        .partition(&graph, Known::default(), Path::new(""), seed)
                        .unwrap();
                    BoundaryPlan::new(&graph, &partition).boundary_rows()
                })
                .sum();
            let ratio = found as f64 / 5.0 / expected;
            assert!((ratio - 1.0).abs() < 0.02, "{workers} workers: {ratio}");
        }
    }

    proptest! {
        #[test]
        fn a_halo_holds_the_sources_of_cut_edges_and_nothing_else(
            edges in prop::collection::vec((0_u32..30, 0_u32..30), 0..90),
            assignment in prop::collection::vec(0_u32..4, 30),
        ) {
            let graph = Csr::from_edges(30, edges.into_iter());
            let partition = Partition { parts: 4, assignment };
            let plan = BoundaryPlan::new(&graph, &partition);
            let owner = |node: u32| partition.assignment[node as usize] as usize;
            for (rank, part) in plan.parts.iter().enumerate() {
                prop_assert_eq!(&part.owned, &partition.members(rank));
                let mut sources: Vec<u32> = graph
                    .iter_edges()
                    .filter(|&(u, v)| owner(v) == rank && owner(u) != rank)
                    .map(|(u, _)| u)
                    .collect();
                let ending = graph.iter_edges().filter(|&(_, v)| owner(v) == rank).count();
                prop_assert_eq!(part.cut_edges, sources.len());
                prop_assert_eq!(part.internal_edges, ending - sources.len());
                sources.sort_unstable_by_key(|&u| (owner(u), u));
                sources.dedup();
                prop_assert_eq!(&part.halo, &sources);
                for (from, range) in part.receives.iter() {
                    let sender = &plan.parts[from];
                    let sent: Vec<u32> =
                        sender.sends[rank].iter().map(|&row| sender.owned[row as usize]).collect();
                    prop_assert_eq!(&part.halo[range.clone()], sent);
                    prop_assert_eq!(plan.rows(from, rank), range.len());
                }
                // Local edges are the global ones under other names.
                let nodes = [&part.owned[..], &part.halo].concat();
                let local = part.local_graph(&graph);
                let mut named: Vec<(u32, u32)> =
                    local.iter_edges().map(|(u, v)| (nodes[u as usize], nodes[v as usize])).collect();
                named.sort_unstable_by_key(|&(u, v)| (v, u));
                let expected: Vec<(u32, u32)> =
                    graph.iter_edges().filter(|&(_, v)| owner(v) == rank).collect();
                prop_assert_eq!(named, expected);
            }
        }
    }
}
