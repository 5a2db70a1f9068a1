//! The order in which nodes are numbered: neighbours with numbers near each other lie near each
//! other in memory.

use std::collections::VecDeque;

use super::{Csr, NodeOrder, RawDataset};

impl NodeOrder {
    /// The nodes in this order: entry *i* is the node that gets number *i*. O(edges · log of the
    /// largest degree).
    pub fn of(self, graph: &Csr) -> Vec<u32> {
        let mut nodes: Vec<u32> = (0..graph.nodes()).map(|node| node as u32).collect();
        match self {
            Self::Given => nodes,
            Self::Degree => {
                // A stable sort: nodes of equal degree stay in the order of the data.
                nodes.sort_by_key(|&node| std::cmp::Reverse(graph.degree(node as usize)));
                nodes
            }
            Self::Rcm => reverse_cuthill_mckee(graph, nodes),
        }
    }
}

/// Breadth first from a node of least degree of each component, neighbours by rising degree, and
/// all of it backwards (Cuthill and McKee, 1969; George, 1971): the matrix of the graph gathers
/// around its diagonal.
fn reverse_cuthill_mckee(graph: &Csr, mut nodes: Vec<u32>) -> Vec<u32> {
    let degree = |node: &u32| graph.degree(*node as usize);
    // Stable, as above; so is the one below, of neighbours in ascending order.
    nodes.sort_by_key(degree);
    let mut seen = vec![false; graph.nodes()];
    let mut order = Vec::with_capacity(nodes.len());
    let mut queue = VecDeque::new();
    let mut next = Vec::new();
    for start in nodes {
        if std::mem::replace(&mut seen[start as usize], true) {
            continue;
        }
        queue.push_back(start);
        while let Some(node) = queue.pop_front() {
            order.push(node);
            next.extend_from_slice(graph.neighbours(node as usize));
            next.retain(|&neighbour| !std::mem::replace(&mut seen[neighbour as usize], true));
            next.sort_by_key(degree);
            queue.extend(next.drain(..));
        }
    }
    // Backwards: the band is as narrow, and elimination fills in less of it (George).
    order.reverse();
    order
}

impl RawDataset {
    /// The same data with nodes numbered in another order.
    pub(crate) fn reordered(&self, order: NodeOrder) -> Self {
        if order == NodeOrder::Given {
            return self.clone();
        }
        self.only(&order.of(&self.graph))
    }

    /// The data of these nodes and the edges among them; node *i* of the list gets number *i*.
    ///
    /// # Panics
    /// If a node does not exist.
    pub(super) fn only(&self, nodes: &[u32]) -> Self {
        let mut number = vec![None; self.graph.nodes()];
        for (new, &old) in (0_u32..).zip(nodes) {
            number[old as usize] = Some(new);
        }
        let renumber = |set: &[u32]| {
            let kept = set.iter().filter_map(|&old| number[old as usize]);
            kept.collect()
        };
        let splits = self.splits.iter().map(|split| split.map(renumber).sorted());
        Self {
            graph: self.graph.induced(nodes).into(),
            features: self.features.select(nodes).into(),
            labels: self.labels.select(nodes),
            splits: splits.collect(),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::graph::cora;

    /// Largest distance between the numbers of two neighbours.
    fn bandwidth(graph: &Csr) -> u32 {
        let distances = graph.iter_edges().map(|(a, b)| a.abs_diff(b));
        distances.max().unwrap_or(0)
    }

    #[test]
    fn a_shuffled_path_becomes_a_path() {
        // 0 – 3 – 1 – 4 – 2.
        let graph = Csr::undirected(5, [(0, 3), (3, 1), (1, 4), (4, 2)].into_iter());
        let order = NodeOrder::Rcm.of(&graph);
        assert_eq!(order, [2, 4, 1, 3, 0]);
        assert_eq!(bandwidth(&graph.induced(&order)), 1);
    }

    #[test]
    fn the_largest_degrees_come_first() {
        let graph = Csr::undirected(5, [(4, 0), (4, 1), (4, 2), (2, 1)].into_iter());
        assert_eq!(NodeOrder::Degree.of(&graph), [4, 1, 2, 0, 3]);
    }

    #[test]
    fn reordered_data_are_the_same_data() {
        let data = cora().unwrap();
        for order in [NodeOrder::Given, NodeOrder::Degree, NodeOrder::Rcm] {
            let nodes = order.of(&data.graph);
            let other = data.reordered(order);
            for (new, &old) in nodes.iter().enumerate() {
                let old = old as usize;
                assert_eq!(other.graph.degree(new), data.graph.degree(old));
                assert_eq!(other.labels.of(new), data.labels.of(old));
                let (a, b) = (
                    other.features.select(&[new as u32]),
                    data.features.select(&[old as u32]),
                );
                assert_eq!(a, b);
            }
            let public = |data: &RawDataset| data.splits[0].train.len();
            assert_eq!(public(&other), public(&data));
            let labels = |data: &RawDataset| {
                let train = data.splits[0].train.iter();
                let mut labels: Vec<_> = train
                    .map(|&node| data.labels.classes()[node as usize])
                    .collect();
                labels.sort_unstable();
                labels
            };
            assert_eq!(labels(&other), labels(&data));
        }
        let rcm = data.reordered(NodeOrder::Rcm);
        assert!(bandwidth(&rcm.graph) < bandwidth(&data.graph));
    }

    proptest! {
        #[test]
        fn every_order_is_a_permutation(
            edges in prop::collection::vec((0..30_u32, 0..30_u32), 0..80),
        ) {
            let graph = Csr::undirected(30, edges.into_iter());
            for order in [NodeOrder::Given, NodeOrder::Degree, NodeOrder::Rcm] {
                let mut nodes = order.of(&graph);
                prop_assert_eq!(graph.induced(&nodes).indices().len(), graph.indices().len());
                nodes.sort_unstable();
                prop_assert_eq!(nodes, (0..30).collect::<Vec<u32>>());
            }
        }
    }
}
