//! Which worker owns which node.
//!
//! ```text
//! random        balanced, uniformly random
//! metis         few cut edges, nearly balanced
//! ldg, fennel   one pass over the nodes, fewer cut edges than at random
//! dirichlet     classes shared out unequally
//! given         read from a file
//! ```
//!
//! Vertex cuts deal out edges in place of nodes: `edges` and [`VertexCut`].

mod dirichlet;
mod edges;
mod given;
mod metis;
mod random;
mod rules;
mod streaming;
mod vertex_cut;

use std::path::Path;

use super::{Csr, GraphError, Labels, PartitionMethod, PartitionSpec, places};
use crate::rng::{Purpose, stream};
use streaming::Penalty;

pub use edges::EdgeMethod;
pub(crate) use rules::MOST_WORKERS;
pub use vertex_cut::{CutPart, VertexCut};

/// An assignment of nodes to workers. Every worker owns at least one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Number of workers.
    pub parts: usize,
    /// The worker of each node, `[nodes]`.
    pub assignment: Vec<u32>,
}

impl Partition {
    /// Number of nodes of each worker, `[parts]`.
    pub fn sizes(&self) -> Vec<usize> {
        let mut sizes = vec![0; self.parts];
        for &part in &self.assignment {
            sizes[part as usize] += 1;
        }
        sizes
    }

    /// The nodes of a worker, ascending.
    pub fn members(&self, part: usize) -> Vec<u32> {
        places(&self.assignment, |&owner| owner as usize == part)
    }

    /// The coarser partition whose part w is made of the parts `w·r … (w + 1)·r − 1` of this one.
    ///
    /// # Panics
    /// If the number of parts is not r times `parts`.
    pub fn merged(&self, parts: usize) -> Self {
        assert!(
            parts > 0 && self.parts.is_multiple_of(parts),
            "{} chunks are not equally many for each of {parts} workers",
            self.parts
        );
        let each = (self.parts / parts) as u32;
        Self {
            parts,
            assignment: self.assignment.iter().map(|part| part / each).collect(),
        }
    }

    /// The same parts, numbered so that many nodes are in the part of the same number as in another
    /// partition: of all pairs of parts that are left, those that share most nodes get one number.
    ///
    /// # Panics
    /// If the other is of another graph, or has another number of parts.
    pub(crate) fn numbered_as(self, other: &Self) -> Self {
        assert_eq!(
            (self.parts, self.assignment.len()),
            (other.parts, other.assignment.len()),
            "both are of one graph and as many workers"
        );
        let mut shared = vec![0_usize; self.parts * self.parts];
        for (&mine, &its) in self.assignment.iter().zip(&other.assignment) {
            shared[mine as usize * self.parts + its as usize] += 1;
        }
        let mut pairs: Vec<usize> = (0..shared.len()).collect();
        // Stable, so that equal pairs stay in the order of their numbers.
        pairs.sort_by_key(|&pair| std::cmp::Reverse(shared[pair]));
        let mut number = vec![None; self.parts];
        let mut taken = vec![false; self.parts];
        for (mine, its) in pairs
            .into_iter()
            .map(|pair| (pair / self.parts, pair % self.parts))
        {
            if number[mine].is_none() && !taken[its] {
                (number[mine], taken[its]) = (Some(its as u32), true);
            }
        }
        let number: Vec<u32> = number.into_iter().flatten().collect();
        let assignment = self.assignment.iter().map(|&part| number[part as usize]);
        Self {
            parts: self.parts,
            assignment: assignment.collect(),
        }
    }

    /// Number of undirected edges between nodes of different workers.
    pub fn edge_cut(&self, graph: &Csr) -> usize {
        let part = |node: u32| self.assignment[node as usize];
        graph
            .iter_edges()
            .filter(|&(u, v)| part(u) != part(v))
            .count()
            / 2
    }

    /// Nodes of the largest worker over the mean; 1 is perfect.
    pub fn balance(&self) -> f64 {
        let largest = self.sizes().into_iter().max().unwrap_or(0);
        (largest * self.parts) as f64 / self.assignment.len() as f64
    }
}

/// What a partitioner may look at besides edges.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known<'a> {
    /// The nodes that train.
    pub train: &'a [u32],
    /// The classes of nodes.
    pub labels: Option<&'a Labels>,
}

impl PartitionSpec {
    /// Divides the graph, which must be undirected. `seed` is the seed of the run; the section may
    /// fix another. Relative paths start at `base`, the folder of the experiment file.
    ///
    /// # Errors
    /// If there are no workers or more than nodes, if a given file does not fit, if there is
    /// nothing of what is to be balanced, or if classes cannot be shared out.
    pub fn partition(
        &self,
        graph: &Csr,
        known: Known<'_>,
        base: &Path,
        seed: u64,
    ) -> Result<Partition, GraphError> {
        self.partition_again(graph, known, base, (seed, 0))
    }

