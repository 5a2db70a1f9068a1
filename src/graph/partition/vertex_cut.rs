//! Graphs whose edges are dealt to workers: a node has a clone at each worker that has one of its
//! edges, and one of the clones is the owner.

use rand::RngExt;

use super::edges::{EdgeMethod, deal};
use crate::graph::{Csr, Peers};
use crate::rng::{Purpose, stream};

/// A vertex cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VertexCut {
    /// One for each worker.
    pub parts: Vec<CutPart>,
    /// Nodes that have several clones, ascending.
    pub split: Vec<u32>,
}

/// What one worker holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutPart {
    /// Global numbers of the nodes of which it has a clone, ascending: local row i is of
    /// `nodes[i]`.
    pub nodes: Vec<u32>,
    /// In-neighbours of the clones by the edges dealt to this worker, as local rows.
    pub adjacency: Csr,
    /// Local rows of nodes that it owns.
    pub owned: Vec<u32>,
    /// For each worker that owns some of the others, their local rows.
    pub owners: Peers<Vec<u32>>,
    /// For each worker that has clones of nodes owned here, the local rows of these, in the order
    /// of its `owners`.
    pub holders: Peers<Vec<u32>>,
}

impl VertexCut {
    /// Deals out the edges, and draws the owner of each node among its clones. A node without edges
    /// has one clone, at worker `node mod workers`.
    ///
    /// # Example
    /// ```
    /// use grapevine::graph::{Csr, EdgeMethod, VertexCut};
    ///
    /// let path = Csr::undirected(3, [(0, 1), (1, 2)].into_iter());
    /// let cut = VertexCut::new(&path, 1, EdgeMethod::Libra, 0);
    /// assert_eq!((cut.parts[0].nodes.len(), cut.clones()), (3, 3));
    /// ```
    pub fn new(graph: &Csr, workers: usize, method: EdgeMethod, seed: u64) -> Self {
        // Worker 1 stands for edges: nodes are dealt out from the stream of worker 0.
        let mut random = stream(seed, Purpose::Partition, 1, 0);
        let dealt = deal(graph, workers, method, &mut random);
        let mut edges = vec![Vec::new(); workers];
        let mut holders = vec![Vec::new(); graph.nodes()];
        for (edge, &worker) in graph.iter_edges().zip(&dealt) {
            edges[worker as usize].push(edge);
            for node in <[u32; 2]>::from(edge) {
                let holders: &mut Vec<u32> = &mut holders[node as usize];
                if !holders.contains(&worker) {
                    holders.push(worker);
                }
            }
        }
        let mut parts = vec![CutPart::empty(); workers];
        let mut split = Vec::new();
        for (node, holders) in (0_u32..).zip(&mut holders) {
            if holders.is_empty() {
                holders.push(node % workers as u32); // so many workers as a number of 32 bits
            }
            holders.sort_unstable();
            let owner = holders[random.random_range(0..holders.len())] as usize;
            let row = |part: &CutPart| part.nodes.len() as u32; // no more than nodes
            let owned = row(&parts[owner]);
            parts[owner].owned.push(owned);
            for holder in holders.iter().map(|&holder| holder as usize) {
                if holder != owner {
                    let clone = row(&parts[holder]);
                    parts[holder].owners.of(owner).push(clone);
                    parts[owner].holders.of(holder).push(owned);
                }
                parts[holder].nodes.push(node);
            }
            if holders.len() > 1 {
                split.push(node);
            }
        }
        for (part, edges) in parts.iter_mut().zip(edges) {
            let nodes = &part.nodes;
            // Both ends of an edge have a clone where it is.
            let row = |node: &u32| nodes.partition_point(|other| other < node) as u32;
            let edges = edges.iter().map(|(u, v)| (row(u), row(v)));
            part.adjacency = Csr::from_edges(nodes.len(), edges);
        }
        Self { parts, split }
    }

    /// Clones of all nodes; over the number of nodes that is the replication factor.
    pub fn clones(&self) -> usize {
        self.parts.iter().map(|part| part.nodes.len()).sum()
    }
}

impl CutPart {
    fn empty() -> Self {
        Self {
            nodes: Vec::new(),
            adjacency: Csr::from_edges(0, std::iter::empty()),
            owned: Vec::new(),
            owners: Peers::default(),
            holders: Peers::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const METHODS: [EdgeMethod; 3] = [EdgeMethod::Libra, EdgeMethod::Hdrf, EdgeMethod::Random];

    /// Mean clones of a node over some seeds.
    fn replication(graph: &Csr, workers: usize, method: EdgeMethod) -> f64 {
        let clones = |seed| VertexCut::new(graph, workers, method, seed).clones();
        let all: usize = (0..5).map(clones).sum();
        all as f64 / 5.0 / graph.nodes() as f64
    }

    #[test]
    fn libra_makes_as_many_clones_of_cora_as_the_authors_program_did() {
        let graph = crate::graph::cora().unwrap().graph;
        // What DistGNN's authors put beside their code: the last entry of `node_map` in
        // Libra_result_cora/{2,4,8}Communities/cora.json of the `distgnn` folder of DGL.
        for (workers, clones) in [(2, 3125), (4, 3481), (8, 3729)] {
            let found = replication(&graph, workers, EdgeMethod::Libra);
            let authors = f64::from(clones) / graph.nodes() as f64;
            let apart = found / authors - 1.0;
            assert!(apart.abs() < 0.03, "{workers}: {found} for {authors}");
        }
    }

    #[test]
    fn greedy_cuts_make_fewer_clones_than_a_random_one() {
        let graph = crate::graph::cora().unwrap().graph;
        let [libra, hdrf, random] = METHODS.map(|method| replication(&graph, 8, method));
        assert!(
            libra < hdrf && hdrf < 0.6 * random,
            "{libra}, {hdrf}, {random}"
        );
        // At random each other worker has a node unless all its edges, both ways, are elsewhere.
        let absent = |degree: usize| (7.0_f64 / 8.0).powi(2 * degree as i32);
        let clones = (0..graph.nodes()).map(|v| 8.0 * (1.0 - absent(graph.degree(v))));
        let expected = clones.sum::<f64>() / graph.nodes() as f64;
        assert!(
            (random / expected - 1.0).abs() < 0.01,
            "{random}, {expected}"
        );
    }

    proptest! {
        #[test]
        fn every_edge_has_one_worker_and_every_node_one_owner(
            edges in prop::collection::vec((0_u32..30, 0_u32..30), 0..90),
            workers in 1_usize..6,
            method in 0_usize..3,
            seed: u64,
        ) {
            let graph = Csr::from_edges(30, edges.into_iter());
            let cut = VertexCut::new(&graph, workers, METHODS[method], seed);
            let mut found: Vec<(u32, u32)> = Vec::new();
            let mut owned: Vec<u32> = Vec::new();
            for (rank, part) in cut.parts.iter().enumerate() {
                let node = |row: u32| part.nodes[row as usize];
                let global = |rows: &[u32]| rows.iter().map(|&row| node(row)).collect::<Vec<_>>();
                found.extend(part.adjacency.iter_edges().map(|(u, v)| (node(u), node(v))));
                owned.extend(global(&part.owned));
                prop_assert!(part.nodes.is_sorted());
                let clones = part.owners.iter().map(|(_, rows)| rows.len()).sum::<usize>();
                prop_assert_eq!(clones + part.owned.len(), part.nodes.len());
                for (owner, rows) in part.owners.iter() {
                    let there = &cut.parts[owner];
                    let theirs = there.holders[rank].iter();
                    let theirs: Vec<u32> = theirs.map(|&row| there.nodes[row as usize]).collect();
                    prop_assert_eq!(global(rows), theirs);
                }
            }
            found.sort_unstable_by_key(|&(u, v)| (v, u));
            prop_assert!(found.into_iter().eq(graph.iter_edges()));
            owned.sort_unstable();
            prop_assert!(owned.into_iter().eq(0..30));
            let clones = |node: &u32| {
                cut.parts.iter().filter(|part| part.nodes.contains(node)).count()
            };
            let split: Vec<u32> = (0..30).filter(|node| clones(node) > 1).collect();
            prop_assert_eq!(&cut.split, &split);
        }
    }
}