    /// As [`Self::partition`], another time with the same seed: every `round` is a draw of its
    /// own, and that of round 0 is the first.
    ///
    /// # Errors
    /// As [`Self::partition`].
    pub(crate) fn partition_again(
        &self,
        graph: &Csr,
        known: Known<'_>,
        base: &Path,
        (seed, round): (u64, usize),
    ) -> Result<Partition, GraphError> {
        let (nodes, workers) = (graph.nodes(), self.workers);
        if workers == 0 || workers > nodes {
            let what = format!("{workers} is not between 1 and the {nodes} nodes of the graph");
            return Err(GraphError::key("partition.workers", what));
        }
        let seed = self.seed.unwrap_or(seed);
        let mut random = stream(seed, Purpose::Partition, 0, round as u64);
        let mut assignment = match self.method {
            PartitionMethod::Random => random::partition(nodes, workers, &mut random),
            PartitionMethod::Metis => {
                let (aim, balance) = (self.objective.unwrap_or_default(), &self.balance[..]);
                metis::partition(graph, workers, aim, (balance, known.train), &mut random)?
            }
            PartitionMethod::Ldg => {
                streaming::partition(graph, workers, Penalty::Linear, &mut random)
            }
            PartitionMethod::Fennel => {
                streaming::partition(graph, workers, Penalty::Fennel, &mut random)
            }
            PartitionMethod::Dirichlet => {
                let Some(concentration) = self.concentration else {
                    let what = "is missing; method \"dirichlet\" needs a number, like 1: the smaller, the more \
                    workers differ in their classes";
                    return Err(GraphError::key("partition.concentration", what));
                };
                let none = Labels::from(Vec::new());
                let labels = known.labels.unwrap_or(&none);
                dirichlet::partition(labels, workers, concentration, &mut random)?
            }
            PartitionMethod::Given => {
                let file = self.file.as_ref().ok_or_else(|| {
                    let what = "is missing; method \"given\" needs a text file with one worker \
                    number per node and line";
                    GraphError::key("partition.file", what)
                })?;
                given::partition(&base.join(file), nodes, workers)?
            }
        };
        // METIS may leave a part empty, and a worker without nodes has nothing to train or to send.
        fill_empty(&mut assignment, workers);
        Ok(Partition {
            parts: workers,
            assignment,
        })
    }
}

/// Gives every worker without nodes the last node of the largest one. There are at least as many
/// nodes as workers.
fn fill_empty(assignment: &mut [u32], workers: usize) {
    let mut sizes = vec![0_usize; workers];
    for &part in assignment.iter() {
        sizes[part as usize] += 1;
    }
    for empty in (0_u32..).take(workers) {
        if sizes[empty as usize] > 0 {
            continue;
        }
        // The first of equally large ones, so that the result does not depend on how a maximum is
        // searched.
        let largest = (0_u32..)
            .take(workers)
            .max_by_key(|&part| (sizes[part as usize], std::cmp::Reverse(part)));
        let Some(largest) = largest else { return };
        if let Some(node) = assignment.iter().rposition(|&part| part == largest) {
            assignment[node] = empty;
            sizes[largest as usize] -= 1;
            sizes[empty as usize] = 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::BoundaryPlan;
    use proptest::prelude::*;

    const METHODS: [PartitionMethod; 4] = [
        PartitionMethod::Random,
        PartitionMethod::Metis,
        PartitionMethod::Ldg,
        PartitionMethod::Fennel,
    ];

    #[test]
    fn empty_workers_take_nodes_from_the_largest() {
        let mut assignment = vec![2, 2, 2, 2, 0];
        fill_empty(&mut assignment, 4);
        assert_eq!(assignment, [2, 2, 3, 1, 0]);
    }

    fn spec(method: PartitionMethod, workers: usize) -> PartitionSpec {
        PartitionSpec {
            method,
            workers,
            ..PartitionSpec::default()
        }
    }

    fn divide(method: PartitionMethod, graph: &Csr, workers: usize, seed: u64) -> Partition {
        spec(method, workers)
            .partition(graph, Known::default(), Path::new(""), seed)
            .unwrap()
    }

    /// A ring of n nodes.
    fn ring(n: u32) -> Csr {
        Csr::undirected(n as usize, (0..n).map(|v| (v, (v + 1) % n)))
    }

    #[test]
    fn sizes_members_cut_and_balance_are_counted() {
        let partition = Partition {
            parts: 2,
            assignment: vec![0, 0, 0, 1, 1, 0],
        };
        assert_eq!(partition.sizes(), [4, 2]);
        assert_eq!(partition.members(1), [3, 4]);
        assert_eq!(partition.edge_cut(&ring(6)), 2);
        assert!((partition.balance() - 4.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn parts_take_the_numbers_of_those_they_share_most_nodes_with() {
        let partition = |assignment: &[u32]| Partition {
            parts: 3,
            assignment: assignment.to_vec(),
        };
        let before = partition(&[0, 0, 0, 1, 1, 1, 2, 2]);
        let renamed = partition(&[2, 2, 2, 0, 0, 0, 1, 1]);
        assert_eq!(renamed.numbered_as(&before), before);
        // The largest pair first: part 1 is 0 from now on; of the others 2 shares most with 1.
        let moved = partition(&[1, 1, 1, 2, 2, 0, 2, 0]);
        assert_eq!(
            moved.numbered_as(&before).assignment,
            [0, 0, 0, 1, 1, 2, 1, 2]
        );
    }

    #[test]
    fn every_round_draws_parts_of_its_own_and_the_first_is_the_usual_one() {
        for method in METHODS {
            let again = |round| {
                spec(method, 3)
                    .partition_again(&ring(90), Known::default(), Path::new(""), (5, round))
                    .unwrap()
            };
            assert_eq!(again(0), divide(method, &ring(90), 3, 5));
            assert_eq!(again(2), again(2));
            // Of so small a graph other methods may find the same parts twice.
            if method == PartitionMethod::Random {
                assert_ne!(again(1), again(2));
            }
        }
    }

    #[test]
    fn chunks_are_dealt_to_workers_in_order_and_keep_a_plan_of_their_own() {
        let (graph, base) = (ring(24), Path::new(""));
        let fine = spec(PartitionMethod::Metis, 6);
        let chunks = fine.partition(&graph, Known::default(), base, 5).unwrap();
        let found = fine.divide(&graph, Known::default(), base, 5, 3).unwrap();
        for (chunk, worker) in chunks.assignment.iter().zip(&found.partition.assignment) {
            assert_eq!(chunk / 2, *worker);
        }
        let beside = found.chunks.unwrap();
        assert_eq!(*beside.plan, BoundaryPlan::new(&graph, &chunks));
        assert_eq!((found.boundary.workers(), beside.seed), (3, 5));
        assert!(
            fine.divide(&graph, Known::default(), base, 5, 6)
                .unwrap()
                .chunks
                .is_none()
        );
        for (chunks, workers) in [(6, 4), (25, 5), (6, 0)] {
            let error = spec(PartitionMethod::Random, chunks).divide(
                &graph,
                Known::default(),
                base,
                5,
                workers,
            );
            let error = error.unwrap_err().to_string();
            assert!(
                error.contains(&format!("asks for {chunks} parts")),
                "{error}"
            );
        }
    }

    #[test]
    fn metis_cuts_a_ring_at_as_few_places_as_possible() {
        let partition = divide(PartitionMethod::Metis, &ring(400), 4, 1);
        // Four is the least there is, and METIS a heuristic.
        assert!(partition.edge_cut(&ring(400)) <= 6);
        assert!(partition.balance() < 1.05);
    }

    #[test]
    fn one_worker_owns_everything() {
        for method in METHODS {
            assert_eq!(divide(method, &ring(5), 1, 3).assignment, [0; 5]);
        }
    }

    #[test]
    fn more_workers_than_nodes_are_refused() {
        for workers in [0, 6] {
            let error = spec(PartitionMethod::Metis, workers);
            let error = error.partition(&ring(5), Known::default(), Path::new(""), 0);
            let text = error.unwrap_err().to_string();
            assert_eq!(
                text,
                format!(
                    "partition.workers: {workers} is not between 1 and the 5 nodes of the graph"
                )
            );
        }
    }

    #[test]
    fn a_fixed_seed_wins_over_the_seed_of_the_run() {
        let fixed = PartitionSpec {
            seed: Some(4),
            ..spec(PartitionMethod::Random, 3)
        };
        let graph = ring(50);
        let of_run = |seed| {
            fixed
                .partition(&graph, Known::default(), Path::new(""), seed)
                .unwrap()
        };
        assert_eq!(of_run(1), divide(PartitionMethod::Random, &graph, 3, 4));
        assert_eq!(of_run(1), of_run(2));
    }

    #[test]
    fn metis_called_from_several_threads_gives_the_same_partitions() {
        let graph = crate::graph::cora().unwrap().graph;
        let alone = divide(PartitionMethod::Metis, &graph, 4, 7);
        std::thread::scope(|scope| {
            let same = || scope.spawn(|| divide(PartitionMethod::Metis, &graph, 4, 7));
            for thread in [same(), same(), same()] {
                assert_eq!(thread.join().unwrap(), alone);
            }
        });
        assert_ne!(divide(PartitionMethod::Metis, &graph, 4, 8), alone);
    }

    proptest! {
        #[test]
        fn every_worker_has_nodes_every_node_a_worker_and_the_seed_decides(
            edges in prop::collection::vec((0_u32..40, 0_u32..40), 0..120),
            workers in 1_usize..=40,
            seed in any::<u64>(),
            method in 0_usize..4,
        ) {
            let graph = Csr::undirected(40, edges.into_iter());
            let method = METHODS[method];
            let partition = divide(method, &graph, workers, seed);
            prop_assert_eq!(partition.assignment.len(), 40);
            let sizes = partition.sizes();
            prop_assert!(sizes.iter().all(|&size| size > 0), "{:?}", sizes);
            if method == PartitionMethod::Random {
                let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
                prop_assert!(most - least <= 1);
            }
            let members: usize = (0..workers).map(|part| partition.members(part).len()).sum();
            prop_assert_eq!(members, 40);
            prop_assert_eq!(divide(method, &graph, workers, seed), partition);
        }
    }
}
